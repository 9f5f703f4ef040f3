// Several threads of a block store to one place without an order: `same` values, which is no
// mistake, or `different` ones, one per value of `which`.
__global__ void same(const float *X, float *Y, int *flag, int which) {
    __shared__ float s[32];
    const int t = threadIdx.x, warp = t / 32;
    switch (which) {
    case 0: *flag = 1; break;  // all threads
    case 1: if (X[t] > 0) flag[0] = 1; break;
    case 2:  // all lanes of each warp
        s[warp] = __shfl_sync(~0u, X[t], 0);
        __syncthreads();
        if (t == 0) for (int w = 0; w < blockDim.x / 32; ++w) Y[w] = s[w];
        break;
    case 3: reinterpret_cast<unsigned char *>(flag)[1] = 7; break;
    case 4: *reinterpret_cast<float4 *>(s) = make_float4(1, 2, 3, 4); break;
    case 5: *reinterpret_cast<double *>(s + warp / 2 * 2) = 2.5; break;
    case 6: __stcg(flag, 3); break;
    case 7: for (int j = 0; j < 4; ++j) s[j] = j; break;
    case 8: s[0] = 5; Y[t] = s[0]; break;  // each thread reads what it has stored itself
    case 9: *flag = 5; Y[t] = *flag; break;
    }
}

__global__ void different(const float *X, float *Y, int *flag, int which) {
    __shared__ float s[32];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    switch (which) {
    case 0: *flag = t; break;
    case 1: flag[0] = lane == 31; break;  // the last lane differs
    case 2: s[warp] = X[t] + lane; break;
    case 3: reinterpret_cast<unsigned char *>(flag)[1] = lane / 16; break;
    case 4: *reinterpret_cast<float4 *>(s) = make_float4(1, 2, 3, lane); break;
    case 5: *reinterpret_cast<double *>(s + warp / 2 * 2) = lane < 9 ? 2.5 : 3.5; break;
    case 6: __stcg(flag, lane); break;
    case 7: for (int j = 0; j < 4; ++j) s[j] = j + lane / 8; break;
    case 8: *flag = 1; if (lane == 3) *flag = 2; break;
    case 9: if (lane == 3) Y[t] = *flag; else *flag = 1; break;  // a load beside stores
    case 10: s[0] = 5; Y[t] = s[0]; if (lane == 3) s[0] = 6; break;
    case 11: s[0] = 5; Y[t] = s[0]; if (lane == 3) *reinterpret_cast<char *>(s) = 1; break;
    case 12: if (lane < 3) s[0] = 5; if (lane < 4) Y[t] = s[0]; break;  // lane 3 has stored nothing
    case 13: s[0] = 5; __syncthreads(); Y[t] = s[0]; if (lane == 3) s[0] = 5; break;
    }
}
