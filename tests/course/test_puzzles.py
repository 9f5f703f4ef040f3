"""The puzzles: solutions in the notebooks are right and at par, and wrong answers do not pass."""

import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from accelviz.course import puzzles
from accelviz.emulator import compiler
from accelviz.errors import ArgumentError
from tests.compilers import needs_compiler

from .right_lines import RIGHT
from .wrong_lines import WRONG, with_pieces_replaced

nbformat = pytest.importorskip("nbformat", reason="puzzles are notebooks")
pytestmark = needs_compiler
FOLDER = Path(__file__).resolve().parents[2] / "notebooks" / "puzzles"
LINES = re.compile(r"(// --- your lines[^\n]*\n)(.*?)([^\n]*// ---\n)", re.S)


def read():
    """Return the sources of the text cell and the code cell of each puzzle by its name."""
    texts = {}
    for path in sorted(FOLDER.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        for text, code in pairwise(cells):
            if call := re.search(r'^puzzles\.check\("(\w+)", answer\)$', code.source, re.M):
                texts[call[1]] = text.source, code.source
    return texts


TEXTS = read()
each_puzzle = pytest.mark.parametrize("name", puzzles.PUZZLES)


def answer(name, lines=None):
    """Return the kernel with `lines` between the marks, by default the lines of the stub."""
    stub = re.search(r'answer = """(.*?)"""', TEXTS[name][1], re.S)[1]
    if lines is None:
        return stub
    assert len(LINES.findall(stub)) == 1
    return LINES.sub(lambda match: f"{match[1]}{lines}\n{match[3]}", stub)


def solution(name):
    return re.search(r"```cuda\n(.*?)\n```", TEXTS[name][0], re.S)[1]


def wrong_answer(name, number):
    """Return the kernel of a wrong answer: the solution with pieces replaced, or other lines."""
    return answer(name, with_pieces_replaced(solution(name), WRONG[name][number]))


def test_every_puzzle_is_in_a_notebook_in_this_order():
    assert [*TEXTS] == [*puzzles.PUZZLES] == [*WRONG] == [*RIGHT]
    assert len(TEXTS) >= 15
    assert all(len(wrong) >= 8 for wrong in WRONG.values())
    assert all(len(answers) >= 3 for answers in RIGHT.values())
    for text, _ in TEXTS.values():
        # Every backtick is closed in its line; a span over two lines may render as a list.
        for line in text.replace("```", "").splitlines():
            assert line.count("`") % 2 == 0, line


@pytest.mark.sample(5)
@each_puzzle
def test_the_solution_is_right_at_par_and_short(name):
    report = puzzles.check(name, answer(name, solution(name)))
    assert report.verdict == "Solved, at par", report
    par = puzzles.PUZZLES[name].par
    assert f"Par: {par.sectors} sectors, {par.requests} requests." in TEXTS[name][0]
    assert 1 <= len(solution(name).splitlines()) <= 10
    captions = re.findall(r"(read|written|atomics)(, shared memory)?: \d+ req", report.picture)
    assert len(captions) >= 2
    assert len(report.picture) < 200_000


@pytest.mark.long
@pytest.mark.sample(6)
@each_puzzle
def test_wrong_answers_do_not_pass(name):
    for number in range(len(WRONG[name])):
        report = puzzles.check(name, wrong_answer(name, number))
        assert not report.solved, WRONG[name][number]
        where = re.search(r"\[\d+\]|kernel\.cu:\d+|is an input", report.message)
        assert report.cost or where, report.message


@pytest.mark.long
@pytest.mark.sample(6)
@each_puzzle
def test_unusual_right_answers_pass(name):
    for lines in RIGHT[name]:
        report = puzzles.check(name, answer(name, with_pieces_replaced(solution(name), lines)))
        assert report.solved, (report, lines)


@pytest.mark.parametrize(
    ("name", "lines", "reason"),  # an integer is the index of an answer in WRONG[name]
    [
        ("stride", RIGHT["stride"][1], r"requests to X in line 6 start 16 bytes into a sector"),
        ("stride", 0, "lanes of your requests to X in line 6 are 20 bytes apart, so that a "),
        ("neighbors", 0, r"loads of X move about 2\.9 times its bytes"),
        ("banks", 1, "line 9, 2 lanes want different elements of one bank of tile"),
        ("segments", 0, "line 8, up to 24 lanes of a warp update the same elements of y"),
        ("shuffle", 9, "Line 7 makes 70 requests to X with about 1 lane each"),
        ("popc", RIGHT["popc"][1], r"loads of A move about 3\.0 times its bytes"),
    ],
)
def test_the_message_says_why_a_par_is_missed(name, lines, reason):
    if isinstance(lines, int):
        report = puzzles.check(name, wrong_answer(name, lines))
    else:
        report = puzzles.check(name, answer(name, lines))
    assert re.search(reason, report.message), report.message


def test_an_empty_answer_gets_instructions():
    for name in set(TEXTS) - {"banks"}:  # the stub of "banks" contains an answer already
        message = puzzles.check(name, answer(name)).message
        assert "Write your lines between the two marks" in message


GUARD = "if (i < n) Y[i] = a * X[i] + Y[i];"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "answer_lines", "message"),  # an integer is the index of an answer in WRONG[name]
    [
        (
            "blocks",
            0,
            r"kernel\.cu:5: several threads store the same value in Y.* a puzzle does not",
        ),
        ("guard", 0, r"thread 6 of block 2 reads X\[70\].* Line 5 is: Y\[i\] ="),
        ("guard", 2, r"Y\[69\] is -?\d+ and should be -?\d+; no thread writes it"),
        ("guard", 3, r"Y\[0\] is .* thread 0 of block 0 wrote it last \(line 5\)"),
        ("guard", 4, r"thread 6 of block 2 reads X\[70\], 4 bytes past its end"),
        ("stride", 1, r"No thread writes Y\[64\]. Not written: 236 of 300"),
        ("stride", 0, "right for all 5 inputs, but with too many sectors"),
        ("mirror", 3, r"nothing has written before"),
        ("mirror", 5, r"waits at a barrier to which not all threads .* Line 7 is: if \(t < n\)"),
        ("one_each", 8, r"writes X\[0\] \(byte 0\), which is an input"),
        ("guard", "if (i < n) Y[i] = Y[i] +* X[i];;", r"does not compile"),
        ("guard", "for (;;) if (i > n) Y[0] = 1; " + GUARD, "end the loop"),
        ("transpose", 5, r"thread 8 of block 1 reads X\[1280\], 4 bytes past its end"),
        ("transpose", 4, r"Y\[1\] \(row 0, column 1\) is"),
    ],
)
def test_the_message_describes_the_error(monkeypatch, name, answer_lines, message):
    monkeypatch.setattr(sys.modules[puzzles.check.__module__], "SECONDS", 0.3)
    make = wrong_answer if isinstance(answer_lines, int) else answer
    report = puzzles.check(name, make(name, answer_lines))
    assert re.search(message, report.message), report.message
    has_picture = message not in ("end the loop", "does not compile")
    assert bool(report.picture) == has_picture


