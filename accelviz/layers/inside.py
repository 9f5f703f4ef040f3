"""Inside a training step: what it holds in memory after each of its operations."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pandas as pd

from accelviz.layers.dense import Adam
from accelviz.layers.products import Products
from accelviz.layers.train import checked_training


def step_memory(
    model: str,
    data: Any,
    *,
    seed: int = 0,
    strategy: Any = None,
    device: str = "auto",
    **options: Any,
) -> pd.DataFrame:
    """Take a training step and tell what it holds after each operation.

    Parameters
    ----------
    model, data, seed, strategy, device, **options
        As of `train`.

    Returns
    -------
    DataFrame
        A row for each operation, in order: `operation`, `direction` ("forward" or "backward") and
        `mib`, what is held after it beyond what was before the step. Parameters, features and plans
        are there before; arrays of Python's own, on a CPU, are counted by `tracemalloc`.

    Raises
    ------
    ArgumentError, GraphError, DeviceUnavailable
        As of `train`.
    """
    known, products = checked_training(model, options, data, seed), Products(strategy, device)
    with products.stream:
        run = known.run(products, Adam(known.rate))
        run.step()  # which makes the plans
        with _Held(products) as held:
            held.rows.append(("start", "forward", 0.0))
            run.step()
    return pd.DataFrame(held.rows, columns=["operation", "direction", "mib"])


class _Held:
    """Looks at the memory after each block that `products` times."""

    def __init__(self, products: Products) -> None:
        self.rows: list[tuple[str, str, float]] = []
        self._products, self._clock = products, products._clock
        self._on_host = products.device != "cuda"

    def __enter__(self) -> _Held:
        if self._on_host:
            tracemalloc.start()
        self._first = self._bytes()
        self._products._clock = self._looked
        return self

    def __exit__(self, *_: Any) -> None:
        self._products._clock = self._clock
        if self._on_host:
            tracemalloc.stop()

    def _bytes(self) -> int:
        if self._on_host:
            return tracemalloc.get_traced_memory()[0]
        return int(self._products.xp.get_default_memory_pool().used_bytes())

    @contextlib.contextmanager
    def _looked(self, name: str) -> Iterator[None]:
        with self._clock(name):
            yield
        behind = any(operation == "loss" for operation, *_ in self.rows)
        direction = "backward" if behind or name == "loss" else "forward"
        self.rows.append((name, direction, (self._bytes() - self._first) / 2**20))
