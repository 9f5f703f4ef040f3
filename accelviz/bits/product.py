"""Products of bit tensors on any device, by plans of the operation `bit_product`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelviz.bits.finish import Finish
from accelviz.bits.tensor import BitTensor, checked_tensor
from accelviz.devices import choose, gpu_state
from accelviz.devices.cuda.compiler import gpu_runs
from accelviz.devices.ready_plan import ready
from accelviz.errors import ArgumentError, checked_choice, checked_type
from accelviz.graph import Graph
from accelviz.plans import Call, Plan, Settings
from accelviz.plans.program import Step
from accelviz.strategies.bits import products
from accelviz.strategies.bits.operation import Epilogue
from accelviz.strategies.bits.packing import MOST_SUM, layout

#: One-line summaries of the algorithms, by name.
ALGORITHMS = {name: algorithm.summary for name, algorithm in products.ALGORITHMS.items()}
#: Sizes (elements of the result times planes of B) above which "warpgroup", and from which "tiled",
#: is faster than "split" on an H200.
GROUP_LARGE, LARGE = 1 << 18, 1 << 19
#: Most plans in the cache.
_MOST_PLANS = 64


@dataclass(frozen=True, eq=False)
class Product:
    """A planned product of any bit tensors of a shape and numbers of bits.

    Attributes
    ----------
    plan : Plan
        Plan of the operation `bit_product`. Its pattern has no nonzeros, as A is not known yet.
    finish : Finish, optional
        Steps after the product in the same kernel. Without them the result is int32.
    """

    plan: Plan
    finish: Finish | None

    def operands(self, A: BitTensor, B: BitTensor) -> dict[str, Any]:
        """Return the operands of a run of the plan, by name."""
        words = {"A": A.words, "B": B.words}
        return words if self.finish is None else words | self.finish.operands(A, B)

    def step(self, A: BitTensor, B: BitTensor, buffers: Mapping[str, str]) -> Step:
        """Return the product as a step of a program.

        Parameters
        ----------
        A, B : BitTensor
            Operands. One that is in a buffer may have any numbers of its bits.
        buffers : mapping of str to str
            Buffer names by the names of operands and of the result "out". Operands without a
            buffer are constants of the step.
        """
        operation, (call,) = self.plan.operation, self.plan.calls
        assert isinstance(call, Call)
        operands = self.operands(A, B).items()
        constants = {name: value for name, value in operands if name not in buffers}
        shapes = {name: operation.operands[name].shape(self.plan.sizes) for name in buffers}
        replay, writes = operation.replay(self.plan), frozenset({buffers["out"]})

        def run_on_cpu(contents: Mapping[str, Any]) -> None:
            arrays = {name: contents[buffers[name]].reshape(shapes[name]) for name in shapes}
            replay(constants | arrays, arrays)

        arrays = {**self.plan.arrays, **constants}
        return Step(buffers["out"], 0, "compute", call, arrays, buffers, writes, replay=run_on_cpu)

    @property
    def largest(self) -> Any:
        """Read-only stand-in for a result, with all bits set; it needs no memory."""
        (output,) = self.plan.operation.outputs
        all_bits = np.uint32(0xFFFFFFFF).view(output.dtype)
        return np.broadcast_to(all_bits, output.shape(self.plan.sizes))

    def run(self, A: BitTensor, B: BitTensor, device: str = "auto") -> Any:
        """Multiply; see `product`."""
        check(A, B, self.finish)
        chosen = choose(device, (A.words, B.words), self.plan)
        return self.result(ready(self.plan, chosen).run(self.operands(A, B))["out"])

    def result(self, out: Any) -> Any:
        """Return the output of a run: an array of numbers, or packed bits as a BitTensor."""
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
    """Plan a product.

    Parameters
    ----------
    A, B : BitTensor
        Operands of a run, or other tensors of the same shapes and bits.
    algorithm : str, optional
        One of `ALGORITHMS`. The default for large results is "warpgroup" on a machine with a Hopper
        GPU; on others it is "tiled" for int32. Otherwise it is "split".
    finish : Finish, optional
        Steps after the product, for "warpgroup", "split" and "paper" only.
    **settings
        Settings of the algorithm: `jump`, whether tiles of A that are zero are skipped (section
        2.4.3), by default True; of "tiled", "split" and "paper" `reuse`, whether a loaded tile of A
        is multiplied by several planes of B (section 2.4.4), by default True; of "tiled" `warps_m`
        and `warps_n`, warps of a block along the rows and the columns.

    Raises
    ------
    ArgumentError
        If the shapes or sides of the operands do not match, a sum could reach 2^31, or there is no
        such algorithm or setting.
    PartitionError
        If a setting is out of range.
    """
    check(A, B, finish)
    if algorithm is None and finish is not None:
        algorithm = _fastest(A.shape[0] * B.shape[1] * B.bits, settings.get("reuse", True))
        is_possible = not finish.bits or B.bits <= products.MOST_FINISHED_PLANES
        algorithm = algorithm if algorithm == "warpgroup" and is_possible else "split"
    elif algorithm is None and not settings.keys().isdisjoint(("warps_m", "warps_n")):
        algorithm = "tiled"
    elif algorithm is None:
        algorithm = _fastest(A.shape[0] * B.shape[1] * B.bits, settings.get("reuse", True))
    strategy = products.ALGORITHMS[checked_choice("algorithm", algorithm, ALGORITHMS)]
    if finish is not None and not strategy.finishes:
        raise ArgumentError(
            "finish", f"{algorithm!r} leaves whole numbers", "'warpgroup', 'split' or 'paper'"
        )
    for name in settings.keys() - strategy.Settings.declared.keys():
        known = ", ".join(strategy.Settings.declared)
        raise ArgumentError(name, f"{algorithm!r} has no such setting", known)
    epilogue = finish.epilogue if finish is not None else None
    sizes = (*A.shape, B.shape[1]), (A.bits, B.bits)
    return Product(_plan(*sizes, algorithm, epilogue, strategy.Settings(**settings)), finish)


@functools.lru_cache(_MOST_PLANS)
def _plan(
    shape: tuple[int, int, int],
    bits: tuple[int, int],
    algorithm: str,
    epilogue: Epilogue | None,
    settings: Settings,
) -> Plan:
    """Return the plan of a product with `shape` (rows, inner, columns)."""
    strategy = products.ALGORITHMS[algorithm](epilogue)
    rows, inner, columns = shape
    pointers, no_column = np.zeros(rows + 1, np.int64), np.empty(0, np.int32)
    graph = Graph(pointers, no_column, np.empty(0, np.float32), (rows, inner), "any bits")
    # `Strategy.plan` would not accept 0 columns.
    widths = {"n_cols": columns, "a_bits": bits[0], "b_bits": bits[1]}
    return strategy.build(graph, widths, strategy.resolve(settings, graph, widths))


def _fastest(size: int, reuse: bool) -> str:
    """Return the fastest algorithm on an H200 for a number of elements times planes of B."""
    if reuse and size > GROUP_LARGE and gpu_state().ready and gpu_runs(products.GROUP_ARCH):
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
        "cpu" multiplies unpacked numbers with NumPy; "emulator" runs the CUDA kernel.
    algorithm, finish, **settings
        See `plan_product`.

    Returns
    -------
    array of int32, shape (rows, columns), or array of float32, or BitTensor
        The product of the integers, int32. With `finish`, its result for the real values that the
        integers have by their scales: float32, or a BitTensor. On the GPU if the product ran there.

    Raises
    ------
    ArgumentError
        As `plan_product`.
    DeviceUnavailable
        If the device cannot be used.

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
    """Raise an `ArgumentError` if sides or shapes do not match, or a sum could reach 2^31."""
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
    if bound > MOST_SUM:  # the bound by size is too high; compute one from the numbers
        sums = [int(operand.sums.max(initial=0)) for operand in (A, B)]
        bound = min(sums[0] * B.largest, sums[1] * A.largest)
    if bound > MOST_SUM:
        problem = f"its sums could reach {bound:,}"
        raise ArgumentError("product", problem, f"at most 2^31 - 1 = {MOST_SUM:,}: fewer bits")
