"""The benchmark: results are checked first, runs are comparable and resumable, limits are right."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import accelviz
from accelviz import measure, plots
from accelviz.analysis.schedule import timeline_summary
from accelviz.devices import find_device, gpu_state
from accelviz.errors import (
    ArgumentError,
    DeviceUnavailable,
    GraphError,
    KernelError,
    PartitionError,
)
from accelviz.measure import harness, records
from accelviz.measure.accuracy import Oracle
from accelviz.measure.limits import limits
from accelviz.plans import Buffers, Call, LaunchConfig, Layout, Plan, Provenance, Strategy
from accelviz.plans.operation import EPS32
from accelviz.strategies import SPMM, exact, find_strategy
from accelviz.workload import Workload
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import SPMM_KERNELS

SMALL = MADE["isolated_ends"]


def run(graphs, strategies="graphblast", n_cols=3, device="cpu", **options):
    return accelviz.benchmark(
        graphs, strategies, n_cols, device, **{"repeats": 2, "progress": False, **options}
    )


def test_a_row_for_each_graph_strategy_column_count_and_state():
    table = run(["cora", SMALL()], ["graphblast", ("row_thread", {"block_warps": 2})], [1, 33])
    assert tuple(table.columns) == records.COLUMNS
    assert len(table) == 2 * 2 * 2 * 2
    assert not table.duplicated(["graph", "strategy", "columns", "state"]).any()
    assert set(table["parameters"]) == {"block_warps=4", "block_warps=2"}
    assert len(set(table["run"])) == 1
    assert set(table["device"]) == {"cpu"}
    assert (table["median_us"] > 0).all()
    assert (table["quartile1_us"] <= table["median_us"]).all()
    assert (table["median_us"] <= table["quartile3_us"]).all()
    assert (table["error_over_bound"] > 0).all()  # random weights: a rounding error shows
    assert table["floor_us"].isna().all()  # the CPU is held against no limit


def test_without_names_every_strategy_that_the_device_can_run():
    assert set(run(SMALL(), None)["strategy"]) == set(SPMM_KERNELS)


def test_preprocessing_stands_beside_the_times():
    table = run("cora", ["accel_gcn", "row_thread"]).groupby("strategy")["setup_us"].min()
    assert table["accel_gcn"] > 0
    assert table["row_thread"] == 0


def test_a_generator_gives_one_graph_at_a_time():
    alive = []

    def graphs():
        for name in ("hub_alone", "tall"):
            alive.append(name)
            yield MADE[name]()

    assert len(run(graphs(), states=("warm",))) == 2
    assert alive == ["hub_alone", "tall"]


def test_what_counts_as_several_graphs():
    edges = np.array([[0, 1, 2], [1, 0, 2]])
    assert len(run(edges, states=("warm",))) == 1
    assert len(run(sparse.eye_array(3, format="csr"), states=("warm",))) == 1
    assert run([], states=("warm",)).empty


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    path = tmp_path / "times.csv"
    first = run(["cora"], ["graphblast"], [3, 4], path=path)
    measured = []
    original = harness._check_and_time
    monkeypatch.setattr(
        harness,
        "_check_and_time",
        lambda plan, *rest: measured.append((plan.name, plan.n_cols)) or original(plan, *rest),
    )
    table = run(["cora"], ["graphblast", "row_thread"], [4, 5], path=path)
    assert measured == [("row_thread", 4), ("graphblast", 5), ("row_thread", 5)]
    assert len(table) == len(first) + 6
    assert tuple(pd.read_csv(path).columns) == records.COLUMNS
    run(["cora"], ["graphblast"], [3], path=path, repeats=3)  # other repeats: another case
    assert measured[-1] == ("graphblast", 3)
    weighted = accelviz.load_graph("cora")
    run([weighted], ["graphblast"], [3], path=path)
    assert len(measured) == 4


def test_a_changed_kernel_is_measured_again():
    plan = accelviz.plan(SMALL(), "ge_spmm", 3)
    wide = accelviz.plan(SMALL(), "ge_spmm", 64)
    assert harness.kernel_digest(plan) != harness.kernel_digest(wide)
    assert harness.kernel_digest(plan) == harness.kernel_digest(
        accelviz.plan(MADE["hub"](), "ge_spmm", 4)
    )
    assert harness.kernel_digest(accelviz.plan(SMALL(), "cusparse")) == ""


class Forgetful(Strategy):
    """A wrong strategy that ignores the last nonzero."""

    operation = SPMM
    name = "forgetful"

    def build(self, graph, widths, settings):
        row = np.repeat(np.arange(graph.n_rows), graph.degrees)[:-1]
        work = Workload(row * 0, row * 0, row, np.arange(row.size), np.ones_like(row))
        empty = Workload.concatenate([])
        return Plan(
            Layout(graph.pattern, lambda start, stop: work if stop > start else empty),
            (Call(LaunchConfig((1, 1, 1), 1)),),
            Buffers(),
            Provenance(self, graph.values, widths, settings),
        )


def test_no_check_no_time(tmp_path):
    path = tmp_path / "times.csv"
    wanted = ["graphblast", Forgetful()]
    with pytest.raises(KernelError, match="wrong result on 'cora' with n_cols = 3"):
        run("cora", wanted, path=path)
    assert set(pd.read_csv(path)["strategy"]) == {"graphblast"}  # what was right is kept
    table = run("cora", wanted, path=path, on_error="record")
    (bad,) = table[table["strategy"] == "forgetful"].to_dict("records")
    assert "wrong result" in bad["problem"]
    assert np.isnan(bad["median_us"])
    # Failed cases are tried again.
    assert len(run("cora", wanted, path=path, on_error="record")) == len(table) + 1


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("cora", "accel"), {}, ArgumentError, "no 'accel'"),
        (("cora", ("graphblast", {"ngs": 3})), {}, ArgumentError, "ngs"),
        (("cora", ("graphblast", {"block_warps": 0})), {}, PartitionError, "block_warps"),
        (("cora", "graphblast", 0), {}, ArgumentError, "n_cols"),
        (("cora", "graphblast", [3, 2.5]), {}, ArgumentError, "n_cols"),
        (("cora", "graphblast", []), {}, ArgumentError, "n_cols"),
        (("cora", "graphblast", 3, "tpu"), {}, ArgumentError, "device"),
        (("cora", "cusparse"), {}, DeviceUnavailable, "nothing to replay"),
        (("no such graph",), {}, GraphError, "no such graph"),
        (("cora",), {"repeats": 0}, ArgumentError, "repeats"),
        (("cora",), {"repeats": True}, ArgumentError, "repeats"),
        (("cora",), {"states": "warm"}, ArgumentError, "states"),
        (("cora",), {"states": ("hot",)}, ArgumentError, "warm, cold"),
        (("cora",), {"on_error": "ignore"}, ArgumentError, "on_error"),
    ],
)
def test_wrong_arguments_are_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        run(*arguments, **options)


def test_no_graph_gives_an_empty_table_and_no_file(tmp_path):
    path = tmp_path / "nothing.csv"
    table = accelviz.benchmark([], path=path)
    assert len(table) == 0
    assert tuple(table.columns) == records.COLUMNS
    assert not path.exists()


def test_a_file_of_something_else_is_not_added_to(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ArgumentError, match="other columns"):
        run("cora", path=path)
    assert path.read_text() == "a,b\n1,2\n"


def test_a_gpu_that_is_not_there_is_said():
    if gpu_state().ready:
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceUnavailable, match=r"device 'cuda'.* What to do: \w+"):
        run("cora", device="cuda")
    assert set(run("cora", device="auto")["device"]) == {"cpu"}


def test_cusparse_plans_anywhere_and_runs_on_a_gpu_only():
    plan = accelviz.plan("cora", "cusparse", 16)
    assert repr(plan) == (
        "Plan('cusparse', 'cora', n_cols=16, algorithm=fastest, preprocess=True: "
        "a call of cusparse)"
    )
    for ask in (plan.workload, plan.check, lambda: plan.statistics):
        with pytest.raises(PartitionError, match="does not say which warp does what"):
            ask()
    X = measure.features(plan.pattern.shape[1], 16)
    for device, message in (("cpu", "nothing to replay"), ("emulator", "a library's")):
        if find_device(device).unavailable_reason() is None:
            with pytest.raises((DeviceUnavailable, KernelError), match=message):
                accelviz.spmm(plan, X, device=device)
    with pytest.raises(PartitionError, match=r"algorithm: .*'alg9'.*csr_alg2"):
        accelviz.plan("cora", "cusparse", algorithm="alg9")
    with pytest.raises(PartitionError, match="preprocess: got 1"):
        accelviz.plan("cora", "cusparse", preprocess=1)
    if not gpu_state().ready:
        with pytest.raises(DeviceUnavailable, match="What to do"):
            accelviz.spmm(plan, X)


class Machine:
    launch_seconds = 2e-6
    copy_bandwidth = 4e12

    def gather_bandwidth(self, rows, n_cols):
        return 1e12 * rows * n_cols


def limits_of(graph, n_cols):
    return limits(SPMM, graph.pattern, {"n_cols": n_cols}, Machine())


def test_limits_by_hand():
    graph = graph_of_degrees([2, 0, 1], 5)
    distinct = len(set(graph.column_indices.tolist()))
    assert graph.pattern.used_columns == distinct
    limit = limits_of(graph, 10)
    matrix = 8 * 3 + 8 * 4  # a value and a column index for each nonzero, row pointers of 8 bytes
    moved = SPMM.traffic(graph.pattern, {"n_cols": 10}, 4)
    assert (moved.compulsory, moved.gathered) == (matrix + 40 * (3 + distinct), 40 * 3)
    assert limit["floor_us"] == pytest.approx(2)
    assert (limit["copy_gb_per_s"], limit["gather_gb_per_s"]) == (4e3, 5e4)
    pubmed = accelviz.load_graph("pubmed")
    assert pubmed.pattern.used_columns == 19717
    big = limits_of(pubmed, 1000)
    matrix = 8 * 88648 + 8 * 19718
    assert big["floor_us"] == pytest.approx(1e6 * (matrix + 4000 * 2 * 19717) / 4e12)
    gather = 4000 * 88648 / (1e12 * 19717 * 1000) + (matrix + 4000 * 19717) / 4e12
    assert big["gather_limit_us"] == pytest.approx(1e6 * gather)


def test_what_gathers_nothing_is_limited_by_copies_alone():
    graph, softmax = (
        accelviz.load_graph("cora"),
        find_strategy("row_warp", "edge_softmax").operation,
    )
    limit = limits(softmax, graph.pattern, {"n_cols": 64}, Machine())
    moved = softmax.traffic(graph.pattern, {"n_cols": 64}, 4)
    assert moved.gathered == 0
    assert np.isnan(limit["gather_gb_per_s"])
    assert limit["gather_limit_us"] == 1e6 * max(moved.compulsory / 4e12, 2e-6)


def test_the_oracle_is_scipy_s_whatever_the_pieces(monkeypatch):
    monkeypatch.setattr(exact, "_PIECE_NONZEROS", 7)
    for name in ("empty", "no_columns", "no_edges", "isolated_ends", "hub", "wide", "tall"):
        graph = measure.random_weights(MADE[name]())
        X = measure.features(graph.shape[1], 5)
        expected, bound = Oracle(graph, X).known["Y"]
        A = graph.adjacency.astype(np.float64)
        np.testing.assert_array_equal(expected, A @ X.astype(np.float64))
        wanted = graph.degrees[:, None] * EPS32 * (abs(A) @ np.abs(X.astype(np.float64)))
        np.testing.assert_array_equal(bound, wanted)


def test_recorded_results_are_found_by_name():
    assert len(records.recorded("emulator-h200")) > 100
    with pytest.raises(ArgumentError, match="emulator-h200"):
        records.recorded("no-such-results")


@pytest.mark.parametrize(
    "name", ["strategies-h200", "columns-h200", "ablations-h200", "operations-h200"]
)
def test_recorded_times_are_whole_and_right(name):
    table = records.recorded(name)
    assert tuple(table.columns) == records.COLUMNS
    assert table["problem"].isna().all()
    assert (table["error_over_bound"] <= 1).all()
    assert (table["quartile1_us"] <= table["median_us"]).all()
    assert (table["median_us"] <= table["quartile3_us"]).all()
    assert set(table["device"]) == {"cuda"}
    assert not table.duplicated(["run", *harness.KEY]).any()
    approximate, twin = (table["graph"].str.contains(word) for word in ("approximate", "-twin"))
    kinds = np.select([approximate, twin], ["approximate twin", "twin"], "real")
    assert (table["graph_kind"] == kinds).all()


def test_recorded_timelines_are_ready_to_draw():
    timelines = records.recorded_timelines()
    assert {"accel_gcn", "graphblast"} <= set(timelines)
    for strategy, blocks in timelines.items():
        parameters = dict(word.split("=") for word in blocks.attrs["parameters"].split())
        plan = accelviz.plan(blocks.attrs["graph"], strategy, int(blocks.attrs["columns"]))
        assert parameters == {key: str(value) for key, value in plan.parameters.items()}
        assert len(blocks) == plan.launch.grid[0] * plan.launch.grid[1]
        assert timeline_summary(blocks).unit == "ns"
        assert plots.sm_timeline(blocks).get_title() is not None


def test_the_documentation_s_code_runs_and_says_the_truth():
    text = (Path(__file__).parents[1] / "docs" / "measuring.md").read_text("utf-8")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(code, names)
    assert len(names["table"]) == 2 * 3 * 2 * 2
    said = re.search(
        r"Predicted: SMs busy (\d+) %.*?tail (\d+) %.*?busy (\d+) %, tail (\d+) %", text
    )
    shares = [
        round(100 * share)
        for blocks in (names["predicted"], names["measured"])
        for share in (timeline_summary(blocks).busy_share, timeline_summary(blocks).tail_share)
    ]
    assert shares == [int(number) for number in said.groups()]
