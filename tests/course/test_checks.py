"""The checks of the assignments: sorting, schemes and their metrics, kernels, hidden inputs."""

import dataclasses
import re
import sys
import time
import types
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

# A GPU machine that only runs the kernels need not have Jupyter.
pytest.importorskip("nbformat")

import accelviz
from accelviz import ordering
from accelviz.course import checks
from accelviz.course.checks import common, hidden, metrics, remote
from accelviz.course.scheme import Partition, Scheme
from accelviz.emulator import compiler
from accelviz.errors import (
    AccelvizError,
    ArgumentError,
    DeviceUnavailable,
    GraphError,
    KernelError,
    PartitionError,
)
from accelviz.measure import features
from accelviz.workload import Workload
from tests.compilers import needs_compiler
from tests.course.wrong import A4, solution


def right_kernel():
    """Return the model solution of A4."""
    names = {}
    exec(solution(A4, "kernel"), names)
    return names["code"]


@pytest.fixture(autouse=True)
def _usual_seed(monkeypatch):
    monkeypatch.delenv(hidden.COURSE_SEED, raising=False)


def test_a_student_s_output_is_discarded(capsys):
    def noisy(degrees):
        print("out")
        print("err", file=sys.stderr)
        np.array([1.0]) / 0
        return np.bincount(degrees, minlength=1)

    checks.sorting.histogram(noisy, hidden.degree_lists(3))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("number", [7, 7.0, np.int64(7), np.float32(7), True])
def test_a_whole_number_of_any_type(number):
    assert common.whole("it", [number]) == [int(number)]


@pytest.mark.parametrize("number", ["7", " 7 ", b"7", 7.5, np.nan])
def test_a_text_is_no_whole_number(number):
    with pytest.raises(AssertionError, match="which is no whole number"):
        common.whole("it", [number])


def test_an_error_names_its_case():
    with pytest.raises(ValueError, match="^a hub: wrong$"), common.case("a hub"):
        raise ValueError("wrong")
    with pytest.raises(PartitionError, match="^a hub: degrees: negative. "), common.case("a hub"):
        raise PartitionError("degrees", "negative", "0 or more")
    for silent in (AssertionError(), KeyError(3)):
        with pytest.raises(type(silent)) as caught, common.case("a hub"):
            raise silent
        assert caught.value.__notes__ == ["The case: a hub."]


@pytest.mark.parametrize(("share", "text"), [(1 / 3, "1.67"), (1.2, "5.0"), (-1.0, "0.0")])
def test_points_are_plain_floats(share, text):
    assert repr(common.share_of(5, np.float64(share))) == text


def remote_function(text, name):
    """Return the `Remote` of a function that the single cell of a notebook defines.

    Its link, in place of a `remote.Link`, calls the function in this process.
    """
    space = {"np": np}
    exec(text, space)

    def request(message, *arguments):
        if message["do"] == "call":
            return space[name](*arguments)
        # "run" calls a function of the library; its first argument is the Remote.
        return remote.call_in_submission(space[name], message["function"], *arguments[1:])

    link = types.SimpleNamespace(
        cells=(text,), shared={}, replaced=(), processor_seconds=time.process_time, request=request
    )
    return remote.Remote(link, 0, name)


def sorting(body, before=""):
    return remote_function(f"{before}\ndef counting_sort(degrees):\n    {body}", "counting_sort")


@pytest.mark.parametrize(
    "body",
    [
        "return np.asarray(degrees).argsort(kind='stable')",
        "return np.array(sorted(range(len(degrees)), key=list(degrees).__getitem__))",
        "from numpy import argsort as f; return f(degrees)",
        "return eval('np.argsort(x)', {'np': np, 'x': degrees})",
        "return helper(degrees)\n\ndef helper(x): return x.argsort()",
    ],
)
def test_words_of_comparison_sorts_are_remarked_and_cost_nothing(body, monkeypatch):
    monkeypatch.setattr(common, "remarks", remarks := [])
    monkeypatch.setattr(checks.sorting, "remarks", remarks)
    checks.sorting.linear_sort(sorting(body), seed=1)
    assert re.fullmatch("look at it, no points were taken: its cells say (arg)?sort(ed)?", *remarks)


