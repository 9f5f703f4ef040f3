"""Messages of the command name the user's line, and the calls that lead to it."""

import re

import pytest

from tests.commands import command
from tests.compilers import needs_compiler

pytestmark = needs_compiler

#: {source with a mistake: (launch and arguments, line of the mistake, lines of the calls)}
MISTAKES = {
    """__device__ float next(const float *X, int i) {
    return X[i + 1];
}
__device__ float both(const float *X, int i) {
    return next(X, i) + next(X, i - 1);
}
__global__ void k(const float *X, float *Y) {
    const float y = both(X, threadIdx.x);
    Y[threadIdx.x] = y + both(X, 0);
}
""": ("--grid 1 --block 32 random:float32:32 out:float32:32", 2, [5, 8]),
    """__device__ void add(float *sum, float x) { *sum += x; }
__global__ void k(const float *X, float *Y) {
    add(Y, X[threadIdx.x]);
    add(Y + 1, X[threadIdx.x]);
}
""": ("--grid 1 --block 64 random:float32:64 zeros:float32:2", 1, [3]),
    """__device__ int divided(int a, int b) { return a / b; }
__device__ int square(int n) { return n * n; }
__global__ void k(int *Y, int n) {
    Y[threadIdx.x] = divided(n, threadIdx.x + 1) + square(n) +
                     divided(n, threadIdx.x);
}
""": ("--grid 1 --block 32 out:int32:32 5", 1, [5]),
    """struct Matrix {
    const float *numbers;
    __device__ float operator()(int i, int j) const { return numbers[i * 8 + j]; }
};
__global__ void k(const float *X, float *Y) {
    Matrix matrix{X};
    Y[threadIdx.x] = matrix(threadIdx.x, 3);
}
""": ("--grid 1 --block 64 random:float32:64 out:float32:64", 3, [7]),
    """__device__ __noinline__ void meet() {
    __syncthreads();
}
__global__ void k(float *Y) {
    if (threadIdx.x < 40)
        meet();
    Y[threadIdx.x] = 1;
}
""": ("--grid 1 --block 64 out:float32:64", 2, [6]),
    """__device__ __noinline__ float sum(float x) {
    for (int d = 16; d; d /= 2)
        x += __shfl_down_sync(~0u, x, d);
    return x;
}
__global__ void k(const float *X, float *Y, int n) {
    float s = 0;
    if (threadIdx.x < n) s = sum(X[threadIdx.x]);
    Y[threadIdx.x] = s;
}
""": ("--grid 1 --block 64 random:float32:64 out:float32:64 20", 3, [8]),
    """#include <cub/cub.cuh>
__global__ void k(const float *X, float *Y) {
    typedef cub::BlockReduce<float, 64> Reduce;
    __shared__ typename Reduce::TempStorage temp;
    const float sum = Reduce(temp).Sum(X[threadIdx.x]);
    const float most = Reduce(temp).Reduce(X[threadIdx.x], cub::Max());
    if (threadIdx.x == 0) *Y = sum + most;
}
""": ("--grid 1 --block 64 random:float32:64 out:float32:1", 6, []),
    """#include <cub/cub.cuh>
__device__ void load(float (&x)[4], const float *X, int n) {
    typedef cub::BlockLoad<float, 32, 4> Load;
    Load().Load(X, x);
}
__global__ void k(const float *X, float *Y) {
    float x[4];
    load(x, X, 128);
    Y[threadIdx.x] = x[0] + x[1] + x[2] + x[3];
}
""": ("--grid 1 --block 32 random:float32:120 out:float32:32", 4, [8]),
    """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__device__ float sum(float x) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    return cg::reduce(warp, x, cg::plus<float>());
}
__global__ void k(const float *X, float *Y, int n) {
    float s = 0;
    if (threadIdx.x < n) s = sum(X[threadIdx.x]);
    Y[threadIdx.x] = s;
}
""": ("--grid 1 --block 64 random:float32:64 out:float32:64 40", 6, [10]),
    """#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(const float *X, float *Y) {
    __shared__ float tile[64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, tile, X, 65 * sizeof(float));
    cg::wait(block);
    Y[threadIdx.x] = tile[threadIdx.x];
}
""": ("--grid 1 --block 64 random:float32:128 out:float32:64", 7, []),
    """#include <cuda/std/array>
__global__ void k(const float *X, float *Y) {
    cuda::std::array<float, 4> sums{};
    sums[threadIdx.x / 8] += X[threadIdx.x];
    Y[threadIdx.x] = sums[0];
}
""": ("--grid 1 --block 64 random:float32:64 out:float32:64", 4, []),
    """#include <mma.h>
using namespace nvcuda;
__device__ void store(float *Y, float x) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, x);
    wmma::store_matrix_sync(Y, sums, 16, wmma::mem_row_major);
}
__global__ void k(float *Y) {
    store(Y, 1);
}
""": ("--grid 1 --block 32 out:float32:200", 6, [9]),
    """#include <cuda_bf16.h>
struct Pack { __nv_bfloat16 v[8]; };
__device__ __noinline__ void store(__nv_bfloat16 *Y, const Pack &pack) {
    *reinterpret_cast<Pack *>(Y) = pack;
}
__global__ void k(__nv_bfloat16 *Y) {
    Pack pack;
    for (int i = 0; i < 7; ++i) pack.v[i] = threadIdx.x;
    store(Y + 8 * threadIdx.x, pack);
}
""": ("--grid 1 --block 32 out:bfloat16:256", 4, [9]),
    """__global__ void k(const float *X, float *Y) {
    __shared__ float s[64];
    s[threadIdx.x] = X[threadIdx.x];
    for (int d = 32; d > 0; d /= 2) {
        if (threadIdx.x < d) {
            __syncthreads();
            s[threadIdx.x] += s[threadIdx.x + d];
        }
    }
    __syncthreads();
    Y[threadIdx.x] = s[63 - threadIdx.x];
}
""": ("--grid 1 --block 64 random:float32:64 out:float32:64", 6, []),
    """__device__ void store(float *s, float x) { s[threadIdx.x] = x; }
__global__ void k(const float *X, float *Y) {
    __shared__ float s[64];
    s[threadIdx.x] = 0;
    __syncthreads();
    store(s, X[threadIdx.x]);
    Y[threadIdx.x] = s[63 - threadIdx.x];
}
""": ("--grid 1 --block 64 random:float32:64 out:float32:64", 1, [6]),
    """#include <cuda/atomic>
__global__ void k(int *counts) {
    cuda::atomic_ref<int, cuda::thread_scope_device> count(counts[threadIdx.x]);
    count.fetch_add(1);
}
""": ("--grid 1 --block 64 zeros:int32:60", 4, []),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("source", MISTAKES)
def test_a_mistake_in_a_function_is_named_at_the_users_lines(source, tmp_path, capsys):
    (tmp_path / "k.cu").write_text(source)
    options, line, calls = MISTAKES[source]
    text, status = command(capsys, "check", tmp_path / "k.cu", *options.split())
    assert status == 1, text
    assert re.search(rf"k\.cu:{line}: error:", text), text
    sentence = re.search(r"\(called from (line .*?)\)", text)
    assert [int(one) for one in re.findall(r"\d+", sentence[1] if sentence else "")] == calls, text
    assert f"    {source.splitlines()[line - 1].strip()}\n" in text
    assert "has a barrier, but" not in text  # a barrier of the lines between two functions is none


def test_a_call_from_another_file_is_named_with_the_file(tmp_path, capsys):
    (tmp_path / "load.cuh").write_text(
        "__device__ inline float load(const float *X, int i) {\n    return X[i];\n}\n"
    )
    kernel = '#include "load.cuh"\n__global__ void k(const float *X, float *Y) {\n'
    kernel += "    Y[threadIdx.x] = load(X, threadIdx.x + 1);\n}\n"
    (tmp_path / "k.cu").write_text(kernel)
    launch = "--grid", "1", "--block", "32", "random:float32:32", "out:float32:32"
    text, status = command(capsys, "check", tmp_path / "k.cu", *launch)
    assert status == 1, text
    assert re.search(r"load\.cuh:2: error: .* \(called from k\.cu:3\)", text), text


def test_threads_that_leave_before_a_barrier_in_a_helper_are_right(tmp_path, capsys):
    kernel = """__device__ __noinline__ void meet() { __syncthreads(); }
__global__ void k(const float *X, float *Y, int n) {
    if (threadIdx.x >= n) return;
    meet();
    Y[threadIdx.x] = X[threadIdx.x];
    meet();
}
"""
    (tmp_path / "k.cu").write_text(kernel)
    launch = "--grid", "1", "--block", "64", "random:float32:40", "zeros:float32:64", "40"
    text, status = command(capsys, "check", tmp_path / "k.cu", *launch)
    assert status == 0, text


def test_a_shuffle_in_a_loop_of_some_lanes_is_named_and_not_a_later_one(tmp_path, capsys):
    kernel = """__global__ void k(const float *X, float *Y, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32)
        s += __shfl_down_sync(~0u, X[i], 16);
    for (int d = 8; d; d /= 2)
        s += __shfl_down_sync(~0u, s, d);
    Y[threadIdx.x] = s;
}
"""
    (tmp_path / "k.cu").write_text(kernel)
    launch = "--grid", 1, "--block", 32, "random:float32:40", "out:float32:32", 40
    text, status = command(capsys, "check", tmp_path / "k.cu", *launch)
    assert status == 1, text
    assert re.search(
        r"k\.cu:[46]: error: .*exchange at different places: .* at k\.cu:[46]\.", text
    ), text


#: Elements are those of the declaration, whatever the type of the access: 12 bytes of a float3.
ELEMENTS = """#define WIDTH 8
constexpr int ROWS = 64 / WIDTH;
__global__ void k(float *Y, int which) {
    __shared__ float tile[ROWS][WIDTH + 1];
    __shared__ float3 points[4];
    __shared__ unsigned char bytes[ROWS * sizeof(int)];
    if (which == 0) Y[0] = tile[1][WIDTH - 1];
    if (which == 1) Y[0] = points[2].y;
    if (which == 2) Y[0] = reinterpret_cast<float *>(bytes)[3];
}
"""


def test_an_element_has_the_indices_of_its_declaration(tmp_path, capsys):
    (tmp_path / "k.cu").write_text(ELEMENTS)
    for which, element in enumerate(("tile[1][7] (byte 64)", "points[2] (byte 28)", "(byte 12)")):
        launch = "--grid", 1, "--block", 1, "out:float32:1", which
        text, status = command(capsys, "check", tmp_path / "k.cu", *launch)
        assert status == 1
        assert f"{element}, which nothing has written" in text


BETWEEN = """__device__ float first(float x) {
    __shared__ float s[2];
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = x;
    __syncthreads();  // in this call
    return s[0];
}
__global__ void k(const float *X, float *Y) {
    float sum = 0;
    for (int i = 0; i < 3; ++i) {
        sum += first(X[i]);
        BEHIND;
    }
    Y[threadIdx.x] = sum;
}
"""


def test_a_barrier_between_two_lines_is_said_to_order_one_pass(tmp_path, capsys):
    (tmp_path / "k.cu").write_text(BETWEEN)
    launch = "--grid", 1, "--block", 64, "random:float32:3", "out:float32:64"
    text, status = command(capsys, "check", tmp_path / "k.cu", *launch, "-D", "BEHIND=")
    assert status == 1
    assert "reads s[0] (byte 0)" in text
    assert "k.cu:3" in text
    assert "line 4 has a barrier, but none keeps a thread from coming to line 3 again" in text
    assert "put one behind line 5, too" in text
    last = "-D", "BEHIND=__syncthreads()"
    assert command(capsys, "check", tmp_path / "k.cu", *launch, *last)[1] == 0
