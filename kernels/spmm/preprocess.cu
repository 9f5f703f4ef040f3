// Preprocessing of lane_groups.cu on the GPU: sorts rows by degree, writes the block records, and
// copies nonzeros in that order. Bit for bit equal to degree_sort (accelviz/ordering/degree.py) and
// subwarp_blocks (accelviz/partition/subwarps.py) on the CPU.
//
// Small graphs take a few microseconds, less than a launch and a host synchronization. Therefore
// everything except copying is one launch, `partition`, with barriers of all blocks between its
// steps (`wait_for_all`; a cooperative launch, so that all blocks are resident):
//   - a stable radix sort by degree, digit_bits per pass, in as many passes as the largest degree
//     needs (degree_sort.cuh): `count_digits`, barrier, `move_rows`, barrier;
//   - prefix sums over the sorted rows, which yield each row's first nonzero and the first row of
//     its degree: `add_up`, barrier, `find_blocks`, barrier;
//   - the records of the blocks in their final order: `describe_blocks`. At most one block begins
//     at each row, so counting suffices to put blocks in the order of the graph.
// Each warp handles a `share`, a run of neighboring rows. Counting in the order of warps is
// counting in the order of rows, which makes the sort stable.
//
// `copy_nonzeros` then makes the nonzeros of each block contiguous, as the multiplication needs.
//
// partition:     grid = blocks that fit on the GPU at once,  block = block_threads
// copy_nonzeros: grid = any number; each warp handles several blocks of the metadata in turn

// Supplied at compile time:
//   block_threads   threads of a block, whole warps
//   digit_bits      bits sorted per pass
//   info_field_bits width of the low field of the metadata's info word
// The settings of the partition scheme are arguments, so that one compiled kernel serves all.

#include "common.cuh"
#include "spmm/subwarp_blocks.cuh"

// Sorts n_rows > 0 rows and writes the block records. The arrays after `metadata` are workspace;
// see `PartitionArrays`.
extern "C" __global__ void __launch_bounds__(Config::block_threads, 1)
    partition(const long long *row_pointers, int n_rows, int groups, int max_group_nzs,
              int short_nzs, int in_place, State *state, int *output_rows, int4 *metadata,
              unsigned *spare_sorted, unsigned *spare_degrees, int *spare_rows,
              unsigned *digit_counts, Totals *block_totals, unsigned *begins) {
    __shared__ unsigned counts[WARPS * DIGITS];
    RECORD_STEP(0);
    const PartitionArrays arrays = {output_rows, metadata,     spare_sorted, spare_degrees,
                                    spare_rows,  digit_counts, block_totals, begins};
    const int step = partition_rows(row_pointers, n_rows, {groups, max_group_nzs, short_nzs},
                                    in_place, state, arrays, counts, 1);
    __syncthreads();
    RECORD_STEP(step);
}

// Copies the columns in sorted order and stores each nonzero's original position, with which values
// can be copied any number of times.
extern "C" __global__ void __launch_bounds__(Config::block_threads)
    copy_nonzeros(const State *__restrict__ state, const int4 *__restrict__ metadata,
                  const int *__restrict__ output_rows, const long long *__restrict__ row_pointers,
                  const int *__restrict__ column_indices, int *__restrict__ columns,
                  unsigned *__restrict__ nonzero_order, int deg_bound) {
    const unsigned blocks = state->blocks;
    for (unsigned block = blockIdx.x * WARPS + warp_id(); block < blocks;
         block += gridDim.x * WARPS) {
        const BlockNonzeros nonzeros = nonzeros_of(metadata[block], deg_bound);
        const int *rows = &output_rows[nonzeros.first_row];
#pragma unroll 4
        for (int i = lane_id(); i < nonzeros.size; i += WARP_SIZE) {
            const long long source = nonzeros.source(row_pointers, rows, i);
            columns[nonzeros.first_nz + i] = column_indices[source];
            nonzero_order[nonzeros.first_nz + i] = source;
        }
    }
}
