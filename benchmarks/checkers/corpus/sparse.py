"""Products of sparse matrices with vectors and dense matrices, in several formats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .case import Launch, Mistake, kernel, whole


def matrix(random, rows, columns, most):
    """Make a CSR matrix of small whole numbers with 0 to `most` nonzeros a row."""
    degrees = random.integers(0, most + 1, rows)
    degrees[[0, -1]] = most, 1
    pointers = np.append(0, degrees.cumsum()).astype(np.int32)
    indices = np.concatenate([np.sort(random.permutation(columns)[:d]) for d in degrees])
    values = whole(random, indices.size)
    dense = np.zeros((rows, columns), np.float32)
    dense[np.repeat(np.arange(rows), degrees), indices] = values
    return pointers, indices.astype(np.int32), values, dense


def csr(warps, random, rows, grid=2, most=12, **options):
    pointers, indices, values, dense = matrix(random, rows, 40, most)
    x = whole(random, 40)
    arguments = {
        "pointers": pointers,
        "columns": indices,
        "values": values,
        "x": x,
        "y": np.zeros(rows, np.float32),
        "rows": np.int32(rows),
    }
    return Launch(grid, 32 * warps, arguments, {"y": dense @ x}, unwritten=("y",), **options)


@kernel(
    """
// A row a thread.
__global__ void csr_scalar(const int *pointers, const int *columns, const float *values,
                           const float *x, float *y, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int k = pointers[row]; k < pointers[row + 1]; ++k) sum += values[k] * x[columns[k]];
        y[row] = sum;
    }
}
""",
    Mistake("missing guard", "if (row < rows) {", "{"),
    Mistake("read past the end", "k < pointers[row + 1]", "k <= pointers[row + 1]"),
    Mistake("unwritten local variable", "float sum = 0.0f;", "float sum;"),
    Mistake("output not cleared", "y[row] = sum;", "y[row] += sum;"),
)
def csr_scalar(warps, random):
    return csr(warps, random, 64 * warps - 3)


@kernel(
    """
// A row a warp, summed by shuffles.
__global__ void csr_vector(const int *pointers, const int *columns, const float *values,
                           const float *x, float *y, int rows) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = pointers[row] + lane; k < pointers[row + 1]; k += 32) {
        sum += values[k] * x[columns[k]];
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (lane == 0) y[row] = sum;
}
""",
    Mistake(
        "exchange in a branch",
        "for (int d = 16;",
        "if (pointers[row] + lane < pointers[row + 1]) for (int d = 16;",
        hangs=True,
    ),
    Mistake("race in global memory", "if (lane == 0) y[row] = sum;", "y[row] = sum;"),
    Mistake("wrong mask", "0xffffffff, sum", "__ballot_sync(0xffffffff, sum != 0), sum"),
    Mistake("read past the end", "row >= rows", "row > rows"),
)
def csr_vector(warps, random):
    return csr(warps, random, 4 * warps - 1, 4, most=39)


@kernel(
    """
// Nonzeros of equal shares for each block; rows that it ends are summed from shared memory.
#define SHARE 64

__global__ void csr_stream(const int *pointers, const int *columns, const float *values,
                           const float *x, float *y, int rows) {
    __shared__ float products[SHARE];
    const int first = blockIdx.x * SHARE, end = min(first + SHARE, pointers[rows]);
    for (int k = first + threadIdx.x; k < end; k += blockDim.x) {
        products[k - first] = values[k] * x[columns[k]];
    }
    __syncthreads();
    for (int row = threadIdx.x; row < rows; row += blockDim.x) {
        const int from = max(pointers[row], first), to = min(pointers[row + 1], end);
        if (from >= to) continue;
        float sum = 0.0f;
        for (int k = from; k < to; ++k) sum += products[k - first];
        atomicAdd(&y[row], sum);
    }
}
""",
    Mistake("missing barrier", "__syncthreads();"),
    Mistake("before the beginning", "max(pointers[row], first)", "pointers[row]"),
    Mistake("no atomic", "atomicAdd(&y[row], sum)", "y[row] += sum"),
    Mistake("write past shared memory", "min(first + SHARE, pointers[rows])", "pointers[rows]"),
)
def csr_stream(warps, random):
    launch = csr(warps, random, 40 * warps)
    nonzeros = launch.arguments["columns"].size
    return replace(launch, grid=-(-nonzeros // 64), unwritten=())


@kernel(
    """
