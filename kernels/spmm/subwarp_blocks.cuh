// Block records of the subwarp partition scheme, computed by all blocks of a cooperative launch;
// for preprocess.cu and edge_blocks.cu. preprocess.cu describes the steps.
#pragma once

#include "common.cuh"
#include "spmm/degree_sort.cuh"

constexpr int INFO_FIELD_LIMIT = (1 << Config::info_field_bits) - 1;

#ifdef RECORD_STEPS
// Time at which block 0 passed each barrier, in nanoseconds; the first entry is the kernel's start,
// the last its end.
__device__ unsigned long long step_times[32];
#define RECORD_STEP(i) \
    if (blockIdx.x == 0 && threadIdx.x == 0) step_times[i] = global_nanoseconds()
#else
#define RECORD_STEP(i)
#endif

// State shared by all blocks; zero before the launch.
struct State {
    unsigned arrived;       // arrivals at `wait_for_all`, summed over all barriers
    unsigned largest;       // largest degree
    unsigned blocks;        // number of blocks in the partition
    unsigned split_blocks;  // number of them that are parts of split rows
};

// Barrier of all blocks. Writes of all blocks before it can be read after it.
DEVICE_INLINE void wait_for_all(State *state, int step) {
    __syncthreads();
    if (gridDim.x > 1 && threadIdx.x == 0) {
        __threadfence();
        const unsigned before = atomicAdd(&state->arrived, 1u);
        const unsigned all = (before / gridDim.x + 1) * gridDim.x;
        while (*(volatile unsigned *)&state->arrived < all) {
        }
        __threadfence();
    }
    __syncthreads();
    RECORD_STEP(step);
}

// Totals over a prefix of the sorted rows.
struct Totals {
    unsigned nonzeros;  // below 2^32
    unsigned parts;     // number of parts of split rows
    int run;            // first row of the last degree, -1 for an empty prefix
};

DEVICE_INLINE Totals combined(const Totals &before, const Totals &totals) {
    return {before.nonzeros + totals.nonzeros, before.parts + totals.parts,
            max(before.run, totals.run)};
}

DEVICE_INLINE Totals broadcast(const Totals &totals, int lane) {
    return {__shfl_sync(ALL_LANES, totals.nonzeros, lane),
            __shfl_sync(ALL_LANES, totals.parts, lane), __shfl_sync(ALL_LANES, totals.run, lane)};
}

DEVICE_INLINE Totals totals_up_to_lane(Totals totals) {
#pragma unroll
    for (int distance = 1; distance < WARP_SIZE; distance *= 2) {
        const Totals before = {__shfl_up_sync(ALL_LANES, totals.nonzeros, distance),
                               __shfl_up_sync(ALL_LANES, totals.parts, distance),
                               __shfl_up_sync(ALL_LANES, totals.run, distance)};
        if (lane_id() >= distance) totals = combined(before, totals);
    }
    return totals;
}

// Algorithm 1 of Accel-GCN for subwarps, as in lane_group_partition on the host.
struct Setting {
    int groups, max_group_nzs, short_nzs;

    DEVICE_INLINE int deg_bound() const {
        return groups * max_group_nzs;
    }
    DEVICE_INLINE bool splits(int degree) const {
        return degree > deg_bound();
    }
    // Subwarps that share a row: the smallest divisor of `groups` that suffices.
    DEVICE_INLINE int factor(int degree) const {
        int factor = max((degree - 1) / max_group_nzs + 1, 1);
        while (groups % factor) ++factor;
        return factor;
    }
    DEVICE_INLINE int block_rows(int degree) const {
        if (degree > max_group_nzs) return groups / factor(degree);
        return min(groups * max(short_nzs / max(degree, 1), 1), INFO_FIELD_LIMIT);
    }
    DEVICE_INLINE int group_nzs(int degree) const {
        return max(ceil_div(degree, factor(degree)), 1);
    }
};

DEVICE_INLINE Totals totals_of(const unsigned *degrees, int position, bool exists,
                               const Setting &setting) {
    if (!exists) return {0, 0, -1};
    const unsigned degree = degrees[position];
    const unsigned parts = setting.splits(degree) ? (degree - 1) / setting.deg_bound() + 1 : 0;
    const bool begins = position == 0 || degrees[position - 1] != degree;
    return {degree, parts, begins ? position : -1};
}

