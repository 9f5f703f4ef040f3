"""The page's partition schemes give the same results as Python's.

Compared are blocks, runs, loads, statistics, metadata, and which controls an argument depends on.
"""

import json
import math
import random

import numpy as np
import pytest

import accelviz
from accelviz.analysis.lookup import find_row
from accelviz.analysis.sweep import summary
from accelviz.datasets import bundled_graphs
from accelviz.errors import AccelvizError
from accelviz.strategies import REGISTRY, find_strategy
from accelviz.widgets.contents import strategies_content
from accelviz.widgets.offers import COLUMNS, offered
from accelviz.widgets.pack import pack_text

from ..graphs import MADE

#: Number of blocks and of rows of a graph that are compared, besides the first and last.
SAMPLES = 8
STATISTICS = (
    *("blocks", "warps", "busy_warps", "steps", "slots", "longest", "workers", "metadata_bytes"),
    *("rows_shared", "rows_cut", "shared_atomics", "global_atomics", "nonzeros", "idle_warps"),
    *("idle_share", "largest", "mean", "imbalance"),
)
#: Evaluates schemes in the page. It returns JSON because Playwright transfers values one by one.
EVALUATE = """
async ({ text, cases, statistics }) => {
  const { hardwareOf, openGraph, SCHEMES, unpackText } = accelvizPage;
  const content = await unpackText(text);
  const graph = openGraph(content.graph);
  return JSON.stringify(cases.map(({ scheme, workers, columns, nCols, blocks, rows }) => {
    const { kind, ...settings } = scheme, partition = SCHEMES[kind](graph, settings);
    if (!partition) return { kind };
    const hardware = hardwareOf(partition.warps, workers, columns, nCols);
    const summary = partition.summary(nCols, hardware);
    const ofSteps = (block, loads) => hardware.rowPerLane ? partition.longestOf(block, loads)
      : partition.loadsOf(block, loads);
    const loads = new Float64Array(partition.warps);
    const known = (value) => value === null || Number.isNaN(value) ? null : value;
    const fieldsOf = (fields) => fields.map(({ name, bits, value }) => [name, bits, value]);
    return {
      kind, warps: partition.warps,
      summary: Object.fromEntries(statistics.map((key) => [key, known(summary[key])])),
      histogram: [[...summary.loads.nonzeros], [...summary.loads.warps]],
      idle: summary.loads.idle,
      runs: blocks.map((block) =>
        partition.runs(block).map((run) => [run.warp, run.position, run.start, run.count])),
      loads: blocks.map((block) => [...partition.loadsOf(block, loads)]),
      steps: blocks.map((block) =>
        [...hardware.stepsOf(ofSteps(block, loads), new Float64Array(hardware.warps))]),
      shares: blocks.map((block) => hardware.idleShareOf(ofSteps(block, loads))),
      unit: hardware.unit,
      records: blocks.map((block) =>
        partition.metadata(block)?.map(({ title, words, fields, meaning }) =>
          [title, words, fields.map(fieldsOf), meaning]) ?? null),
      positions: rows.map((row) => partition.positionOf(row)),
      blocks: rows.map((row) => partition.blocksOf(partition.positionOf(row))),
    };
  }));
}
"""


def random_settings(strategy, rng, count):
    """Yield the default setting, then random ones that the controls offer."""
    parameters = strategy.parameters
    yield 64, strategy.defaults()
    for _ in range(count - 1):
        n_cols = rng.choice((1, 16, 48, 80, 512))
        yield (
            n_cols,
            {n: rng.choice(offered(parameters[n], parameters[n].default)) for n in parameters},
        )


def sample_indices(length, rng):
    """Return the first index, the last one and up to `SAMPLES` between, ascending."""
    inner = rng.sample(range(1, length - 1), min(SAMPLES, length - 2)) if length > 2 else []
    return sorted({*range(min(length, 1)), *inner, *range(max(length - 1, 0), length)})


