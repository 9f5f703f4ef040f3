"""Sliding-channel convolution: the channel map, results, gradients and costs."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import accelviz
from accelviz import convolution, measure
from accelviz.convolution import ChannelMap, algorithm_7
from accelviz.devices import find_device
from accelviz.devices.cuda import compile_cubin, compiler
from accelviz.devices.cuda.nvrtc import architecture
from accelviz.devices.cuda.plan import KernelLaunch
from accelviz.errors import ArgumentError, DeviceUnavailable, PartitionError
from accelviz.strategies import REGISTRY
from accelviz.strategies.convolution import strided
from accelviz.strategies.convolution.dsxplore import distinct_windows
from tests.compilers import needs_compiler
from tests.inherited import case

HOST = pytest.mark.parametrize("device", ["cpu", pytest.param("emulator", marks=needs_compiler)])
#: Channels in and out, cg, co. Windows have one run or two, or are more than the filters; also one
#: filter, pointwise, grouped, and a co that is no whole number of channels.
MAPS = [
    ChannelMap(8, 8, 2, 0.5),
    ChannelMap(6, 7, 2, 0.33),
    ChannelMap(24, 40, 4, 0.25),
    ChannelMap(16, 3, 8, 0.5),
    ChannelMap(5, 1, 1, 0.0),
    ChannelMap(12, 20, 3, 0.0),
    ChannelMap(10, 4, 2, 1.0),
]
each_map = pytest.mark.parametrize("channels", MAPS, ids=repr)


def by_definition(X, weights, channels):
    """Return the convolution of section 6.3.1, filter by filter, in float64."""
    Y = np.zeros((X.shape[0], channels.out_channels, *X.shape[2:]))
    for o in range(channels.out_channels):
        for k in range(channels.width):
            c = (o * channels.step + k) % channels.in_channels
            Y[:, o] += np.float64(weights[o, k]) * X[:, c]
    return Y


def operands_of(channels, images=2, side=5):
    rng = np.random.default_rng(channels.parameters)
    X = rng.standard_normal((images, channels.in_channels, side, side), np.float32)
    dY = rng.standard_normal((images, channels.out_channels, side, side), np.float32)
    return X, dY, rng.standard_normal((channels.out_channels, channels.width), np.float32)


@each_map
def test_the_definition_and_its_derivative(channels):
    """Both gradients equal float64 differences of the definition, which is bilinear."""
    X, dY, weights = operands_of(channels)
    Y = convolution.scc(X, channels, weights, device="cpu")
    np.testing.assert_allclose(Y, by_definition(X, weights, channels), atol=1e-4)
    dX, d_weights = convolution.scc_gradient(X, dY, channels, weights, device="cpu")
    rng = np.random.default_rng(0)
    for gradient, other in ((dX, X), (d_weights, weights)):
        direction = rng.standard_normal(other.shape)
        moved = (direction, weights) if other is X else (X, direction)
        slope = np.sum(dY * by_definition(*moved, channels))
        size = np.linalg.norm(direction) * np.linalg.norm(gradient)
        assert abs(np.sum(gradient * direction) - slope) < 1e-5 * size


@each_map
def test_weights_go_into_the_graph_and_back(channels):
    _, _, weights = operands_of(channels)
    values = channels.values(weights)
    np.testing.assert_array_equal(channels.weights(values), weights)
    matrix = channels.graph.with_values(values).adjacency.toarray()
    np.testing.assert_array_equal(matrix, channels.dense(weights))
    windows = distinct_windows(channels.graph.pattern)
    assert len(windows) == channels.cyclic_distance
    cycle = np.arange(channels.out_channels) % channels.cyclic_distance
    np.testing.assert_array_equal(windows.of_filter, cycle)  # Algorithm 8


def test_the_cycles_of_the_chapter():
    """Figure 6.5 and section 6.5.4: 4 windows for cg2-co50 and 16 for cg8-co50, at any size."""
    assert ChannelMap(4, 8, 2, 0.5).cyclic_distance == 4
    assert ChannelMap(6, 12, 2, 0.33).cyclic_distance == 3
    assert ChannelMap(6, 12, 2, 0.25).cyclic_distance == 3
    for channels in (64, 128, 512):
        assert ChannelMap(channels, channels, 2, 0.5).cyclic_distance == 4
        assert ChannelMap(channels, channels, 8, 0.5).cyclic_distance == 16
    assert ChannelMap(64, 128).cyclic_distance == 1  # pointwise
    assert ChannelMap(64, 128, 4).cyclic_distance == 4  # grouped pointwise


def test_algorithm_7_as_printed_and_mended():
    assert algorithm_7(4, 8, 2, 0.5) == [(0, 2), (1, 3), (2, 0), (3, 1)]
    # A third of 3 channels is rounded down to 0; Figure 6.5(b) would have 2 windows instead of 3.
    assert len(algorithm_7(6, 12, 2, 0.33)) == 2
    # Pointwise: the second window ends at 0, so it is a separate window, and empty.
    assert algorithm_7(4, 8, 1, 0.0) == [(0, 4), (0, 0)]
    for channels in (MAPS[0], ChannelMap(32, 40, 4, 0.25), MAPS[5]):  # where neither shows
        arguments = channels.in_channels, channels.out_channels, channels.groups, channels.overlap
        printed = algorithm_7(*arguments)
        assert [first for first, _ in printed] == channels.windows[: len(printed), 0].tolist()
        assert len(printed) == channels.cyclic_distance


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((8, 8, 3), "groups: got 3. Expected: a divisor of in_channels, which are 8"),
        ((8, 8, 2, 1.5), "overlap: got 1.5"),
        ((8, 8, 2, "50%"), "overlap: got '50%'"),
        ((0, 8), "in_channels"),
    ],
)
def test_maps_that_there_are_not(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        ChannelMap(*arguments)


def test_operands_that_do_not_fit_are_named():
    channels = MAPS[0]
    X, dY, weights = operands_of(channels)
    with pytest.raises(ArgumentError, match=r"X: shape .*\(images, 8, height, width\)"):
        convolution.scc(X[:, :7], channels, weights)
    with pytest.raises(ArgumentError, match=r"weights: shape \(8, 3\) for SCC-cg2-co50%"):
        convolution.scc(X, channels, weights[:, :3])
    with pytest.raises(ArgumentError, match=r"X: .*X\.toarray\(\)"):
        convolution.scc(channels.graph.adjacency, channels, weights)
    for empty in (X[:0], X[:, :, :0]):
        with pytest.raises(ArgumentError, match=r"X: shape \(.*0.* at least one image"):
            convolution.scc(empty, channels, weights)
    with pytest.raises(ArgumentError, match="channels: got a ndarray"):
        convolution.scc(X, weights, channels)
    with pytest.raises(ArgumentError, match=r"weights: shape \(3, 4\)"):
        channels.dense(weights[:3])
    with pytest.raises(ArgumentError, match="pixels: got -1"):
        channels.flops(-1)
    with pytest.raises(ArgumentError, match="groups: got 0"):
        algorithm_7(8, 8, 0, 0.5)
    with pytest.raises(ArgumentError, match="network: got 'VGG16'.*NETWORKS"):
        convolution.organize("VGG16")
    with pytest.raises(ArgumentError, match="dY"):
        convolution.scc_gradient(X, dY[0], channels, weights)


#: Operations, and their strategies with the layout of each.
OWN = [
    pytest.param(strategy, layout, id=f"{strategy.operation.name}-{strategy.name}")
    for strategy in REGISTRY
    for operation, layout in (("scc", "first"), ("scc_gradient", "first"), ("scc_last", "last"))
    if strategy.operation.name == operation
]


@pytest.mark.sample(3)
@HOST
@pytest.mark.parametrize(("strategy", "layout"), OWN)
def test_every_strategy_convolves(strategy, layout, device):
    """The forward pass equals the definition, the gradients equal the reference gradients."""
    for channels in MAPS[1:4]:
        X, dY, weights = operands_of(channels)
        expected = by_definition(X, weights, channels)
        gradients = convolution.scc_gradient(X, dY, channels, weights, device="cpu")
        operands = [X, dY]
        if layout == "last":
            operands = [np.moveaxis(array, 1, 3) for array in operands]
            expected = np.moveaxis(expected, 1, 3)
            gradients = np.moveaxis(gradients[0], 1, 3), gradients[1]
        options = {"device": device, "layout": layout}
        if strategy.operation.name != "scc_gradient":
            for more in ({}, {"cyclic": 1}) if "cyclic" in strategy.parameters else ({},):
                Y = convolution.scc(operands[0], channels, weights, strategy, **options, **more)
                np.testing.assert_allclose(Y, expected, atol=1e-4)
        if strategy.operation.name != "scc":
            operands += [channels, weights, strategy.name]
            pair = convolution.scc_gradient(*operands, **options)
            for one, other in zip(pair, gradients, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.long
@HOST
@pytest.mark.parametrize("operation", ["scc_last", "scc_last_weights"])
def test_tf32_is_within_its_own_bound_and_the_exact_mode_within_float32_s(operation, device):
    channels = ChannelMap(48, 64, 2, 0.5)
    graph = measure.random_weights(channels.graph)
    for arithmetic in ("3xtf32", "tf32"):
        settings = {"operation": operation, "n_cols": 70, "arithmetic": arithmetic}
        plan = accelviz.plan(graph, "strided_windows", **settings)
        plan.check()
        dense = measure.random_inputs(plan.operation, graph.pattern, plan.widths)
        oracle = measure.accuracy.Oracle(graph, *dense, operation=plan.operation)
        values = graph.values if operation == "scc_last" else None
        operands = plan.operation.named(*dense, values=values)
        outputs = find_device(device).prepare(plan).run(operands)
        assert oracle.error(outputs, arithmetic) <= 1
        assert (oracle.error(outputs) > 1) == (arithmetic == "tf32")


@pytest.mark.long
@pytest.mark.sample(2)
@needs_compiler
@pytest.mark.parametrize(
    "settings",
    [
        {"pieces": 4, "piece": 16, "warpgroups": 1, "stages": 3},
        {"pieces": 2, "piece": 64, "warpgroups": 2, "arithmetic": "tf32"},
        {"pieces": 1, "piece": 32, "warpgroups": 1, "stages": 6},
        {"shares": 2, "stages": 4, "pixels": 8, "pixel_warps": 1},
        {"shares": 1, "channels": 1, "filter_warps": 1, "pixel_warps": 4},
    ],
    ids=str,
)
def test_blocks_that_go_through_several_tiles(settings, monkeypatch):
    """A block's share of the pixels has several tiles; chunks of the next are prefetched."""
    monkeypatch.setattr(strided, "SMS", 1)
    operation = "scc_last_weights" if "shares" in settings else "scc_last"
    for channels in (ChannelMap(40, 72, 4, 0.5), MAPS[1]):
        plan = accelviz.plan(channels.graph, operation=operation, n_cols=900, **settings)
        assert plan.launch.grid[1] < 900 // 32
        case(channels.graph, plan.operation, **plan.widths).check(plan, find_device("emulator"))


