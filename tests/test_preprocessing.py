"""Preprocessing on the GPU, as far as no GPU is needed: the kernels in the emulator and NVRTC."""

import dataclasses
import re
from typing import ClassVar

import numpy as np
import pytest

import accelviz
from accelviz.devices import emulate, find_device
from accelviz.devices.cuda import compile_cubin
from accelviz.devices.cuda.preprocessing import (
    BLOCK_THREADS,
    BLOCKS,
    PARAMETERS,
    STATE_WORDS,
    counters,
    most_blocks,
    spec,
)
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.ordering import DegreeHistogram, degree_sort
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.lane_groups import in_place_order, lane_group_partition
from tests.compilers import needs_compiler
from tests.graphs import MADE, graph_of_degrees
from tests.test_kernels import ARCHITECTURES

#: Groups of a block, most nonzeros of one, and of one that takes several rows.
SETTINGS = [(16, 32, 8), (12, 5, 4), (1, 1, 1), (25, 8, 128), (32, 128, 1)]


@pytest.mark.sample(3)
@needs_compiler
@pytest.mark.parametrize(
    ("name", "setting", "in_place"),
    list(zip(MADE, SETTINGS * 5, [False, True] * 10, strict=False)),
)
def test_the_kernels_make_what_the_host_makes(name, setting, in_place):
    check_emulated(MADE[name](), setting, in_place)


@needs_compiler
def test_degrees_take_several_passes_of_the_sort():
    rng = np.random.default_rng(3)
    degrees = [70_000, 66_000, 65_536, 65_535, 300, 256, *rng.integers(0, 5, 60), 65_536, 256]
    check_emulated(graph_of_degrees([int(degree) for degree in degrees]), SETTINGS[0], True)


def emulated(kernel, grid, arrays, unwritten):
    found = spec(kernel)
    options = {"kernel": kernel, "unwritten": unwritten}
    return emulate(found.configured_source(), grid, BLOCK_THREADS, **options, **arrays)


def check_emulated(graph, setting, in_place):
    """One block: the emulator runs one after the other, and these wait for each other."""
    if graph.n_rows == 0:
        return
    groups, short_nzs = BlockSetting(*setting[:2]), setting[2]
    permutation = degree_sort(graph)
    histogram = DegreeHistogram.of(graph.row_pointers)
    metadata, cut_blocks = lane_group_partition(histogram, groups, short_nzs)
    if in_place:
        metadata = in_place_order(metadata, cut_blocks, permutation.order)
    n_rows = graph.n_rows
    work = dict(zip(PARAMETERS["partition"][-3:], counters(1), strict=True))
    work |= dict.fromkeys(("spare_sorted", "spare_degrees", "spare_rows"), n_rows)
    arrays = {
        "row_pointers": graph.row_pointers,
        "n_rows": np.int32(n_rows),
        "groups": np.int32(groups.max_block_warps),
        "max_group_nzs": np.int32(groups.max_warp_nzs),
        "short_nzs": np.int32(short_nzs),
        "in_place": np.int32(in_place),
        "state": np.zeros(STATE_WORDS, np.uint32),
        "output_rows": np.empty(n_rows, np.int32),
        "metadata": np.empty((most_blocks(n_rows, graph.nnz, groups), 4), np.int32),
        **{name: np.empty(size, np.uint32) for name, size in work.items()},
    }
    arrays["spare_rows"] = np.empty(n_rows, np.int32)
    unwritten = {"output_rows", "metadata", *work}
    made = emulated("partition", 1, arrays, unwritten)
    blocks, cut = made["state"][BLOCKS].tolist()
    assert (blocks, cut) == (len(metadata), cut_blocks)
    np.testing.assert_array_equal(made["output_rows"], permutation.order)
    np.testing.assert_array_equal(made["metadata"][:blocks], metadata)
    made_here = {
        "columns": np.empty(graph.nnz, np.int32),
        "nonzero_order": np.empty(graph.nnz, np.uint32),
    }
    arrays = {
        **{name: made[name] for name in ("state", "metadata", "output_rows")},
        "row_pointers": graph.row_pointers,
        "column_indices": graph.column_indices,
        "deg_bound": groups.deg_bound,
    }
    copied = emulated("copy_nonzeros", 2, {**arrays, **made_here}, made_here)
    pattern, nonzero_order = permutation.apply_to_pattern(graph.pattern)
    np.testing.assert_array_equal(copied["columns"], pattern.column_indices)
    np.testing.assert_array_equal(copied["nonzero_order"], nonzero_order)


