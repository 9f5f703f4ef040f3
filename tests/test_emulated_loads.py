"""The emulator sees each load of the source, also where a compiler would move or drop it."""

import re

import numpy as np
import pytest

from accelviz import emulate
from accelviz.emulator import trace_kernel
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.kernels import source

pytestmark = needs_compiler

LOADS = source("loads")
#: Cases of `k` that are in bounds, and the mistake; cases that call a function, and its name.
IN_BOUNDS = dict.fromkeys((48, 49), "nothing has written") | {50: "a race|nothing has written"}
FUNCTIONS = {25: "at", 26: "element_of", 52: "inlined", 53: "silent", 54: "pair_of"}
FUNCTIONS |= {55: "called", 56: "called_silently"}


def run(kernel, which, warps, call=emulate, grid=2, **options):
    """Call a kernel of loads.cu on X = 0, 1, 2 ...; return Y."""
    n = grid * 32 * warps - 4
    X, Z, Y = np.arange(n, dtype=np.float32), np.arange(n, dtype=np.int32), np.zeros(n, np.float32)
    options |= {"kernel": kernel, "shared_bytes": 4 * (32 * warps - 1)}
    call(LOADS, grid, 32 * warps, X, Z, Y, n, which, **options)
    return Y


@pytest.mark.sample(4)
@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("which", range(57))
def test_a_load_that_nobody_needs_is_seen(which, warps):
    text = rf" {FUNCTIONS[which]}\(" if which in FUNCTIONS else rf"case {which}:"
    line = LOADS[: re.search(text, LOADS).start()].count("\n") + 1
    with pytest.raises(KernelError) as caught:
        run("k", which, warps)
    assert re.search(IN_BOUNDS.get(which, "out of bounds: .*reads"), str(caught.value))
    assert f"kernel.cu:{line}: " in str(caught.value)


@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("which", range(10))
def test_a_guarded_load_is_no_mistake(which, warps):
    Y = run("right_loads", which, warps)
    np.testing.assert_array_equal(Y, 2 * np.arange(len(Y)) + 3)


def test_a_trace_has_the_loads_of_a_gpu_s_compiler():
    code = """__global__ void sums(const int *starts, const float *X, float *Y) {
        float sum = 0, unused = X[threadIdx.x];
        for (int k = starts[threadIdx.x]; k < starts[threadIdx.x + 1]; ++k) sum += X[k];
        Y[threadIdx.x] = sum;
    }"""
    starts, X, Y = np.arange(33, dtype=np.int32) * 4, np.ones(128), np.zeros(32)
    arguments = starts, X.astype(np.float32), Y.astype(np.float32)
    loads = trace_kernel(code, 1, 32, *arguments)["array"].value_counts()
    assert (loads["starts"], loads["X"]) == (2 * 32, 4 * 32)
    every_load = trace_kernel(code, 1, 32, *arguments, to_the_mistake=True)["array"].value_counts()
    assert every_load["X"] == 5 * 32


@pytest.mark.parametrize("text", ["throw 1;", "try { Y[0] = 1; } catch (int) {}"])
def test_exceptions_are_refused(text):
    with pytest.raises(KernelError, match=r"kernel.cu:2: .*a kernel has no exceptions"):
        emulate(f"__global__ void k(float *Y) {{\n{text}\n}}", 1, 1, np.zeros(1, np.float32))


REPEATED = """
__global__ void k(float *X, float *Y, int writer, bool waits) {
    __shared__ float s[256];
    s[threadIdx.x] = X[threadIdx.x];
    __syncthreads();
    float v = 0.0f;
    for (int i = 0; i < 3; ++i) v += s[7] + s[threadIdx.x % 8];
    if (waits) __syncthreads();
    if (threadIdx.x == writer) s[7] = v;
    Y[threadIdx.x] = v;
}
__global__ void blocks(float *X, int writer, int reader) {
    if (blockIdx.x == writer) X[3] = 1.0f;
    __syncthreads();
    float v = 0.0f;
    if (blockIdx.x >= reader) for (int i = 0; i < 3; ++i) v += X[3];
    X[16 + 64 * blockIdx.x + threadIdx.x] = v;
}
"""


