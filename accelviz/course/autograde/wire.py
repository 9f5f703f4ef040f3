"""Plain data over a connection, between a grader and a submission that it does not trust.

What crosses is numbers, text, arrays and tables, never code: JSON with arrays as bytes. A message
has a limited length. Whatever else a submission has stays there and is named by a handle.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt

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


@contextlib.contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise TimeoutError in the main thread if the block takes longer; None for no limit."""
    if seconds is None:
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(1e-3, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def send(connection: Connection, message: Any, seconds: float | None = None) -> None:
    """Send what JSON can hold.

    Raises
    ------
    Lost
        If the other side is gone.
    TimeoutError
        If the other side has not taken all of it after `seconds`.
    """
    try:
        with deadline(seconds):
            connection.send_bytes(json.dumps(message).encode())
    except TimeoutError:
        raise
    except OSError as error:
        raise Lost(DIED) from error


def receive(connection: Connection, seconds: float | None = None, most: int = MOST_BYTES) -> Any:
    """Receive a message.

    Raises
    ------
    Lost
        If the other side is gone, or sends what is too long or no JSON.
    TimeoutError
        If all of it is not there after `seconds`.
    """
    try:
        with deadline(seconds):
            data = connection.recv_bytes(most)
    except TimeoutError:
        raise
    except EOFError as error:
        raise Lost(DIED) from error
    except OSError as error:
        long = "bad message length" in str(error)
        raise Lost(f"an answer is larger than {most >> 20} MiB" if long else DIED) from error
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Lost("an answer is no plain data") from error


def encode(value: Any, handle: Callable[[Any], Any]) -> Any:
    """Turn a value into what JSON can hold.

    Parameters
    ----------
    value : object
    handle : callable
        Turns what is no plain data into something that JSON can hold.
    """
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS:
        return {"scalar": [value.dtype.str, _text(value.tobytes())]}
    if isinstance(value, int | float):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
        plain = np.ascontiguousarray(value)
        return {"array": [plain.dtype.str, list(value.shape), _text(plain.tobytes())]}
    if isinstance(value, np.ndarray):
        return {"list": [encode(item, handle) for item in value.tolist()]}
    if isinstance(value, bytes):
        return {"bytes": _text(value)}
    for kind, name in ((tuple, "tuple"), (list | range, "list"), (set | frozenset, "set")):
        if isinstance(value, kind):
            return {name: [encode(item, handle) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(item, handle) for item in pair] for pair in value.items()]}
    pandas = sys.modules.get("pandas")  # without which there is no table
    if pandas is not None and isinstance(value, pandas.DataFrame):
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
            _decoded(item, handle) for item in inside
        )
    if name == "dict":
        return {_decoded(key, handle): _decoded(value, handle) for key, value in inside}
    if name == "table":
        names, columns = inside
        values = [_decoded(column, handle) for column in columns]
        import pandas as pd

        return pd.DataFrame(dict(zip(map(str, names), values, strict=True)))
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
