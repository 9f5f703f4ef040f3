// A stable radix sort of rows by degree over all blocks of a launch, for preprocess.cu, and its
// warp-level functions. A pass consists of `count_digits` and `move_rows`; a barrier of all blocks
// must follow each of them.
#pragma once

#include "common.cuh"

constexpr int WARPS = Config::block_threads / WARP_SIZE;
constexpr int DIGITS = 1 << Config::digit_bits;

// A range of rows or positions: begin to end - 1.
struct Share {
    int begin, end;
};

DEVICE_INLINE int lane_id() {
    return threadIdx.x % WARP_SIZE;
}

DEVICE_INLINE int warp_id() {
    return threadIdx.x / WARP_SIZE;
}

DEVICE_INLINE unsigned lanes_below() {
    return (1u << lane_id()) - 1;
}

DEVICE_INLINE unsigned sum_up_to_lane(unsigned value) {
#pragma unroll
    for (int distance = 1; distance < WARP_SIZE; distance *= 2) {
        const unsigned before = __shfl_up_sync(ALL_LANES, value, distance);
        if (lane_id() >= distance) value += before;
    }
    return value;
}

// Rows in the graph's order, or in the order after a pass of the sort, with their sort keys.
template <class Pointer>
struct Rows {
    const Pointer *row_pointers;
    const unsigned *degrees;
    const int *rows;  // null for the graph's order

    DEVICE_INLINE unsigned key(int i) const {
        return rows ? degrees[i] : unsigned(row_pointers[i + 1] - row_pointers[i]);
    }
    DEVICE_INLINE int row(int i) const {
        return rows ? rows[i] : i;
    }
};

// Returns the lanes with the same digit. The lowest of them updates the digit's count.
DEVICE_INLINE unsigned lanes_with(unsigned digit, bool exists) {
    unsigned lanes = __ballot_sync(ALL_LANES, exists);
#pragma unroll
    for (int bit = 0; bit < Config::digit_bits; ++bit) {
        const bool set = digit >> bit & 1;
        const unsigned votes = __ballot_sync(ALL_LANES, set);
        lanes &= set ? votes : ~votes;
    }
    return lanes;
}

// Counts each warp's rows by digit in `counts` and the block's rows in `digit_counts`. Returns the
// largest degree of the thread's rows.
template <class Source>
__device__ unsigned count_digits(const Source &from, int shift, Share share, unsigned *counts,
                                 unsigned *digit_counts) {
    for (int i = threadIdx.x; i < WARPS * DIGITS; i += Config::block_threads) counts[i] = 0;
    __syncthreads();
    unsigned *warp_counts = &counts[warp_id() * DIGITS];
    unsigned largest = 0;
    for (int first = share.begin; first < share.end; first += WARP_SIZE) {
        const int i = first + lane_id();
        const bool exists = i < share.end;
        const unsigned degree = exists ? from.key(i) : 0;
        const unsigned digit = degree >> shift & (DIGITS - 1);
        const unsigned lanes = lanes_with(digit, exists);
        if (exists && (lanes & lanes_below()) == 0) warp_counts[digit] += __popc(lanes);
        largest = max(largest, degree);
        __syncwarp();
    }
    __syncthreads();
    for (int digit = threadIdx.x; digit < DIGITS; digit += Config::block_threads) {
        unsigned sum = 0;
#pragma unroll 8
        for (int warp = 0; warp < WARPS; ++warp) sum += counts[warp * DIGITS + digit];
        digit_counts[blockIdx.x * DIGITS + digit] = sum;
    }
    return largest;
}

// Replaces each warp's count of a digit by the position of its first row with that digit.
__device__ void find_positions(unsigned *counts, const unsigned *digit_counts) {
    __shared__ unsigned totals[DIGITS], firsts[DIGITS];
    for (int digit = threadIdx.x; digit < DIGITS; digit += Config::block_threads) {
        totals[digit] = firsts[digit] = 0;
    }
    __syncthreads();
#pragma unroll 8
    for (int i = threadIdx.x; i < int(gridDim.x) * DIGITS; i += Config::block_threads) {
        const unsigned count = digit_counts[i];
        atomicAdd(&totals[i % DIGITS], count);
        if (i / DIGITS < int(blockIdx.x)) atomicAdd(&firsts[i % DIGITS], count);
    }
    __syncthreads();
    if (warp_id() == 0) {
        unsigned smaller = 0;  // rows with a smaller digit
        for (int digit = lane_id(); digit < DIGITS; digit += WARP_SIZE) {
            const unsigned sum = sum_up_to_lane(totals[digit]);
            firsts[digit] += smaller + sum - totals[digit];
            smaller += __shfl_sync(ALL_LANES, sum, WARP_SIZE - 1);
        }
    }
    __syncthreads();
    for (int digit = threadIdx.x; digit < DIGITS; digit += Config::block_threads) {
        unsigned next = firsts[digit];
#pragma unroll 8
        for (int warp = 0; warp < WARPS; ++warp) {
            const unsigned count = counts[warp * DIGITS + digit];
            counts[warp * DIGITS + digit] = next;
            next += count;
        }
    }
    __syncthreads();
}

// Moves the rows to the positions of their digits, in order.
template <class Source>
__device__ void move_rows(const Source &from, int shift, Share share, unsigned *counts,
                          const unsigned *digit_counts, unsigned *degrees, int *rows) {
    find_positions(counts, digit_counts);
    unsigned *next = &counts[warp_id() * DIGITS];
    for (int first = share.begin; first < share.end; first += WARP_SIZE) {
        const int i = first + lane_id();
        const bool exists = i < share.end;
        const unsigned degree = exists ? from.key(i) : 0;
        const unsigned digit = degree >> shift & (DIGITS - 1);
        const unsigned lanes = lanes_with(digit, exists);
        if (exists) {
            const unsigned target = next[digit] + __popc(lanes & lanes_below());
            degrees[target] = degree;
            rows[target] = from.row(i);
        }
        __syncwarp();
        if (exists && (lanes & lanes_below()) == 0) next[digit] += __popc(lanes);
        __syncwarp();
    }
}
