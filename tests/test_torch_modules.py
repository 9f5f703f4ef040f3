"""PyTorch's forms of bit tensors, sliding-channel convolution and chapter 7's optimizer."""

import copy
import io
import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import accelviz  # noqa: E402
from accelviz import bits, convolution  # noqa: E402
from accelviz.convolution import NETWORKS, Kernel  # noqa: E402
from accelviz.devices import find_device  # noqa: E402
from accelviz.errors import ArgumentError  # noqa: E402
from accelviz.torch import QuantizedTensor, SlidingChannelConv2d, sliding  # noqa: E402
from accelviz.torch.arrays import stream_of  # noqa: E402
from tests.compilers import needs_compiler  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
each_device = pytest.mark.parametrize("device", DEVICES)
each_format = pytest.mark.parametrize(
    "layout", [torch.contiguous_format, torch.channels_last], ids=["first", "last"]
)
CUDA = [find_device("cpu"), pytest.param(find_device("emulator"), marks=needs_compiler)]


# ------------------------------------------------------------------------------ QuantizedTensor


def matrices(device="cpu"):
    torch.manual_seed(0)
    return torch.randn(40, 37, device=device), torch.randn(37, 9, device=device)


@each_device
@pytest.mark.parametrize(("n_bits", "options"), [(1, {}), (3, {"low": -1, "high": 2}), (8, {})])
def test_numbers_of_quantized_tensors_are_those_of_bits(device, n_bits, options):
    X, W = matrices(device)
    A = QuantizedTensor.quantize(X, n_bits, "left", **options)
    B = QuantizedTensor.quantize(W, 4, "right", per_column=True)
    a = bits.quantize(X.cpu().numpy(), n_bits, "left", **options)
    b = bits.quantize(W.cpu().numpy(), 4, "right", per_column=True)
    assert (A.shape, A.dtype, A.device.type) == ((40, 37), torch.float32, device)
    assert A.clipped == a.clipped
    assert (A.clipped > 0) == bool(options)
    np.testing.assert_array_equal(A.words.cpu().numpy().view(np.uint32), a.words)
    for one, other in ((A, a), (B, b)):
        np.testing.assert_array_equal(one.levels().cpu(), other.levels())
        np.testing.assert_array_equal(one.dequantize().cpu(), other.values())
    np.testing.assert_array_equal(A.product(B).cpu(), bits.product(a, b, device="cpu"))
    expected = bits.product(a, b, finish=bits.Finish(), device="cpu")
    product = A @ B
    assert product.device.type == device
    torch.testing.assert_close(product.cpu(), torch.from_numpy(expected))
    finish = bits.Finish(bits=3, low=-9, high=9, relu=True)
    rounded = A.product(B, finish=finish)
    assert isinstance(rounded, QuantizedTensor)
    steps = rounded.levels().cpu().numpy()
    steps -= bits.product(a, b, finish=finish, device="cpu").levels()
    assert abs(steps).max() <= (device == "cuda")  # a sum may lie at the border of two levels
    torch.testing.assert_close(product, A.dequantize() @ B.dequantize(), rtol=1e-3, atol=1e-3)


@each_device
def test_an_adjacency_sums_over_the_neighbors(device):
    torch.manual_seed(1)
    edges = torch.randint(0, 30, (2, 90), device=device)
    dense = torch.zeros(50, 30, device=device)
    dense[edges[1], edges[0]] = 1
    A = QuantizedTensor.adjacency(edges, (30, 50))
    torch.testing.assert_close(A.dequantize(), dense)
    X = QuantizedTensor.quantize(matrices(device)[0][:30], 5, "right")
    torch.testing.assert_close(A @ X, dense @ X.dequantize())
    square = QuantizedTensor.adjacency(edges.int(), 30 + 20)
    torch.testing.assert_close(square.dequantize()[:, :30], dense)


@each_device
def test_a_transpose_is_the_other_operand_and_shares_the_words(device):
    X, W = matrices(device)
    A = QuantizedTensor.quantize(X, 3, "left")
    for transposed in (A.t(), A.T, A.mT, A.transpose(0, 1), A.permute(1, 0)):
        assert (transposed.shape, transposed.side) == ((37, 40), "right")
        assert transposed.words.data_ptr() == A.words.data_ptr()
        torch.testing.assert_close(transposed.dequantize(), A.dequantize().t())
    weight = QuantizedTensor.quantize(W.t().contiguous(), 4, "left")
    torch.testing.assert_close(functional.linear(A, weight), A @ weight.t())


