"""Declarations that the emulator takes where CUDA does, symbols and default arguments."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import ArgumentError, KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import compiles_for_a_gpu

pytestmark = needs_compiler

#: Declarations of 64 shared floats `s`, in the kernel and, after a |, before it.
ALIGNED = (
    "__shared__ __align__(16) float s[64];",
    "__shared__ alignas(16) float s[64];",
    "__shared__ alignas(double) float s[64];",
    "__align__(16) __shared__ float s[64];",
    "alignas(16) __shared__ float s[64];",
    "__shared__ float __align__(16) s[64];",
    "static __shared__ __align__(16) float s[64];",
    "__shared__ float s alignas(16)[64];",
    "__shared__ __align__(alignof(float4)) char raw[256]; float *s = (float *)raw;",
    "extern __shared__ __align__(16) float s[];",
    "extern __align__(16) __shared__ float s[];",
    "__shared__ extern float s[];",
    "extern __shared__ __align__(16) float rows[][16][1]; float *s = rows[0][0];",
    "|__shared__ __align__(16) float s[64];",
    "|static __device__ __align__(16) float s[64];",
    "|__device__ alignas(16) float s[64];",
    "|namespace { __device__ float s[64]; }",
    "__shared__ ALIGNED float s[64];|#define ALIGNED alignas(16)",
    "__shared__ P p; float *s = p.a;|struct __align__(16) P { float a[64]; };",
    "struct __align__(8) P { float a[64]; }; __shared__ P p; float *s = p.a;",
    "__shared__ P p; float *s = p.a;|typedef struct __builtin_align__(16) { float a[64]; } P;",
)


@pytest.mark.parametrize("declaration", ALIGNED)
def test_alignment_may_stand_where_cuda_takes_it(declaration, monkeypatch):
    local, _, outer = declaration.partition("|")
    code = f"""{outer}
extern "C" __global__ void k(const float *X, float *Y) {{
    {local}
    s[threadIdx.x] = X[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 16) {{
        reinterpret_cast<float2 *>(Y)[threadIdx.x] = reinterpret_cast<float2 *>(s)[threadIdx.x];
    }}
}}
"""
    X, Y = np.random.default_rng(0).normal(size=(2, 64)).astype(np.float32)
    expected = np.append(X[:32], Y[32:])
    emulate(code, 1, 63, X, Y, shared_bytes=256)
    np.testing.assert_array_equal(Y, expected)
    assert compiles_for_a_gpu(code, monkeypatch)


def test_static_and_managed_variables_are_symbols():
    code = """static __device__ __align__(16) float weights[4];
namespace { __constant__ float offsets[4]; }
__managed__ int counts[2], unused;
__device__ __managed__ float factor = 3;
__global__ void k(float *Y) {
    const int i = threadIdx.x;
    atomicAdd(&counts[i % 2], 1);
    Y[i] = factor * weights[i] + offsets[i];
}
"""
    random = np.random.default_rng(1)
    weights, offsets = random.normal(size=(2, 4)).astype(np.float32)
    symbols = {"weights": weights, "offsets": offsets, "counts": np.ones(2, np.int32)}
    results = emulate(code, 1, 4, np.zeros(4, np.float32), symbols=symbols)
    np.testing.assert_array_equal(results["Y"], np.float32(3) * weights + offsets)
    assert results["counts"].tolist() == [3, 3]


DEFAULTS = """__global__ void k(int *Y, int a, int n = -4, float b = 2.5e1f, bool c = true,
                  const int *p = nullptr, unsigned mask = 0xffu, double d = .5, char e = 7) {
    Y[0] = a + n + int(b) + c + (p == nullptr) + mask + int(2 * d) + e;
}
"""


VIRTUAL = """#include <new>
struct Shape { __device__ virtual float area() const { return 0; } };
struct Square : Shape {
    float side;
    __device__ Square(float side) : side(side) {}
    __device__ float area() const override { return side * side; }
};
__global__ void areas(const float *X, float *Y) {
    __shared__ __align__(16) char shapes[64][16];
    const int t = threadIdx.x;
    t % 2 ? new (shapes[t]) Shape : new (shapes[t]) Square(X[t]);
    __syncthreads();
    Y[t] = ((Shape *)shapes[63 - t])->area();
}
"""


def test_virtual_functions_are_found_by_pointers_that_are_watched():
    X, Y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    emulate(VIRTUAL, 1, 64, X, Y)
    np.testing.assert_array_equal(Y, np.where(X % 2, (63 - X) ** 2, 0))
    with pytest.raises(KernelError, match="reads shapes.*which nothing has written before"):
        emulate(VIRTUAL.replace("__syncthreads();", ""), 1, 64, X, Y)


OVERLOADS = """
__global__ void k(const float *__restrict__ X, float Y[], const int n) { Y[0] = X[0] + n; }
__global__ void k(int *, int);
__global__ void k(int *Y, int n) { Y[0] = 2 * n; }
template <typename T> __global__ void f(T *Y, T value) { Y[0] = value; }
template <typename T, int N> __global__ void f(T *Y) { Y[0] = N; }
"""


def test_kernels_of_one_name_are_chosen_by_the_types_of_their_parameters():
    X, Y, Z = np.ones(1, np.float32), np.zeros(1, np.float32), np.zeros(1, np.int32)
    emulate(OVERLOADS, 1, 1, X, n=3, Y=Y, kernel="k(float const *, float*, int)")
    emulate(OVERLOADS, 1, 1, n=3, Y=Z, kernel="k(int *, int n)")
    assert (Y[0], Z[0]) == (4, 6)
    emulate(OVERLOADS, 1, 1, Y, kernel="f<float, 3>(float *)")
    assert Y[0] == 3
    both = r"'k\(const float \*, float \*, int\)' or 'k\(int \*, int\)'"
    with pytest.raises(ArgumentError, match=both):
        emulate(OVERLOADS, 1, 1, Z, 1, kernel="k(double *)")
    with pytest.raises(KernelError, match=f"several kernels of the name 'k'.*{both}"):
        emulate(OVERLOADS, 1, 1, Z, 1, kernel="k")
    with pytest.raises(KernelError, match="names no instance of a template"):
        emulate(OVERLOADS, 1, 1, Y, kernel="f<float>(int)")


def test_default_arguments_may_be_left_out():
    expected = 1000 - 4 + 25 + 1 + 1 + 255 + 1 + 7
    Y = np.zeros(1, np.int32)
    assert emulate(DEFAULTS, 1, 1, Y, 1000)["Y"][0] == expected
    assert emulate(DEFAULTS, 1, 1, Y, 1000, 0, c=False)["Y"][0] == expected + 4 - 1
    with pytest.raises(ArgumentError, match="'a' is missing"):
        emulate(DEFAULTS, 1, 1, Y)
    other = DEFAULTS.replace("-4", "sizeof(int)")
    with pytest.raises(ArgumentError, match="'n' is missing"):
        emulate(other, 1, 1, Y, 1000)


def test_a_parameter_without_members_needs_no_argument():
    code = """struct Doubles {};
