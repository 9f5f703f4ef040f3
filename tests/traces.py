"""Traces for tests."""

import numpy as np
import pandas as pd

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
