"""Packs what the page draws from: a header in JSON, then typed arrays. `src/pack.ts` reads it."""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: Integer types that both sides know, by NumPy's short name, the smallest first.
_TYPES = ("u1", "u2", "u4", "i4")
_ALIGNED = 8


@dataclass(frozen=True, eq=False)
class Differences:
    """An array of integers that is sent as differences, which compress well where it ascends."""

    array: npt.NDArray[Any]


def smallest(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the numbers in the smallest type that both sides know and that holds them all."""
    array = np.asarray(array)
    if array.dtype.kind not in "iub":
        return array.astype("<f8")
    ends = (int(array.min()), int(array.max())) if array.size else (0,)
    for name in _TYPES:
        if all(np.iinfo(name).min <= end <= np.iinfo(name).max for end in ends):
            return array.astype(f"<{name}")
    return array.astype("<f8")


def pack(content: Any) -> bytes:
    """Pack nested dicts and lists, with NumPy arrays or `Differences` where numbers are many.

    Returns
    -------
    bytes
        The header's length as a 32-bit integer, four bytes of padding, the header, the arrays, each
        at a multiple of 8 bytes.
    """
    arrays: list[tuple[dict[str, Any], npt.NDArray[Any]]] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | Differences):
            ascending = isinstance(value, Differences)
            array = smallest(value.array if isinstance(value, Differences) else value).ravel()
            if ascending and array.dtype.kind == "u":
                array = np.diff(array, prepend=array.dtype.type(0))
            entry = {"type": array.dtype.str[1:], "count": array.size, "differences": ascending}
            # Offsets have twelve digits, so that the header's length does not depend on them.
            arrays.append((entry | {"offset": 10**11}, array))
            return {"$array": arrays[-1][0]}
        if isinstance(value, dict):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if isinstance(value, np.generic):
            return plain(value.item())
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    header = {"content": plain(content)}
    length = len(_json(header))
    end = _aligned(8 + length)
    for entry, array in arrays:
        entry["offset"] = end
        end = _aligned(end + array.nbytes)
    packed = bytearray(end)
    packed[:4] = length.to_bytes(4, "little")
    packed[8 : 8 + length] = _json(header).ljust(length)
    for entry, array in arrays:
        packed[entry["offset"] : entry["offset"] + array.nbytes] = array.tobytes()
    return bytes(packed)


def _json(header: Any) -> bytes:
    return json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNED) * _ALIGNED


def pack_text(content: Any, level: int = 6) -> str:
    """Pack, compress (raw deflate) and write as base64, for a page of HTML."""
    squeezer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(squeezer.compress(pack(content)) + squeezer.flush()).decode()
