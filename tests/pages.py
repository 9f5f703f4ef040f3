"""Pages of docs/ that scripts of benchmarks/pages write from what is recorded."""

import runpy
from pathlib import Path

PAGES = Path(__file__).resolve().parents[1] / "benchmarks" / "pages"


def script(monkeypatch, name):
    """Run a script of benchmarks/pages as a module; return its names."""
    monkeypatch.syspath_prepend(str(PAGES))
    return runpy.run_path(str(PAGES / f"{name}.py"))


def check_page(names, folder, *arguments):
    """The script's page is what the script writes; return its text."""
    written = names["PAGE"].read_text("utf-8")
    copy = folder / names["PAGE"].name
    copy.write_text(written, "utf-8")
    names["main"](copy, *arguments)
    assert copy.read_text("utf-8") == written
    return written
