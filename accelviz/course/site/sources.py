"""What the course's web pages are made from: lessons, and the documents that they lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat

from accelviz.course.autograde.assignments import read_notebook
from accelviz.errors import ArgumentError

#: Folder of the puzzles, beside the lessons.
PUZZLES = "puzzles"
_LESSON = re.compile(r"\d\d+-.*")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
#: Where a link begins that leads out of the course, or stays on its page.
_ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|#|/")


@dataclass(frozen=True, eq=False)
class Source:
    """What a page is made from.

    Parameters
    ----------
    path : Path
        A notebook, or a Markdown file that one links to.
    page : str
        The page's path in the output folder, with slashes.
    notebook : NotebookNode
        Its content.
    """

    path: Path
    page: str
    notebook: Any

    @property
    def is_notebook(self) -> bool:
        """Whether it is a notebook, and not a text beside them."""
        return self.path.suffix == ".ipynb"

    @property
    def is_lesson(self) -> bool:
        """Whether it is a notebook named such as `01-from-graph-to-blocks.ipynb`."""
        return self.is_notebook and bool(_LESSON.fullmatch(self.path.stem))

    @property
    def is_puzzles(self) -> bool:
        """Whether it is a notebook of puzzles, which only its reader can fill in and run."""
        return self.is_notebook and self.path.parent.name == PUZZLES

    @property
    def title(self) -> str:
        """The first heading, else the file's name."""
        found = re.search(r"^# +(.+)$", self._beginning, re.M)
        return found.group(1).strip() if found else self.path.stem

    @property
    def goals(self) -> list[str]:
        """The list after "You will be able to" in the first cell, in Markdown."""
        lines = self._beginning.partition("ou will be able to")[2].splitlines()
        found: list[str] = []
        for line in lines[1:]:
            if line.startswith("- "):
                found.append(line[2:].strip())
            elif found and line.startswith("  "):
                found[-1] += f" {line.strip()}"
            elif line.strip():
                break
        return found

    @property
    def minutes(self) -> int | None:
        """How long the first cell says that it takes."""
        found = re.search(r"takes about (\d+) minutes", self._beginning)
        return int(found.group(1)) if found else None

    @property
    def _beginning(self) -> str:
        cells = self.notebook.cells
        return str(cells[0].source) if cells and cells[0].cell_type == "markdown" else ""

    def links(self) -> Iterator[Path]:
        """Give the files that its text links to, whether they exist or not."""
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown":
                for link in _LINK.findall(cell.source):
                    if (path := self.linked(link)[0]) is not None:
                        yield path

    def linked(self, link: str) -> tuple[Path | None, str]:
        """Return the file that a link means, None if none, and the place in it."""
        if _ELSEWHERE.match(link):
            return None, ""
        path, _, place = link.partition("#")
        return (self.path.parent / unquote(path)).resolve(), place


def find_sources(folder: Path) -> list[Source]:
    """Find a folder's notebooks, lessons first, its puzzles, and Markdown files they lead to.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    list of Source
        Markdown files are those that some page links to, beside the folder or below.

    Raises
    ------
    ArgumentError
        If there is no notebook in the folder, or one that cannot be read.
    """
    if not folder.is_dir():
        raise ArgumentError(str(folder), "there is no such folder", "a folder of notebooks")
    found = [
        Source(path, path.relative_to(folder).with_suffix(".html").as_posix(), _notebook(path))
        for path in [*sorted(folder.glob("*.ipynb")), *sorted(folder.glob(f"{PUZZLES}/*.ipynb"))]
    ]
    if not found:
        raise ArgumentError(str(folder), "there is no notebook in it", "a folder of notebooks")
    found.sort(key=lambda each: not each.is_lesson)
    root = folder.resolve().parent
    known = set()
    for source in found:  # which grows
        for path in source.links():
            if path.suffix == ".md" and path not in known and path.is_relative_to(root):
                known.add(path)
                if path.is_file():
                    page = path.relative_to(root).with_suffix(".html").as_posix()
                    cells = [nbformat.v4.new_markdown_cell(path.read_text("utf-8"))]
                    found.append(Source(path, page, nbformat.v4.new_notebook(cells=cells)))
    return found


def _notebook(path: Path) -> Any:
    try:
        return read_notebook(path)
    except (OSError, ValueError, AttributeError) as error:  # the last of JSON of another shape
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArgumentError(str(path), f"it cannot be read: {reason}", "a notebook") from error
