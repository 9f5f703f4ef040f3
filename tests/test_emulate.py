"""`accelviz.emulate`: checks of arguments, and kernels that crash or never end."""

import os
import re
import resource
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import accelviz
from accelviz import emulate
from accelviz.devices import find_device
from accelviz.devices.emulator import EmulatorDevice
from accelviz.emulator import library, process
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError
from tests.compilers import needs_compiler
from tests.kernels import source

pytestmark = needs_compiler

F = np.float32

CRASHES = source("crashes")


def crash(which, i=0, **options):
    X, Y = np.arange(32, dtype=F), np.zeros(32, F)
    emulate(CRASHES, 1, options.pop("threads", 1), X, Y, which, i, **options)
    return Y


@pytest.mark.parametrize(
    ("which", "i", "message"),
    [
        (0, 64, r"out of bounds: thread 0 of block 0 uses index 4 of float\[4\]"),
        (1, 12, r"(writes outside of its local arrays|goes outside of an array)"),
        (1, 1 << 20, r"out of bounds: thread 0 of block 0 (writes|goes outside of an array)"),
        (2, 5, r"more local memory than the 512 KB"),
        (3, 10**6, r"more local memory than the 512 KB"),
        (4, 0, r"called exit\(\)"),
        (5, 0, r"called abort\(\)"),
        (6, 0, r"it ended the process that emulates it \(with exit status 0\)"),
        (7, 64, r"thread 0 of block 0 reads 4 bytes through a null pointer.*argument is None"),
        (10, 8, r"uses index 8 of float\[8\]"),
        (10, -1, r"uses index -1 of float\[8\]"),
        (11, 8, r"(reads table\[8\], 4 bytes past its end \(8 elements\)|outside of an array)"),
        (12, 3, r"writes table\[3\] \(byte 12\), which is __constant__"),
        (13, 8, r"uses index 8 of int\[8\]"),
        (14, 400, r"out of bounds: thread 0 of block 0 (reads|goes)"),
        (16, 132, r"out of bounds: .* reads X\[32\], 4 bytes past its end"),
        (17, 132, r"out of bounds: .* writes Y\[32\], 4 bytes past its end"),
        (21, 0, r"a race: .* counts\[0\]"),
        (22, 64, r"it crashed in thread 0"),
    ],
)
def test_what_goes_wrong_is_said_with_its_line(which, i, message):
    with pytest.raises(KernelError, match=message) as caught:
        crash(which, i, threads=2 if which == 21 else 1)
    if which != 6:
        assert re.match(r"k, kernel.cu:\d+: ", str(caught.value)), str(caught.value)


def test_shared_memory_in_functions_and_templates_is_shared():
    np.testing.assert_array_equal(crash(15, threads=32), 31 - np.arange(32) + np.arange(32) / 2)


TEXTBOOK = source("textbook")


def test_shared_variables_outside_of_functions_are_each_block_s_own():
    X, Y = np.arange(8, dtype=F), np.zeros(8, F)
    emulate(TEXTBOOK, 2, 4, X, Y, False, kernel="k")
    np.testing.assert_array_equal(Y, [4, 3, 2, 1, 5, 4, 3, 2])
    with pytest.raises(KernelError, match=r"a race: .* ours\[0\]"):  # and the device's are not
        emulate(TEXTBOOK, 2, 4, X, Y, True, kernel="k")


def test_parameters_get_their_names_and_not_those_of_their_sizes():
    with pytest.raises(ArgumentError, match=r"3 arguments: float \*X, float \*Y, bool all"):
        emulate(TEXTBOOK, 2, 4, np.zeros(8, F), kernel="k")
    with pytest.raises(ArgumentError, match=r"float \*argument 1, float \*argument 2"):
        emulate(TEXTBOOK, 1, 1, np.zeros(8, F), kernel="unnamed")


@pytest.mark.parametrize(
    ("dtype", "advice"),
    [
        ("c8", r"X\.view\(np\.float32\)"),
        ("c16", r"X\.astype\(np\.float32\)"),
        ("f4,f4", r"X\.view\(np\.float32\)"),
        ("f4,i4", "float32, such as one field"),
    ],
)
def test_parts_of_the_right_type_are_viewed_and_others_converted(dtype, advice):
    with pytest.raises(ArgumentError, match=advice):
        emulate(TEXTBOOK, 1, 4, np.zeros(8, dtype), np.zeros(8, F), False, kernel="k")


