// A step of k-means: nearest center of each point, counts and sums of the block in shared memory.
#define CENTERS 5

__global__ void nearest_centers(const int2 *points, const int2 *centers, int *nearest, int *counts,
                                int *sums, int n) {
    __shared__ int2 center[CENTERS];
    __shared__ int count[CENTERS], sum[CENTERS][2];
    const int t = threadIdx.x;
    if (t < CENTERS) {
        center[t] = centers[t];
        count[t] = sum[t][0] = sum[t][1] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
        const int2 p = points[i];
        int best = 0, least = 0x7fffffff;
        for (int c = 0; c < CENTERS; ++c) {
            const int dx = p.x - center[c].x, dy = p.y - center[c].y, distance = dx * dx + dy * dy;
            if (distance < least) least = distance, best = c;
        }
        nearest[i] = best;
        atomicAdd(&count[best], 1);
        atomicAdd(&sum[best][0], p.x);
        atomicAdd(&sum[best][1], p.y);
    }
    __syncthreads();
    if (t < CENTERS) {
        atomicAdd(&counts[t], count[t]);
        atomicAdd(&sums[2 * t], sum[t][0]);
        atomicAdd(&sums[2 * t + 1], sum[t][1]);
    }
}
