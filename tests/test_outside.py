"""Strategies defined in a notebook cell work everywhere that registered strategies do.

Each is one class with its CUDA source as text, and only this file names them. Code that needs a
list of strategies elsewhere fails here.
"""

from dataclasses import dataclass, replace
from functools import partial

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt

import accelviz
from accelviz import measure, plots
from accelviz.analysis.assignment import assignment
from accelviz.analysis.balance import plan_load_map
from accelviz.analysis.lookup import find_row
from accelviz.analysis.schedule import predicted_timeline, timeline_summary
from accelviz.analysis.traffic import launch_traffic, requests, traffic
from accelviz.devices.cuda import compile_cubin
from accelviz.emulator.build import unavailable_reason
from accelviz.errors import ArgumentError, DeviceUnavailable, PartitionError
from accelviz.partition.row_split import RowSplit, row_workload
from accelviz.partition.scheme import Scheme
from accelviz.plans import Buffers, Layout, Plan, Provenance, Strategy
from accelviz.plans.description import Description
from accelviz.plans.launch import Call, KernelSpec, LaunchConfig
from accelviz.plans.settings import Settings, setting
from accelviz.strategies import SDDMM, SPMM
from accelviz.widgets.explorer import Explorer
from tests.compilers import needs_compiler
from tests.graphs import MADE, columns_of
from tests.inherited import check_results, each_graph

matplotlib.use("agg")


class BlockRows(Settings):
    """A setting that declares only its default."""

    block_rows: int = 2


@dataclass(frozen=True)
class BlockRowsOfRange(Settings):
    """Decorated, though a class of `Settings` need not be."""

    block_rows: int = setting(2, "rows of a block", 32, tries=(1, 2, 8))


@dataclass(frozen=True)
class OneRowAWarp(Scheme):
    """A partition scheme that the page does not know."""

    warps: int

    def summary(self, rows, n_cols, hardware):
        return RowSplit(1, self.warps).summary(rows, n_cols, hardware)


