"""Vectors, atomics, warps, cooperative groups, printf and assert in the emulator."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.kernels import source
from tests.vocabulary import check_planted, compiles_for_a_gpu, kernel, run, run_on_gpu

pytestmark = needs_compiler

LANES = np.arange(32)


NUMBERS = {"char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8}
NUMBERS |= {"ulong": 8, "longlong": 8, "ulonglong": 8, "float": 4, "double": 8}
VECTORS = [(name, n, size) for name, size in NUMBERS.items() for n in (1, 2, 3, 4)]


def one_vector(i, name, n):
    """Return statements that store a vector type's size, alignment and elements."""
    vector, parts = f"{name}{n}", "xyzw"[:n]
    digits = " + ".join(f"v.{part} * {10**j}" for j, part in enumerate(parts))
    return f"""
    {{
        __shared__ {vector} s[3];
        s[1] = make_{vector}({", ".join("1234"[:n])});
        s[2] = s[1];
        const {vector} v = s[2], w = {{{"1, 2" if n > 1 else "1"}}};
        out[{3 * i}] = sizeof(v);
        out[{3 * i + 1}] = alignof({vector});
        out[{3 * i + 2}] = {digits} + {"w.z" if n > 2 else "0"};
    }}"""


VECTOR_CODE = kernel(
    "    if (threadIdx.x) return;"
    + "".join(one_vector(i, name, n) for i, (name, n, _) in enumerate(VECTORS))
)


def vectors(run):
    return run(VECTOR_CODE, out=np.zeros(3 * len(VECTORS), np.int32))["out"]


def test_vectors_have_cuda_s_sizes_and_alignments():
    for row, (name, n, size) in zip(vectors(run).reshape(-1, 3).tolist(), VECTORS, strict=True):
        alignment = size if n in (1, 3) else min(n * size, 16)
        parts = sum((j + 1) * 10**j for j in range(n))
        assert row == [n * size, alignment, parts], f"{name}{n}"


def test_vectors_move_as_a_gpu_moves_them():
    code = kernel(
        "    three[threadIdx.x] = X[threadIdx.x];\n    four[threadIdx.x] = wide[threadIdx.x];",
        "const float3 *X, float3 *three, const double4 *wide, double4 *four",
    )
    X, wide = np.arange(96, dtype=np.float32), np.arange(128, dtype=np.float64)
    results = run(code, X=X, three=X * 0, wide=wide, four=wide * 0)
    np.testing.assert_array_equal(results["three"], X)
    np.testing.assert_array_equal(results["four"], wide)
    short = {"X": X, "three": X[:95] * 0, "wide": wide, "four": wide * 0}
    with pytest.raises(KernelError, match=r"kernel.cu:2: out of bounds: thread 31 .* writes three"):
        run(code, **short)


def test_indices_are_uint3_and_shared_classes_may_have_constructors():
    head = """struct Count { Count() = default; __device__ Count(int x) : x(x) {} int x; };
__device__ int linear(uint3 index, dim3 size) { return index.x + size.x * (index.y + index.z); }
"""
    body = """
    __shared__ Count all[32];
    const uint3 mine = threadIdx;
    all[threadIdx.x] = Count(linear(mine, blockDim) + linear(blockIdx, dim3(mine)));
    __syncthreads();
    out[threadIdx.x] = all[31 - threadIdx.x].x;"""
    np.testing.assert_array_equal(
        run(kernel(body, head=head), out=np.zeros(32, np.int32))["out"], LANES[::-1]
    )


