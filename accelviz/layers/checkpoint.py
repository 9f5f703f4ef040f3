"""Files of a training: its state and settings, from which it resumes, and its network."""

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
VERSION = 2
_ARRAYS = ("flat", "states", "best_flat")
_EXPECTED = "a file of train(..., checkpoint=...) or Training.save, or another path"


class Checkpoint:
    """A `.npz` file with the state of a training.

    Parameters
    ----------
    path : path
    settings : dict
        Arguments of the training as JSON takes them: model, options, seed, layers, start.
    data : NodeData
    argument : str
        Name of the caller's argument with the path, for errors.

    Raises
    ------
    ArgumentError
        If the path is none that ends in .npz, or an argument of a layer cannot be stored.
    """

    def __init__(
        self, path: Any, settings: dict[str, Any], data: NodeData, argument: str = "checkpoint"
    ) -> None:
        self.path, self.argument = checked_path(argument, path), argument
        self.settings = {**settings, "data": data.name, "data_sha256": fingerprint(data)}
        try:
            json.dumps(self.settings)
        except TypeError as error:
            problem = f"an argument of a layer cannot be stored ({error})"
            raise ArgumentError(argument, problem, "layers made from numbers and text") from error

    def write(self, state: dict[str, Any]) -> None:
        """Write a state; the previous file is replaced once the new one is complete."""
        arrays = {name: state[name] for name in _ARRAYS}
        scalars = {name: value for name, value in state.items() if name not in _ARRAYS}
        about = {"version": VERSION, "settings": self.settings, "state": scalars}
        text = json.dumps({**about, "sha256": _digest(arrays, about)})
        with written_whole(self.path) as temporary:
            np.savez(temporary, about=np.array(text), **arrays)

    def read(self) -> dict[str, Any] | None:
        """Return the state in the file, or None if there is no file.

        Raises
        ------
        ArgumentError
            If the file is damaged, or is of another training. The message names the difference.
        """
        if not self.path.exists():
            return None
        settings, state = read_file(self.argument, self.path)
        for name, value in self.settings.items():
            if settings.get(name) != value:
                difference = {
                    "data_sha256": "its graph, features, labels or split differ",
                    "layers": "its layers differ",
                    "start": "it started from other parameters",
                }.get(name, f"{name} is {settings.get(name)!r}, not {value!r}")
                problem = f"{self.path} is of another training: {difference}"
                raise ArgumentError(self.argument, problem, "the same arguments, or another path")
        return state


def checked_path(argument: str, path: Any) -> Path:
    """Return a path that ends in .npz, or raise ArgumentError."""
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(argument, f"got {path!r}", "a path that ends in .npz")
    if Path(path).suffix != ".npz":
        raise ArgumentError(argument, f"{Path(path).name}", "a name that ends in .npz")
    return Path(path)


def read_file(argument: str, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings and the state in a file; raises ArgumentError if it is damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in _ARRAYS}
            about = json.loads(str(archive["about"]))
        digest = about.pop("sha256")
        version, settings, scalars = about["version"], about["settings"], about["state"]
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        problem = f"{path} is damaged or no checkpoint ({str(error).strip()[:100]})"
        raise ArgumentError(argument, problem, _EXPECTED) from error
    if version != VERSION:
        problem = f"{path} is of version {version}"
        raise ArgumentError(argument, problem, f"version {VERSION}, or another path")
    if digest != _digest(arrays, about):
        problem = f"{path} is damaged: its content does not match its checksum"
        raise ArgumentError(argument, problem, _EXPECTED)
    return settings, {**arrays, **scalars}


def fingerprint(data: NodeData) -> str:
    """Return the SHA-256 of a graph with its features, labels and split."""
    parts = [data.labels, *(getattr(data, split) for split in SPLITS)]
    for part in (data.graph, data.features):
        is_graph = isinstance(part, Graph)
        parts += [part.row_pointers, part.column_indices, part.values] if is_graph else [part]
    return digest_of(parts)


def digest_of(arrays: Any, text: str = "") -> str:
    """Return the SHA-256 of a text and the bytes of arrays."""
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _digest(arrays: dict[str, npt.NDArray[Any]], about: dict[str, Any]) -> str:
    return digest_of((arrays[name] for name in _ARRAYS), json.dumps(about, sort_keys=True))
