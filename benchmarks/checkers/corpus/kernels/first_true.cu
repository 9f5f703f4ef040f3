// For each row, the first column that is above the bound, or -1.
__global__ void first_true(const float *X, int *where, float bound, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    bool is_found = false;
    int column = -1;
    for (int k = 0; k < columns && !is_found; ++k) {
        if (X[row * columns + k] > bound) {
            column = k;
            is_found = true;
        }
    }
    where[row] = is_found ? column : -1;
}