def test_a_static_variable_that_a_thread_would_have_to_fill_is_found():
    code = """__device__ int made(int x) { return 3 * x; }
    __global__ void k(const int *X, int *Y) { static int first = made(X[0]); Y[0] = first; }"""
    with pytest.raises(KernelError, match=r"reads first\[0\].* nothing has written"):
        emulate(code, 1, 1, np.ones(1, np.int32), np.ones(1, np.int32))


def test_dynamic_shared_memory_that_the_launch_forgets_is_said_to_be():
    with pytest.raises(KernelError, match=r"writes dynamic shared memory.* 0 bytes.*shared_bytes="):
        emulate(TEXTBOOK, 1, 4, np.zeros(8, F), kernel="forgetful")


def test_a_dim3_made_of_memory_is_read_as_memory_is():
    Y = np.zeros(4, np.uint32)
    emulate(TEXTBOOK, 1, 4, np.arange(12, dtype=np.uint32), Y, kernel="viewed")
    np.testing.assert_array_equal(Y, [2, 5, 8, 11])
    with pytest.raises(KernelError, match=r"out of bounds: thread 3 of block 0 reads X\[10\]"):
        emulate(TEXTBOOK, 1, 4, np.arange(10, dtype=np.uint32), Y, kernel="viewed")


def test_memcpy_writes_what_it_says():
    np.testing.assert_array_equal(crash(16, 64), [*range(16)] + [0] * 16)


@pytest.mark.parametrize("exponent", range(5, 42, 3))
def test_no_wrong_index_lands_in_another_array(exponent):
    for i in (1 << exponent, -(1 << exponent), (1 << exponent) + 12345):
        named = r"Y\[-?\d+\], \d+ bytes (past|before)" if exponent < 34 else ""
        with pytest.raises(KernelError, match=f"out of bounds: thread 0 of block 0 writes {named}"):
            crash(18, i)


def test_an_index_that_wraps_round_is_said_to():
    with pytest.raises(KernelError, match=r"X\[4294967295\].*the index is -1 in 32 bits"):
        crash(19, -1)


def test_an_endless_loop_ends_in_time():
    start = time.perf_counter()
    with pytest.raises(KernelError, match=r"kernel.cu:\d+: it did not end within 0.3 seconds"):
        crash(8, timeout=0.3)
    with pytest.raises(KernelError, match=r"waits, in a loop, for .* that no thread does\. What"):
        crash(9, timeout=0.3)
    assert time.perf_counter() - start < process.wall_seconds(0.3)


def test_a_kernel_that_waits_for_the_processor_is_not_endless(monkeypatch):
    waits = "__global__ void k(int *X) { usleep(500000); X[0] = 1; }"
    waits = f'extern "C" __device__ int usleep(unsigned);\n{waits}'
    X = np.zeros(1, np.int32)
    assert emulate(waits, 1, 1, X, timeout=0.2)["X"] == [1]
    monkeypatch.setattr(library, "wall_seconds", lambda seconds: seconds)
    with pytest.raises(KernelError, match="did not end within 0.2 seconds of processor time"):
        emulate(waits, 1, 1, X, timeout=0.2)


def test_ctrl_c_ends_an_endless_loop(request):
    crash(18)  # compiled
    main = threading.get_ident()
    # Shells start background processes with Ctrl-C ignored, and Python inherits this.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        crash(8)
    assert time.perf_counter() - start < 10
    assert crash(18)[0] == 0  # and all goes on


def test_two_threads_and_a_fork_emulate_at_once():
    graph = accelviz.load_graph("cora")
    X = accelviz.measure.features(graph.shape[1], 8)
    expected = accelviz.spmm(graph, X, device="emulator")
    is_right = lambda *_: np.array_equal(accelviz.spmm(graph, X, device="emulator"), expected)  # noqa: E731
    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(is_right, range(3))] == [True] * 3
    child = os.fork()
    if child == 0:
        try:
            os._exit(not is_right())
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert is_right()


TYPES = source("types")

PAIR = np.dtype([("value", "f8"), ("key", "i4")], align=True)


def arguments(**changed):
    arrays = {"Y": np.zeros(4, F), "X": np.ones(4, F), "n": np.ones(1, np.int32)}
    arrays |= {"wide": np.ones(1, np.int64), "vectors": np.arange(8, dtype=F)}
    arrays |= {"pairs": np.zeros(1, PAIR)}
    numbers = {"small": 200, "scale": 2, "exact": 0.5, "flag": True, "any": None}
    return arrays | numbers | changed


