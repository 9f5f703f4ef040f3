"""What layers of neural networks are made of, and bodies that attract each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .case import Launch, Mistake, kernel, whole


@kernel(
    """
// A row a block: its largest element, then the sum of the exponentials.
__global__ void softmax(const float *X, float *Y, int width) {
    __shared__ float s[256];
    const int t = threadIdx.x;
    const float *const row = X + blockIdx.x * width;
    float largest = -1e30f;
    for (int j = t; j < width; j += blockDim.x) largest = fmaxf(largest, row[j]);
    s[t] = largest;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] = fmaxf(s[t], s[t + half]);
        __syncthreads();
    }
    largest = s[0];
    __syncthreads();  // read
    float sum = 0.0f;
    for (int j = t; j < width; j += blockDim.x) sum += expf(row[j] - largest);
    s[t] = sum;
    __syncthreads();  // summed
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    for (int j = t; j < width; j += blockDim.x) {
        Y[blockIdx.x * width + j] = expf(row[j] - largest) / s[0];
    }
}
""",
    Mistake("late write", "__syncthreads();  // read"),
    Mistake("missing barrier", "__syncthreads();  // summed"),
    Mistake(
        "return before a barrier",
        "s[t] = largest;\n",
        "if (t >= width) return;\n    s[t] = largest;\n",
        wrong_from=8,
        hangs=True,
    ),
    Mistake(
        "read past the end",
        "j < width; j += blockDim.x) largest",
        "j <= width; j += blockDim.x) largest",
    ),
)
def softmax(warps, random):
    X = random.standard_normal((2, 77)).astype(np.float32)
    shifted = np.exp(X.astype(float) - X.max(axis=1, keepdims=True))
    arguments = {"X": X.ravel(), "Y": np.zeros(X.size, np.float32), "width": np.int32(77)}
    expected = {"Y": (shifted / shifted.sum(axis=1, keepdims=True)).ravel()}
    return Launch(2, 32 * warps, arguments, expected, unwritten=("Y",), tolerance=1e-5)


@kernel(
    """
// Mean and variance of a row a warp, then scale and shift.
__device__ float sum_of_warp(float value) {
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffff, value, d);
    return value;
}

__global__ void layer_norm(const float *X, const float *gain, const float *bias, float *Y, int rows,
                           int width) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int j = lane; j < width; j += 32) sum += X[row * width + j];
    const float mean = sum_of_warp(sum) / width;
    float squares = 0.0f;
    for (int j = lane; j < width; j += 32) {
        const float distance = X[row * width + j] - mean;
        squares += distance * distance;
    }
    const float scale = rsqrtf(sum_of_warp(squares) / width + 1e-5f);
    for (int j = lane; j < width; j += 32) {
        Y[row * width + j] = (X[row * width + j] - mean) * scale * gain[j] + bias[j];
    }
}
""",
    Mistake("missing guard", "if (row >= rows) return;"),
    Mistake("wrong stride", "scale * gain[j]", "scale * gain[row * width + j]"),
    Mistake(
        "exchange in a branch",
        "const float mean = sum_of_warp(sum) / width;",
        "const float mean = lane < width % 32 ? sum_of_warp(sum) / width : 0.0f;",
        hangs=True,
    ),
    Mistake("unwritten local variable", "float squares = 0.0f;", "float squares;"),
)
def layer_norm(warps, random):
    rows = 3 * warps - 1
    X = random.standard_normal((rows, 45)).astype(np.float32)
    gain, bias = random.standard_normal((2, 45)).astype(np.float32)
    exact = X.astype(float)
    normal = (exact - exact.mean(axis=1, keepdims=True)) / np.sqrt(
        exact.var(axis=1, keepdims=True) + 1e-5
    )
    arguments = {
        "X": X.ravel(),
        "gain": gain,
        "bias": bias,
        "Y": np.zeros(X.size, np.float32),
        "rows": np.int32(rows),
        "width": np.int32(45),
    }
    expected = {"Y": (normal * gain + bias).ravel()}
    return Launch(3, (32, warps), arguments, expected, unwritten=("Y",), tolerance=1e-4)


@kernel(
    """
// Y += a X, four floats at a time, and what is left one by one.
__global__ void axpy_vectors(float a, const float *X, float *Y, int n) {
    const int step = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 *const X4 = reinterpret_cast<const float4 *>(X);
    float4 *const Y4 = reinterpret_cast<float4 *>(Y);
    for (int i = first; i < n / 4; i += step) {
        const float4 x = X4[i];
        float4 y = Y4[i];
        y.x += a * x.x;
        y.y += a * x.y;
        y.z += a * x.z;
        y.w += a * x.w;
        Y4[i] = y;
    }
    for (int i = n / 4 * 4 + first; i < n; i += step) Y[i] += a * X[i];
}
""",
    Mistake("misaligned access", "<const float4 *>(X)", "<const float4 *>(X + 2)"),
    Mistake("read past the end", "i < n / 4; i", "i < (n + 3) / 4; i"),
    Mistake(
        "race in global memory", "n / 4 * 4 + first; i < n; i += step", "n / 4 * 4; i < n; ++i"
    ),
    Mistake(
        "int overflow of an index",
        "const float4 x = X4[i];",
        "const float4 x = X4[(i * 1000000007 + 7) % (n / 4)];",
    ),
)
def axpy_vectors(warps, random):
    X, Y = whole(random, 2, 4 * 70 * warps + 3)
    arguments = {"a": np.float32(3), "X": X, "Y": Y.copy(), "n": np.int32(X.size)}
    return Launch(2, 32 * warps, arguments, {"Y": Y + 3 * X})


@kernel(
    """
