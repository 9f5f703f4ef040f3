"""From what the runtime found to a sentence that a student can act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accelviz.errors import KernelError
from accelviz.executors.emulator.library import Known
from accelviz.executors.emulator.symbols import Line

KINDS = ("load", "store", "atomic")
_VERBS = ("reads", "writes", "updates atomically")


def kernel_error(
    found: str,
    error: Any,
    known: Sequence[Known],
    line_of: Callable[[int], Line | None],
    kernel: str,
) -> KernelError | None:
    """Put what `Library.run` returns into words, or return None if there is nothing to say.

    `line_of` gives the source line of an offset in the library.
    """
    here, there = line_of(int(error["code"])), line_of(int(error["other_code"]))
    if not found or (found == "barriers differ" and here == there):
        return None
    who = f"thread {_index(error['thread'])} of block {_index(error['block'])}"
    other = f"thread {_index(error['other_thread'])} of block {_index(error['other_block'])}"
    access = f"{who} {_VERBS[error['kind']]} {_place(error, known)}"
    waiting = f"{error['waiting']} threads wait there, {error['left']} have left the kernel"
    problem, expected = {
        "out of bounds": (
            f"out of bounds: {access}",
            "compare the index with the array's length before using it",
        ),
        "read only": (f"{access}, which is an input", "write to outputs only"),
        "misaligned": (
            f"misaligned: {access}",
            f"an address that is a multiple of the access's {error['bytes']} bytes",
        ),
        "unwritten": (
            f"{access}, which nothing has written before",
            "write it first, or let the plan clear it if it is an output",
        ),
        "race": (
            f"a race: {access}, and {other} touches it at {there} with no barrier in between",
            "put a barrier between the two, or use atomics for both",
        ),
        "barrier missed": (
            f"a barrier that not all threads reach: {who} waits for ever, {other} does not come "
            f"({waiting})",
            "move __syncthreads out of the branch, and do not return before it",
        ),
        "barriers differ": (
            f"threads of a block wait at different barriers: {who} here, {other} at {there}",
            "let all threads of the block pass the same __syncthreads",
        ),
        "lanes missing": (
            f"a warp-wide exchange that not all lanes of its mask reach: {who} waits for ever "
            f"({waiting} at a block-wide barrier)",
            "give a mask of exactly the lanes that come here",
        ),
        "lane outside mask": (
            f"{who} takes part in, or reads from, a lane outside the mask of an exchange",
            "a mask with the calling lane and the lane that is read",
        ),
        "trapped": (f"{who} stopped the kernel (__trap)", ""),
        "divided by zero": (
            f"{who} divides an integer by zero, which on a GPU gives a number without meaning",
            "make sure that the divisor is not 0",
        ),
    }[found]
    return KernelError(f"{kernel}, {here or 'unknown line'}", problem, expected)


def _index(index: Sequence[int]) -> str:
    x, y, z = index
    return f"({x}, {y}, {z})" if y or z else str(x)


def _place(error: Any, known: Sequence[Known]) -> str:
    number, size, offset = (int(error[name]) for name in ("array", "bytes", "offset"))
    if number < 0:
        return f"{size} bytes at an address in no array"
    array = known[number]
    itemsize = array.itemsize or size
    place = f"{array.name}[{offset // itemsize}]" if itemsize else array.name
    beyond = offset + size - array.size
    if offset < 0:
        return f"{place}, {-offset} bytes before its beginning"
    if beyond > 0:
        return f"{place}, {beyond} bytes past its end ({array.size // itemsize} elements)"
    return f"{place} (byte {offset})"
