"""Mistakes that the emulator reports: races for any order of threads, uninitialized variables."""

import re

import numpy as np
import pytest

from accelviz import emulate
from accelviz.emulator import declared, trace_kernel
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.kernels import source

pytestmark = needs_compiler

RACES = source("races")


@pytest.mark.parametrize("threads", [32, 64, 256])
@pytest.mark.parametrize("which", range(11))
def test_a_race_is_found_whatever_the_order(which, threads):
    X, Y = np.ones(threads, np.float32), np.zeros(threads, np.float32)
    for seed in range(4):
        with pytest.raises(KernelError) as caught:
            emulate(RACES, 1, threads, X, Y, which, seed=seed)
        start = RACES[: RACES.index(f"case {which}:")].count("\n") + 1
        lines = [int(line) for line in re.findall(r"kernel\.cu:(\d+)", str(caught.value))]
        assert "a race: thread" in str(caught.value)
        assert len(lines) == 2
        assert all(start <= line <= start + 6 for line in lines), (start, str(caught.value))
        assert re.search(r"(s|Y)\[\d+\]", str(caught.value))


ORDERED = source("ordered")


def ordered(which, seed, blocks=3, threads=64):
    n = blocks * threads
    X, Y = np.ones(n, np.float32), np.zeros(n, np.float32)
    others = np.zeros(n, np.uint8), np.zeros(blocks, np.float32), np.zeros(1), np.zeros(1, np.int32)
    outputs = emulate(ORDERED, blocks, threads, X, Y, *others, which, seed=seed, timeout=10.0)
    return n, outputs


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("which", range(9))
def test_what_is_ordered_is_no_race(which, seed):
    if which == 6 and seed:
        pytest.skip("blocks in another order wait for a later one")
    n, outputs = ordered(which, seed)
    if which in (1, 2, 3):
        assert outputs["Y"][0] == n
    if which == 4:
        assert outputs["total"] == [n]
    if which == 6:
        assert outputs["Y"][:3].tolist() == [5, 5, 5]
    if which == 7:
        np.testing.assert_array_equal(outputs["Y"].reshape(3, 64)[:, :20], 2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_a_fence_another_block_may_not_see_what_was_written(seed):
    with pytest.raises(
        KernelError, match=r"a race: .*of block \d.*__threadfence\(\) before its atomic"
    ):
        ordered(9, seed)


APART = source("apart")


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (0, r":[78]: lanes of a warp exchange at different places: .* at kernel.cu:[78]"),
        (1, r":1[12]: lanes .* come to different warp-wide functions: .* at kernel.cu:1[12]"),
        (2, r":16: .*reads from a lane of its warp that has left the kernel"),
        (3, r":19: thread 0 .* whose mask is without it"),
        (5, r":28: lanes of a warp come to different warp-wide functions"),
        (6, r":31: thread \d+ .* reads from a lane outside the mask"),
    ],
)
def test_lanes_exchange_at_one_place(which, message):
    for threads in (32, 64):
        with pytest.raises(KernelError, match=message):
            emulate(APART, 1, threads, np.zeros(threads, np.int32), which)


def test_what_a_lane_outside_the_mask_brings_is_an_error_only_where_it_is_used():
    Y = np.zeros(32, np.int32)
    emulate(APART, 1, 32, Y, 4)
    assert Y[0] == sum(range(8))
    emulate(APART, 1, 32, Y, 7)
    assert Y[0] == sum(range(3))


VOLATILE = source("volatile")


def test_volatile_data_behind_a_volatile_flag_want_a_fence():
    def run(fence):
        data, flags, Y = (np.zeros(2, np.int32) for _ in range(3))
        emulate(VOLATILE, 2, 32, data, flags, Y, fence)
        return Y[0]

    assert run(1) == 7
    for fence in (0, 2):  # that of the reader alone, and that of the writer alone
        with pytest.raises(KernelError, match=r":14: a race: thread 0 of block 1 reads data\[0\]"):
            run(fence)


COMPARE = source("compare")


