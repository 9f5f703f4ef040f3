// Counter-based random numbers, the same as accelviz.random on the host: Philox4x32-10 of Salmon et
// al., SC 2011. A backward pass computes the forward pass's numbers again; none are stored.
#pragma once

#include "common.cuh"

struct RandomWords {
    unsigned c0, c1, c2, c3;
};

DEVICE_INLINE RandomWords philox(unsigned key0, unsigned key1, RandomWords counter) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned high0 = __umulhi(0xd2511f53u, counter.c0), low0 = 0xd2511f53u * counter.c0;
        const unsigned high1 = __umulhi(0xcd9e8d57u, counter.c2), low1 = 0xcd9e8d57u * counter.c2;
        counter = {high1 ^ counter.c1 ^ key0, low1, high0 ^ counter.c3 ^ key1, low0};
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return counter;
}

// Dropout of edge values: each is multiplied by `factor`, which is 0 for a dropped value.
struct Dropout {
    float rate;
    const unsigned *__restrict__ random;  // the seed (two words), the site and the step

    // Returns 0 or 1 / (1 - rate). `nonzero` is an index in the caller's order.
    DEVICE_INLINE float factor(unsigned long long nonzero, int head) const {
        if (rate == 0.0f) return 1.0f;
        const RandomWords counter = {unsigned(nonzero), unsigned(nonzero >> 32),
                                     __ldg(&random[2]) | unsigned(head) << 16, __ldg(&random[3])};
        const unsigned word = philox(__ldg(&random[0]), __ldg(&random[1]), counter).c0;
        return float(word >> 8) * 0x1p-24f >= rate ? 1.0f / (1.0f - rate) : 0.0f;
    }
};
