// ELLPACK: as many places a row as the longest has, column by column, -1 where there is none.
__global__ void ell(const int *columns, const float *values, const float *x, float *y, int rows,
                    int width) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int j = 0; j < width; ++j) {
        const int column = columns[j * rows + row];
        if (column >= 0) sum += values[j * rows + row] * x[column];
    }
    y[row] = sum;
}
