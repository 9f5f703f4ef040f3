// One bit of a radix sort: zeros to the front, ones behind, in order.
__global__ void radix_step(const unsigned int *in, unsigned int *out, int bit) {
    __shared__ int ones[8], zeros;
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, base = blockIdx.x * blockDim.x;
    const unsigned int key = in[base + t];
    const bool one = key >> bit & 1;
    const unsigned int votes = __ballot_sync(0xffffffff, one);
    if (lane == 0) ones[warp] = __popc(votes);
    __syncthreads();  // counted
    if (t == 0) {
        int sum = 0;
        for (int w = 0; w < blockDim.x / 32; ++w) {
            const int count = ones[w];
            ones[w] = sum;
            sum += count;
        }
        zeros = blockDim.x - sum;
    }
    __syncthreads();  // placed
    const int before = ones[warp] + __popc(votes & ((1u << lane) - 1));
    out[base + (one ? zeros + before : t - before)] = key;
}