#: Atomic operations of 64 threads on a number: statement, result and type.
ATOMICS = {
    "atomicAdd(p, t)": (0, 2016, "int"),
    "atomicAdd(p, 1.5f)": (1, 97, "float"),
    "atomicAdd_block(p, 0.25)": (1, 17, "double"),
    "atomicAdd_system(p, 1ull << 33)": (0, 1 << 39, "unsigned long long"),
    "atomicSub(p, t)": (0, (1 << 32) - 2016, "unsigned"),
    "atomicMin(p, -t)": (5, -63, "int"),
    "atomicMax(p, (long long)t << 40)": (-1, 63 << 40, "long long"),
    "atomicMin(p, (unsigned)t)": (7, 0, "unsigned"),
    "atomicMax_block(p, (unsigned long long)t)": (5, 63, "unsigned long long"),
    "atomicInc(p, 9)": (0, 4, "unsigned"),
    "atomicDec(p, 9)": (0, 6, "unsigned"),
    "atomicAnd(p, ~(1 << t / 8))": (0x7FF, 0x700, "int"),
    "atomicOr(p, 1ull << t)": (0, (1 << 64) - 1, "unsigned long long"),
    "atomicXor_system(p, 1u << t % 32 * (t < 32))": (0, (1 << 32) - 1, "unsigned"),
    "atomicExch(p, 2.5f)": (0, 2.5, "float"),
    "atomicExch(p, 7ull)": (0, 7, "unsigned long long"),
    "atomicCAS(p, 0, 3)": (0, 3, "int"),
    "atomicCAS_block(p, 0ull, 1ull << 50)": (0, 1 << 50, "unsigned long long"),
    "atomicCAS(p, (unsigned short)0, (unsigned short)9)": (0, 9, "unsigned short"),
    "add_by_cas(p, 0.5)": (0, 32, "double"),
}
ADD_BY_CAS = source("add_by_cas")
ATOMIC_CODE = kernel(
    "    const int t = threadIdx.x;\n"
    + "\n".join(
        f"    {{ {of} *p = ({of} *)(out + {8 * i}); {call}; }}"
        for i, (call, (_, _, of)) in enumerate(ATOMICS.items())
    )
    + """
    atomicAdd((float2 *)pairs, make_float2(1.0f, 2.0f));
    const float4 before = atomicAdd((float4 *)pairs + 1, make_float4(1.0f, 2.0f, 3.0f, 4.0f));
    atomicAdd(&pairs[8], before.x < 64.0f ? 1.0f : 0.0f);""",
    "unsigned char *out, float *pairs",
    ADD_BY_CAS,
)
DTYPES = {"int": "i4", "unsigned": "u4", "long long": "i8", "unsigned long long": "u8"}
DTYPES |= {"float": "f4", "double": "f8", "unsigned short": "u2"}


def atomics(run):
    start = b"".join(
        np.array(first, DTYPES[of]).tobytes().ljust(8, b"\0") for first, _, of in ATOMICS.values()
    )
    arrays = {"out": np.frombuffer(start, np.uint8).copy(), "pairs": np.zeros(12, np.float32)}
    return run(ATOMIC_CODE, warps=2, **arrays)


def test_atomics_of_each_type_and_scope():
    results = atomics(run)
    for i, (call, (_, last, of)) in enumerate(ATOMICS.items()):
        assert results["out"][8 * i : 8 * i + 8].view(DTYPES[of])[0] == last, call
    assert results["pairs"].tolist() == [64, 128, 0, 0, 64, 128, 192, 256, 64, 0, 0, 0]


WARP = source("warp")


def warp(run, **options):
    return run(WARP, warps=2, out=np.zeros(1280, np.int32), **options)["out"]


def check_warp(results):
    thirds = [sum(1 << lane for lane in range(first, 32, 3)) for first in range(3)]
    rest = [1, 1, 496, -31, 31, 255, -65536, 0]
    for t, row in enumerate(results.reshape(64, 20).tolist()):
        few = t % 32 < 7
        active = [127, 3 + 7] if few else [-128, 0]
        row[0] &= 0xFFFFFFFF
        expected = [thirds[t % 32 % 3], *rest, *active, 10, 1, 0, 1, 0, t % 32 ^ 1, 3, 1, 16]
        assert [bool(x) if i in (12, 13, 14, 15) else x for i, x in enumerate(row)] == expected


@pytest.mark.parametrize("seed", [0, 4])
def test_votes_matches_reductions_and_counting_barriers(seed):
    check_warp(warp(run, seed=seed))


GROUPS = source("groups")


def groups(run, **options):
    X = np.arange(64, dtype=np.float32)
    return run(GROUPS, warps=2, grid=1, X=X, out=np.zeros(1536, np.int32), **options)["out"]