@pytest.mark.long
@pytest.mark.parametrize(
    "body",
    [
        "place[:] = [list(order).index(i) for i in range(len(order))]",
        "mine = order.tolist(); place[:] = [mine.index(i) for i in range(len(order))]",
        "for i in range(len(order)): place[i] = np.flatnonzero(order == i)[0]",
        "parts = [[i] for i in np.argsort(order)]; place[:] = sum(parts, [])",
    ],
)
def test_quadratic_time_is_reported(body, monkeypatch):
    monkeypatch.setattr(checks.sorting, "TIMED_ROWS", (1_500, 6_000, 24_000, 96_000))
    monkeypatch.setattr(checks.sorting, "NOISE_SECONDS", 0.05)
    text = f"""def inverse_permutation(order):
    place = np.zeros(len(order), dtype=np.int32)
    {body}
    return place"""
    with pytest.raises(AssertionError, match="s of processor time, and should take about 4 times"):
        checks.sorting.linear_inverse(remote_function(text, "inverse_permutation"), seed=1)


@pytest.mark.long
@pytest.mark.parametrize(
    "body",
    [
        """rows = [[] for _ in range(int(degrees.max()) + 1)]
    for i, degree in enumerate(degrees): rows[degree].append(i)
    order = []
    for each in rows: order += each""",
        """counts = np.bincount(degrees)
    places, order = np.add(np.cumsum(counts), -counts), np.empty(len(degrees), dtype=np.int32)
    for i, degree in enumerate(degrees):
        order[places[degree]] = i
        places[degree] += 1""",
        """counts = np.zeros(*[degrees.max() + 1], dtype=np.int64)
    np.add.at(counts, degrees, 1)
    first, order = np.subtract(np.add.accumulate(counts), counts).tolist(), [0] * degrees.size
    for i, degree in enumerate(degrees.tolist()):
        order[first[degree]] = i
        first[degree] += 1""",
        """places, order = [0] * (int(max(degrees)) + 2), list(degrees)
    for degree in degrees: places[degree + 1] += 1
    for k in range(1, len(places)): places[k], last = places[k] + places[k - 1], k
    for i, degree in enumerate(degrees):
        order[places[degree]], places[degree] = i, places[degree] + 1""",
    ],
)
def test_linear_sorts_pass(body):
    lines = f"{body}\n    return np.array(order, dtype=np.int32)"
    checks.sorting.linear_sort(sorting(lines), seed=1)


def test_metrics_of_a_toy_by_hand():
    graph = hidden.graph_of([3, 1, 0, 2], 5, np.random.default_rng(0), "toy")
    plan = accelviz.plan(graph, "graphblast", 64, block_warps=2)
    measured = metrics.measured(plan)
    # Block 0 has 3 and 1 nonzeros, block 1 has 0 and 2: 4 of 10 warp steps are lost.
    assert measured == metrics.Metrics(
        waiting=pytest.approx(0.4), busiest_warp=3, metadata_bytes=0, cut_parts=0
    )


def test_parts_of_cut_rows_are_counted():
    graph = hidden.graph_of([900, 1, 384], 1_000, np.random.default_rng(0), "cut")
    assert metrics.measured(accelviz.plan(graph, "accel_gcn")).cut_parts == 3  # 384 + 384 + 132


def test_shares_of_the_points():
    def values(waiting, busiest_warp, metadata_bytes):
        return metrics.Metrics(waiting, busiest_warp, metadata_bytes, cut_parts=10)

    no_points, full_points = values(0.6, 1024, 800), values(0.2, 64, 200)
    yours = values(0.3, 256, 500)
    shares = metrics.shares(yours, no_points, full_points)
    assert shares.waiting == pytest.approx(0.75)
    assert shares.busiest_warp == pytest.approx(0.5)
    assert shares.metadata_bytes == pytest.approx(0.75 * 0.5)
    assert shares.cut_parts == pytest.approx(0.75)  # both anchors are equal: the full share
    worse = metrics.shares(dataclasses.replace(yours, cut_parts=11), no_points, full_points)
    assert worse.cut_parts == 0


