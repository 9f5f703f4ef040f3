// Lanes and threads that are together at two places.
__global__ void k(int *Y, int which) {
    const int t = threadIdx.x, lane = t % 32;
    int x = t;
    switch (which) {
    case 0:
        if (lane < 16) x = __shfl_sync(0xffffffff, x, 0);
        else x = __shfl_sync(0xffffffff, x, 1);
        break;
    case 1:
        if (lane < 16) x = __shfl_xor_sync(0xffffffff, x, 1);
        else x = __ballot_sync(0xffffffff, x);
        break;
    case 2:  // a lane that has left
        if (lane == 31) return;
        x = __shfl_down_sync(0xffffffff, x, 1);
        break;
    case 3:
        if (lane == 0) __syncwarp(0xfffffffe);
        break;
    case 4:  // lanes outside the mask bring a number without meaning, which lane 0 does not use
        if (lane < 8) {
            for (int d = 4; d; d /= 2) x += __shfl_down_sync(0xff, x, d);
        }
        if (lane) x = 0;
        break;
    case 5:
        x = lane < 16 ? __any_sync(0xffffffff, x) : __shfl_up_sync(0xffffffff, x, 1);
        break;
    case 6:  // each by itself
        x += __shfl_up_sync(1u << lane, x, 1);
        break;
    case 7: {  // what is left over, of which the first lane has no neighbor
        const unsigned some = __ballot_sync(0xffffffff, lane < 3);
        if (lane < 3) {
            for (int d = 1; d < 4; d *= 2) {
                const int other = __shfl_down_sync(some, x, d);
                if (lane + d < 3) x += other;
            }
        }
        const unsigned one = __ballot_sync(0xffffffff, lane == 2);
        if (lane == 2) x += 0 * __shfl_down_sync(one, x, 1);
        if (lane) x = 0;
        break;
    }
    }
    Y[t] = x;
}