def compared(kernel, which, warps, seed=0):
    """Call a kernel of compare.cu; return its count or sum, and the number of threads."""
    n = 2 * 32 * warps
    X, Y, counter, total = np.ones(n, np.float32), np.zeros(1, np.float32), np.zeros(2, int), [0.0]
    arguments = X, Y, counter.astype(np.int32), np.array(total), which
    options = {"kernel": kernel, "seed": seed, "timeout": 0.3 if kernel == "wrong" else 10.0}
    emulate(COMPARE, 2, 32 * warps, *arguments, **options)
    return max(float(array[0]) for array in arguments[1:4]), n


@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("which", range(11))
def test_a_compare_and_swap_with_an_old_value_is_wrong_or_never_ends(which, warps):
    if which == 2:
        with pytest.raises(KernelError, match=r"it did not end .* thread \d+ .* waits, in a loop"):
            compared("wrong", which, warps)
    else:
        result, n = compared("wrong", which, warps)
        assert result < n


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("which", range(11))
def test_a_compare_and_swap_with_the_new_value_is_right(which, warps, seed):
    result, n = compared("right", which, warps, seed)
    assert result == n


REWRITES = source("rewrites")


def rewritten(kernel, which, warps, seed):
    """Call a kernel of rewrites.cu."""
    X, Y = np.ones(32 * warps, np.float32), np.zeros(32 * warps, np.float32)
    arguments = X, Y, np.zeros(1, np.int32), which
    emulate(REWRITES, 1, 32 * warps, *arguments, kernel=kernel, seed=seed)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("which", range(10))
def test_threads_of_a_block_may_store_the_same_value(which, warps, seed):
    with pytest.warns(UserWarning, match=r"same, kernel.cu:\d+: several threads .* the same value"):
        rewritten("same", which, warps, seed)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("which", range(14))
def test_different_values_in_one_place_are_a_race(which, warps, seed):
    line = REWRITES[: REWRITES.rindex(f"case {which}:")].count("\n") + 1
    with pytest.raises(KernelError, match=rf"kernel.cu:{line}: a race: thread \d+"):
        rewritten("different", which, warps, seed)


@pytest.mark.parametrize("seed", [0, 1])
def test_blocks_may_store_the_same_value_and_a_run_lists_it(seed):
    code = "__global__ void told(int *changed) { if (threadIdx.x > 2) *changed = V; }"
    changed = np.zeros(1, np.int32)
    with pytest.warns(UserWarning, match="store the same value in changed"):
        outputs = emulate(code, 5, 32, changed, defines={"V": 1}, seed=seed)
    assert changed[0] == 1
    (note,) = outputs.notes
    assert note.argument == "told, kernel.cu:1"
    assert note.mistake == "same-value"
    with pytest.raises(KernelError, match="a race: thread"):
        emulate(code, 5, 32, changed, defines={"V": "blockIdx.x"}, seed=seed)
    assert emulate(code, 1, 4, changed, defines={"V": 1}).notes == ()


def test_a_traced_kernel_may_store_the_same_value_and_no_other():
    code = "__global__ void told(int *changed) { *changed = V; }"
    changed = np.zeros(1, np.int32)
    assert len(trace_kernel(code, 1, 64, changed, defines={"V": 1})) == 64
    with pytest.raises(KernelError, match="a race"):
        trace_kernel(code, 1, 64, changed, defines={"V": "threadIdx.x"})


PACKED = source("packed")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("which", range(5))
def test_threads_that_write_the_two_halves_of_a_word_are_apart(which, warps, seed):
    n = 32 * warps
    Y = np.zeros(n, np.float16)
    emulate(PACKED, 1, n, Y, which, kernel="packed", seed=seed)
    assert np.array_equal(Y, np.arange(n))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("which", range(5))
def test_threads_that_write_the_same_half_of_a_word_race(which, warps, seed):
    Y = np.zeros(32 * warps, np.float16)
    with pytest.raises(KernelError, match="a race: thread"):
        emulate(PACKED, 1, 32 * warps, Y, which, kernel="torn", seed=seed)


