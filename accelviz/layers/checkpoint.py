"""Checkpoints: the state and the settings of a training as a file, from which it can resume."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.datasets.nodes import SPLITS, NodeData
from accelviz.errors import ArgumentError
from accelviz.files import written_whole
from accelviz.graph import Graph

#: Version of the file format.
VERSION = 1
_ARRAYS = ("flat", "states", "best_flat")
_EXPECTED = "a file that train(..., checkpoint=...) wrote, or another path"


class Checkpoint:
    """A `.npz` file with the state of a training.

    Parameters
    ----------
    path : path
    settings : dict
        Arguments of the training: model, options, seed, optimiser.
    data : NodeData
    shapes : dict of str to tuple
        Shapes of the parameters by name.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: dict[str, Any],
        data: NodeData,
        shapes: dict[str, tuple[int, ...]],
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ArgumentError("checkpoint", f"got {path!r}", "a path that ends in .npz")
        self.path = Path(path)
        if self.path.suffix != ".npz":
            raise ArgumentError("checkpoint", f"{self.path.name}", "a name that ends in .npz")
        self.settings = {**settings, "data": data.name, "data_sha256": fingerprint(data)}
        self.settings["shapes"] = {name: list(shape) for name, shape in shapes.items()}

    def write(self, state: dict[str, Any]) -> None:
        """Write a state; the previous file is replaced once the new one is complete."""
        arrays = {name: state[name] for name in _ARRAYS}
        scalars = {name: value for name, value in state.items() if name not in _ARRAYS}
        about = {"version": VERSION, "settings": self.settings, "state": scalars}
        about["sha256"] = _digest(arrays, scalars)
        with written_whole(self.path) as temporary:
            np.savez(temporary, about=np.array(json.dumps(about)), **arrays)

    def read(self) -> dict[str, Any] | None:
        """Return the state in the file, or None if there is no file.

        Raises
        ------
        ArgumentError
            If the file is damaged, or is of another training. The message names the difference.
        """
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in _ARRAYS}
                about = json.loads(str(archive["about"]))
            scalars = about["state"]
            intact = about["sha256"] == _digest(arrays, scalars)
            version, settings = about["version"], about["settings"]
        except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
            problem = f"{self.path} is damaged or no checkpoint ({str(error).strip()[:100]})"
            raise ArgumentError("checkpoint", problem, _EXPECTED) from error
        if not intact:
            problem = f"{self.path} is damaged: its content does not match its checksum"
            raise ArgumentError("checkpoint", problem, _EXPECTED)
        if version != VERSION:
            problem = f"{self.path} is of version {version}"
            raise ArgumentError("checkpoint", problem, f"version {VERSION}, or another path")
        for name, value in self.settings.items():
            if settings.get(name) != value:
                difference = f"{name} is {settings.get(name)!r}, not {value!r}"
                if name == "data_sha256":
                    difference = "its graph, features, labels or split differ"
                problem = f"{self.path} is of another training: {difference}"
                raise ArgumentError("checkpoint", problem, "the same arguments, or another path")
        return {**arrays, **scalars}


def fingerprint(data: NodeData) -> str:
    """Return the SHA-256 of a graph with its features, labels and split."""
    parts = [data.labels, *(getattr(data, split) for split in SPLITS)]
    for part in (data.graph, data.features):
        is_graph = isinstance(part, Graph)
        parts += [part.row_pointers, part.column_indices, part.values] if is_graph else [part]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _digest(arrays: dict[str, npt.NDArray[Any]], scalars: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(scalars, sort_keys=True).encode())
    for name in _ARRAYS:
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()
