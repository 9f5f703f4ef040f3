// How the readable attention walks rows: a warp has a head of a row, one nonzero after the other.
// What is computed of a row is the argument Functor (forward.cuh, gradient.cuh).
//
// grid  = (rows over block_warps, rounded up; heads)
// block = block_warps warps
#pragma once

#include "attention/gradient.cuh"

// `order` says which nonzero of the caller's each is; without it, they are in the caller's order.
template <class Functor>
__device__ __forceinline__ void walk(Functor functor, const long long *__restrict__ row_pointers,
                                     const int *__restrict__ columns,
                                     const unsigned *__restrict__ order, float *row_totals,
                                     int n_rows, int heads, int n_cols) {
    const long long row = (long long)blockIdx.x * Config::block_warps + threadIdx.x / WARP_SIZE;
    const Place place = {int(blockIdx.y), int(threadIdx.x) % WARP_SIZE, heads, n_cols};
    if (row >= n_rows) return;  // a whole warp

    State<Functor::OUTPUTS> state = {};
    state.head = Functor::none();
    const typename Functor::Row own = functor.row(place, int(row));
    for (long long k = row_pointers[row]; k < row_pointers[row + 1]; ++k) {
        const int column[1] = {columns[k]};
        const Walked walked = {order == nullptr ? nullptr : order + k, k};
        float kept[1] = {factor(functor, walked, 0, place.head)};
        const typename Functor::Item item[1] = {functor.item(place, column[0])};
        functor.take(state, own, item, column, kept, place);
        if (place.lane == 0) leave(functor, walked, 0, kept[0]);
    }
    for (int o = 0; o < Functor::OUTPUTS; ++o) {
        Columns found;
        for (int c = 0; c < WIDTH; ++c) {
            found.x[c] = Functor::result(state.sums[o].x[c], state.head);
        }
        place.store(functor.out(o), int(row), found);
    }
    if (place.lane == 0) functor.finish(place.head_of(int(row)), state.head);

    const Columns *totals = functor.totals();
    if (totals == nullptr) return;
    for (int i = 0; i < Config::lane_vectors; ++i) {
        if (place.has(i))
            row_totals[place.head_of(int(row)) * n_cols + place.column(i)] = totals->x[i];
    }
}