// Adds up each warp's rows into `warp_totals`, and the block's into `block_totals`.
__device__ void add_up(const unsigned *degrees, Share share, const Setting &setting,
                       Totals *warp_totals, Totals *block_totals) {
    Totals totals = {0, 0, -1};
    for (int i = share.begin + lane_id(); i < share.end; i += WARP_SIZE) {
        totals = combined(totals, totals_of(degrees, i, true, setting));
    }
    totals = totals_up_to_lane(totals);
    if (lane_id() == WARP_SIZE - 1) warp_totals[warp_id()] = totals;
    __syncthreads();
    if (warp_id() != 0) return;
    totals = {0, 0, -1};
    if (lane_id() < WARPS) totals = warp_totals[lane_id()];
    totals = totals_up_to_lane(totals);
    if (lane_id() == WARP_SIZE - 1) block_totals[blockIdx.x] = totals;
}

// Returns the totals of all rows before the warp's share.
__device__ Totals totals_before(const Totals *warp_totals, const Totals *block_totals) {
    Totals totals = {0, 0, -1};
    for (int block = lane_id(); block < int(blockIdx.x); block += WARP_SIZE) {
        totals = combined(totals, block_totals[block]);
    }
    if (lane_id() < warp_id()) totals = combined(totals, warp_totals[lane_id()]);
    return broadcast(totals_up_to_lane(totals), WARP_SIZE - 1);
}

// Finds the rows at which blocks begin, and writes the records of the parts of split rows.
//
// At the block's position in the final order, `first_rows` gets the block's first row, or -1 if no
// block begins there. `first_nzs` gets the block's first nonzero, at its first row. `begins` gets
// the number of blocks in each share.
__device__ void find_blocks(const unsigned *degrees, const int *output_rows, Share share,
                            int share_rows, Totals before, const Setting &setting, bool in_place,
                            int *first_rows, unsigned *first_nzs, unsigned *begins, State *state,
                            int4 *metadata) {
    for (int first = share.begin; first < share.end; first += WARP_SIZE) {
        const int row = first + lane_id();
        const bool exists = row < share.end;
        const Totals totals = totals_of(degrees, row, exists, setting);
        const Totals sum = combined(before, totals_up_to_lane(totals));
        if (exists) {
            const int degree = totals.nonzeros;
            const unsigned first_nz = sum.nonzeros - degree;
            const bool split = setting.splits(degree);
            for (unsigned part = 0; part < totals.parts; ++part) {
                metadata[sum.parts - totals.parts + part] =
                    make_int4(degree, row, first_nz + part * setting.deg_bound(), part);
            }
            const int position = in_place ? output_rows[row] : row;
            const bool head = !split && (row - sum.run) % setting.block_rows(degree) == 0;
            first_rows[position] = head ? row : -1;
            if (head) {
                first_nzs[row] = first_nz;
                atomicAdd(&begins[position / share_rows], 1u);
            }
        }
        before = broadcast(sum, WARP_SIZE - 1);
    }
    const bool last = blockIdx.x == gridDim.x - 1 && threadIdx.x == Config::block_threads - 1;
    if (last) state->split_blocks = before.parts;
}

