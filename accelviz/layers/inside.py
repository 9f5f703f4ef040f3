"""Memory inside a training step: bytes allocated after each of its operations."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pandas as pd

from accelviz.devices.programs import prepared_program
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
    """Run a training step and return the memory in use after each operation.

    Parameters
    ----------
    model, data, seed, strategy, device, **options
        As in `train`.

    Returns
    -------
    DataFrame
        One row per operation, in order: `operation`, `direction` ("forward" or "backward") and
        `mib`, the MiB in use after the operation minus those before the step. Parameters, features
        and plans are allocated before the step. On a CPU, `tracemalloc` counts.

    Raises
    ------
    ArgumentError, GraphError, DeviceUnavailable
        As of `train`.
    """
    checked, products = checked_training(model, options, data, seed), _Watched(strategy, device)
    with products.stream:
        run = checked.run(products)
        step, _ = prepared_program(run.program, {}, products.executor)
        step()  # makes the plans
        tracemalloc.start()
        try:
            products.samples = [("start", products.executor.used_bytes())]
            step()
        finally:
            tracemalloc.stop()
    table = pd.DataFrame(products.samples, columns=["operation", "mib"])
    is_backward = (table.operation == "loss").cummax()
    table.insert(1, "direction", is_backward.map({False: "forward", True: "backward"}))
    table["mib"] = (table.mib - table.mib[0]) / 2**20
    return table


class _Watched(Products):
    """Products that record the bytes in use after each timed block."""

    samples: list[tuple[str, int]]

    @contextlib.contextmanager
    def clock(self, name: str) -> Iterator[None]:
        """Time a block, then record the bytes in use."""
        with super().clock(name):
            yield
        if tracemalloc.is_tracing():
            self.samples.append((name, self.executor.used_bytes()))