@pytest.mark.parametrize("name", list(hidden.graphs(1)))
def test_the_bounds_of_metrics_match_the_assignment_s_text(name):
    graph = hidden.graphs(5)[name]
    no_points, full_points = metrics.bounds(graph)
    plans = {scheme: accelviz.plan(graph, scheme, 32) for scheme in ("accel_gcn", "graphblast")}
    assert full_points.waiting == plans["accel_gcn"].statistics.idle_share
    assert full_points.metadata_bytes == plans["accel_gcn"].metadata_bytes
    assert no_points.waiting == plans["graphblast"].statistics.idle_share
    assert no_points.busiest_warp == max(1024, graph.degrees.max())
    assert no_points.metadata_bytes == 16 * np.ceil(graph.degrees / 32).sum()  # an int4 per run
    assert no_points.waiting > full_points.waiting
    assert no_points.cut_parts >= full_points.cut_parts
    shares = metrics.shares(metrics.measured(plans["accel_gcn"]), no_points, full_points)
    assert shares.waiting == shares.busiest_warp == shares.cut_parts == 1


class Unplanned(Scheme):
    """A scheme without a partition."""

    name = "unplanned"

    def partition(self, graph):
        raise NotImplementedError

    def workload(self, matrix, metadata, start, stop):
        raise NotImplementedError


def test_a_class_is_refused_and_an_error_of_partition_is_raised():
    graph = accelviz.load_graph("cora")
    with pytest.raises(AssertionError, match="no object of a class of Scheme"):
        checks.schemes.form(Unplanned, graph)
    with pytest.raises(NotImplementedError):
        checks.schemes.form(Unplanned(), graph)
    nothing = type("Nothing", (Unplanned,), {"partition": lambda *_: None})()
    with pytest.raises(PartitionError, match="^cora: partition: .* returns None .*not iterable"):
        checks.schemes.form(nothing, graph)


def test_a_name_of_the_papers_schemes_is_refused():
    named = type("Named", (Unplanned,), {"name": "accel_gcn", "partition": lambda *_: (1, 4)})
    with pytest.raises(AssertionError, match="there is a scheme of the name 'accel_gcn' already"):
        checks.schemes.form(named(), accelviz.load_graph("cora"))


def test_a_missing_compiler_is_reported(monkeypatch):
    monkeypatch.setattr(compiler, "find_compiler", lambda: None)
    graph = hidden.small_graphs(1, "tall")
    for check in (
        lambda: checks.kernels.multiplies("", graph, [32]),
        lambda: checks.kernels.coalescing("", graph["tall"], 8),
        lambda: checks.kernels.registers("", graph["tall"], 4),
    ):
        with pytest.raises(DeviceUnavailable, match=r"NOT tried.*pip install ziglang"):
            check()


@needs_compiler
def test_traffic_is_counted():
    good = right_kernel()
    graph = hidden.small_graphs(9, "long rows")["long rows"]
    assert checks.kernels.sectors(good, graph) == 4
    assert checks.kernels.updates(good, graph) == 1
    # Neighboring lanes are n_cols / 32 floats apart, so a warp reads n_cols floats, n_cols / 8
    # sectors: 8 for the default of 64 columns. Contiguous floats are 4 sectors.
    index = "column / 32 + column % 32 * (n_cols / 32)"
    apart = good.replace("+ column]", f"+ {index}]", 1).replace("+ column]", f"+ {index}]")
    assert checks.kernels.sectors(apart, graph) == 8
    columns = checks.kernels._columns(graph)
    # The logarithmic scale of `checks.kernels._points`: 1 for 4 sectors, 0 for 32.
    share = np.log(32 / (columns / 8)) / np.log(32 / 4)
    assert checks.kernels.coalescing(apart, graph, 8) == pytest.approx(8 * share, abs=0.005)


@needs_compiler
def test_wrong_results_and_missing_requests_of_a_trace_are_reported():
    good, graph = right_kernel(), hidden.small_graphs(9, "long rows")["long rows"]
    with pytest.raises(KernelError, match="while it is watched"):
        checks.kernels.sectors(good.replace("sum);", "0.0f);"), graph)
    nothing = {"sectors": 12, "updates": 0, "Y": graph.adjacency @ features(graph.shape[1], 96)}
    with (
        patch.object(checks.kernels, "_run_kernels", lambda *_: nothing),
        patch.object(
            checks.kernels, "features", lambda rows, columns, **_: features(rows, columns)
        ),
        pytest.raises(
            AssertionError, match="12 sectors were seen, and the result needs .* at least"
        ),
    ):
        checks.kernels.sectors(good, graph, 96)