def test_the_picture_shows_wrong_elements_and_accesses_before_an_error():
    wrong = puzzles.check("guard", wrong_answer("guard", 3))
    assert "✗ 70 wrong" in wrong.picture
    stopped = puzzles.check("guard", wrong_answer("guard", 0))
    assert "What was done before the mistake" in stopped.picture


def test_a_float2_beyond_an_odd_number_of_elements_is_out_of_bounds():
    text = """__global__ void doubled(const float2 *X, float2 *Y) {
        const int i = threadIdx.x;
        if (i % 2 == 0) { Y[i / 2] = make_float2(2 * X[i / 2].x, 2 * X[i / 2].y); }
    }"""
    report = puzzles.check("one_each", text)
    assert not report.solved
    assert "X[" in report.message


def test_an_answer_better_than_the_par_is_reported():
    sums = """__global__ void block_sums(const float *X, float *sums, int n) {
        const int first = blockIdx.x * blockDim.x;
        if (threadIdx.x >= 32) return;
        float sum = 0.0f;
        for (int i = first + threadIdx.x; i < min(n, first + int(blockDim.x)); i += 32) sum += X[i];
        for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    }"""
    report = puzzles.check("block_sum", sums)
    assert report.verdict == "Solved, better than the par"
    assert "block_sum" in puzzles.scores()._repr_html_()


def test_repeated_loads_of_a_word_are_above_the_par():
    lines = """int sum = 0;
    for (int p = 0; p < planes; ++p)
        for (int w = 0; w < words; ++w)
            sum += __popc(A[row * words + w] & X[(p * words + w) * 32 + lane]) << p;
    Y[row * 32 + lane] = sum;"""
    report = puzzles.check("popc", answer("popc", lines))
    assert report.verdict == "Solved, with more sectors and requests than the par"


def test_unknown_puzzles_and_wrong_parameters_are_reported():
    with pytest.raises(ArgumentError, match="there is no puzzle 'gaurd'"):
        puzzles.check("gaurd", "")
    renamed = (
        "__global__ void f(float a, const float *in, float *out, int m) { if (a > 0) *out = 1; }"
    )
    report = puzzles.check("guard", renamed)
    assert not report.solved
    changes = "{ X[threadIdx.x] *= 2; Y[threadIdx.x] = X[threadIdx.x]; }"
    report = puzzles.check("one_each", f"__global__ void f(float *X, float *Y) {changes}")
    assert report.message == "X is an input, and the kernel changes it (1 block of 32 threads)."
    fewer = puzzles.check("guard", "__global__ void f(float a, const float *X, float *Y) {}")
    assert "got 4 arguments" in fewer.message


def test_inputs_are_exact_and_outputs_are_initialized_alike():
    for name, puzzle in puzzles.PUZZLES.items():
        cases = [*puzzle.cases(np.random.default_rng(0))]
        assert len(cases) >= 3, name
        for case in cases:
            for output, expected in case.expected.items():
                # Exact in float32: numbers of 24 bits times a power of two.
                bits = np.frexp(np.abs(expected).astype(float))[0] * 2**24
                assert (bits == np.round(bits)).all()
                start = case.arguments[output]
                unwritten = np.isnan(start)  # the emulator reports reads of these elements
                partly_written = unwritten.any() and not unwritten.all()
                if partly_written:
                    assert (start[~unwritten] == 0).all()


def test_the_cost_counts_passes_and_collisions_of_atomics():
    # The stub loads 32 rows, stores them to shared memory, loads 32 columns from there with 32
    # passes each, and stores the sums once.
    slow = puzzles.check("banks", answer("banks"))
    assert slow.cost.requests == 32 + 32 + 32 * 32 + 1
    # One atomic per nonzero: lanes with the same row collide. The solution has one per row.
    colliding = puzzles.check("segments", wrong_answer("segments", 0))
    assert colliding.cost.requests - colliding.par.requests > 20


def test_a_missing_compiler_is_reported_with_a_remedy(monkeypatch):
    monkeypatch.setattr(compiler, "_candidates", lambda: [["no-such-compiler"]])
    compiler.find_compiler.cache_clear()
    try:
        report = puzzles.check("guard", answer("guard", solution("guard")))
    finally:
        compiler.find_compiler.cache_clear()
    assert not report.solved
    assert "install one (such as g++)" in report.message
    assert "Not yet" in report._repr_html_()