class OneWarpARow(Strategy):
    """One warp per row, whose lanes handle the columns; declares only its parameter."""

    operation = SPMM
    name = "one_warp_a_row"
    summary = "from a notebook cell"
    Settings = BlockRows
    code = """
#include "common.cuh"
extern "C" __global__ void mine(const long long *row_pointers, const int *columns,
                                const float *values, const float *X, float *Y, int n_rows,
                                int n_cols) {
    RECORD_WARP;
    const int row = blockIdx.x * Config::warps + threadIdx.x / 32;
    if (row >= n_rows) return;
    for (int c = threadIdx.x % 32; c < n_cols; c += 32) {
        float sum = 0.0f;
        for (long long k = row_pointers[row]; k < row_pointers[row + 1]; k++)
            sum += values[k] * X[(long long)columns[k] * n_cols + c];
        Y[(long long)row * n_cols + c] = sum;
    }
}
"""
    arguments = ("row_pointers", "columns", "values", "X", "Y", "n_rows", "n_cols")

    def build(self, graph, widths, settings):
        block_rows = settings.block_rows
        if not 1 <= block_rows <= 32:
            raise PartitionError("block_rows", f"got {block_rows}", "1 to 32")
        kernel = KernelSpec("mine.cu", "mine", {"warps": block_rows}, self.arguments, self.code)
        launch = LaunchConfig((-(-graph.n_rows // block_rows), 1, 1), block_rows)
        sizes = {"n_rows": np.int32(graph.n_rows), "n_cols": np.int32(widths["n_cols"])}
        arrays = {"row_pointers": graph.row_pointers, "columns": graph.column_indices, **sizes}
        return Plan(
            Layout(graph.pattern, partial(row_workload, graph.row_pointers, 1, block_rows)),
            (Call(launch, kernel),),
            Buffers(arrays, zero_outputs=()),
            Provenance(self, graph.values, widths, settings),
        )


class OneWarpARowsScores(OneWarpARow):
    """The same for dot products: one nonzero per lane, heads one after another."""

    operation = SDDMM
    name = "one_warp_a_rows_scores"
    worker = "squad"
    metadata_words = ("row", "nothing")
    metadata_owner = "warp"
    Settings = BlockRowsOfRange
    code = """
#include "common.cuh"
extern "C" __global__ void mine(const int2 *metadata, const long long *row_pointers,
                                const int *columns, const float *U, const float *V, float *scores,
                                int n_rows, int heads, int n_cols) {
    RECORD_WARP;
    if (blockIdx.x * Config::warps + threadIdx.x / 32 >= n_rows) return;
    const int row = metadata[blockIdx.x * Config::warps + threadIdx.x / 32].x;
    for (long long k = row_pointers[row] + threadIdx.x % 32; k < row_pointers[row + 1]; k += 32)
        for (int h = 0; h < heads; h++) {
            const float *u = U + ((long long)row * heads + h) * n_cols;
            const float *v = V + ((long long)columns[k] * heads + h) * n_cols;
            float sum = 0.0f;
            for (int c = 0; c < n_cols; c++) sum += u[c] * v[c];
            scores[k * heads + h] = sum;
        }
}
"""
    arguments = (
        *("metadata", "row_pointers", "columns", "U", "V", "scores"),
        *("n_rows", "heads", "n_cols"),
    )

    def build(self, graph, widths, settings):
        plan = super().build(graph, widths, settings)
        metadata = np.stack([np.arange(graph.n_rows), np.zeros(graph.n_rows)], 1).astype(np.int32)
        arrays = {**plan.arrays, "metadata": metadata, "heads": np.int32(widths["heads"])}
        return replace(
            plan,
            layout=replace(plan.layout, metadata=metadata),
            buffers=replace(plan.buffers, arrays=arrays),
        )

    def describe(self, settings, rows, widths):
        return Description(OneRowAWarp(settings.block_rows))


class NoKernel(OneWarpARow):
    """A strategy without a kernel: it runs on the CPU, and all plots work."""

    name = "no_kernel"

    def build(self, graph, widths, settings):
        plan = super().build(graph, widths, settings)
        return replace(plan, calls=(Call(plan.launch),))


OURS = {one.name: one for one in (OneWarpARow(), OneWarpARowsScores(), NoKernel())}
WITH_KERNEL = [name for name in OURS if name != "no_kernel"]
each_of_ours = pytest.mark.parametrize("mine", OURS.values(), ids=OURS)
each_kernel = pytest.mark.parametrize("mine", [OURS[n] for n in WITH_KERNEL], ids=WITH_KERNEL)
GRAPH = MADE["every_kind"]


def inputs(plan, seed=0):
    return measure.random_inputs(plan.operation, plan.pattern, plan.widths, seed)


@each_of_ours
@each_graph(["every_kind", "isolated_ends", "tall", "no_edges", "empty"])
def test_it_is_right_and_covers_everything(mine, name):
    for block_rows in (1, 3):
        accelviz.plan(MADE[name](), mine, 8, block_rows=block_rows).check()
        check_results(MADE[name](), mine, "cpu", columns=columns_of(name, 3), block_rows=block_rows)


@needs_compiler
@each_kernel
@each_graph(["every_kind", "isolated_ends", "tall", "no_edges", "empty"])
def test_its_kernel_is_right(mine, name):
    check_results(MADE[name](), mine, "emulator", columns=columns_of(name, 3), block_rows=3)


@each_kernel
def test_its_kernel_is_compiled(mine):
    try:
        assert compile_cubin(accelviz.plan(GRAPH(), mine, 8).kernel, "sm_90")[:4] == b"\x7fELF"
    except DeviceUnavailable as error:
        pytest.skip(str(error))


@each_of_ours
def test_it_is_called_like_the_others(mine):
    plan = accelviz.plan(GRAPH(), mine, 8, block_rows=4)
    assert repr(plan).startswith(f"Plan({mine.name!r}, 'made', n_cols=8")
    assert plan.parameters == {"block_rows": 4}
    assert plan.operation is mine.operation
    call = getattr(accelviz, mine.operation.name)
    dense = inputs(plan)
    by_plan = call(plan, *dense, device="cpu")
    by_graph = call(GRAPH(), *dense, strategy=mine, device="cpu", block_rows=4)
    np.testing.assert_array_equal(by_plan, by_graph)
    with pytest.raises(ArgumentError, match="no such parameter.*block_rows=2"):
        accelviz.plan(GRAPH(), mine, 8, ngs=4)
    with pytest.raises(PartitionError, match="block_rows: got 0"):
        accelviz.plan(GRAPH(), mine, 8, block_rows=0)
    with pytest.raises(ArgumentError, match="an object of it"):
        accelviz.plan(GRAPH(), type(mine))
    other = SDDMM if mine.operation is SPMM else SPMM
    with pytest.raises(ArgumentError, match=f"is of {mine.operation.name}"):
        accelviz.plan(GRAPH(), mine, 8, operation=other)


@each_of_ours
def test_it_is_swept(mine):
    table = accelviz.sweep(GRAPH(), [mine], n_cols=[8, 64], block_rows=[1, 2, 8])
    assert len(table) == 6
    assert set(table["strategy"]) == {mine.name}
    for row in table.to_dict("records"):
        n_cols, block_rows = row["n_cols"], row["block_rows"]
        counted = accelviz.plan(GRAPH(), mine, n_cols, block_rows=block_rows).statistics
        assert (row["blocks"], row["warps"]) == (counted.blocks, counted.warps)
        assert row["idle_share"] == pytest.approx(counted.idle_share)
    beside = accelviz.sweep(GRAPH(), [mine, next(iter(accelviz.strategies(mine.operation.name)))])
    assert len(set(beside["strategy"])) == 2
    ax = plots.sweep_lines(table, "block_rows", "idle_share")
    plt.close(ax.figure)


@pytest.mark.sample(3)
@each_of_ours
def test_it_is_drawn(mine):
    plan = accelviz.plan(GRAPH(), mine, 8)
    loads = plan_load_map(plan)
    assert loads.unit == "nonzero"
    row = find_row(plan, 13)
    assert (row.degree, row.blocks) == (769, (6,))
    timeline = predicted_timeline(plan, 2, 2)
    assert timeline_summary(timeline).busy_share > 0
    drawn = [
        plots.load_maps({mine.name: loads}),
        plots.warp_loads(plan),
        plots.block_assignment(assignment(plan)),
        plots.block_close_ups([plan.workload(0, 1)], warps_per_block=plan.workers_per_block),
        plots.sm_timeline(timeline),
    ]
    if plan.metadata is None:
        with pytest.raises(ArgumentError, match="has no metadata"):
            mine.metadata_records(plan, 0)
    else:
        lines = mine.metadata_records(plan, [0, 13])
        assert lines[1].words[0] == 13
        drawn.append(plots.metadata_layout(lines))
    for axes in drawn:
        figure = (axes[0] if isinstance(axes, list) else axes).figure
        figure.canvas.draw()
        plt.close(figure)


@needs_compiler
@each_kernel
def test_it_is_traced(mine):
    plan = accelviz.plan(GRAPH(), mine, 8)
    traced = accelviz.trace(plan, *inputs(plan), block=range(plan.launch.n_blocks))
    (output,) = plan.operation.outputs
    written = traced[(traced["array"] == output.name) & (traced["kind"] == "store")]
    assert written["index"].is_unique
    assert len(written) == np.prod(output.shape(plan.sizes))
    assert traffic(traced)["requests"].sum() == len(requests(traced))
    assert launch_traffic(plan, *inputs(plan))["requests"].sum() == len(requests(traced))
    gathered = [one.name for one in plan.operation.inputs if one.gathered]
    for axes in (
        plots.access_map({mine.name: traced[traced["block"] == 1]}),
        plots.lane_map({mine.name: traced[traced["block"] == 1]}, 8, array=gathered[-1]),
    ):
        plt.close(axes[0].figure)


@each_of_ours
def test_it_is_timed_and_tuned(mine):
    operation = mine.operation.name
    shipped = next(iter(accelviz.strategies(operation)))
    options = {"operation": operation, "repeats": 2, "progress": False, "states": ("warm",)}
    timed = [mine, (mine, {"block_rows": 8}), shipped]
    table = accelviz.benchmark(GRAPH(), timed, (8, 16), "cpu", **options)
    assert len(table) == 6
    assert set(table["strategy"]) == {mine.name, shipped}
    assert set(table["operation"]) == {operation}
    assert (table["error_over_bound"] <= 1).all()
    assert (table["median_us"] > 0).all()
    start = accelviz.plan(GRAPH(), mine, 8)
    tuned = accelviz.tune(start, {"block_rows": [1, 4]}, device="cpu", repeats=1)
    assert len(tuned.table) == 3
    assert tuned.plan.strategy is mine
    if mine.parameters["block_rows"].tries:
        tried = accelviz.tune(start, device="cpu", repeats=1)
        assert len(tried.table) == 1 + len(mine.parameters["block_rows"].tries)


@each_of_ours
def test_it_is_explored(mine):
    graph = accelviz.load_graph("cora")
    panel = Explorer(graph, mine, row=7, n_cols=16, block_rows=8)
    assert panel.settings["first"] == mine.name
    (told,) = (one for one in panel.content()["strategies"] if one["name"] == mine.name)
    assert told["scheme"] is None
    (listed,) = (one for one in panel.content()["listed"] if one["strategy"] == mine.name)
    work = mine.plan(graph, 16, block_rows=8).workload()
    assert listed["row"].tolist() == work.row.tolist()
    assert listed["count"].tolist() == work.nz_count.tolist()
    if unavailable_reason() is None and mine.plan(graph, 16).kernel is not None:
        assert panel.trace(panel.settings)["trace"]["columns"]["site"].size


@needs_compiler
def test_a_mistake_in_it_is_found():
    """The inherited tests detect each of these mistakes."""

    class Forgets(OneWarpARow):
        code = OneWarpARow.code.replace("k = row_pointers[row];", "k = row_pointers[row] + 1;")

    class Keeps(OneWarpARow):
        """Uses the graph's weights instead of the run's."""

        def build(self, graph, widths, settings):
            plan = super().build(graph, widths, settings)
            arguments = ["kept" if name == "values" else name for name in plan.kernel.arguments]
            spec = replace(plan.kernel, arguments=tuple(arguments))
            buffers = replace(plan.buffers, arrays={**plan.arrays, "kept": graph.values})
            return replace(plan, calls=(Call(plan.launch, spec),), buffers=buffers)

    class Leaves(OneWarpARow):
        """Does not write empty rows, which no one zeroes."""

        code = OneWarpARow.code.replace(
            "if (row >= n_rows)", "if (row >= n_rows || row_pointers[row] == row_pointers[row + 1])"
        )

    for wrong, message in (
        (Forgets, "run 0: .* of the bound"),
        (Keeps, "run 1: .* of the bound"),
        (Leaves, "run 0: inf of the bound"),
    ):
        with pytest.raises(AssertionError, match=message):
            check_results(GRAPH(), wrong(), "emulator", columns=(5,))