@needs_compiler
def test_a_wrong_result_names_its_case():
    code = right_kernel()
    graphs = hidden.small_graphs(1, "wide")
    checks.kernels.multiplies(code, graphs, [32], seed=3)
    wrong = code.replace("sum += ", "sum = ")
    with pytest.raises(KernelError, match="^wide, 32 columns: .*wrong result"):
        checks.kernels.multiplies(wrong, graphs, [32], seed=3)


@needs_compiler
def test_lanes_that_store_the_same_value_in_a_row_are_a_race():
    code, graphs = right_kernel(), hidden.small_graphs(1, "wide")
    same = code.replace("const int4 mine", "flag = 1;\n    const int4 mine")
    same = same.replace('extern "C"', '__device__ int flag;\nextern "C"')
    with pytest.raises(KernelError, match="a race: thread"):
        checks.kernels.multiplies(same, graphs, [32])


@needs_compiler
def test_a_wrong_result_names_an_element():
    code = right_kernel()
    graph = hidden.graph_of([2, 1], 5, np.random.default_rng(0), "toy")
    wrong = code.replace("column < n_cols", "column < n_cols && column != 1")
    X = features(5, 3, seed=graph.nnz)
    value = float((graph.adjacency.astype(np.float64) @ X)[0, 1])
    with pytest.raises(KernelError) as caught:
        checks.kernels.multiplies(wrong, {"toy": graph}, [3])
    expected = f"Y[0, 1] is 0 and should be {value:.6g}, 2 of 6 elements are wrong"
    assert expected in str(caught.value)


@needs_compiler
def test_a_compiler_error_is_in_the_first_line():
    code = right_kernel()
    with pytest.raises(KernelError) as caught:
        checks.kernels.multiplies(code + "planted", hidden.small_graphs(1, "wide"), [32])
    first = str(caught.value).splitlines()[0]
    line = code.count("\n") + 1
    assert f"yours.cu:{line}: it does not compile" in first
    assert "'planted'" in first


@pytest.mark.gpu
def test_a_kernel_can_be_timed_on_a_gpu():
    names = [checks.kernels.Runs(right_kernel()), "gnnadvisor"]
    times = accelviz.benchmark("cora", names, 64, device="cuda", progress=False)
    assert set(times["strategy"]) == {"yours", "gnnadvisor"}


class Uncleared(Scheme):
    """One block per row, or two (`split`); with `skip_empty` none for rows without nonzeros."""

    name = "uncleared"

    def __init__(self, split, skip_empty, **changes):
        self.split, self.skip_empty, self.changes = split, skip_empty, changes

    def partition(self, graph):
        table = []  # records (block, warp, row, first nonzero, number of nonzeros)
        for row in range(graph.n_rows):
            first, count = int(graph.row_pointers[row]), int(graph.degrees[row])
            cut = count // 2 if self.split else 0
            if cut:
                table.append((len(table), 0, row, first, cut))
            if count or not self.skip_empty:
                table.append((len(table), 0, row, first + cut, count - cut))
        partition = Partition(len(table), 4, np.array(table).reshape(-1, 5))
        return partition._replace(**self.changes)

    def workload(self, matrix, metadata, start, stop):
        return Workload(*metadata[start:stop].T)


@pytest.mark.parametrize(
    ("check", "scheme", "message"),
    [
        ("replays", Uncleared(False, True), "row 1 of .* has no line; zero_output"),
        ("replays", Uncleared(True, False), "row 0 .* lies in several blocks; zero_output"),
        ("replays", Uncleared(False, False), None),
        ("replays", Uncleared(True, True, zero_output=True), None),
        ("form", Uncleared(False, False, order=[0, 1]), r"order has shape \(2,\)"),
        ("form", Uncleared(False, False, order=[0, 1, 1]), "(?<!called: )order: some rows are"),
        ("form", Uncleared(False, False, metadata=[0.5]), "metadata is of float64"),
        ("form", Uncleared(False, False, warps=3), "blocks have 3 warps"),
        (
            "form",
            Uncleared(False, False, blocks="a"),
            r"partition returns Partition\(.*\(invalid literal",
        ),
    ],
)
def test_faults_of_a_partition_are_reported(check, scheme, message):
    graph = hidden.graph_of([4, 0, 2], 5, np.random.default_rng(0), "toy")
    check = getattr(checks.schemes, check)
    argument = {"toy": graph} if check is checks.schemes.replays else graph
    if message is None:
        check(scheme, argument)
        return
    with pytest.raises((AssertionError, AccelvizError), match=f"^toy.*: .*{message}"):
        check(scheme, argument)