def test_arguments_become_what_the_kernel_takes():
    for values in (arguments(), arguments(scale=np.float64(2), small=np.int64(200), flag=1)):
        outputs = emulate(TYPES, 1, 1, *values.values(), kernel="k")
        assert outputs.keys() == {"Y", "pairs"}
        assert outputs["Y"] is values["Y"]
        assert values["Y"].tolist() == [2 + 1 + 1 + 200 + 1 + 0.5, 7, 7, 0]
        assert values["pairs"]["key"] == [3]
    reordered = dict(reversed(arguments().items()))
    assert emulate(TYPES, 1, 1, kernel="k", **reordered)["Y"][0] == 205.5


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"Y": np.zeros(4)}, r"Y: an array of float64 for the parameter `float \*Y`.*float32"),
        ({"X": np.zeros(4, np.int32)}, r"X: an array of int32.*const float \*X"),
        ({"n": np.zeros(1, np.int64)}, r"n: an array of int64 .*`const int \*n`.*of int32"),
        ({"n": np.zeros(1, np.uint32)}, r"n: an array of uint32"),
        ({"wide": np.zeros(1, np.int32)}, r"wide: an array of int32 .*long long \*wide"),
        ({"vectors": np.zeros(8)}, r"vectors: an array of float64 .*float4 \*vectors"),
        ({"pairs": np.zeros(1, "f4,f4,f4")}, r"pairs: .*elements of 16 bytes"),
        ({"Y": 3.0}, r"Y: got 3.0, a float.*an array of float32"),
        ({"scale": np.ones(2)}, r"scale: an array of shape \(2,\).*a number.*`float scale`"),
        ({"scale": 1e300}, r"scale: got 1e\+300"),
        ({"scale": "2"}, r"scale: got '2'"),
        ({"small": 256}, r"small: got 256 .*from 0 to 255"),
        ({"small": -1}, r"small: got -1"),
        ({"small": 1.5}, r"small: got 1.5 .*a whole number"),
        ({"flag": 2}, r"flag: got 2 .*True or False"),
    ],
)
def test_other_arguments_are_refused_before_anything_runs(changed, message):
    with pytest.raises(ArgumentError, match=message):
        emulate(TYPES, 1, 1, *arguments(**changed).values(), kernel="k")


def test_an_output_must_be_writable_and_memory_of_its_own():
    fixed = np.zeros(4, F)
    fixed.setflags(write=False)
    with pytest.raises(ArgumentError, match=r"Y: a read-only array.*a copy, or `const`"):
        emulate(TYPES, 1, 1, *arguments(Y=fixed).values(), kernel="k")
    emulate(TYPES, 1, 1, *arguments(X=fixed).values(), kernel="k")
    room = np.ones(8, F)
    with pytest.raises(ArgumentError, match=r"X: it overlaps Y"):
        emulate(TYPES, 1, 1, *arguments(Y=room[:4], X=room[1:5]).values(), kernel="k")
    emulate(TYPES, 1, 1, *arguments(Y=room[:4], X=room[:4]).values(), kernel="k")
    strided = np.zeros(8, F)
    emulate(TYPES, 1, 1, *arguments(Y=strided[::2]).values(), kernel="k")
    assert strided.tolist() == [205.5, 0, 7, 0, 7, 0, 0, 0]


def test_arguments_are_counted():
    values = arguments()
    with pytest.raises(ArgumentError, match=r"k: got 10 arguments, 'any' is missing.*float \*Y"):
        emulate(TYPES, 1, 1, *list(values.values())[:-1], kernel="k")
    with pytest.raises(ArgumentError, match=r"got 12 arguments"):
        emulate(TYPES, 1, 1, *values.values(), 1, kernel="k")
    with pytest.raises(ArgumentError, match=r"no parameter 'Z'"):
        emulate(TYPES, 1, 1, *values.values(), kernel="k", Z=1)
    with pytest.raises(
        ArgumentError, match=r"'X' is given by name and by position, as argument \d"
    ):
        emulate(TYPES, 1, 1, *values.values(), kernel="k", X=1)


