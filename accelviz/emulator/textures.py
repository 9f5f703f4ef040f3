"""Textures and surfaces: an array with the way in which a kernel reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError

#: TextureHead of textures.h, which follows the elements.
_HEAD = np.dtype(
    [("magic", "u8"), ("size", "u4", 3)]
    + [(name, "u4") for name in ("dimensions", "channels", "bytes", "kind", "address")]
    + [(name, "u4") for name in ("linear", "normalized", "as_float")],
    align=True,
)
_MAGIC = 0x61636365_6C766978
ADDRESSES = ("clamp", "border", "wrap", "mirror")
_ELEMENTS = {np.dtype(name) for name in ("f2", "f4", "i1", "i2", "i4", "u1", "u2", "u4")}


@dataclass(frozen=True)
class Texture:
    """An array that a kernel reads as a texture, or reads and writes as a surface.

    Parameters
    ----------
    array : array of shape (width,), (height, width) or (depth, height, width)
        Elements of float16, float32 or integers of 8 to 32 bits; layers of a layered texture are
        the first axis. A surface writes into it.
    channels : {1, 2, 4}
        If more than 1, the length of a further, last axis, such as 4 for `uchar4`.
    address : {"clamp", "border", "wrap", "mirror"}
        What lies outside; the last two for normalized coordinates only.
    linear : bool
        Interpolate between elements, with weights of 8 bits as on a GPU; else the nearest one.
    normalized : bool
        Coordinates run from 0 to 1 in place of the number of elements.
    as_float : bool
        Read 8-bit and 16-bit integers as floats from 0 (if signed, from -1) to 1.
    """

    array: npt.NDArray[Any]
    channels: int = 1
    address: str = "clamp"
    linear: bool = False
    normalized: bool = False
    as_float: bool = False

    def packed(self, name: str) -> PackedTexture:
        """Return the bytes that a kernel gets; ArgumentError for the argument `name`."""
        array = np.asarray(self.array)
        lengths = array.shape[:-1] if self.channels != 1 else array.shape
        if self.channels not in (1, 2, 4) or not 1 <= len(lengths) <= 3 or not array.size:
            problem = f"a texture of shape {array.shape} with channels={self.channels!r}"
            raise ArgumentError(name, problem, "1 to 3 axes, and one of 2 or 4 channels if any")
        if self.channels != 1 and array.shape[-1] != self.channels:
            problem = f"a last axis of {array.shape[-1]} for channels={self.channels}"
            raise ArgumentError(name, problem, f"an array of shape (..., {self.channels})")
        if array.dtype not in _ELEMENTS:
            raise ArgumentError(
                name, f"a texture of {array.dtype}", "float32, or int32 and smaller"
            )
        if self.address not in ADDRESSES:
            raise ArgumentError(name, f"address={self.address!r}", ", ".join(ADDRESSES))
        is_float = array.dtype.kind == "f"
        if self.linear and not is_float and not self.as_float:
            raise ArgumentError(
                name, "linear=True for integers", "as_float=True, or an array of floats"
            )
        if self.as_float and not is_float and array.itemsize > 2:
            problem = f"as_float=True for {array.dtype}"
            raise ArgumentError(name, problem, "integers of 8 or 16 bits")
        head = np.zeros((), _HEAD)
        head["magic"], head["dimensions"], head["channels"] = _MAGIC, len(lengths), self.channels
        head["size"] = (*lengths[::-1], 1, 1)[:3]
        head["bytes"], head["kind"] = array.itemsize, ord(array.dtype.kind)
        head["address"] = ADDRESSES.index(self.address)
        head["linear"], head["normalized"] = self.linear, self.normalized
        head["as_float"] = self.as_float and not is_float
        elements = np.ascontiguousarray(array).tobytes()
        content = elements + bytes(-len(elements) % 16) + head.tobytes()
        texture = np.frombuffer(bytearray(content), np.uint8).view(PackedTexture)
        texture.texture, texture.elements = self, elements
        return texture


class PackedTexture(np.ndarray[Any, np.dtype[np.uint8]]):
    """The elements of a texture and its head, as bytes."""

    texture: Texture
    elements: bytes  # of the array, as of the latest `packed` or `unpacked`

    def unpacked(self) -> npt.NDArray[Any]:
        """Write the elements that a surface has changed to the texture's array, and return it."""
        array = np.asarray(self.texture.array)
        content = np.asarray(self)[: array.nbytes]
        bits = np.dtype(f"u{array.itemsize}")
        is_changed = content.view(bits) != np.frombuffer(self.elements, bits)
        if is_changed.any():
            is_changed = is_changed.reshape(array.shape)
            array[is_changed] = content.view(array.dtype).reshape(array.shape)[is_changed]
            self.elements = content.tobytes()
        return array
