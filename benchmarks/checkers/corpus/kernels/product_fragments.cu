// Product of half matrices on tensor cores: a warp a tile of 16 by 16, sums in float.
#include <mma.h>

using namespace nvcuda;

__global__ void product_fragments(const half *A, const half *B, float *C, int tiles, int depth) {
    const int tile = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int row = tile / tiles * 16, column = tile % tiles * 16, width = 16 * tiles;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    for (int k = 0; k < depth; k += 16) {
        wmma::load_matrix_sync(a, A + row * depth + k, depth);
        wmma::load_matrix_sync(b, B + k * width + column, width);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + row * width + column, c, width, wmma::mem_row_major);
}
