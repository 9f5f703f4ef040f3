// Bodies attract each other: all positions pass through a tile.
__device__ float3 pull(float4 a, float4 b, float3 sum) {
    const float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
    const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    const float strength = b.w * inverse * inverse * inverse;
    return make_float3(sum.x + dx * strength, sum.y + dy * strength, sum.z + dz * strength);
}

__global__ void bodies(const float4 *positions, float *forces, int n) {
    extern __shared__ float4 tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 mine = i < n ? positions[i] : make_float4(0, 0, 0, 0);
    float3 sum = make_float3(0, 0, 0);
    for (int first = 0; first < n; first += blockDim.x) {
        const int other = first + threadIdx.x;
        tile[threadIdx.x] = other < n ? positions[other] : make_float4(0, 0, 0, 0);
        __syncthreads();  // loaded
        for (int j = 0; j < blockDim.x; ++j) sum = pull(mine, tile[j], sum);
        __syncthreads();  // used
    }
    if (i < n) {
        forces[3 * i] = sum.x;
        forces[3 * i + 1] = sum.y;
        forces[3 * i + 2] = sum.z;
    }
}
