#include <cassert>

// Means of rows of a table, chosen by lists of different length, as embeddings are averaged.
__global__ void mean_of_rows(const int *starts, const int *chosen, const int *table, int *means,
                             int width) {
    const int list = blockIdx.x;
    const int count = starts[list + 1] - starts[list];
    assert(count >= 0);
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
        int sum = 0;
        for (int k = starts[list]; k < starts[list + 1]; ++k) {
            sum += table[chosen[k] * width + column];
        }
        means[list * width + column] = count > 0 ? sum / count : 0;
    }
}
