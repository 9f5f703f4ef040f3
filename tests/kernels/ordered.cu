// What is no race: ordered by barriers, by bytes, by atomics, or by fences.
__device__ unsigned finished = 0;
__device__ int lock = 0, guarded = 0;

__device__ double add(double *address, double value) {  // as in NVIDIA's programming guide
    unsigned long long *bits = (unsigned long long *)address;
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed,
                        __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__device__ void largest(int *address, int value) {  // most threads find a larger one there
    int old = *address;
    while (old < value) {
        const int seen = atomicCAS(address, old, value);
        if (seen == old) break;
        old = seen;
    }
}

__global__ void k(const float *X, float *Y, unsigned char *bytes, volatile float *parts,
                  double *total, volatile int *flag, int which) {
    __shared__ float s[1024];
    __shared__ bool last;
    const int t = threadIdx.x, n = blockDim.x, i = blockIdx.x * n + t;
    switch (which) {
    case 0:  // neighbors in a word
        bytes[i] = t;
        reinterpret_cast<short *>(Y)[2 * i + 1] = 2;
        reinterpret_cast<short *>(Y)[2 * i] = 1;
        break;
    case 1:  // a warp's reduction, with the barrier of a warp
        s[t] = X[i];
        __syncwarp();
        for (int d = 16; d; d /= 2) {
            const float more = t % 32 < d ? s[t + d] : 0;
            __syncwarp();
            s[t] += more;
            __syncwarp();
        }
        if (t % 32 == 0) atomicAdd(&Y[0], s[t]);
        break;
    case 2:  // the last block sums what all have left
        s[t] = X[i];
        __syncthreads();
        if (t == 0) {
            float sum = 0;
            for (int j = 0; j < n; ++j) sum += s[j];
            parts[blockIdx.x] = sum;
            __threadfence();
            last = atomicAdd(&finished, 1u) == gridDim.x - 1;
        }
        __syncthreads();
        if (last && t == 0) {
            for (int j = 0; j < gridDim.x; ++j) Y[0] += parts[j];
            finished = 0;  // for the next launch
        }
        break;
    case 3:  // each thread fences what it has left, one counts
        Y[i] = X[i];
        __threadfence();
        __syncthreads();
        if (t == 0) last = atomicAdd(&finished, 1u) == gridDim.x - 1;
        __syncthreads();
        if (last && t == 0) {
            for (int j = 1; j < gridDim.x * n; ++j) Y[0] += Y[j];
        }
        break;
    case 4:
        add(total, X[i]);
        largest(const_cast<int *>(flag), i * 37 % 64);
        break;
    case 5:  // a lock
        if (t % 32 == 0) {
            while (atomicCAS(&lock, 0, 1)) {}
            __threadfence();
            guarded += 1;
            __threadfence();
            atomicExch(&lock, 0);
            if (blockIdx.x == gridDim.x - 1 && t == 0) Y[0] = 1;
        }
        break;
    case 6:  // a flag that later blocks wait for
        if (blockIdx.x == 0 && t == 0) {
            Y[0] = 5;
            __threadfence();
            *flag = 1;
        } else if (blockIdx.x > 0 && t == 0) {
            while (*flag == 0) {}
            __threadfence();
            Y[blockIdx.x] = Y[0];
        }
        break;
    case 7:  // threads without work leave before the barrier, and lanes before the exchange
        if (t >= 20) return;
        s[t] = 1;
        __syncthreads();
        __syncwarp();
        Y[i] = s[19 - t] + __shfl_sync(0xffffffff, 1.0f, 0);
        break;
    case 8:  // a warp waits for a flag that a later one sets
        if (t == 0) while (atomicAdd(&lock, 0) == 0) {}
        if (t == n - 1) atomicExch(&lock, 1);
        break;
    case 9:  // without the fence, that of case 2 is a race
        if (t == 0) {
            parts[blockIdx.x] = 1;
            Y[blockIdx.x] = 1;
            last = atomicAdd(&finished, 1u) == gridDim.x - 1;
            if (last) for (int j = 0; j < gridDim.x; ++j) Y[0] += Y[j];
        }
        break;
    }
}
