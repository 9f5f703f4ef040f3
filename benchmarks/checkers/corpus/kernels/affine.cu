// A structure as parameter, a functor as template argument, and a loop over a grid of two dimensions.
struct Line {
    float slope, offset;
    int n;
};

struct Apply {
    Line line;
    __device__ float operator()(float x) const { return line.slope * x + line.offset; }
};

template <typename Function>
__device__ void transform(const float *X, float *Y, int n, Function function) {
    const int threads = gridDim.x * gridDim.y * blockDim.x;
    const int first = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    for (int i = first; i < n; i += threads) Y[i] = function(X[i]);
}

__global__ void affine(const float *X, float *Y, Line line) {
    transform(X, Y, line.n, Apply{line});
}