@each_device
def test_quantized_tensors_are_copied_moved_stored_and_printed(device):
    A = QuantizedTensor.quantize(matrices(device)[0], 3, "left")
    where = " on the GPU" if device == "cuda" else ""
    begin = f"QuantizedTensor(40 x 37, 3 bits, left, 1,920 bytes{where}, device='"
    assert repr(A).startswith(begin)
    stored = io.BytesIO()
    torch.save({"A": A}, stored)
    stored.seek(0)
    loaded = torch.load(stored, map_location="cpu")["A"]
    module = nn.Module()
    module.register_buffer("A", QuantizedTensor.quantize(-matrices(device)[0], 3, "left"))
    module.to(device).load_state_dict({"A": A})
    copies = A.clone(), copy.deepcopy(A), A.to("cpu"), A.to(device, copy=True), loaded, module.A
    for other in copies:
        assert isinstance(other, QuantizedTensor)
        assert other.words.data_ptr() != A.words.data_ptr() or other is A
        torch.testing.assert_close(other.dequantize().cpu(), A.dequantize().cpu())
    negative, B = QuantizedTensor.quantize(-matrices(device)[0], 3, "left"), A.t()
    before = negative @ B
    negative.copy_(A)
    torch.testing.assert_close(negative @ B, A @ B)
    torch.testing.assert_close(B.t() @ negative.t(), A @ B)
    assert not torch.allclose(before, A @ B)
    compiled = torch.compile(lambda A, B: (A @ B) * 2, backend="eager")
    torch.testing.assert_close(compiled(A, A.t()), (A @ A.t()) * 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda A, B: A + 1, r"a QuantizedTensor has no aten.add.Tensor.*dequantize\(\)"),
        (lambda A, B: A[0], "has no aten.select.int"),
        (lambda A, B: A.sum(), "has no aten.sum"),
        (lambda A, B: A @ B.dequantize(), r'B: a Tensor of torch.float32.*n_bits, "right"'),
        (lambda A, B: A.dequantize() @ B, "A: a Tensor of torch.float32"),
        (lambda A, B: A.product(B.dequantize()), "other: a Tensor"),
        (lambda A, B: B @ A, "A: packed as the right operand"),
        (lambda A, B: A.double(), r"dtype: got torch.float64.*dequantize\(\)"),
        (lambda A, B: A.copy_(B), r"copy_: from shape, bits, side \(37, 9\), 4, right"),
        (lambda A, B: A.copy_(A.dequantize()), "copy_: one of two is not quantized"),
        (lambda A, B: B.t(), "its columns have a scale each"),
        (lambda A, B: QuantizedTensor.quantize(A, 3, "left"), "X: a QuantizedTensor already"),
        (lambda A, B: QuantizedTensor.quantize([[1.0]], 3, "left"), "X: got a list"),
        (lambda A, B: QuantizedTensor.quantize(torch.ones(2), 3, "left"), "X: 1-D of float32"),
        (
            lambda A, B: QuantizedTensor.quantize(torch.ones(2, 2) * 1j, 3, "left"),
            "X: 2-D of complex64",
        ),
        (
            lambda A, B: QuantizedTensor.quantize(torch.ones(2, 2, requires_grad=True), 3, "left"),
            r"X: it requires gradients.*X.detach\(\)",
        ),
        (lambda A, B: QuantizedTensor.quantize(torch.ones(2, 2), 17, "left"), "bits: got 17"),
        (lambda A, B: QuantizedTensor(A.dequantize()), "tensor: got a Tensor"),
        (
            lambda A, B: QuantizedTensor.adjacency(torch.tensor([[0], [5]]), 5),
            "edge_index: targets 5 to 5. Expected: 0 to 4",
        ),
        (lambda A, B: QuantizedTensor.adjacency(torch.zeros(3, 4).long(), 5), "edge_index: shape"),
        (lambda A, B: QuantizedTensor.adjacency(torch.zeros(2, 0).long(), "5"), "size: got '5'"),
    ],
)
def test_what_a_quantized_tensor_has_not_is_refused(call, message):
    X, W = matrices()
    A = QuantizedTensor.quantize(X, 3, "left")
    B = QuantizedTensor.quantize(W, 4, "right", per_column=True)
    with pytest.raises(ArgumentError, match=message):
        call(A, B)


