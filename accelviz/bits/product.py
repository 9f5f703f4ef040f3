"""Products of bit matrices: how they are mapped onto a GPU, and where they run.

Sections 2.3.2 and 2.4.3 to 2.4.5 of the thesis (QGTC). A product of s and of t bits is s times t
products of single bits, each an AND and a count of ones, added up with shifts: Equation 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.bits import devices
from accelviz.bits.finish import Coefficients, Finish, finished
from accelviz.bits.tensor import BitTensor, checked_tensor, layout, pack
from accelviz.bits.ways import WAYS, group_boxes, mapped, usual
from accelviz.devices import Device, find_device
from accelviz.errors import ArgumentError
from accelviz.plans import Call, KernelSpec, LaunchConfig

#: Largest sum that a result of 32 bits holds.
MOST_SUM = (1 << 31) - 1
_ARGUMENTS = "A B out {} rows columns words a_bits a_lines b_bits b_lines {}"


@dataclass(frozen=True, eq=False)
class Product:
    """A plan of a product.

    Attributes
    ----------
    shape : tuple of three int
        Rows of A, columns of B, and what is summed over (K).
    bits : tuple of two int
        Of A and of B.
    way : str
        One of `WAYS`.
    jump : bool
        Whether tiles of A that are zero are jumped over.
    finish : Finish, optional
        What follows in the same kernel; None leaves whole numbers.
    call : Call
    planes, passes : tuple of two int
        Planes of A and B that are multiplied at a time, and how often.
    tile : tuple of two int
        Rows and bits of the tiles of A that are jumped over together.
    """

    shape: tuple[int, int, int]
    bits: tuple[int, int]
    way: str
    jump: bool
    finish: Finish | None
    call: Call
    planes: tuple[int, int]
    passes: tuple[int, int]
    tile: tuple[int, int]

    @property
    def operations(self) -> int:
        """Additions and multiplications of the whole numbers, as the paper counts: 2 M N K."""
        return 2 * int(np.prod(self.shape, dtype=object))

    def run(self, A: BitTensor, B: BitTensor, device: str = "auto") -> Any:
        """Multiply; see `product`."""
        check(A, B, self.finish)
        chosen = devices.chosen(device, A.words, B.words)
        if chosen.name == "cpu":
            # Exact: sums stay below 2^31, and float64 holds all whole numbers up to 2^53.
            sums = A.levels().astype(np.float64) @ B.levels().astype(np.float64)
            return self._made(sums.astype(np.int32), A, B)
        arguments = self.arguments(A, B, chosen)
        chosen.launch(self.call, arguments)
        return self.result(arguments["out"])

    def seconds(
        self, A: BitTensor, B: BitTensor, repeats: int = 20, warmup: int = 3
    ) -> npt.NDArray[np.float64]:
        """Time runs on the GPU, operands and result in place; seconds, shape (repeats,)."""
        gpu = find_device("cuda")
        arguments = gpu.arguments(self.arguments(A, B, gpu))
        return gpu.seconds(lambda: gpu.launch(self.call, arguments), repeats, warmup)

    def arguments(self, A: BitTensor, B: BitTensor, device: Device) -> dict[str, Any]:
        """Return what the kernel takes by name, a new output among it."""
        rows, columns, _ = self.shape
        finish = self.finish
        if finish is not None and finish.bits:
            wanted = layout((rows, columns), finish.bits, finish.side)
            out = device.empty(wanted, np.uint32)
        else:
            wanted = (1, 1, 1)
            out = device.empty((rows, columns), np.int32 if finish is None else np.float32)
        words = device.place(A.words), device.place(B.words)
        made = {
            "A": words[0],
            "B": words[1],
            "out": out,
            "rows": rows,
            "columns": columns,
            "words": A.words.shape[2],
            "a_bits": A.bits,
            "a_lines": A.words.shape[1],
            "b_bits": B.bits,
            "b_lines": B.words.shape[1],
        }
        if self.way in ("split", "paper"):
            f = Coefficients.of(A, B, finish or Finish())
            made |= {"alpha": f.alpha, "beta": f.beta, "gamma": f.gamma, "row_scale": f.row_scale}
            scale = (finish or Finish()).scale
            made |= {"low": float(scale.low[0]), "step": float(scale.step[0])}
            made |= dict(zip(("out_bits", "out_lines", "out_words"), wanted, strict=True))
        if self.way == "warpgroup":
            assert self.call.kernel is not None
            boxes = group_boxes(self.call.kernel.config)
            made["map_of_a"], made["map_of_b"] = (
                devices.map_of_planes(each, box, device)
                for each, box in zip(words, boxes, strict=True)
            )
        assert self.call.kernel is not None
        return {name: made[name] for name in self.call.kernel.arguments}

    def _made(self, sums: npt.NDArray[np.int32], A: BitTensor, B: BitTensor) -> Any:
        if self.finish is None:
            return sums
        coefficients = Coefficients.of(A, B, self.finish)
        found = finished(sums, A.sums, coefficients, self.finish)
        if self.finish.bits is None:
            return found
        return pack(found[0], self.finish.bits, self.finish.side, scale=self.finish.scale)

    def result(self, out: Any) -> Any:
        """Return what a kernel has written: numbers as they are, bits as a BitTensor."""
        if self.finish is None or not self.finish.bits:
            return out
        rows, columns, _ = self.shape
        return BitTensor(out, (rows, columns), self.finish.side, self.finish.scale, -1)


def plan_product(
    A: BitTensor,
    B: BitTensor,
    way: str | None = None,
    *,
    jump: bool = True,
    reuse: bool = True,
    finish: Finish | None = None,
    warps: tuple[int, int] | None = None,
) -> Product:
    """Say how a product runs.

    Parameters
    ----------
    A, B : BitTensor
        Or others of the same shape and bits.
    way : str, optional
        One of `WAYS`. If not given, for large results of whole numbers "warpgroup" where this
        machine has a Hopper GPU, "tiled" where it has not; else "split".
    jump : bool
        Jump over tiles of A that are zero (section 2.4.3).
    reuse : bool
        Multiply a tile of A that is loaded by several planes of B (section 2.4.4). Without, which
        "tiled", "split" and "paper" can, A is read again for each.
    finish : Finish, optional
        Of "split" and "paper" only.
    warps : tuple of two int, optional
        Of "tiled": the warps of a block along the rows and along the columns.

    Raises
    ------
    ArgumentError
        If the operands do not fit each other, a sum could pass 2^31, or there is no such way.
    """
    check(A, B, finish)
    rows, columns = A.shape[0], B.shape[1]
    if way is None:
        way = usual((rows, columns), B.bits, reuse, warps) if finish is None else "split"
    if way not in WAYS:
        raise ArgumentError("way", f"there is no {way!r}", ", ".join(WAYS))
    if finish is not None and way not in ("split", "paper"):
        raise ArgumentError("finish", f"{way!r} leaves whole numbers", "'split' or 'paper'")
    if warps is not None and way != "tiled":
        raise ArgumentError("warps", f"of {way!r}, whose blocks have one size", "way='tiled'")
    if not reuse and way in ("warpgroup", "popc"):
        raise ArgumentError("reuse", f"{way!r} has a loaded tile of A meet all planes", "True")
    found = mapped(way, (rows, columns, A.shape[1]), (A.bits, B.bits), reuse, finish, warps)
    more = ("", "map_of_a map_of_b" * (way == "warpgroup"))
    if found.entry == "split_sum":
        more = ("alpha beta gamma row_scale", "low step out_bits out_lines out_words")
    arguments = tuple(_ARGUMENTS.format(*more).split())
    config = {"jump": int(bool(jump)), **found.config}
    file, least = f"bits/{found.entry}.cu", 90 if found.arch else 80
    kernel = KernelSpec(file, found.entry, config, arguments, capability=least, arch=found.arch)
    call = Call(LaunchConfig(found.grid, found.warps, found.shared_bytes), kernel)
    shape, bits = (rows, columns, A.shape[1]), (A.bits, B.bits)
    return Product(shape, bits, way, jump, finish, call, found.planes, found.passes, found.tile)


def product(
    A: BitTensor,
    B: BitTensor,
    *,
    device: str = "auto",
    way: str | None = None,
    jump: bool = True,
    reuse: bool = True,
    finish: Finish | None = None,
) -> Any:
    """Multiply two bit matrices, exactly; QGTC's `bitMM2Int`, and `bitMM2Bit` with `finish`.

    Parameters
    ----------
    A : BitTensor, shape (rows, K), side "left"
    B : BitTensor, shape (K, columns), side "right"
    device : {"auto", "cuda", "cpu", "emulator"}
        "cpu" multiplies the whole numbers with NumPy; "emulator" runs the CUDA kernel.
    way, jump, reuse, finish
        As of `plan_product`.

    Returns
    -------
    array of int32, shape (rows, columns), or array of float32, or BitTensor
        The product of the whole numbers; with `finish`, what that makes of the values that they
        stand for. On the GPU if that multiplied.

    Raises
    ------
    ArgumentError
        If the operands do not fit each other, a sum could pass 2^31, or an option is none.
    DeviceUnavailable
        If the device is not there.

    Examples
    --------
    >>> A = pack([[1, 0, 1], [0, 1, 1]], 1, "left")
    >>> B = pack([[3], [1], [2]], 2, "right")
    >>> product(A, B, device="cpu")
    array([[5],
           [3]], dtype=int32)
    """
    planned = plan_product(A, B, way, jump=jump, reuse=reuse, finish=finish)
    return planned.run(A, B, device)


def check(A: BitTensor, B: BitTensor, finish: Finish | None = None) -> None:
    """Refuse operands that do not fit each other, and sums that 32 bits might not hold.

    Raises
    ------
    ArgumentError
    """
    for name, operand, side in (("A", A, "left"), ("B", B, "right")):
        checked_tensor(name, operand)
        if operand.side != side:
            what = f"packed as the {operand.side} operand of a product"
            raise ArgumentError(name, what, f"side={side!r}")
    if A.shape[1] != B.shape[0]:
        what = f"{B.shape[0]:,} rows for {A.shape[1]:,} columns of A"
        raise ArgumentError("B", what, "as many")
    if not isinstance(finish, Finish | None):
        raise ArgumentError("finish", f"got a {type(finish).__name__}", "a Finish, or None")
    if finish is not None and finish.side not in ("left", "right"):
        raise ArgumentError("side", f"got {finish.side!r}", "'left' or 'right'")
    if finish is not None and finish.bits:
        layout((1, 1), finish.bits, finish.side)
    bound = A.shape[1] * ((1 << A.bits) - 1) * ((1 << B.bits) - 1)
    if bound > MOST_SUM:  # by the sizes; now by the numbers
        A, B = A.on_host(), B.on_host()
        bound = min(int(A.sums.max(initial=0)) * B.largest, int(B.sums.max(initial=0)) * A.largest)
    if bound > MOST_SUM:
        what = f"its sums could reach {bound:,}"
        raise ArgumentError("product", what, f"at most 2^31 - 1 = {MOST_SUM:,}: fewer bits")


def jumped(plan: Product, A: BitTensor) -> tuple[int, int]:
    """Count the tiles of A that a plan jumps over, and all that there are, in each pass over A.

    A tile of a pass is zero if it is in all planes that the pass has at a time.
    """
    height, width = plan.tile
    rows, inner = A.shape
    down, across = -(-rows // height), -(-inner // width)
    zero, passes = 0, range(0, A.bits, plan.planes[0])
    for first in passes:
        ones = A.planes[first : first + plan.planes[0]].any(axis=0)
        filled = np.pad(ones, ((0, down * height - rows), (0, across * width - inner)))
        tiles = filled.reshape(down, height, across, width).any(axis=(1, 3))
        zero += int((~tiles).sum())
    return zero if plan.jump else 0, down * across * len(passes)
