// What the int4 of a block of subwarps says; `lane_group_partition` makes it. The including file
// has deg_bound, groups and info_field_bits.
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

DEVICE_INLINE Block decode(int4 metadata) {
    const int degree = metadata.x;
    const unsigned info = metadata.w;
    Block block;
    block.first_row = metadata.y;
    block.first_nz = metadata.z;
    block.cut = degree > Config::deg_bound;
    block.part = block.cut ? info : 0;
    block.parts = block.cut ? ceil_div(degree, Config::deg_bound) : 1;
    block.rows = block.cut ? 1 : info & ((1u << Config::info_field_bits) - 1);
    block.row_nzs =
        block.cut ? min(Config::deg_bound, degree - block.part * Config::deg_bound) : degree;
    block.group_nzs =
        block.cut ? ceil_div(block.row_nzs, Config::groups) : info >> Config::info_field_bits;
    return block;
}
