"""How far a kernel's functions may be from exact ones, for the bounds of references."""

from __future__ import annotations

import numpy as np

#: A kernel's exp(x) is off by at most `EXP_ULPS` + `EXP_SLOPE` |x| units of the last place (CUDA
#: Programming Guide, intrinsic functions: __expf, 2 + floor(|1.173 x|)).
EXP_ULPS, EXP_SLOPE = 2, 1.173
#: The smallest normal float32: what is below may be flushed to zero.
SMALLEST = float(np.finfo(np.float32).tiny)
#: A kernel's log(x) of x >= 1 is off by at most this times 1 + log(x) (there: __logf).
LOG_ERROR = 2.0**-21