def test_products_that_no_filter_reads_are_left_out():
    """If windows have half of the channels, half of the products are skipped."""
    channels = ChannelMap(256, 256, 2, 0.5)
    for graph, operation in (
        (channels.graph, "scc_last"),
        (channels.graph.transposed().graph, "scc_last"),
        (channels.graph, "scc_last_weights"),
    ):
        plan = accelviz.plan(graph, operation=operation, n_cols=1 << 15)
        assert plan.tiles.fill == 1
    many = {"pieces": 4, "piece": 64, "warpgroups": 2, "stages": 6}
    with pytest.raises(PartitionError, match=r"stages, pieces.*KiB of shared memory"):
        accelviz.plan(channels.graph, operation="scc_last", n_cols=64, **many)


def test_blocks_stay_within_the_shared_memory_that_a_gpu_grants():
    for shape in (1024, 1024, 2, 0.5), (512, 512, 8, 0.5), (64, 128, 2, 0.5):
        for graph in (ChannelMap(*shape).graph, ChannelMap(*shape).graph.transposed().graph):
            for arithmetic, kib in itertools.product(("tf32", "3xtf32"), (99, 163, 227)):
                settings = {"n_cols": 1 << 15, "arithmetic": arithmetic, "shared": kib}
                plan = accelviz.plan(graph, operation="scc_last", **settings)
                assert plan.launch.dynamic_shared_bytes <= kib << 10
                assert plan.parameters["stages"] >= 4