def test_constants_that_name_each_other_are_evaluated_once_for_a_message():
    """The names `t` and `x` of four kernels stand for each other: a tree of 16,668 evaluations."""
    declared._value.cache_clear()
    with pytest.raises(KernelError, match=r"writes pairs\[0\]"):
        emulate(PACKED, 1, 32, np.zeros(32, np.float16), 0, kernel="torn")
    assert 0 < declared._value.cache_info().misses < 200


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("many", [0, 1])
def test_a_volatile_flag_in_shared_memory_needs_a_fence(many, warps, seed):
    n = 32 * warps
    Y = np.zeros(n, np.int32)
    emulate(PACKED, 1, n, Y, many, kernel="fenced", seed=seed)
    assert np.array_equal(np.flatnonzero(Y), range(1 if many else n - 1, n))
    assert Y[-1] == 7
    with pytest.raises(KernelError, match="a race: thread"):
        emulate(PACKED, 1, n, Y, many, kernel="unfenced", seed=seed)


@pytest.mark.parametrize("warps", [1, 2, 8])
def test_a_flag_of_one_block_orders_nothing_for_another(warps):
    Y, data = np.zeros(32 * warps, np.int32), np.zeros(1, np.int32)
    with pytest.raises(KernelError, match=r"reads data\[0\]"):
        emulate(PACKED, 2, 32 * warps, Y, data, kernel="other_block")


LOCALS = source("locals")


def run(code, *arguments, threads=32):
    return emulate(code, 1, threads, *arguments)


def locals_of(which):
    X, Y = np.arange(8, dtype=np.float32), np.zeros(33, np.float32)
    run(LOCALS, X, Y, 8, which)
    return Y[:32]


@pytest.mark.parametrize(
    ("which", "expected"), [(0, 0), (1, [0] * 4 + [4, 5, 6, 7] + [0] * 24), (2, 25), (3, 21)]
)
def test_a_local_variable_that_is_written_where_it_matters_is_no_mistake(which, expected):
    for _ in range(2):
        assert np.array_equal(locals_of(which), np.broadcast_to(expected, 32))


@pytest.mark.parametrize(
    ("which", "stored"), [(4, "Y[t] = sum"), (5, "Y[t] = most"), (6, "        Y[t] = x;")]
)
def test_a_value_from_an_unwritten_local_variable_is_found(which, stored):
    line = LOCALS[: LOCALS.index(stored)].count("\n") + 1
    message = rf":{line}: thread \d+ of block 0 writes Y\[\d+\] .*local variable that nothing"
    for _ in range(2):
        with pytest.raises(KernelError, match=message):
            locals_of(which)


HALVES = source("halves")


@pytest.mark.parametrize("which", range(13))
def test_halves_are_accesses_of_the_line_that_uses_them(which):
    X, Y, pairs = (np.ones(8, np.float16) for _ in range(3))
    problem = "shifts" if which == 12 else "misaligned" if which > 9 else "out of bounds"
    with pytest.raises(KernelError, match=rf"kernel\.cu:{which + 6}[:,]") as caught:
        run(HALVES, X, Y, pairs, np.zeros(1, np.float32), which, 99, 32, threads=1)
    assert re.search(problem, str(caught.value)), caught.value


SUMS = """#include <cuda/barrier>
__global__ void sums(const float *X, float *Y, int n) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ float tile[64];
    if (threadIdx.x == 0) init(&bar, 64);
    __syncthreads();
    float sum = 0;
    for (int first = 0; first < n; first += 64) {
        COPY;
        bar.arrive_and_wait();
        for (int k = 0; k < 64; ++k) sum += tile[k];
        AGAIN;
    }
    Y[threadIdx.x] = sum;
}"""
COPIES = (
    "tile[threadIdx.x] = X[first + threadIdx.x]",
    "cuda::memcpy_async(&tile[threadIdx.x], &X[first + threadIdx.x], 4, bar)",
)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("again", ["bar.arrive_and_wait()", "__syncthreads()", ""])
@pytest.mark.parametrize("copy", COPIES)
def test_a_phase_of_a_barrier_orders_what_came_before_it_alone(copy, again, seed):
    X, Y = np.ones(256, np.float32), np.zeros(64, np.float32)
    arguments = SUMS.replace("COPY", copy).replace("AGAIN", again), 1, 64, X, Y, 256
    if again:
        assert (emulate(*arguments, seed=seed)["Y"] == 256).all()
        return
    with pytest.raises(KernelError, match=r"a race: thread .* tile.* What to do: put a barrier"):
        emulate(*arguments, seed=seed)


