"""Memory of a training step: whether it fits, and which `hidden` would."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from accelviz.errors import DeviceUnavailable
from accelviz.layers.layer import Layer
from accelviz.layers.products import Products

_FLOAT_BYTES, _GIB = 4, 1 << 30
#: Arrays of the parameters' size that training holds: themselves, their gradient, L2 factors, the
#: best ones so far, and the two of Adam.
_PARAMETER_ARRAYS = 6
#: Arrays of a layer's result that a step holds at once, at least: the result, and its gradient.
_RESULT_ARRAYS = 2
#: No step that was measured holds more times that: 5.6 GATv2's with 128 features, on a CPU.
_MOST_OVER_LEAST = 6


def least_bytes(layers: Sequence[Layer], n_nodes: int) -> int:
    """Return what a step of these layers holds at the least, in bytes, without the graph."""
    shapes = (shape for layer in layers for shape in layer.shapes().values())
    parameters = _PARAMETER_ARRAYS * sum(map(math.prod, shapes))
    return _FLOAT_BYTES * (
        parameters + _RESULT_ARRAYS * n_nodes * sum(layer.width for layer in layers)
    )


@contextlib.contextmanager
def enough_memory(
    build: Callable[..., list[Layer]], options: Mapping[str, Any], n_nodes: int, products: Products
) -> Iterator[None]:
    """Refuse a network that cannot fit before anything is allocated, and explain a MemoryError.

    Parameters
    ----------
    build : callable
        `build(**changes)` returns the layers, with some options changed.
    options : mapping
        With `hidden`, which the error gives advice about.
    n_nodes : int
    products : Products

    Raises
    ------
    DeviceUnavailable
        Naming the memory wanted, the memory that is free, and a `hidden` that would fit.
    """
    wanted, free = least_bytes(build(), n_nodes), products.executor.free_bytes()

    def unavailable(problem: str, limit: float) -> DeviceUnavailable:
        hidden, fix = int(options["hidden"]), "a smaller graph, or fewer features or classes"
        while hidden > 1 and least_bytes(build(hidden=hidden), n_nodes) > limit:
            hidden //= 2
        if least_bytes(build(hidden=hidden), n_nodes) <= limit:
            fix = f"hidden={hidden} would fit"
        if products.device == "cuda":
            fix += ", or device='cpu'"
        return DeviceUnavailable(f"device {products.device!r}", problem, fix)

    needs = f"a step wants {wanted / _GIB:,.1f} GiB at the least"
    if wanted > free:
        problem = f"{needs}, and there are {free / _GIB:,.1f}"
        raise unavailable(problem, free / _MOST_OVER_LEAST)
    try:
        yield
    except (MemoryError, DeviceUnavailable) as error:
        if not isinstance(error, MemoryError) and not isinstance(error.__cause__, MemoryError):
            raise
        reason = str(error) or "MemoryError"
        problem = f"out of memory: {needs}, there were {free / _GIB:,.1f} ({reason})"
        raise unavailable(problem, min(wanted / 2, free / _MOST_OVER_LEAST)) from error
