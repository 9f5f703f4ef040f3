// Races in shared memory, one per value of `which`. tests/test_emulated_mistakes.py requires that
// the emulator report the race of cases 0 to 10 in every order of threads, with the lines of both
// accesses; they are at most 6 lines below the `case`. `s` has one float per thread and a zero.
__global__ void k(const float *X, float *Y, int which) {
    __shared__ float s[1025];
    __shared__ unsigned char b[1024];
    const int t = threadIdx.x, n = blockDim.x, first = t / 32 * 32;
    s[t] = X[t];
    if (t == 0) s[n] = 0;
    __syncthreads();
    switch (which) {
    case 0:  // lane t loads s[t + d] while lane t + d stores it; a __syncwarp is missing
        for (int d = 16; d; d /= 2) if (t % 32 < d) s[t] += s[t + d];
        break;
    case 1: {  // as case 0: volatile does not order accesses of different lanes
        volatile float *v = s;
        for (int d = 16; d; d /= 2) if (t % 32 < d) v[t] += v[t + d];
        break;
    }
    case 2:  // thread t loads s[t + 1] while thread t + 1 stores it
        s[t] += s[t + 1];
        break;
    case 3: {  // all lanes load s[first] while lane 7 stores it
        const float first_of_all = s[first];
        Y[t] = first_of_all;
        if (t % 32 == 7) s[first] = 1;
        break;
    }
    case 4: {  // lanes 3 and 9 load, then 9 stores: a race with the load of 3, the earlier one
        const float seen = t % 32 == 3 || t % 32 == 9 ? s[first + 1] : 0;
        if (t % 32 == 9) s[first + 1] = seen + 1;
        Y[t] = seen;
        break;
    }
    case 5:  // lanes 0 to 15 store, 16 to 31 load and are not in the __syncwarp's mask
        if (t % 32 < 16) {
            s[t] = 1;
            __syncwarp(0xffff);
        } else {
            Y[t] = s[t - 16];
        }
        break;
    case 6:  // a lane stores, its neighbor loads; the shuffle between them orders no memory
        s[t] = 2;
        Y[t] = __shfl_sync(0xffffffff, 1.0f, 0) + s[first + (t + 1) % 32];
        break;
    case 7:  // lane 0 stores the upper two bytes of a word, lane 1 loads one of them
        if (t % 32 == 0) reinterpret_cast<short *>(s)[first * 2 + 1] = 1;
        if (t % 32 == 1) b[0] = reinterpret_cast<unsigned char *>(s)[first * 4 + 3];
        break;
    case 8:  // a plain load while another lane's atomic changes the word
        atomicAdd(&s[first], 1.0f);
        Y[t] = s[first];
        break;
    case 9:  // lane 3's plain store and another lane's atomic; lane 3's own atomic is ordered
        if (t % 32 == 3) s[first] = 1;
        atomicAdd(&s[first], 1.0f);
        break;
    case 10:  // lane 5 resets a counter while other lanes' atomics still count
        atomicAdd(&s[first], 1.0f);
        if (t % 32 == 5) s[first] = 0;
        break;
    }
}