# -------------------------------------------------------------------------- SlidingChannelConv2d

#: in_channels, out_channels, groups, overlap: windows that wrap around, more windows than filters,
#: one filter, pointwise, grouped, more windows than have a product each.
MAPS = [
    (40, 48, 2, 0.35),
    (8, 8, 2, 0.5),
    (6, 7, 2, 0.33),
    (16, 3, 8, 0.5),
    (5, 1, 1, 0.0),
    (12, 20, 3, 0.0),
]
each_map = pytest.mark.parametrize("arguments", MAPS, ids=str)


def composition(layer, x):
    """Return the layer's result by PyTorch's operators: a grouped convolution of copies."""
    channels = torch.from_numpy(layer.channels.windows.astype(np.int64)).flatten().to(x.device)
    stack = x.index_select(-3, channels)
    return functional.conv2d(stack, layer.weight, layer.bias, groups=layer.channels.out_channels)


def layer_and_maps(arguments, device, layout=torch.contiguous_format, dtype=torch.float32):
    torch.manual_seed(2)
    layer = SlidingChannelConv2d(*arguments, device=device, dtype=dtype)
    x = torch.randn(3, arguments[0], 5, 4, device=device, dtype=dtype)
    return layer, x.contiguous(memory_format=layout).requires_grad_()


def outcome(function, layer, x):
    """Return the result and all gradients of a loss that weights each element differently."""
    y = function(x)
    torch.manual_seed(3)
    loss = (y * torch.randn(y.shape, dtype=torch.float64).to(y)).sum()
    return [y, *torch.autograd.grad(loss, [x, *layer.parameters()])]


def assert_alike(results, expected, **tolerance):
    for one, other in zip(results, expected, strict=True):
        torch.testing.assert_close(one, other, **tolerance)


@each_map
@each_device
@each_format
def test_a_sliding_convolution_is_a_grouped_one_of_copies(arguments, device, layout):
    layer, x = layer_and_maps(arguments, device, layout)
    double, wide = copy.deepcopy(layer).double(), x.detach().double().requires_grad_()
    expected = outcome(lambda x: composition(double, x), double, wide)
    results = outcome(layer, layer, x)
    assert results[0].is_contiguous(memory_format=layout)
    assert_alike(results, [one.float() for one in expected], rtol=1e-4, atol=1e-5)
    assert_alike(outcome(double, double, wide), expected)


@pytest.mark.parametrize("arguments", MAPS[1:-1], ids=str)
@pytest.mark.parametrize("most_windows", [sliding.MOST_WINDOWS, 0])
def test_derivatives_of_first_and_second_order(arguments, most_windows, monkeypatch):
    monkeypatch.setattr(sliding, "MOST_WINDOWS", most_windows)
    layer, x = layer_and_maps(arguments, "cpu", dtype=torch.float64)
    weight = layer.weight.detach().flatten(1).requires_grad_()
    settings = layer.channels.groups, layer.channels.overlap, "3xtf32"

    def convolve(x, weight):
        return sliding.sliding_channels(x, weight, *settings)

    assert torch.autograd.gradcheck(convolve, (x[:1, :, :2], weight))
    assert torch.autograd.gradgradcheck(convolve, (x[:1, :, :2], weight))


@each_device
@each_format
def test_the_operators_are_what_pytorch_expects(device, layout):
    layer, x = layer_and_maps(MAPS[2], device, layout)
    weight = layer.weight.detach().flatten(1).requires_grad_()
    settings = layer.channels.groups, layer.channels.overlap, "3xtf32"
    dy = layer(x).detach().requires_grad_()
    registered = torch.ops.accelviz
    torch.library.opcheck(registered.sliding_channels.default, (x, weight, *settings))
    arguments = dy, weight, x.size(1), *settings
    torch.library.opcheck(registered.sliding_channels_input.default, arguments)
    torch.library.opcheck(registered.sliding_channels_weight.default, (x, dy, *settings))