def test_there_is_room_for_every_block():
    rng = np.random.default_rng(7)
    for _ in range(400):
        setting = BlockSetting(int(rng.integers(1, 33)), int(rng.integers(1, 129)))
        largest = int(rng.integers(1, 5 * setting.deg_bound + 2))
        degrees = rng.integers(0, largest, rng.integers(0, 60))
        degrees, rows = np.unique(degrees, return_counts=True)
        rows = rows ** int(rng.integers(1, 4))
        histogram = DegreeHistogram(degrees, rows)
        metadata, _ = lane_group_partition(histogram, setting, int(rng.integers(1, 129)))
        assert len(metadata) <= most_blocks(histogram.n_rows, histogram.nnz, setting)


def test_the_room_is_little_beside_the_nonzeros():
    degrees = np.arange(1, 2000)
    rows = (3e7 / degrees**2.2).astype(np.int64) + 1
    histogram = DegreeHistogram(degrees, rows)
    room = 16 * most_blocks(histogram.n_rows, histogram.nnz, BlockSetting(16, 32))
    assert room < 0.05 * 8 * histogram.nnz


@pytest.fixture
def nvrtc():
    try:
        compile_cubin(spec("partition"), "sm_90")
    except DeviceUnavailable as error:
        pytest.skip(f"kernels are not compile-checked here: {error}")


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("entry", PARAMETERS)
def test_compiles_to_machine_code(entry):
    """For the architecture that it is used on, and for the others in turn."""
    other = ARCHITECTURES[list(PARAMETERS).index(entry) % len(ARCHITECTURES)]
    for arch, recorded in (("sm_90", False), ("sm_90", True), (other, False)):
        assert compile_cubin(spec(entry, record_steps=recorded), arch)[:4] == b"\x7fELF"


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("name", spec("partition").config)
def test_refuses_to_compile_without_the_constants(name):
    whole = spec("partition")
    rest = {key: value for key, value in whole.config.items() if key != name}
    with pytest.raises(KernelError, match="does not compile for sm_90"):
        compile_cubin(dataclasses.replace(whole, config=rest), "sm_90")


@pytest.mark.parametrize("entry", PARAMETERS)
def test_takes_the_arguments_that_are_passed(entry):
    signature = re.search(rf"\b{entry}\(const([^)]*)\)", spec(entry).source()).group(1)
    names = [re.search(r"(\w+)\s*$", part).group(1) for part in signature.split(",")]
    assert tuple(names) == PARAMETERS[entry]


class _OnTheGpu:
    """What CuPy's arrays have in common with it."""

    __cuda_array_interface__: ClassVar = {"shape": (1,), "typestr": "<i4", "data": (0, True)}


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_a_plan_on_the_gpu_is_refused_on_the_host(device):
    plan = accelviz.plan("cora", "lane_groups", 4)
    moved = dataclasses.replace(
        plan,
        buffers=dataclasses.replace(plan.buffers, arrays={**plan.arrays, "nonzeros": _OnTheGpu()}),
    )
    executor = find_device(device)
    if executor.unavailable_reason() is not None:
        pytest.skip(executor.unavailable_reason())
    with pytest.raises(ArgumentError, match="lie on the GPU"):
        executor.prepare(moved)
