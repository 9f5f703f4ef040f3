// A step of a lattice gas on a ring: three populations stream to neighbors and then collide.
__global__ void lattice_step(const int *old, int *now, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int rest = old[i], from_left = old[n + (i + n - 1) % n], from_right = old[2 * n + (i + 1) % n];
    const int pairs = min(from_left, from_right) / 2;
    now[i] = rest + 2 * pairs;
    now[n + i] = from_left - pairs;
    now[2 * n + i] = from_right - pairs;
}