IN_TURN = """#include <cuda/atomic>
__global__ void split(const float *A, float *C, int *turn) {
    int k = blockIdx.x;
    cuda::atomic_ref<int, cuda::thread_scope_device> s(*turn);
    volatile int *flag = turn;
    if (threadIdx.x == 0) { WAIT; }
    __syncthreads();
    C[threadIdx.x] = (k == 0 ? 0 : C[threadIdx.x]) + A[k * 64 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) { PASS; }
}"""
LOAD = 'int x; do asm volatile("ld.ORDER.gpu.s32 %0, [%1];" : "=r"(x) : "l"(turn)); while (x != k)'
WAITS = {
    "while (s.load(cuda::memory_order_acquire) != k) ;": True,
    "while (s.load(cuda::memory_order_relaxed) != k) ; __threadfence()": True,
    "while (s.load(cuda::memory_order_relaxed) != k) ;": False,
    "while (atomicAdd(turn, 0) != k) ; __threadfence()": True,
    "while (atomicAdd(turn, 0) != k) ;": False,
    "while (*flag != k) ; __threadfence()": True,
    "while (*flag != k) ;": False,
    # A fence before the load orders nothing behind it.
    "__threadfence(); while (*flag != k) ;": False,
    "__threadfence(); while (atomicAdd(turn, 0) != k) ;": False,
    "__threadfence(); while (atomicCAS(turn, k, k) != k) ;": False,
    "__threadfence(); while (atomicOr(turn, 0) != k) ;": False,
    "__threadfence(); while (s.load(cuda::memory_order_relaxed) != k) ;": False,
    "__threadfence(); while (s.fetch_add(0, cuda::memory_order_relaxed) != k) ;": False,
    "__threadfence(); while (s.fetch_add(0, cuda::memory_order_release) != k) ;": False,
    "while (s.fetch_add(0, cuda::memory_order_acq_rel) != k) ;": True,
    LOAD.replace("ORDER", "acquire"): True,
    LOAD.replace("ORDER", "relaxed"): False,
}
PASSES = {
    "__threadfence(); atomicExch(turn, k + 1)": True,
    "s.store(k + 1, cuda::memory_order_release)": True,
    "s.store(k + 1, cuda::memory_order_relaxed)": False,
    "__threadfence(); *flag = k + 1": True,
    "atomicExch(turn, k + 1); __threadfence()": False,
    "*flag = k + 1; __threadfence()": False,
    "s.store(k + 1, cuda::memory_order_relaxed); __threadfence()": False,
}


@pytest.mark.parametrize(
    ("wait", "turn"),
    [
        *((wait, next(iter(PASSES))) for wait in WAITS),
        *((next(iter(WAITS)), turn) for turn in PASSES),
    ],
)
def test_writer_and_reader_of_a_semaphore_both_need_a_fence(wait, turn):
    A, C, number = np.ones(256, np.float32), np.zeros(64, np.float32), np.zeros(1, np.int32)
    arguments = IN_TURN.replace("WAIT", wait).replace("PASS", turn), 4, 64, A, C, number
    if WAITS[wait] and PASSES[turn]:
        assert (emulate(*arguments)["C"] == 4).all()
        return
    with pytest.raises(KernelError, match=r"a race: .*__threadfence\(\) before its atomic"):
        emulate(*arguments)


def test_blocks_are_not_told_to_wait_at_a_barrier_of_the_block():
    code = """__device__ int lock;
__global__ void count(int *n) {
    while (atomicCAS(&lock, 0, 1) != 0) ;
    *n = *n + 1;
    atomicExch(&lock, 0);
}"""
    with pytest.raises(KernelError, match=r"a race: .*__threadfence\(\) before") as caught:
        emulate(code, 4, 1, np.zeros(1, np.int32))
    assert "__sync" not in str(caught.value)


