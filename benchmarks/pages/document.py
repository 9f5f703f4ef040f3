"""Documents with marked sections, and what sections are made of: tables, pictures, ratios."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from accelviz.measure.comparison import geometric_mean

ROOT = Path(__file__).resolve().parents[2]
DPI = 110


class MissingTableError(KeyError):
    """A recorded table that a section needs is not in the folder of results."""


class Results(dict[str, pd.DataFrame]):
    """The recorded tables of a folder, read when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> pd.DataFrame:
        """Read a table by its file's name without the ending."""
        if (table := self.optional(name)) is None:
            raise MissingTableError(name)
        return table

    def optional(self, name: str) -> pd.DataFrame | None:
        """Return a table, None if the folder does not have it."""
        if name not in self:
            paths = sorted(self.folder.glob(f"{name}.csv*"))
            if not paths:
                return None
            self[name] = pd.read_csv(paths[0])
        return self[name]


@dataclass(frozen=True)
class Picture:
    """A figure of a section, saved beside the document under a name."""

    figure: Any
    name: str
    alt: str
    dpi: int = DPI
    tight: bool = False

    def saved(self, folder: Path) -> str:
        """Save the figure, and return the line of Markdown that shows it."""
        folder.mkdir(parents=True, exist_ok=True)
        options = {"bbox_inches": "tight", "metadata": {"Software": None}} if self.tight else {}
        self.figure.savefig(folder / f"{self.name}.png", dpi=self.dpi, **options)
        return f"![{self.alt}](figures/{self.name}.png)" if self.alt else ""


Parts = str | Sequence[str | Picture]
#: Takes the recorded tables, returns paragraphs, tables and pictures.
Section = Callable[[Results], Parts]


@dataclass(frozen=True)
class Page:
    """Sections of a document in docs/, by the name in their marks.

    `one_machine`: a section whose results are missing is emptied, because its old numbers would
    stand beside those of another machine. Without it such a section stays as it is.
    """

    document: str
    sections: Mapping[str, Section]
    one_machine: bool = False

    def renew(self, results: Results, text: str, figures: Path) -> str:
        """Return the document's text with renewed sections; pictures go to a folder."""
        for name, section in self.sections.items():
            try:
                parts = section(results)
            except MissingTableError as missing:
                outcome = "is left out" if self.one_machine else "stays as it is"
                print(f"{name} {outcome}: there is no {results.folder / missing.args[0]}.csv")
                if not self.one_machine:
                    continue
                parts = ""
            if not isinstance(parts, str):
                texts = (part if isinstance(part, str) else part.saved(figures) for part in parts)
                parts = "\n\n".join(filter(None, texts))
            text = renewed(text, name, parts)
        return text


def renewed(text: str, name: str, section: str) -> str:
    """Put a section between the marks `<!-- name -->` and `<!-- end of name -->`."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    pattern = re.escape(start) + ".*?" + re.escape(end)
    text, count = re.subn(pattern, lambda _: start + section + end, text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"the document has no marks for {name}")
    return text


class _Cells(string.Formatter):
    """Formats of cells: "ratio" writes a loss in bold, and what was not measured is a dash."""

    def format_field(self, value: Any, form: str) -> str:
        if isinstance(value, float) and math.isnan(value):
            return "–"
        return times(value) if form == "ratio" else super().format_field(value, form)


def table(columns: Iterable[tuple[str, str]], rows: pd.DataFrame | Iterable[Any]) -> str:
    """Return a Markdown table of columns, each a head and the format of its cells.

    A format names the columns of `rows`, a frame (its index counts) or mappings: "{ours:.1f}".
    """
    if isinstance(rows, pd.DataFrame):
        rows = rows.reset_index().to_dict("records")
    heads, forms = zip(*columns, strict=True)
    cells = _Cells()
    return markdown(heads, [[cells.vformat(form, (), row) for form in forms] for row in rows])


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]], align: str = "---:") -> str:
    """Return a table; all columns but the first are numbers, flush right."""
    rows = [head, ["---", *[align] * (len(head) - 1)], *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


def times(ratio: float) -> str:
    """Write a speedup; a loss in bold."""
    if pd.isna(ratio):
        return "–"
    return f"{ratio:.2f}" if ratio >= 1 else f"**{ratio:.2f}**"


def mean_of(ratios: pd.Series) -> float:
    """Return the geometric mean of the ratios that were measured."""
    return geometric_mean(ratios.dropna())


def plain(name: str) -> str:
    """Return a graph's name as Table I has it, starred where its degrees are approximate."""
    star = "\\*" if "-approximate" in name else ""
    for ending in ("-shuffled", "-twin", "-approximate"):
        name = name.removesuffix(ending)
    return name + star


def measured_on(rows: pd.DataFrame, dropped: int) -> str:
    """Describe the machine of a table, and count the times without a partner in their run."""
    text = {
        name: ", ".join(dict.fromkeys(rows[name].dropna().astype(str)))
        for name in ("hardware", "driver", "cuda", "cupy", "date", "commit", "repeats")
    }
    sentence = (
        f"{text['hardware']} (driver {text['driver']}, CUDA {text['cuda']}, CuPy {text['cupy']}), "
        f"{text['date']}, commit {text['commit'] or 'unknown'}, median of {text['repeats']} runs"
    )
    if dropped:
        sentence += f"; {dropped} times had no partner in their own run and are left out"
    return sentence + "."


def machine(rows: pd.DataFrame) -> str:
    """Name the GPU of a table, and its commits."""
    commits = dict.fromkeys(commit[:7] for commit in rows["commit"])
    plural = "s" if len(commits) > 1 else ""
    return f"One {rows['hardware'].iloc[0]}, commit{plural} {', '.join(commits)}."
