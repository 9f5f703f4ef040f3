// The block partition of lane_groups for an edge list, in one cooperative launch without the host:
// edges are sorted by row, rows by degree, and block records and nonzeros are written in the order
// that the kernels read. accelviz.torch launches it before each product with the same arrays.
//
// If `verify` is set, a hash of the edges is compared with that of the edges from which the arrays
// were computed, and the launch ends if both are equal. So a change of the edges is always noticed.
//
// Items are the edges and then `n_loops` self loops, of nodes 0, 1, ... With loops, edges from a
// node to itself are ignored. A row is an item's target, or with `by_source` its source. Ignored
// items, and those with a node that does not exist, get the row n_rows: they are sorted behind all
// others and read by nobody.
//
// grid = blocks that fit on the GPU at once, the same in each launch; block = block_threads

// Supplied at compile time:
//   block_threads, digit_bits, info_field_bits   as in preprocess.cu
//   Index       type of the edge list's elements, long long or int

#include "common.cuh"
#include "spmm/subwarp_blocks.cuh"

using Index = Config::Index;

// Zero before the first launch.
struct Header {
    State state;
    unsigned blocks_done;     // blocks that have finished this launch
    unsigned is_built;        // 1 after the first launch
    unsigned long long sum;   // hash of this launch's edges; zero between launches
    unsigned long long hash;  // hash of the edges from which the arrays were computed
};

// A sort key per item: its row.
struct Items {
    const Index *rows, *columns;  // of the edges, `stride` elements apart
    int stride, n_edges, n_loops;
    unsigned n_rows, n_columns;

    DEVICE_INLINE unsigned key(int i) const {
        if (i >= n_edges) return i - n_edges;
        const long long at = (long long)i * stride;
        const Index row = rows[at], column = columns[at];
        const bool exists =
            (unsigned long long)row < n_rows && (unsigned long long)column < n_columns;
        return exists && !(n_loops && row == column) ? unsigned(row) : n_rows;
    }
    DEVICE_INLINE int row(int i) const {  // what is sorted: the number of the item
        return i;
    }
    DEVICE_INLINE int column(int i) const {
        return i < n_edges ? int(columns[(long long)i * stride]) : i - n_edges;
    }
};

// Items in the order after a pass of the sort.
struct SortedItems {
    const unsigned *keys;
    const int *items;

    DEVICE_INLINE unsigned key(int i) const {
        return keys[i];
    }
    DEVICE_INLINE int row(int i) const {
        return items[i];
    }
};

