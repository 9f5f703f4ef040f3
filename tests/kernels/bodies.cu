// Structures and vectors by value, in a namespace.
struct Body { float3 place; float mass; };
struct World { float softening; int n; };
namespace gravity {
__device__ float distance(float3 a, float3 b) {
    float3 d = make_float3(a.x - b.x, a.y - b.y, a.z - b.z);
    return sqrtf(d.x * d.x + d.y * d.y + d.z * d.z);
}
__global__ void energy(Body *bodies, World world, float3 center, float *energies) {
    int i = threadIdx.x;
    float sum = distance(bodies[i].place, center);
    for (int j = 0; j < world.n; j++)
        if (j != i)
            sum += bodies[j].mass / (distance(bodies[i].place, bodies[j].place) + world.softening);
    energies[i] = sum;
}
}
