"""The real graphs that ship with the package, with their sources."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelviz.datasets.readers.npz import read_npz
from accelviz.graph import Graph

_FOLDER = Path(__file__).resolve().parent / "graphs"


@functools.cache
def bundled_graphs() -> dict[str, dict[str, Any]]:
    """Return name to facts (nodes, edges, max_degree, source, ...) of the bundled graphs."""
    index: dict[str, dict[str, Any]] = json.loads((_FOLDER / "index.json").read_text("utf-8"))
    return dict(sorted(index.items(), key=lambda item: int(item[1]["edges"])))


@functools.lru_cache(maxsize=4)
def load_bundled(name: str) -> Graph:
    """Load a bundled graph by its exact name; the last few stay loaded."""
    source = bundled_graphs()[name]["source"]
    return replace(read_npz(_FOLDER / f"{name}.npz", name=name, source=source), kind="real")
