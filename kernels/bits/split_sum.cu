// Product of bit matrices on tensor cores, for results of few columns: a block has 32 x 32
// elements, and its warps share the sum (K) among them. Y = sum over planes of (A_i B_j) << (i +
// j).
//
// A warp has the tile's rows of A_PLANES planes of A and its columns of B_PLANES planes of B in
// registers at a time: a tile of A that is loaded meets all of them (QGTC's cross-tile reduction).
// With B_PLANES = 1, A is read again for each plane of B (its cross-bit reduction). Where K is
// short and planes are many, warps share the passes among them too, so that none has nothing to do.
//
// The order of the words along K does not matter as long as A and B have the same: so a lane takes
// four neighboring words where the instruction's table gives it words that lie apart.
//
// grid  = (tiles of 32 rows, tiles of 32 columns)
// block = WARPS warps

// The plan supplies, at compile time:
//   MMA_K           256 (m16n8k256) or 128 (m8n8k128, the paper's)
//   A_PLANES, B_PLANES, A_PASSES, B_PASSES   planes at a time, and how often
//   WARPS, K_WARPS  warps of a block, and those of them that share a pass
//   JUMP            1 to jump over tiles of A that are zero
//   OUTPUT          0 whole numbers, 1 float32, 2 bits again
//   RELU            1 if negative results become zero (not of whole numbers)
//   ALONG_COLUMNS   of bits: 1 if the result is a left operand, 0 if a right one
#if !defined(MMA_K) || !defined(A_PLANES) || !defined(B_PLANES) || !defined(A_PASSES) || \
    !defined(B_PASSES) || !defined(WARPS) || !defined(K_WARPS) || !defined(JUMP) ||      \
    !defined(OUTPUT) || !defined(RELU) || !defined(ALONG_COLUMNS)
#error "split_sum.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "bits/planes.cuh"
#include "fragments.cuh"

#define M_TILE (MMA_K / 16)  // rows of the instruction: 16 or 8
#define HALVES (M_TILE / 8)
#define M_TILES (SIDE / M_TILE)
#define N_TILES (SIDE / 8)
#define K_REGISTERS (MMA_K / 128)  // of B, and of A for 8 rows
#define STEPS (4 / K_REGISTERS)    // instructions that four words of a lane last
#define CHUNK_QUADS 4  // of 4 words that a row has in a chunk, one for each lane of four

// 8 lines of a plane, 16 words of each: the lane's part of them.
__device__ __forceinline__ uint4 load(const uint4 *__restrict__ planes, const Planes &of, int plane,
                                      int line, int quad) {
    const bool there = plane < of.bits && line < of.lines && quad < of.words / 4;
    return there ? __ldg(&planes[of.at(plane, line, 0) / 4 + quad]) : make_uint4(0, 0, 0, 0);
}

__device__ __forceinline__ void multiply(int (&c)[2 * HALVES], const uint4 *a, const uint4 &b,
                                         int step) {
    unsigned left[HALVES * K_REGISTERS], right[K_REGISTERS];
#pragma unroll
    for (int k = 0; k < K_REGISTERS; ++k) {
        right[k] = word_of(b, step * K_REGISTERS + k);
#pragma unroll
        for (int half = 0; half < HALVES; ++half) {
            left[HALVES * k + half] = word_of(a[half], step * K_REGISTERS + k);
        }
    }
#if MMA_K == 256
    mma_b1_k256(c, left, right);
#else
    mma_b1_k128(c, left, right);
#endif
}

