"""The corpus of kernels in benchmarks/checkers: the emulator runs correct ones, finds mistakes."""

import re

import numpy as np
import pytest

from benchmarks.checkers.corpus import CASES, KERNELS, KINDS
from benchmarks.checkers.corpus.emulated import run_once
from tests.compilers import needs_compiler

RIGHT = [case for case in CASES if not case.mistake]
MISTAKES = [case for case in CASES if case.mistake]


def designed(cases):
    """Return one case per kind, of the kernel with the fewest cases so far."""
    chosen, used = [], dict.fromkeys((kernel.name for kernel in KERNELS), 0)
    for kind in KINDS:
        of_kind = [case for case in cases if case.mistake.kind == kind]
        chosen.append(min(of_kind, key=lambda case: used[case.kernel.name]))
        used[chosen[-1].kernel.name] += 1
    return chosen


DAILY = designed(MISTAKES)


def each_of(cases):
    """Parametrize a test by case."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases])


def check_found(case, warps):
    """Check that the report has the required text, and a line of the kernel."""
    result = run_once(case, warps)
    assert result.result == "found", f"{warps} warps: {result.result}, and nothing said"
    assert re.search(KINDS[case.mistake.kind], result.report), result.report
    if case.mistake.kind == "block beyond its bound":  # found before the launch
        return
    line = re.search(r"\.cu:(\d+)", result.report)
    assert line, f"no line: {result.report}"
    assert 1 <= int(line[1]) <= case.code.count("\n"), result.report


def test_the_corpus_is_as_large_as_the_page_says():
    assert len(KERNELS) >= 40
    assert len(MISTAKES) >= 60
    assert {case.mistake.kind for case in MISTAKES} == {*KINDS}
    assert len(KINDS) >= 24
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({case.code for case in CASES if not case.mistake or case.mistake.old}) == sum(
        not case.mistake or bool(case.mistake.old) for case in CASES
    )


@each_of(RIGHT)
def test_launches_are_the_same_each_time_and_can_fail(case):
    for warps in case.warps:
        first, again = case.launch(warps), case.launch(warps)
        threads = np.prod(first.block)
        assert threads == 32 * warps
        for name, value in first.arguments.items():
            assert np.array_equal(value, again.arguments[name])
        assert first.wrong_outputs(
            {name: np.zeros_like(array) - 77 for name, array in first.expected.items()}
        )


@pytest.mark.sample(5)
@needs_compiler
@each_of(RIGHT)
def test_correct_kernels_are_right_and_not_alarmed(case):
    for warps in case.warps:
        result = run_once(case, warps)
        assert (result.result, result.report) == ("right", ""), f"{warps} warps"


@pytest.mark.sample(4)
@needs_compiler
@each_of(DAILY)
def test_a_mistake_of_each_kind_is_found(case):
    for warps in case.warps[:1] if case.endless else case.warps:  # these take a second each
        check_found(case, warps)


@needs_compiler
@pytest.mark.long
@each_of([case for case in MISTAKES if case not in DAILY])
def test_every_mistake_is_found(case):
    for warps in case.warps:
        check_found(case, warps)
