"""Memory that a training step needs, and the error if the device has too little."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from accelviz.errors import DeviceUnavailable
from accelviz.layers.layer import Layer
from accelviz.layers.products import Products

_FLOAT_BYTES, _GIB = 4, 1 << 30
#: Arrays with one element per parameter: parameters, gradient, L2 factors, the best parameters so
#: far, and the two states of Adam.
_PARAMETER_ARRAYS = 6
#: Least number of arrays of the size of a layer's result: the result and its gradient.
_RESULT_ARRAYS = 2
#: Upper bound of peak memory over `least_bytes`. The largest measured ratio is 5.6, for GATv2 with
#: 128 features on a CPU.
_MAX_RATIO = 6


def least_bytes(layers: Sequence[Layer], n_nodes: int) -> int:
    """Return a lower bound of the memory of a training step in bytes, without the graph."""
    shapes = (shape for layer in layers for shape in layer.shapes().values())
    parameters = _PARAMETER_ARRAYS * sum(map(math.prod, shapes))
    results = _RESULT_ARRAYS * n_nodes * sum(layer.width for layer in layers)
    return _FLOAT_BYTES * (parameters + results)


@contextlib.contextmanager
def enough_memory(
    build: Callable[..., list[Layer]], options: Mapping[str, Any], n_nodes: int, products: Products
) -> Iterator[None]:
    """Raise before allocation if a network cannot fit, and explain a MemoryError in the block.

    Parameters
    ----------
    build : callable
        `build(**changes)` returns the layers, with some options changed.
    options : mapping
        Options of the model; the error suggests a smaller `hidden` if it is one.
    n_nodes : int
    products : Products

    Raises
    ------
    DeviceUnavailable
        The message has the memory required, the memory free, and a `hidden` that would fit.
    """
    required, free = least_bytes(build(), n_nodes), products.executor.free_bytes()

    def unavailable(problem: str, limit: float) -> DeviceUnavailable:
        hidden, fix = int(options.get("hidden", 0)), "a smaller graph, or narrower layers"
        while hidden > 1 and least_bytes(build(hidden=hidden), n_nodes) > limit:
            hidden //= 2
        if hidden and least_bytes(build(hidden=hidden), n_nodes) <= limit:
            fix = f"hidden={hidden} would fit"
        if products.device == "cuda":
            fix += ", or device='cpu'"
        return DeviceUnavailable(f"device {products.device!r}", problem, fix)

    needs = f"a step wants {required / _GIB:,.1f} GiB at the least"
    if required > free:
        problem = f"{needs}, and there are {free / _GIB:,.1f}"
        raise unavailable(problem, free / _MAX_RATIO)
    try:
        yield
    except (MemoryError, DeviceUnavailable) as error:
        if not isinstance(error, MemoryError) and not isinstance(error.__cause__, MemoryError):
            raise
        reason = str(error) or "MemoryError"
        problem = f"out of memory: {needs}, there were {free / _GIB:,.1f} ({reason})"
        raise unavailable(problem, min(required / 2, free / _MAX_RATIO)) from error
