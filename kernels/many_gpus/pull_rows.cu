// Fetches the rows of other GPUs that this GPU needs, each once: row i of the halo is the row named
// by words[i].
//
// A few blocks fetch all rows, so that the product of local rows can use the rest of the GPU. Each
// thread has at_once loads in flight: the link has a long latency, and a high bandwidth if many
// loads are in flight.
//
// grid  = (blocks)
// block = block_threads threads

// The plan supplies, at compile time:
//   n_devices      GPUs
//   row_bits       low bits of a word, the row; the high bits are its GPU
//   vector         neighboring columns per load, a divisor of the columns of a row
//   features       storage type of an element: 0 float32, 1 float16, 2 bfloat16
//   row_vectors    loads per row
//   at_once        loads that a thread has in flight
//   block_threads  threads of a block

#include "features.cuh"
#include "many_gpus/remote.cuh"

extern "C" __global__ void __launch_bounds__(Config::block_threads)
    pull_rows(const unsigned *__restrict__ words, const Feature *X0, const Feature *X1,
              const Feature *X2, const Feature *X3, const Feature *X4, const Feature *X5,
              const Feature *X6, const Feature *X7, Feature *__restrict__ halo, int n_rows) {
    RECORD_WARP;
    const Peers<Feature> X = {{X0, X1, X2, X3, X4, X5, X6, X7}};
    Stored *halo_vectors = reinterpret_cast<Stored *>(halo);
    const long long end = (long long)n_rows * Config::row_vectors;
    const long long stride = (long long)gridDim.x * Config::block_threads;
    long long first = (long long)blockIdx.x * Config::block_threads + threadIdx.x;
    for (; first < end; first += Config::at_once * stride) {
        Stored vectors[Config::at_once];
#pragma unroll
        for (int i = 0; i < Config::at_once; ++i) {
            const long long vector = first + i * stride;
            if (vector < end) {
                const Feature *row = X.row(words[vector / Config::row_vectors],
                                           Config::row_vectors * Config::vector);
                vectors[i] = reinterpret_cast<const Stored *>(row)[vector % Config::row_vectors];
            }
        }
#pragma unroll
        for (int i = 0; i < Config::at_once; ++i) {
            const long long vector = first + i * stride;
            if (vector < end) halo_vectors[vector] = vectors[i];
        }
    }
}
