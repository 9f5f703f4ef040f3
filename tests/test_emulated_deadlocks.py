"""Threads that wait for arrivals that never come are named at once, not by the time limit."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.emulator import trace_kernel
from accelviz.errors import KernelError
from tests.compilers import needs_compiler

pytestmark = needs_compiler

CODE = """#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
__global__ void k(int *Y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier, second;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int tile[256];
    cg::thread_block block = cg::this_thread_block();
    const int t = threadIdx.x, n = blockDim.x;
    if (t == 0) init(&barrier, n + MORE);
    if (t == 0) init(&second, n);
    __syncthreads();
    BODY
    Y[t] = t;
}"""
PIPELINE = """auto pipeline = cuda::make_pipeline(block, &state);
    for (int i = 0; i < 3; ++i) {
        pipeline.producer_acquire();
        cuda::memcpy_async(&tile[t], &Y[t], 4, pipeline);
        pipeline.producer_commit();
        pipeline.consumer_wait();
        pipeline.consumer_release();
    }"""
#: (body, further arrivals for which the barrier is initialised).
RIGHT = [
    ("barrier.arrive_and_wait();", 0),
    ("barrier.arrive_and_wait(); if (t < n / 2) return; __syncthreads();", 0),
    ("if (t % 2) { barrier.arrive_and_drop(); return; } barrier.arrive_and_wait();", 0),
    ("barrier.wait(barrier.arrive()); second.wait_parity((second.arrive(), false));", 0),
    ("for (int i = 0; i < 40; ++i) { barrier.arrive_and_wait(); second.arrive_and_wait(); }", 0),
    ("if (t == 0) barrier.arrive(); barrier.arrive_and_wait();", 1),
    (PIPELINE, 0),
    # Half waits for the other half, which first waits for an arrival of the first.
    (
        "if (t % 2) { (void)second.arrive(); barrier.arrive_and_wait(); }"
        "else { second.arrive_and_wait(); barrier.arrive_and_wait(); }",
        0,
    ),
]
#: (body, further arrivals): the number of arrivals that are missing, and where another thread is.
DEADLOCKS = {
    ("barrier.arrive_and_wait();", 1): (1, ""),
    ("barrier.arrive_and_wait();", 64): (64, ""),
    ("if (t) barrier.arrive_and_wait();", 0): (1, ""),
    ("if (t) barrier.arrive_and_wait();\n else __syncthreads();", 0): (1, "kernel.cu:15"),
    ("if (t) barrier.arrive_and_wait();\n else second.arrive_and_wait();", 0): (None, "kernel.cu:"),
    ("barrier.wait(barrier.arrive(t ? 1 : 2));", 2): (1, ""),
    ("second.wait_parity(false); second.arrive();", 0): (None, ""),
    (PIPELINE.replace("pipeline.producer_commit();", ""), 0): (None, ""),
    (PIPELINE.replace("pipeline.consumer_release();", ""), 0): (None, ""),
    (PIPELINE.replace("pipeline.producer_commit", "if (t) pipeline.producer_commit"), 0): (1, ""),
}


def run(body, more, threads, function=emulate, **options):
    code = CODE.replace("BODY", body).replace("MORE", str(more))
    return function(code, 1, threads, np.zeros(threads, np.int32), **options)


@pytest.mark.sample(3)
@pytest.mark.parametrize("threads", [2, 32, 64, 256])
@pytest.mark.parametrize(("body", "more"), RIGHT)
def test_threads_for_which_others_arrive_do_not_wait_for_ever(body, more, threads):
    for seed in (0, 1):
        run(body, more, threads, seed=seed, timeout=10.0)
    run(body, more, threads, trace_kernel)


@pytest.mark.sample(3)
@pytest.mark.parametrize("threads", [2, 32, 64, 256])
@pytest.mark.parametrize(("body", "more"), DEADLOCKS)
def test_a_deadlock_is_named_at_once(body, more, threads):
    missing, other = DEADLOCKS[body, more]
    for seed in (0, 1):
        with pytest.raises(KernelError, match=r"kernel.cu:\d+: a deadlock: thread \d+") as error:
            run(body, more, threads, seed=seed, timeout=600.0)
        assert error.value.mistake == "deadlock"
        if missing:
            assert f"which {missing} arrivals are missing" in str(error.value)
        assert other in str(error.value)
    with pytest.raises(KernelError, match="a deadlock"):
        run(body, more, threads, trace_kernel, timeout=600.0)
