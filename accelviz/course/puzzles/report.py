"""What a check says, as a notebook and as a terminal show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape

from accelviz.course.puzzles.puzzle import Par

_CELL = 'style="text-align: right; padding: 2px 10px"'


@dataclass(frozen=True, repr=False)
class Report:
    """The result of a check.

    Attributes
    ----------
    name : str
        Of the puzzle.
    solved : bool
    said : str
        What is wrong, or that nothing is.
    par : Par
    cost : Par or None
        What the kernel took with the first input, if its results are right.
    draw : callable
        Draws `picture`.
    """

    name: str
    solved: bool
    said: str
    par: Par
    cost: Par | None = None
    draw: Callable[[], str] = str

    @cached_property
    def picture(self) -> str:
        """Who reads and writes what, HTML; "" if the kernel did not run."""
        return self.draw()

    @property
    def over(self) -> float:
        """Sectors and requests over the par, together; less than 0 below it."""
        if self.cost is None:
            return float("inf")
        sectors = self.cost.sectors - self.par.sectors
        return float(sectors + self.cost.requests - self.par.requests)

    @property
    def verdict(self) -> str:
        """A word or two: solved or not, at par or better."""
        if not self.solved or self.cost is None:
            return "Not yet"
        if self.cost == self.par:
            return "Solved, at par"
        more = too_many(self.cost, self.par)
        return f"Solved, with more {more} than the par" if more else "Solved, better than the par"

    def __repr__(self) -> str:
        text = f"{self.verdict}. {self.said}"
        if self.cost is not None:
            text += (
                f" Sectors: {self.cost.sectors} (par {self.par.sectors}), "
                f"requests: {self.cost.requests} (par {self.par.requests})."
            )
        return text

    def _repr_html_(self) -> str:
        mark = "✓" if self.solved else "✗"
        text = f"<p><b>{mark} {escape(self.verdict)}.</b> "
        text += f'<span style="white-space: pre-wrap">{escape(self.said)}</span></p>'
        if self.cost is not None:
            text += _table(("", "yours", "par"), _lines(self.cost, self.par))
        return f'<div style="max-width: 72em">{text}{self.picture}</div>'


_COUNTED = ("sectors", "requests")


def too_many(had: Par, par: Par) -> str:
    """Say of what a kernel takes more than the par, "" if of nothing."""
    return " and ".join(item for item in _COUNTED if getattr(had, item) > getattr(par, item))


def _lines(had: Par, par: Par) -> list[tuple[str, ...]]:
    return [(item, f"{getattr(had, item)}", f"{getattr(par, item)}") for item in _COUNTED]


def _table(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th {_CELL}>{escape(item)}</th>" for item in header)
    body = "".join(
        "<tr>" + "".join(f"<td {_CELL}>{escape(item)}</td>" for item in line) + "</tr>"
        for line in lines
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, repr=False)
class Scores:
    """The best answers of a session, by the names of the puzzles."""

    best: Mapping[str, Report]

    def _table(self) -> list[tuple[str, ...]]:
        return [
            (
                name,
                report.verdict,
                *(
                    f"{getattr(report.cost, item)} (par {getattr(report.par, item)})"
                    if report.cost
                    else ""
                    for item in _COUNTED
                ),
            )
            for name, report in self.best.items()
        ]

    def __repr__(self) -> str:
        solved = sum(report.solved for report in self.best.values())
        return f"{solved} solved, {len(self.best)} tried."

    def _repr_html_(self) -> str:
        table = _table(("puzzle", "", *_COUNTED), self._table()) if self.best else ""
        return f"<p>{escape(repr(self))}</p>{table}"
