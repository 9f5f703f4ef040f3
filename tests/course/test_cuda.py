"""Kernels of A4: unusual CUDA earns all points, and what leaves CUDA is refused unrun."""

import re

import pytest

from accelviz.course.checks import cuda, hidden, kernels
from accelviz.errors import KernelError
from tests.compilers import needs_compiler
from tests.course.cuda_texts import FAR_READS, HONEST, HOSTILE, RIGHT, WRONG

pytest.importorskip("tree_sitter_cpp", reason="kernels are parsed by tree-sitter")
pytestmark = needs_compiler
CONSTANTS = tuple(kernels.CONSTANTS.items())
#: Of cut rows, and of more than 8-bit rows and 16-bit columns.
GRAPHS = {
    **hidden.small_graphs(4402, "far"),
    "long rows": hidden.small_graphs(4405, "long rows")["long rows"],
}


def test_there_are_enough_kernels():
    assert len(HONEST) >= 35
    assert len(HOSTILE) + len(WRONG) >= 40


@pytest.mark.sample(8)
@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_unusual_cuda_loses_no_points(text):
    kernels.multiplies(text, GRAPHS, [2], seed=5)
    graph = GRAPHS["long rows"]
    assert kernels.sectors(text, graph, 32) <= kernels.MIN_SECTORS
    assert kernels.updates(text, graph, 32) <= 1


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_leaves_cuda_is_refused_unrun(text, monkeypatch):
    monkeypatch.setattr("accelviz.emulator.process.launch", lambda *_: pytest.fail("it was run"))
    with pytest.raises(KernelError, match="yours.cu"):
        kernels.multiplies(text, GRAPHS, [2])


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_kernels_that_only_seem_right_fail(text):
    cases = (GRAPHS, 2, 5), ({"long rows": GRAPHS["long rows"]}, 128, 0)
    with pytest.raises(KernelError):
        [kernels.multiplies(text, graphs, [columns], seed) for graphs, columns, seed in cases]


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", FAR_READS.values(), ids=FAR_READS)
def test_reads_that_lie_far_apart_are_seen_in_every_form(text):
    try:
        kernels.multiplies(text, {"long rows": GRAPHS["long rows"]}, [96])
        sectors = kernels.sectors(text, GRAPHS["long rows"], 96)
    except KernelError as error:
        assert re.search("out of bounds|wrong result", str(error))  # noqa: PT017 (as right)
    else:
        assert sectors > kernels.MAX_SECTORS


def test_a_kernel_s_own_arrays_in_global_memory_count():
    """They are as far away as X and Y: copying X well and reading the copy badly gains nothing."""
    graph, scratch = GRAPHS["long rows"], "__device__ volatile float scratch[1 << 20];\n"
    element = "scratch[(run * n_cols + column) * 8 % (1 << 20)]"
    read = "sum += values[k] * X[(long long)columns[k] * n_cols + column];"
    copied = (
        f"{element} = X[(long long)columns[k] * n_cols + column];\nsum += values[k] * {element};"
    )
    assert kernels.sectors(scratch + RIGHT.replace(read, copied), graph, 32) > kernels.MAX_SECTORS
    summed = f"{element} = sum;\n" + read.replace("sum +=", f"sum = {element} +")
    updates = kernels.updates(scratch + RIGHT.replace(read, summed), graph, 32)
    assert updates > graph.nnz / int(kernels.runs_plan("", graph, 1).arrays["n_runs"])


def test_a_format_that_another_warp_changes_prints_nothing():
    change = """if (blockIdx.x == 0 && lane == 0) {
        if (warp == 1) format[1] = 'n';
        if (warp == 0) printf(format, letters);
    }
    const int run"""
    before = '__device__ char format[] = "%s", letters[] = "abcd";\n'
    with pytest.raises(KernelError, match="prints with %n"):
        kernels.sectors(before + RIGHT.replace("const int run", change), GRAPHS["long rows"], 32)


def test_a_refusal_names_the_line_of_what_is_refused():
    text = f"#define A __attribute__((used))\n\n{RIGHT}\nA int x;"
    line = text.count("\n") + 1
    with pytest.raises(KernelError, match=rf"yours\.cu:{line}: it has '__attribute__'"):
        cuda.expanded(text, CONSTANTS)


@pytest.mark.parametrize("text", [7, " " * 60_000, type("Text", (str,), {})(RIGHT)])
def test_only_a_text_of_usual_length_is_read(text):
    with pytest.raises(KernelError, match="no text of usual length"):
        cuda.expanded(text, CONSTANTS)


@pytest.mark.parametrize(
    "text",
    [
        f"int q = {'(' * 20_000}1{')' * 20_000};",
        "".join(f"#define A{k} A{k + 1} A{k + 1}\n" for k in range(20)) + "#define A20 1,\nA0",
    ],
    ids=["brackets", "macros"],
)
def test_a_text_that_takes_parsers_long_is_refused(text, monkeypatch):
    monkeypatch.setattr(cuda, "_parser", lambda: pytest.fail("it was parsed"))
    with pytest.raises(KernelError, match="nested too deeply"):
        cuda.expanded(text, CONSTANTS)


def test_the_expanded_text_keeps_its_lines():
    text = f"#define TWICE(x) \\\n  (x + \\\n   x)\n#include <vectors.cuh>\n{RIGHT}"
    lines = cuda.expanded(text, CONSTANTS).split("\n")
    assert lines[3] == "#include <vectors.cuh>"
    run = "    const int run = blockIdx.x * 4 + warp;"
    assert lines.index(run) == text.split("\n").index(run.replace("4", "BLOCK_WARPS"))