@each_map
@each_format
@pytest.mark.parametrize("device", CUDA, ids=["replay", "emulator"])
def test_the_kernels_compute_the_same(arguments, layout, device):
    """The path of a GPU, with tensors on the host."""
    layer, x = layer_and_maps(arguments, "cpu", layout)
    channels, weight, x = layer.channels, layer.weight.detach().flatten(1), x.detach()
    settings = channels.groups, channels.overlap, "3xtf32"
    y = sliding.sliding_channels(x, weight, *settings)
    dy = torch.randn_like(y)
    pairs = [
        (sliding.by_kernels(channels, weight, x, "3xtf32", device), y),
        (
            sliding.by_kernels(channels, weight, dy, "3xtf32", device, transposed=True),
            sliding.input_gradient(dy, weight, x.size(1), *settings),
        ),
        (
            sliding.weights_by_kernels(channels, x, dy, "3xtf32", device),
            sliding.weight_gradient(x, dy, *settings),
        ),
    ]
    for result, expected in pairs:
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
        if result.dim() == 4:
            formats = [one.is_contiguous(memory_format=layout) for one in (result, expected)]
            assert formats[0] == formats[1]


@each_device
def test_a_compiled_and_an_exported_sliding_convolution(device):
    layer, x = layer_and_maps(MAPS[1], device)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for images in (1, 3):
        assert_alike(
            outcome(compiled, layer, x.detach()[:images].requires_grad_()),
            outcome(layer, layer, x.detach()[:images].requires_grad_()),
        )
    exported = torch.export.export(layer, (x.detach(),)).module()
    torch.testing.assert_close(exported(x), layer(x))


@each_device
def test_state_dicts_dtypes_and_shapes_of_a_sliding_convolution(device):
    layer, x = layer_and_maps(MAPS[1], device)
    grouped = nn.Conv2d(8, 8, 1, groups=2)
    layer.load_state_dict(grouped.state_dict())
    grouped.load_state_dict(layer.state_dict())
    expected = layer(x)
    torch.testing.assert_close(layer(x[0]), expected[0])
    assert layer(x[:0]).shape == (0, 8, 5, 4)
    strided = x.detach()[:, :, ::2].requires_grad_()
    torch.testing.assert_close(layer(strided), expected[:, :, ::2])
    for dtype in (torch.float16, torch.bfloat16):
        low = copy.deepcopy(layer).to(dtype)
        y = low(x.to(dtype))
        assert y.dtype == dtype
        torch.testing.assert_close(y.float(), expected, rtol=0.05, atol=0.05)
    assert repr(SlidingChannelConv2d(64, 128, 4, 0.25, bias=False, arithmetic="tf32")) == (
        "SlidingChannelConv2d(64, 128, groups=4, overlap=0.25, bias=False, arithmetic='tf32')"
    )
    assert SlidingChannelConv2d(8, 8, bias=False).bias is None


@pytest.mark.gpu
def test_tf32_rounds_and_the_current_stream_is_respected():
    layer, x = layer_and_maps((64, 128, 2, 0.5), "cuda", torch.channels_last)
    expected = composition(layer.double(), x.double()).float()
    layer.float()
    errors = {}
    for layer.arithmetic in ("3xtf32", "tf32"):
        errors[layer.arithmetic] = float((layer(x) - expected).detach().abs().max())
    assert errors["3xtf32"] < 1e-5 < errors["tf32"] < 1e-2
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        result = layer(x * 2)
    stream.synchronize()
    torch.testing.assert_close(result, layer(x * 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SlidingChannelConv2d(8, 8, 3), "groups: got 3. Expected: a divisor"),
        (lambda: SlidingChannelConv2d(8, 8, 2, 1.5), "overlap: got 1.5"),
        (lambda: SlidingChannelConv2d(8, 8, arithmetic="fp8"), "arithmetic: .*fp8"),
        (lambda: SlidingChannelConv2d(8, 8)(torch.ones(1, 7, 2, 2)), r"x: shape \(1, 7, 2, 2\)"),
        (lambda: SlidingChannelConv2d(8, 8)(torch.ones(8, 2)), r"x: shape \(8, 2\)"),
        (lambda: SlidingChannelConv2d(8, 8)(torch.ones(8, 2, 2).int()), "x: torch.int32"),
        (lambda: SlidingChannelConv2d(8, 8)(torch.ones(8, 2, 2).double()), "x: torch.float64"),
    ],
)
def test_what_a_sliding_convolution_has_not_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


# ---------------------------------------------------------------------------------------- optimize


