"""CUB's collectives of blocks and warps in the emulator, and the mistakes that they allow."""

import numpy as np
import pytest

from accelviz import emulate
from tests.compilers import needs_compiler
from tests.vocabulary import check_planted, compiles_for_a_gpu

pytestmark = needs_compiler

CODE = """#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/functional>
#include <cuda/std/functional>
extern "C" __global__ void k(const float *X, float *Y, int *Z) {
    using R = cub::BlockReduce<float, 64>;
    using S = cub::BlockScan<int, 64>;
    using Sort = cub::BlockRadixSort<float, 64, 4, int>;
    using L = cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    __shared__ union {
        typename R::TempStorage r; typename S::TempStorage s;
        Sort::TempStorage sort; L::TempStorage load;
    } temp;
    float s = R(temp.r).Sum(X[threadIdx.x]);
    if (threadIdx.x == 0) Y[0] = s;
    __syncthreads();
    float m = R(temp.r).Reduce(X[threadIdx.x], cuda::maximum<>{});
    if (threadIdx.x == 0) Y[1] = m;
    __syncthreads();
    int x, all;
    S(temp.s).ExclusiveSum(int(threadIdx.x), x, all);
    Z[threadIdx.x] = x + all;
    __syncthreads();
    int items[2] = {int(threadIdx.x), 1}, out[2];
    S(temp.s).InclusiveScan(items, out, cuda::std::plus<>{});
    Z[64 + 2 * threadIdx.x] = out[0]; Z[65 + 2 * threadIdx.x] = out[1];
    float keys[4]; int values[4];
    __syncthreads();
    L(temp.load).Load(X, keys);
    for (int i = 0; i < 4; ++i) values[i] = 4 * threadIdx.x + i;
    __syncthreads();
    Sort(temp.sort).Sort(keys, values);
    cub::BlockStore<float, 64, 4>().Store(Y + 2, keys);
    for (int i = 0; i < 4; ++i) Z[192 + 4 * threadIdx.x + i] = values[i];
    __shared__ typename cub::WarpReduce<int>::TempStorage w[2];
    const int warp = threadIdx.x / 32;
    int total = cub::WarpReduce<int>(w[warp]).Sum(threadIdx.x);
    if (threadIdx.x % 32 == 0) Z[448 + warp] = total;
    cub::WarpScan<int>::TempStorage ws;
    cub::WarpScan<int>(ws).InclusiveSum(1, total);
    Z[450 + threadIdx.x] = total;
}
"""


def launch(code=CODE, seed=0, threads=64):
    X = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    Y, Z = np.zeros(258, np.float32), np.zeros(514, np.int32)
    emulate(code, 1, threads, X, Y, Z, seed=seed)
    return X, Y, Z


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_collectives_have_their_results(seed):
    X, Y, Z = launch(seed=seed)
    rank = np.arange(64)
    assert abs(Y[0] - X[:64].sum()) < 1e-4
    assert Y[1] == X[:64].max()
    np.testing.assert_array_equal(Z[:64], np.cumsum(rank) - rank + rank.sum())
    np.testing.assert_array_equal(Z[64:192], np.cumsum(np.stack([rank, 0 * rank + 1], 1)))
    np.testing.assert_array_equal(Y[2:], np.sort(X))
    np.testing.assert_array_equal(Z[192:448], np.argsort(X, kind="stable"))
    assert Z[448:450].tolist() == [rank[:32].sum(), rank[32:].sum()]
    np.testing.assert_array_equal(Z[450:], rank % 32 + 1)


def test_the_source_is_cuda(monkeypatch):
    assert compiles_for_a_gpu(CODE, monkeypatch)


#: (text, its replacement, part of the message).
MISTAKES = [
    ("if (threadIdx.x == 0) Y[1] = m;", "Y[threadIdx.x] = m;", "BlockReduce, for thread 0 alone"),
    ("if (threadIdx.x % 32 == 0) Z", "if (threadIdx.x % 16 == 0) Z", "WarpReduce, for lane 0"),
    ("Y[0] = s;\n    __syncthreads();", "Y[0] = s;", "a race"),
    ("x + all;\n    __syncthreads();", "x + all;", "a race"),
    ("values[i] = 4 * threadIdx.x + i;\n    __syncthreads();", "values[i] = i;", "a race"),
    ("BlockReduce<float, 64>", "BlockReduce<float, 128>", "in a block of another size"),
    ("float m =", "float m = 0; if (threadIdx.x != 5) m =", "thread 5"),
    ("int total =", "int total = 0; if (threadIdx.x != 5) total =", "exchange at different"),
    (
        'extern "C" __global__ void',
        '__device__ cub::BlockExchange<int, 64, 4> x(int); extern "C" __global__ void',
        "of CUB the emulator has",
    ),
    ("<cub/block/block_load.cuh>", "<cub/device/device_reduce.cuh>", "host code"),
    ("<cub/block/block_load.cuh>", "<cub/block/block_histogram.cuh>", "of CUB the emulator has"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_with_collectives_are_found(mistake):
    check_planted(CODE, mistake, launch, seeds=2)


#: Types of keys, and the order in which they are sorted.
KEYS = {"int": "i4", "unsigned": "u4", "float": "f4", "double": "f8", "long long": "i8"}


@pytest.mark.parametrize("order", ["Sort", "SortDescending"])
@pytest.mark.parametrize("type_", KEYS)
def test_blocks_sort_keys_of_every_type(type_, order):
    bits = np.random.default_rng(1).integers(-(2**31), 2**31, 128)
    X = (bits % 2**32 if type_ == "unsigned" else bits).astype(KEYS[type_])
    code = f"""#include <cub/cub.cuh>
__global__ void k({type_} *X) {{
    using Sort = cub::BlockRadixSort<{type_}, 32, 4>;
    __shared__ Sort::TempStorage temp;
    {type_} keys[4];
    for (int i = 0; i < 4; ++i) keys[i] = X[4 * threadIdx.x + i];
    Sort(temp).{order}BlockedToStriped(keys);
    for (int i = 0; i < 4; ++i) X[threadIdx.x + 32 * i] = keys[i];
}}"""
    expected = np.sort(X)[:: -1 if "Desc" in order else 1]
    np.testing.assert_array_equal(emulate(code, 1, 32, X.copy())["X"], expected)
