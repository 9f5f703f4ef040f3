"""From what the runtime found to a sentence that a student can act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accelviz.emulator.memory import Known
from accelviz.emulator.signature import Parameter
from accelviz.emulator.symbols import Line, Space
from accelviz.errors import KernelError

KINDS = ("load", "store", "atomic")
_VERBS = ("reads", "writes", "updates atomically")
_VERBS_OF_IT = ("reads it", "writes it", "updates it atomically")


def kernel_error(
    answer: Any,
    known: Sequence[Known],
    parameters: Sequence[Parameter],
    line_of: Callable[[int], Line | None],
    kernel: str,
    timeout: float,
) -> KernelError | None:
    """Put what `Library.run` returns into words, or return None if there is nothing to say.

    `line_of` gives the source line of an offset in the library.
    """
    found = answer["problem"].decode()
    if not found:
        return _differing(answer, line_of, kernel)
    words = answer["text"].decode("utf-8", "replace")
    indexed = words.replace("'", "").replace(" [", "[")  # as one would write it
    here, there = line_of(int(answer["code"])), line_of(int(answer["other_code"]))
    who = _thread(answer["thread"], answer["block"])
    other = _thread(answer["other_thread"], answer["other_block"])
    too = f"{other} {_VERBS_OF_IT[answer['other_kind']]}"
    place = _place(answer, known, parameters)
    null = found == "out of bounds" and answer["array"] < 0 and 0 <= answer["offset"] < 1 << 20
    if null:
        place = f"{answer['bytes']} bytes through a null pointer"
    access = f"{who} {_VERBS[answer['kind']]} {place}"
    elsewhere = f", and {other} does not come" if answer["bytes"] else ""
    space = known[answer["array"]].space if 0 <= answer["array"] < len(known) else None
    constant = space is Space.CONSTANT
    waits = (
        "waits, in a loop, for something that no thread does. Blocks run one after another here, "
        "and a GPU does not promise either that a later block runs beside an earlier one"
    )
    problem, expected = {
        "out of bounds": (
            f"out of bounds: {access}",
            "compare the index with the array's length before using it",
        ),
        "local out of bounds": (
            f"out of bounds: {who} {_VERBS[answer['kind']]} outside of its local arrays",
            "keep the index within the array's length",
        ),
        "index out of bounds": (
            f"out of bounds: {who} uses index {indexed}",
            "keep the index within the array's length",
        ),
        "local array overrun": (
            f"{who} has written past the end of a local array of this function",
            "keep the index within the array's length",
        ),
        "read only": (
            f"{access}, which is {'__constant__' if constant else 'an input'}",
            "constants are written by the host only" if constant else "write to outputs only",
        ),
        "misaligned": (
            f"misaligned: {access}",
            f"an address that is a multiple of the access's {answer['bytes']} bytes",
        ),
        "unwritten": (
            f"{access}, which nothing has written before",
            "write it first"
            + (
                ", and put __syncthreads() in between if another thread does"
                if space in _SHARED
                else ""
            )
            + (", or clear it" if space is Space.ARGUMENT else ""),
        ),
        "unwritten local": (
            f"{access}, and the value depends on a local variable that nothing has written before"
            + (f": {', '.join(words.splitlines())}" if words else ""),
            "give every local variable, and each element of a local array, a value before it is "
            "read, such as `= 0` or `= {}`",
        ),
        "race": (
            f"a race: {access}, and {too} at {there}; nothing says which comes first",
            _race_advice(answer, here == there),
        ),
        "barrier missed": (
            f"a barrier that not all threads reach: {who} waits for ever, {other} went past it "
            f"({answer['waiting']} threads wait there, {answer['left']} have left the kernel)",
            "move __syncthreads out of the branch or the loop, so that all threads come to it",
        ),
        "host variable": (
            f"{who} uses {_name(answer, known)}, a variable of the host, which CUDA refuses",
            "pass it as an argument, or declare it __constant__, __device__, or `const`",
        ),
        "host function": (
            f"{who} calls {words}, a function of the host, which CUDA refuses",
            f"write __device__ in front of {words}",
        ),
        "unfilled": (
            f"{access}, a __constant__ variable to which nobody has given a value",
            f"""give it one: emulate(..., symbols={{"{_name(answer, known)}": array}}), as """
            "cudaMemcpyToSymbol does",
        ),
        "lanes missing": (
            "a warp-wide exchange or __syncwarp that not all lanes of its mask reach: "
            f"{who} waits for ever{elsewhere}",
            "move it out of the branch, or give a mask of exactly the lanes that come to it",
        ),
        "not in mask": (
            f"{who} takes part in an exchange or a __syncwarp whose mask is without it, outside "
            "the mask",
            "a mask of exactly the lanes that come to it",
        ),
        "lane outside mask": (
            f"{who} reads from a lane outside the mask of an exchange",
            "a mask that has the lane which is read",
        ),
        "lane gone": (
            f"{who} reads from a lane of its warp that has left the kernel or is not there",
            "keep all lanes to the end, and let those without work bring a 0",
        ),
        "not to be reached": (  # clang's own check of pointers into arrays
            f"out of bounds: {who} goes outside of an array, or to where nothing should get",
            "keep the index within the array's length",
        ),
        "shifted": (
            f"{who} shifts a number by as many bits as it has, or more, or less than 0: C++ says "
            "nothing of the result",
            "treat that case apart, such as `n < 32 ? x << n : 0`",
        ),
        "asserted": (f"{who} finds that assert({words}) does not hold", ""),
        "converted": (
            f"{who} converts a floating-point number that the integer type cannot hold, NaN "
            "perhaps: C++ says nothing of the result; a GPU gives the nearest integer, or 0",
            "say so with __float2int_rz, __float2uint_rz or their like, or clamp the number before",
        ),
        "trapped": (f"{who} stopped the kernel (__trap)", ""),
        "divided by zero": (
            f"{who} divides an integer by zero, which on a GPU gives a number without meaning",
            "make sure that the divisor is not 0",
        ),
        "stack overflow": (
            f"{who} needs more local memory than the 512 KB that a thread of a GPU has",
            "smaller local arrays, or no recursion that goes this deep",
        ),
        "crashed": (f"it crashed in {who}", "look at the addresses that this line uses"),
        "aborted": (f"{who} called abort(), or an assertion failed", ""),
        "exited": (f"{who} called exit(), which a GPU does not have", "return"),
        "died": (f"it ended the process that emulates it ({_status(words)})", ""),
        "too long": (
            f"it did not end within {timeout:g} seconds of processor time; {who} "
            + (waits if answer["waiting"] else "was still running"),
            "end the loop, or give more time by timeout= if it only is slow",
        ),
        "not loaded": (words, ""),
    }[found]
    if null:
        expected = "give an array where the argument is None, or let the kernel test the pointer"
        problem = problem.removeprefix("out of bounds: ")
    if found == "out of bounds" and space is Space.DYNAMIC and not known[answer["array"]].size:
        problem = f"{who} {_VERBS[answer['kind']]} dynamic shared memory, which has 0 bytes"
        expected = (
            "say how many bytes `extern __shared__` gets: shared_bytes= of emulate, the third "
        )
        expected += "number of <<<>>>"
    if not answer["in_kernel"]:
        problem = problem.replace(f"; {who}", "; it").replace(who, "it")
        return KernelError(kernel, problem, expected)
    return KernelError(f"{kernel}, {here or 'unknown line'}", problem, expected)


_SHARED = (Space.SHARED, Space.DYNAMIC)


def _differing(
    answer: Any, line_of: Callable[[int], Line | None], kernel: str
) -> KernelError | None:
    """Say of the threads that were together at two places whether these are on two lines."""
    for note in answer["notes"][: answer["n_notes"]]:
        here, there = line_of(int(note["code"])), line_of(int(note["other_code"]))
        if here == there and not note["unlike"]:
            continue
        who, other = (_thread(note[name], note["block"]) for name in ("thread", "other_thread"))
        at = f"{kernel}, {here or 'unknown line'}"
        if note["warp"]:
            what = "lanes of a warp exchange at different places"
            if note["unlike"]:
                what = "lanes of a warp come to different warp-wide functions"
            fix = "let all lanes of the mask come to the same exchange"
        else:
            what = "threads of a block wait at different barriers"
            fix = "let all threads of the block pass the same __syncthreads"
        return KernelError(at, f"{what}: {who} here, {other} at {there}", fix)
    return None


def _name(answer: Any, known: Sequence[Known]) -> str:
    return known[answer["array"]].name if 0 <= answer["array"] < len(known) else "?"


def _race_advice(answer: Any, one_line: bool) -> str:
    kinds = {int(answer["kind"]), int(answer["other_kind"])}
    if one_line and kinds == {0, 1}:
        return (
            "if several threads are to add to one element, as by `+=`: atomicAdd(&..., value); "
            "else let each thread write an element of its own, or put a barrier (__syncthreads; "
            "within a warp __syncwarp) between reading and writing"
        )
    if one_line and kinds == {1}:
        return "let each thread write an element of its own; atomicAdd if they are to be summed"
    if (answer["block"] != answer["other_block"]).any():
        return (
            "let each block write elements of its own, or use atomics for both; what another block "
            "has written is safe to read only in a later launch, or after a fence and an atomic"
        )
    advice = (
        "put a barrier between the two (__syncthreads; within a warp __syncwarp), or use atomics"
    )
    same = answer["code"] == answer["other_code"] and KINDS[answer["kind"]] == "store"
    return f"let each thread write elements of its own; else {advice}" if same else advice


def _status(text: str) -> str:
    """Put a process's status, as `os.wait` gives it, into words."""
    status = int(text) if text.lstrip("-").isdigit() else 0
    by_signal = status & 0x7F
    return f"by signal {by_signal}" if by_signal else f"with exit status {status >> 8}"


