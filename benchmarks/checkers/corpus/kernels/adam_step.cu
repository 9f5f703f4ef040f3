// One step of Adam with decoupled weight decay; four arrays are read and written in place.
__global__ void adam_step(float *weights, const float *gradients, float *m, float *v, float rate,
                          float decay, int step, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float g = gradients[i];
    const float first = m[i] = 0.9f * m[i] + 0.1f * g;
    const float second = v[i] = 0.99f * v[i] + 0.01f * g * g;
    const float m_hat = first / (1 - powf(0.9f, step)), v_hat = second / (1 - powf(0.99f, step));
    weights[i] -= rate * (m_hat / (sqrtf(v_hat) + 1e-6f) + decay * weights[i]);
}
