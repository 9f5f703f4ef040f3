"""Inline PTX in the emulator: a table of instructions, and refusals in one sentence."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import check_planted, compiles_for_a_gpu, kernel, signed, words

pytestmark = needs_compiler

U32 = (1 << 32) - 1


def lop3(a, b, c, table):
    bits = (((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) for i in range(32))
    return sum((table >> bit & 1) << i for i, bit in enumerate(bits))


def bfe(x, first, count):
    last = min(first + count - 1, 31)
    sign = x >> last & 1 if count else 0
    bits = [x >> first + i & 1 if i < count and first + i < 32 else sign for i in range(32)]
    return sum(bit << i for i, bit in enumerate(bits))


def bfi(a, b, first, count):
    mask = ((1 << count) - 1) << first & U32
    return b & ~mask | (a << first & mask)


def prmt(a, b, c):
    both = b << 32 | a
    return sum((both >> 8 * (c >> 4 * k & 7) & 255) << 8 * k for k in range(4))


def byte_distance(a, b):
    return sum(abs((a >> 8 * k & 255) - (b >> 8 * k & 255)) for k in range(4))


#: An instruction of words %1, %2, %3, and its result for a, b, c.
WORDS = {
    "mov.u32 %0, %1": lambda a, b, c: a,
    "add.u32 %0, %1, %2": lambda a, b, c: a + b,
    "sub.s32 %0, %1, 17": lambda a, b, c: a - 17,
    "mul.lo.u32 %0, %1, %2": lambda a, b, c: a * b,
    "mul.hi.u32 %0, %1, %2": lambda a, b, c: a * b >> 32,
    "mad.lo.s32 %0, %1, %2, %3": lambda a, b, c: a * b + c,
    "and.b32 %0, %1, 0xff0": lambda a, b, c: a & 0xFF0,
    "xor.b32 %0, %1, %2": lambda a, b, c: a ^ b,
    "not.b32 %0, %1": lambda a, b, c: ~a,
    "min.s32 %0, %1, %2": lambda a, b, c: min(signed(a), signed(b)),
    "max.u32 %0, %1, %2": lambda a, b, c: max(a, b),
    "shl.b32 %0, %1, 7": lambda a, b, c: a << 7,
    "shl.b32 %0, %1, 33": lambda a, b, c: 0,
    "shr.u32 %0, %1, 5": lambda a, b, c: a >> 5,
    "shr.u32 %0, %1, 40": lambda a, b, c: 0,
    "shr.s32 %0, %1, 40": lambda a, b, c: signed(a) >> 31,
    "lop3.b32 %0, %1, %2, %3, 0xe8": lambda a, b, c: lop3(a, b, c, 0xE8),
    "bfe.u32 %0, %1, 5, 9": lambda a, b, c: a >> 5 & 511,
    "bfe.s32 %0, %1, 5, 9": lambda a, b, c: bfe(a, 5, 9),
    "bfe.s32 %0, %1, 28, 9": lambda a, b, c: bfe(a, 28, 9),
    "bfi.b32 %0, %1, %2, 4, 11": lambda a, b, c: bfi(a, b, 4, 11),
    "prmt.b32 %0, %1, %2, 0x5140": lambda a, b, c: prmt(a, b, 0x5140),
    "popc.b32 %0, %1": lambda a, b, c: a.bit_count(),
    "clz.b32 %0, %1": lambda a, b, c: 32 - a.bit_length(),
    "bfind.u32 %0, %1": lambda a, b, c: a.bit_length() - 1,
    "vabsdiff4.u32.u32.u32.add %0, %1, %2, %3": lambda a, b, c: c + byte_distance(a, b),
    "brev.b32 %0, %1": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "shf.l.wrap.b32 %0, %1, %2, 7": lambda a, b, c: (b << 32 | a) << 7 >> 32,
    "{ .reg .pred p; setp.lt.u32 p, %1, %2; selp.b32 %0, %1, %3, p; }": lambda a, b, c: (
        a if a < b else c
    ),
    "{ .reg .b32 t; add.u32 t, %1, %2; xor.b32 %0, t, %3; }": lambda a, b, c: a + b ^ c,
    "{ .reg .pred q; setp.ge.s32 q, %1, 0; mov.u32 %0, %2; @!q mov.u32 %0, %3; }": lambda a, b, c: (
        c if a >> 31 else b
    ),
    "abs.s32 %0, %1": lambda a, b, c: abs(signed(a)),
    "cvt.u32.u8 %0, %1": lambda a, b, c: a & 255,
    "cvt.s32.s16 %0, %1": lambda a, b, c: (a & 0xFFFF) - (a >> 15 & 1) * 0x10000,
    "{ .reg .b64 t; mul.wide.u32 t, %1, %2; shr.u64 t, t, 32; cvt.u32.u64 %0, t; }": (
        lambda a, b, c: a * b >> 32
    ),
    "{ .reg .f32 f; cvt.rn.f32.u32 f, 77; cvt.rzi.s32.f32 %0, f; }": lambda a, b, c: 77,
    "{ .reg .pred p; setp.ge.s32 p, 1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }": (
        lambda a, b, c: U32
    ),
    "match.any.sync.b32 %0, 5, 0xffffffff": lambda a, b, c: U32,
    "{ griddepcontrol.wait; mov.u32 %0, %2; }": lambda a, b, c: b,
    "mov.u32 %0, %%tid.x": lambda a, b, c: None,
    "mov.u32 %0, %%laneid": lambda a, b, c: None,
}
WORDS_CODE = kernel(
    "    const int i = threadIdx.x;\n    unsigned r;\n"
    + "\n".join(
        f'    asm volatile("{text}{";" * (text[-1] != "}")}" : "=r"(r)\n'
        f'                 : "r"(a[i]), "r"(b[i]), "r"(c[i]));\n'
        f"    out[i * {len(WORDS)} + {number}] = r;"
        for number, text in enumerate(WORDS)
    ),
    "const unsigned *a, const unsigned *b, const unsigned *c, unsigned *out",
)


def test_instructions_of_words():
    a, b, c = (words(32, seed) for seed in range(3))
    out = emulate(WORDS_CODE, 1, 32, a, b, c, np.zeros((32, len(WORDS)), np.uint32))["out"]
    for lane, row in enumerate(out.tolist()):
        inputs = [int(x[lane]) for x in (a, b, c)]
        for got, (text, expected) in zip(row, WORDS.items(), strict=True):
            result = expected(*inputs)
            assert got == (lane if result is None else result & U32), (text, lane)


MEMORY = r"""#define COMMIT() asm volatile("cp.async.commit_group;\n" ::)
#define WAIT(N) asm volatile("cp.async.wait_group %0;\n" ::"n"(N))
#define COPY(to, from, bytes)                                       \
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2;\n" ::   \
                 "r"(to), "l"(from), "n"(bytes))
