"""Messages between the judge and a submission's process, which it does not trust.

A message is JSON of limited length. It holds numbers, text, sequences, and arrays as base64, never
code or pickles. Other objects of a submission stay in its process and are represented by handles.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

#: Default limit of a message, and of the reply to a cell (its outputs as JSON), in bytes. Parsed,
#: a message takes up to 25 times its length: `[]` is an object of 56 bytes.
MAX_BYTES, MAX_CELL_BYTES = 1 << 25, 8 << 20
#: `dtype.kind` of arrays that are sent as bytes: bool, signed, unsigned, float.
_NUMBERS = "biuf"
_SEQUENCES: dict[str, Any] = {"tuple": tuple, "list": list, "set": set}
DIED = "the submission's process died (a crash, or out of memory)"


class SubmissionLostError(BaseException):
    """The submission's process has ended, or has sent a message that violates the protocol.

    No Exception, as a test that catches errors of the student's code must not catch it.
    """


@contextlib.contextmanager
def deadline(seconds: float, error: type[BaseException]) -> Iterator[None]:
    """Raise `error` in the main thread if the block takes longer, each second until it ends."""

    def stop(*_: object) -> None:
        raise error

    previous_handler = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(1e-3, seconds), 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)


class Line:
    """An end of the line between the judge and a submission's process.

    Messages are of JSON's types; on the line they are preceded by their length in bytes. `wait` is
    called with the event to wait for before each read and write of a socket that does not block.
    """

    def __init__(self, end: socket.socket, wait: Callable[[int], object] = bool) -> None:
        self._socket, self._wait = end, wait

    def send(self, message: Any) -> None:
        """Send a message; raises SubmissionLostError if the other process is gone."""
        data = json.dumps(message).encode()
        left = memoryview(struct.pack("!Q", len(data)) + data)
        while left:
            self._wait(select.POLLOUT)
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise SubmissionLostError(DIED) from error

    def receive(self, limit: int = MAX_BYTES) -> Any:
        """Receive a message.

        Raises SubmissionLostError if the other process is gone, or if the message is longer than
        `limit` bytes or no JSON.
        """
        (length,) = struct.unpack("!Q", self._read(8))
        if length > limit:
            raise SubmissionLostError(f"an answer is larger than {limit >> 20} MiB")
        try:
            return json.loads(self._read(length))
        except (ValueError, RecursionError, MemoryError) as error:
            raise SubmissionLostError("an answer is no plain data") from error

    def _read(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            self._wait(select.POLLIN)
            try:
                part = self._socket.recv(min(size - len(data), 1 << 20))
            except OSError as error:
                raise SubmissionLostError(DIED) from error
            if not part:
                raise SubmissionLostError(DIED)
            data += part
        return data


def encode(value: Any, handle: Callable[[Any], Any]) -> Any:
    """Convert a value to JSON's types; `handle` maps an object that is no plain data to a number.

    An object of another type than None, bool, number and text becomes a dict with one item, whose
    key is its type: {"list": [...]}, {"numbers": [dtype, shape, base64]}, {"handle": 3}.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _NUMBERS:
        shape = list(value.shape) if isinstance(value, np.ndarray) else None
        return {"numbers": [value.dtype.str, shape, _base64(value.tobytes())]}
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Decimal | Fraction):
        return float(value)
    if isinstance(value, np.ndarray):
        return {"list": [encode(item, handle) for item in value.tolist()]}
    if isinstance(value, bytes):
        return {"bytes": _base64(value)}
    for kinds, name in ((tuple, "tuple"), (list | range, "list"), (set | frozenset, "set")):
        if isinstance(value, kinds):
            return {name: [encode(item, handle) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(item, handle) for item in pair] for pair in value.items()]}
    pandas = sys.modules.get("pandas")  # without it there can be no DataFrame
    if pandas is not None and isinstance(value, pandas.DataFrame):
        # by position: a name may be there twice
        columns = {str(name): value.iloc[:, k].to_numpy() for k, name in enumerate(value.columns)}
        return {"table": encode(columns, handle)}
    if hasattr(type(value), "__array__"):  # such as a Series of pandas
        return encode(np.asarray(value), handle)
    if isinstance(value, Iterable) and not callable(value):  # such as a generator
        return {"list": [encode(item, handle) for item in value]}
    return {"handle": handle(value)}


def decode(tree: Any, handle: Callable[[Any], Any]) -> Any:
    """Convert a result of `encode` back to a value; `handle` maps a number to an object.

    Raises SubmissionLostError if `tree` is no result of `encode`.
    """
    try:
        return _decoded(tree, handle)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError, MemoryError) as bad:
        raise SubmissionLostError("an answer is no plain data") from bad


def _decoded(tree: Any, handle: Callable[[Any], Any]) -> Any:
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    ((kind, content),) = tree.items()
    if kind == "numbers":
        return _numbers(*content)
    if kind == "bytes":
        return base64.b64decode(content)
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](_decoded(item, handle) for item in content)
    if kind == "dict":
        return {_decoded(key, handle): _decoded(value, handle) for key, value in content}
    if kind == "table":
        import pandas as pd

        return pd.DataFrame(_decoded(content, handle))
    if kind == "handle":
        return handle(content)
    raise ValueError(kind)


def _numbers(dtype_name: str, shape: list[int] | None, data: str) -> Any:
    """Return an array, or a scalar if `shape` is None."""
    dtype, raw = np.dtype(str(dtype_name)), base64.b64decode(data)
    sizes = [int(size) for size in shape or ()]
    if dtype.kind not in _NUMBERS or min(sizes, default=0) < 0:
        raise ValueError(dtype_name)
    if math.prod(sizes) * dtype.itemsize != len(raw):
        raise ValueError(shape)
    array = np.frombuffer(raw, dtype).reshape(sizes).copy()
    return array[()] if shape is None else array


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
