"""The kernel that grows through the lessons: right versions, mistakes, scores, the share card."""

from xml.etree import ElementTree

import pandas as pd
import pytest

import accelviz
from accelviz.course import my_spmm
from accelviz.course.share_card import share_card
from accelviz.devices import find_device
from accelviz.errors import ArgumentError
from accelviz.measure import features
from accelviz.strategies import find_strategy

from ..test_elective_numbers import FOLDER, sentences
from .rung_answers import GUARD, RIGHT, ROW_1, WRONG
from .wrong_lines import with_pieces_replaced

pytestmark = pytest.mark.skipif(
    find_device("emulator").unavailable_reason() is not None, reason="needs a C++ compiler"
)


@pytest.fixture(autouse=True)
def _no_progress_bar(monkeypatch):
    """Leave out the bar, which a loaded machine prints before the verdict."""
    bar = my_spmm.tqdm
    monkeypatch.setattr(my_spmm, "tqdm", lambda **options: bar(**options | {"disable": True}))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def changed(rung, pieces):
    return with_pieces_replaced(my_spmm.right_version(rung), pieces)


@pytest.mark.parametrize("rung", range(1, 9))
def test_right_versions_are_right(rung):
    strategy = my_spmm.MySpmm(my_spmm.right_version(rung), rung)
    for graph, X in my_spmm._cases(rung >= 6):
        assert my_spmm.verdict(strategy.plan(graph, X.shape[1]), graph, X) == "right"


@pytest.mark.parametrize("rung", [7, 8])
def test_scores_of_right_versions(rung):
    cora = my_spmm.load_graph(my_spmm.GRAPH)
    plan = my_spmm.MySpmm(my_spmm.right_version(rung), rung).plan(cora, my_spmm.COLUMNS)
    counted = my_spmm.score(plan, features(cora.shape[1], my_spmm.COLUMNS))
    assert counted == my_spmm.RIGHT[rung - 1]


def test_idle_shares_of_rung_8_by_columns():
    cora, text = my_spmm.load_graph(my_spmm.GRAPH), sentences(LESSON)
    for columns, lanes in ((32, 8), (16, 4)):
        plan = my_spmm.MySpmm(my_spmm.right_version(8), 8).plan(cora, columns)
        assert plan.buffers.arrays["lanes"] == lanes
        idle = my_spmm.score(plan, features(cora.shape[1], columns)).idle_share
        assert f"| {columns} | {lanes} | {4 * 32 // lanes} | {100 * idle:.1f} % |" in text
    # With 128 columns a subwarp is a warp, and rung 8 does the work of rung 7.
    for columns, rung in ((128, 7), (64, 8)):
        row = f"| {100 * my_spmm.RIGHT[rung - 1].idle_share:.1f} % |"
        assert f"| {columns} | {columns // 4} | {512 // columns} {row}" in text


def test_scores_of_recorded_strategies():
    cora = my_spmm.load_graph(my_spmm.GRAPH)
    plan = find_strategy("lane_groups").plan(cora, my_spmm.COLUMNS)
    counted = my_spmm.score(plan, features(cora.shape[1], my_spmm.COLUMNS))
    assert counted == my_spmm.RECORDED["lane_groups"]


LESSON = FOLDER.parent / "10-your-own-kernel.ipynb"
ANSWERS = [(rung, number) for rung in WRONG for number in range(len(WRONG[rung]))]


def test_every_rung_has_answers():
    assert [*WRONG] == [*RIGHT] == [*range(1, 9)]
    assert min(map(len, WRONG.values())) >= 5
    assert min(map(len, RIGHT.values())) >= 3


@pytest.mark.sample(8)
@pytest.mark.parametrize(("rung", "number"), ANSWERS)
def test_wrong_answers_are_refused(rung, number, capsys):
    pieces, words = WRONG[rung][number]
    assert my_spmm.climb(rung, changed(rung, pieces)) is None
    said = capsys.readouterr().out
    assert said.startswith("Not yet: ")
    assert words in said
    assert not my_spmm.FILE.exists()


@pytest.mark.long
@pytest.mark.sample(3)
@pytest.mark.parametrize("rung", RIGHT)
def test_unusual_right_answers_pass(rung, capsys):
    for pieces in RIGHT[rung]:
        my_spmm.climb(rung, changed(rung, pieces))
        said = capsys.readouterr().out
        assert said.startswith("Right, with 3 matrices."), (said, pieces)