// Returns how many of the `most` rows from `first` on have the degree of the first.
DEVICE_INLINE int equal_rows(const unsigned *degrees, int first, int most) {
    const unsigned degree = degrees[first];
    if (degrees[first + most - 1] == degree) return most;
    int low = 1, high = most - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (degrees[first + middle] == degree) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Writes the records of blocks of whole rows, in the order of their positions.
__device__ void describe_blocks(const unsigned *degrees, int n_rows, Share share,
                                const Setting &setting, const int *first_rows,
                                const unsigned *first_nzs, const unsigned *begins, State *state,
                                int4 *metadata) {
    __shared__ unsigned blocks_before;
    if (threadIdx.x == 0) blocks_before = state->split_blocks;
    __syncthreads();
    const int share_before = int(blockIdx.x) * WARPS;
    unsigned sum = 0;
    for (int i = threadIdx.x; i < share_before; i += Config::block_threads) sum += begins[i];
    sum = sum_up_to_lane(sum);
    if (lane_id() == WARP_SIZE - 1) atomicAdd(&blocks_before, sum);
    __syncthreads();
    sum = sum_up_to_lane(lane_id() < warp_id() ? begins[share_before + lane_id()] : 0);
    unsigned next = blocks_before + __shfl_sync(ALL_LANES, sum, WARP_SIZE - 1);
    for (int first = share.begin; first < share.end; first += WARP_SIZE) {
        const int position = first + lane_id();
        const int row = position < share.end ? first_rows[position] : -1;
        const unsigned heads = __ballot_sync(ALL_LANES, row >= 0);
        if (row >= 0) {
            const int degree = degrees[row];
            const int most = min(setting.block_rows(degree), n_rows - row);
            const int rows = equal_rows(degrees, row, most);
            metadata[next + __popc(heads & lanes_below())] =
                make_int4(degree, row, first_nzs[row],
                          unsigned(setting.group_nzs(degree)) << Config::info_field_bits | rows);
        }
        next += __popc(heads);
    }
    const bool last = blockIdx.x == gridDim.x - 1 && threadIdx.x == Config::block_threads - 1;
    if (last) state->blocks = next;
}

// Arrays of `partition_rows`. Those named spare_*, of n_rows elements, and those after them are
// workspace: digit_counts has DIGITS words per block, block_totals one entry per block, and begins
// one word per warp.
struct PartitionArrays {
    int *output_rows;
    int4 *metadata;
    unsigned *spare_sorted, *spare_degrees;
    int *spare_rows;
    unsigned *digit_counts;
    Totals *block_totals;
    unsigned *begins;
};

// Returns the warp's share of n items, a multiple of 32 items per warp, and the size of a share.
DEVICE_INLINE Share share_of_warp(int n, int &share_size) {
    const int shares = gridDim.x * WARPS, number = blockIdx.x * WARPS + warp_id();
    share_size = ((n - 1) / shares / WARP_SIZE + 1) * WARP_SIZE;
    return {int(min((long long)number * share_size, (long long)n)),
            int(min((long long)(number + 1) * share_size, (long long)n))};
}

// Sorts n_rows > 0 rows by degree and writes the block records. `step` is the number of the next
// barrier; the result is that of the first one that is left. `counts` has WARPS * DIGITS words.
template <class Pointer>
__device__ int partition_rows(const Pointer *row_pointers, int n_rows, const Setting &setting,
                              bool in_place, State *state, const PartitionArrays &arrays,
                              unsigned *counts, int step) {
    __shared__ Totals warp_totals[WARPS];
    __shared__ unsigned block_largest;

    int share_rows;
    const Share share = share_of_warp(n_rows, share_rows);
    if (lane_id() == 0) arrays.begins[blockIdx.x * WARPS + warp_id()] = 0;
    if (threadIdx.x == 0) block_largest = 0;

    Rows<Pointer> from = {row_pointers, nullptr, nullptr};
    int passes = 1;
    for (int pass = 0; pass < passes; ++pass) {
        const int shift = pass * Config::digit_bits;
        const unsigned largest = count_digits(from, shift, share, counts, arrays.digit_counts);
        if (pass == 0) {
            atomicMax(&block_largest, largest);
            __syncthreads();
            if (threadIdx.x == 0) atomicMax(&state->largest, block_largest);
        }
        wait_for_all(state, step++);
        while (passes * Config::digit_bits < 32 && state->largest >> passes * Config::digit_bits)
            ++passes;
        // Passes write two pairs of arrays alternately; the last pass writes the final pair.
        const bool into_final = (passes - pass) % 2 == 1;
        unsigned *degrees = into_final ? arrays.spare_sorted : arrays.spare_degrees;
        int *rows = into_final ? arrays.output_rows : arrays.spare_rows;
        move_rows(from, shift, share, counts, arrays.digit_counts, degrees, rows);
        wait_for_all(state, step++);
        from = {row_pointers, degrees, rows};
    }

    // From here on arrays.spare_rows and arrays.spare_degrees hold the results of `find_blocks`.
    add_up(arrays.spare_sorted, share, setting, warp_totals, arrays.block_totals);
    wait_for_all(state, step++);
    const Totals before = totals_before(warp_totals, arrays.block_totals);
    find_blocks(arrays.spare_sorted, arrays.output_rows, share, share_rows, before, setting,
                in_place, arrays.spare_rows, arrays.spare_degrees, arrays.begins, state,
                arrays.metadata);
    wait_for_all(state, step++);
    describe_blocks(arrays.spare_sorted, n_rows, share, setting, arrays.spare_rows,
                    arrays.spare_degrees, arrays.begins, state, arrays.metadata);
    return step;
}

// The nonzeros of a block, by its record.
struct BlockNonzeros {
    int first_row, row_nzs, offset, size;
    long long first_nz;

    // Returns where nonzero i is in a matrix in CSR form; `rows` begins with the block's rows.
    template <class Pointer>
    DEVICE_INLINE long long source(const Pointer *row_pointers, const int *rows, int i) const {
        const int row = i / row_nzs;
        return (long long)row_pointers[rows[row]] + offset + (i - row * row_nzs);
    }
};

DEVICE_INLINE BlockNonzeros nonzeros_of(int4 record, int deg_bound) {
    const int degree = record.x;
    const bool split = degree > deg_bound;
    const int offset = split ? record.w * deg_bound : 0;
    const int row_nzs = split ? min(deg_bound, degree - offset) : degree;
    const int size = split ? row_nzs : (record.w & INFO_FIELD_LIMIT) * row_nzs;
    return {record.y, row_nzs, offset, size, (long long)unsigned(record.z)};
}
