"""Vectors, atomics, warps, cooperative groups printf and assert."""

import numpy as np
import pytest

from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import compiles_for_a_gpu, kernel, run, run_on_gpu

pytestmark = needs_compiler

LANES = np.arange(32)


NUMBERS = {"char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8}
NUMBERS |= {"ulong": 8, "longlong": 8, "ulonglong": 8, "float": 4, "double": 8}
VECTORS = [(name, n, size) for name, size in NUMBERS.items() for n in (1, 2, 3, 4)]


def one_vector(i, name, n):
    """Its size, its alignment, and its parts after a trip through memory."""
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
    found = run(code, X=X, three=X * 0, wide=wide, four=wide * 0)
    np.testing.assert_array_equal(found["three"], X)
    np.testing.assert_array_equal(found["four"], wide)
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


#: What 64 threads do to a number, what it is then, and of what type.
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
#: The programming guide's way to an atomic that there is not.
ADD_BY_CAS = """
__device__ double add_by_cas(double *address, double value) {
    unsigned long long *words = (unsigned long long *)address, seen;
    unsigned long long old = *(volatile unsigned long long *)words;
    do {
        seen = old;
        old = atomicCAS(words, seen, __double_as_longlong(value + __longlong_as_double(seen)));
    } while (seen != old);
    return __longlong_as_double(old);
}
"""
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
    given = {"out": np.frombuffer(start, np.uint8).copy(), "pairs": np.zeros(12, np.float32)}
    return run(ATOMIC_CODE, warps=2, **given)


def test_atomics_of_each_type_and_scope():
    found = atomics(run)
    for i, (call, (_, last, of)) in enumerate(ATOMICS.items()):
        assert found["out"][8 * i : 8 * i + 8].view(DTYPES[of])[0] == last, call
    assert found["pairs"].tolist() == [64, 128, 0, 0, 64, 128, 192, 256, 64, 0, 0, 0]


WARP = kernel(
    """
    const int t = threadIdx.x, lane = t % 32;
    const unsigned all = 0xffffffffu;
    int *mine = out + 20 * t;
    mine[0] = __match_any_sync(all, lane % 3);
    int same;
    mine[1] = __match_all_sync(all, 1.5f, &same) == all && same;
    mine[2] = __match_all_sync(all, lane / 31, &same) == 0 && !same;
    mine[3] = __reduce_add_sync(all, lane);
    mine[4] = __reduce_min_sync(all, -lane);
    mine[5] = __reduce_max_sync(all, (unsigned)lane);
    mine[6] = __reduce_or_sync(all, 1u << lane / 4);
    mine[7] = __reduce_and_sync(all, ~(1u << lane / 2));
    mine[8] = __reduce_xor_sync(all, (unsigned)lane);
    if (lane < 7) {
        const unsigned together = __activemask();
        mine[9] = together;
        mine[10] = __shfl_sync(together, lane, 3) + __reduce_add_sync(together, 1);
    } else {
        mine[9] = __activemask();
        mine[10] = 0;
    }
    mine[11] = __syncthreads_count(lane < 5);
    mine[12] = __syncthreads_and(t >= 0);
    mine[13] = __syncthreads_and(t != 40);
    mine[14] = __syncthreads_or(t == 40);
    mine[15] = __syncthreads_or(t < 0);
    mine[16] = __shfl_xor_sync(all, (long long)lane << 40, 1) >> 40;
    mine[17] = __any_sync(all, lane == 9) + 2 * __all_sync(all, lane < 32);
    const long long before = clock64();
    const auto ticks = clock();
    __nanosleep(10);
    mine[18] = clock64() > before && clock() >= ticks;
    mine[19] = __popc(__ballot_sync(all, lane & 1));"""
)


def warp(run, **options):
    return run(WARP, warps=2, out=np.zeros(1280, np.int32), **options)["out"]


def check_warp(found):
    thirds = [sum(1 << lane for lane in range(first, 32, 3)) for first in range(3)]
    rest = [1, 1, 496, -31, 31, 255, -65536, 0]
    for t, row in enumerate(found.reshape(64, 20).tolist()):
        few = t % 32 < 7
        active = [127, 3 + 7] if few else [-128, 0]
        row[0] &= 0xFFFFFFFF
        right = [thirds[t % 32 % 3], *rest, *active, 10, 1, 0, 1, 0, t % 32 ^ 1, 3, 1, 16]
        assert [bool(x) if i in (12, 13, 14, 15) else x for i, x in enumerate(row)] == right


@pytest.mark.parametrize("seed", [0, 4])
def test_votes_matches_reductions_and_counting_barriers(seed):
    check_warp(warp(run, seed=seed))


GROUPS = kernel(
    """
    __shared__ int scratch[64];
    __shared__ float tile[64];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    auto quad = cg::tiled_partition<4>(warp);
    const int t = threadIdx.x, lane = t % 32;
    int *mine = out + 24 * t;
    mine[0] = sum(block, scratch, t);
    mine[1] = sum(cg::tiled_partition(block, 16), scratch + t / 16 * 16, 1);
    mine[2] = sum(quad, scratch + t / 4 * 4, lane);
    mine[3] = down(warp, 1) * (lane == 0) + down(quad, 1) * (lane % 4 == 0);
    mine[4] = cg::reduce(warp, lane, cg::plus<int>());
    mine[5] = cg::reduce(quad, lane, cg::greater<int>()) - cg::reduce(quad, lane, cg::less<int>());
    mine[6] = cg::reduce(quad, 1u << lane % 4, cg::bit_or<unsigned>());
    mine[7] = cg::inclusive_scan(warp, lane);
    mine[8] = cg::exclusive_scan(quad, lane, cg::plus<int>());
    if (lane % 2) {
        cg::coalesced_group odd = cg::coalesced_threads();
        mine[9] = odd.size() * 100 + odd.thread_rank();
        mine[10] = odd.shfl(lane, 2) + odd.shfl_down(lane, 1) * 100;
        mine[11] = odd.ballot(lane < 8) + cg::reduce(odd, 1, cg::plus<int>());
    } else {
        mine[9] = mine[10] = mine[11] = 0;
    }
    mine[12] = quad.ballot(lane % 4 > 1) + 100 * quad.any(lane == 5) + 1000 * quad.all(lane > 3);
    mine[13] = quad.match_any(lane % 2) + 100 * quad.shfl_xor(lane, 2);
    int same;
    mine[14] = quad.match_all(lane / 4, same) + 100 * same + 1000 * quad.shfl_up(lane, 1);
    mine[15] = quad.meta_group_rank() + 100 * quad.meta_group_size();
    mine[15] += 10000 * warp.meta_group_rank();
    mine[16] = cg::labeled_partition(warp, lane % 3).size();
    mine[17] = cg::binary_partition(warp, lane < 10).thread_rank();
    mine[18] = cg::this_thread().size() + block.thread_rank() * 10 + block.size() * 1000;
    mine[19] = cg::this_grid().thread_rank();
    cg::memcpy_async(block, tile, X, sizeof(float) * 64);
    cg::wait(block);
    mine[20] = tile[63 - t];
    const float4 wide = warp.shfl(make_float4(lane, 1, 2, lane), 7);
    mine[21] = wide.x + wide.w;
    static_assert(cg::thread_block_tile<8>::size() == 8, "known to the compiler");
    mine[22] = block.group_index().x * 100 + block.thread_index().x;
    cg::sync(block);
    mine[23] = down(cg::tiled_partition<1>(block), t);""",
    "const float *X, int *out",
    """#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__device__ int sum(cg::thread_group group, int *scratch, int value) {
    const int rank = group.thread_rank();
    for (int half = group.size() / 2; half > 0; half /= 2) {
        scratch[rank] = value;
        group.sync();
        if (rank < half) value += scratch[rank + half];
        group.sync();
    }
    return rank == 0 ? value : 0;
}
template <typename Group>
__device__ int down(Group group, int value) {
    for (int half = group.size() / 2; half > 0; half /= 2) value += group.shfl_down(value, half);
    return value;
}
""",
)


def groups(run, **options):
    X = np.arange(64, dtype=np.float32)
    return run(GROUPS, warps=2, grid=1, X=X, out=np.zeros(1536, np.int32), **options)["out"]


def groups_right(t):
    lane = t % 32
    quad, odd = lane // 4 * 4, lane % 2
    return [
        2016 * (t == 0),
        16 * (t % 16 == 0),
        (4 * quad + 6) * (lane % 4 == 0),
        32 * (lane == 0) + 4 * (lane % 4 == 0),
        496,
        3,
        15,
        lane * (lane + 1) // 2,
        sum(range(quad, lane)),
        odd * (1600 + lane // 2),
        odd * (5 + 100 * min(lane + 2, 31)),
        odd * (15 + 16),
        12 + 100 * (quad == 4) + 1000 * (quad > 3),
        (10 if lane % 2 else 5) + 100 * (lane ^ 2),
        15 + 100 + 1000 * max(lane - 1, quad),
        lane // 4 + 800 + 10000 * (t // 32),
        10 if lane % 3 == 2 else 11,
        lane if lane < 10 else lane - 10,
        1 + 10 * t + 64000,
        t,
        63 - t,
        14,
        t,
        t,
    ]


@pytest.mark.parametrize("seed", [0, 9])
def test_cooperative_groups(seed):
    found = groups(run, seed=seed).reshape(64, 24).tolist()
    for t, row in enumerate(found):
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
    found = rf"kernel.cu:{line}: out of bounds: .* reads X\[6[0-3]\]"
    with pytest.raises(KernelError, match=found):
        run(bad, warps=2, X=np.zeros(60, np.float32), out=np.zeros(1536, np.int32))


def test_printf_shows_lines_in_order(capfd):
    body = '    if (threadIdx.x < 3) out[threadIdx.x] = printf("%d is %.1f\\n", threadIdx.x, 0.5f);'
    found = run(kernel(body), out=np.zeros(32, np.int32))["out"]
    assert capfd.readouterr().out == "0 is 0.5\n1 is 0.5\n2 is 0.5\n"
    assert found[:4].tolist() == [2, 2, 2, 0], "how many arguments there were"


@pytest.mark.parametrize("include", ["", "#include <assert.h>\n", "#include <cassert>\n"])
def test_an_assertion_names_its_thread_and_line(include):
    code = kernel("    assert(out[threadIdx.x] < 3);", head=include)
    line = 2 + bool(include)
    with pytest.raises(
        KernelError, match=rf"kernel.cu:{line}: thread 3 of block 0 finds that asse"
    ):
        run(code, out=LANES.astype(np.int32))


@pytest.mark.parametrize("value", [np.nan, 3e9, -np.inf])
def test_a_conversion_without_a_meaning_is_found(value):
    code = kernel("    out[threadIdx.x] = X[threadIdx.x] * 2;", "int *out, const float *X")
    X = np.full(32, value, np.float32)
    with pytest.raises(
        KernelError, match="kernel.cu:2: thread 0 .* that the integer type cannot hold"
    ):
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
