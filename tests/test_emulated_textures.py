"""Textures and surfaces in the emulator."""

import re

import numpy as np
import pytest

from accelviz import emulate
from accelviz.emulator import Texture
from accelviz.errors import ArgumentError, KernelError
from tests.commands import command
from tests.compilers import needs_compiler
from tests.vocabulary import compiles_for_a_gpu

pytestmark = needs_compiler

SAMPLED = """extern "C" __global__ void k(cudaTextureObject_t t, const float2 *at, float *Y,
                             int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) Y[i] = tex2D<float>(t, at[i].x, at[i].y);
}
"""
SURFACE = """extern "C" __global__ void k(cudaSurfaceObject_t s, int width, int mistake) {
    const int x = threadIdx.x, y = blockIdx.x, to = x + mistake;
    if (x >= width) return;
    const float2 v = surf2Dread<float2>(s, x * sizeof(float2), y);
    surf2Dwrite(make_float2(v.y, v.x), s, to * sizeof(float2), y);
}
"""
OTHERS = """extern "C" __global__ void k(cudaTextureObject_t line, cudaTextureObject_t cube,
                  cudaTextureObject_t layers, cudaTextureObject_t bytes, float *Y, uchar4 *Z) {
    const int t = threadIdx.x;
    Y[t] = tex1Dfetch<float>(line, t - 1) + 10 * tex1D<float>(line, t + 0.5f);
    Y[32 + t] = tex3D<float>(cube, t % 4 + 0.5f, t / 4 % 4 + 0.5f, t / 16 + 0.5f);
    Y[64 + t] = tex2DLayered<float>(layers, t % 4 + 0.5f, t / 16 + 0.5f, t / 4 % 4);
    tex2D(Z + t, bytes, (t % 4 + 1.5f) / 4, (t / 4 + 0.5f) / 8);
}
"""
READ_AND_WRITTEN = """extern "C" __global__ void k(cudaTextureObject_t t, float *Y) {
    Y[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x) + 10;
}
"""
HALVES = """extern "C" __global__ void k(cudaSurfaceObject_t low, cudaSurfaceObject_t high) {
    const int x = threadIdx.x * sizeof(float), y = x + 4 * sizeof(float);
    surf1Dwrite(surf1Dread<float>(low, x) + 10, low, x);
    surf1Dwrite(surf1Dread<float>(high, y) + 20, high, y);
}
"""


def index(i, size, address):
    """Return the element that an index means, and whether it counts."""
    if address == "border":
        return np.clip(i, 0, size - 1), (i >= 0) & (i < size)
    if address == "clamp":
        return np.clip(i, 0, size - 1), True
    i = i % (size if address == "wrap" else 2 * size)
    return np.where(i < size, i, 2 * size - 1 - i), True


def sampled(array, at, address, linear, normalized):
    """Return the texture's values at coordinates, in float64."""
    height, width = array.shape
    x, y = (np.float64(at) * ((width, height) if normalized else (1, 1))).T
    x, y = (x - 0.5, y - 0.5) if linear else (x, y)
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    total = np.zeros(len(at))
    for dx, dy in np.ndindex(2, 2) if linear else ((0, 0),):
        weight = np.ones(len(at))
        if linear:
            weight = np.abs(1 - dx - (x - left)) * np.abs(1 - dy - (y - top))
        i, in_row = index(left + dx, width, address)
        j, in_column = index(top + dy, height, address)
        total += weight * array[j, i] * in_row * in_column
    return total


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("address", ["clamp", "border", "wrap", "mirror"])
def test_coordinates_outside_are_addressed_as_the_texture_says(address, linear):
    rng = np.random.default_rng(0)
    array = rng.random((5, 7), np.float32)
    normalized = address in ("wrap", "mirror")
    at = rng.integers(-64, 192, (300, 2)) / 64 * (1 if normalized else 5)  # exact in 8 bits
    at, Y = np.float32(at), np.zeros(300, np.float32)
    texture = Texture(array, address=address, linear=linear, normalized=normalized)
    emulate(SAMPLED, 10, 32, texture, at, Y, 300, unwritten=("Y",))
    expected = sampled(array, at, address, linear, normalized)
    np.testing.assert_allclose(Y, expected, atol=0.02 if normalized and linear else 1e-6)


def test_surfaces_are_read_and_written():
    array = np.random.default_rng(0).random((3, 20, 2), np.float32)
    before = array.copy()
    outputs = emulate(SURFACE, 3, 32, Texture(array, channels=2), 20, 0)
    assert outputs["s"] is array
    np.testing.assert_array_equal(array, before[..., ::-1])


