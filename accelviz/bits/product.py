"""Products of bit tensors: plans of the operation `bit_product`, run on any device."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.bits.finish import Finish
from accelviz.bits.tensor import BitTensor, checked_tensor
from accelviz.devices import choose, gpu_state
from accelviz.devices.cuda.compiler import is_of
from accelviz.devices.ready_plan import ready
from accelviz.errors import ArgumentError, checked_choice, checked_type
from accelviz.graph import Graph
from accelviz.plans import Call, Plan, Settings
from accelviz.plans.program import Step
from accelviz.strategies.bits import products
from accelviz.strategies.bits.operation import Epilogue
from accelviz.strategies.bits.packing import MOST_SUM, layout

#: The algorithms by name: what each runs on, and how.
ALGORITHMS = {name: algorithm.summary for name, algorithm in products.ALGORITHMS.items()}
#: Elements of a result, times planes of B, beyond which "warpgroup" is faster than "split"; and
#: from which "tiled" is.
GROUP_LARGE, LARGE = 1 << 18, 1 << 19
#: Plans that are stored, of the last shapes.
_MOST_PLANS = 64


@dataclass(frozen=True, eq=False)
class Product:
    """A plan of a product, for bit tensors of its shape and bits.

    Attributes
    ----------
    plan : Plan
        Of the operation `bit_product`; its pattern has no nonzero, as A is not known yet.
    finish : Finish, optional
        What follows in the same kernel; None leaves whole numbers.
    """

    plan: Plan
    finish: Finish | None

    def operands(self, A: BitTensor, B: BitTensor) -> dict[str, Any]:
        """Return what a run of the plan takes, by name."""
        words = {"A": A.words, "B": B.words}
        return words if self.finish is None else words | self.finish.operands(A, B)

    def step(self, A: BitTensor, B: BitTensor, buffers: Mapping[str, str]) -> Step:
        """Return the product as a step of a program.

        Parameters
        ----------
        A, B : BitTensor
            Those that lie in a buffer may hold anything of their bits.
        buffers : mapping of str to str
            Buffers that hold operands and the result; other operands never change.
        """
        operation, (call,) = self.plan.operation, self.plan.calls
        assert isinstance(call, Call)
        operands = self.operands(A, B).items()
        fixed = {name: value for name, value in operands if name not in buffers}
        shapes = {name: operation.operands[name].shape(self.plan.sizes) for name in buffers}
        replay, writes = operation.replay(self.plan), frozenset({buffers["out"]})

        def on_cpu(held: Mapping[str, Any]) -> None:
            shaped = {name: held[buffers[name]].reshape(shape) for name, shape in shapes.items()}
            replay(fixed | shaped, shaped)

        arrays = {**self.plan.arrays, **fixed}
        return Step(buffers["out"], 0, "compute", call, arrays, buffers, writes, replay=on_cpu)

    @property
    def largest(self) -> Any:
        """Stand-in for what a run writes, of the largest words that there are, in no memory."""
        (output,) = self.plan.operation.outputs
        ones = np.uint32(0xFFFFFFFF).view(output.dtype)
        return np.broadcast_to(ones, output.shape(self.plan.sizes))

    def run(self, A: BitTensor, B: BitTensor, device: str = "auto") -> Any:
        """Multiply; see `product`."""
        check(A, B, self.finish)
        chosen = choose(device, (A.words, B.words), self.plan)
        return self.result(ready(self.plan, chosen).run(self.operands(A, B))["out"])

    def result(self, out: Any) -> Any:
        """Return what a run has written: numbers as they are, bits as a BitTensor."""
        if self.finish is None or not self.finish.bits:
            return out
        shape = self.plan.pattern.n_rows, self.plan.n_cols
        return BitTensor(out, shape, self.finish.side, self.finish.scale, -1)


def plan_product(
    A: BitTensor,
    B: BitTensor,
    algorithm: str | None = None,
    *,
    finish: Finish | None = None,
    **settings: Any,
) -> Product:
    """Say how a product runs.

    Parameters
    ----------
    A, B : BitTensor
        Or others of the same shape and bits.
    algorithm : str, optional
        One of `ALGORITHMS`. If not given, for large results of whole numbers "warpgroup" where
        this machine has a Hopper GPU, "tiled" where it has not; else "split".
    finish : Finish, optional
        Of "split" and "paper" only.
    **settings
        The algorithm's own: `jump` (over tiles of A that are zero, section 2.4.3), True if not
        given; of "tiled", "split" and "paper" `reuse` (a tile of A that is loaded meets several
        planes of B, section 2.4.4), True if not given; of "tiled" `warps_m` and `warps_n` (warps
        of a block along the rows and along the columns).

    Raises
    ------
    ArgumentError
        If the operands do not fit each other, a sum could pass 2^31, or there is no such algorithm
        or setting.
    PartitionError
        If a setting is out of range.
    """
    check(A, B, finish)
    if algorithm is None and finish is not None:
        algorithm = "split"
    elif algorithm is None and not settings.keys().isdisjoint(("warps_m", "warps_n")):
        algorithm = "tiled"
    elif algorithm is None:
        algorithm = _fastest(A.shape[0] * B.shape[1] * B.bits, settings.get("reuse", True))
    kind = products.ALGORITHMS[checked_choice("algorithm", algorithm, ALGORITHMS)]
    if finish is not None and not kind.finishes:
        raise ArgumentError("finish", f"{algorithm!r} leaves whole numbers", "'split' or 'paper'")
    for name in settings.keys() - kind.Settings.declared.keys():
        known = ", ".join(kind.Settings.declared)
        raise ArgumentError(name, f"{algorithm!r} has no such setting", known)
    epilogue = finish.epilogue if finish is not None else None
    sizes = (*A.shape, B.shape[1]), (A.bits, B.bits)
    return Product(_plan(*sizes, algorithm, epilogue, kind.Settings(**settings)), finish)


@functools.lru_cache(_MOST_PLANS)
def _plan(
    shape: tuple[int, int, int],
    bits: tuple[int, int],
    algorithm: str,
    epilogue: Epilogue | None,
    settings: Settings,
) -> Plan:
    """Plan a product of rows x inner x columns, whatever the operands hold."""
    strategy = products.ALGORITHMS[algorithm](epilogue)
    rows, inner, columns = shape
    pointers, no_column = np.zeros(rows + 1, np.int64), np.empty(0, np.int32)
    graph = Graph(pointers, no_column, np.empty(0, np.float32), (rows, inner), "any bits")
    widths = {"n_cols": columns, "a_bits": bits[0], "b_bits": bits[1]}  # also without a column
    return strategy.build(graph, widths, strategy.resolve(settings, graph, widths))


def _fastest(size: int, reuse: bool) -> str:
    """Return the fastest algorithm for so many elements times planes of B, as on an H200."""
    if reuse and size > GROUP_LARGE and gpu_state().ready and is_of(products.GROUP_ARCH):
        return "warpgroup"
    return "split" if size < LARGE else "tiled"


def product(
    A: BitTensor,
    B: BitTensor,
    *,
    device: str = "auto",
    algorithm: str | None = None,
    finish: Finish | None = None,
    **settings: Any,
) -> Any:
    """Multiply two bit matrices, exactly; QGTC's `bitMM2Int`, and `bitMM2Bit` with `finish`.

    Parameters
    ----------
    A : BitTensor, shape (rows, K), side "left"
    B : BitTensor, shape (K, columns), side "right"
    device : {"auto", "cuda", "cpu", "emulator"}
        "cpu" multiplies the whole numbers with NumPy; "emulator" runs the CUDA kernel.
    algorithm, finish, **settings
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
    >>> from accelviz.bits import pack, product
    >>> A = pack([[1, 0, 1], [0, 1, 1]], 1, "left")
    >>> B = pack([[3], [1], [2]], 2, "right")
    >>> product(A, B, device="cpu")
    array([[5],
           [3]], dtype=int32)
    """
    return plan_product(A, B, algorithm, finish=finish, **settings).run(A, B, device)


def check(A: BitTensor, B: BitTensor, finish: Finish | None = None) -> None:
    """Refuse operands that do not fit each other, and sums that 32 bits might not hold.

    Raises
    ------
    ArgumentError
    """
    for name, operand, side in (("A", A, "left"), ("B", B, "right")):
        checked_tensor(name, operand)
        if operand.side != side:
            problem = f"packed as the {operand.side} operand of a product"
            raise ArgumentError(name, problem, f"side={side!r}")
    if A.shape[1] != B.shape[0]:
        problem = f"{B.shape[0]:,} rows for {A.shape[1]:,} columns of A"
        raise ArgumentError("B", problem, "as many")
    if finish is not None:
        checked_type("finish", finish, Finish, "a Finish, or None")
        layout((1, 1), finish.bits or 1, finish.side)
    bound = A.shape[1] * ((1 << A.bits) - 1) * ((1 << B.bits) - 1)
    if bound > MOST_SUM:  # by the sizes; now by the numbers
        sums = [int(operand.sums.max(initial=0)) for operand in (A, B)]
        bound = min(sums[0] * B.largest, sums[1] * A.largest)
    if bound > MOST_SUM:
        problem = f"its sums could reach {bound:,}"
        raise ArgumentError("product", problem, f"at most 2^31 - 1 = {MOST_SUM:,}: fewer bits")
