"""Checks a learner's kernel: runs it on several inputs, describes an error, computes the cost."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from accelviz.analysis.traffic import requests
from accelviz.course.puzzles import dense, networks, sparse
from accelviz.course.puzzles.picture import Panel, picture, words
from accelviz.course.puzzles.puzzle import (
    SLACK,
    Array,
    Case,
    Par,
    Puzzle,
    Report,
    Scores,
    above_par,
)
from accelviz.course.puzzles.reasons import reasons
from accelviz.emulator import emulate, trace_kernel
from accelviz.emulator.source import kernels_in
from accelviz.errors import AccelvizError, ArgumentError, KernelError

#: In the order of the notebooks.
PUZZLES: dict[str, Puzzle] = {**dense.PUZZLES, **sparse.PUZZLES, **networks.PUZZLES}
#: Time limit of a kernel; a right one takes hundredths of a second.
SECONDS = 2.0
#: Stops a kernel at a barrier of the block that some of its threads have not reached or will not.
_WHOLE_BARRIERS = (
    "#define __syncthreads() "
    "((void)(__syncthreads_count(1) == int(blockDim.x) || (__trap(), 0)))\n#line 1\n"
)
_NOT_ALL = "waits at a barrier to which not all threads of the block come, as CUDA demands"
#: The two marks of a kernel without any lines between them.
_EMPTY = re.compile(r"// --- your lines?[^\n]*\n\s*// ---")
#: Best reports of this session by the names of the puzzles.
_scores: dict[str, Report] = {}


def check(name: str, answer: str) -> Report:
    """Run a kernel on the inputs of a puzzle in the emulator and check its results.

    Parameters
    ----------
    name : str
        Name of a puzzle in the notebooks.
    answer : str
        CUDA source with the completed kernel.

    Returns
    -------
    Report
        `solved`, `message`, the cost and the par, and a picture of the accesses, which a
        notebook displays. An error of the kernel is reported and never raised.

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
        message = "Write your lines between the two marks in the kernel, then run this cell again."
        return Report(name, False, message, par=PUZZLES[name].par)
    report = _checked(name, PUZZLES[name], answer)
    best = _scores.get(name)
    if best is None or (report.solved, -report.over) >= (best.solved, -best.over):
        _scores[name] = report
    return report


def scores() -> Scores:
    """Return the best report of this session for each puzzle that was tried."""
    return Scores({name: _scores[name] for name in PUZZLES if name in _scores})


def cost(traced: pd.DataFrame) -> Par:
    """Count the sectors that a kernel moves, and its requests to memory.

    A request is an instruction of a warp that accesses memory. One to shared memory counts once for
    each pass through the banks. An atomic counts once more for each lane that updates the same
    element as an earlier lane.
    """
    table = requests(traced)
    passes = table["wavefronts"].where(table["space"] == "shared", 1) + table["collisions"]
    return Par(int(table["sectors"].sum()), int(passes.sum()))


def _checked(name: str, puzzle: Puzzle, answer: str) -> Report:
    par = puzzle.par
    trials = [_Trial(case, answer) for case in puzzle.cases(np.random.default_rng(0))]
    for seed, trial in enumerate(trials):
        case, values = trial.case, trial.copies()
        try:
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                run = trial.run(
                    emulate,
                    values,
                    before=_WHOLE_BARRIERS,
                    seed=seed,
                    unwritten=trial.unwritten_outputs(),
                )
            for note in run.notes:
                if note.mistake != "same-value":
                    continue  # elements that nobody writes differ from what is expected
                raise KernelError(
                    note.argument,
                    note.problem,
                    "a store by one of them: a puzzle does not accept work that several threads do",
                )
        except AccelvizError as error:
            message = trial.explain(error)
            if not isinstance(error, KernelError) or "compile" in message:
                return Report(name, False, message, par=par)
            draw = str if "did not end" in message else partial(trial.draw, {})
            return Report(name, False, f"{message} ({case})", par=par, draw=draw)
        for name_of_input, array in trial.inputs().items():
            if not np.array_equal(values[name_of_input], array, equal_nan=True):
                message = f"{name_of_input} is an input, and the kernel changes it ({case})."
                return Report(name, False, message, par=par, draw=partial(trial.draw, {}))
        wrong = {
            output: np.flatnonzero(values[output] != expected)
            for output, expected in case.expected.items()
        }
        if any(len(indices) for indices in wrong.values()):
            traced = trial.run(trace_kernel)
            message = f"{trial.difference(values, wrong, traced)} ({case})."
            return Report(name, False, message, par=par, draw=partial(trial.draw, wrong, traced))
    traced = trials[0].run(trace_kernel)
    costs = cost(traced)
    message, exceeded = f"The result is right for all {len(trials)} inputs", above_par(costs, par)
    missed = above_par(costs, par, SLACK) if puzzle.par_is_the_task else ""
    if missed:
        message += f", but with too many {missed}: the par is part of the task"
    message = f"{message}. {reasons(traced, exceeded) if exceeded else ''}".rstrip()
    draw = partial(trials[0].draw, {}, traced)
    return Report(name, not missed, message, cost=costs, par=par, draw=draw)


