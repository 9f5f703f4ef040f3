"""Convolutions, stencils and filters: neighbors, halos and borders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .case import Launch, Mistake, kernel, whole

FILTER = [1, 2, 4, 2, 1]


@kernel(
    """
__constant__ float weights[5] = {1.0f, 2.0f, 4.0f, 2.0f, 1.0f};

// The filter in constant memory, a tile with its halo in shared memory.
__global__ void convolution(const float *X, float *Y, int n) {
    __shared__ float tile[256 + 4];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t + 2] = i < n ? X[i] : 0.0f;
    if (t < 2) {
        tile[t] = i >= 2 ? X[i - 2] : 0.0f;
        const int right = i + blockDim.x;
        tile[t + 2 + blockDim.x] = right < n ? X[right] : 0.0f;
    }
    __syncthreads();
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 5; ++k) sum += weights[k] * tile[t + k];
    Y[i] = sum;
}
""",
    Mistake("read past constant memory", "k < 5", "k < 6"),
    Mistake("before the beginning", "i >= 2 ? X[i - 2] : 0.0f", "X[i - 2]"),
    Mistake("write past shared memory", "[256 + 4]", "[256 + 2]", wrong_from=8),
    Mistake("unwritten shared memory", "if (t < 2)", "if (t < 1)"),
    Mistake("missing barrier", "__syncthreads();"),
)
def convolution(warps, random):
    X = whole(random, 96 * warps - 17)
    arguments = {"X": X, "Y": np.zeros(X.size, np.float32), "n": np.int32(X.size)}
    Y = np.convolve(X, FILTER, "same")
    return Launch(3, 32 * warps, arguments, {"Y": Y}, unwritten=("Y",))


def neighbors(A, around):
    """Sum the shifted copies of an array of zeros at the border, with weights by offset."""
    padded = np.pad(A, 1)
    sums = np.zeros_like(A)
    for offset, weight in around.items():
        window = tuple(slice(1 + o, 1 + o + size) for o, size in zip(offset, A.shape, strict=True))
        sums += np.float32(weight) * padded[window]
    return sums


@kernel(
    """
#define RADIUS 1

// A 3 by 3 filter over a tile with its halo.
__global__ void convolution_2d(const float *image, float *out, int height, int width) {
    extern __shared__ float tile[];
    const int pitch = blockDim.x + 2 * RADIUS;
    const int x0 = blockIdx.x * blockDim.x - RADIUS, y0 = blockIdx.y * blockDim.y - RADIUS;
    for (int y = threadIdx.y; y < blockDim.y + 2 * RADIUS; y += blockDim.y) {
        for (int x = threadIdx.x; x < pitch; x += blockDim.x) {
            const bool inside = x0 + x >= 0 && x0 + x < width && y0 + y >= 0 && y0 + y < height;
            tile[y * pitch + x] = inside ? image[(y0 + y) * width + x0 + x] : 0.0f;
        }
    }
    __syncthreads();
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int j = 0; j <= 2 * RADIUS; ++j) {
        for (int i = 0; i <= 2 * RADIUS; ++i) {
            sum += tile[(threadIdx.y + j) * pitch + threadIdx.x + i] * (1 + i + j);
        }
    }
    out[y * width + x] = sum;
}
""",
    Mistake("missing guard", " && y0 + y < height", ""),
    Mistake("before the beginning", "y0 + y >= 0 && ", ""),
    Mistake("wrong stride", "tile[y * pitch + x] = ", "tile[y * blockDim.x + x] = "),
    Mistake("unwritten shared memory", "x < pitch; x +=", "x < blockDim.x; x +="),
    Mistake(
        "too little dynamic shared memory",
        launch=lambda launch: replace(launch, shared_bytes=launch.block[0] * launch.block[1] * 4),
    ),
)
def convolution_2d(warps, random):
    x, y = {1: (8, 4), 2: (16, 4), 8: (16, 16)}[warps]
    A = whole(random, 19, 21)
    weights = {(j, i): 3 + i + j for j in (-1, 0, 1) for i in (-1, 0, 1)}
    arguments = {
        "image": A.ravel(),
        "out": np.zeros(A.size, np.float32),
        "height": np.int32(19),
        "width": np.int32(21),
    }
    return Launch(
        (-(-21 // x), -(-19 // y)),
        (x, y),
        arguments,
        {"out": neighbors(A, weights).ravel()},
        unwritten=("out",),
        shared_bytes=4 * (x + 2) * (y + 2),
    )


@kernel(
    """
// The mean of each element and its two neighbors; the ends stay.
__global__ void stencil_1d(const float *X, float *Y, unsigned int n) {
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (i == 0 || i == n - 1) {
        Y[i] = X[i];
    } else {
        Y[i] = (X[i - 1] + X[i] + X[i + 1]) * 0.25f;
    }
}
""",
    Mistake("index below zero", "i == 0 || i == n - 1", "i == n - 1"),
    Mistake("read past the end", "i == 0 || i == n - 1", "i == 0"),
    Mistake("write to const memory", "Y[i] = X[i];", "Y[i] = const_cast<float *>(X)[i] = 0.0f;"),
    Mistake("write past the end", "i >= n", "i > n"),
)
def stencil_1d(warps, random):
    X = whole(random, 64 * warps - 3)
    Y = np.convolve(X, [0.25, 0.25, 0.25], "same")
    Y[[0, -1]] = X[[0, -1]]
    arguments = {"X": X, "Y": np.zeros(X.size, np.float32), "n": np.uint32(X.size)}
    return Launch(2, 32 * warps, arguments, {"Y": Y}, unwritten=("Y",))


@kernel(
    """
