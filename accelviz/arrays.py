"""Short names for the types of arrays, for signatures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Arrays of int64, int32 and float32, as a CSR matrix holds them.
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
