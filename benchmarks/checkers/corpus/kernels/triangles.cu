// Counts triangles: a warp an edge, its lanes search one list for the neighbors of the other.
__global__ void triangles(const int *pointers, const int *columns, const int *rows, int edges,
                          unsigned *count) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    unsigned mine = 0;
    for (int e = warp; e < edges; e += gridDim.x * blockDim.x / 32) {
        const int u = rows[e], v = columns[e], end = pointers[v + 1];
        for (int k = pointers[u] + lane; k < pointers[u + 1]; k += 32) {
            int low = pointers[v], high = end;
            while (low < high) {
                const int middle = (low + high) >> 1;
                if (columns[middle] < columns[k]) low = middle + 1;
                else high = middle;
            }
            mine += low < end && columns[low] == columns[k];
        }
    }
    mine = __reduce_add_sync(~0U, mine);
    if (lane == 0 && mine) atomicAdd(count, mine);
}