def test_only_elements_that_a_surface_changes_are_written_back():
    A = np.arange(4, dtype=np.float32)
    emulate(READ_AND_WRITTEN, 1, 4, Texture(A), A)
    np.testing.assert_array_equal(A, [10, 11, 12, 13])
    A = np.arange(8, dtype=np.float32)
    emulate(HALVES, 1, 4, Texture(A), Texture(A))
    np.testing.assert_array_equal(A, [10, 11, 12, 13, 24, 25, 26, 27])


def test_textures_may_be_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    A = torch.arange(8, dtype=torch.float32)
    outputs = emulate(HALVES, 1, 4, Texture(A), Texture(np.zeros(8, np.float32)))
    np.testing.assert_array_equal(A.numpy(), [10, 11, 12, 13, 4, 5, 6, 7])
    np.testing.assert_array_equal(outputs["low"], A.numpy())


@pytest.mark.parametrize("seed", [0, 1])
def test_mistakes_with_surfaces_are_named(seed):
    texture = Texture(np.zeros((3, 20, 2), np.float32), channels=2)
    with pytest.raises(KernelError, match=r"kernel.cu:[45]: a race: .* s\["):
        emulate(SURFACE, 3, 32, texture, 20, 1, seed=seed)
    with pytest.raises(KernelError, match=r"kernel.cu:5: out of bounds: .*outside of a surface"):
        emulate(SURFACE, 3, 32, texture, 20, 20, seed=seed)
    with pytest.raises(KernelError, match=r"kernel.cu:4: .*a texture or surface that is none"):
        emulate(SURFACE, 3, 32, 0, 20, 0, seed=seed)


def test_textures_of_one_and_three_axes_layers_and_bytes():
    rng = np.random.default_rng(0)
    line, cube = rng.random(32, np.float32), rng.random((2, 4, 4), np.float32)
    layers, pixels = rng.random((4, 2, 4), np.float32), rng.integers(0, 255, (8, 4, 4), np.uint8)
    Y, Z = np.zeros((3, 32), np.float32), np.zeros((32, 4), np.uint8)
    colors = Texture(pixels, channels=4, address="wrap", normalized=True)
    emulate(OTHERS, 1, 32, Texture(line), Texture(cube), Texture(layers), colors, Y, Z)
    np.testing.assert_allclose(Y[0], np.append(0, line[:-1]) + 10 * line, rtol=1e-6)
    np.testing.assert_array_equal(Y[1], cube.ravel())
    np.testing.assert_array_equal(Y[2].reshape(2, 4, 4), layers.swapaxes(0, 1))
    np.testing.assert_array_equal(Z.reshape(8, 4, 4), np.roll(pixels, -1, axis=1))
    scaled = Texture(np.uint8([[0, 51, 255]]), as_float=True)
    at, shares = np.float32([[0, 0], [1, 0], [2, 0]]), np.zeros(3, np.float32)
    emulate(SAMPLED, 1, 32, scaled, at, shares, 3)
    np.testing.assert_allclose(shares, [0, 0.2, 1])


@pytest.mark.parametrize(
    "texture",
    [
        Texture(np.zeros((4, 4))),
        Texture(np.zeros((4, 4), np.float32), channels=3),
        Texture(np.zeros((4, 4), np.float32), channels=2),
        Texture(np.zeros((4, 4), np.float32), address="around"),
        Texture(np.zeros((4, 4), np.int32), linear=True),
        Texture(np.zeros((0, 4), np.float32)),
        Texture(np.zeros((4, 4), np.int32), as_float=True),
    ],
)
def test_textures_that_no_gpu_has_are_refused(texture):
    with pytest.raises(ArgumentError, match=r"^t: "):
        emulate(SAMPLED, 1, 32, texture, np.zeros((1, 2), np.float32), np.zeros(1, np.float32), 1)


def test_a_texture_is_no_pointer():
    texture = Texture(np.zeros((4, 4), np.float32))
    with pytest.raises(ArgumentError, match="Y: a texture for .*cudaTextureObject_t"):
        emulate(SAMPLED, 1, 32, texture, np.zeros((1, 2), np.float32), texture, 1)
    with pytest.raises(ArgumentError, match="device='emulator'"):
        emulate(SURFACE, 1, 32, texture, 4, 0, device="cuda")