def test_blocks_and_grids_have_three_dimensions():
    Y = np.zeros((6, 8, 10), np.int32)
    emulate(TYPES, (2, 4, 3), (5, 2, 2), Y, 10, kernel="grid")
    z, y, x = np.indices(Y.shape)
    np.testing.assert_array_equal(Y, 100 * z + 10 * y + x)
    with pytest.raises(KernelError, match=r"\(0, 1, 0\) of block \(0, 3, 2\) writes Y\[460\]"):
        emulate(TYPES, (2, 4, 3), (5, 2, 1), Y.ravel()[:460].copy(), 20, kernel="grid")


def test_templates_and_dynamic_shared_memory():
    for dtype, name in ((F, "float"), (np.int32, "int")):
        Y = np.zeros(64, dtype)
        emulate(TYPES, 1, 64, Y, 5, kernel=f"filled<{name}, 64>", shared_bytes=256)
        assert (Y == 5).all()
    with pytest.raises(KernelError, match=r"writes dynamic shared memory\[48\], 4 bytes past"):
        emulate(TYPES, 1, 64, Y, 5, kernel="filled<int, 64>", shared_bytes=192)
    with pytest.raises(ArgumentError, match=r"filled is a template.*'filled<32>'"):
        emulate(TYPES, 1, 64, Y, 5, kernel="filled")


def test_a_structure_moves_by_words():
    X, Y = np.arange(96, dtype=F), np.zeros(96, F)
    emulate(TYPES, 1, 32, Y, X, kernel="copied", unwritten=("Y",))
    np.testing.assert_array_equal(X, Y)


def test_the_kernel_is_chosen_and_constants_are_defined():
    Y = np.zeros(1, np.int32)
    with pytest.raises(ArgumentError, match=r"5 kernels.*kernel='k' or kernel='grid'"):
        emulate(TYPES, 1, 1, Y)
    emulate(TYPES, 1, 1, Y, kernel="printing", defines={"LENGTH": 12})
    assert Y == [12]


@pytest.mark.parametrize(
    ("grid", "block", "shared", "message"),
    [
        (1, 2048, 0, r"block: 2,048 threads in x.*1 to 1,024"),
        (1, (32, 33), 0, r"block: 1,056 threads.*at most 1,024"),
        (1, (1, 1, 65), 0, r"block: 65 threads in z"),
        (1, 0, 0, r"block: got 0.*at least 1"),
        (0, 1, 0, r"grid: got 0.*at least 1"),
        (-1, 1, 0, r"grid: got -1"),
        ((1, 70000), 1, 0, r"grid: 70,000 blocks in y"),
        ((1, 1, 1, 1), 1, 0, r"grid: got \(1, 1, 1, 1\).*up to three"),
        (1.5, 1, 0, r"grid: got 1.5"),
        (1, 1, 1 << 20, r"shared_bytes: 1,048,576 bytes"),
        (1, 1, -1, r"shared_bytes: got -1"),
    ],
)
def test_what_no_gpu_launches_is_refused(grid, block, shared, message):
    with pytest.raises(ArgumentError, match=message):
        emulate(TYPES, grid, block, np.zeros(4, np.int32), 1, kernel="grid", shared_bytes=shared)


def test_static_shared_memory_is_bounded():
    code = "__global__ void k(float *Y) { __shared__ float s[12289]; s[0] = 1; Y[0] = s[0]; }"
    with pytest.raises(KernelError, match=r"k: it has 49,1\d\d bytes of static shared memory"):
        emulate(code, 1, 1, np.zeros(1, F))


def test_files_and_what_they_include(tmp_path):
    (tmp_path / "three.cuh").write_text("#define THREE 3\n")
    file = tmp_path / "mine.cu"
    file.write_text('#include "three.cuh"\n__global__ void k(int *Y) { Y[threadIdx.x] = THREE; }\n')
    assert emulate(file, 1, 2, np.zeros(2, np.int32))["Y"].tolist() == [3, 3]
    (tmp_path / "three.cuh").write_text("#define THREE 4\n")
    assert emulate(file, 1, 2, np.zeros(2, np.int32))["Y"].tolist() == [4, 4]
    with pytest.raises(KernelError, match=r"k, mine.cu:2: out of bounds: thread 2"):
        emulate(file, 1, 3, np.zeros(2, np.int32))
    with pytest.raises(ArgumentError, match=r"source: .*cannot be read"):
        emulate(tmp_path / "none.cu", 1, 1)
    with pytest.raises(ArgumentError, match=r"source: .*the name of a file.*Path\('mine.cu'\)"):
        emulate("mine.cu", 1, 1)