def _thread(thread: Sequence[int], block: Sequence[int]) -> str:
    return f"thread {_index(thread)} of block {_index(block)}"


def _index(index: Sequence[int]) -> str:
    x, y, z = index
    return f"({x}, {y}, {z})" if y or z else str(x)


def _place(answer: Any, known: Sequence[Known], parameters: Sequence[Parameter]) -> str:
    number, size, offset = (int(answer[name]) for name in ("array", "bytes", "offset"))
    if not 0 <= number < len(known):
        return f"{size} bytes at an address in no array"
    array = known[number]
    # Elements as the kernel has them: an int4 * counts int4s in an array of int32.
    sizes = {each.name: each.size for each in parameters if each.pointer and each.kind != "v"}
    itemsize = sizes.get(array.name) or array.itemsize or size or 1
    place = f"{array.name}[{offset // itemsize}]"
    beyond = offset + size - array.size
    if offset < 0:
        return f"{place}, {-offset} bytes before its beginning"
    if beyond > 0:
        elements = array.size // itemsize
        hint = ""
        wrapped = offset // itemsize - (1 << 32)
        if -(1 << 20) < wrapped < 0:
            hint = f"; the index is {wrapped} in 32 bits without a sign"
        return f"{place}, {beyond} bytes past its end ({elements} elements{hint})"
    return f"{place} (byte {offset})"
