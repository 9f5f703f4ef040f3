"""Checks a learner's kernel: runs it on several inputs, names the mistake, and counts its cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.traffic import requests
from accelviz.course.puzzles import bits, blocks, sparse, tensor, threads, training
from accelviz.course.puzzles.picture import Panel, picture
from accelviz.course.puzzles.puzzle import Array, Case, Par, Puzzle
from accelviz.course.puzzles.report import Report, Scores, too_many
from accelviz.emulator import emulate, trace_kernel
from accelviz.emulator.source import kernels_in
from accelviz.errors import AccelvizError, ArgumentError, KernelError

#: In the order of the notebooks.
PUZZLES: dict[str, Puzzle] = {
    **threads.PUZZLES,
    **blocks.PUZZLES,
    **sparse.PUZZLES,
    **tensor.PUZZLES,
    **training.PUZZLES,
    **bits.PUZZLES,
}
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
    first, tried = None, 0
    for tried, case in enumerate(puzzle.cases(np.random.default_rng(0)), 1):
        first = first or case
        values = _copies(case)
        try:
            _run(emulate, case, values, answer, seed=tried - 1, unwritten=_unread(case, answer))
        except AccelvizError as error:
            said = _words(error, answer)
            if not isinstance(error, KernelError) or "compile" in said:
                return Report(name, False, said, par=puzzle.par)
            draw = str if "did not end" in said else partial(_drawn, case, answer, {})
            return Report(name, False, f"{said} ({case})", par=puzzle.par, draw=draw)
        wrong = {
            output: np.flatnonzero(values[output] != expected)
            for output, expected in case.expected.items()
        }
        if any(len(places) for places in wrong.values()):
            traced = _run(trace_kernel, case, _copies(case), answer)
            said = f"{_difference(case, values, wrong, traced, answer)} ({case})."
            draw = partial(_drawn, case, answer, wrong, traced)
            return Report(name, False, said, par=puzzle.par, draw=draw)
    assert first is not None
    traced = _run(trace_kernel, first, _copies(first), answer)
    draw, had, par = partial(_drawn, first, answer, {}, traced), cost(traced), puzzle.par
    said, more = f"The result is right for all {tried} inputs", too_many(had, par)
    solved = not (more and puzzle.par_is_the_task)
    if not solved:
        said += f", but with too many {more}: the par is part of the task"
    return Report(name, solved, f"{said}.", cost=had, par=par, draw=draw)


def _copies(case: Case) -> dict[str, Any]:
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in case.arguments.items()
    }


def _run(how: Any, case: Case, arguments: Mapping[str, Any], answer: str, **options: Any) -> Any:
    """Emulate or trace; arguments go by place, as a learner may give parameters other names."""
    return how(answer, case.grid, case.block, *arguments.values(), timeout=SECONDS, **options)


def _names(case: Case, answer: str) -> dict[str, str]:
    """Return what the learner's kernel calls each argument."""
    kernels = [*kernels_in(answer).values()]
    theirs = kernels[0][0] if len(kernels) == 1 else []
    return dict(zip(case.arguments, theirs, strict=False))


def _unread(case: Case, answer: str) -> list[str]:
    """Return outputs that nobody has written before, by the learner's names."""
    names = _names(case, answer)
    return [
        names[output_name]
        for output_name in case.expected
        if output_name in names and _blank(case, output_name)
    ]


def _blank(case: Case, output: str) -> bool:
    return bool(np.isnan(case.arguments[output]).all())


def _words(error: AccelvizError, answer: str) -> str:
    """Return the message of an error, with the source line that it names."""
    said = str(error).rstrip(".")
    values = re.search(r"kernel\.cu:(\d+)", said)
    lines = answer.splitlines()
    if values and "compile" not in said and 0 < int(values[1]) <= len(lines):
        said += f". Line {values[1]} is: {lines[int(values[1]) - 1].strip()}"
    return said


def _difference(
    case: Case,
    values: Mapping[str, Any],
    wrong: Mapping[str, Array],
    traced: pd.DataFrame,
    answer: str,
) -> str:
    """Say which element is wrong first, what it should be, and who wrote it."""
    output = next(name for name, places in wrong.items() if len(places))
    places, expected, names = wrong[output], case.expected[output], _names(case, answer)
    index = int(places[0])
    element = f"{output}[{index}]"
    if expected.ndim > 1:
        element += " (row {}, column {})".format(*divmod(index, expected.shape[1]))
    writes = traced[(traced["array"] == names.get(output, output)) & (traced["kind"] != "load")]
    written = _elements(writes)
    if _blank(case, output) and index not in written.index:
        never = int((~np.isin(places, written.index)).sum())
        return f"No thread writes {element}. Not written: {never} of {expected.size} elements"
    had, wanted = values[output].flat[index], expected.flat[index]
    said = f"{element} is {had:g} and should be {wanted:g}"
    others = np.flatnonzero(expected == had)
    if len(others) == 1 and had:
        said += f", which is right for {output}[{others[0]}]"
    if index in written.index:
        thread, block, line = written.loc[index]
        said += f"; thread {thread} of block {block} wrote it last (line {line})"
    else:
        said += "; no thread writes it"
    return f"{said}. Wrong: {len(places)} of {expected.size} elements"


def _elements(accesses: pd.DataFrame) -> pd.DataFrame:
    """Return the last access to each element: thread, block and line."""
    widths = np.maximum(accesses["bytes"].to_numpy() // 4, 1)
    spread = accesses.loc[accesses.index.repeat(widths)]
    within = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths, widths)
    table = pd.DataFrame(
        {
            "element": spread["index"].to_numpy() + within,
            "thread": (32 * spread["warp"] + spread["lane"]).to_numpy(),
            "block": spread["block"].to_numpy(),
            "line": spread["line"].to_numpy(),
        }
    )
    return table.groupby("element").last()


def _drawn(
    case: Case,
    answer: str,
    wrong: Mapping[str, Array],
    traced: pd.DataFrame | None = None,
) -> str:
    names, mistake = _names(case, answer), traced is None
    if traced is None:
        traced = _run(trace_kernel, case, _copies(case), answer, to_the_mistake=True)
    panels = [
        Panel(names.get(name, name), value.size, [*map(int, wrong.get(name, ()))])
        for name, value in case.arguments.items()
        if isinstance(value, np.ndarray)
    ]
    return picture(traced, panels, case.block, case.threads, mistake)
