"""The emulator's analysis of a source's text, and its folder of compiled kernels."""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import accelviz
from accelviz.devices.emulator import MAX_TRACED_BLOCKS, _runs, as_kernel
from accelviz.emulator import build, cache
from accelviz.emulator.host_code import without_host_code, without_unmentioned
from accelviz.emulator.source import kernels_in, symbols_in, unclosed
from accelviz.emulator.translation import translated
from accelviz.errors import ArgumentError, KernelError
from tests.compilers import needs_compiler

OF_HOST = (
    "float f(float x) { return x; }",
    "template <typename T> T f(T x) { return x; }",
    "__host__ int f() { return 0; }",
    "struct S { int a; int f() const { return a; } };",
    "namespace n { static inline void f() { } }",
)
OF_DEVICE = (
    "__device__ float f(float x) { return x; }",
    "__host__ __device__ int f() { return 0; }",
    "#define HD __host__ __device__\nHD int f() { return 0; }",
    "PORTABLE int f() { return 0; }",
    "constexpr int f() { return 0; }",
    "__device__ int f();\nint f() { return 0; }",
    "__global__ void __launch_bounds__(64) k(int *y) { if (*y) { *y = 1; } }",
    "struct S { int a; __device__ S(int b) : a(b) { } };",
    "auto f = [](int x) { return x; };",
    "// float f(float x) { return x; }",
    'const char *text = "float f(float x) { return x; }";',
)


def test_functions_of_the_host_are_told_from_others():
    for source in OF_HOST:
        assert translated(source, "k.cu").count("EMULATOR_ON_HOST(") == 1, source
    for source in OF_DEVICE:
        assert translated(source, "k.cu") == source


#: Code that serves the host alone, and code that may not.
LEFT_OUT = (
    "int main(int n, char **words) {\n  k<<<1, 32>>>(p);\n}",
    "template <typename T>\nvoid run(T *x, cudaStream_t s = 0) { k<T><<<1, 32, 0, s>>>(x); }",
    'extern "C" void run(float *x) { cudaMalloc(&x, 4); }',
    "struct Timer {\n  cudaEvent_t start;\n  Timer() { cudaEventCreate(&start); }\n};",
    "typedef struct { cudaEvent_t start; } Timer;",
    "void check(cudaError_t error);",
    "static cublasHandle_t handle;",
    "TEST(a, b) { k<<<1, 32>>>(x); }",
    "template <typename T> void run(T x) { k<T><<<1, 1>>>(x); }\ntemplate void run<int>(int x);",
    "void all(int n) { if (n) run(n); }\nvoid run(int n) { k<<<1, n>>>(); }",
    "float *filled(int n) { float *x = (float *)malloc(n); for (;;) { x[0] = rand(); } return x; }",
    "#include <cusparse.h>",
    "#include <builtin_types.h>",
    "#include <host_defines.h>",
    "#include <cuda_device_runtime_api.h>",
    '#include "helper_cuda.h"',
)
STAYS = (
    "__global__ void k() { child<<<1, 32>>>(); }",
    "#define HD __host__ __device__\nHD int f() { return std::function(1); }",
    "struct S { __device__ int f() { return 0; } void g() { cudaFree(0); } };",
    "__global__ void k(cudaTextureObject_t t) { f(t); }",
    "float table[2] = {1, 2};",
    "using namespace std;",
    "#include <cooperative_groups.h>",
    '#include "helper_math.h"',
)


def test_code_of_the_host_alone_is_left_out():
    for source in LEFT_OUT:
        text = without_host_code(f"int a;\n{source}\n__device__ int b;")
        assert text.replace(";", "").split() == ["int", "a", "__device__", "int", "b"]
        assert text.count("\n") == source.count("\n") + 2
    for source in STAYS:
        assert without_host_code(source) == source
    kernel = "__global__ void k(int *Y) { Y[0] = two(); }"
    helpers = "int one() { return 1; }\nint two() { return 2 * one(); }"
    assert without_host_code(f"{helpers}\n{kernel}") == f"{helpers}\n{kernel}"
    assert "one() {" not in without_host_code(f"int one() {{ return FAILS(2); }}\n{kernel}")
    assert without_host_code("#include <cublas_v2.h>") == "#include <narrow_types.h>"


