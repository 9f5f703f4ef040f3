"""A hostile class: no attack gains a point, none costs another a point, none ends the run.

What is tried stands in `attacks.py`: a twelfth of each kind on each commit, all with `-m long`.
"""

# ruff: noqa: E402 (what is tested needs what is skipped for)

import sys
import time

import pandas as pd
import pytest

nbformat = pytest.importorskip("nbformat", reason="grading needs nbgrader")
pytest.importorskip("nbgrader", reason="grading needs nbgrader")
psutil = pytest.importorskip("psutil")
if sys.platform == "win32":
    pytest.skip("submissions are not confined on Windows", allow_module_level=True)

from accelviz.course.autograde import tables
from accelviz.course.autograde.folder import Course
from accelviz.course.autograde.problems import Problem
from accelviz.course.autograde.sandbox import Limits, held
from accelviz.course.autograde.server import one_server
from accelviz.course.checks.cuda_text import only_cuda
from accelviz.errors import KernelError
from tests.course.attacks import ATTACKS, STUFFED
from tests.course.shipped import COMPILER
from tests.course.wrong import A1, A4, PART

#: What the tests on everybody else's points need: these are handed in each day.
ON_OTHERS = ("kills all", "writes points into the gradebook", "leaves a process that writes points")


def is_on_others(own):
    return ATTACKS[own["student"]].what.startswith(ON_OTHERS)


pytestmark = [
    pytest.mark.xdist_group("grader"),
    pytest.mark.skipif(
        not held(Limits())["isolated"], reason="this system lets nobody make namespaces"
    ),
]


@pytest.fixture(scope="module")
def grades(shipped):
    return tables.table(shipped[1])


def test_there_are_enough_of_them():
    assert len(ATTACKS) + len(STUFFED) >= 50


@pytest.mark.sample(12, always=is_on_others)
@pytest.mark.parametrize("student", ATTACKS, ids=lambda name: f"{name} {ATTACKS[name].what}")
def test_an_attack_gains_nothing(grades, student):
    attack = ATTACKS[student]
    if attack.assignment == A4 and not COMPILER:
        pytest.skip("no C++ compiler to emulate kernels with")
    own = grades[(grades["student"] == student) & grades[["points", "max"]].notna().all(axis=1)]
    left = own[own["points"] != own["max"]]
    names = [name.partition("-")[2] for name in left["question"]]
    lost = dict(zip(names, left["points"], strict=True))
    told = dict(zip(own["question"], own["problem"], strict=True))
    assert lost == pytest.approx(dict(attack.lost)), told
    assert own["points"].sum() == pytest.approx(attack.total)


@pytest.mark.sample(12, always=lambda own: own["student"] == "claims")
@pytest.mark.parametrize("student", STUFFED, ids=lambda name: STUFFED[name].what)
def test_what_else_is_handed_in_costs_and_gains_nothing(shipped, grades, student):
    own = grades[grades["student"] == student]
    assert own["points"].sum() == own["max"].sum() == 8
    assert STUFFED[student].says in " ".join(own["problem"])
    home = shipped[0] / "autograded" / student / PART
    assert sum(path.stat().st_size for path in home.rglob("*")) < 3_000_000


def test_what_a_text_cell_holds_is_no_html(shipped):
    notebook = nbformat.read(shipped[0] / "autograded" / "claims" / PART / f"{PART}.ipynb", 4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type != "code"]
    assert sum("alert(1)" in text for text in texts) == 2
    assert not any("<script" in text or "<b" in text for text in texts)


@pytest.mark.parametrize("student", ["linked", "linked-file"])
def test_links_to_another_s_work_are_not_followed(grades, student):
    (row,) = grades[grades["student"] == student].itertuples()
    assert pd.isna(row.points)
    assert "link" in row.problem or "there is no notebook" in row.problem


def test_nobody_else_lost_or_gained_a_point(shipped, grades):
    for student in ("perfect", "zoe"):
        own = grades[(grades["student"] == student) & (grades["assignment"] == A1)]
        assert own["points"].sum() == 20
    with Course(shipped[0]).gradebook() as gradebook:
        for name, most in ((A1, 20), (PART, 8)):
            for submission in gradebook.assignment_submissions(name):
                assert submission.score <= most
                books = submission.notebooks
                assert {grade.manual_score for book in books for grade in book.grades} == {None}


def test_nothing_outlives_a_submission(shipped):
    assert not (shipped[0] / "left-behind").exists()
    server = one_server()._process
    for _ in range(50):  # the system ends them on its own time
        (bare,) = psutil.Process(server.pid).children()[:1]
        left = set(psutil.Process(server.pid).children(recursive=True)) - {bare}
        if not left:
            return
        time.sleep(0.1)
    pytest.fail(f"{left} are still there")


def test_a_table_has_no_formula(shipped, grades, tmp_path):
    tables.write_table(grades, tmp_path / "grades.csv")
    lines = (tmp_path / "grades.csv").read_text("utf-8").splitlines()
    assert not [line for line in lines if line.startswith(("=", "+", "-", "@"))]
    assert any(line.startswith("'=1+1,") for line in lines)
    assert set(tables.read_table(tmp_path / "grades.csv")["student"]) == set(grades["student"])


