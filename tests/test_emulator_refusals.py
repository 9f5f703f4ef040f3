"""What is no CUDA, and what the emulator lacks, is refused in one sentence with what to use."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import ArgumentError, KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import compiles_for_a_gpu, kernel

pytestmark = needs_compiler

#: Code that CUDA and the emulator refuse, and a word of the message.
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
        emulate(code, 1, 1, *[None] * 6)
    assert NO_CUDA[statement] in str(caught.value)
    assert "accelviz/emulator" not in str(caught.value), "only the student's own file is named"
    assert not compiles_for_a_gpu(code, monkeypatch)


#: CUDA that the emulator does not support, and the suggested replacement.
OUTSIDE = {
    "__device__ void f() { thrust::sort(thrust::seq, 0, 0); }": "shuffles, shared memory or coop",
    "#include <cuda/semaphore>": "libcu++",
    "#include <cute/tensor.hpp>": "nvcuda::wmma",
    "__device__ void f() { CUtensorMap *map = nullptr; }": "cg::memcpy_async",
    "__device__ int f() { return __vimax3_s32(1, 2, 3); }": "use max, min and sums",
    "#include <cuda_fp4.h>": "use cuda_fp8.h",
    "#include <curand_mtgp32_kernel.h>": "draw others in Python",
    "__device__ void f() { cublasSgemm(); }": "outside of the kernel",
    "texture<float, 2> t; __device__ float f() { return tex2D(t, 0, 0); }": "of other kinds",
    "__device__ void f() { nvcuda::wmma::fill_fragment(0, 0); }": "#include <mma.h>",
    "__global__ void child() {} __device__ void f() { child<<<1, 32>>>(); }": "launches another",
    "__device__ void f() { void *p; cudaMalloc(&p, 4); }": "the kernels alone",
    "__device__ void f() { std::vector<int> v; }": "in place of C++'s library",
    "union U { float4 v; float x; };\n"
    "__device__ float f(U &u) { U copy = u; return copy.x; }": "copy one of its members",
    "#include <cooperative_groups.h>\n"
    "__device__ int f() { return cooperative_groups::reduce(0, 0); }": "/reduce.h>",
}


@pytest.mark.parametrize("source", OUTSIDE)
def test_what_stays_out_is_refused_with_what_to_use_instead(source):
    use = "    auto g = &f;" if " f(" in source else ""
    code = f"{source}\n{kernel(use)}"
    line = source.count("\n") + 1
    with pytest.raises(KernelError, match=rf"kernel.cu:{line}: it does not compile") as caught:
        emulate(code, 1, 1, None, kernel="k")
    assert OUTSIDE[source] in str(caught.value)


HALVES = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void k(half *h, const __nv_bfloat162 *b) {}
"""
STRUCTURE = "struct S { int4 a; int b; }; __global__ void k(S *s) {}"
TEMPLATE = "template <int N> __global__ void k(float *Y) {}"
MANY = [1.0] * 10**6
PLAIN = "__global__ void k(float *Y, int n) {}"
#: (source, arguments, kernel, part of the message).
MESSAGES = {
    "a list": (PLAIN, (MANY, 1), "k", "a list. Expected: an array of float32"),
    "a list for a number": (PLAIN, (None, MANY), "k", "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, ...]"),
    "a long text": (PLAIN, (None, "x" * 10**6), "k", "for the parameter `int n`"),
    "a long name": (PLAIN, (None, 1), "x" * 10**6, "Expected: 'k'"),
    "many fields": (
        PLAIN,
        (np.zeros(1, [(f"x{i}", "i4") for i in range(3000)]), 1),
        "k",
        "copied",
    ),
    "a long line": (
        f"__global__ void k(float *Y) {{ {'Y[0] = 1; ' * 10**4} Y[0] = frobnicate(1); }}",
        (None,),
        "k",
        "Y[0] = frobnicate(1); } ...`. What to do: check how 'frobnicate' is spelt",
    ),
    "half": (HALVES, (np.zeros(2, np.float32), None), "k", "the parameter `half *h`"),
    "bfloat16": (HALVES, (None, MANY), "k", "the parameter `const __nv_bfloat162 *b`"),
    "half in an error": (
        "#include <cuda_fp16.h>\n__global__ void k(half h) { float2 f = h; }",
        (1,),
        "k",
        "conversion from 'half' to",
    ),
    "aligned vectors": (
        STRUCTURE,
        (np.zeros(2, np.dtype([("a", "i4", 4), ("b", "i4")], align=True)),),
        "k",
        "'itemsize': 32}): CUDA aligns vectors",
    ),
    "unaligned": (
        STRUCTURE,
        (np.zeros(2, np.dtype([("a", "i1"), ("b", "i4")])),),
        "k",
        "align=True) with the members' types in order",
    ),
    "math": (
        '#include "helper_math.h"\n__global__ void k(float2 *Y) { Y[0] = Y[0] + Y[1]; }',
        (None,),
        "k",
        "helper_math.h is not there and may declare it",
    ),
    "header": (
        '#include "mine.h"\n__global__ void k(float *Y) { fill(Y); }',
        (None,),
        "k",
        "pathlib.Path('kernel.cu'), or give its folder by include=",
    ),
    "a member": (
        "struct Sum {};\n__global__ void k(float *Y) { Y[0] = Sum::reduce(Y[0]); }",
        (None,),
        "k",
        "check how 'reduce' is spelt",
    ),
    "unknown argument": (TEMPLATE, (None,), "k<foo>", "'foo', an argument of the template"),
    "wrong argument": (TEMPLATE, (None,), "k<float>", "names no instance of a template"),
    "no template": (PLAIN, (None, 1), "k<float>", "k is no template"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_short_and_in_the_words_of_the_user(name):
    code, arguments, entry, expected = MESSAGES[name]
    with pytest.raises((ArgumentError, KernelError)) as caught:
        emulate(code, 1, 1, *arguments, kernel=entry)
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 1920  # 24 lines of 80
    assert "Narrow" not in str(caught.value)
