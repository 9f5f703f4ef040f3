// Sum of a token's and a position's embedding; one thread an output, indices from two tables.
__global__ void embed_tokens(const int *tokens, const float *words, const float *positions,
                             float *out, int batch, int length, int channels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * length * channels) return;
    const int token = i / channels, channel = i % channels;
    out[i] = words[tokens[token] * channels + channel] + positions[token % length * channels + channel];
}