def groups_right(t):
    lane = t % 32
    quad, odd = lane // 4 * 4, lane % 2
    sums = [2016 * (t == 0), 16 * (t % 16 == 0), (4 * quad + 6) * (lane % 4 == 0)]
    reduced = [32 * (lane == 0) + 4 * (lane % 4 == 0), 496, 3, 15]
    scanned = [lane * (lane + 1) // 2, sum(range(quad, lane))]
    together = [odd * (1600 + lane // 2), odd * (5 + 100 * min(lane + 2, 31)), odd * (15 + 16)]
    votes = [12 + 100 * (quad == 4) + 1000 * (quad > 3), (10 if lane % 2 else 5) + 100 * (lane ^ 2)]
    votes += [15 + 100 + 1000 * max(lane - 1, quad), lane // 4 + 800 + 10000 * (t // 32)]
    parts = [10 if lane % 3 == 2 else 11, lane if lane < 10 else lane - 10, 1 + 10 * t + 64000]
    return [*sums, *reduced, *scanned, *together, *votes, *parts, t, 63 - t, 14, t, t]


@pytest.mark.parametrize("seed", [0, 9])
def test_cooperative_groups(seed):
    results = groups(run, seed=seed).reshape(64, 24).tolist()
    for t, row in enumerate(results):
        assert row == groups_right(t), t


def test_a_missing_sync_of_a_group_is_found():
    bad = GROUPS.replace("        group.sync();\n    }", "    }")
    with pytest.raises(KernelError, match=r"kernel.cu:10: a race: .* scratch"):
        run(bad, warps=2, X=np.zeros(64, np.float32), out=np.zeros(1536, np.int32))


@pytest.mark.parametrize("size", ["sizeof(float) * 64", None])
def test_a_copy_beyond_the_end_is_found_at_its_line(size):
    call = f"tile, X, {size}" if size else "tile, 64, X, 64"
    bad = GROUPS.replace("tile, X, sizeof(float) * 64", call)
    line = 1 + bad[: bad.index(call)].count("\n")
    results = rf"kernel.cu:{line}: out of bounds: .* reads X\[6[0-3]\]"
    with pytest.raises(KernelError, match=results):
        run(bad, warps=2, X=np.zeros(60, np.float32), out=np.zeros(1536, np.int32))


def test_printf_shows_lines_in_order(capfd):
    body = '    if (threadIdx.x < 3) out[threadIdx.x] = printf("%d is %.1f\\n", threadIdx.x, 0.5f);'
    results = run(kernel(body), out=np.zeros(32, np.int32))["out"]
    assert capfd.readouterr().out == "0 is 0.5\n1 is 0.5\n2 is 0.5\n"
    assert results[:4].tolist() == [2, 2, 2, 0], "how many arguments there were"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('"%hhn", (signed char *)out', "%hhn for any argument"),
        ('"%d and %n", 1, out', "%n for any argument"),
        ('"%d", 1.5f', "%d for a floating-point number"),
        ('"%5.1f", 3', "%5.1f for an integer"),
        ('"%s", 3', "%s for an integer"),
        ('"%s", out', "%s for a pointer"),
        ('"%p", 3', "%p for an integer"),
        ('"%d %d", 1', "%d for a missing argument"),
        ('"%*d", 1.0, 1', "%\\* for no integer"),
        ('"100%"', "% for any argument"),
        ('"%q", 1', "%q for any argument"),
    ],
)
def test_a_format_that_cuda_has_not_is_found(arguments, problem):
    code = kernel(f"    if (threadIdx.x == 3)\n        printf({arguments});")
    with pytest.raises(
        KernelError, match=rf"kernel.cu:3: thread 3 .* prints with {problem}, which"
    ):
        run(code, out=np.zeros(32, np.int32))


def test_formats_that_cuda_has(capfd):
    body = """
    if (threadIdx.x) return;
    const char *null = "x";
    enum Color { RED } red = RED;
    printf("%%|%5d|%-4u|%x|%c|%lld|%zu\\n", -3, 4u, 255, 'a', 1LL << 40, sizeof(int));
    printf("%+.2e|%g|%s|%.2s|%*d|%.*f|%d|%d\\n", 1.0, 2.5f, null, "abc", 4, 7, 1, 0.25, true, red);
    printf("%p %p\\n", (void *)nullptr, out - out ? out : (int *)nullptr);
    printf("plain%s\\n", (const unsigned char *)"er");"""
    run(kernel(body), out=np.zeros(32, np.int32))
    assert capfd.readouterr().out == (
        "%|   -3|4   |ff|a|1099511627776|4\n+1.00e+00|2.5|x|ab|   7|0.2|1|0\n(nil) (nil)\nplainer\n"
    )


def test_a_text_without_an_end_is_out_of_bounds():
    code = kernel('    if (!threadIdx.x) printf("%s", (const char *)out);')
    with pytest.raises(KernelError, match=r"kernel.cu:2: out of bounds: .* reads out"):
        run(code, out=np.full(32, 0x41414141, np.int32))


@pytest.mark.parametrize("include", ["", "#include <assert.h>\n", "#include <cassert>\n"])
def test_an_assertion_names_its_thread_and_line(include):
    code = kernel("    assert(out[threadIdx.x] < 3);", head=include)
    line = 2 + bool(include)
    with pytest.raises(KernelError, match=rf"kernel.cu:{line}: thread 3 .* finds that assert"):
        run(code, out=LANES.astype(np.int32))


@pytest.mark.parametrize("value", [np.nan, 3e9, -np.inf])
def test_a_conversion_without_a_meaning_is_found(value):
    code = kernel("    out[threadIdx.x] = X[threadIdx.x] * 2;", "int *out, const float *X")
    X = np.full(32, value, np.float32)
    with pytest.raises(KernelError, match="kernel.cu:2: thread 0 .* integer type cannot hold"):
        run(code, out=np.zeros(32, np.int32), X=X)


def test_trap_stops_the_kernel():
    with pytest.raises(KernelError, match="kernel.cu:2: thread 5 of block 0 stopped the kernel"):
        run(kernel("    if (threadIdx.x == 5) __trap();"), out=np.zeros(1, np.int32))


SOURCES = {"vectors": VECTOR_CODE, "atomics": ATOMIC_CODE, "warp": WARP, "groups": GROUPS}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", SOURCES)
def test_the_sources_are_cuda(name, monkeypatch):
    assert compiles_for_a_gpu(SOURCES[name], monkeypatch)


@pytest.mark.gpu
def test_a_gpu_finds_the_same():
    np.testing.assert_array_equal(vectors(run_on_gpu), vectors(run))
    np.testing.assert_equal(atomics(run_on_gpu), atomics(run))
    check_warp(warp(run_on_gpu))
    np.testing.assert_array_equal(groups(run_on_gpu), groups(run))


TILES = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const int *X, int *sums, int *prefixes, int *Y) {
    __shared__ cg::block_tile_memory<256> memory;
    __shared__ int s[256];
    const auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
    const int t = threadIdx.x;
    const int sum = cg::reduce(tile, X[t], cg::plus<int>());
    if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = sum;
    prefixes[t] = cg::inclusive_scan(tile, X[t]);
    s[t] = X[t];
    tile.sync();
    Y[t] = s[t / 64 * 64 + (t + 33) % 64] + tile.shfl(X[t], 5);
    const auto warp = cg::tiled_partition<32>(tile);
    if (warp.any(X[t] > 99) || tile.any(X[t] > 99) || !tile.all(X[t] < 100)) Y[t] = 0;
}
"""


def launch_tiles(code, seed=0):
    X = np.random.default_rng(0).integers(-100, 100, 256).astype(np.int32)
    names = ("sums", "prefixes", "Y")
    outputs = [np.zeros(n, np.int32) for n in (4, 256, 256)]
    return X.reshape(4, 64), emulate(code, 1, 256, X, *outputs, seed=seed, unwritten=names)


@pytest.mark.parametrize("seed", range(3))
def test_tiles_of_several_warps(seed):
    X, outputs = launch_tiles(TILES, seed)
    np.testing.assert_array_equal(outputs["sums"], X.sum(axis=1))
    np.testing.assert_array_equal(outputs["prefixes"].reshape(X.shape), X.cumsum(axis=1))
    expected = np.roll(X, -33, axis=1) + X[:, 5:6]
    np.testing.assert_array_equal(outputs["Y"].reshape(X.shape), expected)


def test_the_tiles_are_cuda(monkeypatch):
    assert compiles_for_a_gpu(TILES, monkeypatch)


#: (text, its replacement, part of the message).
WRONG_TILES = [
    ("    tile.sync();", "", "nothing has written"),
    ("s[t / 64 * 64 + (t + 33) % 64]", "s[(t + 64) % 256]", "reads s["),
    ("const int sum", "if (t == 70) return; const int sum", "thread 70 of block 0 does not come"),
    ("const int sum", "if (t == 70) __syncthreads(); const int sum", "thread 70 of block 0"),
]


@pytest.mark.parametrize("mistake", WRONG_TILES)
def test_mistakes_with_tiles_of_several_warps_are_found(mistake):
    check_planted(TILES, mistake, launch_tiles, seeds=2)


ON_GONE_LANES = (
    "cg::binary_partition(tile, x & 1).sync()",
    "cg::labeled_partition(tile, x).sync()",
    "cg::reduce(tile, x, cg::plus<int>())",
    "cg::inclusive_scan(tile, x)",
    "tile.shfl(x, 31)",
    "tile.shfl_xor(x, 31)",
    "tile.shfl_down(x, 16)",
    "tile.match_any(x)",
)


@pytest.mark.parametrize("call", ON_GONE_LANES)
def test_an_exchange_with_lanes_that_have_left_is_an_error_of_the_kernels_line(call):
    code = f"""#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void k(int *X) {{
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    if (threadIdx.x >= 20) return;
    int x = X[threadIdx.x];
    {call};
}}"""
    with pytest.raises(KernelError, match=r"k, kernel.cu:9: .* has left the kernel"):
        emulate(code, 1, 32, np.zeros(32, np.int32))


@pytest.mark.parametrize("call", ["cg::sync(block)", "cg::wait(block)", "cg::wait_prior<1>(block)"])
def test_a_barrier_in_a_branch_is_an_error_of_the_kernels_line(call):
    code = f"""#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(int *X) {{
    auto block = cg::this_thread_block();
    if (threadIdx.x < 32)
        {call};
    else
        block.sync();
    X[threadIdx.x] = 0;
}}"""
    with pytest.raises(KernelError, match=r"k, kernel.cu:[68]: .* wait at different barriers"):
        emulate(code, 1, 64, np.zeros(64, np.int32))
