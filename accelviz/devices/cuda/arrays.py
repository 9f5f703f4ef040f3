"""Copies of host arrays on the GPU, one of each read-only array."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

import numpy as np

from accelviz.devices.cuda.state import import_cupy

_uploaded: dict[tuple[int, int], Any] = {}
_lock = threading.Lock()


def on_device(array: Any) -> Any:
    """Return an array's copy on the current device; scalars pass through.

    The copy of a read-only array lives as long as the array, so that plans share it. A writable
    array may change and is copied each time.
    """
    if not isinstance(array, np.ndarray):
        return array
    cupy = import_cupy()
    if array.flags.writeable:
        return cupy.asarray(array)
    key = (id(array), cupy.cuda.Device().id)
    with _lock:
        if key not in _uploaded:
            _uploaded[key] = cupy.asarray(array)
            weakref.finalize(array, _uploaded.pop, key, None)
        return _uploaded[key]


def gathered(array: Any, order: Any) -> Any:
    """Return `array[order]` on the GPU, in one pass; of a 1-D array `order` is not checked."""
    return _gather()(array, order) if array.ndim == 1 else array[order]


@functools.cache
def _gather() -> Any:
    # CuPy's `take` wraps each index round, which takes twice as long.
    return import_cupy().ElementwiseKernel("raw T x, I k", "T y", "y = x[k]", "accelviz_gather")
