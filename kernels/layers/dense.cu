// Dense operations of layers between their products, one pass over memory each. A thread handles
// four elements; accelviz.layers.dense defines each function.
#include "layers/finish.cuh"
#include "layers/lanes.cuh"

DEVICE_INLINE bool is_whole(const void *first, const void *second, long long four, long long n) {
    const bool aligned = ((size_t)first | (size_t)second) % sizeof(float4) == 0;
    return aligned && AT_ONCE * four + AT_ONCE <= n;
}

DEVICE_INLINE void load_four(const float *X, long long four, long long n, bool whole,
                             float *loaded) {
    if (whole) {
        const float4 read = reinterpret_cast<const float4 *>(X)[four];
        loaded[0] = read.x, loaded[1] = read.y, loaded[2] = read.z, loaded[3] = read.w;
        return;
    }
    for (int i = 0; i < AT_ONCE; ++i) {
        loaded[i] = AT_ONCE * four + i < n ? X[AT_ONCE * four + i] : 0.0f;
    }
}

DEVICE_INLINE void store_four(float *Y, long long four, long long n, bool whole,
                              const float *values) {
    if (whole) {
        reinterpret_cast<float4 *>(Y)[four] =
            make_float4(values[0], values[1], values[2], values[3]);
        return;
    }
    for (int i = 0; i < AT_ONCE; ++i) {
        if (AT_ONCE * four + i < n) Y[AT_ONCE * four + i] = values[i];
    }
}

// Y = dropout(activation(Z + added + bias)), n elements; `added` and `bias` may be null.
extern "C" __global__ void finish(const float *Z, const float *added, const float *bias, float *Y,
                                  long long n, int n_cols, float rate, const unsigned *random) {
    const long long four = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (AT_ONCE * four >= n) return;
    const bool whole = is_whole(Z, Y, four, n);
    float values[AT_ONCE], others[AT_ONCE] = {};
    load_four(Z, four, n, whole, values);
    if (added != nullptr) load_four(added, four, n, is_whole(added, Z, four, n), others);
    const DropoutMask mask = dropout_mask(four, rate, random);
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
        float z = values[i] + others[i];
        if (bias != nullptr) z += bias[(AT_ONCE * four + i) % n_cols];
        values[i] = activated(z) * mask.factor[i];
    }
    store_four(Y, four, n, whole, values);
}

// dZ from dY. The activation's derivative is computed from Y.
extern "C" __global__ void finish_gradient(const float *dY, const float *Y, float *dZ, long long n,
                                           float rate, const unsigned *random) {
    const long long four = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (AT_ONCE * four >= n) return;
    const bool whole = is_whole(dY, dZ, four, n) && (size_t)Y % sizeof(float4) == 0;
    float values[AT_ONCE], results[AT_ONCE];
    load_four(dY, four, n, whole, values);
    load_four(Y, four, n, whole, results);
    const DropoutMask mask = dropout_mask(four, rate, random);
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
        values[i] *= mask.factor[i];
        if (Config::activation == 1) values[i] = results[i] > 0.0f ? values[i] : 0.0f;
        if (Config::activation == 2 && results[i] <= 0.0f)
            values[i] *= 1.0f + results[i] * (Config::dropout ? 1.0f - rate : 1.0f);
    }
    store_four(dZ, four, n, whole, values);
}

// Multiplies Y by `scale` where `positive` > 0 and by 0 elsewhere.
extern "C" __global__ void slope(float *Y, const float *positive, long long n, float scale) {
    const long long four = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (AT_ONCE * four >= n) return;
    const bool whole = is_whole(Y, positive, four, n);
    float values[AT_ONCE], others[AT_ONCE];
    load_four(Y, four, n, whole, values);
    load_four(positive, four, n, whole, others);
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) values[i] = others[i] > 0.0f ? values[i] * scale : 0.0f;
    store_four(Y, four, n, whole, values);
}

// Softmax and cross entropy of a row, by neighboring lanes: the row's loss, and the gradient.
extern "C" __global__ void cross_entropy(const float *logits, const int *labels,
                                         const float *weights, float *losses, float *gradient,
                                         int n_rows, int n_classes, int log_lanes) {
    const auto [row, lane, lanes, exists] = row_of_thread(n_rows, log_lanes);
    const float *row_logits = logits + element(row, 0, n_classes);
    float largest = row_logits[lane < n_classes ? lane : 0], sum = 0.0f;
    for (int c = lane; c < n_classes; c += lanes) largest = fmaxf(largest, row_logits[c]);
    largest = largest_of(largest, lanes);
    for (int c = lane; c < n_classes; c += lanes) sum += expf(row_logits[c] - largest);
    sum = sum_of(sum, lanes);
    if (!exists) return;
    const float weight = weights[row];
    const int label = weight == 0.0f ? 0 : labels[row];
    if (lane == 0) {
        losses[row] = weight == 0.0f ? 0.0f : weight * (logf(sum) - (row_logits[label] - largest));
    }
    for (int c = lane; c < n_classes; c += lanes) {
        const float share = expf(row_logits[c] - largest) / sum;
        gradient[element(row, c, n_classes)] =
            weight == 0.0f ? 0.0f : weight * (share - (c == label ? 1.0f : 0.0f));
    }
}

// One step of Adam for all parameters. `words[3]` is the number of earlier steps. The logarithms of
// the betas keep 1 - beta^t exact where beta^t is almost 1.
extern "C" __global__ void adam(float *flat, const float *gradient, float *mean, float *square,
                                const float *decay, const unsigned *words, long long n, float rate,
                                float beta1, float beta2, float eps, float log_beta1,
                                float log_beta2) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float steps = float(words[3]) + 1.0f;
    const float slope = gradient[i] + decay[i] * flat[i];
    const float average = mean[i] + (1.0f - beta1) * (slope - mean[i]);
    const float spread = square[i] + (1.0f - beta2) * (slope * slope - square[i]);
    mean[i] = average;
    square[i] = spread;
    const float scale = sqrtf(spread / -expm1f(steps * log_beta2)) + eps;
    flat[i] -= rate / -expm1f(steps * log_beta1) * average / scale;
}

// Adds up the rows of this block: sums[block, column]. The result does not depend on the order in
// which blocks run. `width` threads, at most n_cols and the block's size, handle neighboring
// columns of a row. A block has at most 1024 threads.
extern "C" __global__ void column_sums(const float *A, float *sums, int n_rows, int n_cols,
                                       int width) {
    __shared__ float parts[1024];
    const int rows_at_once = blockDim.x / width;
    const int row_of_thread = threadIdx.x / width, own_column = threadIdx.x % width;
    for (int first = 0; first < n_cols; first += width) {
        const int column = first + own_column;
        float sum = 0.0f;
        if (row_of_thread < rows_at_once && column < n_cols) {
#pragma unroll 8
            for (int row = blockIdx.x * rows_at_once + row_of_thread; row < n_rows;
                 row += gridDim.x * rows_at_once) {
                sum += A[element(row, column, n_cols)];
            }
        }
        parts[threadIdx.x] = sum;
        __syncthreads();
        if (row_of_thread == 0 && column < n_cols) {
            for (int other = 1; other < rows_at_once; ++other) {
                sum += parts[other * width + own_column];
            }
            sums[element(blockIdx.x, column, n_cols)] = sum;
        }
        __syncthreads();
    }
}