def cases_of(graph, rng, count, turn, by_sender):
    """Return the packed graph, cases for the page, and the plans that they are compared with.

    Only every third strategy is included, beginning with number `turn`, to save time.
    """
    matrix = graph.transposed().graph if by_sender else graph
    cases, expected = [], []
    for strategy in REGISTRY[turn % 3 :: 3]:
        if strategy.by_sender != by_sender:
            continue
        for n_cols, settings in random_settings(strategy, rng, count):
            try:
                description = strategy.described(graph, n_cols, **settings)
            except AccelvizError:  # the strategy refuses these values
                continue
            scheme = description and description.scheme
            if scheme is None:  # the page cannot compute the scheme
                continue
            plan = strategy.plan(graph, n_cols, **settings)
            n_blocks, n_rows = plan.launch.n_blocks, matrix.n_rows
            cases.append(
                {
                    "scheme": {"kind": scheme.kind, **vars(scheme)},
                    "workers": description.workers and vars(description.workers),
                    "columns": description.lanes and vars(description.lanes),
                    "nCols": n_cols,
                    "blocks": sample_indices(n_blocks, rng) if plan.has_workload else [],
                    "rows": sample_indices(n_rows, rng) if plan.has_workload else [],
                }
            )
            expected.append((strategy, n_cols, settings, plan))
    rows, cols = matrix.shape
    content = {"name": graph.name, "rows": rows, "cols": cols, "degrees": matrix.degrees}
    return pack_text({"graph": content}), cases, expected


def equal(actual, expected):
    """Whether two statistics are equal; NaN in Python is None in the page."""
    expected = None if expected is None or math.isnan(expected) else expected
    if actual is None or expected is None:
        return actual is None and expected is None
    return actual == pytest.approx(expected, rel=1e-12, abs=1e-12)


def check_case(graph, case, result, strategy, n_cols, settings, plan):
    where = f"{graph.name}, {strategy.operation.name} {strategy.name} {n_cols} {settings}"
    if not plan.has_workload:
        assert result == {"kind": "library"}, where
        return
    expected = summary(strategy, graph, n_cols, settings)
    for name in STATISTICS:
        actual, value = result["summary"][name], getattr(expected, name)
        assert equal(actual, value), (where, name, actual, value)
    loads = expected.loads
    assert result["histogram"] == [loads.nonzeros.tolist(), loads.warps.tolist()], where
    assert result["idle"] == loads.idle, where
    assert result["warps"] == plan.workers_per_block, where
    assert result["unit"] == plan.hardware.unit, where
    for i, block in enumerate(case["blocks"]):
        work = plan.workload(block, block + 1)
        columns = (work.warp, work.row, work.nz_start, work.nz_count)
        runs = [list(run) for run in zip(*map(np.ndarray.tolist, columns), strict=True)]
        assert result["runs"][i] == runs, where
        loads, block_loads = plan.hardware.of_workload(work), nonzeros_of(plan, block, work)
        if plan.layout.slice_loads:
            loads = block_loads[None]
        assert result["loads"][i] == block_loads.tolist(), (where, block)
        if len(work):
            steps = plan.hardware.steps_of_nonzeros(loads)[0].tolist()
            assert result["steps"][i] == steps, (where, block)
            busy, slots = (int(sums[0]) for sums in plan.hardware.block_times(loads))
            share = 1 - busy / slots if slots else 0
            assert result["shares"][i] == pytest.approx(share, abs=1e-12), (where, block)
        check_records(where, plan, block, result["records"][i])
    for i, row in enumerate(case["rows"]):
        location = find_row(plan, row)
        assert result["positions"][i] == location.walked_row, where
        ends = [location.blocks[0], location.blocks[-1]] if location.blocks else []
        assert result["blocks"][i] == ends, (where, row)


def nonzeros_of(plan, block, work):
    """The nonzeros of each worker of a block, of all attention heads."""
    if plan.layout.slice_loads:
        return plan.layout.slice_loads(block, block + 1)[0]
    return np.bincount(work.warp, work.nz_count, plan.workers_per_block)


def check_records(where, plan, block, actual):
    """Compare the metadata records of a block."""
    if plan.metadata is None:
        assert actual is None, where
        return
    per_block = 1 if len(plan.metadata) == plan.launch.n_blocks else plan.workers_per_block
    numbers = range(block * per_block, min((block + 1) * per_block, len(plan.metadata)))
    expected = []
    for record in plan.strategy.metadata_records(plan, numbers):
        fields = [[[f.name, f.bits, f.value] for f in word_fields] for word_fields in record.fields]
        expected.append([record.title, list(record.words), fields, record.meaning])
    assert actual == expected, (where, block)


