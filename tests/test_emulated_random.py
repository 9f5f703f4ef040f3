"""cuRAND's device functions in the emulator."""

import numpy as np
import pytest

from accelviz import emulate
from accelviz.errors import KernelError
from tests.compilers import needs_compiler

pytestmark = needs_compiler

CODE = """#include <curand_kernel.h>
template <typename State>
__global__ void k(unsigned *X, float *U, double *D, float *N, double *M, unsigned long long seed) {
    const int t = threadIdx.x;
    State state;
    curand_init(seed, t * 1234567, 7, &state);
    for (int i = 0; i < 3; ++i) X[3 * t + i] = curand(&state);
    skipahead(3, &state);
    U[t] = curand_uniform(&state);
    D[t] = curand_uniform_double(&state);
    N[2 * t] = curand_normal(&state);
    N[2 * t + 1] = curand_normal(&state);
    M[t] = curand_normal_double(&state);
}
"""
#: Numbers of cuRAND 10.3.10 on the host, by thread: `curand`, uniform, normal ones.
EXPECTED = {
    "curandState": (
        [[3200167422, 513045195, 1612640605], [3323813379, 1620311325, 3159800273]],
        [0.76123029, 0.088161118],
        [0.9350748159311266, 0.7009979032453588],
        [[0.15770561, 0.63755959], [0.26842806, -0.17534918]],
        [-0.8103234880622278, -0.1005756488257703],
    ),
    "curandStatePhilox4_32_10_t": (
        [[356739067, 1788112787, 4288038929], [1984333980, 1717059465, 1248477833]],
        [0.11240981, 0.95490539],
        [0.3976672398857772, 0.4026812741067261],
        [[-0.70260859, -1.5104132], [0.071493715, 0.37211749]],
        [-0.4609560741611268, 0.7564765414998976],
    ),
}


@pytest.mark.parametrize("state", EXPECTED)
def test_numbers_are_those_of_curand(state):
    X, U, D, N, M = expected = [np.array(numbers) for numbers in EXPECTED[state]]
    dtypes = (np.uint32, np.float32, np.float64, np.float32, np.float64)
    outputs = [np.zeros(one.shape, dtype) for one, dtype in zip(expected, dtypes, strict=True)]
    emulate(CODE, 1, 2, *outputs, (77 << 32) + 1234, kernel=f"k<{state}>")
    np.testing.assert_array_equal(outputs[0], X)
    for output, numbers in zip(outputs[1:], (U, D, N, M), strict=True):
        np.testing.assert_allclose(output, numbers, rtol=3e-7 if output.itemsize == 4 else 1e-14)


PAIRS = """#include <curand_kernel.h>
template <typename State>
__device__ float4 fourth(State *state) { return {}; }
template <>
__device__ float4 fourth(curandStatePhilox4_32_10_t *state) { return curand_normal4(state); }
template <typename State>
__global__ void k(float *N, double *M, int between) {
    State state;
    curand_init(1, 0, 0, &state);
    N[0] = curand_normal(&state);
    M[0] = curand_normal_double(&state);
    if (between) {
        N[2] = curand_normal2(&state).x + fourth(&state).x;
        M[2] = curand_normal2_double(&state).x;
    }
    N[1] = curand_normal(&state);
    M[1] = curand_normal_double(&state);
}
"""


@pytest.mark.parametrize("state", EXPECTED)
def test_pairs_do_not_change_the_second_number_of_a_pair(state):
    outputs = [(np.zeros(3, np.float32), np.zeros(3)) for _ in range(2)]
    for between, (N, M) in enumerate(outputs):
        emulate(PAIRS, 1, 1, N, M, between, kernel=f"k<{state}>")
    for expected, numbers in zip(*outputs, strict=True):
        np.testing.assert_array_equal(numbers[:2], expected[:2])
        assert numbers[2] not in (0, *numbers[:2])


@pytest.mark.parametrize(
    ("state", "size"),
    [("curandState", 48), ("curandStateXORWOW_t", 48), ("curandStatePhilox4_32_10_t", 64)],
)
def test_states_have_the_sizes_of_curand(state, size):
    code = """#include <curand_kernel.h>
    template <typename State>
    __global__ void k(State *states, float *Y) {
        State *state = states + threadIdx.x;
        if (sizeof(State) != SIZE) __trap();
        curand_init(1, threadIdx.x, 0, state);
        Y[threadIdx.x] = curand_normal(state) + curand_normal_double(state);
    }""".replace("SIZE", str(size))
    states, Y = np.zeros((32, size), np.uint8), np.zeros(32, np.float32)
    emulate(code, 1, 32, states, Y, kernel=f"k<{state}>", unwritten=("states", "Y"))
    assert len({*Y}) == 32
    with pytest.raises(KernelError, match="past its end"):
        emulate(code, 1, 32, states.reshape(-1)[:-16], Y, kernel=f"k<{state}>")


MISTAKES = """#include <curand_kernel.h>
typedef unsigned Word;
__global__ void k(Word *states, float *Y, int init) {
    curandState *state = reinterpret_cast<curandState *>(states) + (init == 2 ? 0 : threadIdx.x);
    if (init) curand_init(1, threadIdx.x, 0, state);
    Y[threadIdx.x] = curand_uniform(state);
}
"""


@pytest.mark.parametrize("threads", [32, 64])
def test_a_state_without_a_seed_and_a_shared_one_are_named(threads):
    def run(init):
        states, Y = np.zeros((threads, 12), np.uint32), np.zeros(threads, np.float32)
        emulate(MISTAKES, 1, threads, states, Y, init, unwritten=("states", "Y"))
        return Y

    assert len({*run(1)}) == threads
    with pytest.raises(KernelError, match=r"kernel.cu:6: .* states\[0\].*nothing has written"):
        run(0)
    with pytest.raises(KernelError, match=r"kernel.cu:[56]: a race"):
        run(2)
