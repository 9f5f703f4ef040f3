"""Preprocessing on the GPU, tested without one: kernels in the emulator and NVRTC."""

import dataclasses
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import accelviz
from accelviz import measure
from accelviz.devices import find_device
from accelviz.devices.cuda import compile_cubin
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from accelviz.ordering import DegreeHistogram, degree_sort
from accelviz.partition.block_level import BlockSetting
from accelviz.partition.subwarps import in_place_order, subwarp_blocks
from accelviz.strategies import find_strategy
from accelviz.strategies.spmm.lane_groups.preprocessing import (
    PARAMETERS,
    most_blocks,
    preprocess,
    spec,
)
from tests.compilers import needs_compiler
from tests.graphs import MADE, graph_of_degrees
from tests.test_kernels import ARCHITECTURES

#: Subwarps of a block, most nonzeros of one subwarp, and of one that handles several rows.
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


def check_emulated(graph, setting, in_place):
    """Check with one block, because the emulator runs blocks one by one and these have barriers."""
    groups, short_nzs = BlockSetting(*setting[:2]), setting[2]
    permutation = degree_sort(graph)
    metadata, cut_blocks = subwarp_blocks(DegreeHistogram.of(graph.row_pointers), groups, short_nzs)
    if in_place:
        metadata = in_place_order(metadata, cut_blocks, permutation.order)
    order = "place" if in_place else "degree"
    partition = preprocess(find_device("emulator"), graph.pattern, groups, short_nzs, order)
    pattern, nonzero_order = permutation.apply_to_pattern(graph.pattern)
    assert partition.cut_blocks == cut_blocks
    np.testing.assert_array_equal(partition.output_rows, permutation.order)
    np.testing.assert_array_equal(partition.metadata, metadata)
    np.testing.assert_array_equal(partition.columns, pattern.column_indices)
    np.testing.assert_array_equal(partition.nonzero_order, nonzero_order)


@needs_compiler
@pytest.mark.parametrize("options", [{}, {"group_nzs": 4, "short_nzs": 2, "storage": "float16"}])
def test_a_plan_made_on_a_device_is_the_host_s(options):
    graph, emulator = MADE["every_kind"](), find_device("emulator")
    host, strategy = (
        accelviz.plan(graph, "lane_groups", 16, **options),
        find_strategy("lane_groups"),
    )
    device_plan = strategy.build_on(emulator, graph.pattern, *strategy.checked(16, options))
    assert device_plan.kernel == host.kernel
    assert device_plan.launch == host.launch
    assert device_plan.parameters == host.parameters
    for name in ("block", "warp", "row", "nz_start", "nz_count"):
        columns = [getattr(plan.workload(), name) for plan in (device_plan, host)]
        np.testing.assert_array_equal(*columns)
    operands = {"X": measure.features(graph.shape[1], 16), "values": graph.values}
    results = [emulator.prepare(plan).run(operands)["Y"] for plan in (device_plan, host)]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_pointers": np.zeros(8, np.int32)}, "row_pointers: .*int32.*numpy array of int64"),
        ({"column_indices": np.zeros(3, np.int64)}, "column_indices: .*int64"),
        ({"shape": (9, 50)}, "8 for 9 rows"),
    ],
)
def test_a_pattern_that_is_not_one_is_refused(changes, message):
    pattern = graph_of_degrees([1, 0, 2, 0, 0, 0, 0], 50).pattern
    wrong = SimpleNamespace(**{**vars(pattern), "n_rows": 7, "nnz": 3, **changes})
    wrong.n_rows = wrong.shape[0]
    with pytest.raises(ArgumentError, match=message):
        preprocess(find_device("cpu"), wrong, BlockSetting(16, 32), 8)


def test_there_is_room_for_every_block():
    rng = np.random.default_rng(7)
    for _ in range(400):
        setting = BlockSetting(int(rng.integers(1, 33)), int(rng.integers(1, 129)))
        largest = int(rng.integers(1, 5 * setting.deg_bound + 2))
        degrees = rng.integers(0, largest, rng.integers(0, 60))
        degrees, rows = np.unique(degrees, return_counts=True)
        rows = rows ** int(rng.integers(1, 4))
        histogram = DegreeHistogram(degrees, rows)
        metadata, _ = subwarp_blocks(histogram, setting, int(rng.integers(1, 129)))
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


@pytest.mark.long
@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("entry", PARAMETERS)
def test_compiles_to_machine_code(entry):
    """Compile for the default architecture, and for the others in turn."""
    other = ARCHITECTURES[list(PARAMETERS).index(entry) % len(ARCHITECTURES)]
    for arch, recorded in (("sm_90", {}), ("sm_90", {"RECORD_STEPS": 1}), (other, {})):
        assert compile_cubin(spec(entry, **recorded), arch)[:4] == b"\x7fELF"


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("name", spec("partition").config)
def test_refuses_to_compile_without_the_constants(name):
    whole = spec("partition")
    rest = {key: value for key, value in whole.config.items() if key != name}
    hint = rf"does not compile for sm_90(?s:.*){name} in KernelSpec\(config=...\)"
    with pytest.raises(KernelError, match=hint):
        compile_cubin(dataclasses.replace(whole, config=rest), "sm_90")


class _OnTheGpu:
    """An object with the attributes of CuPy's arrays that are used."""

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
