"""The page's partitions are Python's: blocks, runs, loads, statistics, metadata, readings."""

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

#: Blocks and rows of a graph that are looked at, the first and the last among them.
SOME = 8
STATISTICS = (
    *("blocks", "warps", "slots", "metadata_bytes", "rows_shared", "rows_cut", "shared_atomics"),
    *("global_atomics", "busy_warps", "nonzeros", "idle_warps", "idle_share", "largest", "mean"),
    "imbalance",
)
#: As text, for Playwright takes a value at a time.
RUN = """
async ({ text, cases, statistics }) => {
  const { openGraph, SCHEMES, unpackText } = accelvizPage;
  const content = await unpackText(text);
  const graph = openGraph(content.graph);
  return JSON.stringify(cases.map(({ cut, nCols, blocks, rows }) => {
    const { kind, ...settings } = cut, made = SCHEMES[kind](graph, settings);
    if (!made) return { kind: cut.kind };
    const summary = made.summary(nCols);
    const out = new Float64Array(made.warps);
    const plain = (value) => value === null || Number.isNaN(value) ? null : value;
    return {
      kind: cut.kind, warps: made.warps,
      summary: Object.fromEntries(statistics.map((key) => [key, plain(summary[key])])),
      loads: [[...summary.loads.nonzeros], [...summary.loads.warps]],
      idle: summary.loads.idle,
      runs: blocks.map((block) =>
        made.runs(block).map((run) => [run.warp, run.position, run.start, run.count])),
      sums: blocks.map((block) => [...made.loadsOf(block, out)]),
      lines: blocks.map((block) => made.metadata(block)?.map(({ title, words, fields, meaning }) =>
        [title, words, fields.map((own) => own.map((f) => [f.name, f.bits, f.value])), meaning])
        ?? null),
      places: rows.map((row) => made.positionOf(row)),
      found: rows.map((row) => made.blocksOf(made.positionOf(row))),
    };
  }));
}
"""


def settings_of(strategy, graph, rng, many):
    """The default setting, then some at random, of what the controls offer."""
    parameters = strategy.parameters
    for i in range(many):
        if i == 0:
            yield 64, strategy.defaults()
        else:
            n_cols = rng.choice((1, 16, 48, 80, 512))
            yield (
                n_cols,
                {n: rng.choice(offered(parameters[n], parameters[n].default)) for n in parameters},
            )


def chosen(count, most, rng):
    inner = rng.sample(range(1, count - 1), min(most, count - 2)) if count > 2 else []
    return sorted({*range(min(count, 1)), *inner, *range(max(count - 1, 0), count)})


def cases_of(graph, rng, many, turn, by_sender):
    """Cases of every third strategy; graphs take turns."""
    walked = graph.transposed().graph if by_sender else graph
    cases, expected = [], []
    for strategy in REGISTRY[turn % 3 :: 3]:
        if strategy.operation.by_sender != by_sender:
            continue
        for n_cols, settings in settings_of(strategy, graph, rng, many):
            try:
                description = strategy.described(graph, n_cols, **settings)
            except AccelvizError:  # values that cannot be had together
                continue
            scheme = description and description.scheme
            if scheme is None:  # a scheme that the page does not know
                continue
            plan = strategy.plan(graph, n_cols, **settings)
            known = plan.has_workload
            cases.append(
                {
                    "cut": {"kind": scheme.kind, **vars(scheme)},
                    "nCols": n_cols,
                    "blocks": chosen(plan.launch.n_blocks, SOME, rng) if known else [],
                    "rows": chosen(walked.n_rows, SOME, rng) if known else [],
                }
            )
            expected.append((strategy, n_cols, settings, plan))
    rows, cols = walked.shape
    content = {"name": graph.name, "rows": rows, "cols": cols, "degrees": walked.degrees}
    return pack_text({"graph": content}), cases, expected


def same(told, wanted):
    wanted = None if wanted is None or math.isnan(wanted) else wanted
    if told is None or wanted is None:
        return told is None and wanted is None
    return told == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def check(graph, case, told, strategy, n_cols, settings, plan):
    where = f"{graph.name}, {strategy.operation.name} {strategy.name} {n_cols} {settings}"
    if not plan.has_workload:
        assert told == {"kind": "library"}, where
        return
    wanted = summary(strategy, graph, n_cols, settings)
    for name in STATISTICS:
        value = getattr(wanted, name)
        assert same(told["summary"][name], value), (where, name, told["summary"][name], value)
    assert told["loads"] == [wanted.loads.nonzeros.tolist(), wanted.loads.warps.tolist()], where
    assert told["idle"] == wanted.loads.idle, where
    assert told["warps"] == plan.workers_per_block, where
    for i, block in enumerate(case["blocks"]):
        work = plan.workload(block, block + 1)
        columns = (work.warp, work.row, work.nz_start, work.nz_count)
        assert told["runs"][i] == [
            list(run) for run in zip(*map(np.ndarray.tolist, columns), strict=True)
        ], where
        sums = np.bincount(work.warp, work.nz_count, plan.workers_per_block)
        assert told["sums"][i] == sums.tolist(), (where, block)
        check_lines(where, plan, block, told["lines"][i])
    for i, row in enumerate(case["rows"]):
        position = find_row(plan, row)
        assert told["places"][i] == position.walked_row, where
        ends = [position.blocks[0], position.blocks[-1]] if position.blocks else []
        assert told["found"][i] == ends, (where, row)


