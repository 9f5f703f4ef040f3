"""Inside a training step: what it holds in memory after each of its operations."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pandas as pd

from accelviz.devices.programs import prepared_program
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
    known, products = checked_training(model, options, data, seed), _Watched(strategy, device)
    with products.stream:
        run = known.run(products, Adam(known.rate))
        step, _ = prepared_program(run.program, {}, products.executor)
        step()  # which makes the plans
        tracemalloc.start()
        try:
            products.held = [("start", products.executor.used_bytes())]
            step()
        finally:
            tracemalloc.stop()
    table = pd.DataFrame(products.held, columns=["operation", "mib"])
    behind = (table.operation == "loss").cummax()
    table.insert(1, "direction", behind.map({False: "forward", True: "backward"}))
    table["mib"] = (table.mib - table.mib[0]) / 2**20
    return table


class _Watched(Products):
    """Looks at the memory after each block that is timed."""

    held: list[tuple[str, int]]

    @contextlib.contextmanager
    def clock(self, name: str) -> Iterator[None]:
        """Time a block, then note what is held."""
        with super().clock(name):
            yield
        if tracemalloc.is_tracing():
            self.held.append((name, self.executor.used_bytes()))
