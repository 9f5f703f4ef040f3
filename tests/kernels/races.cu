// Races, each a case of one kernel.
__global__ void k(const float *X, float *Y, int which) {
    __shared__ float s[1025];
    __shared__ unsigned char b[1024];
    const int t = threadIdx.x, n = blockDim.x, first = t / 32 * 32;
    s[t] = X[t];
    if (t == 0) s[n] = 0;
    __syncthreads();
    switch (which) {
    case 0:  // no __syncwarp
        for (int d = 16; d; d /= 2) if (t % 32 < d) s[t] += s[t + d];
        break;
    case 1: {  // nor does volatile order anything
        volatile float *v = s;
        for (int d = 16; d; d /= 2) if (t % 32 < d) v[t] += v[t + d];
        break;
    }
    case 2:  // a neighbor's element, read and then written
        s[t] += s[t + 1];
        break;
    case 3: {  // written after all lanes have read it
        const float first_of_all = s[first];
        Y[t] = first_of_all;
        if (t % 32 == 7) s[first] = 1;
        break;
    }
    case 4: {  // two read it, and the later one does not replace the earlier
        const float seen = t % 32 == 3 || t % 32 == 9 ? s[first + 1] : 0;
        if (t % 32 == 9) s[first + 1] = seen + 1;
        Y[t] = seen;
        break;
    }
    case 5:  // a __syncwarp orders the lanes of its mask alone
        if (t % 32 < 16) {
            s[t] = 1;
            __syncwarp(0xffff);
        } else {
            Y[t] = s[t - 16];
        }
        break;
    case 6:  // a shuffle orders no memory
        s[t] = 2;
        Y[t] = __shfl_sync(0xffffffff, 1.0f, 0) + s[first + (t + 1) % 32];
        break;
    case 7:  // half of a word
        if (t % 32 == 0) reinterpret_cast<short *>(s)[first * 2 + 1] = 1;
        if (t % 32 == 1) b[0] = reinterpret_cast<unsigned char *>(s)[first * 4 + 3];
        break;
    case 8:  // an atomic and a plain load
        atomicAdd(&s[first], 1.0f);
        Y[t] = s[first];
        break;
    case 9:  // a plain store, an atomic of the same thread after it, and another thread's atomic
        if (t % 32 == 3) s[first] = 1;
        atomicAdd(&s[first], 1.0f);
        break;
    case 10:  // who has not counted to the last one may not begin anew
        atomicAdd(&s[first], 1.0f);
        if (t % 32 == 5) s[first] = 0;
        break;
    }
}
