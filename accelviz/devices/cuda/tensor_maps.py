"""Tensor maps: what Hopper's copy engine is told about an array."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import KernelError

#: A kernel's parameter by value: `CUtensorMap`.
TENSOR_MAP = np.dtype([("words", np.uint64, (16,))])
#: Of the driver's interface: 32-bit whole numbers, swizzle of 128 bytes, 128 bytes into the L2.
_UINT32, _SWIZZLE_128, _L2_128 = 2, 3, 2


def tensor_map(
    array: Any, sizes: Sequence[int], strides: Sequence[int], box: Sequence[int]
) -> npt.NDArray[Any]:
    """Describe 32-bit words on the GPU, of which boxes are copied to shared memory.

    Parameters
    ----------
    array : CuPy array
    sizes : sequence of int
        In each direction, neighbors in memory first.
    strides : sequence of int
        Bytes from one to the next, in each direction but the first; multiples of 16.
    box : sequence of int
        Sizes of a box, of at most 32 words in the first direction.

    Returns
    -------
    array of TENSOR_MAP, shape ()

    Raises
    ------
    KernelError
        If the driver takes no such sizes.
    """
    driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    room = np.zeros(24, np.uint64)
    words = room[-room.ctypes.data // 8 % 8 :][:16]  # at a multiple of 64 bytes
    rank = len(sizes)
    error = driver.cuTensorMapEncodeTiled(
        *(ctypes.c_void_p(words.ctypes.data), _UINT32, rank, ctypes.c_void_p(array.data.ptr)),
        *((ctypes.c_uint64 * rank)(*sizes), (ctypes.c_uint64 * (rank - 1))(*strides)),
        *((ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank)),
        *(0, _SWIZZLE_128, _L2_128, 0),
    )
    if error:
        problem = f"no tensor map of sizes {tuple(sizes)} in boxes of {tuple(box)}"
        raise KernelError("cuTensorMapEncodeTiled", f"{problem}: error {error}")
    return words.view(TENSOR_MAP).reshape(()).copy()