def check_lines(where, plan, block, told):
    if plan.metadata is None:
        assert told is None, where
        return
    per_block = 1 if len(plan.metadata) == plan.launch.n_blocks else plan.workers_per_block
    numbers = range(block * per_block, min((block + 1) * per_block, len(plan.metadata)))
    wanted = [
        [
            line.title,
            list(line.words),
            [[[field.name, field.bits, field.value] for field in fields] for fields in line.fields],
            line.meaning,
        ]
        for line in plan.strategy.metadata_records(plan, numbers)
    ]
    assert told == wanted, (where, block)


def checked(bundle, graph, seed, many, turn):
    for by_sender in (False, True):
        text, cases, expected = cases_of(graph, random.Random(seed), many, turn, by_sender)
        request = {"text": text, "cases": cases, "statistics": STATISTICS}
        for case, told, arguments in zip(
            cases, json.loads(bundle.evaluate(RUN, request)), expected, strict=True
        ):
            check(graph, case, told, *arguments)


@pytest.mark.parametrize(("turn", "name"), [(0, "cora"), (1, "as-caida"), (2, "citeseer")])
def test_bundled_graphs_in_turn(bundle, turn, name):
    checked(bundle, accelviz.load_graph(name), name, 3, turn)


@pytest.mark.long
@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("name", bundled_graphs())
def test_every_bundled_graph_with_every_strategy(bundle, name, turn):
    checked(bundle, accelviz.load_graph(name), name, 3, turn)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MADE)
def test_graphs_that_are_hard(bundle, name):
    checked(bundle, MADE[name](), name, 3, [*MADE].index(name) // 2)


def test_other_columns_make_no_other_partition(bundle):
    """What the store keeps between two column counts still has the atomics of the second."""
    panel = accelviz.explore("cora", second="gnnadvisor", n_cols=64)
    text = pack_text(panel.content())
    told = bundle.evaluate(
        """async ({ text, seen }) => {
          const { makeStore, unpackText } = accelvizPage;
          const store = makeStore(await unpackText(text));
          const sides = () => [store.scene().a, store.scene().b];
          const before = sides();
          return seen.map((nCols) => {
            store.set({ nCols });
            return sides().map(({ partition, summary }, i) => [partition === before[i].partition,
              summary.shared_atomics, summary.global_atomics]);
          });
        }""",
        {"text": text, "seen": [32, 512]},
    )
    graph = accelviz.load_graph("cora")
    for n_cols, sides in zip((32, 512), told, strict=True):
        for name, (same_partition, shared, everywhere) in zip(
            ("accel_gcn", "gnnadvisor"), sides, strict=True
        ):
            strategy = find_strategy(name)
            wanted = summary(strategy, graph, n_cols, strategy.defaults())
            assert same_partition, (name, n_cols)
            assert (shared, everywhere) == (wanted.shared_atomics, wanted.global_atomics)


def test_what_arguments_depend_on_is_found():
    """At settings at random of all parameters, the page's trees are what Python describes."""
    rng = random.Random(18)
    graph = accelviz.load_graph("cora")
    for strategy in REGISTRY:
        (content,) = strategies_content([strategy], graph, 64, {})
        offers = {one["name"]: one["values"] for one in content["parameters"]}
        offers["n_cols"] = list(COLUMNS)
        if content["scheme"] is None:
            description = strategy.described(graph, 64)
            assert description is None or description.scheme is None
            continue
        for _ in range(400):
            values = {name: rng.choice(offered) for name, offered in offers.items()}
            check_trees(strategy, graph, content["scheme"], values, offers)


def check_trees(strategy, graph, tables, values, offers):
    def value_of(tree):
        while isinstance(tree, dict):
            wanted = values[tree["over"]]
            same = [type(v) is type(wanted) and v == wanted for v in offers[tree["over"]]]
            tree = tree["each"][same.index(True)]
        return tree

    try:
        description = strategy.described(graph, **values)
    except AccelvizError:
        assert value_of(tables["kind"]) == "refused", (strategy.name, values)
        return
    widths, settings = strategy.checked(values["n_cols"], without(values, "n_cols"))
    resolved = strategy.resolve(settings, graph, widths).values()
    assert value_of(tables["kind"]) == description.scheme.kind
    expected = {
        "arguments": vars(description.scheme),
        "lanes": vars(description.lanes) if description.lanes else {},
        "resolved": {name: resolved[name] for name in tables["resolved"]},
    }
    for part, numbers in expected.items():
        for name, number in numbers.items():
            assert value_of(tables[part][name]) == number, (strategy.name, name, values)


def without(values, name):
    return {other: value for other, value in values.items() if other != name}
