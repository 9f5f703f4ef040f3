// Fetches rows of other GPUs that this one needs, each once: row i of the halo is the one that word
// i names.
//
// A few blocks walk all of it, so that the product of the rows at home has the rest of the GPU.
// Each thread has AT_ONCE loads on their way: the link is far, and fast if it is asked for much at
// once.
//
// grid  = (blocks)
// block = BLOCK_THREADS threads

// The plan supplies, at compile time:
//   N_DEVICES      GPUs
//   ROW_BITS       bits of a word that say which row; those above say whose
//   VECTOR         neighboring columns that a load moves, a divisor of those of a row
//   FEATURES       what an element is stored in: 0 float32, 1 float16, 2 bfloat16
//   ROW_VECTORS    loads of a row
//   AT_ONCE        loads that a thread has on their way
//   BLOCK_THREADS  threads of a block
#if !defined(N_DEVICES) || !defined(ROW_BITS) || !defined(VECTOR) || !defined(FEATURES) || \
    !defined(ROW_VECTORS) || !defined(AT_ONCE) || !defined(BLOCK_THREADS)
#error "pull_rows.cu is compiled by accelviz, which supplies the constants listed above"
#endif

#include "many_gpus/remote.cuh"
#include "vectors.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    pull_rows(const unsigned *__restrict__ words, const Feature *X0, const Feature *X1,
              const Feature *X2, const Feature *X3, const Feature *X4, const Feature *X5,
              const Feature *X6, const Feature *X7, Feature *__restrict__ halo, int n_rows) {
    RECORD_WARP;
    const Peers<Feature> X = {{X0, X1, X2, X3, X4, X5, X6, X7}};
    Stored *own = reinterpret_cast<Stored *>(halo);
    const long long end = (long long)n_rows * ROW_VECTORS;
    const long long stride = (long long)gridDim.x * BLOCK_THREADS;
    long long at = (long long)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    for (; at < end; at += AT_ONCE * stride) {
        Stored vectors[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const long long vector = at + i * stride;
            if (vector < end) {
                const Feature *row = X.row(words[vector / ROW_VECTORS], ROW_VECTORS * VECTOR);
                vectors[i] = reinterpret_cast<const Stored *>(row)[vector % ROW_VECTORS];
            }
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const long long vector = at + i * stride;
            if (vector < end) own[vector] = vectors[i];
        }
    }
}
