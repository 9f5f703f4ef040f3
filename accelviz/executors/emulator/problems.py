"""From what the runtime found to a sentence that a student can act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accelviz.errors import KernelError
from accelviz.executors.emulator.library import Error, Known
from accelviz.executors.emulator.symbols import Line

KINDS = ("load", "store", "atomic")
_VERBS = ("reads", "writes", "updates atomically")

(
    OUT_OF_BOUNDS,
    READ_ONLY,
    MISALIGNED,
    UNWRITTEN,
    RACE,
    BARRIER_MISSED,
    BARRIERS_DIFFER,
    LANES_MISSING,
    LANE_OUTSIDE_MASK,
    TRAPPED,
    DIVIDED_BY_ZERO,
) = range(1, 12)


def kernel_error(
    error: Error, known: Sequence[Known], line_of: Callable[[int], Line | None], kernel: str
) -> KernelError | None:
    """Put a finding of the runtime into words, or return None if it is none.

    Parameters
    ----------
    error : Error
    known : sequence of Known
        The arrays that it counts.
    line_of : callable
        From an offset in the library to the source line.
    kernel : str
        Name of the kernel.
    """
    here, there = line_of(error.code), line_of(error.other_code)
    who = _thread(error.block, error.thread)
    other = _thread(error.other_block, error.other_thread)
    if error.problem == 0 or (error.problem == BARRIERS_DIFFER and here == there):
        return None
    access = f"{who} {_VERBS[error.kind]} {_place(error, known)}"
    waiting = f"{error.waiting} threads wait there, {error.left} have left the kernel"
    problem, expected = {
        OUT_OF_BOUNDS: (
            f"out of bounds: {access}",
            "compare the index with the array's length before using it",
        ),
        READ_ONLY: (f"{access}, which is an input", "write to Y only"),
        MISALIGNED: (
            f"misaligned: {access}",
            f"an address that is a multiple of the access's {error.bytes} bytes",
        ),
        UNWRITTEN: (
            f"{access}, which nothing has written before",
            "write it first, or let the plan clear it if it is an output",
        ),
        RACE: (
            f"a race: {access}, and {other} touches it at {there} with no barrier in between",
            "put a barrier between the two, or use atomics for both",
        ),
        BARRIER_MISSED: (
            f"a barrier that not all threads reach: {who} waits for ever, {other} does not come "
            f"({waiting})",
            "move __syncthreads out of the branch, and do not return before it",
        ),
        BARRIERS_DIFFER: (
            f"threads of a block wait at different barriers: {who} here, {other} at {there}",
            "let all threads of the block pass the same __syncthreads",
        ),
        LANES_MISSING: (
            f"a warp-wide exchange that not all lanes of its mask reach: {who} waits for ever "
            f"({waiting} at a block-wide barrier)",
            "give a mask of exactly the lanes that come here",
        ),
        LANE_OUTSIDE_MASK: (
            f"{who} takes part in, or reads from, a lane outside the mask of an exchange",
            "a mask with the calling lane and the lane that is read",
        ),
        TRAPPED: (f"{who} stopped the kernel (__trap)", ""),
        DIVIDED_BY_ZERO: (
            f"{who} divides an integer by zero, which on a GPU gives a number without meaning",
            "make sure that the divisor is not 0",
        ),
    }[error.problem]
    return KernelError(f"{kernel}, {here or 'unknown line'}", problem, expected)


def _thread(block: Sequence[int], thread: Sequence[int]) -> str:
    return f"thread {_index(thread)} of block {_index(block)}"


def _index(index: Sequence[int]) -> str:
    x, y, z = index
    return f"({x}, {y}, {z})" if y or z else str(x)


def _place(error: Error, known: Sequence[Known]) -> str:
    if error.array < 0:
        return f"{error.bytes} bytes at an address in no array"
    array = known[error.array]
    size = array.itemsize or error.bytes
    place = f"{array.name}[{error.offset // size}]" if size else array.name
    beyond = error.offset + error.bytes - array.size
    if error.offset < 0:
        return f"{place}, {-error.offset} bytes before its beginning"
    if beyond > 0:
        return f"{place}, {beyond} bytes past its end ({array.size // size} elements)"
    return f"{place} (byte {error.offset})"
