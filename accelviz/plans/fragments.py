"""Fragments of tensor-core instructions: the lane and register of each matrix element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: Minimal compute capability, times ten, of GPUs with TF32 tensor cores.
TF32_CAPABILITY = 80
#: Bits of a register.
_REGISTER_BITS = 32


@dataclass(frozen=True)
class Shape:
    """A warp-wide matrix instruction C += A B: A is m x k, B is k x n, C is m x n.

    Attributes
    ----------
    function : str
        Name of its device function in kernels/fragments.cuh.
    element : str
        Type of the elements of A and B.
    k : int
        Number of columns of A and rows of B.
    bits : int
        Bits of an element of A or B in a register.
    m : int
        Number of rows of A: 16 or 8.
    """

    function: str
    element: str
    k: int
    bits: int
    m: int = 16
    n = 8

    @property
    def parts(self) -> int:
        """Number of elements of A or B in one register."""
        return _REGISTER_BITS // self.bits

    def lanes(self, matrix: str) -> npt.NDArray[np.int32]:
        """Return the lane and register that hold each element of a matrix.

        Parameters
        ----------
        matrix : {"A", "B", "C"}

        Returns
        -------
        array of int32, shape (rows, columns, 3)
            Lane, register, and position in the register from the lowest bits. Source: PTX ISA,
            "Matrix Fragments for mma"; kernels/fragments.cuh has the same formulas.
        """
        sizes = {"A": (self.m, self.k), "B": (self.k, self.n), "C": (self.m, self.n)}
        row, column = np.indices(sizes[matrix], dtype=np.int32)
        if matrix == "C":
            lane, register, part = row % 8 * 4 + column // 2, row // 8 * 2 + column % 2, 0 * row
        else:
            along_k, across = (column, row) if matrix == "A" else (row, column)
            group, part = np.divmod(along_k, self.parts)
            lane = across % 8 * 4 + group % 4
            register = group // 4
            if matrix == "A":
                register = self.m // 8 * register + row // 8
        return np.stack([lane, register, part], axis=-1).astype(np.int32)

    def registers(self, matrix: str) -> int:
        """Return the number of registers per lane that hold a matrix."""
        return int(self.lanes(matrix)[..., 1].max()) + 1


#: The instructions of kernels/fragments.cuh, by element type and PTX shape.
SHAPES = {
    "tf32 m16n8k4": Shape("mma_tf32_k4", "TF32", 4, 32),
    "tf32 m16n8k8": Shape("mma_tf32_k8", "TF32", 8, 32),
    "f16 m16n8k16": Shape("mma_f16_k16", "float16", 16, 16),
    "bf16 m16n8k16": Shape("mma_bf16_k16", "bfloat16", 16, 16),
    "s8 m16n8k32": Shape("mma_s8_k32", "int8", 32, 8),
    "s4 m16n8k64": Shape("mma_s4_k64", "int4", 64, 4),
    "b1 m16n8k256": Shape("mma_b1_k256", "bit", 256, 1),
    "b1 m8n8k128": Shape("mma_b1_k128", "bit", 128, 1, m=8),
}
