"""Barriers that some threads do not reach: they have left the kernel, or go past the barrier."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import KernelError
from tests.compilers import needs_compiler

pytestmark = needs_compiler

BARRIERS = (
    "__syncthreads()",
    "cg::this_thread_block().sync()",
    "cg::sync(cg::this_thread_block())",
    "__syncthreads_count(1)",
    "cg::this_grid().sync()",
)
CODE = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ __noinline__ void meet(float *Y) { BARRIER; *Y += 0; }
__global__ void k(const float *X, float *Y, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x, size = blockDim.x;
    BODY
}"""
#: Threads from n on have left when the others come to a barrier: nothing is wrong.
LEFT = {
    "return": "if (t >= n) return; BARRIER; Y[t] = 1;",
    "return after work": """if (t >= n) { Y[t] = 2; return; }
    s[t] = 1;
    BARRIER;
    Y[t] = s[n - 1 - t];""",
    "last": "if (t < n) BARRIER;",
    "in a branch": "if (t < n) { s[t] = X[t]; BARRIER; Y[t] = s[n - 1 - t]; }",
    "else": "if (t < n) { s[t] = X[t]; BARRIER; Y[t] = s[n - 1 - t]; } else { Y[t] = 2; }",
    "else before": "if (t >= n) { Y[t] = 2; } else { s[t] = X[t]; BARRIER; Y[t] = s[n - 1 - t]; }",
    "loop, return": "for (int i = n; i < n + 9; ++i) { if (t >= i) return; Y[t] += i; BARRIER; }",
    "return behind it": """int i = 0;
    do { Y[t] += i; BARRIER; if (t >= n + i) return; } while (++i < 9);
    Y[t] += 1;""",
    "end of a loop": "for (int i = t; i < size + n; i += size) { Y[t] += i; BARRIER; }",
}
#: Threads from n on run what the others run behind the barrier.
PAST = {
    "branch": "if (t < n) BARRIER; Y[t] = 1;",
    "switch": "switch (t % 2) { case 0: BARRIER; break; case 1: break; } Y[t] = 1;",
    "loop": "float a = 0; for (int i = t; i < size + n; i += size) { a += i; BARRIER; } Y[t] = a;",
    "break": "for (int i = n; i < n + 9; ++i) { if (t >= i) break; Y[t] += i; BARRIER; } Y[t] = 1;",
    # A race, or a read of what is not written yet, that the barrier would prevent.
    "shared memory": "s[t] = X[t]; if (t < n) BARRIER; Y[t] = s[size - 1 - t];",
    "global memory": "Y[t] = X[t]; if (t < n) BARRIER; Y[t] = Y[size - 1 - t] + 1;",
    "a barrier behind": """s[t] = X[t];
    if (t < n) BARRIER;
    Y[t] = s[size - 1 - t];
    BARRIER;
    Y[t] += 1;""",
    "tail of one thread": "if (t < n) BARRIER; if (t == size - 1) Y[t] = 1;",
}
#: Mistakes of which the barrier is not the cause.
RACES = {
    "before": "s[t] = X[t]; Y[t] = s[size - 1 - t]; BARRIER; Y[t] += 1;",
    "after leaving": "if (t >= n) return; s[t] = X[t]; Y[t] = s[n - 1 - t]; BARRIER; Y[t] += 1;",
    "its condition": "if (t == 0) s[0] = 1;\n if (s[0] > 0) BARRIER;\n Y[t] = 1;",
}


