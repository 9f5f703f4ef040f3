"""Unwritten local variables, halves in memory, shifts: what each is, and at which line."""

import re

import numpy as np
import pytest

from accelviz import emulate
from accelviz.emulator.build import find_compiler
from accelviz.errors import KernelError
from tests.compilers import needs_compiler

pytestmark = needs_compiler
compiler = find_compiler()

LOCALS = """
__global__ void k(const float *X, float *Y, int n, int which) {
    const int t = threadIdx.x;
    switch (which) {
    case 0: {  // a leader's value for all, as in warp-aggregated atomics
        float x;
        if (t == 3) x = atomicAdd(&Y[32], 1.0f);
        Y[t] = __shfl_sync(~0u, x, 3);
        break;
    }
    case 1: {  // written and read under conditions that go together
        float x;
        if (t < n) x = X[t];
        __syncthreads();
        if (t < n && t > 3) Y[t] = x;
        break;
    }
    case 2: {  // a list that grows
        float kept[8];
        int count = 0;
        for (int i = 0; i < n; ++i) if (X[i] > 2 && count < 8) kept[count++] = X[i];
        for (int i = 0; i < count; ++i) Y[t] += kept[i];
        break;
    }
    case 3: {  // from the last turn
        float before;
        for (int i = 0; i < n; ++i) {
            if (i > 0) Y[t] += before;
            before = X[i];
        }
        break;
    }
    case 4: {
        float sum;
        for (int i = 0; i < n; ++i) sum += X[i];
        Y[t] = sum;
        break;
    }
    case 5: {  // of integers, where only one is missing
        int most[4];
        for (int i = 1; i < 4; ++i) most[i] = 0;
        for (int i = 0; i < n; ++i) most[i % 4] = max(most[i % 4], int(X[i]));
        Y[t] = most[t % 4];
        break;
    }
    case 6: {
        float x;
        if (t < n) x = X[t];
        Y[t] = x;
        break;
    }
    }
}
"""


def run(code, *arguments, threads=32):
    return emulate(code, 1, threads, *arguments)


def locals_of(which):
    X, Y = np.arange(8, dtype=np.float32), np.zeros(33, np.float32)
    run(LOCALS, X, Y, 8, which)
    return Y[:32]


@pytest.mark.parametrize(
    ("which", "right"), [(0, 0), (1, [0] * 4 + [4, 5, 6, 7] + [0] * 24), (2, 25), (3, 21)]
)
def test_a_local_variable_that_is_written_where_it_matters_is_no_mistake(which, right):
    for _ in range(2):
        assert np.array_equal(locals_of(which), np.broadcast_to(right, 32))


@pytest.mark.skipif(
    compiler is None or not compiler.gives_locals_a_pattern, reason="an older compiler"
)
@pytest.mark.parametrize(
    ("which", "stored"), [(4, "Y[t] = sum"), (5, "Y[t] = most"), (6, "        Y[t] = x;")]
)
def test_a_value_from_an_unwritten_local_variable_is_found(which, stored):
    line = LOCALS[: LOCALS.index(stored)].count("\n") + 1
    says = rf":{line}: thread \d+ of block 0 writes Y\[\d+\] .*local variable that nothing"
    for _ in range(2):
        with pytest.raises(KernelError, match=says):
            locals_of(which)


HALVES = """
#include <cuda_fp16.h>
__global__ void k(const half *X, half *Y, half2 *pairs, float *F, int which, int far, int n) {
    half2 *const odd = reinterpret_cast<half2 *>(Y + 1);
    switch (which) {
    case 0: F[0] = X[far]; break;
    case 1: F[0] = int(X[far]); break;
    case 2: Y[far] += X[0]; break;
    case 3: ++Y[far]; break;
    case 4: Y[0] = __hadd(X[0], X[far]); break;
    case 5: Y[far] = __hneg(X[0]); break;
    case 6: pairs[0] = pairs[0] * pairs[far]; break;
    case 7: pairs[far] += pairs[0]; break;
    case 8: F[0] = __low2float(pairs[far]); break;
    case 9: F[0] = pairs[0] == pairs[far]; break;
    case 10: pairs[0] = __hadd2(pairs[0], *odd); break;
    case 11: *odd += pairs[0]; break;
    case 12: F[0] = 1u << n; break;
    }
}
"""


@pytest.mark.parametrize("which", range(13))
def test_halves_are_accesses_of_the_line_that_uses_them(which):
    X, Y, pairs = (np.ones(8, np.float16) for _ in range(3))
    problem = "shifts" if which == 12 else "misaligned" if which > 9 else "out of bounds"
    with pytest.raises(KernelError, match=rf"kernel\.cu:{which + 6}[:,]") as caught:
        run(HALVES, X, Y, pairs, np.zeros(1, np.float32), which, 99, 32, threads=1)
    assert re.search(problem, str(caught.value)), caught.value
