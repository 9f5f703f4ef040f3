"""Tensor maps, the array descriptors of Hopper's copy engine (Tensor Memory Accelerator)."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.errors import KernelError
from accelviz.plans.launch import TENSOR_MAP, TensorMap

#: Enumerators of the CUDA driver API: data type uint32, 128-byte swizzle, 128-byte L2 promotion.
_UINT32, _SWIZZLE_128, _L2_128 = 2, 3, 2


def tensor_map(array: Any, described: TensorMap) -> npt.NDArray[Any]:
    """Return the `CUtensorMap` of an array on the GPU, as a scalar of dtype TENSOR_MAP.

    Raises KernelError if the driver does not accept the sizes.
    """
    if 0 in described.sizes:  # nothing is copied
        return np.zeros((), TENSOR_MAP)
    sizes, strides, box = described.sizes, described.strides, described.box
    driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    allocation = np.zeros(24, np.uint64)
    words = allocation[-allocation.ctypes.data // 8 % 8 :][:16]  # aligned to 64 bytes
    rank = len(sizes)
    element_strides, interleave, out_of_bounds_fill = [1] * rank, 0, 0
    error = driver.cuTensorMapEncodeTiled(
        *(ctypes.c_void_p(words.ctypes.data), _UINT32, rank, ctypes.c_void_p(array.data.ptr)),
        *((ctypes.c_uint64 * rank)(*sizes), (ctypes.c_uint64 * (rank - 1))(*strides)),
        *((ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*element_strides)),
        *(interleave, _SWIZZLE_128, _L2_128, out_of_bounds_fill),
    )
    if error:
        problem = f"no tensor map of sizes {sizes} in boxes of {box}"
        raise KernelError("cuTensorMapEncodeTiled", f"{problem}: error {error}")
    return words.view(TENSOR_MAP).reshape(()).copy()
