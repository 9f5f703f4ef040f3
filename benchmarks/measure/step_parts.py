"""What a whole training step on a GPU is made of: the time of each of its kernels.

The steps are those of `training_steps.py`. Kernels are timed by CUPTI through PyTorch's profiler,
which sees all of a process. A kernel that runs several times in a step counts each time; the gaps
between kernels are not in the table, so the whole step takes a little longer than their sum.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from training_steps import FORMS, GRAPHS, MODELS, N_CLASSES, N_FEATURES, WARMUP, ours, theirs, timed

from accelviz import load_graph

STEPS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="a CSV")
    parser.add_argument("--graphs", nargs="*", default=["pubmed", "collab shuffled"])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--forms", nargs="*", default=["ours"], choices=FORMS)
    options = parser.parse_args()
    tables = []
    for graph in options.graphs:
        name, knobs = GRAPHS[graph]
        loaded = load_graph(name, **knobs)
        rng = np.random.default_rng(0)
        X = rng.standard_normal((loaded.n_rows, N_FEATURES), dtype=np.float32)
        labels = rng.integers(0, N_CLASSES, loaded.n_rows)
        for form in options.forms:
            for model in options.models:
                if form == "ours":
                    step = ours(loaded, X, labels, model, "cuda")
                else:
                    step = theirs(loaded, X, labels, model, form)
                for _ in range(WARMUP):
                    step()
                whole = float(np.median(timed(step, form, "cuda")[0])) * 1e6
                table = kernels(step)
                table.insert(0, "step_us", round(whole, 1))
                for column, value in (("form", form), ("model", model), ("graph", graph)):
                    table.insert(0, column, value)
                print(table.to_string(index=False), flush=True)
                tables.append(table)
                del step
    pd.concat(tables).to_csv(options.output, index=False)


def kernels(step: Any) -> pd.DataFrame:
    """Return the microseconds a step spends in each kernel, and how often it runs there."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    seconds: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for event in seen.events():
        if event.device_type != torch.autograd.DeviceType.CPU:
            name = re.sub(r"^void |\(.*|<unnamed>::", "", event.name)[:70]
            seconds[name] += event.device_time
            calls[name] += 1
    rows = [(name, took / STEPS, calls[name] / STEPS) for name, took in seconds.most_common()]
    return pd.DataFrame(rows, columns=["kernel", "us", "times"]).round(2)


if __name__ == "__main__":
    main()
