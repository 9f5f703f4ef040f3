// Gradients of an embedding table: tokens that occur more than once are added atomically.
__global__ void embed_gradient(const int *tokens, const float *d_out, float *d_words, int count,
                               int channels) {
    for (int token = blockIdx.x; token < count; token += gridDim.x) {
        for (int channel = threadIdx.x; channel < channels; channel += blockDim.x) {
            atomicAdd(&d_words[tokens[token] * channels + channel], d_out[token * channels + channel]);
        }
    }
}
