"""Tensor maps: what Hopper's copy engine is told about an array."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import KernelError
from accelviz.plans.launch import TENSOR_MAP, TensorMap

#: Of the driver's interface: 32-bit whole numbers, swizzle of 128 bytes, 128 bytes into the L2.
_UINT32, _SWIZZLE_128, _L2_128 = 2, 3, 2


def tensor_map(array: Any, described: TensorMap) -> npt.NDArray[Any]:
    """Describe an array on the GPU, of which boxes are copied to shared memory, as TENSOR_MAP.

    Raises KernelError if the driver takes no such sizes.
    """
    if 0 in described.sizes:  # nothing is copied
        return np.zeros((), TENSOR_MAP)
    sizes, strides, box = described.sizes, described.strides, described.box
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
        problem = f"no tensor map of sizes {sizes} in boxes of {box}"
        raise KernelError("cuTensorMapEncodeTiled", f"{problem}: error {error}")
    return words.view(TENSOR_MAP).reshape(()).copy()
