"""GATv2's gradient on a GPU against float64, for more edges than the reference on the CPU takes."""

import numpy as np
import pytest

from accelviz.datasets import rmat
from accelviz.devices import run_operation
from accelviz.emulator import emulate
from accelviz.strategies import OPERATIONS
from tests.compilers import needs_compiler
from tests.graphs import graph_of_degrees

SLOPE = 0.25
#: A warp a row and head, in float64: softmax, then the gradient of every operand. Written without
#: a look at the kernels that it checks.
SOURCE = r"""
__device__ double total(double x) {
    for (int apart = 16; apart > 0; apart /= 2) x += __shfl_xor_sync(0xffffffffu, x, apart);
    return x;
}

extern "C" __global__ void gatv2_float64(const long long *row_pointers, const int *columns,
                                         const float *R, const float *V, const float *a,
                                         const float *dY, double *dR, double *dV, double *da,
                                         int n_rows, int heads, int n_cols) {
    const int lane = threadIdx.x, h = blockIdx.y;
    double da_lane[MOST] = {};
    for (int i = blockIdx.x; i < n_rows; i += gridDim.x) {
        const long long begin = row_pointers[i], end = row_pointers[i + 1];
        const long long row = ((long long)i * heads + h) * n_cols;
        double largest = -1e300, sum = 0.0, y_dy = 0.0, dr[MOST] = {};
        for (int pass = 0; pass < 3; ++pass) {
            for (long long k = begin; k < end; ++k) {
                const long long source = ((long long)columns[k] * heads + h) * n_cols;
                double score = 0.0, g = 0.0;
                for (int c = lane; c < n_cols; c += 32) {
                    const double x = double(R[row + c]) + V[source + c];
                    score += a[h * n_cols + c] * (x > 0.0 ? x : SLOPE * x);
                    g += double(dY[row + c]) * V[source + c];
                }
                score = total(score);
                g = total(g);
                if (pass == 0) {
                    largest = fmax(largest, score);
                    continue;
                }
                const double power = exp(score - largest);
                if (pass == 1) {
                    sum += power;
                    y_dy += power * g;
                    continue;
                }
                const double alpha = power / sum, d_score = alpha * (g - y_dy / sum);
                for (int c = lane, m = 0; c < n_cols; c += 32, ++m) {
                    const double x = double(R[row + c]) + V[source + c];
                    const double by_x = d_score * a[h * n_cols + c] * (x > 0.0 ? 1.0 : SLOPE);
                    dr[m] += by_x;
                    da_lane[m] += d_score * (x > 0.0 ? x : SLOPE * x);
                    atomicAdd(&dV[source + c], alpha * dY[row + c] + by_x);
                }
            }
        }
        for (int c = lane, m = 0; c < n_cols; c += 32, ++m) dR[row + c] = dr[m];
    }
    for (int c = lane, m = 0; c < n_cols; c += 32, ++m) atomicAdd(&da[h * n_cols + c], da_lane[m]);
}
"""
CODE = f"#define SLOPE {SLOPE}\n#define MOST 2\n{SOURCE}"


def random_inputs(graph, heads, n_cols):
    rng = np.random.default_rng(7)
    shapes = {"R": graph.n_rows, "V": graph.shape[1], "dY": graph.n_rows}
    inputs = {
        name: rng.standard_normal((rows, heads, n_cols), dtype=np.float32)
        for name, rows in shapes.items()
    }
    return inputs | {"a": 0.3 * rng.standard_normal((heads, n_cols), dtype=np.float32)}


def gradients(graph, inputs):
    """Return our gradients on a GPU, and the largest error of each over its largest entry."""
    import cupy

    arrays = {name: cupy.asarray(array) for name, array in inputs.items()}
    dY = arrays.pop("dY")
    results = run_operation("gatv2", graph, {**arrays, "slope": SLOPE}, device="cuda")
    operands = {**arrays, **results, "dY": dY, "slope": SLOPE}
    ours = run_operation("gatv2_gradient", graph, operands, device="cuda")
    exact = {name: cupy.zeros(gradient.shape) for name, gradient in ours.items()}
    kernel = cupy.RawKernel(CODE, "gatv2_float64")
    heads, n_cols = dY.shape[1:]
    csr = cupy.asarray(graph.row_pointers), cupy.asarray(graph.column_indices)
    operands = (*csr, *(arrays[name] for name in ("R", "V", "a")), dY)
    sums = (exact[name] for name in ("dR", "dV", "da"))
    sizes = (np.int32(size) for size in (graph.n_rows, heads, n_cols))
    kernel((4096, heads), (32,), (*operands, *sums, *sizes))
    errors = {
        name: float(abs(ours[name] - exact[name]).max() / abs(exact[name]).max()) for name in ours
    }
    return ours, errors


@pytest.mark.gpu
def test_gradients_of_millions_of_edges_are_those_of_float64():
    """8 heads of 64 columns; hubs of 20,000 edges; the sum over all edges of `da` is long."""
    graph = rmat(4_000_000, n_nodes=1 << 18)
    assert graph.nnz > 3_000_000
    _, errors = gradients(graph, random_inputs(graph, 8, 64))
    assert errors["dR"] < 1e-5
    assert errors["dV"] < 1e-5
    assert errors["da"] < 1e-4


@needs_compiler
def test_the_float64_kernel_is_right():
    """The kernel that the GPU's gradients are held to equals the reference."""
    graph = graph_of_degrees([0, 1, 2, 7, 40], 50)
    inputs = random_inputs(graph, 2, 35)
    names = ("dR", "dV", "da")
    outputs = [np.zeros(inputs[name].shape) for name in ("R", "V", "a")]
    operands = [inputs[name] for name in ("R", "V", "a", "dY")]
    sizes = [np.int32(size) for size in (graph.n_rows, 2, 35)]
    matrix = graph.row_pointers, graph.column_indices
    emulate(CODE, (3, 2), 32, *matrix, *operands, *outputs, *sizes)
    doubles = {name: array.astype(float) for name, array in inputs.items()}
    scalars = {"slope": SLOPE, "rate": 0.0, "random": np.zeros(4, np.uint32)}
    forward = OPERATIONS["gatv2"].reference(graph.pattern, doubles | scalars)
    saved = doubles | scalars | {name: expected for name, (expected, _) in forward.items()}
    reference = OPERATIONS["gatv2_gradient"].reference(graph.pattern, saved)
    for name, output in zip(names, outputs, strict=True):
        np.testing.assert_allclose(output, reference[name][0], rtol=1e-9, atol=1e-9)