// Two steps of Jacobi's iteration in one block, between two arrays.
__global__ void stencil_2d(float *now, float *next, int n, int steps) {
    for (int step = 0; step < steps; ++step) {
        for (int i = threadIdx.x; i < (n - 2) * (n - 2); i += blockDim.x) {
            const int at = (i / (n - 2) + 1) * n + i % (n - 2) + 1;
            next[at] = (now[at - 1] + now[at + 1] + now[at - n] + now[at + n]) * 0.25f;
        }
        __syncthreads();
        float *const other = now;
        now = next;
        next = other;
    }
}
""",
    Mistake("missing barrier", "__syncthreads();"),
    Mistake(
        "race in global memory", "        now = next;\n        next = other;", "        now = next;"
    ),
    Mistake("read past the end", "i < (n - 2) * (n - 2)", "i < (n - 1) * (n - 2)"),
    Mistake("before the beginning", "(i / (n - 2) + 1) * n", "(i / (n - 2)) * n"),
    Mistake(
        "barrier in a branch",
        "        }\n        __syncthreads();",
        "            __syncthreads();\n        }",
        hangs=True,
    ),
)
def stencil_2d(warps, random):
    now = whole(random, 11, 11) * 16
    first = {"now": now.ravel(), "next": now.ravel().copy()}
    grids = [now.copy(), now.copy()]
    for step in range(2):
        old, new = grids[step % 2], grids[1 - step % 2]
        new[1:-1, 1:-1] = (
            old[1:-1, :-2] + old[1:-1, 2:] + old[:-2, 1:-1] + old[2:, 1:-1]
        ) * np.float32(0.25)
    expected = {"now": grids[0].ravel(), "next": grids[1].ravel()}
    arguments = {**first, "n": np.int32(11), "steps": np.int32(2)}
    return Launch(1, 32 * warps, arguments, expected)


@kernel(
    """
// Six neighbors in three dimensions, with blocks and a grid of three.
__global__ void stencil_3d(const float *X, float *Y, int nx, int ny, int nz) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz) return;
    const int at = (z * ny + y) * nx + x;
    float sum = -6.0f * X[at];
    if (x > 0) sum += X[at - 1];
    if (x < nx - 1) sum += X[at + 1];
    if (y > 0) sum += X[at - nx];
    if (y < ny - 1) sum += X[at + nx];
    if (z > 0) sum += X[at - nx * ny];
    if (z < nz - 1) sum += X[at + nx * ny];
    Y[at] = sum;
}
""",
    Mistake("missing guard", " || z >= nz", ""),
    Mistake("wrong stride", "(z * ny + y) * nx + x;", "(z * ny + y) * nx * ny + x;"),
    Mistake("index far outside", "X[at + nx * ny]", "X[at + nx * ny * nz * 40]"),
)
def stencil_3d(warps, random):
    block = {1: (4, 4, 2), 2: (8, 4, 2), 8: (8, 8, 4)}[warps]
    X = whole(random, 5, 6, 7)
    around = {(0, 0, 0): -6}
    for axis in range(3):
        for step in (-1, 1):
            around[tuple(step * (axis == other_axis) for other_axis in range(3))] = 1
    arguments = {
        "X": X.ravel(),
        "Y": np.zeros(X.size, np.float32),
        "nx": np.int32(7),
        "ny": np.int32(6),
        "nz": np.int32(5),
    }
    grid = tuple(
        -(-size // size_of_block) for size, size_of_block in zip((7, 6, 5), block, strict=True)
    )
    return Launch(grid, block, arguments, {"Y": neighbors(X, around).ravel()}, unwritten=("Y",))


@kernel(
    """
__device__ const unsigned char curve[16] = {0,   2,   6,   12,  20,  30,  42,  56,
                                            72,  90,  110, 132, 156, 182, 210, 240};

// Brighter pixels by a table, a byte each; the darkest of each block.
__global__ void bytes_by_table(const unsigned char *image, unsigned char *out, int *darkest,
                               int n) {
    __shared__ unsigned char found[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    const unsigned char pixel = i < n ? curve[image[i] / 16] : 255;
    found[t] = pixel;
    if (i < n) out[i] = pixel;
    __syncthreads();
    if (t == 0) {
        int least = 255;
        for (int j = 0; j < blockDim.x; ++j) least = min(least, (int)found[j]);
        darkest[blockIdx.x] = least;
    }
}
""",
    Mistake("race of bytes", "if (i < n) out[i] = pixel;", "if (i < n) out[i ^ (t == 1)] = pixel;"),
    Mistake("missing barrier", "__syncthreads();"),
    Mistake("read past a device table", "image[i] / 16", "image[i] / 15"),
    Mistake("read past shared memory", "j < blockDim.x; ++j", "j <= blockDim.x; ++j"),
)
def bytes_by_table(warps, random):
    threads = 32 * warps
    image = random.integers(0, 256, 2 * threads - 3).astype(np.uint8)
    image[[3, -1]] = 255
    curve = np.array([k * (k + 1) for k in range(16)], np.uint8)
    out = curve[image // 16]
    darkest = [out[:threads].min(), out[threads:].min()]
    arguments = {
        "image": image,
        "out": np.zeros(image.size, np.uint8),
        "darkest": np.zeros(2, np.int32),
        "n": np.int32(image.size),
    }
    expected = {"out": out, "darkest": darkest}
    return Launch(2, threads, arguments, expected, unwritten=("out", "darkest"))
