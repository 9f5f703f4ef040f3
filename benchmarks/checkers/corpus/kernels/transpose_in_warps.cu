// 8 by 4 in a warp: lanes write rows of a tile and read its columns.
__global__ void transpose_in_warps(const float *A, float *B) {
    __shared__ float tiles[8][8 * 4];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32;
    tiles[warp][lane] = A[first + lane];
    __syncwarp();
    B[first + lane] = tiles[warp][lane % 8 * 4 + lane / 8];
}
