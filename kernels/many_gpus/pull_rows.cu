// Fetches rows of other GPUs that this one needs, each once: row i of the halo is the one that word
// i names.
//
// A few blocks walk all of it, so that the product of the rows at home has the rest of the GPU.
// Each thread has at_once loads on their way: the link is far, and fast if it is asked for much at
// once.
//
// grid  = (blocks)
// block = block_threads threads

// The plan supplies, at compile time:
//   n_devices      GPUs
//   row_bits       bits of a word that say which row; those above say whose
//   vector         neighboring columns that a load moves, a divisor of those of a row
//   features       what an element is stored in: 0 float32, 1 float16, 2 bfloat16
//   row_vectors    loads of a row
//   at_once        loads that a thread has on their way
//   block_threads  threads of a block

#include "features.cuh"
#include "many_gpus/remote.cuh"

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    pull_rows(const unsigned *__restrict__ words, const Feature *X0, const Feature *X1,
              const Feature *X2, const Feature *X3, const Feature *X4, const Feature *X5,
              const Feature *X6, const Feature *X7, Feature *__restrict__ halo, int n_rows) {
    RECORD_WARP;
    const Peers<Feature> X = {{X0, X1, X2, X3, X4, X5, X6, X7}};
    Stored *own = reinterpret_cast<Stored *>(halo);
    const long long end = (long long)n_rows * Config::row_vectors;
    const long long stride = (long long)gridDim.x * Config::block_threads;
    long long at = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    for (; at < end; at += Config::at_once * stride) {
        Stored vectors[Config::at_once];
#pragma unroll
        for (int i = 0; i < Config::at_once; ++i) {
            const long long vector = at + i * stride;
            if (vector < end) {
                const Feature *row = X.row(words[vector / Config::row_vectors],
                                           Config::row_vectors * Config::vector);
                vectors[i] = reinterpret_cast<const Stored *>(row)[vector % Config::row_vectors];
            }
        }
#pragma unroll
        for (int i = 0; i < Config::at_once; ++i) {
            const long long vector = at + i * stride;
            if (vector < end) own[vector] = vectors[i];
        }
    }
}
