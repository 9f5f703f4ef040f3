extern "C" __global__ void my_spmm(const int4 *records, const int *columns,
                                   const float *values, const int *output_rows,
                                   const float *X, float *Y, int n_cols) {
    const int4 record = records[blockIdx.x];  // nonzeros, place, first nonzero, rows
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool cut = record.w == 0;  // four warps share up to 64 nonzeros of one row
    if (!cut && warp >= record.w) return;
    const int row = output_rows[record.y + (cut ? 0 : warp)];
    const int first = record.z + warp * (cut ? 16 : record.x);
    const int end = cut ? min(first + 16, record.z + record.x) : first + record.x;
    for (int begin = 0; begin < n_cols; begin += 128) {
        const int column = begin + 4 * lane;
        float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int k = first; k < end; k += 32) {
            const int my_column = k + lane < end ? columns[k + lane] : 0;
            const float my_value = k + lane < end ? values[k + lane] : 0.0f;
            for (int i = 0; i < min(32, end - k); ++i) {
                const int from = __shfl_sync(0xffffffff, my_column, i);
                const float value = __shfl_sync(0xffffffff, my_value, i);
                if (column >= n_cols) continue;
                const float4 x = *(const float4 *)&X[from * n_cols + column];
                sum.x += value * x.x, sum.y += value * x.y;
                sum.z += value * x.z, sum.w += value * x.w;
            }
        }
        if (column >= n_cols || (cut && first >= end)) continue;
        float *y = &Y[row * n_cols + column];
        if (cut) {  // others add to this row, too; it was zero before the launch
            atomicAdd(y, sum.x), atomicAdd(y + 1, sum.y);
            atomicAdd(y + 2, sum.z), atomicAdd(y + 3, sum.w);
        } else {
            *(float4 *)y = sum;
        }
    }
}
