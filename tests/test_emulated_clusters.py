"""Clusters of blocks in the emulator, and mistakes with their shared memory."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.emulator import trace_kernel
from accelviz.errors import ArgumentError, KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import compiles_for_a_gpu

pytestmark = needs_compiler

HISTOGRAM = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void CLUSTER k(const int *X, int *bins, int n, int mistake) {
    __shared__ int counts[64];
    auto cluster = cg::this_cluster();
    const unsigned rank = cluster.thread_rank() / blockDim.x;
    for (int i = threadIdx.x; i < 64; i += blockDim.x) counts[i] = 0;
    if (mistake != 1) cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int *other = cluster.map_shared_rank(counts, X[i] / 64);
        if (mistake == 2) other[X[i] % 64] += 1;
        else atomicAdd(other + X[i] % 64 + (mistake == 3 ? 64 : 0), 1);
    }
    if (mistake != 5 && (mistake != 4 || threadIdx.x < 16)) cluster.sync();
    for (int i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(bins + rank * 64 + i, counts[i]);
    if (mistake == 6 && !rank && threadIdx.x < 9) bins[0] += *cluster.map_shared_rank(counts, 1);
}
"""
TURN = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const float *X, float *Y, int mistake) {
    __shared__ float tile[64];
    extern __shared__ float more[];
    cg::cluster_group cluster = cg::this_cluster();
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t] = X[i];
    more[t] = blockIdx.x;
    if (mistake != 1) cluster.sync();
    else __syncthreads();
    const unsigned mate = cluster.block_rank() ^ 1;
    const float *other = cluster.map_shared_rank(tile, mate);
    float y = other[blockDim.x - 1 - t] + 10 * cluster.map_shared_rank(more, mate)[t];
    if (mistake == 2) tile[t] = 0;
    if (mistake == 3) y += *cluster.map_shared_rank(tile, 2);
    if (mistake == 4) y += *cluster.map_shared_rank(X, mate);
    if (mistake == 6) y += other[64 + t];
    if (mistake == 7) cg::this_grid().sync();
    if (mistake != 5) cluster.barrier_wait(cluster.barrier_arrive());
    tile[t] = 0;
    Y[i] = y + (cluster.query_shared_rank(other) - mate) + (cluster.num_blocks() - 2);
}
"""
#: (code, mistake): part of the message.
MISTAKES = {
    (HISTOGRAM, 1): "nothing says that that block has begun to run",
    (HISTOGRAM, 2): "a race",
    (HISTOGRAM, 3): "bytes past its end (64 elements)",
    (HISTOGRAM, 4): "",  # a race, if it is found before the missing threads
    (HISTOGRAM, 5): "a race",
    (HISTOGRAM, 6): "",
    (TURN, 1): "nothing says that that block has begun to run",
    (TURN, 2): "put cluster.sync() between the two",
    (TURN, 3): "block 2 of 2",
    (TURN, 4): "not in its block's shared memory",
    (TURN, 5): "nothing keeps that block from leaving the kernel",
    (TURN, 6): "bytes past its end (64 elements) in the shared memory of block",
    (TURN, 7): "a launch with clusters",
}


def histogram(threads, mistake=0, declared="__cluster_dims__(4)", **options):
    X = np.random.default_rng(0).integers(0, 256, 700).astype(np.int32)
    bins = np.zeros(256, np.int32)
    code = HISTOGRAM.replace("CLUSTER", declared)
    emulate(code, 8, threads, X, bins, X.size, mistake, **options)
    return bins, np.bincount(X, minlength=256)


def turn(threads, mistake=0, **options):
    X = np.arange(4 * threads, dtype=np.float32)
    Y = np.zeros_like(X)
    options = {"shared_bytes": 4 * threads, "unwritten": ("Y",), **options}
    emulate(TURN, 4, threads, X, Y, mistake, **options)
    blocks = X.reshape(2, 2, threads)[:, ::-1, ::-1]
    return Y, (blocks + 10.0 * np.array([[1, 0], [3, 2]])[:, :, None]).ravel()


RUNS = {HISTOGRAM: histogram, TURN: turn}


@pytest.mark.parametrize("threads", [32, 64])
@pytest.mark.parametrize("code", RUNS, ids=["histogram", "turn"])
def test_blocks_of_a_cluster_share_their_memory(code, threads):
    for seed in (0, 1, 2):
        np.testing.assert_array_equal(*RUNS[code](threads, seed=seed))


@pytest.mark.parametrize(("code", "mistake"), MISTAKES)
def test_mistakes_between_blocks_of_a_cluster_are_named(code, mistake):
    for threads, seed in ((32, 0), (64, 3)):
        with pytest.raises(KernelError, match="kernel.cu:") as caught:
            RUNS[code](threads, mistake, seed=seed)
        assert MISTAKES[code, mistake] in str(caught.value)


def test_the_size_of_a_cluster_is_given_by_the_launch_or_the_kernel():
    for options in ({"cluster": 4}, {"cluster": (4, 1, 1)}):
        np.testing.assert_array_equal(*histogram(32, declared="", **options))
    for declared, cluster in (("__cluster_dims__(4)", 2), ("", 3), ("", 16), ("", 0)):
        with pytest.raises(ArgumentError):
            histogram(32, declared=declared, cluster=cluster)


@pytest.mark.long
def test_clusters_compile_for_a_gpu(monkeypatch):
    for code in (HISTOGRAM.replace("CLUSTER", "__cluster_dims__(4)"), TURN):
        assert compiles_for_a_gpu(code, monkeypatch)


COPIES = """#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(float *X, float *Y, int which) {
    __shared__ float tile[64];
    __shared__ float plain[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    cg::cluster_group cluster = cg::this_cluster();
    cg::thread_block block = cg::this_thread_block();
    const int t = threadIdx.x, n = blockDim.x, first = blockIdx.x * n;
    const unsigned rank = cluster.block_rank(), mate = rank ^ 1;
    if (t == 0) init(&barrier, n);
    plain[t] = tile[t] = 100 + t;
    cluster.sync();
    float y = 0;
    switch (which) {
        case 0:  // a copy of a block's own is in flight while it reads its mate's memory
            if (rank == 0) cg::memcpy_async(block, tile, X + first, sizeof(float) * n);
            if (rank == 0) y = *cluster.map_shared_rank(tile + n - 1 - t, mate);
            if (rank == 0) cg::wait(block);
            else y = tile[n - 1 - t];
            break;
        case 1:  // the same with a barrier object, over a barrier of the cluster
            if (rank == 0) cuda::memcpy_async(block, tile, X + first, sizeof(float) * n, barrier);
            cluster.sync();
            if (rank == 0) y = *cluster.map_shared_rank(tile + n - 1 - t, mate);
            barrier.arrive_and_wait();
            if (rank == 1) y = tile[n - 1 - t];
            break;
        case 2:  // both copy, wait, and read the mate's
            cuda::memcpy_async(block, tile, X + first, sizeof(float) * n, barrier);
            barrier.arrive_and_wait();
            cluster.sync();
            y = *cluster.map_shared_rank(tile + n - 1 - t, mate);
            break;
        case 3:  // another variable of the mate
            cg::memcpy_async(block, tile, X + first, sizeof(float) * n);
            cluster.sync();
            y = *cluster.map_shared_rank(plain + n - 1 - t, mate);
            cg::wait(block);
            break;
        case 10:  // a barrier of the cluster is no wait
            cg::memcpy_async(block, tile, X + first, sizeof(float) * n);
            cluster.sync();
            y = *cluster.map_shared_rank(tile + n - 1 - t, mate);
            cg::wait(block);
            break;
        case 11: {
            cuda::memcpy_async(block, tile, X + first, sizeof(float) * n, barrier);
            auto token = barrier.arrive();
            cluster.sync();
            y = *cluster.map_shared_rank(tile + n - 1 - t, mate);
            barrier.wait(std::move(token));
            break;
        }
        case 12:  // the mate writes what is copied
            cg::memcpy_async(block, tile, X + first, sizeof(float) * n);
            cluster.sync();
            X[(first + n + t) % (2 * n) + (first / (2 * n)) * 2 * n] = 0;
            cg::wait(block);
            break;
    }
    cluster.sync();
    Y[first + t] = y;
}
"""


def copies(threads, which, run=emulate, **options):
    X, Y = np.arange(4 * threads, dtype=np.float32), np.zeros(4 * threads, np.float32)
    return X, run(COPIES, 4, threads, X, Y, which, **options)


@pytest.mark.parametrize("threads", [32, 64])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_copies_of_a_block_are_its_own(which, seed, threads):
    X, outputs = copies(threads, which, seed=seed)
    local = np.tile(100 + np.arange(threads)[::-1], 4)
    mates = X.reshape(2, 2, threads)[:, ::-1, ::-1].ravel()
    np.testing.assert_array_equal(outputs["Y"], mates if which == 2 else local)


@pytest.mark.parametrize("threads", [32, 64])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("which", "message"),
    [
        (10, r"reads tile\[\d+\].* in the shared memory of block \d, to which thread"),
        (11, r"reads tile\[\d+\].* in the shared memory of block \d, to which thread"),
        (12, r"writes X\[\d+\].*, from which thread \d+ of block \d still copies"),
    ],
)
def test_a_barrier_of_the_cluster_completes_no_copy(which, message, seed, threads):
    with pytest.raises(KernelError, match=message) as error:
        copies(threads, which, seed=seed)
    assert error.value.mistake in ("copy-arriving", "copy-leaving")


def test_a_cluster_is_traced():
    accesses = copies(64, 2, trace_kernel)[1]
    assert len(accesses[(accesses.array == "Y") & (accesses.kind == "store")]) == 256
    assert set(accesses.block) == {0, 1, 2, 3}
    reads = accesses[(accesses.array == "tile") & (accesses.kind == "load")]
    assert reads.empty  # those of another block's memory are in no array of the reader