extern "C" __global__ void k(const float *X, float *Y, int *Z) {
    __shared__ __align__(16) float tile[128];
    extern __shared__ float dynamic[];
    const unsigned i = threadIdx.x;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&tile[4 * i]));
    COPY(to, &X[4 * i], 16);
    COMMIT();
    WAIT(0);
    asm volatile("bar.sync 0;" ::: "memory");
    float a, b, c, d;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(a) : "l"(X + i));
    asm volatile("ld.shared.f32 %0, [%1+4];" : "=f"(b) : "r"(to));
    asm volatile("st.shared.f32 [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(dynamic + i)),
                 "f"(b));
    Y[i] = a + dynamic[i];
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ne.b32 p, %5, 0;\n\t"
                 "mov.b32 %0, 0f3F800000;\n\t"
                 "@p ld.global.v4.f32 {%0, %1, %2, %3}, [%4+16];\n"
                 "}\n"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(X), "r"(1));
    asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(Y + 32 + 2 * i), "f"(b), "f"(d));
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(Y + 96), "f"(1.0f) : "memory");
    asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(a) : "f"(b), "f"(c));
    if (i == 0) Y[97] = a;
    int r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(i), "r"(1));
    Z[i] = r;
    asm volatile("shfl.sync.down.b32 %0, %1, 1, 0x181f, 0xffffffff;" : "=r"(r) : "r"(i));
    Z[32 + i] = r;
    asm volatile("atom.global.add.s32 %0, [%1], 2;" : "=r"(r) : "l"(Z + 64));
    asm volatile("membar.gl;");
}
"""


def launch(code, seed=0):
    X, Y, Z = np.arange(128, dtype=np.float32), np.zeros(98, np.float32), np.zeros(65, np.int32)
    return emulate(code, 1, 32, X, Y, Z, shared_bytes=128, seed=seed)


def test_instructions_of_memory_and_warps():
    out, lane = launch(MEMORY), np.arange(32)
    np.testing.assert_array_equal(out["Y"][:32], lane + 4 * lane + 1)
    np.testing.assert_array_equal(out["Y"][32:96].reshape(32, 2), [[5, 7]] * 32)
    assert out["Y"][96:].tolist() == [32, 4 + 5 * 6]
    np.testing.assert_array_equal(out["Z"][:32], lane ^ 1)
    np.testing.assert_array_equal(out["Z"][32:64], np.where(lane % 8 == 7, lane, lane + 1))
    assert out["Z"][64] == 64


@pytest.mark.parametrize("code", [WORDS_CODE, MEMORY], ids=["words", "memory"])
def test_the_sources_are_cuda(code, monkeypatch):
    assert compiles_for_a_gpu(code, monkeypatch)


#: (text, its replacement, part of the message).
MISTAKES = [
    ("    WAIT(0);", "", "nothing waits for the asynchronous copy"),
    ("[%1+4]", "[%1+512]", "out of bounds"),
    ("[%4+16]", "[%4+512]", "kernel.cu:21: out of bounds: thread 0 of block 0 reads X[128]"),
    (
        'red.global.add.f32 [%0], %1;" ::"l"(Y + 96), "f"(1.0f)',
        'st.global.f32 [%0], %1;" ::"l"(Y + 96), "f"((float)i)',
        "a race",
    ),
    ('"r"(i), "r"(1)', '"r"(Z[65]), "r"(1)', "reads Z[65]"),
    ("membar.gl", "bar.sync 1, 64", "this PTX: `bar.sync 1, 64`: use __syncthreads"),
    ("membar.gl", "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8", "nvcuda::wmma of <mma.h>"),
    ("membar.gl", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "nvcuda::wmma of <mma.h>"),
    ("membar.gl", "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32", "nvcuda::wmma of <mma.h>"),
    ("membar.gl", "frobnicate.u32", "`frobnicate.u32`"),
    ("membar.gl", "mov.u32 %0, 1", "`mov.u32 %0, 1`"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_and_other_instructions_are_named(mistake):
    check_planted(MEMORY, mistake, launch)


FLAGS = r"""extern "C" __global__ void k(int *ready, int *data, int *Y) {
    int r;
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 7;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(data));
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(ready) : "memory");
    } else {
        do {
            asm volatile("atom.acquire.gpu.global.add.s32 %0, [%1], 0;" : "=r"(r) : "l"(ready));
        } while (!r);
        Y[threadIdx.x] = data[threadIdx.x];
    }
}
"""


def test_atomics_have_the_order_that_they_say():
    def run(code):
        ready, data, Y = (np.zeros(n, np.int32) for n in (1, 32, 32))
        return emulate(code, 2, 32, ready, data, Y)["Y"]

    assert run(FLAGS).tolist() == [7] * 32
    assert run(FLAGS.replace("red.release.gpu.global.add.s32", "st.release.gpu.global.s32")).sum()
    for order in ("red.release", "atom.acquire"):
        relaxed = order.partition(".")[0] + ".relaxed"
        with pytest.raises(KernelError, match=r"a race: .* data\["):
            run(FLAGS.replace(order, relaxed))


REGISTERS = """#include <cuda/ptx>
extern "C" __global__ void k(unsigned *Y) {
    const unsigned t = cuda::ptx::get_sreg_tid_x();
    Y[t] = cuda::ptx::get_sreg_laneid() + 100 * cuda::ptx::get_sreg_ntid_x() +
           __popc(cuda::ptx::get_sreg_lanemask_lt());
}
"""


def test_special_registers_of_cuda_ptx():
    Y = np.zeros(64, np.uint32)
    emulate(REGISTERS, 1, 64, Y)
    assert Y.tolist() == [6400 + 2 * (t % 32) for t in range(64)]


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        ("mbarrier_init(&bar, 1)", "use cuda::barrier and __threadfence"),
        ("cp_async_bulk(cuda::ptx::space_global, Y, &bar, 16)", "copy with cuda::memcpy_async"),
        ("tcgen05_alloc(&bar, 1)", "nvcuda::wmma"),
    ],
)
def test_other_functions_of_cuda_ptx_are_refused_in_one_sentence(call, advice):
    code = REGISTERS.replace(
        "    Y[t]", f"    __shared__ long long bar; cuda::ptx::{call};\n    Y[t]"
    )
    with pytest.raises(KernelError, match=rf"kernel.cu:4: .*special registers: .*{advice}"):
        emulate(code, 1, 32, np.zeros(32, np.uint32))


def test_instructions_that_are_compiled_out_are_not_refused():
    last = '    asm volatile("membar.gl;");'
    excluded = f'#if __CUDA_ARCH__ >= 1000\n    asm("tcgen05.alloc;");\n#endif\n{last}'
    with pytest.warns(UserWarning, match="not compiled for sm_90: line 39"):
        launch(MEMORY.replace(last, excluded))
