// Packs flags into words, one ballot a warp, and counts the bits below each set one.
__global__ void bit_rows(const int *flags, unsigned *words, int *below, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const bool flag = i < n && flags[i] != 0;
    const unsigned word = __ballot_sync(0xffffffff, flag);
    if (lane == 0) words[i / 32] = word;
    const unsigned mask = (1u << lane) - 1;
    if (i < n) below[i] = flag ? __popc(word & mask) : -1;
}