def test_idle_warps_are_no_sorted_rows():
    needed = my_spmm.RIGHT[2]
    counted = needed._replace(idle_share=0.414)
    text = '41.4% of the warps\' time is idle on Cora, and "sorted rows" needs 2.4%.'
    assert my_spmm._excess(counted, needed, 3, "Cora") == ("idle_share", text)
    assert my_spmm._excess(needed, needed, 3, "Cora") == ("", "")
    # eight warps in two blocks; in the second one a warp makes all requests
    requested = pd.DataFrame({"block": [0, 0, 0, 0, 1, 1, 1], "warp": [0, 1, 2, 3, 2, 2, 2]})
    said = my_spmm._cause("idle_share", requested, requested)
    assert said == "One of the 4 warps of block 1 makes 3 of its 3 requests."


STRIDED = "const int row = threadIdx.x * gridDim.x + blockIdx.x;"


@pytest.mark.long
@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (
            {ROW_1: STRIDED},
            "Most of the others are of row_pointers: 346,624 in place of 92,096. A request moves "
            "30.8 of them in place of 8.5:",
        ),
        ({"values[k] * X": "__ldcv(values + k) * X"}, "variable before the loop."),
    ],
)
def test_rung_1_is_right_at_any_cost_and_says_why_it_costs_more(pieces, words, capsys):
    assert my_spmm.climb(1, changed(1, pieces)) is not None
    said = capsys.readouterr().out
    assert said.startswith("Right, with 3 matrices.")
    assert "\nIt costs more than it has to: the kernel m" in said
    assert words in said
    assert my_spmm.strategy().rung == 1


def test_a_mistake_that_only_cora_shows_is_an_unfinished_rung(capsys):
    code = changed(2, {GUARD: GUARD + "\n    if (n_rows == 2708) Y[-1] = 0.0f;"})
    assert my_spmm.climb(2, code) is None
    said = capsys.readouterr().out
    assert said.startswith("Not yet: on Cora: ")
    assert "Y[-1] = 0.0f;" in said.splitlines()[-1]


@pytest.mark.long
@pytest.mark.parametrize("rows", [9, 2708])
def test_endless_loops_are_reported_soon(rows, monkeypatch, capsys):
    monkeypatch.setattr(my_spmm, "_SECONDS", 1.0)
    loop = {"column += 32": f"column += n_rows == {rows} ? 0 : 32"}
    assert my_spmm.climb(2, changed(2, loop)) is None
    where = "with 9 rows" if rows == 9 else "on Cora"
    said = capsys.readouterr().out
    assert said.startswith(f"Not yet: {where}")
    assert rows != 9 or "did not end within 1 seconds" in said  # a trace may be full before


def test_not_written_yet_and_no_kernel(capsys):
    assert my_spmm.climb(1, "float x = ...;") is None
    assert capsys.readouterr().out.startswith("Not written yet")
    assert my_spmm.climb(1, "__global__ void other() {}") is None
    assert "there is no such kernel" in capsys.readouterr().out
    assert my_spmm.climb(1, "__global__ void my_spmm(float *rows) {}") is None
    assert "a parameter is called rows" in capsys.readouterr().out


def test_a_file_grows_by_rungs_and_is_a_strategy(capsys):
    my_spmm.start(8)
    my_spmm.take(7)
    my_spmm.start(8)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("No rung 7")
    assert said[2] == "my_spmm.cu has rung 7, long rows cut."
    frame = my_spmm.climb(8, my_spmm.right_version(8))
    assert capsys.readouterr().out.startswith("Right, with 3 matrices.")
    assert frame["requests"].tolist() == [score.requests for score in my_spmm.RIGHT]
    assert my_spmm.strategy().rung == 8
    assert my_spmm.beside().loc["my_spmm", "sectors"] == my_spmm.RIGHT[7].sectors
    assert my_spmm.FILE.read_text().count("extern") == 1


def keep_scored(monkeypatch, requests):
    """Let `climb` keep every kernel, with this number of requests."""
    scored = my_spmm.Score(requests, 100, 0.02, 10)
    monkeypatch.setattr(my_spmm, "_cases", lambda vectors: ())
    monkeypatch.setattr(my_spmm, "_counted", lambda *_, **options: None)
    monkeypatch.setattr(my_spmm, "_score", lambda *_: scored)
    return scored


def test_a_lower_rung_again_leaves_the_higher_code_and_scores(monkeypatch, capsys):
    my_spmm.take(8)
    code = my_spmm._code()
    scored = keep_scored(monkeypatch, 5_000)
    capsys.readouterr()
    frame = my_spmm.climb(1, my_spmm.right_version(1))
    assert "my_spmm.cu keeps the code of rung 8." in capsys.readouterr().out
    assert frame["requests"].tolist() == [5_000, *(rung.requests for rung in my_spmm.RIGHT[1:])]
    assert my_spmm._code() == code
    assert my_spmm._climbed() == dict(enumerate((scored, *my_spmm.RIGHT[1:]), 1))
    assert my_spmm.strategy().rung == 8
    my_spmm.start(2)
    assert capsys.readouterr().out == "my_spmm.cu has rung 8, several rows a warp.\n"