def test_what_a_gpu_does_not_grant_is_told(monkeypatch):
    class Function:
        @property
        def max_dynamic_shared_size_bytes(self):
            return 0

        @max_dynamic_shared_size_bytes.setter
        def max_dynamic_shared_size_bytes(self, taken):
            raise RuntimeError("CUDA_ERROR_INVALID_VALUE")

    monkeypatch.setattr(compiler, "_load", lambda *_: (None, Function()))
    fake = SimpleNamespace(cuda=SimpleNamespace(Device=lambda: SimpleNamespace(id=0)))
    monkeypatch.setattr(compiler, "import_cupy", lambda: fake)
    plan = accelviz.plan(ChannelMap(64, 64).graph, operation="scc_last", n_cols=64)
    with pytest.raises(DeviceUnavailable, match=r"KiB of shared memory a block.*take less"):
        KernelLaunch(plan, plan.calls[1])


def test_products_by_warpgroup_are_of_hopper_and_others_have_their_own():
    plan = accelviz.plan(ChannelMap(64, 64).graph, operation="scc_last", n_cols=64)
    spec = plan.calls[1].kernel
    seen = {arch: architecture(spec, arch) for arch in ("sm_80", "sm_90", "sm_120")}
    assert seen == {"sm_80": "sm_80", "sm_90": "sm_90a", "sm_120": "sm_120"}
    codes = {arch: compile_cubin(spec, arch) for arch in ("sm_80", "sm_90", "sm_90a")}
    assert codes["sm_90"] != codes["sm_90a"]


