"""The course as web pages: lessons are run without a GPU and written with their results.

The pages need no script, no server and no network: formulas are drawn here, pictures are inside.
"""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat

from accelviz.course.site.rendering import INDEX, Renderer
from accelviz.course.site.sources import Source, find_sources

_PUZZLES_HERE = (
    "**On this page no kernel runs.** Here puzzles can be read, with hints and solutions folded; "
    "to do them, open the notebook in Jupyter (`make lab`, or `accelviz lab`)."
)


@dataclass
class Written:
    """What `write` did.

    Attributes
    ----------
    pages : list of Path
        The index first.
    failed : dict of str to str
        Notebooks that raised an error or took too long, with the reason; they have no page.
    formulas : list of str
        Formulas that could not be drawn, and stand as TeX.
    """

    pages: list[Path] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    formulas: list[str] = field(default_factory=list)


def write(
    folder: Path,
    output: Path,
    *,
    run: bool = True,
    seconds: float = 600.0,
    progress: Callable[[str], object] = lambda _: None,
) -> Written:
    """Write a page for each notebook of a folder, and an index of them.

    Markdown files beside the folder that a page links to become pages too; a link to anything else
    that has no page becomes text.

    Parameters
    ----------
    folder : Path
        Lessons are its notebooks named such as `01-from-graph-to-blocks.ipynb`.
    output : Path
        The folder of the pages; made if it does not exist.
    run : bool
        Run the notebooks, without a GPU; else their pages show no results.
    seconds : float
        Time limit of a cell.
    progress : callable
        Is told which notebook is being run.

    Returns
    -------
    Written

    Raises
    ------
    ArgumentError
        If there is no notebook in the folder, or one that cannot be read.
    """
    done, shown = Written(), []
    for source in find_sources(folder):
        if source.is_puzzles:
            source.notebook.cells.insert(1, nbformat.v4.new_markdown_cell(_PUZZLES_HERE))
        elif run and any(cell.cell_type == "code" for cell in source.notebook.cells):
            progress(source.path.stem)
            if reason := execute(source.path, source.notebook, seconds):
                done.failed[source.path.name] = reason
                continue
        shown.append(source)
    index = Source(folder / INDEX, INDEX, _index(folder, shown, run))
    lessons = [None, *(each for each in shown if each.is_lesson), None]
    beside = {
        lesson: (lessons[i - 1], lessons[i + 1])
        for i, lesson in enumerate(lessons)
        if lesson is not None
    }
    renderer = Renderer({each.path.resolve(): each.page for each in [index, *shown]})
    for source in [index, *shown]:
        target = output / source.page
        target.parent.mkdir(parents=True, exist_ok=True)
        page = renderer.page(source, *beside.get(source, (None, None)))
        target.write_text(page, encoding="utf-8")
        done.pages.append(target)
    done.formulas = sorted(renderer.unknown)
    return done


def execute(path: Path, notebook: Any, seconds: float = 600.0) -> str:
    """Run a notebook's cells in its folder, with no GPU; say what went wrong, "" if nothing.

    Parameters
    ----------
    path : Path
        Where it is.
    notebook : NotebookNode
        Receives the outputs.
    seconds : float
        Time limit of a cell.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    client = NotebookClient(
        notebook,
        timeout=math.ceil(seconds),
        kernel_name="python3",
        # with its state, a page would ask the network for the script of a panel
        store_widget_state=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    nowhere = subprocess.DEVNULL  # a kernel's own words are not for the terminal
    without_gpu = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    try:
        client.execute(env=without_gpu, stdout=nowhere, stderr=nowhere)
    except CellExecutionError as error:
        return f"{error.ename}: {error.evalue}".strip(": \n").splitlines()[0]
    except CellTimeoutError:
        return f"a cell took more than {seconds:g} s"
    except DeadKernelError:
        return "the kernel died"
    return ""


def _index(folder: Path, sources: Sequence[Source], run: bool) -> Any:
    """Write the index in Markdown: the lessons with their goals, then what stands beside them."""
    how = "They ran on this day without a GPU: where one is asked for, recorded times stand."
    lines = [
        "# The course, to be read",
        "",
        "Predictions come before answers, which open once you have entered yours. To change the "
        "lessons and run them, open the notebooks themselves.",
        "",
        f"{date.today():%d %B %Y}. {how if run else 'They have not been run.'}",
    ]
    others, puzzles = [], []
    for source in sources:
        target = os.path.relpath(source.path.resolve(), folder.resolve())
        link = f"[{source.title}]({quote(Path(target).as_posix())})"
        if source.is_puzzles:
            puzzles.append(f"- {link}, {source.minutes} minutes")
            continue
        if not source.is_lesson:
            others.append(f"- {link}")
            continue
        told = [f"{source.minutes} minutes."] if source.minutes else []
        told += ["After it you can"] if source.goals else []
        lines += ["", f"## {link}", "", " ".join(told), ""]
        lines += [f"- {goal}" for goal in source.goals]
    if puzzles:
        about = "Small CUDA kernels to complete. These pages show them; they run in Jupyter."
        lines += ["", "## Puzzles", "", about, "", *puzzles]
    if others:
        lines += ["", "## Beside the lessons", "", *others]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("\n".join(lines))])
