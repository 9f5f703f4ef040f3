"""What is no CUDA, and what of CUDA stays out, is refused with what to use instead."""

import pytest

import accelviz
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import compiles_for_a_gpu, kernel

pytestmark = needs_compiler

#: Refused by CUDA and here; a word of what is said.
NO_CUDA = {
    "atomicMax(f, 1.0f);": "for a float, loop over atomicCAS",
    "atomicMin(d, 1.0);": "atomicMin takes the address of an int",
    "atomicSub(f, 1.0f);": "let atomicAdd add the negative",
    "atomicSub(u, 1ull);": "let atomicAdd add the negative",
    "atomicAdd(l, 1ll);": "cast the address to unsigned long long",
    "atomicAdd(s, (short)1);": "atomicAdd takes the address of",
    "atomicExch(d, 1.0);": "exchange its bits",
    "atomicCAS(f, 0.0f, 1.0f);": "compare its bits",
    "atomicInc(i, 5);": "takes the address of an unsigned",
    "atomicXor(f, 1.0f);": "takes the address of an int, unsigned",
    "i[0] = min(u[0], i[0]);": "ambiguous",
    "f[0] = max(f[0], i[0]);": "ambiguous",
    "i[0] = __shfl_down(i[0], 1);": "__shfl_down_sync",
    "struct S { int a; } v{1}; v = __shfl_sync(0xffffffffu, v, 0);": "one by one",
    "float2 v = 1.0f; f[0] = v.x;": "conversion from",
    "i[0] = frobnicate(i[0]);": "check how 'frobnicate' is spelt",
    "half x; i[0] = sizeof(x);": "#include <cuda_fp16.h>",
}
POINTERS = "int *i, unsigned long long *u, long long *l, float *f, double *d, short *s"


@pytest.mark.parametrize("statement", NO_CUDA)
def test_what_is_no_cuda_is_refused_with_what_is(statement, monkeypatch):
    code = kernel(f"    {statement}", POINTERS)
    with pytest.raises(KernelError, match=r"kernel.cu:2: it does not compile") as caught:
        accelviz.emulate(code, 1, 1, *[None] * 6)
    assert NO_CUDA[statement] in str(caught.value)
    assert "accelviz/emulator" not in str(caught.value), "only the student's own file is named"
    assert not compiles_for_a_gpu(code, monkeypatch)


#: What is CUDA and not in the emulator: what to use instead.
OUTSIDE = {
    "#include <mma.h>": "a function of fragments.cuh",
    "#include <cub/cub.cuh>": "shuffles, shared memory or cooperative_groups",
    "#include <thrust/device_vector.h>": "shuffles, shared memory or cooperative_groups",
    "#include <cuda/pipeline>": "plain loads and __syncthreads",
    "#include <cuda/atomic>": "CUDA's own atomics",
    "#include <cuda/std/limits>": "libcu++",
    "#include <curand_kernel.h>": "draw the random numbers in Python",
    "#include <cublas_v2.h>": "outside of the kernel",
    "__device__ float f(cudaTextureObject_t t) { return tex2D<float>(t, 0, 0); }": "no textures",
    '__device__ int lane() { int x; asm("mov.u32 %0, %%laneid;" : "=r"(x)); return x; }': "no PTX",
    "__device__ void f() { nvcuda::wmma::fill_fragment(0, 0); }": "no wmma",
    "__global__ void child() {} __device__ void f() { child<<<1, 32>>>(); }": "launches another",
    "int main() { void *p; cudaMalloc(&p, 4); }": "the kernels alone",
    "__device__ void f() { std::vector<int> v; }": "in place of C++'s library",
    "__device__ float f() { union { float4 v; float x; } u; return u.x; }": "reinterpret_cast",
    "#include <cooperative_groups.h>\n"
    "__device__ void f() { cooperative_groups::this_grid().sync(); }": "launch a second one",
    "#include <cooperative_groups.h>\n"
    "__device__ int f() { return cooperative_groups::reduce(0, 0); }": "/reduce.h>",
}


@pytest.mark.parametrize("source", OUTSIDE)
def test_what_stays_out_is_refused_with_what_to_use_instead(source):
    code = f"{source}\n{kernel('')}"
    line = source.count("\n") + 1
    with pytest.raises(KernelError, match=rf"kernel.cu:{line}: it does not compile") as caught:
        accelviz.emulate(code, 1, 1, None, kernel="k")
    assert OUTSIDE[source] in str(caught.value)
