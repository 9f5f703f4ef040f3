// Counts random points in a quarter circle: a generator a thread, votes, one atomic a warp.
__global__ void quarter_circle(unsigned long long *inside, unsigned seed, int points) {
    unsigned state = seed + blockIdx.x * blockDim.x + threadIdx.x;
    int count = 0;
    for (int k = 0; k < points; ++k) {
        state = state * 1664525U + 1013904223U;
        const unsigned x = state >> 17;
        state = state * 1664525U + 1013904223U;
        const unsigned y = state >> 17;
        count += __popc(__ballot_sync(~0U, x * x + y * y < 1U << 30));
    }
    if (threadIdx.x % 32 == 0) atomicAdd(inside, (unsigned long long)count);
}
