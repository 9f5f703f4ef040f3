"""Copies of host arrays on the GPU, cached for read-only arrays."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from accelviz.devices.cuda.state import import_cupy

_uploaded: dict[tuple[int, int], Any] = {}
_lock = threading.Lock()


def on_device(array: Any) -> Any:
    """Copy a host array to the current GPU; other objects, such as scalars, are returned as is.

    The copy of a read-only array is cached as long as the array exists, so that plans share it. A
    writable array may change, so it is copied each time.
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