extern "C" __global__ void __launch_bounds__(WARPS *WARP_SIZE)
    split_sum(const uint4 *__restrict__ A, const uint4 *__restrict__ B, void *__restrict__ out,
              const float *__restrict__ alpha, const float *__restrict__ beta,
              const float *__restrict__ gamma, const float *__restrict__ row_scale, int rows,
              int columns, int words, int a_bits, int a_lines, int b_bits, int b_lines, float low,
              float step, int out_bits, int out_lines, int out_words) {
    RECORD_WARP;
    __shared__ int parts[WARPS][SIDE][SIDE + 1];
    __shared__ int row_parts[WARPS][SIDE];
    const int warp = int(threadIdx.x) / WARP_SIZE, lane = int(threadIdx.x) % WARP_SIZE;
    const int first_row = int(blockIdx.x) * SIDE, first_column = int(blockIdx.y) * SIDE;
    const Planes of_a{a_bits, a_lines, words}, of_b{b_bits, b_lines, words};
    const int chunks = first_row < rows && first_column < columns ? ceil_div(words, 16) : 0;

    unsigned sums[M_TILES][N_TILES][2 * HALVES] = {};
    unsigned row_sums[4] = {};
    // Where all warps share a pass, constants leave more registers.
    const int first_pass = K_WARPS == WARPS ? 0 : warp / K_WARPS;
    const int first_chunk = K_WARPS == WARPS ? warp : warp % K_WARPS;
#pragma unroll 1
    for (int pass = first_pass; pass < A_PASSES * B_PASSES; pass += WARPS / K_WARPS) {
        const int a_pass = pass / B_PASSES, b_pass = pass % B_PASSES;
        int c[A_PLANES][B_PLANES][M_TILES][N_TILES][2 * HALVES] = {};
        for (int chunk = first_chunk; chunk < chunks; chunk += K_WARPS) {
            const int quad = chunk * CHUNK_QUADS + lane % 4;
            uint4 a[A_PLANES][4];
            unsigned any = 0;
#pragma unroll
            for (int i = 0; i < A_PLANES; ++i) {
#pragma unroll
                for (int g = 0; g < 4; ++g) {
                    const int line = first_row + 8 * g + lane / 4;
                    a[i][g] = load(A, of_a, a_pass * A_PLANES + i, line, quad);
                    any |= a[i][g].x | a[i][g].y | a[i][g].z | a[i][g].w;
                    if (OUTPUT && b_pass == 0) {
                        const int ones = __popc(a[i][g].x) + __popc(a[i][g].y) + __popc(a[i][g].z) +
                                         __popc(a[i][g].w);
                        row_sums[g] += unsigned(ones) << (a_pass * A_PLANES + i);
                    }
                }
            }
            if (JUMP && !__any_sync(EVERY_LANE, any != 0)) continue;
#pragma unroll
            for (int j = 0; j < B_PLANES; ++j) {
                uint4 b[N_TILES];
#pragma unroll
                for (int n = 0; n < N_TILES; ++n) {
                    const int line = first_column + 8 * n + lane / 4;
                    b[n] = load(B, of_b, b_pass * B_PLANES + j, line, quad);
                }
#pragma unroll
                for (int at = 0; at < STEPS; ++at) {
#pragma unroll
                    for (int i = 0; i < A_PLANES; ++i) {
#pragma unroll
                        for (int m = 0; m < M_TILES; ++m) {
#pragma unroll
                            for (int n = 0; n < N_TILES; ++n) {
                                multiply(c[i][j][m][n], &a[i][HALVES * m], b[n], at);
                            }
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < A_PLANES; ++i) {
#pragma unroll
            for (int j = 0; j < B_PLANES; ++j) {
                const int shift = a_pass * A_PLANES + i + b_pass * B_PLANES + j;
                if (shift > 30) continue;  // planes that there are not: only zeros
#pragma unroll
                for (int m = 0; m < M_TILES; ++m) {
#pragma unroll
                    for (int n = 0; n < N_TILES; ++n) {
#pragma unroll
                        for (int r = 0; r < 2 * HALVES; ++r) {
                            sums[m][n][r] += unsigned(c[i][j][m][n][r]) << shift;
                        }
                    }
                }
            }
        }
    }

#pragma unroll
    for (int m = 0; m < M_TILES; ++m) {
#pragma unroll
        for (int n = 0; n < N_TILES; ++n) {
#pragma unroll
            for (int r = 0; r < 2 * HALVES; ++r) {
                const Element at = element_of_c(lane, r);
                parts[warp][m * M_TILE + at.row][n * 8 + at.column] = int(sums[m][n][r]);
            }
        }
    }
    if (OUTPUT) {
#pragma unroll
        for (int g = 0; g < 4; ++g) {
            unsigned sum = row_sums[g];
            sum += __shfl_xor_sync(EVERY_LANE, sum, 1);
            sum += __shfl_xor_sync(EVERY_LANE, sum, 2);
            if (lane % 4 == 0) row_parts[warp][8 * g + lane / 4] = int(sum);
        }
    }
    __syncthreads();
#if OUTPUT == 2
    __shared__ unsigned levels[SIDE][SIDE + 1];
    int clipped = 0;
#endif
    for (int i = warp; i < SIDE; i += WARPS) {
        int sum = 0, row_sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            sum += parts[w][i][lane];
            if (OUTPUT) row_sum += row_parts[w][i];
        }
        const int row = first_row + i, column = first_column + lane;
        const bool there = row < rows && column < columns;
#if OUTPUT == 0
        if (there) static_cast<int *>(out)[element(row, column, columns)] = sum;
#else
        float value = 0.0f;
        if (there) {
            // Each operation by itself: the host comes to the same bits.
            value = __fadd_rn(__fmul_rn(float(sum), alpha[column]),
                              __fmul_rn(float(row_sum), beta[column]));
            value = __fadd_rn(__fmul_rn(value, row_scale[row]), gamma[column]);
            if (RELU) value = fmaxf(value, 0.0f);
        }
#if OUTPUT == 1
        if (there) static_cast<float *>(out)[element(row, column, columns)] = value;
#else
        levels[i][lane] = there ? level_of(value, low, step, out_bits, clipped) : 0u;
#endif
#endif
    }
#if OUTPUT == 2
    __syncthreads();
    write_planes(levels, static_cast<unsigned *>(out), {out_bits, out_lines, out_words}, first_row,
                 first_column, ALONG_COLUMNS);
#endif
}