@dataclass(frozen=True)
class _Trial:
    """A learner's kernel and one of the inputs of its puzzle."""

    case: Case
    answer: str

    def copies(self) -> dict[str, Any]:
        return {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in self.case.arguments.items()
        }

    def inputs(self) -> dict[str, Array]:
        """Return the arrays that are no outputs."""
        values = self.case.arguments.items()
        return {
            name: value
            for name, value in values
            if isinstance(value, np.ndarray) and name not in self.case.expected
        }

    def run(
        self,
        function: Any,
        arguments: Mapping[str, Any] | None = None,
        before: str = "",
        **options: Any,
    ) -> Any:
        """Call `emulate` or `trace_kernel` by position, as a learner may rename parameters.

        `before` is source in front of the answer.
        """
        values, case, source = (arguments or self.copies()).values(), self.case, self.answer
        return function(before + source, case.grid, case.block, *values, timeout=SECONDS, **options)

    def names(self) -> dict[str, str]:
        """Return the names of the arguments in the learner's kernel."""
        kernels = [*kernels_in(self.answer).values()]
        parameters = kernels[0][0] if len(kernels) == 1 else []
        return dict(zip(self.case.arguments, parameters, strict=False))

    def unwritten_outputs(self) -> list[str]:
        """Return the learner's names of outputs without initial values."""
        expected, names = self.case.expected, self.names()
        return [names[name] for name in expected if name in names and self.is_unwritten(name)]

    def is_unwritten(self, output: str) -> bool:
        return bool(np.isnan(self.case.arguments[output]).all())

    def explain(self, error: AccelvizError) -> str:
        """Return the message of an error, with the source line that it refers to."""
        message, lines = str(error).rstrip("."), self.answer.splitlines()
        if "(__trap)" in message and "__trap" not in self.answer:
            message = re.sub("stopped the kernel.*", _NOT_ALL, message)
        match = re.search(r"kernel\.cu:(\d+)", message)
        if match and "compile" not in message and 0 < int(match[1]) <= len(lines):
            message += f". Line {match[1]} is: {lines[int(match[1]) - 1].strip()}"
        return message

    def difference(
        self, values: Mapping[str, Any], wrong: Mapping[str, Array], traced: pd.DataFrame
    ) -> str:
        """Describe the first wrong element, its right value, and the thread that wrote it."""
        output = next(name for name, indices in wrong.items() if len(indices))
        indices, expected = wrong[output], self.case.expected[output]
        index = int(indices[0])
        element = f"{output}[{index}]"
        if expected.ndim > 1:
            element += " (row {}, column {})".format(*divmod(index, expected.shape[1]))
        is_output = traced["array"] == self.names().get(output, output)
        written = words(traced[is_output & (traced["kind"] != "load")]).groupby("element").last()
        if self.is_unwritten(output) and index not in written.index:
            missing = int((~np.isin(indices, written.index)).sum())
            return f"No thread writes {element}. Not written: {missing} of {expected.size} elements"
        actual = values[output].flat[index]
        message = f"{element} is {actual:g} and should be {expected.flat[index]:g}"
        same_value = np.flatnonzero(expected == actual)
        if len(same_value) == 1 and actual:
            message += f", which is right for {output}[{same_value[0]}]"
        if index in written.index:
            write = written.loc[index]
            thread = 32 * write["warp"] + write["lane"]
            message += f"; thread {thread} of block {write['block']} wrote it last "
            message += f"(line {write['line']})"
        else:
            message += "; no thread writes it"
        return f"{message}. Wrong: {len(indices)} of {expected.size} elements"

    def draw(self, wrong: Mapping[str, Array], traced: pd.DataFrame | None = None) -> str:
        """Draw a trace; without one, trace the accesses before the kernel's error."""
        names, mistake = self.names(), traced is None
        if traced is None:
            traced = self.run(trace_kernel, to_the_mistake=True)
        panels = [
            Panel(names.get(name, name), value.size, [*map(int, wrong.get(name, ()))])
            for name, value in self.case.arguments.items()
            if isinstance(value, np.ndarray)
        ]
        return picture(traced, panels, self.case.block, self.case.threads, mistake)