template <typename Kind>
__global__ void k(int *out, int n, Kind, int more = 1) { out[0] = sizeof(Kind) + n + more; }"""
    out = np.zeros(1, np.int32)
    assert emulate(code, 1, 1, out, 4, kernel="k<Doubles>")["out"] == [6]
    assert emulate(code, 1, 1, out, 4, None, 3, kernel="k<Doubles>")["out"] == [8]


TEXTURES = """extern "C" __global__ void k(float *Y, cudaTextureObject_t image) {
    Y[threadIdx.x] = tex2DLod<float>(image, 0.5f, threadIdx.x, 1);
}
__global__ void from_array(const float *X, float *Y) { Y[threadIdx.x] = X[threadIdx.x]; }
"""


def test_a_mipmap_is_refused_where_it_is_read_and_other_kernels_run(monkeypatch):
    X, Y = np.ones(32, np.float32), np.zeros(32, np.float32)
    emulate(TEXTURES, 1, 32, X, Y, kernel="from_array")
    assert Y.sum() == 32
    with pytest.raises(KernelError, match=r"kernel.cu:2: .*calls tex2DLod, .*without mipmaps"):
        emulate(TEXTURES, 1, 32, Y, 0, kernel="k")
    assert compiles_for_a_gpu(TEXTURES, monkeypatch)


#: 28 KB of shared memory a kernel, an array behind that of another kernel and before its own.
KERNELS = """namespace a {
static __global__ void first(float *Y) { __shared__ float s[7000]; s[threadIdx.x] = 1; *Y = *s; }
}
__global__ void k(float *Y, int from) {
    __shared__ float s[6144], next[64];
    float *const end = s + 6144 - 32;
    next[threadIdx.x] = 1;
    end[threadIdx.x + from] = threadIdx.x;
    __syncthreads();
    Y[threadIdx.x] = s[6144 - 1 - threadIdx.x] + next[threadIdx.x] - 1;
}
template <int N> __global__ void last(float *Y) {
    __shared__ float s[N];
    s[threadIdx.x] = 1;
    *Y = *s;
}
template __global__ void last<7000>(float *);
"""


def test_a_shared_array_ends_before_those_of_other_kernels_and_of_its_own():
    Y = np.zeros(32, np.float32)
    assert emulate(KERNELS, 1, 32, Y, 0, kernel="k")["Y"].tolist() == [*range(31, -1, -1)]
    with pytest.raises(
        KernelError, match=r"kernel.cu:8: out of bounds: .* s\[6144\], 4 bytes past"
    ):
        emulate(KERNELS, 1, 32, Y, 1, kernel="k")