def test_take_keeps_own_scores_and_copies_own_code(monkeypatch, tmp_path, capsys):
    scored = keep_scored(monkeypatch, 5_000)
    my_spmm.climb(2, my_spmm.right_version(2))
    my_spmm.climb(5, "// mine\n" + my_spmm.right_version(5))
    before = my_spmm.FILE.read_text()
    capsys.readouterr()
    my_spmm.take(3)
    my_spmm.take(3)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "my_spmm-rung5.cu has your rung 5 now."
    assert said[1:] == ["my_spmm.cu has a right version of rung 3, sorted rows."] * 2
    assert (tmp_path / "my_spmm-rung5.cu").read_text() == before
    first, _, third, *_ = my_spmm.RIGHT
    assert my_spmm._climbed() == {1: first, 2: scored, 3: third, 5: scored}
    assert my_spmm.strategy().rung == 3
    assert my_spmm.beside().loc["my_spmm", "requests"] == third.requests
    my_spmm.climb(4, my_spmm.right_version(4))
    assert my_spmm.strategy().rung == 4
    my_spmm.climb(5, "// mine\n" + my_spmm.right_version(5))
    my_spmm.take(5)
    assert (tmp_path / "my_spmm-rung5-2.cu").exists()


def test_a_file_without_the_rung_in_its_first_line_has_the_highest():
    my_spmm.take(4)
    text = my_spmm.FILE.read_text()
    my_spmm.FILE.write_text(text.replace("My SpMM, rung 4.", "My SpMM."))
    assert my_spmm.strategy().rung == 4


@pytest.mark.parametrize(
    "parameters",
    [
        "const float X[], float Y[], const int n_rows",
        "const float *X, // of rows, columns\n float *Y /* out,\n of (rows) */, int n_rows",
        "const float *X /* a, */, /* b */ float *__restrict__ Y, int n_rows",
    ],
)
def test_parameters_are_read_as_cuda_has_them(parameters):
    code = f"/* void my_spmm(int a)\n*/\n__global__ void my_spmm({parameters}) {{}}"
    assert my_spmm._parameters(code) == ("X", "Y", "n_rows")


@pytest.mark.parametrize("text", ["/* first\n... then */", "// ...", 'const char *s = "...";'])
def test_dots_in_comments_and_strings_are_not_missing_lines(text, capsys):
    assert my_spmm.climb(1, f"{text}\n__global__ void other() {{}}") is None
    assert "there is no such kernel" in capsys.readouterr().out


def test_the_model_says_its_error():
    launch, request, error = my_spmm.model()
    frame = my_spmm.beside()
    assert "my_spmm" not in frame.index
    factors = frame["recorded_us"] / (launch + request * frame["longest"])
    assert error == pytest.approx(max(factors.max(), (1 / factors).max()), rel=0.02)
    with pytest.raises(ArgumentError, match="no rung"):
        my_spmm.strategy()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_card_has_the_numbers_the_graph_the_machine_and_the_date(theme, tmp_path, capsys):
    assert share_card(theme=theme) is None
    assert "No card yet" in capsys.readouterr().out
    my_spmm.take(8)
    card = share_card(theme=theme)
    label = ElementTree.fromstring(card.svg).attrib["aria-label"]
    assert "cora: 2,708 rows, 10,556 nonzeros, 64 columns" in label
    assert "12,621 requests" in label
    assert "emulated, 2" in label
    assert (tmp_path / f"my_spmm-{theme}.svg").read_text() == card.svg
    with pytest.raises(ArgumentError, match="theme"):
        share_card(theme="blue")


def test_the_card_of_a_timed_kernel():
    my_spmm.take(8)
    cpu = {"device": "cpu", "repeats": 2, "progress": False}
    times = accelviz.benchmark("cora", ["row_thread", "graphblast"], my_spmm.COLUMNS, **cpu)
    times = times.assign(hardware="A GPU", date="2026-01-02")
    for other, message in (
        (times, "none of my_spmm"),
        (times.assign(state="cold"), "no warm times"),
        (times.assign(median_us=float("nan")), "no warm times"),
        (times.assign(graph="citeseer"), "graph is citeseer"),
        (times.assign(columns=32), "columns is 32"),
    ):
        with pytest.raises(ArgumentError, match=message):
            share_card(other)
    svg = share_card(times.replace({"strategy": {"row_thread": "my_spmm"}})).svg
    assert "A GPU · 2026-01-02" in svg
    assert "microseconds" in svg
    assert "graphblast" in svg