FETCHES = {
    "tex1Dfetch": "t, 0",
    "tex1D": "t, 0.5f",
    "tex2D": "t, 0.5f, 0.5f",
    "tex3D": "t, 0.5f, 0.5f, 0.5f",
    "tex1DLayered": "t, 0.5f, 0",
    "tex2DLayered": "t, 0.5f, 0.5f, 0",
}
#: (type that a kernel reads, texture, words of the message; "" if it is right)
TYPES = [
    ("int", "texture:ones:float32:1x1x1", "reads int from a texture of float,"),
    ("float", "texture:ones:int32:1x1x1", "reads float from a texture of int,"),
    ("float", "texture:ones:uint8:1x1x1", "reads float from a texture of uchar,"),
    ("uchar4", "texture,4:ones:float16:1x1x4", "reads uchar4 from a texture of half4,"),
    (
        "int",
        "texture,as_float:ones:int16:1x1x1",
        "reads int from a texture of short read as floats",
    ),
    ("float4", "texture,2:ones:float32:1x1x2", "reads float4 from a texture of float2,"),
    ("short2", "texture:ones:int16:1x1x1", "reads short2 from a texture of short,"),
    ("int", "texture:ones:uint8:1x1x1", ""),
    ("unsigned", "texture,4:ones:int32:1x1x4", ""),
    ("float", "texture:ones:float16:1x1x1", ""),
    ("float2", "texture,as_float,4:ones:uint16:1x1x4", ""),
]


@pytest.mark.long
@pytest.mark.parametrize(("type_", "texture", "words"), TYPES)
@pytest.mark.parametrize("form", ["result = {0}<{1}>({2})", "{0}(&result, {2})"])
def test_a_type_that_the_texture_does_not_have_is_an_error(
    type_, texture, words, form, tmp_path, capsys
):
    calls = "\n".join(
        f"    if (which == {i}) {form.format(name, type_, arguments)};"
        for i, (name, arguments) in enumerate(FETCHES.items())
    )
    kernel = f"__global__ void k(cudaTextureObject_t t, {type_} *Y, int which) {{\n"
    kernel += f"    {type_} result;\n{calls}\n    *Y = result;\n}}\n"
    (tmp_path / "k.cu").write_text(kernel)
    dtype = {"int": "int32", "unsigned": "uint32", "uchar4": "uint8", "short2": "int16"}
    output = f"out:{dtype.get(type_, 'float32')}:4"
    for which in range(len(FETCHES)):
        launch = "--grid", 1, "--block", 1, texture, output, which
        text, status = command(capsys, "check", tmp_path / "k.cu", *launch)
        assert status == bool(words), text
        assert not words or (f"k.cu:{which + 3}: error" in text and words in text), text


@pytest.mark.parametrize("read", ["tex1Dfetch(Y + i", "tex1D(Y + i"])
def test_a_result_that_is_written_through_a_pointer_is_a_store(read):
    kernel = "__global__ void k(cudaTextureObject_t t, float *Y, int i) {"
    code = f"{kernel}\n    {read}, t, threadIdx.x);\n}}\n"
    X, Y = Texture(np.arange(4, dtype=np.float32) + 5), np.zeros(2, np.float32)
    assert emulate(code, 1, 1, X, Y, 1)["Y"].tolist() == [0, 5]
    with pytest.raises(KernelError, match=r"kernel.cu:2: out of bounds: .* writes Y\[2\]"):
        emulate(code, 1, 1, X, Y, 2)
    with pytest.raises(KernelError, match=r"kernel.cu:2: a race: .* at kernel.cu:2"):
        emulate(code, 1, 2, X, Y, 1)


def test_a_texture_that_a_kernel_makes_up_is_none():
    code = """struct Made {
        float texels[1024];
        unsigned long long magic;
        unsigned size[3], dimensions, channels, bytes, kind, address, linear, normalized, as_float;
    };
    __device__ __align__(1024) Made made = {
        {0}, 0x616363656c766978ull, {4, 1, 1}, 1, 256, 4, 'f', 0, 0, 0, 0};
    __global__ void k(float *Y) { *Y = tex1Dfetch<float>((cudaTextureObject_t)&made, 0); }"""
    with pytest.raises(KernelError, match="uses a texture or surface that is none"):
        emulate(code, 1, 1, np.zeros(1, np.float32))


def test_types_that_no_texture_has_are_refused(tmp_path, capsys):
    kernel = "__global__ void k(cudaTextureObject_t t, double *Y) {\n"
    (tmp_path / "k.cu").write_text(kernel + "    *Y = tex1Dfetch<double>(t, 0);\n}\n")
    launch = "--grid", 1, "--block", 1, "texture:ones:float32:1", "out:float64:1"
    text, status = command(capsys, "check", tmp_path / "k.cu", *launch)
    assert status == 1, text
    assert re.search(r"k\.cu:2: error: .*__hiloint2double", text), text


@pytest.mark.parametrize("code", [SAMPLED, SURFACE, OTHERS])
def test_kernels_with_textures_compile_for_a_gpu(code, monkeypatch):
    assert compiles_for_a_gpu(code, monkeypatch)
