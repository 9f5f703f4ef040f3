// Operations in float64, as simple as can be: a thread for each element of the result.

typedef long long size;
#define ELEMENT                                           \
    size i = blockIdx.x * size(blockDim.x) + threadIdx.x; \
    if (i >= n) return;
__device__ double leaky(double x, double slope) {
    return x > 0 ? x : slope * x;
}

// Y = A X, and `terms` the sums of magnitudes.
extern "C" __global__ void spmm(size n, int d, const int *pointers, const int *columns,
                                const float *values, const float *X, double *Y, double *terms) {
    ELEMENT
    size row = i / d;
    int c = i % d;
    double sum = 0, magnitude = 0;
    for (int k = pointers[row]; k < pointers[row + 1]; ++k) {
        double term = double(values[k]) * X[columns[k] * size(d) + c];
        sum += term;
        magnitude += fabs(term);
    }
    Y[i] = sum;
    terms[i] = magnitude;
}

// Dot products of rows of U and V at the nonzeros, by heads.
extern "C" __global__ void dots(size n, int heads, int d, const int *rows, const int *columns,
                                const float *U, const float *V, double *Z, double *terms) {
    ELEMENT
    size k = i / heads;
    int h = i % heads;
    const float *u = U + (rows[k] * size(heads) + h) * d,
                *v = V + (columns[k] * size(heads) + h) * d;
    double sum = 0, magnitude = 0;
    for (int c = 0; c < d; ++c) {
        double term = double(u[c]) * v[c];
        sum += term;
        magnitude += fabs(term);
    }
    Z[i] = sum;
    if (terms) terms[i] = magnitude;
}

extern "C" __global__ void maximum(size n, int d, const int *pointers, const int *columns,
                                   const float *X, double *Y) {
    ELEMENT
    size row = i / d;
    int c = i % d;
    double best = 0;
    for (int k = pointers[row]; k < pointers[row + 1]; ++k) {
        double x = X[columns[k] * size(d) + c];
        if (k == pointers[row] || x > best) best = x;
    }
    Y[i] = best;
}

// dX by the transposed matrix: an element gets dY of the rows whose maximum it is.
extern "C" __global__ void maximum_gradient(size n, int d, const int *pointers, const int *rows,
                                            const float *X, const double *Y, const float *dY,
                                            double *dX) {
    ELEMENT
    size column = i / d;
    int c = i % d;
    double sum = 0;
    for (int k = pointers[column]; k < pointers[column + 1]; ++k) {
        size r = rows[k] * size(d) + c;
        if (X[i] == Y[r]) sum += dY[r];
    }
    dX[i] = sum;
}

extern "C" __global__ void gat_scores(size n, int heads, const int *rows, const int *columns,
                                      const float *receiver, const float *sender, double slope,
                                      double *scores) {
    ELEMENT
    size k = i / heads;
    int h = i % heads;
    double x = double(receiver[rows[k] * size(heads) + h]) + sender[columns[k] * size(heads) + h];
    scores[i] = leaky(x, slope);
}

extern "C" __global__ void gatv2_scores(size n, int heads, int d, const int *rows,
                                        const int *columns, const float *R, const float *V,
                                        const float *a, double slope, double *scores) {
    ELEMENT
    size k = i / heads;
    int h = i % heads;
    const float *r = R + (rows[k] * size(heads) + h) * d,
                *v = V + (columns[k] * size(heads) + h) * d;
    double sum = 0;
    for (int c = 0; c < d; ++c) sum += a[h * d + c] * leaky(double(r[c]) + v[c], slope);
    scores[i] = sum;
}

// Softmax over the nonzeros of a row, in place.
extern "C" __global__ void softmax(size n, int heads, const int *pointers, double *scores) {
    ELEMENT
    size row = i / heads;
    int h = i % heads;
    double best = -1e300, sum = 0;
    for (int k = pointers[row]; k < pointers[row + 1]; ++k)
        best = fmax(best, scores[k * size(heads) + h]);
    for (int k = pointers[row]; k < pointers[row + 1]; ++k)
        sum += exp(scores[k * size(heads) + h] - best);
    for (int k = pointers[row]; k < pointers[row + 1]; ++k) {
        double &s = scores[k * size(heads) + h];
        s = exp(s - best) / sum;
    }
}

// Y[row] = the sum of weights[position] V[other] over a row's entries; without `order` position =
// k.
extern "C" __global__ void weighted(size n, int heads, int d, const int *pointers,
                                    const int *others, const int *order, const double *weights,
                                    const float *V, double *Y) {
    ELEMENT
    int c = i % d, h = i / d % heads;
    size row = i / (size(heads) * d);
    double sum = 0;
    for (int k = pointers[row]; k < pointers[row + 1]; ++k) {
        size e = order ? order[k] : k;
        sum += weights[e * heads + h] * V[(others[k] * size(heads) + h) * d + c];
    }
    Y[i] = sum;
}

// d_scores = alpha (d_alpha - the row's sum of alpha d_alpha), in place of d_alpha.
extern "C" __global__ void softmax_gradient(size n, int heads, const int *pointers,
                                            const double *alpha, double *d_alpha) {
    ELEMENT
    size row = i / heads;
    int h = i % heads;
    double sum = 0;
    for (int k = pointers[row]; k < pointers[row + 1]; ++k) {
        size e = k * size(heads) + h;
        sum += alpha[e] * d_alpha[e];
    }
    for (int k = pointers[row]; k < pointers[row + 1]; ++k) {
        size e = k * size(heads) + h;
        d_alpha[e] = alpha[e] * (d_alpha[e] - sum);
    }
}

// Sums over a row's entries of GAT's d_scores times LeakyReLU's derivative.
extern "C" __global__ void gat_sums(size n, int heads, const int *pointers, const int *others,
                                    const int *order, const double *d_scores, const float *features,
                                    const float *other, double slope, double *sums) {
    ELEMENT
    size row = i / heads;
    int h = i % heads;
    double sum = 0;
    for (int k = pointers[row]; k < pointers[row + 1]; ++k) {
        size e = order ? order[k] : k;
        double x = double(features[i]) + other[others[k] * size(heads) + h];
        sum += d_scores[e * heads + h] * (x > 0 ? 1.0 : slope);
    }
    sums[i] = sum;
}

// The same for GATv2, per column; `by_weight`, if given, gets the rows' sums of d_scores LeakyReLU.
extern "C" __global__ void gatv2_sums(size n, int heads, int d, const int *pointers,
                                      const int *others, const int *order, const double *d_scores,
                                      const float *features, const float *other, const float *a,
                                      double slope, double *sums, double *by_weight) {
    ELEMENT
    int c = i % d, h = i / d % heads;
    size row = i / (size(heads) * d);
    double sum = 0, weighted_sum = 0;
    for (int k = pointers[row]; k < pointers[row + 1]; ++k) {
        size e = order ? order[k] : k;
        double x = double(features[i]) + other[(others[k] * size(heads) + h) * d + c];
        double s = d_scores[e * heads + h];
        sum += s * a[h * d + c] * (x > 0 ? 1.0 : slope);
        weighted_sum += s * leaky(x, slope);
    }
    sums[i] += sum;
    if (by_weight) by_weight[i] = weighted_sum;
}
