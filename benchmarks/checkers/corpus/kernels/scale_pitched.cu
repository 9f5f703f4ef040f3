// Rows that begin at a multiple of 64 bytes: addresses by a pointer to char, as after cudaMallocPitch.
__global__ void scale_pitched(char *image, int pitch, int width, int height, float factor) {
    for (int row = blockIdx.x; row < height; row += gridDim.x) {
        float *line = reinterpret_cast<float *>(image + row * pitch);
        for (int column = threadIdx.x; column < width; column += blockDim.x) line[column] *= factor;
    }
}