def conv(before, after, width=3, stride=1, **options):
    """Return a convolution without bias, its normalization and an activation."""
    options = {"padding": width // 2, "bias": False, **options}
    layers = nn.Conv2d(before, after, width, stride, **options), nn.BatchNorm2d(after), nn.ReLU()
    return nn.Sequential(*layers)


def classifier(before, classes, hidden=()):
    layers = [nn.Flatten()]
    for width in hidden:
        layers += [nn.Linear(before, width), nn.ReLU(), nn.Dropout()]
        before = width
    return nn.Sequential(*layers, nn.Linear(before, classes))


def vgg(network):
    """Return a VGG with normalization; its convolutions have a bias, as torchvision's."""
    layers, before = [], 3
    for stage in network.stages:
        for _ in range(stage.units):
            layers += conv(before, stage.channels, bias=True)
            before = stage.channels
        layers.append(nn.MaxPool2d(2))
    width = before * network.pooled**2
    return nn.Sequential(*layers, classifier(width, network.classes, network.hidden))


def mobilenet(network):
    layers, before, stride = [conv(3, 32, stride=2 if network.stages[0].width == 112 else 1)], 32, 1
    for stage in network.stages:
        for _ in range(stage.units):
            depthwise = conv(before, before, stride=stride, groups=before)
            layers.append(nn.Sequential(*depthwise, *conv(before, stage.channels, 1)))
            before, stride = stage.channels, 1
        stride = 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), classifier(before, network.classes))


class Bottleneck(nn.Module):
    """As torchvision's, with one ReLU for all."""

    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1, self.bn1, self.relu = conv(before, channels, 1)
        self.conv2, self.bn2, _ = conv(channels, channels, stride=stride)
        self.conv3, self.bn3, _ = conv(channels, 4 * channels, 1)
        self.downsample = None
        if stride > 1 or before != 4 * channels:
            self.downsample = conv(before, 4 * channels, 1, stride)[:2]

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, network):
        super().__init__()
        width, before, ratio = network.stem
        self.stem = conv(3, before, width, ratio)
        self.pool = nn.MaxPool2d(3, 2, 1) if ratio > 1 else nn.Identity()
        layers = []
        for number, stage in enumerate(network.stages):
            for unit in range(stage.units):
                stride = 2 if number and not unit else 1
                layers.append(Bottleneck(before, stage.channels, stride))
                before = 4 * stage.channels
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(before, network.classes)

    def forward(self, x):
        images = x.shape[0]
        x = functional.adaptive_avg_pool2d(self.layers(self.pool(self.stem(x))), 1)
        return self.fc(x.view(images, -1))


def model_of(name):
    build = {"VGG": vgg, "Mob": mobilenet, "Res": ResNet}[name[:3]]
    with torch.device("meta"):  # shapes are enough
        return build(NETWORKS[name])


def image_size(name):
    return (3, 224, 224) if "ImageNet" in name else (3, 32, 32)


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("block", [None, "B (MobileNet)", "F (DW + RPW)"])
def test_modules_have_the_parameters_and_flops_of_the_descriptions(name, block):
    network, steps = NETWORKS[name], convolution.organize(NETWORKS[name])
    organized = network.with_depths(steps[-1].depths)
    _, report = convolution.optimize(model_of(name), image_size(name), block=block)
    assert report.unit == network.unit
    assert (report.before, report.after) == (network.stages, organized.stages)
    assert report.steps == tuple(steps)
    assert (report.parameters[0], report.flops[0]) == (network.parameters, network.flops)
    expected = organized if block is None else organized.with_block(block)
    # The description drops the bias of the image's convolution too.
    image_bias = 64 * (network.unit == "conv" and block is not None)
    assert report.parameters[1] == expected.parameters + image_bias
    assert report.flops[1] == expected.flops
    assert bool(report.block) == bool(report.replaced)
    is_block_already = (name[:3], block) == ("Mob", "B (MobileNet)")
    assert bool(report.block) == (block is not None and not is_block_already)