LOCK = """__device__ int lock;
__global__ void count(int *n, int *sides) {
    for (int i = 0; i < 2; ++i) {
        BEFORE;
        while (TAKE != 0) ;
        BEHIND;
        *n = *n + 1;
        WRITTEN;
        atomicExch(&lock, 0);
        RELEASED;
    }
}"""
FENCE = "__threadfence()"


@pytest.mark.parametrize("take", ["atomicCAS(&lock, 0, 1)", "atomicExch(&lock, 1)"])
@pytest.mark.parametrize(
    "fences", [("BEHIND", "WRITTEN"), ("BEFORE", "WRITTEN"), ("BEHIND", "RELEASED")]
)
def test_the_fences_of_a_lock_are_within_it(take, fences):
    code = LOCK.replace("TAKE", take)
    for position in ("BEFORE", "BEHIND", "WRITTEN", "RELEASED"):
        code = code.replace(position, FENCE if position in fences else "")
    n = np.zeros(1, np.int32)
    if fences == ("BEHIND", "WRITTEN"):
        assert emulate(code, 4, 1, n, n.copy())["n"] == [8]
        return
    with pytest.raises(KernelError, match=r"a race: thread 0 of block 1 reads n\[0\]"):
        emulate(code, 4, 1, n, n.copy())


#: A flag in shared memory: a fence before the reader's load, behind the writer's store, at both.
FLAG = """__global__ void k(const int *X, int *Y) {
    __shared__ volatile int flag;
    __shared__ int number;
    const int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 0) {
        if (which & 1) __threadfence_block();
        number = X[0];
        if (!(which & 1)) __threadfence_block();
        flag = 1;
        __threadfence_block();
    }
    if (t == blockDim.x - 1) {
        if (which & 2) __threadfence_block();
        while (flag == 0) {}
        if (!(which & 2)) __threadfence_block();
        Y[0] = number;
    }
}
"""


@pytest.mark.parametrize("threads", [2, 32, 64, 256])
@pytest.mark.parametrize("which", range(4))
def test_a_fence_on_the_wrong_side_of_a_flag_in_shared_memory_is_found(which, threads):
    code = FLAG.replace("which", str(which))
    for seed in (0, 1):
        Y = np.zeros(1, np.int32)
        if not which:
            assert emulate(code, 1, threads, np.array([5], np.int32), Y, seed=seed)["Y"] == [5]
            continue
        with pytest.raises(KernelError, match="a race: thread .* number"):
            emulate(code, 1, threads, np.array([5], np.int32), Y, seed=seed)


TICKET = """#include <cuda/atomic>
__device__ int tickets;
__global__ void k(const int *X, int *sums, int *Y) {
    __shared__ bool is_last;
    cuda::atomic_ref<int, cuda::thread_scope_device> counter(tickets);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = X[blockIdx.x];
        __threadfence();
        is_last = TICKET;
    }
    __syncthreads();
    if (!is_last || threadIdx.x) return;
    int sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += sums[b];
    *Y = sum;
}"""
#: Counters that need no fence behind them, and one whose order says that it acquires nothing.
TICKETS = {
    "atomicAdd(&tickets, 1) == gridDim.x - 1": True,
    "atomicInc((unsigned *)&tickets, gridDim.x - 1) == gridDim.x - 1": True,
    "atomicSub(&tickets, 1) == 1 - int(gridDim.x)": True,
    "counter.fetch_add(1, cuda::memory_order_relaxed) == gridDim.x - 1": True,
    "counter.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1": True,
    "counter.fetch_add(1, cuda::memory_order_release) == gridDim.x - 1": False,
}


@pytest.mark.parametrize("ticket", TICKETS)
def test_the_last_block_of_a_counter_reads_what_all_have_written(ticket):
    X, sums, Y = np.arange(5, dtype=np.int32), np.zeros(5, np.int32), np.zeros(1, np.int32)
    arguments = TICKET.replace("TICKET", ticket), 5, 64, X, sums, Y
    if TICKETS[ticket]:
        assert emulate(*arguments)["Y"] == [10]
        return
    with pytest.raises(KernelError, match="a race"):
        emulate(*arguments)