def test_what_students_write_steers_no_terminal_and_no_spreadsheet(tmp_path):
    evil = "\x1b[2J\u202eada\n1 of 1;=1+1"
    assert str(Problem("name", evil, "x")) == "?[2J?ada 1 of 1;=1+1 x"
    frame = pd.DataFrame({"student": [evil], "scheme": ["=1+1"], "problem": [None]})
    tables.write_table(frame, tmp_path / "board.csv")
    assert (tmp_path / "board.csv").read_text("utf-8").splitlines() == [
        "student,scheme,problem",
        "?[2J?ada 1 of 1;'=1+1,'=1+1,",
    ]


def test_totals_name_who_was_set_aside_and_what_waits_for_a_person(grades):
    found = tables.totals(grades).set_index(["student", "assignment"])
    assert pd.isna(found.loc[("linked", A1), "points"])
    assert "link" in found.loc[("linked", A1), "problem"]
    assert found.loc[("perfect", "A5-report"), ["points", "by_hand"]].tolist() == [8, 32]


@pytest.mark.parametrize(
    "text",
    [
        'extern "C" int system(const char *);',
        "void f() { system(0); }",
        "void f() { auto g = system; }",
        "#define S system\nvoid f() { S(0); }",
        "void f() { sys\\\ntem(0); }",
        "void f() { /\\\n* */ system(0); }",
        "#de\\\nfine A 1\n[\\\n[gnu::x]]",
        "[[gnu::constructor]] void f() {}",
        "[ /* */ [gnu::constructor]] void f() {}",
        "__attribute__((constructor)) void f() {}",
        "struct A { A() {} } a;",
        "struct A { ~A() {} } a;",
        "struct A { int x = 3; } a;",
        "int x = f();",
        "int x(f());",
        "int f() { return 1; } int x{f()};",
        "auto f = [] { return 1; }();",
        "template <int N> int v = g<N>();",
        "void f() { asm(0); }",
        "void f() { __asm__(0); }",
        "void f() { __builtin_trap(); }",
        "void f() { std::abort(); }",
        "void f() { ::system(0); }",
        "using namespace std;",
        "#include <cstdlib>",
        "/* */ #include <cstdlib>",
        "int a = '\"';\n#include <cstdlib>",
        "%:include <cstdlib>",
        "??=include <cstdlib>",
        "#define A B##C",
        "#define EMULATED_KERNEL(x) 1",
        "#define float double",
        "#pragma GCC optimize(0)",
        '_Pragma("x")',
        'R"(x)"',
        "void f() { s\\u0079stem(0); }",
        "void f() { memcpy(a, b, n); }",
        'void f() { printf("%n"); }',
        'void f() { printf("%5$hhn", 1); }',
        'void f() { printf("%s", 1); }',
        'void f() { printf("\\x25n", &a); }',
        'void f() { printf("\\45n", &a); }',
        'void f() { printf("%d" "%n", &a); }',
        "void f(char *text) { printf(text); }",
        "void f() { auto g = printf; }",
        "#define SHOW printf\nvoid f() { SHOW(0); }",
        "#include <cooperative_groups.h>\nvoid f() { cooperative_groups::std::abort(); }",
        "namespace cg = std;",
        "namespace cg = cooperative_groups; void f() { cg::system(0); }",
        "void f(...) { f(...system(0)); }",
        "void f() { emulator::x(); }",
        "__host__ void f() {}",
        "void f() { long a = (long)(int (*)(int))abs; }",
        "void f(long a) { ((void (*)(int))a)(0); }",
        "void f(long a) { int (*g)(int); g(0); }",
        "void f(long a) { int (&g)(int) = h; }",
        "void f() { auto g = fabsf; }",
        "__device__ void g() {}\nvoid f() { long a = (long)g; }",
        "void f() { long a = (long)abs; }",
        "#define A (long)abs\nvoid f() { long a = A; }",
        "void f(int g(const char *), long a) { *(long *)&g = a; g(0); }",
        "typedef int F(int);",
        "void f(long a) { g<int(const char *)>(a); }",
        "void f() { a: goto *b; }",
        "void f() { void *b = &&a; a: ; }",
        "void f() { int a = ({ 1; }); }",
        "void f(long a) { ((decltype(index) *)a)(0, 0); }",
    ],
)
def test_a_kernel_that_leaves_cuda_is_refused(text):
    with pytest.raises(KernelError, match="yours.cu"):
        only_cuda(text)


def test_an_ordinary_kernel_is_not_refused():
    only_cuda(
        """
#include "common.cuh"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
#define TILE 32
__constant__ float weights[3] = {0.5f, 1.0f, -2e-3f};
struct Pair { int first; float second; };
template <int N> __device__ __forceinline__ float sum(const float *__restrict__ x) {
    float total = 0.0f;  // "a comment" with system() in it
#pragma unroll 4
    for (int i = 0; i < N; ++i) total += __ldg(&x[i]);
    return total;
}
extern "C" __global__ void __launch_bounds__(128, 2) spmm_runs(float *Y, int index) {
    __shared__ float tile[TILE];
    const int lane = threadIdx.x % 32;
    tile[lane] = fmaxf(sum<3>(weights), __shfl_xor_sync(0xffffffffu, 1.0f, 1));
    __syncwarp();
    const auto block = cg::this_thread_block();
    const auto part = cg::tiled_partition<8>(block);
    block.sync();
    tile[lane] += cg::reduce(part, __half2float(__float2half(1.0f)), cg::plus<float>());
    if (lane == 0) printf("%5.2f of %d, 100 %%\\n", tile[lane], index);
    assert(index >= 0);
    Pair mine = {lane, tile[lane ^ 1]};
    atomicAdd(&Y[index], mine.second * sqrtf(2.0f));
}
"""
    )
