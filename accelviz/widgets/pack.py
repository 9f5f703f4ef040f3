"""Pack nested data for a page: a header in JSON, then typed arrays. `src/pack.ts` unpacks it."""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: NumPy's names of the integer types that JavaScript's typed arrays have, smallest first.
_INTEGER_TYPES = ("u1", "u2", "u4", "i4")
#: Arrays begin at multiples of so many bytes.
_ALIGNMENT = 8


@dataclass(frozen=True, eq=False)
class Differences:
    """An array to pack as differences of neighbors if it fits unsigned 32-bit integers.

    The low bytes of all differences come first, then the next bytes: ascending integers then
    compress well.
    """

    array: npt.NDArray[Any]


def smallest(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return an array in the smallest type of `_INTEGER_TYPES` that holds it, or float64."""
    array = np.asarray(array)
    if array.dtype.kind not in "iub":
        return array.astype("<f8")
    least, most = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for name in _INTEGER_TYPES:
        if np.iinfo(name).min <= least and most <= np.iinfo(name).max:
            return array.astype(f"<{name}")
    return array.astype("<f8")


def pack(content: Any) -> bytes:
    """Pack nested dicts and lists of numbers, text, NumPy arrays and `Differences`.

    Returns
    -------
    bytes
        The header's length as a 32-bit integer, four bytes of padding, the header, and the arrays,
        each at a multiple of 8 bytes. In the header, an array is {"$array": its entry}.
    """
    arrays: list[tuple[dict[str, Any], npt.NDArray[Any]]] = []

    def encode(value: Any) -> Any:
        if isinstance(value, np.ndarray | Differences):
            array = smallest(value.array if isinstance(value, Differences) else value).ravel()
            differences = isinstance(value, Differences) and array.dtype.kind == "u"
            if differences:
                array = np.diff(array, prepend=array.dtype.type(0))
                planes = array.view(np.uint8).reshape(-1, array.itemsize).T
                array = np.ascontiguousarray(planes).reshape(-1).view(array.dtype)
            entry = {"type": array.dtype.str[1:], "count": array.size, "differences": differences}
            # The twelve digits reserve room: the header's length determines the offsets.
            arrays.append((entry | {"offset": 10**11}, array))
            return {"$array": arrays[-1][0]}
        if isinstance(value, dict):
            return {str(key): encode(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [encode(item) for item in value]
        if isinstance(value, np.generic):
            return encode(value.item())
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    header = {"content": encode(content)}
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
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def pack_text(content: Any, level: int = 6) -> str:
    """Pack, compress (raw deflate) and encode as base64, for a page of HTML."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(compressor.compress(pack(content)) + compressor.flush()).decode()
