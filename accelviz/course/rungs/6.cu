extern "C" __global__ void my_spmm(const int4 *records, const int *columns,
                                   const float *values, const int *output_rows,
                                   const float *X, float *Y, int n_cols) {
    const int4 record = records[blockIdx.x];  // nonzeros of a row, place, first nonzero, rows
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= record.w) return;
    const int row = output_rows[record.y + warp];
    const int first = record.z + warp * record.x, end = first + record.x;
    for (int begin = 0; begin < n_cols; begin += 128) {
        const int column = begin + 4 * lane;  // four columns a lane; n_cols is a multiple of 4
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
        if (column < n_cols) *(float4 *)&Y[row * n_cols + column] = sum;
    }
}