def test_numbers_that_the_thesis_prints():
    """Table 7.3: VGG16, and the steps of VGG19 and ResNet50 that have its parameters."""
    _, report = convolution.optimize(model_of("VGG16"), (3, 32, 32), block=None)
    assert [stage.units for stage in report.after] == [5, 4, 2, 1, 1]
    assert round(report.parameters[0] / 1e6, 2) == 14.73
    assert (round(report.parameters[1] / 1e6, 2), round(report.flops[1] / 1e6)) == (5.1, 370)
    assert "{2, 2, 3, 3, 3} to {5, 4, 2, 1, 1} in 5 steps" in str(report)
    for name, units, millions in (
        ("VGG19", [6, 4, 3, 2, 1], 8.09),
        ("ResNet50 ImageNet", [5, 5, 4, 2], 0),
    ):
        steps = convolution.organize(NETWORKS[name])
        number = [list(step.depths) for step in steps].index(units) + 1
        _, report = convolution.optimize(model_of(name), image_size(name), block=None, most=number)
        assert [stage.units for stage in report.after] == units
        assert not millions or round(report.parameters[1] / 1e6, 2) == millions


def small(kind, depths=(2, 3, 1)):
    """Return a small model of the kind on the host, and its images."""
    torch.manual_seed(4)
    stages = tuple(convolution.Stage(16 >> n, 0, 8 << n, units) for n, units in enumerate(depths))
    stem = (3, 8, 1) if kind == "bottleneck" else (0, 0, 1)
    network = convolution.Network("small", stages, kind, stem, pooled=2)
    if kind == "dw+pw":
        head = nn.AdaptiveAvgPool2d(1), classifier(32, 10)
        layers, before = [conv(3, 8)], 8
        for n, stage in enumerate(stages):
            for unit in range(stage.units):
                stride = 2 if n and not unit else 1
                layers += conv(before, before, stride=stride, groups=before)
                layers += conv(before, stage.channels, 1)
                before = stage.channels
        return nn.Sequential(*layers, *head), torch.randn(2, 3, 16, 16)
    return {"conv": vgg, "bottleneck": ResNet}[kind](network), torch.randn(2, 3, 16, 16)


@pytest.mark.parametrize(
    ("kind", "block"),
    [("conv", "C (clcNet)"), ("dw+pw", "D (ShuffleNet)"), ("bottleneck", "F (DW + RPW)")],
)
def test_an_optimized_module_runs_trains_and_keeps_the_weights_of_units_that_stay(kind, block):
    model, x = small(kind)
    state = copy.deepcopy(model.state_dict())
    same, report = convolution.optimize(model, x.shape[1:], block=None, most=0)
    assert report.parameters[0] == report.parameters[1]
    torch.testing.assert_close(same.eval()(x), model.eval()(x))
    model.train()
    for replacement in (None, block):
        module, report = convolution.optimize(model, x.shape[1:], block=replacement, most=2)
        assert module.training
        assert report.steps
        module(x).square().mean().backward()
        gradients = [parameter.grad for parameter in module.parameters()]
        assert all(gradient is not None for gradient in gradients)
        assert sum(one.numel() for one in gradients) == report.parameters[1]
        shared = module.state_dict().keys() & state.keys()
        assert len(shared) > 4
        for name in shared:
            if "running" not in name and "tracked" not in name:
                torch.testing.assert_close(module.state_dict()[name], state[name])
        assert len(report.replaced) > 2 if replacement else not report.replaced
        assert bool(report.others) == (kind != "conv")
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, state[name])
    torch.testing.assert_close(copy.deepcopy(module).eval()(x), module.eval()(x))


def test_layers_of_a_block_and_functional_activations():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (nn.Conv2d(n, 8, 3, padding=1) for n in (3, 8))
            self.fc = nn.Linear(8, 2)

        def forward(self, x):
            x = functional.relu(self.b(functional.relu(self.a(x))))
            return self.fc(functional.max_pool2d(x, 4).flatten(1))

    module, report = convolution.optimize(Plain(), (3, 4, 4), block="F (DW + RPW)", most=0)
    assert (report.replaced, report.others) == (("b",), ())
    kernels = [module.get_submodule(name) for name in ("b_0_dw", "b_1_rpw")]
    assert isinstance(kernels[1], SlidingChannelConv2d)
    assert all(kernel.bias is not None for kernel in kernels)  # no normalization follows
    assert [node.target for node in module.graph.nodes].count(functional.relu) == 3
    x = torch.randn(2, 3, 4, 4)
    y = functional.relu(kernels[0](functional.relu(module.a(x))))
    y = functional.relu(kernels[1](y))
    expected = module.fc(functional.max_pool2d(y, 4).flatten(1))
    torch.testing.assert_close(module(x), expected)


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        return self.conv(self.conv(x))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = conv(8, 8), conv(8, 8)

    def forward(self, x):
        return x + self.b(self.a(x))


