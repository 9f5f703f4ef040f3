"""Traces made by hand, and of a strategy's kernel on cora."""

import numpy as np
import pandas as pd

import accelviz
from accelviz import measure
from accelviz.devices import trace

LANES = np.arange(32)


def made_request(
    offsets, step=0, *, size=4, array="X", kind="load", space="global", warp=0, block=0
):
    """Return the trace of one request, with one lane per offset in bytes."""
    offsets = np.asarray(offsets)
    return pd.DataFrame(
        {"block": block, "warp": warp, "lane": np.arange(offsets.size), "step": step}
        | {"file": "k.cu", "line": 1, "kind": kind, "space": space, "array": array}
        | {"index": offsets // size, "bytes": size, "offset": offsets}
    )


def traced_cora(strategy="accel_gcn", n_cols=96, block=100, **parameters):
    """The trace of a block of an SpMM with cora and random features."""
    graph = accelviz.load_graph("cora")
    plan = accelviz.plan(graph, strategy, n_cols, **parameters)
    return trace(plan, measure.features(graph.shape[1], n_cols), block=block)
