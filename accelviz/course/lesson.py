"""What several lessons begin with: traces of whole launches."""

from __future__ import annotations

import numpy as np
import pandas as pd

from accelviz.executors import find_executor, trace
from accelviz.measure import random_inputs
from accelviz.plans import Plan

_COLUMNS = "block warp lane step file line kind space array index bytes offset"


def traced(plan: Plan) -> pd.DataFrame:
    """Trace every block of a plan's kernel, with random inputs; see `accelviz.trace`.

    Without a compiler the table is empty, so that the rest of a lesson still runs.
    """
    if find_executor("emulator").why_not() is not None:
        return pd.DataFrame(columns=_COLUMNS.split())
    dense = random_inputs(plan.operation, plan.pattern, plan.widths)
    return trace(plan, *dense, block=range(int(np.prod(plan.launch.grid))))