class Dense(Residual):
    def forward(self, x):
        return torch.cat([x, self.b(self.a(x))], 1)


class Weighted(Residual):
    def forward(self, x):
        return functional.conv2d(x, self.a[0].weight)


IMAGE = (8, 8, 8)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("VGG16", {}, "model: got a str"),
        (Branching(), {}, "model: torch.fx cannot trace it: .*control flow"),
        (Twice(), {}, "model: layer 'conv' is called twice"),
        (Residual(), {}, "model: at 'a.0' it has a residual unit of conv, conv"),
        (Dense(), {}, "model: it calls 'cat'"),
        (Weighted(), {}, "model: it calls 'conv2d'|uses the tensor 'a.0.weight' outside"),
        (nn.Sequential(nn.Flatten()), {}, "model: it has no convolution"),
        (nn.Sequential(conv(8, 8), nn.PReLU()), {}, "model: layer '1' is a PReLU"),
        (
            nn.Sequential(SlidingChannelConv2d(8, 8)),
            {},
            "model: layer .* is a SlidingChannelConv2d",
        ),
        (nn.Sequential(conv(8, 8, 5)), {}, r"model: at '0.0' it has Conv2d\(8, 8, kernel_size=\(5"),
        (
            nn.Sequential(conv(8, 8), conv(8, 8, 1), conv(8, 8)),
            {},
            r"model: at '1.0' it has pw.*units of one kind of .*as before it \(conv\)",
        ),
        (conv(8, 8), {"input_size": (3, 8, 8)}, "input_size: the model does not run on"),
        (conv(8, 8), {"input_size": (8, 8, 6)}, "input_size: maps of 8 x 6 pixels at '0'"),
        (conv(8, 8), {"input_size": 8}, "input_size: got 8"),
        (conv(8, 8), {"input_size": (8, 0, 0)}, "input_size: got 0"),
        (conv(8, 8), {"block": "G"}, "block: .*G"),
        (conv(8, 8), {"theta": "0"}, "theta: got '0'"),
        (
            nn.Sequential(conv(8, 8), conv(8, 6)),
            {"block": [Kernel("gc", 3, 4)], "most": 0},
            "channels: 8 channels to 6 by GC3-g4",
        ),
        (
            nn.Sequential(conv(8, 8), conv(8, 8, stride=2)),
            {"block": [Kernel("pw")], "most": 0},
            "block: no kernel can have the stride of '1.0'",
        ),
        (
            nn.Sequential(Bottleneck(8, 2, 1), Bottleneck(8, 2, 1), Bottleneck(8, 4, 2)),
            {"input_size": (8, 64, 64), "theta": 0.9, "alpha": -20, "most": 9},
            "model: the stage of .* has one bottleneck",
        ),
    ],
    ids=range(20),
)
def test_models_that_cannot_be_optimized_are_refused(model, options, message):
    options = {"input_size": IMAGE, **options}
    with pytest.raises(ArgumentError, match=message):
        accelviz.convolution.optimize(model, **options)


@pytest.mark.parametrize("page", ["bits.md", "convolution.md"])
def test_the_pages_code_runs_as_printed(page):
    text = (Path(__file__).parents[1] / "docs" / page).read_text("utf-8")
    blocks = re.findall(r"```python\n(import torch.*?)```", text, re.DOTALL)
    assert blocks
    for code in blocks:
        names = {}
        exec(code.replace("torch.compile(layer, fullgraph=True)", "layer"), names)  # slow
        for line in re.findall(r"print\(report\)  # (.*) \.\.\.", code):
            assert line in str(names["report"])
        if "levels" in names:
            assert names["levels"].dtype == torch.int32


def test_a_stream_at_address_0_is_the_default_one(monkeypatch):
    """PyTorch's ExternalStream takes a stream of its pool for 0, which nothing waits for."""
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda *about: ("external", *about))
    monkeypatch.setattr(torch.cuda, "default_stream", lambda *about: ("default", *about))
    assert stream_of(0, "cuda:1") == ("default", "cuda:1")
    assert stream_of(77, "cuda:1") == ("external", 77, "cuda:1")
