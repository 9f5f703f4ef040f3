"""cuda::atomic, cuda::atomic_ref and basics of cuda::std in the emulator."""

import numpy as np
import pytest

from accelviz import emulate
from tests.compilers import needs_compiler
from tests.vocabulary import check_planted, compiles_for_a_gpu

pytestmark = needs_compiler

CODE = """#include <cuda/atomic>
#include <cuda/std/array>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/utility>
extern "C" __global__ void k(const int *X, int *total, int *Y, float *largest) {
    __shared__ cuda::atomic<int, cuda::thread_scope_block> sum;
    __shared__ cuda::atomic<int, cuda::thread_scope_block> ready;
    __shared__ int message;
    if (threadIdx.x == 0) {
        sum.store(0, cuda::memory_order_relaxed);
        ready = 0;
    }
    __syncthreads();
    sum.fetch_add(X[blockIdx.x * blockDim.x + threadIdx.x], cuda::memory_order_relaxed);
    if (threadIdx.x == 40) {
        message = 7;
        ready.store(1, cuda::memory_order_release);
    }
    if (threadIdx.x == 3) {
        while (ready.load(cuda::std::memory_order_acquire) == 0) {}
        Y[blockIdx.x] = message;
    }
    __syncthreads();
    if (threadIdx.x) return;
    cuda::std::array<int, 3> a{1, 2, 3};
    auto both = cuda::std::make_tuple(a[0], a[2]);
    cuda::atomic_ref<int, cuda::thread_scope_device> all(*total);
    all.fetch_add(sum + cuda::std::get<0>(both) + cuda::std::get<1>(both) - 4);
    all += 2;
    --all;
    cuda::atomic_ref<float, cuda::thread_scope_device> top(*largest);
    float old = top.load();
    while (!top.compare_exchange_weak(old, fmaxf(old, float(blockIdx.x)))) {}
    if (cuda::std::numeric_limits<int>::max() != 2147483647) __trap();
}
"""


def launch(code, seed=0):
    X, Y = np.arange(256, dtype=np.int32), np.zeros(4, np.int32)
    total, largest = np.zeros(1, np.int32), np.full(1, -9, np.float32)
    return emulate(code, 4, 64, X, total, Y, largest, seed=seed)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_atomics_of_all_scopes_and_orders(seed):
    outputs = launch(CODE, seed)
    assert outputs["total"] == [sum(range(256)) + 4]
    assert outputs["Y"].tolist() == [7] * 4
    assert outputs["largest"] == [3]


def test_the_source_is_cuda(monkeypatch):
    assert compiles_for_a_gpu(CODE, monkeypatch)


#: (text, its replacement, part of the message).
MISTAKES = [
    ("1, cuda::memory_order_release", "1, cuda::memory_order_relaxed", "reads message[0]"),
    ("cuda::thread_scope_device> all", "cuda::thread_scope_block> all", "a race"),
    ("all += 2", "*total += 2", "a race"),
    ("sum.fetch_add(X", "*(int *)&sum += (0, X", "a race"),
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_with_atomics_are_found(mistake):
    def launch_relaxed(code, seed):
        return launch(code.replace("x], cuda::memory_order_relaxed)", "x])"), seed)

    check_planted(CODE, mistake, launch_relaxed, seeds=3)


#: Methods that change a number, the number before and after, and the result.
METHODS = {
    "exchange(5)": (12, 5, 12),
    "fetch_add(5)": (12, 17, 12),
    "fetch_sub(5)": (12, 7, 12),
    "fetch_and(6)": (12, 4, 12),
    "fetch_or(3)": (12, 15, 12),
    "fetch_xor(5)": (12, 9, 12),
    "fetch_min(5)": (12, 5, 12),
    "fetch_max(50)": (12, 50, 12),
    "operator++()": (12, 13, 13),
    "operator--(0)": (12, 11, 12),
    "operator-=(2)": (12, 10, 10),
    "operator|=(3)": (12, 15, 15),
    "load()": (12, 12, 12),
}


@pytest.mark.parametrize("type_", ["int", "unsigned", "long long", "unsigned long long"])
def test_methods_of_atomics(type_):
    lines = "\n".join(
        f"    {{ {type_} x = {before}; cuda::atomic_ref<{type_}, cuda::thread_scope_thread> r(x);\n"
        f"      out[{3 * i}] = r.{call}; out[{3 * i + 1}] = x; }}"
        for i, (call, (before, _, _)) in enumerate(METHODS.items())
    )
    code = f'#include <cuda/atomic>\nextern "C" __global__ void k(int *out) {{\n{lines}\n}}'
    out = emulate(code, 1, 1, np.zeros(3 * len(METHODS), np.int32))["out"].reshape(-1, 3)
    expected = [[result, after, 0] for _, after, result in METHODS.values()]
    assert out.tolist() == expected
