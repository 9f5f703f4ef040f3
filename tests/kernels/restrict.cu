// Parameters that promise arrays of their own. Cases from 10 on are mistakes where X and Y are one.
#define ALONE __restrict__

__device__ void add_to(float *Y, int i, float x) { Y[i] += x; }

__global__ void both(const float *__restrict__ X, float *__restrict__ Y, const float *ALONE Z,
                     int which) {
    const int t = threadIdx.x, n = blockDim.x;
    if (which == 0) Y[t] = X[t] + Z[n - 1 - t];
    if (which == 1 && X[t] < 0.0f) Y[t] = X[t];  // nothing is written
    if (which == 2) Y[t + n] = X[t];              // the halves are two arrays
    switch (which) {
        case 10:
            Y[t] = 2.0f * X[t];
            break;
        case 11:
            Y[t] = X[n - 1 - t];
            break;
        case 12:
            atomicAdd(&Y[t / 2], 1.0f);
            break;
        case 13:
            add_to(Y, t, X[t]);
            break;
        case 14:
            if (t == n - 1) reinterpret_cast<float2 *>(Y)[0] = make_float2(X[0], X[1]);
            break;
        case 15:
            __stcs(&Y[t], Z[t]);
            break;
    }
}

__global__ void one(const float *ALONE X, float *Y, int which) {
    if (which == 10) Y[threadIdx.x] = 2.0f * X[threadIdx.x];
}

__global__ void neither(const float *X, float *Y) { Y[threadIdx.x] = 2.0f * X[threadIdx.x]; }
