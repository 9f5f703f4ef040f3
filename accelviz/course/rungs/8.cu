extern "C" __global__ void my_spmm(const int4 *records, const int *columns,
                                   const float *values, const int *output_rows,
                                   const float *X, float *Y, int n_cols, int lanes) {
    const int4 record = records[blockIdx.x];  // nonzeros, place, first nonzero, rows
    const int group = threadIdx.x / lanes, lane = threadIdx.x % lanes;  // a subwarp a row
    const unsigned first_lane = threadIdx.x % 32 / lanes * lanes;
    const unsigned mask = (lanes == 32 ? 0xffffffff : (1u << lanes) - 1) << first_lane;
    const bool cut = record.w == 0;  // all subwarps share one row, 16 nonzeros each
    if (!cut && group >= record.w) return;
    const int row = output_rows[record.y + (cut ? 0 : group)];
    const int first = record.z + group * (cut ? 16 : record.x);
    const int end = cut ? min(first + 16, record.z + record.x) : first + record.x;
    for (int begin = 0; begin < n_cols; begin += 4 * lanes) {
        const int column = begin + 4 * lane;
        float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int k = first; k < end; k += lanes) {
            const int my_column = k + lane < end ? columns[k + lane] : 0;
            const float my_value = k + lane < end ? values[k + lane] : 0.0f;
            for (int i = 0; i < min(lanes, end - k); ++i) {
                const int from = __shfl_sync(mask, my_column, i, lanes);
                const float value = __shfl_sync(mask, my_value, i, lanes);
                if (column >= n_cols) continue;
                const float4 x = *(const float4 *)&X[from * n_cols + column];
                sum.x += value * x.x, sum.y += value * x.y;
                sum.z += value * x.z, sum.w += value * x.w;
            }
        }
        if (column >= n_cols || (cut && first >= end)) continue;
        float *y = &Y[row * n_cols + column];
        if (cut) {
            atomicAdd(y, sum.x), atomicAdd(y + 1, sum.y);
            atomicAdd(y + 2, sum.z), atomicAdd(y + 3, sum.w);
        } else {
            *(float4 *)y = sum;
        }
    }
}
