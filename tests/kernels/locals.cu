// Local variables that are, and are not, written before they are read.
__global__ void k(const float *X, float *Y, int n, int which) {
    const int t = threadIdx.x;
    switch (which) {
    case 0: {  // a leader's value for all, as in warp-aggregated atomics
        float x;
        if (t == 3) x = atomicAdd(&Y[32], 1.0f);
        Y[t] = __shfl_sync(~0u, x, 3);
        break;
    }
    case 1: {  // written and read under conditions that go together
        float x;
        if (t < n) x = X[t];
        __syncthreads();
        if (t < n && t > 3) Y[t] = x;
        break;
    }
    case 2: {  // a list that grows
        float large[8];
        int count = 0;
        for (int i = 0; i < n; ++i) if (X[i] > 2 && count < 8) large[count++] = X[i];
        for (int i = 0; i < count; ++i) Y[t] += large[i];
        break;
    }
    case 3: {  // from the last turn
        float before;
        for (int i = 0; i < n; ++i) {
            if (i > 0) Y[t] += before;
            before = X[i];
        }
        break;
    }
    case 4: {
        float sum;
        for (int i = 0; i < n; ++i) sum += X[i];
        Y[t] = sum;
        break;
    }
    case 5: {  // of integers, where only one is missing
        int most[4];
        for (int i = 1; i < 4; ++i) most[i] = 0;
        for (int i = 0; i < n; ++i) most[i % 4] = max(most[i % 4], int(X[i]));
        Y[t] = most[t % 4];
        break;
    }
    case 6: {
        float x;
        if (t < n) x = X[t];
        Y[t] = x;
        break;
    }
    }
}