@pytest.mark.long
@needs_compiler
def test_chunks_of_many_kinds_have_the_products_of_all():
    """A kernel has at most four masks of chunks, and two ways of dealing filters to pieces."""
    seen = set()
    for shape in (128, 256, 8, 0.5), (64, 72, 2, 0.5), (128, 64, 2, 0.5):
        channels = ChannelMap(*shape)
        for graph in (channels.graph, channels.graph.transposed().graph):
            for arithmetic, piece in (("tf32", 16), ("3xtf32", 64)):
                cut = {"pieces": 4, "piece": piece, "warpgroups": 1, "arithmetic": arithmetic}
                plan = accelviz.plan(graph, operation="scc_last", n_cols=70, **cut)
                defines, masks = plan.calls[1].kernel.config, plan.arrays["chunks"][:, 3]
                kinds = {defines[f"mask_{i}"] for i in range(4)} - {0}
                assert kinds == set(masks.tolist())
                seen.add((defines["turns"], min(len(kinds), 2)))
                case(graph, plan.operation, **plan.widths).check(plan, find_device("emulator"))
    assert len(seen) == 4, seen


def atomics_of(plan):
    """Return the elements that atomics of all calls update, by array, counted by the emulator."""
    operands = measure.random_inputs(plan.operation, plan.pattern, plan.widths)
    counted = {"dX": 0, "d_values": 0}
    for part in plan.parts:
        blocks = range(int(np.prod(part.launch.grid)))
        table = accelviz.trace(replace(part, then=()), *operands, block=blocks)
        counts = table[table["kind"] == "atomic"]["array"].value_counts()
        for name in counted:
            counted[name] += int(counts.get(name, 0))
    return counted


@needs_compiler
def test_atomics_of_both_backward_passes():
    """Section 6.5.4: over 90 % fewer atomics; none for dX, as many as before for the weights."""
    channels = ChannelMap(8, 8, 2, 0.5)
    widths = {"n_cols": 64, "images": 2, "block_size": 64}
    pushed, pulled = (
        atomics_of(accelviz.plan(channels.graph, name, operation="scc_gradient", **widths))
        for name in ("dsxplore_var", "dsxplore")
    )
    warps = 2 * 64 // 32
    assert pushed == {"dX": 2 * 64 * channels.parameters, "d_values": warps * channels.parameters}
    assert pulled == {"dX": 0, "d_values": pushed["d_values"]}
    assert sum(pulled.values()) < 0.1 * sum(pushed.values())
