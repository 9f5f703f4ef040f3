"""Products of bit matrices, ours and QGTC's: whole numbers, and results packed to as many bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from peer_kernels import bound, load
from peer_problems import padded

from accelviz import bits
from accelviz.devices import find_device
from accelviz.devices.ready_plan import ready

SIZES = ((2048, 32), (4096, 32), (8192, 32), (2048, 64), (4096, 64), (8192, 64), (4096, 1024))
BITS = (1, 2, 4, 8)
NUMBERS, PACKED = "numbers", "packed"
#: Ones in a row of A, so that sums are within the range of packed results.
_ONES = 2
_WORD = 32


class BitProblem:
    """A (n x n, one bit) and X (n x d, `width` bits), and their product."""

    def __init__(self, n: int, d: int, width: int) -> None:
        self.n, self.d, self.width = n, d, width
        random = np.random.default_rng(n + d + width)
        A = np.zeros((n, n), np.int32)
        A[np.arange(n)[:, None], random.integers(0, n, (n, _ONES))] = 1
        X = random.integers(0, 1 << width, (n, d), np.int32)
        self.A, self.X = cupy.asarray(A), cupy.asarray(X)
        self.product = cupy.asarray(A.astype(np.float32)) @ cupy.asarray(X.astype(np.float32))

    def wrong(self, stage: str, result: Any) -> float:
        """Return the share of wrong numbers of a result.

        Results are packed to `width` bits. QGTC wraps around at 2^width, APNN-TC keeps the lowest
        bits, and ours, as QGTC's paper, stops at the largest number: larger ones are left out.
        """
        if stage == NUMBERS:
            return float((cupy.asarray(result) != self.product).mean())
        fits = self.product < 1 << self.width
        return float((cupy.asarray(result) != self.product)[fits].mean())


#: (contender, stage, variant, function that runs, function that returns the result).
Call = tuple[str, str, str, Callable[[], object], Callable[[], Any]]


def calls(problem: BitProblem, libraries: Path) -> Iterator[Call]:
    """Yield ours and QGTC's, for both kinds of result."""
    for stage in (NUMBERS, PACKED):
        yield _ours(problem, stage)
        yield _qgtc(problem, stage, load(libraries, "qgtc"))
    if problem.width == 2:
        yield _apnn(problem, load(libraries, "qgtc"), load(libraries, "apnn"))


def _ours(problem: BitProblem, stage: str) -> Call:
    top = 1 << problem.width
    A = bits.quantize(problem.A.astype(np.float32), 1, "left", low=0, high=2)
    X = bits.quantize(problem.X.astype(np.float32), problem.width, "right", low=0, high=top)
    finish = None
    if stage == PACKED:
        finish = bits.Finish(bits=problem.width, low=0, high=top, side="left")
    planned = bits.plan_product(A, X, finish=finish, jump=False)
    on_gpu = ready(planned.plan, find_device("cuda"))
    inputs, outputs = on_gpu.inputs(on_gpu.placed(planned.operands(A, X))), on_gpu.outputs()

    def result() -> Any:
        product = planned.result(outputs["out"])
        return product if finish is None else product.levels()

    return "ours", stage, planned.plan.name, lambda: on_gpu.launch(inputs, outputs), result


def _packed_operands(problem: BitProblem, library: Any) -> tuple[Any, Any]:
    """Return A and X packed by QGTC: rows of A, and planes of rows of X's transpose."""
    n, d, width = problem.n, problem.d, problem.width
    words, wide = -(-n // 128) * 4, -(-d // 128) * 128
    A = cupy.zeros((n, words), np.int32)
    X = cupy.zeros((width, wide, words), np.int32)
    bound(library.qgtc_pack_left, n, n, 1, problem.A, A)()
    bound(library.qgtc_pack_right, n, d, width, problem.X, X)()
    return A, X


def _unpacked(planes: Any, d: int) -> Any:
    """Return whole numbers from planes of words, whose first column is the highest bit."""
    bits_of_words = planes.get().view(np.uint32)[..., None] >> np.arange(_WORD - 1, -1, -1) & 1
    width, n = planes.shape[:2]
    numbers = bits_of_words.reshape(width, n, -1)[..., :d].astype(np.int64)
    return (numbers << np.arange(width)[:, None, None]).sum(axis=0)


def _qgtc(problem: BitProblem, stage: str, library: Any) -> Call:
    n, d, width = problem.n, problem.d, problem.width
    A, X = _packed_operands(problem, library)
    if stage == NUMBERS:
        numbers = padded((n, d))
        run = bound(library.qgtc_product, n, n, d, 1, width, A, X, numbers)
        return "qgtc", stage, "", _keeping(run, A, X), lambda: numbers
    packed = cupy.zeros((width, n, X.shape[1] // _WORD), np.int32)
    run = bound(library.qgtc_packed_product, n, n, d, 1, width, width, A, X, packed)
    return "qgtc", stage, "", _keeping(run, A, X), lambda: _unpacked(packed, d)


def _apnn(problem: BitProblem, packing: Any, library: Any) -> Call:
    """Return APNN-TC's product, whose results are the two lowest bits."""
    n, d = problem.n, problem.d
    A, X = _packed_operands(problem, packing)
    X = cupy.ascontiguousarray(X[:, :d])
    packed = cupy.zeros((2, n, d // _WORD), np.int32)
    run = bound(library.apnn_packed_product, n, n, d, A, X, packed)
    return "apnn", PACKED, "", _keeping(run, A, X), lambda: _unpacked(packed, d)


def _keeping(run: Callable[[], object], *arrays: Any) -> Callable[[], object]:
    """Return a call that keeps its arrays alive."""
    return lambda _arrays=arrays: run()
