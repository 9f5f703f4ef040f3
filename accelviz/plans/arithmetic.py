"""What products are worked out in, and how far that may move a result."""

from __future__ import annotations

#: Half of the last of TF32's 11 significant bits, over the number.
_UNIT = 2.0**-11
#: The largest relative error of a product of two inputs, beyond that of float32. An entry that sums
#: such products is off by at most so much of the sum of their magnitudes.
ROUNDING = {
    "float32": 0.0,
    "tf32": (1 + _UNIT) ** 2 - 1,
    # As many bits. Inputs below 2^-14 lose more than that, and from 2^16 on they are infinite.
    "float16": (1 + _UNIT) ** 2 - 1,
    # Each input is the sum of two TF32 numbers up to 2^-23 of it; the product of their low parts,
    # each up to 2^-11 of its input, is left out.
    "3xtf32": 2.0**-22 + 2.0**-22,
}
#: How many times float32's bound the sums of tensor cores may be off. They cut off in place of
#: rounding. A unit being 2^-23 of the sum of magnitudes, n products in t instructions, t at most n,
#: lose n + t times a quarter of one where terms are aligned, and t at the end: 1.5 n at most.
CUT_OFF = 1.5
#: Products of TF32 that one product of inputs takes; of float16 none.
TERMS = {"3xtf32": 3, "tf32": 1, "float16": 0}
