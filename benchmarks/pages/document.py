"""Documents with generated sections between marks, and the parts of sections: tables, pictures."""

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
    """The recorded tables of a folder, by file name without ending; read at first access."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> pd.DataFrame:
        """Read a table; raises MissingTableError if there is no such file."""
        if (table := self.optional(name)) is None:
            raise MissingTableError(name)
        return table

    def optional(self, name: str) -> pd.DataFrame | None:
        """Return a table, or None if there is no such file."""
        if name not in self:
            paths = sorted(self.folder.glob(f"{name}.csv*"))
            if not paths:
                return None
            self[name] = pd.read_csv(paths[0])
        return self[name]


@dataclass(frozen=True)
class Picture:
    """A figure of a section, and the name of its file in docs/figures."""

    figure: Any
    name: str
    alt: str
    dpi: int = DPI
    tight: bool = False

    def saved(self, docs: Path) -> str:
        """Save the figure; return the line of Markdown that includes it, "" without alt text."""
        folder = docs / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        options = {"bbox_inches": "tight", "metadata": {"Software": None}} if self.tight else {}
        self.figure.savefig(folder / f"{self.name}.png", dpi=self.dpi, **options)
        return f"![{self.alt}](figures/{self.name}.png)" if self.alt else ""


@dataclass(frozen=True)
class Listing:
    """A table that is too long for its page: the name of its file in docs/tables, and its title."""

    rows: pd.DataFrame
    name: str
    title: str

    def saved(self, docs: Path) -> str:
        """Save the table as CSV; return a line of Markdown that links to it."""
        folder = docs / "tables"
        folder.mkdir(parents=True, exist_ok=True)
        text = self.rows.to_csv(index=False, float_format="%.4g", lineterminator="\n")
        (folder / f"{self.name}.csv").write_text(text, "utf-8")
        return f"[{self.title}](tables/{self.name}.csv) ({len(self.rows):,} rows)"


Parts = str | Sequence[str | Picture | Listing]
#: Function from the recorded tables to the paragraphs, tables and pictures of a section.
Section = Callable[[Results], Parts]


@dataclass(frozen=True)
class Page:
    """Generated sections of a document in docs/, by the name in their marks.

    With `one_machine`, a section whose results are missing becomes empty, because its old numbers
    may be from another machine than the rest. Otherwise it stays unchanged.
    """

    document: str
    sections: Mapping[str, Section]
    one_machine: bool = False

    def renew(self, results: Results, text: str, docs: Path) -> str:
        """Return the document's text with regenerated sections; save their files below `docs`."""
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
                texts = (part if isinstance(part, str) else part.saved(docs) for part in parts)
                parts = "\n\n".join(filter(None, texts))
            text = replace_section(text, name, parts)
        return text


def replace_section(text: str, name: str, section: str) -> str:
    """Replace the text between the marks `<!-- name -->` and `<!-- end of name -->`."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    pattern = re.escape(start) + ".*?" + re.escape(end)
    text, count = re.subn(pattern, lambda _: start + section + end, text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"the document has no marks for {name}")
    return text


class _Cells(string.Formatter):
    """Formatter of cells: the format "ratio" makes ratios below 1 bold; NaN becomes a dash."""

    def format_field(self, value: Any, form: str) -> str:
        if isinstance(value, float) and math.isnan(value):
            return "–"
        return format_ratio(value) if form == "ratio" else super().format_field(value, form)


def table(columns: Iterable[tuple[str, str]], rows: pd.DataFrame | Iterable[Any]) -> str:
    """Return a Markdown table; a column is a heading and the format of its cells.

    A format such as "{ours:.1f}" names columns of `rows`, a DataFrame with its index, or mappings.
    """
    if isinstance(rows, pd.DataFrame):
        rows = rows.reset_index().to_dict("records")
    heads, forms = zip(*columns, strict=True)
    cells = _Cells()
    return markdown(heads, [[cells.vformat(form, (), row) for form in forms] for row in rows])


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]], align: str = "---:") -> str:
    """Return a Markdown table; all columns except the first are right-aligned."""
    rows = [head, ["---", *[align] * (len(head) - 1)], *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


def format_ratio(ratio: float) -> str:
    """Format a speedup; bold if below 1."""
    if pd.isna(ratio):
        return "–"
    return f"{ratio:.2f}" if ratio >= 1 else f"**{ratio:.2f}**"


def mean_of(ratios: pd.Series) -> float:
    """Return the geometric mean of the ratios that are not NaN."""
    return geometric_mean(ratios.dropna())


def paper_name(name: str) -> str:
    """Return a graph's name as in Table I, starred if its degrees are approximate."""
    star = "\\*" if "-approximate" in name else ""
    for ending in ("-shuffled", "-twin", "-approximate"):
        name = name.removesuffix(ending)
    return name + star


def measured_on(rows: pd.DataFrame, dropped: int) -> str:
    """Return a sentence about a table's machine and the number of times without a partner."""
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
    """Return a sentence with the GPU and the commits of a table."""
    commits = dict.fromkeys(commit[:7] for commit in rows["commit"])
    plural = "s" if len(commits) > 1 else ""
    return f"One {rows['hardware'].iloc[0]}, commit{plural} {', '.join(commits)}."
