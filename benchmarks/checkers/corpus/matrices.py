"""Transposes and products of dense matrices."""

from __future__ import annotations

import numpy as np

from .case import Launch, Mistake, kernel, whole


def transposed(warps, random, grid, block):
    A = whole(random, 45, 70)
    arguments = {
        "A": A.ravel(),
        "B": np.zeros(A.size, np.float32),
        "rows": np.int32(45),
        "columns": np.int32(70),
    }
    return Launch(grid, block, arguments, {"B": A.T.ravel()}, unwritten=("B",))


@kernel(
    """
// One element a thread.
__global__ void transpose_naive(const float *A, float *B, int rows, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) B[column * rows + row] = A[row * columns + column];
}
""",
    Mistake("missing guard", "row < rows && ", ""),
    Mistake("wrong stride", "A[row * columns + column]", "A[row + columns * column]"),
    Mistake("write past the end", "column < columns)", "column <= columns)"),
)
def transpose_naive(warps, random):
    x, y = {1: (8, 4), 2: (16, 4), 8: (16, 16)}[warps]
    return transposed(warps, random, (-(-70 // x), -(-45 // y)), (x, y))


@kernel(
    """
#define TILE 32

// A tile at a time through shared memory, with a column more against bank conflicts.
__global__ void transpose_tiled(const float *A, float *B, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += blockDim.y) {
        if (x < columns && y + j < rows) {
            tile[threadIdx.y + j][threadIdx.x] = A[(y + j) * columns + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += blockDim.y) {
        if (x < rows && y + j < columns) {
            B[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
        }
    }
}
""",
    Mistake("missing barrier", "__syncthreads();"),
    Mistake("unwritten shared memory", "x < rows && y + j < columns", "x < rows"),
    Mistake(
        "write past shared memory",
        "j < TILE; j += blockDim.y) {\n        if (x < columns",
        "j <= TILE; j += blockDim.y) {\n        if (x < columns",
    ),
)
def transpose_tiled(warps, random):
    return transposed(warps, random, (3, 2), (32, warps))


@kernel(
    """
// 8 by 4 in a warp: lanes write rows of a tile and read its columns.
__global__ void transpose_in_warps(const float *A, float *B) {
    __shared__ float tiles[8][8 * 4];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32;
    tiles[warp][lane] = A[first + lane];
    __syncwarp();
    B[first + lane] = tiles[warp][lane % 8 * 4 + lane / 8];
}
""",
    Mistake(
        "warp barrier for half a warp",
        "__syncwarp();",
        "__syncwarp(lane < 16 ? 0xffff : 0xffff0000);",
    ),
    Mistake("missing warp barrier", "__syncwarp();"),
)
def transpose_in_warps(warps, random):
    A = whole(random, 2 * warps, 8, 4)
    B = A.transpose(0, 2, 1)
    arguments = {"A": A.ravel(), "B": np.zeros(A.size, np.float32)}
    return Launch(2, 32 * warps, arguments, {"B": B.ravel()}, unwritten=("B",))


def product(random, grid, block, M, N, K, **options):
    A, B = whole(random, M, K), whole(random, K, N)
    arguments = {
        "A": A.ravel(),
        "B": B.ravel(),
        "C": np.zeros(M * N, np.float32),
        "M": np.int32(M),
        "N": np.int32(N),
        "K": np.int32(K),
    }
    return Launch(grid, block, arguments, {"C": (A @ B).ravel()}, unwritten=("C",), **options)


@kernel(
    """
// One element of C a thread.
__global__ void product_naive(const float *A, const float *B, float *C, int M, int N, int K) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
    C[row * N + column] = sum;
}
""",
    Mistake("missing guard", "if (row >= M || column >= N) return;"),
    Mistake("read past the end", "k < K", "k <= K"),
    Mistake("output not cleared", "float sum = 0.0f;", "float sum = C[row * N + column];"),
    Mistake("unwritten local variable", "float sum = 0.0f;", "float sum;"),
)
def product_naive(warps, random):
    x, y = {1: (8, 4), 2: (16, 4), 8: (16, 16)}[warps]
    return product(random, (-(-18 // x), -(-13 // y)), (x, y), 13, 18, 7)


@kernel(
    """
// Tiles of A and B in shared memory, a square block.
template <int TILE>
__global__ void product_tiled(const float *A, const float *B, float *C, int M, int N, int K) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k = 0; k < K; k += TILE) {
        a[ty][tx] = row < M && k + tx < K ? A[row * K + k + tx] : 0.0f;
        b[ty][tx] = k + ty < K && column < N ? B[(k + ty) * N + column] : 0.0f;
        __syncthreads();  // loaded
        for (int i = 0; i < TILE; ++i) sum += a[ty][i] * b[i][tx];
        __syncthreads();  // used
    }
    if (row < M && column < N) C[row * N + column] = sum;
}

template __global__ void product_tiled<8>(const float *, const float *, float *, int, int, int);
""",
    Mistake("missing barrier", "__syncthreads();  // loaded"),
    Mistake("late write", "__syncthreads();  // used"),
    Mistake(
        "return before a barrier",
        "    float sum = 0.0f;",
        "    if (row >= M || column >= N) return;\n    float sum = 0.0f;",
        hangs=True,
    ),
    Mistake("read past shared memory", "i < TILE; ++i", "i <= TILE; ++i"),
    warps=(2,),
    entry="product_tiled<8>",
)
def product_tiled(warps, random):
    return product(random, (3, 2), (8, 8), 13, 18, 19)


@kernel(
    """
// Four elements of a column of C a thread, in registers; both halves of the next tile load early.
#define TILE_K 8
#define ROWS 4

__global__ void product_registers(const float *A, const float *B, float *C, int M, int N, int K) {
    __shared__ float b[2][TILE_K][32];
    const int column = blockIdx.x * 32 + threadIdx.x;
    const int first = (blockIdx.y * blockDim.y + threadIdx.y) * ROWS;
    float sums[ROWS] = {};
    int now = 0;
    for (int j = threadIdx.y; j < TILE_K; j += blockDim.y) {
        b[now][j][threadIdx.x] = B[j * N + column];
    }
    __syncthreads();  // first
    for (int k = 0; k < K; k += TILE_K) {
        if (k + TILE_K < K) {
            for (int j = threadIdx.y; j < TILE_K; j += blockDim.y) {
                b[1 - now][j][threadIdx.x] = B[(k + TILE_K + j) * N + column];
            }
        }
        for (int i = 0; i < ROWS; ++i) {
            for (int j = 0; j < TILE_K; ++j) {
                sums[i] += A[(first + i) * K + k + j] * b[now][j][threadIdx.x];
            }
        }
        __syncthreads();  // next
        now = 1 - now;
    }
    for (int i = 0; i < ROWS; ++i) C[(first + i) * N + column] = sums[i];
}
""",
    Mistake("missing barrier", "__syncthreads();  // next", wrong_from=2),
    Mistake("stale buffer", "b[1 - now][j]", "b[now][j]", wrong_from=2),
    Mistake("unwritten local variable", "float sums[ROWS] = {};", "float sums[ROWS];"),
    Mistake("read past the end", "if (k + TILE_K < K) {", "if (k < K) {"),
)
def product_registers(warps, random):
    return product(random, (2, 1), (32, warps), 4 * warps, 64, 24)


@kernel(
    """
// y = A x: a warp a row, four floats at a time.
__global__ void matrix_vector(const float *A, const float *x, float *y, int rows, int columns) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int j = 4 * lane; j < columns; j += 128) {
        const float4 a = *reinterpret_cast<const float4 *>(A + row * columns + j);
        const float4 b = *reinterpret_cast<const float4 *>(x + j);
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
    if (lane == 0) y[row] = sum;
}
""",
    Mistake("misaligned access", "(A + row * columns + j)", "(A + row * columns + j + 1)"),
    Mistake("missing guard", "if (row >= rows) return;"),
    Mistake("wrong mask", "__shfl_xor_sync(0xffffffff", "__shfl_xor_sync(0x7fffffff"),
    Mistake("read past the end", "j < columns; j += 128", "j <= columns; j += 128"),
)
def matrix_vector(warps, random):
    rows, columns = 3 * warps - (warps > 1), 256
    A, x = whole(random, rows, columns), whole(random, columns)
    arguments = {
        "A": A.ravel(),
        "x": x,
        "y": np.zeros(rows, np.float32),
        "rows": np.int32(rows),
        "columns": np.int32(columns),
    }
    return Launch(3 + (warps == 1), 32 * warps, arguments, {"y": A @ x}, unwritten=("y",))
