extern "C" __global__ void my_spmm(const int4 *records, const int *columns,
                                   const float *values, const int *output_rows,
                                   const float *X, float *Y, int n_cols) {
    const int4 record = records[blockIdx.x];  // nonzeros of a row, place, first nonzero, rows
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= record.w) return;
    const int row = output_rows[record.y + warp];
    const int first = record.z + warp * record.x, end = first + record.x;
    for (int begin = 0; begin < n_cols; begin += 32) {
        const int column = begin + lane;
        float sum = 0.0f;
        for (int k = first; k < end; k += 32) {  // 32 nonzeros, a lane loads one
            const int my_column = k + lane < end ? columns[k + lane] : 0;
            const float my_value = k + lane < end ? values[k + lane] : 0.0f;
            for (int i = 0; i < min(32, end - k); ++i) {
                const int from = __shfl_sync(0xffffffff, my_column, i);
                const float value = __shfl_sync(0xffffffff, my_value, i);
                if (column < n_cols) sum += value * X[from * n_cols + column];
            }
        }
        if (column < n_cols) Y[row * n_cols + column] = sum;
    }
}
