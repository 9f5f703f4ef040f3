// Y = dropout(X), where the mask of a row depends on the number of its node alone: all devices that
// have a node's row drop the same elements of it, and exchange nothing.
//
// Column c of node n has word c % 4 of the Philox counter (n, c / 4, random[2], random[3]).
//
// grid = any number of blocks; block = any number of threads

// Supplied at compile time:
//   whole  1 if the number of columns is a multiple of 4, else 0

#include "philox.cuh"

constexpr int AT_ONCE = 4;  // columns of a thread, which share a counter

// Returns 0 or 1 / (1 - rate).
DEVICE_INLINE float factor(unsigned word, float rate) {
    return float(word >> 8) * 0x1p-24f >= rate ? 1.0f / (1.0f - rate) : 0.0f;
}

extern "C" __global__ void row_dropout(const unsigned long long *__restrict__ nodes,
                                       const unsigned *__restrict__ random, float rate, int n_rows,
                                       int n_cols, const float *__restrict__ X,
                                       float *__restrict__ Y) {
    const int fours = ceil_div(n_cols, AT_ONCE);
    const long long end = (long long)n_rows * fours, step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += step) {
        const long long row = i / fours;
        const int four = int(i % fours);
        const RandomWords counter = {unsigned(nodes[row]), unsigned(four), random[2], random[3]};
        const RandomWords drawn = philox(random[0], random[1], counter);
        const float factors[AT_ONCE] = {factor(drawn.c0, rate), factor(drawn.c1, rate),
                                        factor(drawn.c2, rate), factor(drawn.c3, rate)};
        if (Config::whole) {
            const float4 x = reinterpret_cast<const float4 *>(X)[i];
            reinterpret_cast<float4 *>(Y)[i] =
                make_float4(x.x * factors[0], x.y * factors[1], x.z * factors[2], x.w * factors[3]);
        } else {
            for (int k = 0; k < AT_ONCE && AT_ONCE * four + k < n_cols; ++k) {
                const long long at = row * n_cols + AT_ONCE * four + k;
                Y[at] = X[at] * factors[k];
            }
        }
    }
}