@pytest.mark.parametrize("threads", [32, 64, 256])
@pytest.mark.parametrize("writer", [0, 9, 31])
def test_a_store_after_repeated_loads_of_other_threads_is_a_race(threads, writer):
    arguments = (np.ones(threads, np.float32), np.zeros(threads, np.float32), writer + threads - 32)
    emulate(REPEATED, 1, threads, *arguments, True, kernel="k")
    assert arguments[1].tolist() == [6] * threads
    for seed in range(2):
        with pytest.raises(KernelError, match=r"a race: .* s\[7\]"):
            emulate(REPEATED, 1, threads, *arguments, False, kernel="k", seed=seed)


@pytest.mark.parametrize(("writer", "reader"), [(0, 0), (0, 1), (1, 0), (2, 0)])
def test_repeated_loads_of_another_block_s_store_are_a_race(writer, reader):
    with pytest.raises(KernelError, match=r"a race: .* X\[3\]"):
        emulate(REPEATED, 3, 64, np.zeros(16 + 3 * 64, np.float32), writer, reader, kernel="blocks")
    emulate(REPEATED, 3, 64, np.zeros(16 + 3 * 64, np.float32), 5, reader, kernel="blocks")


#: Ways to the elements of `h[4][8]`: whether they are an error.
ROWS = {
    "float *all = &h[0][0]; for (int i = 0; i < 32; ++i) all[i] = i;": False,
    "float *tile = &h[1][2]; for (int i = 0; i < 3; ++i) tile[8 * i] = i;": False,
    "*(float4 *)&h[3][4] = make_float4(0, 0, 0, 0);": False,
    "for (float *at = h[0], *end = &h[0][8]; at != end; ++at) *at = 0;": False,
    "h[0][8 + zero] = 0;": True,
    "float *at = &h[0][9 + zero]; *at = 0;": True,
    "float (*rows)[8] = h; rows[1][8 + zero] = 0;": True,
    "float (&row)[8] = h[1]; row[8 + zero] = 0;": True,
    "for (auto &row : h) for (int i = 0; i <= 8; ++i) row[i] = 0;": True,
}


@pytest.mark.parametrize("space", ["__shared__ float h[4][8];", "float h[4][8] = {};"])
@pytest.mark.parametrize("body", ROWS)
def test_an_index_beyond_its_row_is_found_and_a_walk_over_all_rows_is_right(body, space):
    code = f"__global__ void k(float *Y, int zero) {{ {space} {body} h[3][7] = *Y = 1; }}"
    if not ROWS[body]:
        assert emulate(code, 1, 1, np.zeros(1, np.float32), 0)["Y"] == [1]
        return
    with pytest.raises(KernelError, match=r"uses index \d of float\[8\]"):
        emulate(code, 1, 1, np.zeros(1, np.float32), 0)


@pytest.mark.parametrize("size", [1, 2, 4, 32])
@pytest.mark.parametrize(
    ("body", "mistake"), [("read(*p)", "reads x"), ("*p = made()", "writes x")]
)
def test_structures_that_a_call_takes_or_returns_are_seen(body, mistake, size):
    code = f"""
struct Part {{ float item[{size}]; }};
__device__ __noinline__ void read(Part part) {{ if (part.item[0] == 7.0f) __trap(); }}
__device__ __noinline__ Part made() {{ return Part{{}}; }}
__global__ void k(float *x, int at) {{
    Part *p = reinterpret_cast<Part *>(x + at);
    {body};
}}
"""
    emulate(code, 1, 1, np.zeros(size, np.float32), 0)
    with pytest.raises(KernelError, match=f"kernel.cu:7: out of bounds: .* {mistake}"):
        emulate(code, 1, 1, np.zeros(size, np.float32), size)