#include <cuda_fp16.h>

// The same in halves, two at a time.
__global__ void axpy_half2(float a, const half2 *X, half2 *Y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) Y[i] = __hfma2(__float2half2_rn(a), X[i], Y[i]);
}
""",
    Mistake("missing guard", "if (i < n) ", ""),
    Mistake(
        "misaligned access",
        "X[i], Y[i]",
        "*reinterpret_cast<const half2 *>(reinterpret_cast<const half *>(X) + i), Y[i]",
    ),
    Mistake("output not cleared", launch=lambda launch: replace(launch, unwritten=("Y",))),
)
def axpy_half2(warps, random):
    X, Y = random.integers(-8, 9, (2, 2 * (64 * warps - 5))).astype(np.float16)
    arguments = {"a": np.float32(3), "X": X, "Y": Y.copy(), "n": np.int32(X.size // 2)}
    return Launch(2, 32 * warps, arguments, {"Y": Y + 3 * X})


@kernel(
    """
// Bodies attract each other: all positions pass through a tile.
__device__ float3 pull(float4 a, float4 b, float3 sum) {
    const float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
    const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    const float strength = b.w * inverse * inverse * inverse;
    return make_float3(sum.x + dx * strength, sum.y + dy * strength, sum.z + dz * strength);
}

__global__ void bodies(const float4 *positions, float *forces, int n) {
    extern __shared__ float4 tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 mine = i < n ? positions[i] : make_float4(0, 0, 0, 0);
    float3 sum = make_float3(0, 0, 0);
    for (int first = 0; first < n; first += blockDim.x) {
        const int other = first + threadIdx.x;
        tile[threadIdx.x] = other < n ? positions[other] : make_float4(0, 0, 0, 0);
        __syncthreads();  // loaded
        for (int j = 0; j < blockDim.x; ++j) sum = pull(mine, tile[j], sum);
        __syncthreads();  // used
    }
    if (i < n) {
        forces[3 * i] = sum.x;
        forces[3 * i + 1] = sum.y;
        forces[3 * i + 2] = sum.z;
    }
}
""",
    Mistake("missing barrier", "__syncthreads();  // loaded"),
    Mistake("late write", "__syncthreads();  // used"),
    Mistake(
        "missing guard",
        "other < n ? positions[other] : make_float4(0, 0, 0, 0)",
        "positions[other]",
    ),
    Mistake("wrong stride", "forces[3 * i + 1]", "forces[3 * (i + 1)]"),
    Mistake(
        "too little dynamic shared memory",
        launch=lambda launch: replace(launch, shared_bytes=launch.shared_bytes // 4),
    ),
)
def bodies(warps, random):
    n = 64 * warps - 7
    positions = random.random((n, 4)).astype(np.float32)
    exact = positions.astype(float)
    away = exact[None, :, :3] - exact[:, None, :3]
    strength = exact[:, 3] * ((away**2).sum(axis=2) + 0.01) ** -1.5
    forces = (away * strength[:, :, None]).sum(axis=1)
    arguments = {
        "positions": positions.ravel(),
        "forces": np.zeros(3 * n, np.float32),
        "n": np.int32(n),
    }
    options = {"unwritten": ("forces",), "shared_bytes": 512 * warps, "tolerance": 2e-3}
    return Launch(2, 32 * warps, arguments, {"forces": forces.ravel()}, **options)


@kernel(
    """
#include <cassert>

// Means of rows of a table, chosen by lists of different length, as embeddings are averaged.
__global__ void mean_of_rows(const int *starts, const int *chosen, const int *table, int *means,
                             int width) {
    const int list = blockIdx.x;
    const int count = starts[list + 1] - starts[list];
    assert(count >= 0);
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
        int sum = 0;
        for (int k = starts[list]; k < starts[list + 1]; ++k) {
            sum += table[chosen[k] * width + column];
        }
        means[list * width + column] = count > 0 ? sum / count : 0;
    }
}
""",
    Mistake("division by zero", "count > 0 ? sum / count : 0", "sum / count"),
    Mistake("failed assertion", "assert(count >= 0)", "assert(count > 0)"),
    Mistake(
        "index far outside",
        "table[chosen[k] * width + column]",
        "table[(chosen[k] + 1) * width * width * 300 + column]",
    ),
)
def mean_of_rows(warps, random):
    counts = np.array([3, 0, 5, 1])
    starts = np.append(0, counts.cumsum()).astype(np.int32)
    table = random.integers(0, 1000, (30, 50)).astype(np.int32)
    chosen = random.integers(5, 30, 9).astype(np.int32)
    lists = np.split(table[chosen], starts[1:-1])
    means = [rows.sum(axis=0) // max(len(rows), 1) for rows in lists]
    arguments = {
        "starts": starts,
        "chosen": chosen,
        "table": table.ravel(),
        "means": np.zeros(200, np.int32),
        "width": np.int32(50),
    }
    return Launch(4, 32 * warps, arguments, {"means": np.ravel(means)}, unwritten=("means",))
