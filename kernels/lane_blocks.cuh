// Block records of the subwarp partition scheme, one int4 per thread block, as written by
// `lane_group_partition`. The including file's Config defines deg_bound, groups, info_field_bits.
#pragma once

#include "common.cuh"

struct Block {
    int first_row;
    unsigned first_nz;
    int rows;       // rows in this block
    int row_nzs;    // nonzeros of each row in this block
    int group_nzs;  // nonzeros of each subwarp; the last subwarp of a row may have fewer
    bool split;     // the row is longer than deg_bound and split over several blocks
    int part;       // number of this part of the split row, else 0
    int parts;      // number of parts of the split row, else 1
};

DEVICE_INLINE Block decode(int4 metadata) {
    const int degree = metadata.x;
    const unsigned info = metadata.w;
    Block block;
    block.first_row = metadata.y;
    block.first_nz = metadata.z;
    block.split = degree > Config::deg_bound;
    block.part = block.split ? info : 0;
    block.parts = block.split ? ceil_div(degree, Config::deg_bound) : 1;
    block.rows = block.split ? 1 : info & ((1u << Config::info_field_bits) - 1);
    block.row_nzs =
        block.split ? min(Config::deg_bound, degree - block.part * Config::deg_bound) : degree;
    block.group_nzs =
        block.split ? ceil_div(block.row_nzs, Config::groups) : info >> Config::info_field_bits;
    return block;
}