// A nonzero a thread, added by atomics.
__global__ void coo_atomic(const int *rows, const int *columns, const float *values,
                           const float *x, float *y, int nonzeros) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < nonzeros) atomicAdd(&y[rows[k]], values[k] * x[columns[k]]);
}
""",
    Mistake(
        "no atomic",
        "atomicAdd(&y[rows[k]], values[k] * x[columns[k]])",
        "y[rows[k]] += values[k] * x[columns[k]]",
    ),
    Mistake("output not cleared", launch=lambda launch: replace(launch, unwritten=("y",))),
    Mistake("missing guard", "k < nonzeros", "k < gridDim.x * blockDim.x"),
)
def coo_atomic(warps, random):
    pointers, indices, values, dense = matrix(random, 20 * warps, 40, 12)
    x = whole(random, 40)
    arguments = {
        "rows": np.repeat(np.arange(20 * warps, dtype=np.int32), np.diff(pointers)),
        "columns": indices,
        "values": values,
        "x": x,
        "y": np.zeros(20 * warps, np.float32),
        "nonzeros": np.int32(indices.size),
    }
    return Launch(indices.size // (32 * warps) + 1, 32 * warps, arguments, {"y": dense @ x})


@kernel(
    """
// ELLPACK: as many places a row as the longest has, column by column, -1 where there is none.
__global__ void ell(const int *columns, const float *values, const float *x, float *y, int rows,
                    int width) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int j = 0; j < width; ++j) {
        const int column = columns[j * rows + row];
        if (column >= 0) sum += values[j * rows + row] * x[column];
    }
    y[row] = sum;
}
""",
    Mistake("before the beginning", "if (column >= 0) ", ""),
    Mistake("wrong stride", "columns[j * rows + row]", "columns[j * gridDim.x * blockDim.x + row]"),
    Mistake("read past the end", "j < width", "j <= width"),
)
def ell(warps, random):
    rows = 64 * warps - 3
    pointers, indices, values, dense = matrix(random, rows, 40, 12)
    width = np.diff(pointers).max()
    columns, padded = np.full((width, rows), -1, np.int32), np.zeros((width, rows), np.float32)
    for row in range(rows):
        mine = slice(pointers[row], pointers[row + 1])
        columns[: mine.stop - mine.start, row] = indices[mine]
        padded[: mine.stop - mine.start, row] = values[mine]
    x = whole(random, 40)
    arguments = {
        "columns": columns.ravel(),
        "values": padded.ravel(),
        "x": x,
        "y": np.zeros(rows, np.float32),
        "rows": np.int32(rows),
        "width": np.int32(width),
    }
    return Launch(2, 32 * warps, arguments, {"y": dense @ x}, unwritten=("y",))


@kernel(
    """
// Y = A X: a warp a row, a lane a column; a row's nonzeros wait in shared memory.
__global__ void spmm_rows(const int *pointers, const int *columns, const float *values,
                          const float *X, float *Y, int rows, int width) {
    __shared__ int column[8][32];
    __shared__ float value[8][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.x * (blockDim.x / 32) + warp;
    if (row >= rows) return;
    float sum = 0.0f;
    const int end = pointers[row + 1];
    for (int base = pointers[row]; base < end; base += 32) {
        if (base + lane < end) {
            column[warp][lane] = columns[base + lane];
            value[warp][lane] = values[base + lane];
        }
        __syncwarp();  // loaded
        const int count = min(32, end - base);
        for (int j = 0; j < count; ++j) {
            if (lane < width) sum += value[warp][j] * X[column[warp][j] * width + lane];
        }
        __syncwarp();  // used
    }
    if (lane < width) Y[row * width + lane] = sum;
}
""",
    Mistake("missing warp barrier", "__syncwarp();  // loaded"),
    Mistake("late write", "__syncwarp();  // used"),
    Mistake("unwritten shared memory", "j < count", "j < 32"),
    Mistake("race in shared memory", "column[warp][lane] = ", "column[0][lane] = ", wrong_from=2),
    Mistake("wrong stride", "column[warp][j] * width", "column[warp][j] * 32"),
    Mistake("race between blocks", "Y[row * width + lane]", "Y[row + lane]"),
)
def spmm_rows(warps, random):
    rows, width = 3 * warps - 1, 20
    pointers, indices, values, dense = matrix(random, rows, 50, 45)
    X = whole(random, 50, width)
    arguments = {
        "pointers": pointers,
        "columns": indices,
        "values": values,
        "X": X.ravel(),
        "Y": np.zeros(rows * width, np.float32),
        "rows": np.int32(rows),
        "width": np.int32(width),
    }
    return Launch(3, 32 * warps, arguments, {"Y": (dense @ X).ravel()}, unwritten=("Y",))
