// Loads by __ldg. Cases from 10 on are mistakes: the launch writes what they read.
__device__ float table[256];

__global__ void k(const float *X, float *Y, float *Z, int which) {
    const int t = threadIdx.x, n = blockDim.x, other = n - 1 - t;
    if (which == 0) Y[t] = __ldg(&X[t]) + __ldg(&X[other]);
    if (which == 1) {  // written by this launch, and loaded through L2
        Z[t] = X[t];
        __syncthreads();
        Y[t] = __ldcg(&Z[other]) + __ldca(&Z[t]) + __ldcs(&Z[t]);
    }
    if (which == 2) Y[t] = __ldg(&Z[t]) + __ldg(&table[t]);
    if (which == 3) {  // reads one half, writes the other
        if (t < n / 2) Z[t + n / 2] = __ldg(&Z[t]);
    }
    if (which == 4) {
        const float2 pair = __ldg(reinterpret_cast<const float2 *>(X) + t / 2);
        Y[t] = pair.x + pair.y;
    }
    switch (which) {
        case 10:
            Z[t] = X[t];
            __syncthreads();
            Y[t] = __ldg(&Z[other]);
            break;
        case 11:
            Z[t] = X[t];
            Y[t] = __ldg(&Z[t]);
            break;
        case 12:
            Z[t] = __ldg(&Z[t]) + X[t];
            break;
        case 13:
            atomicAdd(&Z[t / 2], X[t]);
            __syncthreads();
            Y[t] = __ldg(&Z[t / 2]);
            break;
        case 14:
            table[t] = X[t];
            __syncthreads();
            Y[t] = __ldg(&table[other]);
            break;
        case 15:
            if (t % 4 == 0) Z[t + 1] = X[t];
            __syncthreads();
            Y[t] = __ldg(reinterpret_cast<const float4 *>(Z) + t / 4).y;
            break;
        case 16:
            Y[t] = __ldg(&Z[other]);
            __syncthreads();
            __stcg(&Z[t], X[t]);
            break;
        case 17:
            reinterpret_cast<char *>(Z)[4 * t + 3] = 1;
            __syncthreads();
            Y[t] = __ldg(reinterpret_cast<const unsigned char *>(Z) + 4 * other + 3);
            break;
    }
}
