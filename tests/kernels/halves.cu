// Accesses and a shift that are wrong, a line each.
#include <cuda_fp16.h>
__global__ void k(const half *X, half *Y, half2 *pairs, float *F, int which, int far, int n) {
    half2 *const odd = reinterpret_cast<half2 *>(Y + 1);
    switch (which) {
    case 0: F[0] = X[far]; break;
    case 1: F[0] = int(X[far]); break;
    case 2: Y[far] += X[0]; break;
    case 3: ++Y[far]; break;
    case 4: Y[0] = __hadd(X[0], X[far]); break;
    case 5: Y[far] = __hneg(X[0]); break;
    case 6: pairs[0] = pairs[0] * pairs[far]; break;
    case 7: pairs[far] += pairs[0]; break;
    case 8: F[0] = __low2float(pairs[far]); break;
    case 9: F[0] = pairs[0] == pairs[far]; break;
    case 10: pairs[0] = __hadd2(pairs[0], *odd); break;
    case 11: *odd += pairs[0]; break;
    case 12: F[0] = 1u << n; break;
    }
}
