extern "C" __global__ void my_spmm(const int4 *records, const int *columns,
                                   const float *values, const int *output_rows,
                                   const float *X, float *Y, int n_cols) {
    const int4 record = records[blockIdx.x];  // nonzeros of a row, place, first nonzero, rows
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= record.w) return;  // a block with fewer rows than warps
    const int row = output_rows[record.y + warp];
    const int first = record.z + warp * record.x, end = first + record.x;
    for (int column = lane; column < n_cols; column += 32) {
        float sum = 0.0f;
        for (int k = first; k < end; ++k) {
            sum += values[k] * X[columns[k] * n_cols + column];
        }
        Y[row * n_cols + column] = sum;
    }
}
