"""What products are worked out in, and how far that may move a result."""

from __future__ import annotations

#: Half of the last of TF32's and float16's 11 significant bits, over the number.
_UNIT = 2.0**-11
#: The largest relative error of a product of two inputs, beyond that of float32. An entry that sums
#: such products is off by at most so much of the sum of their magnitudes.
ROUNDING = {
    "float32": 0.0,
    "tf32": (1 + _UNIT) ** 2 - 1,
}