def check_schemes(bundle, graph, seed, count, turn):
    for by_sender in (False, True):
        text, cases, expected = cases_of(graph, random.Random(seed), count, turn, by_sender)
        request = {"text": text, "cases": cases, "statistics": STATISTICS}
        results = json.loads(bundle.evaluate(EVALUATE, request))
        for case, result, arguments in zip(cases, results, expected, strict=True):
            check_case(graph, case, result, *arguments)


@pytest.mark.long
@pytest.mark.sample(3)
@pytest.mark.parametrize(("turn", "name"), [*enumerate(bundled_graphs())])
def test_each_bundled_graph_with_a_third_of_the_strategies(bundle, turn, name):
    check_schemes(bundle, accelviz.load_graph(name), name, 3, turn % 3)


@pytest.mark.long
@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MADE)
def test_difficult_graphs(bundle, name):
    check_schemes(bundle, MADE[name](), name, 3, [*MADE].index(name) // 2)


def test_column_count_changes_atomics_but_not_the_partition(bundle):
    """The store caches a partition over column counts, but computes its atomics for each."""
    panel = accelviz.explore("cora", second="gnnadvisor", n_cols=64)
    text = pack_text(panel.content())
    results = bundle.evaluate(
        """async ({ text, counts }) => {
          const { makeStore, unpackText } = accelvizPage;
          const store = makeStore(await unpackText(text));
          const sides = () => [store.scene().a, store.scene().b];
          const before = sides();
          return counts.map((nCols) => {
            store.set({ nCols });
            return sides().map(({ partition, summary }, i) => [partition === before[i].partition,
              summary.shared_atomics, summary.global_atomics]);
          });
        }""",
        {"text": text, "counts": [32, 512]},
    )
    graph = accelviz.load_graph("cora")
    for n_cols, sides in zip((32, 512), results, strict=True):
        for name, side in zip(("accel_gcn", "gnnadvisor"), sides, strict=True):
            strategy = find_strategy(name)
            expected = summary(strategy, graph, n_cols, strategy.defaults())
            assert side == [True, expected.shared_atomics, expected.global_atomics], (name, n_cols)


@pytest.mark.long
def test_scheme_tables_hold_at_random_settings():
    """The tables of `scheme_tables` give what the strategy describes at the same values."""
    rng = random.Random(18)
    graph = accelviz.load_graph("cora")
    for strategy in REGISTRY:
        (content,) = strategies_content([strategy], graph, 64, {})
        offers = {parameter["name"]: parameter["values"] for parameter in content["parameters"]}
        offers["n_cols"] = list(COLUMNS)
        if content["scheme"] is None:
            description = strategy.described(graph, 64)
            assert description is None or description.scheme is None
            continue
        for _ in range(400):
            values = {name: rng.choice(offer) for name, offer in offers.items()}
            check_trees(strategy, graph, content["scheme"], values, offers)


def check_trees(strategy, graph, tables, values, offers):
    def value_of(tree):
        while isinstance(tree, dict):
            value = values[tree["over"]]
            is_same = [type(v) is type(value) and v == value for v in offers[tree["over"]]]
            tree = tree["each"][is_same.index(True)]
        return tree

    try:
        description = strategy.described(graph, **values)
    except AccelvizError:
        assert value_of(tables["kind"]) == "refused", (strategy.name, values)
        return
    parameters = {name: value for name, value in values.items() if name != "n_cols"}
    widths, settings = strategy.checked(values["n_cols"], parameters)
    resolved = strategy.resolve(settings, graph, widths).values()
    assert value_of(tables["kind"]) == description.scheme.kind
    expected = {
        "arguments": vars(description.scheme),
        "lanes": vars(description.lanes) if description.lanes else {},
        "workers": vars(description.workers) if description.workers else {},
        "text": {"summary": description.text} if description.text else {},
        "resolved": {name: resolved[name] for name in tables["resolved"]},
    }
    for part, numbers in expected.items():
        for name, number in numbers.items():
            assert value_of(tables[part][name]) == number, (strategy.name, name, values)
