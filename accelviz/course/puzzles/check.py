"""Checks a learner's kernel: runs it on several inputs, names the mistake, and counts its cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.traffic import requests
from accelviz.course.puzzles import dense, networks, sparse
from accelviz.course.puzzles.picture import Panel, picture, words
from accelviz.course.puzzles.puzzle import Array, Case, Par, Puzzle, Report, Scores, too_many
from accelviz.emulator import emulate, trace_kernel
from accelviz.emulator.source import kernels_in
from accelviz.errors import AccelvizError, ArgumentError, KernelError

#: In the order of the notebooks.
PUZZLES: dict[str, Puzzle] = {**dense.PUZZLES, **sparse.PUZZLES, **networks.PUZZLES}
#: Seconds that a kernel may take; a right one takes hundredths.
SECONDS = 2.0
_EMPTY = re.compile(r"// --- your lines?[^\n]*\n\s*// ---")
_scores: dict[str, Report] = {}


def check(name: str, answer: str) -> Report:
    """Run a kernel on the inputs of a puzzle, in the emulator, and say what is wrong with it.

    Parameters
    ----------
    name : str
        Of a puzzle, as the notebooks call it.
    answer : str
        CUDA text with the completed kernel.

    Returns
    -------
    Report
        `solved`, the mistake in `said`, the cost beside the par, and a picture of the accesses. A
        notebook shows it. No mistake of a kernel is an exception.

    Raises
    ------
    ArgumentError
        If there is no such puzzle.

    Examples
    --------
    >>> from accelviz.course import puzzles
    >>> puzzles.check("one_each", "__global__ void doubled(const float *X, float *Y) {}")
    Not yet. No thread writes Y[0]. Not written: 32 of 32 elements (1 block of 32 threads).
    """
    if name not in PUZZLES:
        raise ArgumentError("name", f"there is no puzzle {name!r}", ", ".join(PUZZLES))
    if not isinstance(answer, str) or _EMPTY.search(answer):
        said = "Write your lines between the two marks in the kernel, then run this cell again."
        return Report(name, False, said, par=PUZZLES[name].par)
    report = _checked(name, PUZZLES[name], answer)
    best = _scores.get(name)
    if best is None or (report.solved, -report.over) >= (best.solved, -best.over):
        _scores[name] = report
    return report


def scores() -> Scores:
    """Return the best answers of this session, a line for each puzzle that was tried."""
    return Scores({name: _scores[name] for name in PUZZLES if name in _scores})


def cost(traced: pd.DataFrame) -> Par:
    """Count what a kernel moves, and its instructions that access memory.

    A request to shared memory counts once for each pass through the banks, and an atomic once more
    for each lane whose element another lane of the request has, too.
    """
    table = requests(traced)
    passes = table["wavefronts"].where(table["space"] == "shared", 1) + table["collisions"]
    return Par(int(table["sectors"].sum()), int(passes.sum()))


def _checked(name: str, puzzle: Puzzle, answer: str) -> Report:
    first, tried, par = None, 0, puzzle.par
    for tried, case in enumerate(puzzle.cases(np.random.default_rng(0)), 1):
        trial = _Trial(case, answer)
        first, values = first or trial, trial.copies()
        try:
            trial.run(emulate, values, seed=tried - 1, unwritten=trial.unread())
        except AccelvizError as error:
            said = trial.explained(error)
            if not isinstance(error, KernelError) or "compile" in said:
                return Report(name, False, said, par=par)
            draw = str if "did not end" in said else partial(trial.draw, {})
            return Report(name, False, f"{said} ({case})", par=par, draw=draw)
        wrong = {
            output: np.flatnonzero(values[output] != expected)
            for output, expected in case.expected.items()
        }
        if any(len(places) for places in wrong.values()):
            traced = trial.run(trace_kernel)
            said = f"{trial.difference(values, wrong, traced)} ({case})."
            return Report(name, False, said, par=par, draw=partial(trial.draw, wrong, traced))
    assert first is not None
    traced = first.run(trace_kernel)
    had = cost(traced)
    said, more = f"The result is right for all {tried} inputs", too_many(had, par)
    solved = not (more and puzzle.par_is_the_task)
    if not solved:
        said += f", but with too many {more}: the par is part of the task"
    draw = partial(first.draw, {}, traced)
    return Report(name, solved, f"{said}.", cost=had, par=par, draw=draw)


@dataclass(frozen=True)
class _Trial:
    """A learner's kernel with one of the inputs of its puzzle."""

    case: Case
    answer: str

    def copies(self) -> dict[str, Any]:
        return {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in self.case.arguments.items()
        }

    def run(self, how: Any, arguments: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Emulate or trace; arguments go by place, as a learner may give parameters other names."""
        values, case = (arguments or self.copies()).values(), self.case
        return how(self.answer, case.grid, case.block, *values, timeout=SECONDS, **options)

    def names(self) -> dict[str, str]:
        """Return what the learner's kernel calls each argument."""
        kernels = [*kernels_in(self.answer).values()]
        theirs = kernels[0][0] if len(kernels) == 1 else []
        return dict(zip(self.case.arguments, theirs, strict=False))

    def unread(self) -> list[str]:
        """Return outputs that nobody has written before, by the learner's names."""
        names = self.names()
        return [names[name] for name in self.case.expected if name in names and self.is_blank(name)]

    def is_blank(self, output: str) -> bool:
        return bool(np.isnan(self.case.arguments[output]).all())

    def explained(self, error: AccelvizError) -> str:
        """Return the message of an error, with the source line that it names."""
        said, lines = str(error).rstrip("."), self.answer.splitlines()
        named = re.search(r"kernel\.cu:(\d+)", said)
        if named and "compile" not in said and 0 < int(named[1]) <= len(lines):
            said += f". Line {named[1]} is: {lines[int(named[1]) - 1].strip()}"
        return said

    def difference(
        self, values: Mapping[str, Any], wrong: Mapping[str, Array], traced: pd.DataFrame
    ) -> str:
        """Say which element is wrong first, what it should be, and who wrote it."""
        output = next(name for name, places in wrong.items() if len(places))
        places, expected = wrong[output], self.case.expected[output]
        index = int(places[0])
        element = f"{output}[{index}]"
        if expected.ndim > 1:
            element += " (row {}, column {})".format(*divmod(index, expected.shape[1]))
        mine = traced["array"] == self.names().get(output, output)
        written = words(traced[mine & (traced["kind"] != "load")]).groupby("element").last()
        if self.is_blank(output) and index not in written.index:
            never = int((~np.isin(places, written.index)).sum())
            return f"No thread writes {element}. Not written: {never} of {expected.size} elements"
        had, wanted = values[output].flat[index], expected.flat[index]
        said = f"{element} is {had:g} and should be {wanted:g}"
        others = np.flatnonzero(expected == had)
        if len(others) == 1 and had:
            said += f", which is right for {output}[{others[0]}]"
        if index in written.index:
            last = written.loc[index]
            thread = 32 * last["warp"] + last["lane"]
            said += f"; thread {thread} of block {last['block']} wrote it last "
            said += f"(line {last['line']})"
        else:
            said += "; no thread writes it"
        return f"{said}. Wrong: {len(places)} of {expected.size} elements"

    def draw(self, wrong: Mapping[str, Array], traced: pd.DataFrame | None = None) -> str:
        """Draw a trace, or what was done before the kernel's mistake."""
        names, mistake = self.names(), traced is None
        if traced is None:
            traced = self.run(trace_kernel, to_the_mistake=True)
        panels = [
            Panel(names.get(name, name), value.size, [*map(int, wrong.get(name, ()))])
            for name, value in self.case.arguments.items()
            if isinstance(value, np.ndarray)
        ]
        return picture(traced, panels, self.case.block, self.case.threads, mistake)
