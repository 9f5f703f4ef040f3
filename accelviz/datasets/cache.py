"""Made-up graphs kept on disk, each with a checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from accelviz.files import cache_folder, written_whole
from accelviz.graph import Graph

#: Part of every key; raise it when a generator starts to draw other graphs.
_GENERATION = 1


def cached(make: Callable[..., Graph], what: str, arguments: Mapping[str, Any]) -> Graph:
    """Return `make(what, **arguments)`, from the disk if it was made before.

    Parameters
    ----------
    make : callable
        Gives the same graph for the same arguments; all weights 1.
    what : str
        Name of the graph, the first part of the file's name.
    arguments : mapping
        The other arguments, each with a `repr` that determines it.

    Returns
    -------
    Graph
        A file whose SHA-256 is not the one noted when it was written is made again.
    """
    key = repr((_GENERATION, make.__name__, what, sorted(arguments.items())))
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    path = cache_folder() / "graphs" / f"{what.lower()}-{digest}.npz"
    note = path.with_suffix(".json")
    found = _read(path, note)
    if found is None:
        found = make(what, **arguments)
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as temporary:
            np.savez(
                temporary, row_pointers=found.row_pointers, column_indices=found.column_indices
            )
            kept = {key: getattr(found, key) for key in ("shape", "name", "source", "kind")}
            facts = {"sha256": _sha256(temporary), **kept}
        with written_whole(note) as temporary:
            temporary.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    return found


def _read(path: Path, note: Path) -> Graph | None:
    try:
        facts = json.loads(note.read_text("utf-8"))
        if _sha256(path) != facts.pop("sha256"):
            return None
    except (OSError, ValueError, KeyError):
        return None
    with np.load(path, allow_pickle=False) as archive:
        row_pointers, column_indices = archive["row_pointers"], archive["column_indices"]
    values = np.ones(column_indices.size, dtype=np.float32)
    return Graph(row_pointers, column_indices, values, **facts)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
