// Constants with fewer initial values than elements. Cases from 10 on read one that has none.
__constant__ float weights[8];
__constant__ float4 vectors[2];
__constant__ float defaults[8] = {5.0f};
namespace inner {
__constant__ short steps[6];
}

__global__ void k(float *Y, int which, int first) {
    const int t = threadIdx.x;
    float sum = 0.0f;
    if (which == 0) {
        for (int i = first; i < 5; ++i) sum += weights[i];
    }
    if (which == 1) sum = vectors[0].w + inner::steps[3];
    if (which == 2) sum = defaults[first + 4];
    if (which == 3) sum = reinterpret_cast<const float2 *>(weights)[first + 2].x;
    switch (which) {
        case 10:
            for (int i = first; i < 8; ++i) sum += weights[i];
            break;
        case 11:
            sum = weights[first + 5 + t % 3];
            break;
        case 12:
            sum = vectors[first + 1].w;
            break;
        case 13:
            sum = inner::steps[first + 4];
            break;
    }
    Y[t] = sum;
}
