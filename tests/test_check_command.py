"""The command `accelviz check`, run as a user runs it."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.compilers import needs_compiler

pytestmark = needs_compiler

ADD = """
__global__ void add(const float *X, const float *Y, float *sums, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sums[i] = X[i] + Y[i];
}
"""
REVERSED = """
__global__ void reversed(const float *X, float *Y) {
    __shared__ float tile[64];
    tile[threadIdx.x] = X[threadIdx.x];
    Y[threadIdx.x] = tile[63 - threadIdx.x];
}
"""
TWO = """#include <cuda_fp16.h>
#include "offset.cuh"
__constant__ int step;
__global__ void a(int *X) { X[offset(threadIdx.x)] = WIDTH * step; }
template <int N> __global__ void b(int3 v, half *Y, bool on, void *p) {
    extern __shared__ int s[];
    s[threadIdx.x] = v.y;
    if (on && !p) Y[threadIdx.x] = s[threadIdx.x] + N;
}
"""
ENDLESS = "__global__ void k(int *X) { volatile int go = 1; while (go) X[0] += 1; }"
GUARDED = """__global__ void k(int *X) {
#if __CUDA_ARCH__ < 700
    X[0] = 1;
#endif
    printf("thread %d\\n", threadIdx.x);
}
"""
WITH_HEADER = '#include "wrong.cuh"\n__global__ void k(int *X) { X[0] = wrong(); }'
BITS = """#include <cuda_bf16.hpp>
__global__ void k(const __nv_bfloat16 *X, float *Y, int *p = NULL) {
    Y[threadIdx.x] = float(X[threadIdx.x]);
}
"""
OVERLOADS = "__global__ void k(int *X) {}\n__global__ void k(float *X) {}\n"
SOURCES = {"header": WITH_HEADER, "lost": WITH_HEADER.replace("wrong.", "lost."), "bits": BITS}
SOURCES |= {
    "overloads": OVERLOADS,
    "add": ADD,
    "reversed": REVERSED,
    "two": TWO,
    "endless": ENDLESS,
    "guarded": GUARDED,
}
ADDED = ("ones:float32:100", "Y=range:float32:100", "sums=out:float32:100")
TILE = ("reversed.cu", "--grid", "1", "--block", "64", "random:float32:64", "out:float32:64")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    for name, code in SOURCES.items():
        (folder / f"{name}.cu").write_text(code)
    (folder / "offset.cuh").write_text("__device__ int offset(int i) { return i; }\n")
    (folder / "wrong.cuh").write_text("\n__device__ int wrong() { return y; }\n")
    (folder / "broken.cu").write_text("__global__ void k(int *X) {\n    X[0] = 1\n}\n")
    (folder / "latin.cu").write_bytes("__global__ void k() {} // größer".encode("latin-1"))
    np.save(folder / "big_endian.npy", np.arange(100, dtype=">f4"))
    np.save(folder / "Y.npy", np.ones(1000, np.float32))
    np.save(folder / "doubles.npy", np.arange(100.0))
    (folder / "no.npy").write_text("no array")
    return folder


def started(folder, *words, **options):
    command = [sys.executable, "-m", "accelviz", "check", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    environment = {"cwd": folder, "encoding": "utf-8"}
    return subprocess.Popen(command, **environment, **pipes)


def check(folder, *words, source=None):
    process = started(folder, *words, stdin=subprocess.PIPE)
    output, errors = process.communicate(source)
    assert "Traceback" not in errors, errors
    return process.returncode, output, errors


def test_a_right_kernel_has_status_0_and_its_outputs_can_be_saved(folder):
    words = ("--grid", 2, *ADDED, "--block", "64,1", "n=100", "--save", "sums=sums.npy")
    status, output, errors = check(folder, "add.cu", *words)
    assert (status, errors) == (0, "")
    assert output == "add.cu: no mistake: add, 2 blocks of 64 threads\n"
    np.testing.assert_array_equal(np.load(folder / "sums.npy"), np.arange(100, dtype="f4") + 1)


def test_a_mistake_has_status_1_its_line_and_advice(folder):
    status, output, errors = check(folder, *TILE)
    assert (status, errors) == (1, "")
    message, code, advice = output.splitlines()
    assert message.startswith("reversed.cu:5: error: reversed: thread 0 of block 0 reads tile[63]")
    assert message.endswith("[unwritten]")
    assert code == "    Y[threadIdx.x] = tile[63 - threadIdx.x];"
    assert advice.startswith("What to do: write it first, and put __syncthreads()")


def test_threads_that_store_the_same_value_are_a_note_with_status_0(folder):
    code = "__global__ void k(int *X) {\n    X[0] = 1;\n}\n"
    words = ("-", "--grid", 1, "--block", 64, "out:int32:1")
    status, output, errors = check(folder, *words, source=code)
    note = "kernel.cu:2: note: k: several threads store the same value in X, and one of them wins"
    assert (status, errors) == (0, "")
    assert output.startswith(f"{note}. [same-value]\n    X[0] = 1;\nWhat to do: ")
    assert output.endswith("-: no mistake: k, 1 block of 64 threads\n")
    status, output, _ = check(folder, *words, "--format", "github", source=code)
    assert (status, output[:35]) == (0, "::notice file=kernel.cu,line=2,titl")
    status, output, _ = check(folder, *words, "--format", "sarif", source=code)
    (result,) = json.loads(output)["runs"][0]["results"]
    assert (status, result["level"], result["ruleId"]) == (0, "note", "same-value")


@pytest.mark.sample(2)
@pytest.mark.parametrize("blocks", [1, 200])
def test_elements_of_an_output_that_no_thread_writes_are_a_note(folder, blocks):
    code = """__global__ void scale4(const float *X, float *Y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; gridDim.x > 1 && k < 3000; ++k) assert(X[k] > 0);
    if (i < n / 4) reinterpret_cast<float4 *>(Y)[i] = reinterpret_cast<const float4 *>(X)[i];
}"""
    n = 256 * blocks - 53  # 200 blocks run in processes of their own
    arrays = (f"ones:float32:{n}", f"out:float32:{n}", n)
    words = ("-", "--grid", blocks, "--block", 64, *arrays)
    status, output, errors = check(folder, *words, source=code)
    note = f"3 of {n:,} elements of Y were never written (first: {n - 3})"
    assert (status, errors) == (0, "")
    assert output.startswith(f"kernel.cu:1: note: scale4: {note}. [never-written]\n    __global__")
    if blocks == 1:
        status, output, _ = check(folder, *words, "--format", "github", source=code)
        assert (status, output[:35]) == (0, "::notice file=kernel.cu,line=1,titl")
        status, output, _ = check(folder, *words, "--format", "sarif", source=code)
        (result,) = json.loads(output)["runs"][0]["results"]
        assert (status, result["level"], result["ruleId"]) == (0, "note", "never-written")


def test_mistakes_of_published_kernels_are_found_as_the_page_says(folder):
    page = (Path(__file__).parents[1] / "docs" / "emulator.md").read_text("utf-8")
    gallery = page.partition("## Mistakes in published kernels")[2].partition("\n## ")[0]
    pattern = r"```cuda\n(.*?)```\n\n    \$ accelviz check (\S+) (.*?)\n    (.*?)\n"
    mistakes = re.findall(pattern, gallery, re.S)
    assert len(mistakes) == gallery.count("```cuda") == 3
    for code, file, words, message in mistakes:
        (folder / file).write_text(code)
        status, output, errors = check(folder, file, *words.split())
        assert (status, errors) == (1, "")
        assert output.splitlines()[0] == message


def test_standard_input(folder):
    words = ("-", "--grid", 2, "--block", 64, *ADDED)
    assert check(folder, *words, "n=100", source=ADD)[0] == 0
    status, output, _ = check(folder, *words, "n=101", source=ADD)
    assert status == 1
    assert output.startswith("kernel.cu:4: error: add: out of bounds: thread 36 of block 1")
    assert output.splitlines()[1] == "    if (i < n) sums[i] = X[i] + Y[i];"
    status, _, errors = check(folder, *words, source="int main() {}")
    assert (status, "no __global__ function" in errors) == (2, True)


@pytest.mark.long
def test_kernels_among_several_macros_symbols_headers_and_all_kinds_of_arguments(folder):
    save = ("--save", "X=x.npy")
    words = ("two.cu", "--grid", 1, "--block", 32, "-D", "WIDTH=4")
    for value in ("ones:int32:1", "1"):
        call = (*words, "--symbol", f"step={value}", "--kernel", "a", "X=out:int32:32", *save)
        status, output, _ = check(folder, *call)
        assert (status, output) == (0, "two.cu: no mistake: a, 1 block of 32 threads\n")
        assert np.load(folder / "x.npy").tolist() == [4] * 32
    status, _, errors = check(
        folder, *words, "--symbol", "step=0.5", "--kernel", "a", "X=out:int32:32"
    )
    assert (status, "got 0.5 for the parameter `int step`" in errors) == (2, True)
    arguments = ("1,2,3", "out:float16:32", "true", "null", "--save", "Y=y.npy")
    instance = ("--kernel", "b<5>", "--shared", 128)
    assert check(folder, *words, *instance, *arguments)[0] == 0
    assert np.load(folder / "y.npy").tolist() == [7] * 32
    status, output, _ = check(folder, *words, "--kernel", "b<5>", *arguments)
    assert status == 1
    assert "What to do: say how many bytes `extern __shared__` gets: --shared" in output
    status, output, _ = check(folder, *words, "--kernel", "a", "X=out:int32:32")
    assert status == 1
    assert "--symbol step=ARRAY" in output


def test_arrays_of_files_are_of_the_machine_s_byte_order(folder):
    words = ("add.cu", "--grid", 2, "--block", 64, *ADDED[1:], "n=100")
    status, *_ = check(folder, *words, "big_endian.npy", "--save", "sums=sums.npy")
    assert status == 0
    np.testing.assert_array_equal(np.load(folder / "sums.npy"), np.arange(100, dtype="f4") * 2)


def test_arrays_of_bfloat16_are_rounded_to_even(folder):
    words = ("bits.cu", "--grid", 1, "--block", 300, "range:bfloat16:300", "out:float32:300")
    status, _, errors = check(folder, *words, "--save", "Y=rounded.npy")
    assert (status, errors) == (0, "")
    numbers = np.load(folder / "rounded.npy")
    np.testing.assert_array_equal(numbers[:257], np.arange(257))
    assert numbers[257:264].tolist() == [256, 258, 260, 260, 260, 262, 264]


def test_random_arrays_depend_on_the_seed_only(folder):
    words = ("add.cu", "--grid", 1, "--block", 64, "random:float32:64", "zeros:float32:64")
    saved = []
    for seed in (3, 3, 4):
        options = ("out:float32:64", 64, "--seed", seed, "--save", "sums=sums.npy")
        assert check(folder, *words, *options)[0] == 0
        saved.append(np.load(folder / "sums.npy"))
    assert np.array_equal(saved[0], saved[1])
    assert not np.array_equal(saved[0], saved[2])
    assert -4 < saved[0].min() < 0 < saved[0].max() < 4


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("add.cu", 2, "required: --grid, --block"),
        ("add.cu --grid 1,1,1,1 --block 1", 2, "--grid: got '1,1,1,1', expected X, X,Y or X,Y,Z"),
        ("add.cu --grid 1 --block 0", 2, "--block: got 0. Expected: an integer of at least 1"),
        ("add.cu --grid 1 --block 1 --seed -1", 2, "--seed: got -1"),
        ("add.cu --grid 1 --block 1 --timeout nan", 2, "--timeout: got nan"),
        ("add.cu --grid 1 --block 1 --arch sm_1", 2, "--arch: "),
        ("add.cu --grid 1 --block 1 --kernel b", 2, "--kernel: the source has no kernel 'b'"),
        ("two.cu --grid 1 --block 1", 2, "--kernel 'a' or --kernel 'b'"),
        ("missing.cu --grid 1 --block 1", 2, "missing.cu cannot be read (No such file"),
        ("latin.cu --grid 1 --block 1", 2, "latin.cu is not UTF-8"),
        ("add.cu --grid 1 --block 1 X=no.npy", 2, "X: no.npy cannot be read"),
        ("add.cu --grid 1 --block 1 X=missing.npy", 2, "missing.npy cannot be read (No such file"),
        ("add.cu --grid 1 --block 1 X=1 X=1", 2, "X: it is given twice"),
        ("add.cu --grid 1 --block 1 X=zeros:float33:4", 2, "no dtype 'float33'"),
        ("add.cu --grid 1 --block 1 X=zeros:float32:4y4", 2, "no shape '4y4'"),
        ("add.cu --grid 1 --block 1 X=zeros:float32", 2, "no shape ''"),
        ("add.cu --grid 1 --block 1 X=nils:float32:4", 2, "one of zeros, ones, random, range, out"),
        ("add.cu --grid 1 --block 1 X=zeros:float32:4:4", 2, "or random:DTYPE:SHAPE:LIMIT"),
        ("add.cu --grid 1 --block 1 X=random:int8:4:129", 2, "whole number, 1 to 128"),
        ("add.cu --grid 1 --block 1 X=zeros:float64:999999999999", 2, "of this machine's memory"),
        ("add.cu --grid 1 --block 1 X=four", 2, "X: got 'four'. Expected: a number, true"),
        ("add.cu --grid 1 --block 1 1 2", 2, "add: got 2 arguments, 'sums' is missing"),
        ("add.cu --grid 1 --block 1 doubles.npy {} n=1", 2, "X: an array of float64"),
        ("add.cu --grid 1 --block 1 out:float32:1 {} n=1", 2, "out: X is no output of add"),
        ("add.cu --grid 1 --block 1 ones:float32:1 {} n=1 --save Y=a.npy", 2, "Y is no output"),
        ("add.cu --grid 1 --block 1 ones:float32:1 {} n=1 --save sums=a.txt", 2, "got 'a.txt'"),
        ("add.cu --grid 1 --block 1 ones:float32:1 {} n=1 --save sums=no/a.npy", 2, "existing"),
        ("add.cu --grid 1 --block 1 X=1 1 1 1", 2, "'X' is given by name and by position"),
        ("add.cu --grid -1 --block 1", 2, "--grid: got -1. Expected: an integer of at least 1"),
        ("bits.cu --grid 1 --block 1 ones:float16:1 zeros:float32:1", 2, "FILL:bfloat16:SHAPE"),
        ("header.cu --grid 1 --block 1 X=out:int32:1", 1, "wrong.cuh:2: error: it does not comp"),
        ("lost.cu --grid 1 --block 1 X=out:int32:1", 1, "or give its folder by --include."),
        ("overloads.cu --grid 1 --block 1 X=out:int32:1", 1, "several kernels of the name 'k'"),
        ("broken.cu --grid 1 --block 1 X=out:int32:1", 1, r"broken.cu:2: error: it does not comp"),
        (
            "endless.cu --grid 1 --block 1 zeros:int32:1 --timeout 0.2",
            1,
            "or give more time by --t",
        ),
    ],
)
def test_wrong_usage_has_status_2_and_what_does_not_run_status_1(folder, words, status, message):
    result = check(folder, *words.format(" ".join(ADDED[1:])).split())
    assert result[0] == status, result
    assert message in result[2 if status == 2 else 1], result
    assert (result[1] == "") == (status == 2)


#: Required members of SARIF 2.1.0's objects that the command writes, by path.
SARIF = {
    "": {"version", "runs"},
    "runs": {"tool"},
    "runs.tool": {"driver"},
    "runs.tool.driver": {"name"},
    "runs.tool.driver.rules": {"id"},
    "runs.invocations": {"executionSuccessful"},
    "runs.invocations.toolExecutionNotifications": {"message"},
    "runs.results": {"message"},
}


def objects(value, path=""):
    if isinstance(value, dict):
        yield path, value
        for name, member in value.items():
            yield from objects(member, f"{path}.{name}".lstrip("."))
    for member in value if isinstance(value, list) else ():
        yield from objects(member, path)


def test_sarif(folder):
    for words, status in (
        (TILE, 1),
        (("guarded.cu", "--grid", 1, "--block", 1, "zeros:int32:1"), 0),
    ):
        result = check(folder, *words, "--format", "sarif")
        log = json.loads(result[1])
        assert (result[0], log["version"]) == (status, "2.1.0")
        for path, members in objects(log):
            assert members.keys() >= SARIF.get(path, set()), path
        (run,) = log["runs"]
        assert len(run["results"]) == status
        if status:
            (mistake,) = run["results"]
            (location,) = mistake["locations"]
            physical = location["physicalLocation"]
            assert mistake["ruleId"] == run["tool"]["driver"]["rules"][0]["id"] == "unwritten"
            assert "reads tile[63]" in mistake["message"]["text"]
            assert physical["artifactLocation"] == {"uri": "reversed.cu"}
            assert physical["region"] == {"startLine": 5}
        else:
            (note,) = run["invocations"][0]["toolExecutionNotifications"]
            assert note["message"]["text"].startswith("not compiled for sm_90: line 3")
            assert "thread 0" in result[2]  # the kernel's output is no part of the log


def test_annotations_of_github(folder):
    status, output, _ = check(folder, *TILE, "--format", "github")
    assert status == 1
    start = "::error file=reversed.cu,line=5,title=accelviz%3A unwritten::reversed: thread 0 of"
    assert output.startswith(start)
    assert output.count("\n") == 1
    words = ("guarded.cu", "--grid", 1, "--block", 1, "zeros:int32:1", "--format", "github")
    status, output, _ = check(folder, *words)
    assert status == 0
    assert re.fullmatch(r"::warning file=guarded.cu::not compiled for sm_90: .*\n", output)


def test_text_has_the_output_of_the_kernel_and_the_lines_that_are_left_out(folder):
    _, output, _ = check(folder, "guarded.cu", "--grid", 1, "--block", 1, "zeros:int32:1")
    printed, note, result = output.splitlines()
    assert printed == "thread 0"
    assert note.startswith("guarded.cu: note: not compiled for sm_90: line 3")
    assert note.endswith("--arch sets the target")
    assert result == "guarded.cu: no mistake: k, 1 block of 1 thread"


def test_ctrl_c_and_a_closed_pipe_end_without_a_traceback(folder):
    words = ("endless.cu", "--grid", 1, "--block", 1, "zeros:int32:1", "--timeout", 50)
    check(folder, *words, "--timeout", 0.2)  # compile
    process = started(folder, *words)
    while not psutil.Process(process.pid).children():  # the process that runs the kernel
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=40)
    assert (process.returncode, output, errors) == (130, "", "accelviz: interrupted\n")
    process = started(folder, *TILE)
    process.stdout.close()
    with process.stderr as errors:
        assert errors.read() == ""
    assert process.wait() == 1


def test_the_help_has_an_example_that_works(folder):
    status, output, _ = check(folder, "--help")
    assert status == 0
    assert re.search(r"--kernel NAME\s+__global__ function", output)
    assert re.search(r"--cluster \S+\s+number of blocks of a cluster", output)
    (example,) = re.findall(r"^  accelviz check (add.cu .*)$", output, re.M)
    assert check(folder, *example.split())[0] == 0


MACROS = """
#if !defined(FAST) || defined(SLOW)
#error wrong macros
#endif
#define TEXT(x) #x
#define VALUE(x) TEXT(x)
__global__ void k(int *lengths) {
    lengths[0] = sizeof(VALUE(FAST)) - 1;
    lengths[1] = sizeof(VALUE(WAIT)) - 1;
    lengths[2] = TWICE(FAST + 1);
}
"""


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        (["-D", "FAST", "-D", "WAIT=", "-D", "TWICE(x)=2*(x)"], [1, 0, 4]),
        (["-DFAST", "-DWAIT=", "-DTWICE(x)=2*(x)"], [1, 0, 4]),
        (["-DFAST=12,WAIT", "--define-macro", "TWICE(x)=(x)"], [2, 1, 13]),
        (["-D", "FAST,SLOW,WAIT=", "-U", "SLOW", "-include", "twice.h"], [1, 0, 4]),
        (["-DSLOW", "-USLOW", "-DFAST", "-I", "more", "-include", "both.h"], [1, 4, 6]),
        (["-DFAST", "-D", "=1"], "-D: got '=1', expected NAME"),
        (["-DFAST", "-D", "1A"], "-D: got '1A', expected NAME"),
        (["-U", "A=B,"], "-U: got 'A=B,', expected NAME"),
        (["-DFAST", "-include", "none.h"], "-include: there is no file none.h"),
        (["-I", "nowhere"], "--include: .*nowhere does not exist"),
    ],
)
def test_macros_and_headers_are_given_as_to_nvidias_compiler(options, lengths, tmp_path):
    (tmp_path / "k.cu").write_text(MACROS)
    (tmp_path / "twice.h").write_text("#define TWICE(x) (2 * (x))\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "both.h").write_text('#include "../three.h"\n#define WAIT 1234\n')
    (tmp_path / "three.h").write_text("#define TWICE(x) (3 * (x))\n")
    words = ("k.cu", "--grid", 1, "--block", 1, "out:int32:3", "--save", "lengths=o.npy")
    status, output, errors = check(tmp_path, *words, *options)
    if isinstance(lengths, str):
        assert status == 2, output
        assert re.search(lengths, errors), errors
        return
    assert status == 0, output + errors
    assert np.load(tmp_path / "o.npy").tolist() == lengths


STRUCTURES = """
template <typename T> struct Weights { short first; T second; };
namespace inner {
template <class T, int N = 1>
struct Options {
    const T *X;  // input, "int no;"
    T *Y = nullptr;
    int n, lengths[N];
    float4 scale;
    Weights<double> weights;
    __host__ __device__ int size() const { return n; }
};
}
typedef struct { int width; unsigned char color; int *counts; } Matrix;
__global__ void k(inner::Options<float, 2> o, Matrix m) {
    const int i = threadIdx.x;
    if (i < o.size()) o.Y[i] = o.X[i] * o.scale.y + o.lengths[1] + o.weights.second + m.width;
    if (i < m.color) m.counts[i] = 1;
}
"""
OPTIONS = (
    "o={X=ones:float32:32,Y=out:float32:32,n=32,lengths={1,2},scale={1,2,3,4},weights={5,6.5}}"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([OPTIONS, "m={10,32,zeros:int32:32}"], ""),
        (
            [
                OPTIONS.replace("={X=", "={.X=").replace(",n=", ", .n = "),
                "m={10, 32, zeros:int32:32}",
            ],
            "",
        ),
        (
            [OPTIONS, "m={10,33,zeros:int32:32}"],
            r"k.cu:18: error: .* writes m.counts\[32\], 4 bytes",
        ),
        (
            [OPTIONS.replace("n=32", "n=33"), "m={10,0,null}"],
            r"k.cu:17: error: .* o.X\[32\], 4 bytes",
        ),
        ([OPTIONS, "m={10,32,null}"], "k.cu:18: error: .*null pointer"),
        ([OPTIONS.replace("Y=out:", "X=out:"), "m={10,32,null}"], "o: got .*each member once"),
        ([OPTIONS.replace("n=32,", ""), "m={10,32,null}"], "o: no value for the member 'n'"),
        ([OPTIONS.replace("n=32", "n=0.5"), "m={10,32,null}"], "o.n: got 0.5"),
        ([OPTIONS, "m={10,300,null}"], "m.color: got 300"),
        ([OPTIONS, "m={10,32}"], "m: got 2 values for a structure of 3 members"),
        ([OPTIONS, "m={10,32,5}"], "m.counts: got 5.*an array"),
        ([OPTIONS.replace("X=ones", "X=out"), "m={10,32,null}"], "o.X is no output"),
    ],
)
def test_structures_are_given_by_their_members(arguments, message, tmp_path):
    (tmp_path / "k.cu").write_text(STRUCTURES)
    words = ("k.cu", "--grid", 1, "--block", 33, *arguments, "--save", "o.Y=Y.npy")
    status, output, errors = check(tmp_path, *words)
    assert re.search(message, output + errors), output + errors
    assert status == (1 if "error" in message else 2 if message else 0)
    if not message:
        assert np.load(tmp_path / "Y.npy").tolist() == [20.5] * 32


def test_an_output_in_a_structure_may_not_be_read_before_it_is_written(tmp_path):
    (tmp_path / "k.cu").write_text(STRUCTURES.replace("o.Y[i] = o.X", "o.Y[i] += o.X"))
    words = ("k.cu", "--grid", 1, "--block", 32, OPTIONS, "m={10,0,null}")
    status, output, _ = check(tmp_path, *words)
    assert status == 1
    assert "reads o.Y[0] (byte 0), which nothing has written" in output


def test_structures_come_from_files_of_structured_arrays(tmp_path):
    dtype = np.dtype([("n", "i4"), ("scale", "f8"), ("steps", "i2", 3)], align=True)
    code = "struct S { int n; double scale; short steps[3]; };\n"
    code += "__global__ void k(S one, const S *all, double *Y) {\n"
    code += "    Y[threadIdx.x] = one.scale * all[threadIdx.x].steps[2];\n}\n"
    np.save(tmp_path / "one.npy", np.array((1, 2.5, (1, 2, 3)), dtype))
    np.save(tmp_path / "all.npy", np.array([(1, 2.5, (1, 2, i)) for i in range(4)], dtype))
    words = (
        "-",
        "--grid",
        1,
        "--block",
        4,
        "one.npy",
        "all.npy",
        "out:float64:4",
        "--save",
        "Y=Y.npy",
    )
    status, output, errors = check(tmp_path, *words, source=code)
    assert status == 0, output + errors
    assert np.load(tmp_path / "Y.npy").tolist() == [0, 2.5, 5, 7.5]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "    for (unsigned i = 3; i >= 0; --i) Y[i] = i;",
            r"k.cu:2: error: .*the index is -1 in 32 bits.*never below 0: .*`while \(i-- > 0\)`",
        ),
        (
            "    Y[0] = Y[threadIdx.x - 1];",
            r"k.cu:2: error: .*the index is -1 in 32 bits.*test `i > 0` before `i - 1`",
        ),
        (
            "    extern __shared__ int pool[];\n    int *second = pool + 4;\n    second[0] = 1;",
            r"k.cu:4: error: .*dynamic shared memory\[4\].*or launch with more bytes by --shared\.",
        ),
        ("    Y[0] = *kept(1);", r"f.cuh:3: error: .*address of .*'x'.*ends with its function"),
        ("    Y[0] = named(1);", r"f.cuh:5: error: .*reference to .*'x'.*ends with its function"),
    ],
)
def test_advice_is_right_for_the_case(code, message, tmp_path):
    functions = "#pragma once\n__device__ int *kept(int a) {\n    int x = a; return &x;\n}\n"
    if "named" in code:
        functions = (
            "#pragma once\n\n__device__ int &named(int a) {\n    int x = a;\n    return x;\n}\n"
        )
    elif "kept" not in code:
        functions = ""
    (tmp_path / "f.cuh").write_text(functions)
    text = f'#include "f.cuh"\n__global__ void k(int *Y) {{\n{code}\n}}\n'
    text = text.replace("__global__ void k(int *Y) {\n", "__global__ void k(int *Y) {", 1)
    (tmp_path / "k.cu").write_text(text)
    words = ("k.cu", "--grid", 1, "--block", 1, "--shared", 16, "zeros:int32:4")
    status, output, _ = check(tmp_path, *words)
    assert status == 1
    assert re.search(message, output.replace("\n", " ")), output


def test_a_kernel_that_if_leaves_out_is_named(tmp_path):
    code = "#ifdef WITH_SCALE\n__global__ void k(int *Y) { Y[0] = 1; }\n#endif\n"
    words = ("-", "--grid", 1, "--block", 1, "out:int32:1")
    status, output, _ = check(tmp_path, *words, source=code)
    assert status == 1
    assert "#if leaves out 'k'" in output
    assert output.splitlines()[-1].endswith("the macros that it needs by -D, or another --arch.")
    assert check(tmp_path, *words, "-DWITH_SCALE", source=code)[0] == 0
