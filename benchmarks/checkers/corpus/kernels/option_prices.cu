// Prices of call and put options by the closed form of Black and Scholes.
__global__ void option_prices(const float *price, const float *strike, const float *years, float *call,
                              float *put, float rate, float volatility, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float root = sqrtf(years[i]);
    const float d1 = (logf(price[i] / strike[i]) + (rate + volatility * volatility / 2) * years[i]) /
                     (volatility * root);
    const float d2 = d1 - volatility * root, later = strike[i] * expf(-rate * years[i]);
    call[i] = price[i] * normcdff(d1) - later * normcdff(d2);
    put[i] = later * normcdff(-d2) - price[i] * normcdff(-d1);
}