#: Code of the host that a kernel does not need, beside code that it may.
UNMENTIONED = (
    "extern GLuint buffer;",
    "Timer *timer = nullptr, *other;",
    "namespace po = boost::program_options;",
    "using namespace DirectX;",
    "using std::endl;",
    "Simulation::Simulation(size_t n) { start(n); }",
    "struct Window { GLFWwindow *handle; };",
    "EVAL(GEN_TYPE, GEN_TARGET)",
    "constexpr int rows{4}, columns{5}, m = 6;",
    "constexpr float bias = float{1} * 2;",
    "__device__ void fill(int **x) { *x = new int[4]; }",
    "template <typename T> __device__ void child(T n) { kernel<<<1, n>>>(); }",
    "struct Hash { __device__ int operator()(thrust::tuple<int> t) { return 0; } };",
    "std::ostream &operator<<(std::ostream &o, Window w) { return o; }",
)
MENTIONED = (
    "typedef struct __align__(8) { float re, im; } Complex;\n__global__ void k(Complex *Y) {}",
    "enum { COUNT = 4 };\n__global__ void k(int *Y) { Y[0] = COUNT; }",
    "int two() { return 2; }\n#define TWO two()\n__global__ void k(int *Y) { Y[0] = TWO; }",
    "template <int N> struct Count { int a[N]; };\n__global__ void k(Count<2> c) {}",
    "int limit[2], *first;\n__global__ void k(int *Y) { Y[0] = *first; }",
    "#define ADD(T) __global__ void k(T *Y) { Y[0] += one(); }\nint one() { return 1; }\nADD(int)",
    "__device__ int f() { return 0; }\n__global__ void k() {}",
    *(
        f"constexpr {variables};\n__global__ void k(float *Y) {{ Y[0] = used; }}"
        for variables in (
            "float w[3] = {1, 2, 3}, used = 0.5f",
            "int rows{4}, used{5}",
            "int rows{4}, columns{5}, used = 6",
            "float used = square(2.0f), w[1] = {1}",
            "int used = 1 +\n    2 * three",
            "struct V { int x; } used = {1}, v{2}",
        )
    ),
    "struct V {};\n__device__ V operator+(V a, V b) { return a; }\n__global__ void k() {}",
)


def test_what_the_kernel_does_not_mention_is_left_out():
    for source in UNMENTIONED:
        text = f"namespace n {{\n__global__ void k() {{}}\n{source}\n}}"
        blanked = text.replace(source, " " * len(source))
        assert without_unmentioned((text,), "n::k") == (blanked,), source
    for source in MENTIONED:
        assert without_unmentioned((source,), "k") == (source,)
    texts = "int n();\n#if A\nint m() { return 0; }\n#endif", "__global__ void k() { n(); }"
    blank = " " * len("int m() { return 0; }")
    expected = "int n();\n#if A\n" + blank + "\n#endif", texts[1]
    assert without_unmentioned(texts, "k") == expected
    assert without_unmentioned(texts, "missing") == texts


def test_what_a_condition_chooses_is_whole_before_its_subscript():
    for source in ("y = (c ? p : q)[n % 4];", "return (c ? p : q) [i];", "f((c ? p : q)[i]);"):
        assert translated(source, "k.cu").count("EMULATOR_WHOLE(c ?") == 1, source
    for source in ("f(c ? 1 : 2)[i];", "(p + n)[i];", "if (c ? a : b) [[likely]] y = 1;"):
        assert translated(source, "k.cu") == source


def test_variables_of_the_host_and_constants_without_a_value_are_told_from_others():
    for source in ("int n;", "static float t[2] = {1, 2};", "/* one */ unsigned int a, b;"):
        assert "EMULATOR_HOST_VARIABLE" in translated(source, "k.cu"), source
    for source in ("__constant__ float c[4];", "namespace n { __constant__ int a, b; }"):
        assert "EMULATOR_UNFILLED" in translated(source, "k.cu"), source
    for source in (
        *("const int n = 3;", "__device__ int d;", "int f(int);", "struct S { int a; };"),
        *("__constant__ float c[1] = {0};", "__device__ int f() { int x = 1; return x; }"),
    ):
        assert translated(source, "k.cu") == source


def test_kernels_and_symbols_have_their_namespaces():
    source = (
        "namespace a { __constant__ float c[2]; namespace b { template <int N>\n"
        "__global__ void __launch_bounds__(32) k(const float *X, int n) { } } }\n"
        '__device__ int d, e = 2; extern "C" __global__ void j(void) { /* } */ }'
    )
    assert kernels_in(source) == {"a::b::k": (["X", "n"], True), "j": ([], False)}
    assert symbols_in(source) == ["a::c", "d", "e"]
    assert unclosed(source) is None
    assert unclosed("void f() {\n if (x) {\n}\n") == 1


def test_blocks_in_a_row_are_one_launch():
    assert _runs([3, 4, 5, 9, 8]) == [(3, 3), (9, 1), (8, 1)]
    assert _runs(range(MAX_TRACED_BLOCKS + 1)) == [(0, MAX_TRACED_BLOCKS), (MAX_TRACED_BLOCKS, 1)]
    assert _runs([]) == []


