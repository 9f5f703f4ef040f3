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

#: The longest message that is read, in bytes.
MOST_BYTES = 1 << 28
#: The longest answer to a cell, which is outputs of limited length and what JSON makes of them.
MOST_OF_A_CELL = 8 << 20
#: Kinds of NumPy's types that are plain numbers.
_NUMBERS = "biuf"
_SEQUENCES: dict[str, Any] = {"tuple": tuple, "list": list, "set": set}
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

    Lost if the other side is gone, TimeoutError if it has not taken all of it after `seconds`.
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

    Lost if the other side is gone, or sends what is longer than `most` bytes or no JSON;
    TimeoutError if all of it is not there after `seconds`.
    """
    try:
        with deadline(seconds):
            return json.loads(connection.recv_bytes(most))
    except TimeoutError:
        raise
    except (EOFError, OSError) as error:
        long = "bad message length" in str(error)
        raise Lost(f"an answer is larger than {most >> 20} MiB" if long else DIED) from error
    except (ValueError, RecursionError) as error:
        raise Lost("an answer is no plain data") from error


def encode(value: Any, handle: Callable[[Any], Any]) -> Any:
    """Turn a value into what JSON can hold; `handle` does so with what is no plain data."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _NUMBERS:
        shape = list(value.shape) if isinstance(value, np.ndarray) else None
        return {"numbers": [value.dtype.str, shape, _text(value.tobytes())]}
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.ndarray):
        return {"list": [encode(item, handle) for item in value.tolist()]}
    if isinstance(value, bytes):
        return {"bytes": _text(value)}
    for kinds, name in ((tuple, "tuple"), (list | range, "list"), (set | frozenset, "set")):
        if isinstance(value, kinds):
            return {name: [encode(item, handle) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(item, handle) for item in pair] for pair in value.items()]}
    pandas = sys.modules.get("pandas")  # without which there is no table
    if pandas is not None and isinstance(value, pandas.DataFrame):
        columns = {str(name): value[name].to_numpy() for name in value.columns}
        return {"table": encode(columns, handle)}
    return {"handle": handle(value)}


def decode(tree: Any, handle: Callable[[Any], Any]) -> Any:
    """Turn a message from `receive` back into a value; Lost if it is not what `encode` makes.

    `handle` finds what a handle stands for.
    """
    try:
        return _decoded(tree, handle)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError, MemoryError) as bad:
        raise Lost("an answer is no plain data") from bad


def _decoded(tree: Any, handle: Callable[[Any], Any]) -> Any:
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    ((name, inside),) = tree.items()
    if name == "numbers":
        return _numbers(*inside)
    if name == "bytes":
        return base64.b64decode(inside)
    if name in _SEQUENCES:
        return _SEQUENCES[name](_decoded(item, handle) for item in inside)
    if name == "dict":
        return {_decoded(key, handle): _decoded(value, handle) for key, value in inside}
    if name == "table":
        import pandas as pd

        return pd.DataFrame(_decoded(inside, handle))
    if name == "handle":
        return handle(inside)
    raise ValueError(name)


def _numbers(kind: str, shape: list[int] | None, data: str) -> Any:
    dtype, raw = np.dtype(str(kind)), base64.b64decode(data)
    sides = [int(side) for side in shape or ()]
    if dtype.kind not in _NUMBERS or min(sides, default=0) < 0:
        raise ValueError(kind)
    if math.prod(sides) * dtype.itemsize != len(raw):
        raise ValueError(shape)
    array = np.frombuffer(raw, dtype).reshape(sides).copy()
    return array[()] if shape is None else array


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
