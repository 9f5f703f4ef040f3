// Atomics made of atomicCAS, one per value of `which`: `wrong` never takes the value that another
// thread has written after its load, `right` does. Each thread adds its X, or takes part in a
// maximum; the result is in total[0] (double), Y[0] (float) or counter[0].
__device__ int sums[1];

__global__ void wrong(const float *X, float *Y, int *counter, double *total, int which) {
    __shared__ int count;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int *bits = reinterpret_cast<int *>(Y);
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    switch (which) {
    case 0: {  // no loop
        const int old = counter[0];
        atomicCAS(counter, old, old + 1);
        break;
    }
    case 1: {  // the loop tests what never changes
        int old = counter[0], assumed;
        do {
            assumed = old;
            atomicCAS(counter, assumed, assumed + 1);
        } while (assumed != old);
        break;
    }
    case 2: {  // the loop never ends: old stays
        const int old = counter[0];
        while (atomicCAS(counter, old, old + 1) != old) {}
        break;
    }
    case 3: {  // the sum is that of the first guess
        int old = bits[0], assumed;
        const int sum = __float_as_int(__int_as_float(old) + X[i]);
        do {
            assumed = old;
            old = atomicCAS(bits, assumed, sum);
        } while (assumed != old);
        break;
    }
    case 4: {  // of two words, one try
        auto *words = reinterpret_cast<unsigned long long *>(total);
        const unsigned long long old = words[0];
        atomicCAS(words, old, __double_as_longlong(__longlong_as_double(old) + X[i]));
        break;
    }
    case 5: {  // a volatile load
        const int old = *static_cast<volatile int *>(counter);
        if (atomicCAS(counter, old, old + 1) == old) return;
        break;
    }
    case 6: {  // an atomic load
        const int old = atomicAdd(counter, 0);
        atomicCAS(counter, old, old + 1);
        break;
    }
    case 7: {  // in shared memory
        const int old = count;
        atomicCAS(&count, old, old + 1);
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(counter, count);
        break;
    }
    case 8: {  // in a branch for each parity
        const int old = counter[0];
        if (i % 2) atomicCAS(counter, old, old + 1);
        else atomicCAS(counter, old, old + 1);
        break;
    }
    case 9: {  // a device variable, each thread for several elements
        for (int j = 0; j < 3; ++j) {
            const int old = sums[0];
            atomicCAS(sums, old, old + 1);
        }
        __syncthreads();
        if (threadIdx.x == 0 && blockIdx.x == 1) counter[0] = atomicAdd(sums, 0) / 3;
        break;
    }
    case 10: {  // two counters in turns; the second is tested
        for (int j = 0; j < 2; ++j) {
            const int first = counter[1], second = counter[0];
            if (atomicCAS(counter + 1, first, first + 1) != first) atomicAdd(counter + 1, 1);
            if (j == 0) atomicCAS(counter, second, second + 1);
        }
        break;
    }
    }
}

__device__ void add_one(int *address) {
    int old = *address, assumed;
    do {
        assumed = old;
        old = atomicCAS(address, assumed, assumed + 1);
    } while (assumed != old);
}

__global__ void right(const float *X, float *Y, int *counter, double *total, int which) {
    __shared__ int count;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int *bits = reinterpret_cast<int *>(Y);
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    switch (which) {
    case 0: add_one(counter); break;
    case 1: {  // loads again
        int old;
        do {
            old = *static_cast<volatile int *>(counter);
        } while (atomicCAS(counter, old, old + 1) != old);
        break;
    }
    case 2:  // in a branch for each parity: two loads are first guesses
        if (i % 2) add_one(counter);
        else add_one(counter);
        break;
    case 3: {
        int old = bits[0], assumed;
        do {
            assumed = old;
            old = atomicCAS(bits, assumed, __float_as_int(__int_as_float(assumed) + X[i]));
        } while (assumed != old);
        break;
    }
    case 4: {
        auto *words = reinterpret_cast<unsigned long long *>(total);
        unsigned long long old = words[0], assumed;
        do {
            assumed = old;
            const double sum = __longlong_as_double(assumed) + X[i];
            old = atomicCAS(words, assumed, __double_as_longlong(sum));
        } while (assumed != old);
        break;
    }
    case 5: {  // a maximum: threads with less leave
        int old = bits[0];
        while (__int_as_float(old) < i + 1) {
            const int seen = atomicCAS(bits, old, __float_as_int(i + 1));
            if (seen == old) break;
            old = seen;
        }
        break;
    }
    case 6: {  // a guess
        int old = 0, assumed;
        do {
            assumed = old;
            old = atomicCAS(counter, assumed, assumed + 1);
        } while (assumed != old);
        break;
    }
    case 7:
        add_one(&count);
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(counter, count);
        break;
    case 8:  // a lock
        for (bool done = false; !done;) {
            if (atomicCAS(sums, 0, 1) == 0) {
                __threadfence();
                counter[0] += 1;
                __threadfence();
                atomicExch(sums, 0);
                done = true;
            }
        }
        break;
    case 9:  // two counters in turns
        for (int j = 0; j < 2; ++j) {
            add_one(counter + 1);
            if (j == 0) add_one(counter);
        }
        break;
    case 10: {  // 16 bits
        auto *half = reinterpret_cast<unsigned short *>(counter);
        unsigned short old = half[0], assumed;
        do {
            assumed = old;
            old = atomicCAS(half, assumed, static_cast<unsigned short>(assumed + 1));
        } while (assumed != old);
        break;
    }
    }
}
