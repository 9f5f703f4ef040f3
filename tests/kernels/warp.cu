extern "C" __global__ void k(int *out) {

    const int t = threadIdx.x, lane = t % 32;
    const unsigned all = 0xffffffffu;
    int *mine = out + 20 * t;
    mine[0] = __match_any_sync(all, lane % 3);
    int same;
    mine[1] = __match_all_sync(all, 1.5f, &same) == all && same;
    mine[2] = __match_all_sync(all, lane / 31, &same) == 0 && !same;
    mine[3] = __reduce_add_sync(all, lane);
    mine[4] = __reduce_min_sync(all, -lane);
    mine[5] = __reduce_max_sync(all, (unsigned)lane);
    mine[6] = __reduce_or_sync(all, 1u << lane / 4);
    mine[7] = __reduce_and_sync(all, ~(1u << lane / 2));
    mine[8] = __reduce_xor_sync(all, (unsigned)lane);
    if (lane < 7) {
        const unsigned together = __activemask();
        mine[9] = together;
        mine[10] = __shfl_sync(together, lane, 3) + __reduce_add_sync(together, 1);
    } else {
        mine[9] = __activemask();
        mine[10] = 0;
    }
    mine[11] = __syncthreads_count(lane < 5);
    mine[12] = __syncthreads_and(t >= 0);
    mine[13] = __syncthreads_and(t != 40);
    mine[14] = __syncthreads_or(t == 40);
    mine[15] = __syncthreads_or(t < 0);
    mine[16] = __shfl_xor_sync(all, (long long)lane << 40, 1) >> 40;
    mine[17] = __any_sync(all, lane == 9) + 2 * __all_sync(all, lane < 32);
    const long long before = clock64();
    const auto ticks = clock();
    __nanosleep(10);
    mine[18] = clock64() > before && clock() >= ticks;
    mine[19] = __popc(__ballot_sync(all, lane & 1));
}
