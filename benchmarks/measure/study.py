"""Common options, recording of rows, and the host's clock, for the scripts of this folder."""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accelviz.datasets import bundled_graphs, load_graph
from accelviz.datasets.synthetic.twins import find_table_entry
from accelviz.files import written_whole
from accelviz.graph import Graph
from accelviz.measure.records import hardware, source_commit

Row = dict[str, Any]


def parser(
    doc: str | None,
    *,
    graphs: Sequence[str] | None = None,
    columns: Sequence[int] | None = None,
    repeats: int | None = None,
    output: bool = True,
    cache: bool = False,
) -> argparse.ArgumentParser:
    """Return a parser with the options that have a default here, and `--output` by default."""
    options = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if output:
        options.add_argument("--output", type=Path, required=True, help="CSV to write")
    if graphs is not None:
        text = "names that load_graph takes"
        options.add_argument("--graphs", nargs="+", default=list(graphs), help=text)
    if columns is not None:
        options.add_argument("--columns", nargs="+", type=int, default=list(columns))
    if repeats is not None:
        options.add_argument("--repeats", type=int, default=repeats, help="timed runs of a case")
    if cache:
        options.add_argument("--cache", type=use_cache, help="folder to keep twins in, on disk")
    return options


def use_cache(folder: str) -> str:
    """Set the folder in which graphs are stored; return it."""
    os.environ["ACCELVIZ_CACHE"] = folder
    return folder


def open_graph(name: str, order: str = "natural", cache: bool = False) -> Graph:
    """Load a graph; `order` and `cache` (store on disk) apply to twins."""
    if name.lower() in bundled_graphs() or find_table_entry(name) is None:
        return load_graph(name)
    return load_graph(name, order=order, cache=cache)


def edge_index(graph: Graph, device: str = "cuda") -> Any:
    """Return a graph's edges in PyTorch Geometric's format."""
    import torch

    rows = np.repeat(np.arange(graph.n_rows), graph.degrees)
    return torch.from_numpy(np.stack([graph.column_indices.astype(np.int64), rows])).to(device)


def step_milliseconds(step: Callable[[], Any], steps: int, is_gpu: bool) -> list[float]:
    """Return milliseconds of each step: by CUDA events, or on the host's clock without a GPU."""
    if not is_gpu:
        marks = [time.perf_counter()]
        for _ in range(steps):
            step()
            marks.append(time.perf_counter())
        return [1e3 * (b - a) for a, b in itertools.pairwise(marks)]
    import torch

    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in itertools.pairwise(events)]


def reset_torch_memory() -> None:
    """Free unused memory of PyTorch's pool, and reset its peak."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def machine(device: str = "cuda") -> Row:
    """Return the hardware and the commit."""
    return {"hardware": hardware(device)["hardware"], "commit": source_commit()}


def full_machine(device: str = "cuda") -> Row:
    """Return hardware, driver, versions, date and commit."""
    today = datetime.date.today().isoformat()
    return {**hardware(device), "date": today, "commit": source_commit()}


def record(rows: Iterable[Row], path: Path | None, about: Row | None = None) -> pd.DataFrame:
    """Print each row at once, and write all rows so far; `about` is added to each."""
    table: list[Row] = []
    for row in rows:
        table.append({**row, **(about or {})})
        if path:
            write(pd.DataFrame(table), path)
        print(" ".join(f"{value}" for value in row.values()), flush=True)
    return pd.DataFrame(table)


def write(table: pd.DataFrame, path: Path, **options: Any) -> None:
    """Write a CSV atomically: after an interruption the old file is intact."""
    with written_whole(path) as temporary:
        table.to_csv(temporary, index=False, **options)


def append(rows: Iterable[Row], path: Path) -> None:
    """Append rows to a CSV, each at once."""
    for row in rows:
        pd.DataFrame([row]).to_csv(path, mode="a", header=not path.exists(), index=False)


def host_seconds(
    run: Callable[[], object],
    repeats: int,
    warmup: int = 0,
    wait: Callable[[], object] = lambda: None,
) -> np.ndarray:
    """Return seconds of calls by the host's clock; `wait` makes the device idle."""
    times = []
    for _ in range(warmup + repeats):
        wait()
        start = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - start)
    return np.array(times[warmup:])


def median_us(seconds: Any) -> float:
    """Return the median in microseconds."""
    return round(float(np.median(seconds)) * 1e6, 3)
