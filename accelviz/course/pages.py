"""Writes lessons as web pages with nbconvert."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from accelviz.errors import ArgumentError

_NOTEBOOK_LINK = re.compile(r"(\]\((?![a-z]+:)[^)\s#]*)\.ipynb")


def write(
    folder: Path,
    output: Path,
    *,
    run: bool = True,
    seconds: float = 600.0,
    progress: Callable[[str], object] = lambda _: None,
) -> tuple[list[Path], dict[str, str]]:
    """Write a page for each notebook of a folder, its `electives/` and `puzzles/`, and an index.

    Parameters
    ----------
    folder : Path
        Folder of the notebooks.
    output : Path
        Folder of the pages; created if it does not exist.
    run : bool
        Run the notebooks, without a GPU. Puzzles are never run.
    seconds : float
        Time limit of a cell.
    progress : callable
        Called with the name of each notebook before it is run.

    Returns
    -------
    list of Path
        The pages, the index first.
    dict of str to str
        Reasons by the names of notebooks that failed and have no page.

    Raises
    ------
    ArgumentError
        If the folder has no notebook, or one that cannot be read.
    """
    patterns = ("*.ipynb", "electives/*.ipynb", "puzzles/*.ipynb")
    paths = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    if not paths:
        raise ArgumentError(str(folder), "it has no notebook", "a folder with notebooks")
    failed, links, pages = {}, ["# The course"], [output / "index.html"]
    for path in paths:
        try:
            notebook = nbformat.read(path, as_version=4)
        except (ValueError, AttributeError) as error:
            raise ArgumentError(str(path), f"it cannot be read: {error}", "a notebook") from error
        if run and path.parent.name != "puzzles":
            progress(path.stem)
            if reason := _execute(path, notebook, seconds):
                failed[path.name] = reason
                continue
        page = path.relative_to(folder).with_suffix(".html")
        _write_page(output / page, notebook, path.stem)
        heading = re.search(r"^# (.+)$", "\n".join(cell.source for cell in notebook.cells), re.M)
        links.append(f"- [{heading[1] if heading else path.stem}]({page.as_posix()})")
        pages.append(output / page)
    index = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("\n\n".join(links))])
    _write_page(pages[0], index, "The course")
    return pages, failed


def _execute(path: Path, notebook: Any, seconds: float) -> str:
    """Run a notebook in its folder, without a GPU; return the reason of a failure, else ""."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    client = NotebookClient(
        notebook,
        timeout=int(seconds),
        kernel_name="python3",
        store_widget_state=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    silent: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        client.execute(env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, **silent)
    except CellExecutionError as error:
        return f"{error.ename}: {error.evalue}".strip(": \n").splitlines()[0]
    except CellTimeoutError:
        return f"a cell took more than {seconds:g} s"
    except DeadKernelError:
        return "the kernel died"
    return ""


def _write_page(path: Path, notebook: Any, title: str) -> None:
    from nbconvert import HTMLExporter

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _NOTEBOOK_LINK.sub(r"\1.html", cell.source)
        elif cell.metadata.get("jupyter", {}).get("source_hidden"):  # answers of predictions
            cell.metadata["transient"] = {"remove_source": True}
    html, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": title}})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html, encoding="utf-8")
