// Undefined values that reach memory, a branch or an address, at the lines with `// <which>`.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct Best {
    float value;
    int index;
};

template <typename T>
__device__ T total(const T *X, int n) {
    T sum;
    for (int i = 0; i < n; ++i) sum += X[i];
    return sum;
}

__device__ void first_above(const float *X, int n, float bound, int &index) {
    for (int i = 0; i < n; ++i) {
        if (X[i] > bound) {
            index = i;
            return;
        }
    }
}

__global__ void k(const float *X, float *Y, int *counts, half *halves, half2 *pairs,
                  __nv_bfloat16 *narrow, float4 *quads, double *wide, int n, int which) {
    __shared__ float s[32];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (t < 32) s[t] = 0;
    __syncthreads();
    switch (which) {
    case 0: {  // begins with the offset of a whole warp
        float v = X[lane];
        if (lane < 16) {
            for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffff, v, d);
            if (lane == 0) Y[t] = v;  // 0
        }
        break;
    }
    case 1: {  // a maximum of positive numbers
        float v = X[lane];
        if (lane < 16) {
            for (int d = 16; d; d /= 2) v = fmaxf(v, __shfl_down_sync(0xffff, v, d));
            if (lane == 0) Y[t] = v;  // 1
        }
        break;
    }
    case 2: {  // a minimum of negative integers
        int v = -lane - 1;
        if (lane < 8) {
            for (int d = 8; d; d /= 2) v = min(v, __shfl_xor_sync(0xff, v, d));
            counts[t] = v;  // 2
        }
        break;
    }
    case 3: {  // a scan from the left within the upper half
        float v = X[lane];
        if (lane >= 16) {
            for (int d = 1; d < 32; d *= 2) {
                const float left = __shfl_up_sync(0xffff0000, v, d);
                if (lane >= d) v += left;
            }
            Y[t] = v;  // 3
        }
        break;
    }
    case 4: {  // a lane that a vote has left out
        const unsigned odd = __ballot_sync(~0u, lane % 2);
        if (lane % 2) counts[t] = __shfl_down_sync(odd, lane, 1);  // 4
        break;
    }
    case 5: {  // an address
        if (lane < 16) {
            const int next = __shfl_down_sync(0xffff, lane, 4);
            if (lane == 12) Y[t] = X[next & 31];  // 5
        }
        break;
    }
    case 6: {  // a branch
        if (lane < 16) {
            const int next = __shfl_down_sync(0xffff, lane + 1, 1);
            if (lane == 15 && next) counts[t] = 1;  // 6
        }
        break;
    }
    case 7: {
        half v = X[lane];
        if (lane < 16) {
            for (int d = 16; d; d /= 2) v = __hmax(v, __shfl_down_sync(0xffff, v, d));
            if (lane == 0) halves[t] = v;  // 7
        }
        break;
    }
    case 8: {
        double v = X[lane];
        if (lane < 4) v += __shfl_xor_sync(0xf, v, 4);
        wide[t] = v;  // 8
        break;
    }
    case 9: {
        float sum;
        for (int i = 0; i < n; ++i) sum += X[i];
        Y[t] = sum;  // 9
        break;
    }
    case 10: {  // a maximum of positive numbers
        float most;
        for (int i = 0; i < n; ++i) most = fmaxf(most, X[i]);
        Y[t] = most;  // 10
        break;
    }
    case 11: {  // a minimum of negative numbers
        int least;
        for (int i = 0; i < n; ++i) least = min(least, -1 - int(X[i]));
        counts[t] = least;  // 11
        break;
    }
    case 12: {
        float2 v;
        v.x = X[lane];
        Y[t] = v.x + v.y;  // 12
        break;
    }
    case 13: {
        float4 v;
        v.x = v.y = v.z = X[lane];
        quads[t] = v;  // 13
        break;
    }
    case 14: {
        int2 range;
        if (n > 99) range = make_int2(0, n);
        counts[t] = range.y - range.x;  // 14
        break;
    }
    case 15: {
        half v;
        for (int i = 0; i < n; ++i) v = __hmax(v, __float2half(X[i]));
        halves[t] = v;  // 15
        break;
    }
    case 16: {
        half2 v;
        for (int i = 0; i < n; ++i) v = __hadd2(v, __float2half2_rn(X[i]));
        pairs[t] = v;  // 16
        break;
    }
    case 17: {
        __nv_bfloat16 v;
        if (lane > 99) v = X[lane];
        narrow[t] = v;  // 17
        break;
    }
    case 18: {
        bool is_present;
        for (int i = 0; i < n; ++i) if (X[i] > 99) is_present = true;
        if (is_present) counts[t] = 1;  // 18
        break;
    }
    case 19: {
        int position;
        for (int i = 0; i < n; ++i) if (X[i] > 99) position = i;
        if (position) counts[t] = 1;  // 19
        break;
    }
    case 20: {
        unsigned j;
        if (n > 99) j = lane;
        Y[t] = X[j & 31];  // 20
        break;
    }
    case 21: {
        unsigned j;
        if (n > 99) j = lane;
        Y[t] = X[j & 4];  // 21
        break;
    }
    case 22: {
        const float *row;
        if (n > 99) row = X;
        Y[t] = row[lane];  // 22
        break;
    }
    case 23: {
        float sums[4];
        for (int i = 0; i < 3; ++i) sums[i] = X[i];
        Y[t] = sums[t % 4];  // 23
        break;
    }
    case 24: {
        int table[2][4];
        for (int i = 0; i < 7; ++i) table[i / 4][i % 4] = i;
        counts[t] = table[lane % 2][lane % 4];  // 24
        break;
    }
    case 25: {
        Best best;
        best.value = X[lane];
        counts[t] = best.index;  // 25
        break;
    }
    case 26: {
        Best best, other = {X[lane], lane};
        if (other.value > best.value) best = other;
        Y[t] = best.value;  // 26
        break;
    }
    case 27:
        Y[t] = total<float>(X, n);  // 27
        break;
    case 28: {
        int index;
        first_above(X, n, 99.0f, index);
        Y[t] = X[index];  // 28
        break;
    }
    case 29: {  // from the turn before the first
        float before;
        for (int i = 0; i < n; ++i) {
            Y[t] += before;  // 29
            before = X[i];
        }
        break;
    }
    case 30: {
        int step;
        switch (n) {
        case 1: step = 1; break;
        case 2: step = 2; break;
        }
        for (int i = 0; i < n; i += step) counts[t] += 1;  // 30
        break;
    }
    case 31: {
        float sum;
        if (lane > 0) sum = X[lane];
        atomicAdd(&Y[t], sum);  // 31
        break;
    }
    case 32: {
        float sum;
        if (lane > 0) sum = X[lane];
        if (t == 0) s[warp] = sum;  // 32
        break;
    }
    case 33: {
        unsigned char flags;
        flags |= 1;
        counts[t] = flags;  // 33
        break;
    }
    case 34: {
        struct {
            int first, last;
        } range;
        range.first = lane;
        if (range.last > range.first) counts[t] = 1;  // 34
        break;
    }
    case 35: {
        unsigned least;
        for (int i = 0; i < n; ++i) if (i + 3 < least) least = i + 3;
        counts[t] = int(least);  // 35
        break;
    }
    case 36: {
        float accumulated[64][2];
        for (int i = 0; i < 64; ++i) accumulated[i][0] = X[lane];
        for (int i = 0; i < 64; ++i) accumulated[i][1] += X[lane];
        Y[t] = accumulated[lane][1];  // 36
        break;
    }
    case 37: {
        bool ready;
        if (n > 99) ready = true;
        if (ready && t == 0) __syncthreads();  // 37
        break;
    }
    }
}
