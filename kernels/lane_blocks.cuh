// What the int4 of a block of lane groups says; `lane_group_partition` makes it. The including file
// has DEG_BOUND, GROUPS and INFO_FIELD_BITS.
#pragma once

#include "common.cuh"

struct Block {
    int first_row;
    unsigned first_nz;
    int rows;       // rows in this block
    int row_nzs;    // nonzeros of each row inside this block
    int group_nzs;  // nonzeros of each group, fewer at a row's end
    bool cut;       // other blocks hold more of this row
    int part;       // which part of it this is
    int parts;      // how many there are
};

__device__ __forceinline__ Block decode(int4 metadata) {
    const int degree = metadata.x;
    const unsigned info = metadata.w;
    Block block;
    block.first_row = metadata.y;
    block.first_nz = metadata.z;
    block.cut = degree > DEG_BOUND;
    block.part = block.cut ? info : 0;
    block.parts = block.cut ? ceil_div(degree, DEG_BOUND) : 1;
    block.rows = block.cut ? 1 : info & ((1u << INFO_FIELD_BITS) - 1);
    block.row_nzs = block.cut ? min(DEG_BOUND, degree - block.part * DEG_BOUND) : degree;
    block.group_nzs = block.cut ? ceil_div(block.row_nzs, GROUPS) : info >> INFO_FIELD_BITS;
    return block;
}