def test_what_a_partition_leaves_in_its_scheme_is_not_there_outside_of_grading_either():
    class Stateful(Uncleared):
        def partition(self, graph):
            self.partitioned = super().partition(graph)
            return self.partitioned

        def workload(self, matrix, metadata, start, stop):
            return super().workload(matrix, self.partitioned.metadata, start, stop)

    with pytest.raises(
        AttributeError, match="workload, .*: 'Stateful' object has no .*'partitioned'"
    ):
        checks.schemes.form(Stateful(False, False), accelviz.load_graph("cora"))


def test_a_workload_of_another_type_is_reported():
    tuples = type("Tuples", (Uncleared,), {"workload": lambda *_: (1, 2)})(False, False)
    graph = accelviz.load_graph("cora")
    with pytest.raises(
        PartitionError, match="^cora: workload, .*it returns a tuple. Expected: a W"
    ):
        checks.schemes.form(tuples, graph)
    with pytest.raises(PartitionError, match="^workload: it returns a tuple"):
        accelviz.plan(graph, tuples, 8).check()


def test_the_orders_that_a3_offers_fit_its_graphs():
    graphs = {**hidden.graphs(1), **hidden.corner_graphs(1)}
    for order in (accelviz.degree_sort, ordering.windowed_degree_sort, ordering.random_order):
        for graph in graphs.values():
            assert order(graph).order.shape == (graph.n_rows,)
    assert sum(len(set(graph.shape)) == 2 for graph in hidden.graphs(1).values()) == 4
    with pytest.raises(GraphError, match="not square"):
        ordering.reverse_cuthill_mckee(graphs["tall"])


def test_a_sweep_of_another_graph_is_reported():
    table = accelviz.sweep("pubmed", max_block_warps=range(2, 8), max_warp_nzs=[8, 16, 32])
    with pytest.raises(AssertionError, match="no row of it is what a sweep of cora gives"):
        checks.reports.sweep_numbers(table, "cora", 5)
    table.loc[:8] = accelviz.sweep("cora", max_block_warps=range(2, 5), max_warp_nzs=[8, 16, 32])
    common.remarks.clear()
    assert checks.reports.sweep_numbers(table, "cora", 5) == 2.5
    assert common.remarks == ["9 of 18 settings are not what a sweep gives, such as (5, 8, 64)"]
    cora = accelviz.sweep("cora", max_block_warps=range(2, 8), max_warp_nzs=[8, 16, 32])
    other = cora[:3].assign(strategy="gnnadvisor", max_block_warps=np.nan, max_warp_nzs=np.nan)
    assert checks.reports.sweep_numbers(pd.concat([cora, other]), "cora", 5) == 5
    with pytest.raises(AssertionError, match="it has 17 settings of 18 combinations"):
        checks.reports.sweep_numbers(table[1:], "cora", 5)
    with pytest.raises(AssertionError, match="graph is none of"):
        checks.reports.sweep_numbers(table, accelviz.load_graph("cora"), 5)


def test_a_partition_is_fetched_once_and_judged_by_all_tests(monkeypatch):
    """A scheme cannot give a partition for each metric."""
    fetched = []
    monkeypatch.setattr(
        checks.schemes, "StudentScheme", lambda *arguments: fetched.append(arguments) or 7
    )
    link = types.SimpleNamespace(shared={})
    graph = hidden.corner_graphs(1)["one long row"]
    for _ in range(3):  # tests make a scheme anew each
        assert checks.schemes._scheme(remote.Remote(link, 0, "MyScheme()"), graph) == 7
    assert len(fetched) == 1
    checks.schemes._scheme(remote.Remote(link, 0, "Another()"), graph)
    assert len(fetched) == 2


