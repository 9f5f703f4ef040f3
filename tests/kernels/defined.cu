// Right kernels with variables that are unwritten, and lanes that are undefined, for a while.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct Padded {
    char kind;
    double value;
};
struct Best {
    float value;
    int index;
};

__device__ bool find(const float *X, int n, float wanted, int *index) {
    for (int i = 0; i < n; ++i) {
        if (X[i] == wanted) {
            *index = i;
            return true;
        }
    }
    return false;
}

__global__ void k(const float *X, float *Y, int *counts, half *halves, half2 *pairs,
                  __nv_bfloat16 *narrow, float4 *quads, Padded *padded, int n, int which) {
    const int t = threadIdx.x, lane = t % 32;
    switch (which) {
    case 0: {  // lanes of the mask bring a number without meaning, which lane 0 does not use
        float v = X[lane];
        if (lane < 16) {
            for (int d = 8; d; d /= 2) v = fmaxf(v, __shfl_down_sync(0xffff, v, d));
            if (lane == 0) Y[t] = v;
        }
        break;
    }
    case 1: {  // the largest with its index: the upper lanes compare numbers without meaning
        Best best = {X[lane], lane};
        if (lane < 16) {
            for (int d = 8; d; d /= 2) {
                const Best other = {__shfl_down_sync(0xffff, best.value, d),
                                    __shfl_down_sync(0xffff, best.index, d)};
                if (other.value > best.value) best = other;
            }
            if (lane == 0) counts[t] = best.index;
        }
        break;
    }
    case 2: {  // halves of a warp by themselves
        float v = X[lane];
        for (int d = 8; d; d /= 2) v += __shfl_down_sync(~0u, v, d, 16);
        Y[t] = v;
        break;
    }
    case 3: {  // groups of eight
        int v = lane;
        for (int d = 4; d; d /= 2) v += __shfl_xor_sync(~0u, v, d, 8);
        counts[t] = v;
        break;
    }
    case 4: {  // a part of the warp with its own mask
        const unsigned mask = __ballot_sync(~0u, lane < 5);
        if (lane < 5) {
            float v = X[lane];
            for (int d = 4; d; d /= 2) {
                const float other = __shfl_down_sync(mask, v, d);
                if (lane + d < 5) v += other;
            }
            if (lane == 0) Y[t] = v;
        }
        break;
    }
    case 5: {  // a scan: what comes from the left of the first lane is not used
        int v = 1;
        if (lane < 16) {
            for (int d = 1; d < 16; d *= 2) {
                const int left = __shfl_up_sync(0xffff, v, d);
                if (lane >= d) v += left;
            }
            counts[t] = v;
        }
        break;
    }
    case 6: {  // a leader's value
        int position;
        if (lane == 0) position = atomicAdd(counts, 32);
        position = __shfl_sync(~0u, position, 0);
        Y[position + lane] = 1;
        break;
    }
    case 7: {
        float x;
        if (t < n) x = X[t];
        __syncthreads();
        if (t < n) Y[t] = x;
        break;
    }
    case 8: {  // a stack, and a list that grows
        int stack[8];
        float list[100];
        int size = 0, length = 0;
        stack[size++] = n;
        while (size) {
            const int i = stack[--size];
            list[length++] = X[i];
            if (i > 0) stack[size++] = i - 1;
        }
        for (int i = 0; i < length; ++i) Y[t] += list[i];
        break;
    }
    case 9: {  // padding
        Padded one;
        one.kind = 1;
        one.value = X[lane];
        padded[t] = one;
        break;
    }
    case 10: {
        float4 v;
        v.x = v.y = X[lane];
        v.z = v.w = 2 * v.x;
        quads[t] = v;
        break;
    }
    case 11: {
        half low, high;
        low = X[lane];
        high = __hadd(low, low);
        half2 both;
        both.x = low;
        both.y = high;
        pairs[t] = both;
        halves[t] = low;
        break;
    }
    case 12: {
        __nv_bfloat16 v[2];
        for (int i = 0; i < 2; ++i) v[i] = X[lane + i];
        narrow[t] = v[lane % 2];
        break;
    }
    case 13: {  // of no effect where it was not found
        int index;
        const bool is_present = find(X, n, lane, &index);
        if (is_present && X[index] == lane) counts[t] = index;
        break;
    }
    case 14: {  // each path that is taken assigns
        int sign, step;
        if (X[lane] > 3) sign = 1, step = 2;
        else if (X[lane] <= 3) sign = -1, step = 1;
        counts[t] = sign * step;
        break;
    }
    case 15: {
        int scale;
        switch (lane % 3) {
        case 0: scale = 1; break;
        case 1: scale = 2; break;
        default: scale = 3;
        }
        counts[t] = scale;
        break;
    }
    case 16: {  // from the turn before
        float before;
        for (int i = 0; i < n; ++i) {
            if (i > 0) Y[t] += before;
            before = X[i];
        }
        break;
    }
    case 17: {  // tiles of registers
        float sums[4][4], row[4], column[4];
        for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) sums[i][j] = 0;
        for (int k = 0; k < n; k += 4) {
            for (int i = 0; i < 4; ++i) row[i] = X[k + i], column[i] = X[k + 3 - i];
            for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) sums[i][j] += row[i] * column[j];
        }
        for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) Y[t] += sums[i][j];
        break;
    }
    case 18: {  // clocks, atomics in any order, and an unwritten variable beside them
        long long started;
        if (lane == 0) started = clock64();
        const int position = atomicAdd(counts, 1);
        Y[position] = X[lane];
        if (t == 0) counts[1] = int(clock64() - started) + atomicMax(&counts[2], t);
        break;
    }
    case 19: {  // what is multiplied by zero, or masked
        int v = lane;
        if (lane < 16) v += 0 * __shfl_down_sync(0xffff, v, 16);
        if (lane < 16) v |= __shfl_down_sync(0xffff, v, 16) & 0;
        counts[t] = v;
        break;
    }
    case 20: {
        auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
        float v = X[lane];
        for (int d = 4; d; d /= 2) v += tile.shfl_down(v, d);
        if (tile.thread_rank() == 0) Y[t] = v;
        break;
    }
    case 21: {  // converted, divided and shifted without meaning in lanes that do not store
        if (lane < 16) {
            const float next = __shfl_down_sync(0xffff, X[lane], 1);
            const int scaled = int(next * 1000), divisor = __shfl_down_sync(0xffff, lane + 1, 1);
            const int shifted = 1 << __shfl_down_sync(0xffff, lane, 1);
            if (lane < 15) counts[t] = scaled / max(divisor, 1) + shifted;
        }
        break;
    }
    case 22: {  // a pointer that is set where it is used
        const float *row;
        if (lane % 2) row = X + lane;
        if (lane % 2) Y[t] = *row;
        break;
    }
    case 23: {
        bool first, last;
        first = lane == 0, last = lane == 31;
        int2 range;
        range.x = first, range.y = last;
        if (first || last) counts[t] = range.x + 2 * range.y;
        break;
    }
    case 24: {
        union {
            float4 vector;
            float numbers[4];
        } both;
        for (int i = 0; i < 4; ++i) both.numbers[i] = X[lane + i];
        quads[t] = both.vector;
        break;
    }
    }
}