def run(body, barrier, threads, **options):
    code = CODE.replace("BODY", body).replace("BARRIER", barrier)
    X, Y = np.arange(threads, dtype=np.float32), np.zeros(threads, np.float32)
    emulate(code, 1, threads, X, Y, max(threads - 24, threads // 2), **options)


WARPS = pytest.mark.parametrize("threads", [32, 64, 256])


@pytest.mark.sample(3)
@WARPS
@pytest.mark.parametrize("barrier", BARRIERS)
@pytest.mark.parametrize("form", LEFT)
def test_threads_that_have_left_count_as_arrived(form, barrier, threads):
    for seed in (0, 1):
        run(LEFT[form], barrier, threads, seed=seed)


@pytest.mark.sample(4)
@WARPS
@pytest.mark.parametrize("barrier", BARRIERS)
@pytest.mark.parametrize("form", PAST)
def test_a_barrier_that_threads_go_past_is_named(form, barrier, threads):
    for seed in (0, 1, 2):
        with pytest.raises(KernelError, match=r"kernel.cu:\d: .*barrier") as error:
            run(PAST[form], barrier, threads, seed=seed)
        expected = ("barrier-missed", "grid-barrier-missed", "different-places")
        assert error.value.mistake in expected, str(error.value)


@pytest.mark.sample(3)
@WARPS
@pytest.mark.parametrize("barrier", BARRIERS)
@pytest.mark.parametrize("form", RACES)
def test_a_race_before_a_barrier_stays_a_race(form, barrier, threads):
    for seed in (0, 1, 2):
        with pytest.raises(KernelError) as error:
            run(RACES[form], barrier, threads, seed=seed)
        assert error.value.mistake in ("race", "unwritten"), str(error.value)


@pytest.mark.sample(3)
@WARPS
@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_barrier_in_a_function_is_named(barrier, threads):
    run("if (t >= n) return; meet(Y + t); meet(Y + t);", barrier, threads)
    with pytest.raises(KernelError, match="barrier"):
        run("if (t < n) meet(Y + t); Y[t] = 1; if (t < n) meet(Y + t);", barrier, threads)


@WARPS
def test_two_barriers_of_two_branches_are_named(threads):
    for barrier in BARRIERS:
        with pytest.raises(KernelError, match="wait at different barriers"):
            run("if (t < n) BARRIER;\n else BARRIER;\n Y[t] = 1;", barrier, threads)


#: (body, whether it is correct).
EXCHANGES = [
    ("if (t % 32 < 16) __syncwarp(); Y[t] = 1;", False),
    ("s[t] = X[t]; if (t % 32 < 16) __syncwarp(); Y[t] = s[t ^ 1];", False),
    ("if (t % 32 < 16) { __syncwarp(); Y[t] = 1; } else { Y[t] = 2; }", False),
    ("if (t % 32 < 16) { __syncwarp(0xffff); Y[t] = 1; } else { Y[t] = 2; }", True),
    ("if (t % 32 >= 16) { Y[t] = 2; return; } __syncwarp(); Y[t] = 1;", True),
    ("if (t % 32 >= 16) return; __syncwarp(); Y[t] = 1;", True),
    ("if (t % 32 < 16) __syncwarp(0xffff); Y[t] = 1;", True),
    ("float x = 0; if (t % 32 < 16) x = __any_sync(~0u, X[t]); Y[t] = x;", False),
    ("for (int i = 0; i < 1 + t / 16 % 2; ++i) __any_sync(~0u, X[t]); Y[t] = 1;", False),
    ("if (t % 32 >= 16) return; Y[t] = __shfl_down_sync(~0u, X[t], 8, 16);", True),
    *[
        (
            f"s[t] = X[t];\n{unroll}\nfor (int i = 0; i < 4; ++i) {{"
            "const int votes = __any_sync(~0u, X[t]);"
            "if (t % 4 == i) { Y[t] = votes; return; } s[t] += votes; }",
            True,
        )
        for unroll in ("#pragma unroll", "#pragma unroll 1")
    ],
    (
        "if (t % 32 < 16) {\n#pragma unroll\nfor (int i = 0; i < 3; ++i) __any_sync(~0u, X[t]);"
        "\nY[t] = 1; } else { Y[t] = 2; }",
        False,
    ),
]


@pytest.mark.sample(3)
@WARPS
@pytest.mark.parametrize(("body", "is_correct"), EXCHANGES)
def test_lanes_that_have_left_and_lanes_that_go_past_an_exchange(body, is_correct, threads):
    for seed in (0, 1):
        if is_correct:
            run(body, "", threads, seed=seed)
            continue
        with pytest.raises(KernelError):
            run(body, "", threads, seed=seed)
