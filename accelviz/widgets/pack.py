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

#: Array types that both sides know, by NumPy's short name, the smallest first.
_TYPES = ("u1", "u2", "u4", "i4", "f8")
_ALIGNED = 8


@dataclass(frozen=True, eq=False)
class Differences:
    """An array of integers that is sent as differences, which compress well where it ascends."""

    array: npt.NDArray[Any]


def smallest(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the numbers in the smallest type that both sides know and that holds them all."""
    array = np.asarray(array)
    if array.dtype.kind in "iub":
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        for name in _TYPES[:-1]:
            info = np.iinfo(name)
            if info.min <= low and high <= info.max:
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
    arrays: list[npt.NDArray[Any]] = []
    differences: list[bool] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | Differences):
            several = isinstance(value, Differences)
            made = smallest(value.array if isinstance(value, Differences) else value).ravel()
            if several and made.dtype.kind == "u":
                made = np.diff(made, prepend=made.dtype.type(0))
            arrays.append(made)
            differences.append(several)
            return {"$array": len(arrays) - 1}
        if isinstance(value, dict):
            return {str(key): plain(own) for key, own in value.items()}
        if isinstance(value, list | tuple):
            return [plain(each) for each in value]
        if isinstance(value, np.generic):
            return plain(value.item())
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    header = {"content": plain(content), "arrays": [{} for _ in arrays]}
    # Offsets are written in twelve digits, so that the header's length does not depend on them.
    for entry, made, several in zip(header["arrays"], arrays, differences, strict=True):
        entry |= {"type": made.dtype.str[1:], "count": made.size, "differences": several}
        entry["offset"] = 10**11
    length = len(_json(header))
    place = _aligned(8 + length + 0)
    for entry, made in zip(header["arrays"], arrays, strict=True):
        entry["offset"] = place
        place = _aligned(place + made.nbytes)
    text = _json(header).ljust(length)
    whole = bytearray(place)
    whole[:4] = len(text).to_bytes(4, "little")
    whole[8 : 8 + len(text)] = text
    for entry, made in zip(header["arrays"], arrays, strict=True):
        whole[entry["offset"] : entry["offset"] + made.nbytes] = made.tobytes()
    return bytes(whole)


def _json(header: Any) -> bytes:
    return json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()


def _aligned(place: int) -> int:
    return -(-place // _ALIGNED) * _ALIGNED


def pack_text(content: Any, level: int = 6) -> str:
    """Pack, compress (raw deflate) and write as base64, for a page of HTML."""
    squeezer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(squeezer.compress(pack(content)) + squeezer.flush()).decode()
