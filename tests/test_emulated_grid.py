"""Barriers of the grid in the emulator: cooperative launches."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.emulator.call import trace_kernel
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.vocabulary import compiles_for_a_gpu

pytestmark = needs_compiler

CODE = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(float *A, float *B, int *seen, int n, int steps) {
    cg::grid_group grid = cg::this_grid();
    __shared__ int tile[64];
    extern __shared__ int dynamic[];
    const int rank = grid.thread_rank();
    tile[threadIdx.x] = rank;
    dynamic[threadIdx.x] = -rank;
    for (int step = 0; step < steps; ++step) {
        const float *in = step % 2 ? B : A;
        float *out = step % 2 ? A : B;
        for (int i = rank; i < n; i += grid.size()) {
            out[i] = 0.5f * (in[(i + 1) % n] + in[(i + n - 1) % n]);
        }
        BARRIER;
    }
    const int other = (threadIdx.x + 1) % blockDim.x;
    seen[rank] = tile[other] - dynamic[other];
}
"""


def smoothed(A, steps):
    for _ in range(steps):
        A = (0.5 * (np.roll(A, -1) + np.roll(A, 1))).astype(np.float32)
    return A


def arrays(blocks=6, n=1000):
    A = np.random.default_rng(0).random(n, np.float32)
    return A, np.zeros_like(A), np.zeros(blocks * 64, np.int32), n, 4


def launch(barrier, blocks=6, **options):
    code = CODE.replace("BARRIER", barrier)
    return emulate(code, blocks, 64, *arrays(blocks), shared_bytes=256, **options)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("barrier", ["grid.sync()", "cg::sync(grid)", "cg::this_grid().sync()"])
def test_blocks_see_before_a_barrier_of_the_grid_and_keep_their_shared_memory(barrier, seed):
    outputs = launch(barrier, seed=seed)
    np.testing.assert_array_equal(outputs["A"], smoothed(arrays()[0], 4))
    rank = np.arange(6 * 64).reshape(6, 64)
    np.testing.assert_array_equal(outputs["seen"], 2 * np.roll(rank, -1, 1).ravel())


#: A barrier and a part of the message.
MISTAKES = {
    "": "which nothing has written before",
    "__syncthreads()": "a race: thread 0 of block 1 reads A[63]",
    "if (step != 2) grid.sync()": "a race: ",
    "if (blockIdx.x != 3) grid.sync()": "",
    "if (blockIdx.x == 3) return; grid.sync()": "thread 0 of block 3 has left the kernel",
    "if (blockIdx.x == 3 && step) return; grid.sync()": "block 3 has left the kernel",
    "if (!threadIdx.x) return; grid.sync()": "thread 0 of block 0 has left the kernel",
    "if (threadIdx.x) grid.sync(); else __syncthreads()": "wait at different barriers",
    "if (threadIdx.x < 40) grid.sync()": "",
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("barrier", MISTAKES)
def test_mistakes_with_a_barrier_of_the_grid_are_found(barrier, seed):
    with pytest.raises(KernelError) as caught:
        launch(barrier, seed=seed)
    if not seed:
        assert MISTAKES[barrier] in str(caught.value)


def test_a_large_grid_is_refused():
    with pytest.raises(KernelError, match="16,384 threads"):
        launch("grid.sync()", blocks=257)


def test_a_barrier_of_the_grid_is_traced():
    code = CODE.replace("BARRIER", "grid.sync()")
    A, *others = arrays(4, 256)
    accesses = trace_kernel(code, 4, 64, A, *others, shared_bytes=256)
    stores = accesses[(accesses.array == "A") & (accesses.kind == "store")]
    assert len(stores) == 2 * 256


def test_the_source_is_cuda(monkeypatch):
    assert compiles_for_a_gpu(CODE.replace("BARRIER", "grid.sync()"), monkeypatch)