# The hidden inputs


def test_inputs_depend_on_both_seeds(monkeypatch):
    first, second = hidden.graphs(1), hidden.graphs(1)
    for name, graph in first.items():
        np.testing.assert_array_equal(graph.column_indices, second[name].column_indices)
    monkeypatch.setenv(hidden.COURSE_SEED, "5")
    other_course = hidden.graphs(1)
    assert not np.array_equal(first["hub"].degrees, other_course["hub"].degrees)
    monkeypatch.setenv(hidden.COURSE_SEED, "five")
    with pytest.raises(ArgumentError, match="ACCELVIZ_COURSE_SEED: got 'five'"):
        hidden.graphs(1)


@pytest.mark.parametrize("seed", range(4))
def test_hidden_graphs_have_the_properties_of_their_names(seed):
    graphs = hidden.graphs(seed)
    assert list(graphs) == ["ragged", "hub", "bounds", "even", "tall"]
    assert set(hidden.CRITICAL_DEGREES) <= set(graphs["bounds"].degrees.tolist())
    assert {31, 32, 33, 383, 384, 385, 768, 769} <= set(hidden.CRITICAL_DEGREES)
    assert (graphs["hub"].degrees > 100).sum() == 1
    assert graphs["hub"].degrees.max() > graphs["hub"].n_rows
    assert graphs["tall"].n_rows > 10 * graphs["tall"].shape[1]
    assert graphs["even"].degrees.min() > 0
    for name in ("ragged", "hub", "bounds", "tall"):
        assert (graphs[name].degrees == 0).any()
        assert graphs[name].shape[0] != graphs[name].shape[1]
        assert (np.diff(graphs[name].degrees) < 0).any()  # in no order
    square = graphs["even"].adjacency
    assert abs(square - square.T).max() > 0
    assert graphs["ragged"].adjacency.min() < 0
    assert hidden.graphs(seed, "hub").keys() == {"hub"}


@pytest.mark.parametrize("seed", range(4))
def test_small_graphs_have_one_difficulty_each(seed):
    for name, graph in hidden.small_graphs(seed).items():
        runs = int(np.ceil(graph.degrees / 32).sum())
        last_block_is_partial = runs % checks.kernels.BLOCK_WARPS != 0
        is_far = graph.shape[0] > 256 and graph.shape[1] > 65_536
        assert is_far == (name == "far")
        if not is_far:
            assert last_block_is_partial == (name == "empty rows"), name
            assert (graph.degrees == 0).any() == (name == "empty rows"), name
        assert (graph.degrees > 32).any() == (name == "long rows"), name
        assert graph.nnz <= 1_000


@pytest.mark.parametrize("seed", range(4))
def test_rows_for_algorithm_2_have_the_properties_of_their_names(seed):
    for rows in (hidden.short_rows(seed), hidden.full_blocks(seed), hidden.bound_rows(seed)):
        for case in rows.values():
            assert (np.diff(case.degrees) >= 0).all()
            assert not case.degrees.flags.writeable
    (short,) = hidden.short_rows(seed).values()
    degrees, counts = np.unique(short.degrees, return_counts=True)
    _, block_rows, _ = short.setting.pattern(degrees)
    assert (counts % block_rows != 0).all()
    assert degrees.max() <= 192  # half of deg_bound: a block of one longer row is always full
    full = hidden.full_blocks(seed)["rows that fill their blocks"]
    degrees, counts = np.unique(full.degrees, return_counts=True)
    _, block_rows, _ = full.setting.pattern(degrees)
    assert (counts % block_rows == 0).all()
    for long in hidden.long_rows(seed).values():
        above = long.degrees[long.degrees > 384]
        assert above.size
        assert (above % 384 != 0).all()
    # A case has warp_nzs of 2^15 or more, which sets the sign bit of the metadata's `info`.
    assert any(
        case.degrees.size and case.setting.pattern([35_000])[2][0] >= 1 << 15  # warp_nzs
        for case in hidden.other_settings(seed).values()
        if case.setting.deg_bound >= 35_000
    )
