// One round of Floyd and Warshall by one vertex: its row and column do not change, and are not written.
__global__ void shortest_paths(int *D, int n, int through) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    const int detour = D[i * n + through] + D[through * n + j];
    if (detour < D[i * n + j]) D[i * n + j] = detour;
}