DEVICE_INLINE unsigned long long mixed(unsigned long long value, unsigned long long position) {
    value = (value ^ position * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
    value = (value ^ value >> 32) * 0xd6e8feb86659fd93ull;
    return value ^ value >> 32;
}

// Adds the block's part of the hash to `sum`.
__device__ void add_hash(const Items &items, unsigned long long *sum) {
    __shared__ unsigned long long block_sum;
    if (threadIdx.x == 0) block_sum = 0;
    __syncthreads();
    unsigned long long hash = 0;
    const int stride = int(gridDim.x) * Config::block_threads;
    int i = int(blockIdx.x) * Config::block_threads + threadIdx.x;
#pragma unroll 4
    for (; i < items.n_edges; i += stride) {
        const long long at = (long long)i * items.stride;
        hash += mixed(items.rows[at], 2ull * i) + mixed(items.columns[at], 2ull * i + 1);
        if (i > 0x7fffffff - stride) break;
    }
#pragma unroll
    for (int distance = WARP_SIZE / 2; distance > 0; distance /= 2) {
        hash += __shfl_down_sync(ALL_LANES, hash, distance);
    }
    if (lane_id() == 0) atomicAdd(&block_sum, hash);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(sum, block_sum);
}

// Sorts the items by row, stably. The result is in `sorted_rows` and `sorted_items`.
__device__ int sort_items(const Items &items, int n_items, State *state, unsigned *sorted_rows,
                          int *sorted_items, unsigned *spare_rows, int *spare_items,
                          unsigned *digit_counts, unsigned *counts, int step) {
    int share_size;
    const Share share = share_of_warp(n_items, share_size);
    int passes = 1;
    while (passes * Config::digit_bits < 32 && items.n_rows >> passes * Config::digit_bits)
        ++passes;
    SortedItems sorted = {nullptr, nullptr};
    for (int pass = 0; pass < passes; ++pass) {
        const int shift = pass * Config::digit_bits;
        const bool into_final = (passes - pass) % 2 == 1;
        unsigned *rows = into_final ? sorted_rows : spare_rows;
        int *order = into_final ? sorted_items : spare_items;
        if (pass == 0) {
            count_digits(items, shift, share, counts, digit_counts);
            wait_for_all(state, step++);
            move_rows(items, shift, share, counts, digit_counts, rows, order);
        } else {
            count_digits(sorted, shift, share, counts, digit_counts);
            wait_for_all(state, step++);
            move_rows(sorted, shift, share, counts, digit_counts, rows, order);
        }
        wait_for_all(state, step++);
        sorted = {rows, order};
    }
    return step;
}

// Returns the number of sorted rows below `row`.
DEVICE_INLINE unsigned rows_below(const unsigned *sorted_rows, int n_items, unsigned row) {
    int low = 0, high = n_items;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (sorted_rows[middle] < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Ends a launch: the last block resets the barrier.
DEVICE_INLINE void leave(Header *header) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(&header->blocks_done, 1u) == gridDim.x - 1) {
        header->state.arrived = header->blocks_done = 0;
        header->sum = 0;
    }
}

// Requires n_rows > 0 and n_edges + n_loops > 0. `degrees`, the number of items by target, is null
// unless `scale` is: 1 / degree, or with `symmetric` its square root, 0 for no items. `records` is
// the number of records in `metadata`; those beyond the last block are set to zero, a block without
// rows. `bad_node`, of the host, gets 2 n + 1 for a node n that does not exist.
extern "C" __global__ void __launch_bounds__(Config::block_threads, 1)
    edge_blocks(Header *header, const Index *sources, const Index *targets, int edge_stride,
                int n_edges, int n_loops, int n_sources, int n_targets, int by_source, int verify,
                int groups, int max_group_nzs, int short_nzs, int symmetric, int records,
                int *output_rows, int4 *metadata, int *columns, unsigned *item_numbers,
                float *scale, unsigned *degrees, unsigned *row_pointers, unsigned *sorted_rows,
                int *sorted_items, unsigned *spare_item_rows, int *spare_items,
                unsigned *spare_sorted, unsigned *spare_degrees, int *spare_rows,
                unsigned *digit_counts, Totals *block_totals, unsigned *begins,
                unsigned long long *bad_node) {
    __shared__ unsigned counts[WARPS * DIGITS];
    const int n_rows = by_source ? n_sources : n_targets;
    const Items items = {by_source ? sources : targets,
                         by_source ? targets : sources,
                         edge_stride,
                         n_edges,
                         n_loops,
                         unsigned(n_rows),
                         unsigned(by_source ? n_targets : n_sources)};
    const int n_items = n_edges + n_loops, threads = int(gridDim.x) * Config::block_threads;
    const int first = int(blockIdx.x) * Config::block_threads + threadIdx.x;
    State *state = &header->state;
    int step = 1;
    RECORD_STEP(0);

    if (verify) {
        add_hash(items, &header->sum);
        wait_for_all(state, step++);
        const unsigned long long hash = *(volatile unsigned long long *)&header->sum;
        const bool unchanged = header->is_built && header->hash == hash;
        if (unchanged) {
            leave(header);
            return;
        }
    }
    if (degrees) {
        for (long long i = first; i < n_targets; i += threads) degrees[i] = 0;
    }
    wait_for_all(state, step++);  // all blocks have read the old hash
    if (first == 0) {
        state->largest = 0;
        header->is_built = 1;
        header->hash = header->sum;
    }
    for (long long i = first; i < n_items; i += threads) {
        const bool is_edge = i < n_edges;
        const Index source = is_edge ? sources[i * edge_stride] : Index(i - n_edges);
        const Index target = is_edge ? targets[i * edge_stride] : source;
        const bool no_source = (unsigned long long)source >= unsigned(n_sources);
        if (no_source || (unsigned long long)target >= unsigned(n_targets)) {
            const unsigned long long node = no_source ? source : target;
            *(volatile unsigned long long *)bad_node = node << 1 | 1;
        } else if (degrees && !(is_edge && n_loops && source == target)) {
            atomicAdd(&degrees[target], 1u);
        }
    }
    step = sort_items(items, n_items, state, sorted_rows, sorted_items, spare_item_rows,
                      spare_items, digit_counts, counts, step);
    for (long long row = first; row <= n_rows; row += threads) {
        row_pointers[row] = rows_below(sorted_rows, n_items, row);
    }
    if (degrees) {
        for (long long i = first; i < n_targets; i += threads) {
            const float degree = degrees[i];
            scale[i] =
                symmetric ? (degree > 0.0f ? rsqrtf(degree) : 0.0f) : 1.0f / fmaxf(degree, 1.0f);
        }
    }
    wait_for_all(state, step++);

    const PartitionArrays arrays = {output_rows, metadata,     spare_sorted, spare_degrees,
                                    spare_rows,  digit_counts, block_totals, begins};
    const Setting setting = {groups, max_group_nzs, short_nzs};
    step = partition_rows(row_pointers, n_rows, setting, true, state, arrays, counts, step);
    wait_for_all(state, step++);
    const int blocks = state->blocks;
    for (long long i = blocks + first; i < records; i += threads)
        metadata[i] = make_int4(0, 0, 0, 0);
    for (int block = blockIdx.x * WARPS + warp_id(); block < blocks; block += gridDim.x * WARPS) {
        const BlockNonzeros nonzeros = nonzeros_of(metadata[block], setting.deg_bound());
        const int *rows = &output_rows[nonzeros.first_row];
#pragma unroll 4
        for (int i = lane_id(); i < nonzeros.size; i += WARP_SIZE) {
            const int item = sorted_items[nonzeros.source(row_pointers, rows, i)];
            columns[nonzeros.first_nz + i] = items.column(item);
            item_numbers[nonzeros.first_nz + i] = item;
        }
    }
    leave(header);
}