def test_a_function_that_is_nowhere_defined_is_named():
    code = "__device__ float wanted(float x);\n__global__ void k(float *Y) { Y[0] = wanted(1); }"
    with pytest.raises(KernelError, match=r"k: it calls wanted, which is declared and defined now"):
        emulate(code, 1, 1, np.zeros(1, F))


def test_a_plan_s_kernel_has_to_take_what_the_plan_gives():
    plan = accelviz.plan("cora", "row_thread", n_cols=4)
    spec = plan.kernel
    code = re.sub(r"const float \*(__restrict__ )?values", r"const double *\1values", spec.source())
    assert code != spec.source()
    changed = replace(plan, calls=(replace(plan.calls[0], kernel=replace(spec, code=code)),))
    X = np.ones((2708, 4), F)
    with pytest.raises(ArgumentError, match=r"values: an array of float32.*const double \*"):
        find_device("emulator").prepare(changed).run({"X": X})


def test_a_launch_of_a_plan_has_a_time_limit():
    plan = accelviz.plan("cora", "accel_gcn", n_cols=64)
    X = np.ones((2708, 64), F)
    with pytest.raises(KernelError, match=r"did not end within 0.001 seconds"):
        EmulatorDevice(timeout=0.001).prepare(plan).run({"X": X})


def test_a_gpu_is_asked_for_by_its_name(monkeypatch):
    Y = np.zeros(4, np.int32)
    with pytest.raises(ArgumentError, match=r"device: got 'gpu'"):
        emulate(TYPES, 1, 1, Y, 1, kernel="grid", device="gpu")
    if find_device("cuda").unavailable_reason() is not None:
        with pytest.raises(ArgumentError, match=r"Y: an array of float32 .*int \*Y"):
            emulate(TYPES, 1, 1, Y.astype(F), 1, kernel="grid", device="cuda")
        with pytest.raises(DeviceUnavailable):
            emulate(TYPES, 1, 1, Y, 1, kernel="grid", device="cuda")


@pytest.mark.gpu
def test_a_gpu_runs_the_same():
    Y = np.zeros((2, 4, 8), np.int32)
    on_host = emulate(TYPES, (2, 2, 2), (4, 2), Y.copy(), 8, kernel="grid")["Y"]
    on_gpu = emulate(TYPES, (2, 2, 2), (4, 2), Y, 8, kernel="grid", device="cuda")["Y"]
    np.testing.assert_array_equal(on_host, on_gpu)
    assert Y.any()
    options = {"kernel": "filled<float, 64>", "shared_bytes": 256, "device": "cuda"}
    assert (emulate(TYPES, 1, 64, np.zeros(64, F), 5, **options)["Y"] == 5).all()


def test_without_a_compiler_a_gpu_takes_numpy_s_numbers_only(no_compiler):
    with pytest.raises(DeviceUnavailable, match="no C\\+\\+ compiler was found"):
        emulate(TYPES, 1, 1, np.zeros(4, np.int32), 1, kernel="grid")


def test_a_chosen_pointer_is_read_at_an_index_that_divides():
    # g++ 12 computed the index for the first array only.
    code = """__global__ void f(const float *a, const float *b, float *Y) {
        int n = threadIdx.x;
        Y[n] = (n < 16 ? a : b)[80 + n % 16];
    }"""
    a, Y = np.arange(96, dtype=F), np.zeros(32, F)
    emulate(code, 1, 32, a, a + 1000, Y)
    np.testing.assert_array_equal(Y, [*range(80, 96), *range(1080, 1096)])


def test_many_arguments_where_the_stack_has_no_limit():
    """Linux then maps a kernel's library and its shared memory at lower addresses."""
    limits = resource.getrlimit(resource.RLIMIT_STACK)
    if limits[1] != resource.RLIM_INFINITY:
        pytest.skip("the stack's size is limited for good")
    names = [f"a{i}" for i in range(40)]
    code = f"""__global__ void k({", ".join(f"float *{name}" for name in names)}) {{
        __shared__ float all[32];
        all[threadIdx.x] = {" + ".join(f"{name}[threadIdx.x]" for name in names[1:])};
        __syncthreads();
        a0[threadIdx.x] = all[31 - threadIdx.x];
    }}"""
    values = {name: np.full(32, i, F) for i, name in enumerate(names)}
    resource.setrlimit(resource.RLIMIT_STACK, (limits[1], limits[1]))
    try:
        emulate(code, 1, 32, **values)
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, limits)
    assert (values["a0"] == sum(range(40))).all()
