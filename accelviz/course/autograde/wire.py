"""Plain data over a socket, between a grader and a submission that it does not trust.

What crosses is numbers, text, arrays and tables, never code: JSON with arrays as bytes. A message
is as long as it says, and no longer than its reader allows. Whatever else a submission has stays
there and is named by a handle.
"""

from __future__ import annotations

import base64
import json
import math
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

_LENGTH = struct.Struct("!Q")
#: The longest message that is read, in bytes.
MOST_BYTES = 1 << 28
#: The longest answer to a cell, which is outputs of limited length and what JSON makes of them.
MOST_OF_A_CELL = 8 << 20
#: Kinds of NumPy's types that are plain numbers.
_NUMBERS = "biuf"
#: Why there is no answer.
DIED = "the submission's process died (a crash, or out of memory)"


class Lost(Exception):  # noqa: N818
    """The other side is gone, or does not keep to the rules."""


class Line:
    """One end of a connection.

    Parameters
    ----------
    connection : socket
        Connected; it is this object's from now on.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._buffer = bytearray()

    def send(self, message: Any, seconds: float | None = None) -> None:
        """Send what JSON can hold.

        Raises
        ------
        Lost
            If nobody is there any more.
        TimeoutError
            If the other side has not taken all of it after `seconds`.
        """
        data = json.dumps(message).encode()
        try:
            self.connection.settimeout(seconds)
            self.connection.sendall(_LENGTH.pack(len(data)) + data)
        except TimeoutError:
            raise
        except OSError as error:
            raise Lost(DIED) from error

    def receive(self, seconds: float | None = None, most: int = MOST_BYTES) -> Any:
        """Receive a message; after a TimeoutError, it may be waited for again.

        Raises
        ------
        Lost
            If the other side has gone, or sends what is too long or no JSON.
        TimeoutError
            If it is not there after `seconds`.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        self._fill(_LENGTH.size, deadline)
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > most:
            raise Lost(f"an answer is larger than {most >> 20} MiB")
        self._fill(_LENGTH.size + length, deadline)
        data = bytes(self._buffer[_LENGTH.size :])
        self._buffer.clear()
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Lost("an answer is no plain data") from error

    def _fill(self, size: int, deadline: float | None) -> None:
        while len(self._buffer) < size:
            if deadline is not None:
                self.connection.settimeout(max(1e-3, deadline - time.monotonic()))
            else:
                self.connection.settimeout(None)
            try:
                part = self.connection.recv(min(size - len(self._buffer), 1 << 20))
            except TimeoutError:
                raise
            except OSError:
                part = b""
            if not part:
                raise Lost(DIED)
            self._buffer += part


def encode(value: Any, handle: Callable[[Any], Any]) -> Any:
    """Turn a value into what JSON can hold.

    Parameters
    ----------
    value : object
    handle : callable
        Turns what is no plain data into something that JSON can hold.
    """
    if value is None or isinstance(value, bool | str):
        return value if value is None or isinstance(value, bool) else str(value)
    if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS:
        return {"scalar": [value.dtype.str, _text(value.tobytes())]}
    if isinstance(value, int | float):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
        plain = np.ascontiguousarray(value)
        return {"array": [plain.dtype.str, list(value.shape), _text(plain.tobytes())]}
    if isinstance(value, np.ndarray):
        return {"list": [encode(each, handle) for each in value.tolist()]}
    if isinstance(value, bytes):
        return {"bytes": _text(value)}
    for kind, name in ((tuple, "tuple"), (list | range, "list"), (set | frozenset, "set")):
        if isinstance(value, kind):
            return {name: [encode(each, handle) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(each, handle) for each in pair] for pair in value.items()]}
    if isinstance(value, pd.DataFrame):
        columns = [encode(value[name].to_numpy(), handle) for name in value.columns]
        return {"table": [[str(name) for name in value.columns], columns]}
    return {"handle": handle(value)}


def decode(tree: Any, handle: Callable[[Any], Any]) -> Any:
    """Turn a message back into a value.

    Parameters
    ----------
    tree : object
        From `receive`.
    handle : callable
        Finds what a handle stands for.

    Raises
    ------
    Lost
        If it is not what `encode` makes.
    """
    try:
        return _decoded(tree, handle)
    except Lost:
        raise
    except (TypeError, ValueError, KeyError, RecursionError, MemoryError) as error:
        raise Lost("an answer is no plain data") from error


def _decoded(tree: Any, handle: Callable[[Any], Any]) -> Any:
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    ((name, inside),) = tree.items()
    if name == "scalar":
        kind, data = inside
        return _array(kind, [], data)[()]
    if name == "array":
        return _array(*inside)
    if name == "bytes":
        return base64.b64decode(inside)
    if name in ("tuple", "list", "set"):
        return {"tuple": tuple, "list": list, "set": set}[name](
            _decoded(each, handle) for each in inside
        )
    if name == "dict":
        return {_decoded(key, handle): _decoded(value, handle) for key, value in inside}
    if name == "table":
        names, columns = inside
        found = [_decoded(each, handle) for each in columns]
        return pd.DataFrame(dict(zip(map(str, names), found, strict=True)))
    if name == "handle":
        return handle(inside)
    raise ValueError(name)


def _array(kind: str, shape: list[int], data: str) -> npt.NDArray[Any]:
    dtype = np.dtype(str(kind))
    if dtype.kind not in _NUMBERS:
        raise ValueError(kind)
    raw = base64.b64decode(data)
    sides = [int(side) for side in shape]
    if min(sides, default=0) < 0 or math.prod(sides) * dtype.itemsize != len(raw):
        raise ValueError(shape)
    return np.frombuffer(raw, dtype).reshape(sides).copy()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