def test_the_folder_of_compiled_kernels_stays_bounded(monkeypatch, tmp_path):
    monkeypatch.setenv("ACCELVIZ_CACHE", str(tmp_path))
    now = time.time()
    for age in range(8):  # of 2 files of 100 bytes each
        for end in (".so", ".twin.so"):
            path = cache.folder() / f"k-{age}{end}"
            path.write_bytes(bytes(100))
            os.utime(path, (now - 1000 * age, now - 1000 * age))
    cache.make_room(cache.folder(), limit=1600, left=0)
    assert len([*cache.folder().iterdir()]) == 16
    assert cache.mark_used(cache.folder() / "k-7.so")  # the oldest, and now in use
    cache.make_room(cache.folder(), limit=1599, left=900, in_use=500)
    names = {path.name for path in cache.folder().iterdir()}
    assert names == {f"k-{age}{end}" for age in (0, 1, 2, 7) for end in (".so", ".twin.so")}
    cache.make_room(cache.folder(), limit=0, left=0, in_use=500)
    assert {path.name for path in cache.folder().iterdir()} == {
        f"k-{age}{end}" for age in (0, 7) for end in (".so", ".twin.so")
    }
    assert not cache.mark_used(cache.folder() / "k-3.so")
    deleted = [cache.folder() / "k-9.so"]  # by another process, after the folder was listed
    monkeypatch.setattr(Path, "iterdir", lambda _: [*deleted, cache.folder() / "k-0.so"])
    cache.make_room(cache.folder(), limit=0, left=0, in_use=0)
    assert not (cache.folder() / "k-0.so").exists()


@needs_compiler
def test_another_checkout_finds_what_this_one_compiled(monkeypatch, tmp_path):
    plan = accelviz.plan(accelviz.load_graph("cora"), "row_thread", n_cols=8)
    kernel = as_kernel(plan.calls[0].kernel)

    def compile_all():
        return *(build.build(kernel, checked=checked) for checked in (True, False)), build.runtime()

    compiled = compile_all()
    host, kernels = tmp_path / "host", tmp_path / "kernels"
    shutil.copytree(build.HOST_SOURCES, host)
    shutil.copytree(build.kernel_directory(), kernels)
    monkeypatch.setattr(build, "HOST_SOURCES", host)
    monkeypatch.setattr(build, "_HEADERS", (f"-I{host}", f"-I{host / 'include'}"))
    monkeypatch.setattr(build, "kernel_directory", lambda: kernels)
    monkeypatch.setattr(build, "run", lambda *_: pytest.fail("it compiles"))
    try:
        build._host_digest.cache_clear()
        assert compile_all() == compiled
        with (host / "warp.h").open("a") as file:  # but what it changed, it compiles
            file.write("// changed\n")
        build._host_digest.cache_clear()
        with pytest.raises(pytest.fail.Exception, match="it compiles"):
            build.build(kernel)
    finally:
        build._host_digest.cache_clear()


HEADER = """#pragma once
#include <cublas_v2.h>
inline float *filled(int n) { return (float *)malloc(n); }
__device__ float neighbor(float x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x;
    __syncthreads();
    return s[threadIdx.x ^ 1];
}
"""


@needs_compiler
def test_headers_beside_the_file_are_translated_too(tmp_path):
    (tmp_path / "common.h").write_text(HEADER)
    text = """#include "common.h"
__global__ void k(const half *X, float *Y) { Y[threadIdx.x] = neighbor(X[threadIdx.x]); }
"""
    (tmp_path / "k.cu").write_text(text, encoding="utf-8-sig")
    X, Y = np.arange(64, dtype=np.float16), np.zeros(64, np.float32)
    accelviz.emulate(tmp_path / "k.cu", 1, 64, X, Y, shared_bytes=256)
    np.testing.assert_array_equal(Y, np.arange(64) ^ 1)
    with pytest.raises(KernelError, match=r"common\.h:6: out of bounds"):
        accelviz.emulate(tmp_path / "k.cu", 1, 64, X, Y, shared_bytes=128)


@needs_compiler
def test_a_header_may_define_the_kernel_and_have_the_name_of_one_of_the_emulator(tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "random.h").write_text("#include <memory.h>\nusing number = int;\n")
    kernel = "__global__ void __launch_bounds__(32) k(number *Y, int n = 5) { *Y = n; }"
    (tmp_path / "k.cuh").write_text(f'#include "random.h"\n{kernel}\n')
    main = '#include "k.cuh"\n__global__ void other(int *Y) {}\n'
    (tmp_path / "main.cu").write_text(main)
    Y = np.zeros(1, np.int32)
    for text in (main, '#include "k.cuh"\n'):
        (tmp_path / "main.cu").write_text(text)
        arguments = tmp_path / "main.cu", 1, 1, Y
        accelviz.emulate(*arguments, kernel="k" if text == main else None, include=[folder])
        assert Y.tolist() == [5]
        Y[0] = 0
    with pytest.raises(ArgumentError, match="promises __launch_bounds__"):
        accelviz.emulate(tmp_path / "main.cu", 1, 64, Y, include=[folder])
    with pytest.raises(ArgumentError, match="no kernel 'j'"):
        accelviz.emulate(tmp_path / "main.cu", 1, 64, Y, kernel="j", include=[folder])


@needs_compiler
@pytest.mark.parametrize("ending", ["default: break;", "default: return;", "case 3: goto out;"])
def test_a_label_before_a_statement_is_no_type(ending):
    text = "__global__ void k(int *Y, int n) { switch (n) { case 1: return; ENDING } out: *Y = n; }"
    Y = np.zeros(1, np.int32)
    accelviz.emulate(text.replace("ENDING", ending), 1, 1, Y, 3)
    assert Y.tolist() == [0 if "return" in ending else 3]
