"""The check of a scheme's integer parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelviz.errors import PartitionError


def checked_integer(name: str, value: Any, most: int, *, step: int = 1) -> int:
    """Return `value` as an int if it is a multiple of `step` from `step` to `most`.

    Raises
    ------
    PartitionError
        Naming the parameter, if it is another number or no integer.
    """
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not integer or not step <= value <= most or value % step:
        multiple = f"a multiple of {step} from " if step > 1 else ""
        raise PartitionError(name, f"got {value!r}", f"{multiple}{step} to {most}")
    return int(value)
