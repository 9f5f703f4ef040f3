// Samples from rows of probabilities by a number of each row: walks until the sum exceeds it.
__global__ void sample_tokens(const float *probabilities, const float *coins, int *tokens, int rows,
                              int classes) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    int token = classes - 1;
    for (int c = 0; c < classes; ++c) {
        sum += probabilities[row * classes + c];
        if (coins[row] < sum) {
            token = c;
            break;
        }
    }
    tokens[row] = token;
}
