// Row loop of the readable attention: a warp handles one head of a row, one nonzero after another.
// The argument Functor defines the computation per row (forward.cuh, gradient.cuh).
//
// grid  = (rows over block_warps, rounded up; heads)
// block = block_warps warps
#pragma once

#include "attention/extrema.cuh"

// `order` holds each nonzero's index in the caller's order; nullptr if that is the matrix's order.
template <class Functor>
DEVICE_INLINE void walk(Functor functor, const long long *__restrict__ row_pointers,
                        const int *__restrict__ columns, const unsigned *__restrict__ order,
                        float *row_totals, int n_rows, int heads, int n_cols) {
    const long long row = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    const Position position = {int(blockIdx.y), int(threadIdx.x) % WARP_SIZE, heads, n_cols};
    if (row >= n_rows) return;  // for all lanes of the warp

    State<Functor::OUTPUTS> state;
    Functor::initialize(state);
    const typename Functor::Row operands = functor.row(position, int(row));
    for (long long k = row_pointers[row]; k < row_pointers[row + 1]; ++k) {
        const int column[1] = {columns[k]};
        const NonzeroRange nonzero = {order == nullptr ? nullptr : order + k, k};
        float multipliers[1] = {factor(functor, nonzero, 0, position.head / Config::head_tiles)};
        const typename Functor::Item item[1] = {functor.item(position, column[0])};
        functor.accumulate(state, operands, item, column, multipliers, position);
        if (position.lane == 0) store_gradient(functor, nonzero, 0, multipliers[0]);
    }
    functor.finish(state);
    for (int o = 0; o < Functor::OUTPUTS; ++o) {
        position.store(functor.output(o), int(row), state.sums[o]);
    }
    if (position.lane == 0 && position.is_first_tile())
        functor.store_head(position.score_of(int(row)), state.head);

    const Columns *totals = functor.totals();
    if (totals == nullptr) return;
    for (int i = 0; i < Config::lane_vectors; ++i) {
        if (position.has(i))
            row_totals[position.head_of(int(row)) * n_cols + position.column(i)] = totals->x[i];
    }
}
