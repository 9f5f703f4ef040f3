"""Error messages, with advice, for the problems that the emulator's runtime reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accelviz.emulator.declared import barrier_between, element
from accelviz.emulator.memory import Known, Space
from accelviz.emulator.signature import Parameter
from accelviz.emulator.symbols import Line
from accelviz.errors import KernelError

KINDS = ("load", "store", "atomic")
_VERBS = ("reads", "writes", "updates atomically")
_BARRIER = "(__syncthreads; within a warp __syncwarp)"
_INDEX = "keep the index within the array's length"
_AWAIT = (
    "wait for the copy first, then put a barrier if other threads use the data; what waits is "
    "cg::wait(group), __pipeline_commit with __pipeline_wait_prior(0), or the copy's cuda::barrier "
    "or cuda::pipeline, and not __syncthreads"
)
_LANES = "a mask of exactly the lanes that come to it"
#: (problem, advice) by the runtime's name of a problem; `kernel_error` fills in the braces.
_PROBLEMS = {
    "out of bounds": ("out of bounds: {access}", "{bounds_advice}"),
    "null pointer": (
        "{who} {verb} {bytes} bytes through a null pointer",
        "give an array where the argument is None, or let the kernel test the pointer",
    ),
    "no dynamic shared memory": (
        "{who} {verb} dynamic shared memory, which has 0 bytes",
        "say how many bytes `extern __shared__` gets: shared_bytes= of emulate, the third number "
        "of <<<>>>",
    ),
    "local out of bounds": ("out of bounds: {who} {verb} outside of its local arrays", _INDEX),
    "index out of bounds": ("out of bounds: {who} uses index {indexed}", _INDEX),
    "local array overrun": (
        "{who} has written past the end of a local array of this function",
        _INDEX,
    ),
    "read only": ("{access}, which is {read_only}", "{write_elsewhere}"),
    "misaligned": (
        "misaligned: {access}",
        "an address that is a multiple of the access's {bytes} bytes",
    ),
    "unwritten": ("{access}, which nothing has written before", "{write_first}"),
    "undefined value": ("{access}, and the value depends on {source}", "{define}"),
    "undefined address": ("{who} {verb} {name} at an address that depends on {source}", "{define}"),
    "undefined branch": (
        "{event}, or does not: a branch before it depends on {source}",
        "{define}",
    ),
    "undefined use": ("what {who} does here depends on {source}", "{define}"),
    "width": (
        "{who} shuffles with a width that is no power of two up to 32, which CUDA leaves undefined",
        "a width of 1, 2, 4, 8, 16 or 32",
    ),
    "race": ("a race: {access}, and {too}; nothing says which comes first", "{race_advice}"),
    "barrier missed": (
        "a barrier that not all threads reach: {who} waits for ever, {other} went past it "
        "({waiting} threads wait there, {left} have left the kernel)",
        "move __syncthreads out of the branch or the loop, so that all threads come to it",
    ),
    "grid barrier missed": (
        "a barrier of the grid that not all blocks reach: {who} waits for ever, {other} has left "
        "the kernel",
        "let all threads of all blocks come to each grid.sync(), also those without work",
    ),
    "cluster barrier missed": (
        "a barrier of the cluster that not all threads reach: {who} waits for ever, {other} went "
        "past it",
        "let all threads of all blocks of the cluster come to each cluster.sync()",
    ),
    "grid barrier in clusters": (
        "{who} waits for the whole grid in a launch with clusters, which the emulator does not run",
        "cluster.sync() for the blocks of a cluster, or a launch without clusters",
    ),
    "cluster block left": (
        "{access}, and nothing keeps that block from leaving the kernel before",
        "put cluster.sync() behind the last access to another block's shared memory",
    ),
    "cluster block not begun": (
        "{access}, and nothing says that that block has begun to run",
        "put cluster.sync() before the first access to another block's shared memory",
    ),
    "cluster rank": (
        "{who} asks for the shared memory of block {words} of its cluster",
        "a rank below cluster.num_blocks()",
    ),
    "not its shared memory": (
        "{who} maps an address that is not in its block's shared memory to another block",
        "map_shared_rank of a __shared__ variable, or of an address in one",
    ),
    "tile missed": (
        "a barrier of a tile that not all its threads reach: {who} waits for ever, {other} does "
        "not come",
        "let all threads of the tile come to it; sync, any, all, reduce and scans are barriers",
    ),
    "barriers differ": (
        "threads of a block wait at different barriers: {who} here, {other} at {other_line}",
        "let all threads of the block pass the same barrier, of the block or of the grid",
    ),
    "deadlock": (
        "a deadlock: {who} waits for ever at a cuda::barrier or a stage of a cuda::pipeline, of "
        "which {missing} arrivals are missing{elsewhere}; {waiting} threads wait there, {left} "
        "have left the kernel",
        "let as many threads arrive as the barrier was initialised with; in a pipeline, "
        "producer_commit and consumer_release arrive",
    ),
    "grid too large": (
        "{who} waits for the whole grid, which has more than the 16,384 threads that the emulator "
        "lets wait",
        "a smaller grid, whose threads loop over the elements: a cooperative launch on a GPU has "
        "a limit, too",
    ),
    "host variable": (
        "{who} uses {name}, a variable of the host, which CUDA refuses",
        "pass it as an argument, or declare it __constant__, __device__, or `const`",
    ),
    "host function": (
        "{who} calls {words}, a function of the host, which CUDA refuses",
        "write __device__ in front of {words}",
    ),
    "texture": (
        "{who} calls {words}, and the emulator has textures without mipmaps and cube maps",
        "tex1D, tex2D or tex3D of a texture of one level, or an array behind a pointer",
    ),
    "no texture": (
        "{who} uses a texture or surface that is none",
        "pass accelviz.emulator.Texture(array) for the parameter; objects in structures, in arrays "
        "and in __constant__ memory do not run",
    ),
    "texture type": (
        "{who} reads {words}, and a GPU converts neither the type nor missing channels",
        "read the type that the texture gives, and convert the value, or its bits by "
        "__int_as_float or __float_as_int; small integers are floats with Texture(..., "
        "as_float=True)",
    ),
    "printf": (
        "{who} prints with {words}, which CUDA's printf cannot",
        "%d, %u, %x or %c of integers, %f, %e or %g of float and double, %s of texts, %p of "
        "pointers, an argument for each; it has no %n",
    ),
    "surface out of bounds": (
        "out of bounds: {who} reads or writes outside of a surface",
        "compare the coordinates with its size; x counts bytes: x * sizeof(element)",
    ),
    "unfilled": (
        "{access}, a __constant__ variable to which nobody has given a value",
        'give it one: emulate(..., symbols={{"{name}": array}}), as cudaMemcpyToSymbol does',
    ),
    "part filled": (
        "{access}, to which nobody has given a value: symbols= fills {filled} of the {size} bytes",
        'give each element one: emulate(..., symbols={{"{name}": array}}) with an array of {size} '
        "bytes, or `= {{}}` in the source for zeros",
    ),
    "read-only load": (
        "{access} by __ldg, which is for memory that no thread writes during the launch, and {too}",
        "read it with a plain load, or let the kernel write to another array",
    ),
    "read-only memory": (
        "{access}, and {too} by __ldg, which is for memory that no thread writes during the launch",
        "read it with a plain load, or let the kernel write to another array",
    ),
    "restrict": (
        "{access}, an array that {parameters} share: __restrict__ promises that what a kernel "
        "writes is used through one parameter alone",
        "give each parameter an array of its own, or take __restrict__ from them",
    ),
    "copy arriving": (
        "{access}, to which {other} still copies: nothing waits for the asynchronous copy that it "
        "starts at {other_line}",
        _AWAIT,
    ),
    "copy leaving": (
        "{access}, from which {other} still copies: nothing waits for the asynchronous copy that "
        "it starts at {other_line}",
        _AWAIT,
    ),
    "copy unfinished": (
        "{who} leaves the kernel without a wait for the asynchronous copy that it starts here",
        _AWAIT,
    ),
    "copy size": (
        "{who} copies {words} bytes asynchronously, which no GPU does",
        "4, 8 or 16 bytes, of which at most as many become zeros",
    ),
    "not shared": (
        "{who} copies asynchronously to memory that is not shared",
        "a destination in __shared__ memory; a plain assignment for others",
    ),
    "lanes missing": (
        "a warp-wide exchange or __syncwarp that not all lanes of its mask reach: {who} waits for "
        "ever{elsewhere}",
        "move it out of the branch, or give a mask of exactly the lanes that come to it",
    ),
    "not in mask": (
        "{who} takes part in an exchange or a __syncwarp whose mask is without it, outside the "
        "mask",
        _LANES,
    ),
    "lane outside mask": (
        "{who} reads from a lane outside the mask of an exchange",
        "a mask that has the lane which is read",
    ),
    "lane gone": (
        "{who} reads from a lane of its warp that has left the kernel or is not there",
        "keep all lanes to the end, and let those without work bring a 0",
    ),
    "not to be reached": (  # clang's own check of pointers into arrays
        "out of bounds: {who} goes outside of an array, or to where nothing should get",
        _INDEX,
    ),
    "shifted": (
        "{who} shifts a number by as many bits as it has, or more, or less than 0: C++ says "
        "nothing of the result",
        "treat that case apart, such as `n < 32 ? x << n : 0`",
    ),
    "block size": (
        "{who} uses a collective of CUB in a block of another size than its template arguments say",
        "{words}",
    ),
    "fragment": (
        "{who} uses a fragment whose matrix {words}",
        "one address and one leading dimension for all lanes of the warp, multiples of 32 bytes "
        "and of 16 bytes",
    ),
    "asserted": ("{who} finds that assert({words}) does not hold", ""),
    "converted": (
        "{who} converts a floating-point number that the integer type cannot hold, NaN perhaps: "
        "C++ says nothing of the result; a GPU gives the nearest integer, or 0",
        "say so with __float2int_rz, __float2uint_rz or their like, or clamp the number before",
    ),
    "trapped": ("{who} stopped the kernel (__trap)", ""),
    "divided by zero": (
        "{who} divides an integer by zero, which on a GPU gives a number without meaning",
        "make sure that the divisor is not 0",
    ),
    "stack overflow": (
        "{who} needs more local memory than the 512 KB that a thread of a GPU has",
        "smaller local arrays, or no recursion that goes this deep",
    ),
    "crashed": ("it crashed in {who}", "look at the addresses that this line uses"),
    "aborted": ("{who} called abort(), or an assertion failed", ""),
    "exited": ("{who} called exit(), which a GPU does not have", "return"),
    "died": ("it ended the process that emulates it ({status})", ""),
    "too long": (
        "it did not end within {timeout:g} seconds of processor time; {still}",
        "end the loop, or give more time by timeout= if it only is slow",
    ),
    "not loaded": ("{words}", ""),
}
#: Follows {still} in "too long" if a thread waits for another one and there are several blocks.
_BLOCKS_IN_A_ROW = (
    ". Blocks run one after another, and a GPU does not promise either that a later block runs "
    "beside an earlier one"
)


def kernel_error(
    answer: Any,
    known: Sequence[Known],
    parameters: Sequence[Parameter],
    lines_to: Callable[[Sequence[int]], list[Line]],
    kernel: str,
    timeout: float,
    texts: Mapping[str, str],
) -> KernelError | None:
    """Return the error for an answer of `Library.run`, or None if there is no problem.

    `lines_to` returns the source lines of offsets in the library, see symbols.py; `texts` has the
    sources by file name.
    """

    def line_of(offset: int) -> Line | None:
        return next(iter(lines_to([offset])), None)

    key = answer["problem"].decode()
    # Lanes that have exchanged at different places are the cause of what follows.
    causes = ("", "fragment", "lanes missing", "lane gone")
    elsewhere = None
    if key in (*causes, "race", "unwritten"):
        elsewhere = _different_places(answer, line_of, kernel, barriers_only=key not in causes)
    if elsewhere or not key:
        return elsewhere
    text = answer["text"].decode("utf-8", "replace")
    calls = [int(code) for code in answer["callers"][: answer["n_callers"]]]
    lines = lines_to([int(answer["code"]), *calls])
    line, callers = (lines[0], lines[1:]) if lines else (None, [])
    other_line = line_of(int(answer["other_code"]))
    who = _thread(answer["thread"], answer["block"]) if answer["in_kernel"] else "it"
    other = _thread(answer["other_thread"], answer["other_block"])
    verb = _VERBS[answer["kind"]]
    other_verb, *adverb = _VERBS[answer["other_kind"]].split()
    array = known[answer["array"]] if 0 <= answer["array"] < len(known) else None
    space = array.space if array else None
    if key == "out of bounds":
        if not array and 0 <= answer["offset"] < 1 << 20:
            key = "null pointer"
        elif array and space is Space.DYNAMIC and not array.size:
            key = "no dynamic shared memory"
    if key == "unfilled" and array and array.filled_bytes:
        key = "part filled"
    write_first = "write it first"
    if answer["copied"]:
        write_first = _AWAIT
    elif array and array.shared:
        write_first += ", and put __syncthreads() in between if another thread does"
    elif space is Space.ARGUMENT:
        write_first += ", or clear it"
        if answer["n_blocks"] > 1:
            write_first += (
                "; if another block writes it, in an earlier launch or before a grid.sync()"
            )
    read_only, write_elsewhere = "an input", "write to outputs only"
    if space is Space.CONSTANT:
        read_only, write_elsewhere = "__constant__", "constants are written by the host only"
    access = f"{who} {verb} {_element(answer, array, parameters, texts)}"
    if answer["has_owner"]:
        access += f" in the shared memory of block {_index(answer['owner'])}"
    source = f"a local variable that nothing has written before: {text}"
    if text.startswith("the "):
        source = text
    define = (
        "give every local variable, and each element of a local array, a value before it is read, "
        "such as `= 0` or `= {}`"
    )
    if other_line and key.startswith("undefined"):
        source = f"what the shuffle at {other_line} read from a lane outside its mask"
        define = (
            "read from lanes of the mask only (for 16 lanes begin with an offset of 8), or use the "
            "result only where the lane that is read is in the mask"
        )
    if text.startswith("the "):
        define = "let that thread write it to shared memory, and read it after a __syncthreads()"
    status = int(text) if key == "died" else 0
    fields = {
        **{name: answer[name] for name in ("bytes", "waiting", "left", "missing")},
        "who": who,
        "other": other,
        "other_line": other_line,
        "verb": verb,
        "words": text,
        "timeout": timeout,
        "access": access,
        "name": array.name if array else "memory",
        "filled": array.filled_bytes if array else 0,
        "size": array.size if array else 0,
        "parameters": " and ".join(array.parameters) if array else "",
        "indexed": text.replace("'", "").replace(" [", "["),  # "5 of 'int [4]'" to "5 of int[4]"
        "read_only": read_only,
        "write_elsewhere": write_elsewhere,
        "write_first": write_first,
        "event": f"{who} waits here" if answer["waiting"] else access,
        "source": source,
        "define": define,
        "too": f"{other} {' '.join([other_verb, 'it', *adverb])} at {other_line}",
        "bounds_advice": _bounds_advice(access, space),
        "race_advice": _race_advice(answer, line, other_line, array, texts),
        "elsewhere": _elsewhere(answer, other, other_line),
        "status": f"by signal {-status}" if status < 0 else f"with exit status {status}",
        "still": f"{who} was still running",
    }
    if answer["waiting"] and key == "too long":
        fields["still"] = f"{who} waits, in a loop, for something that no thread does"
        fields["still"] += _BLOCKS_IN_A_ROW if answer["n_blocks"] > 1 else ""
    problem, expected = (template.format(**fields) for template in _PROBLEMS[key])
    subject = kernel
    if answer["in_kernel"] and line:
        subject, problem = f"{kernel}, {line}", problem + _called_from(callers, line)
    error = KernelError(subject, problem, expected)
    error.mistake = key.replace(" ", "-")
    return error


def _different_places(
    answer: Any, line_of: Callable[[int], Line | None], kernel: str, *, barriers_only: bool
) -> KernelError | None:
    """Return the error for threads that waited for each other at different lines, or None.

    `barriers_only` are those of the block that has the problem.
    """
    for note in answer["notes"][: answer["n_notes"]]:
        in_warp = note["warp"] or note["unlike"]
        if barriers_only and (in_warp or (note["block"] != answer["block"]).any()):
            continue
        line, other_line = line_of(int(note["code"])), line_of(int(note["other_code"]))
        if line == other_line and not note["unlike"]:
            continue
        problem = "threads of a block wait at different barriers"
        fix = "let all threads of the block pass the same __syncthreads"
        if note["warp"]:
            problem = "lanes of a warp exchange at different places"
            fix = "let all lanes of the mask come to the same exchange"
        if note["unlike"]:
            problem = "lanes of a warp come to different warp-wide functions"
        who, other = (_thread(note[name], note["block"]) for name in ("thread", "other_thread"))
        subject = f"{kernel}, {line}" if line else kernel
        error = KernelError(subject, f"{problem}: {who} here, {other} at {other_line}", fix)
        error.mistake = "different-places"
        return error
    return None


def _called_from(callers: Sequence[Line], line: Line) -> str:
    """Return the end of a sentence on the calls that lead to a line, "" without calls."""
    places = [f"line {one.line}" if one.file == line.file else str(one) for one in callers]
    places = [*dict.fromkeys(places)]  # a recursive function
    more = [*places[:3], "..."] if len(places) > 4 else places
    return f" (called from {', from '.join(more)})" if places else ""


def _bounds_advice(access: str, space: Space | None) -> str:
    if "without a sign" in access:
        return (
            "an unsigned number is never below 0: test `i > 0` before `i - 1`, count down by "
            "`while (i-- > 0)`, or use an int"
        )
    advice = "compare the index with the array's length before using it"
    if space is Space.DYNAMIC:
        advice += ", or launch with more bytes by shared_bytes= of emulate"
    return advice


def _elsewhere(answer: Any, other: str, other_line: Line | None) -> str:
    """Return where a thread is for which another one waits."""
    if not answer["bytes"]:
        return ""
    if answer["problem"] == b"deadlock":
        return f", and {other} waits at {other_line}"
    return f", and {other} does not come"


def _race_advice(
    answer: Any,
    line: Line | None,
    other_line: Line | None,
    array: Known | None,
    texts: Mapping[str, str],
) -> str:
    kinds, one_line = {int(answer["kind"]), int(answer["other_kind"])}, line == other_line
    if one_line and kinds == {1}:
        return "let each thread write an element of its own; atomicAdd if they are to be summed"
    add = "if several threads are to add to one element, as by `+=`: atomicAdd(&..., value); else "
    if (answer["block"] != answer["other_block"]).any() and array and array.shared:
        advice = "put cluster.sync() between the two, or use atomics for both"
        return f"{add}{advice}" if one_line and kinds == {0, 1} else advice
    if (answer["block"] != answer["other_block"]).any():
        advice = (
            "let each block write elements of its own, or use atomics for both; what another block "
            "has written is safe to read only in a later launch, after a cooperative launch's "
            "grid.sync(), or behind a flag or lock: the writer calls __threadfence() before its "
            "atomic, and the reader calls it after its own"
        )
        return f"{add}{advice}" if one_line and kinds == {0, 1} else advice
    if one_line and kinds == {0, 1}:
        return (
            f"{add}let each thread write an element of its own, or put a barrier {_BARRIER} "
            "between reading and writing"
        )
    threads = answer["thread"], answer["other_thread"]
    if again := barrier_between(texts, line, other_line, threads):
        return again
    advice = f"put a barrier between the two {_BARRIER}, or use atomics"
    same = answer["code"] == answer["other_code"] and KINDS[answer["kind"]] == "store"
    return f"let each thread write elements of its own; else {advice}" if same else advice


def _thread(thread: Sequence[int], block: Sequence[int]) -> str:
    return f"thread {_index(thread)} of block {_index(block)}"


def _index(index: Sequence[int]) -> str:
    x, y, z = index
    return f"({x}, {y}, {z})" if y or z else str(x)


def _element(
    answer: Any,
    array: Known | None,
    parameters: Sequence[Parameter],
    texts: Mapping[str, str],
) -> str:
    """Return the accessed element of an array, and its distance if it is out of bounds."""
    size, offset = int(answer["bytes"]), int(answer["offset"])
    if array is None:
        return f"{size} bytes at an address in no array"
    # Indices count elements of the kernel's type: int4s for an int4 * to an array of int32.
    sizes = {one.name: one.size for one in parameters if one.pointer and one.kind != "v"}
    itemsize = sizes.get(array.name) or array.itemsize or size or 1
    index = offset // itemsize
    accessed = f"{array.name}[{index}]"
    if array.space is not Space.ARGUMENT and offset >= 0:
        text = "\n".join(texts.values())
        accessed = element(text, array.name, array.size, offset) or accessed
    bytes_past_end, signed_index = offset + size - array.size, index - (1 << 32)
    if offset < 0:
        return f"{accessed}, {-offset} bytes before its beginning"
    if bytes_past_end <= 0:
        return f"{accessed} (byte {offset})"
    count = f"{array.size // itemsize} elements"
    if -(1 << 20) < signed_index < 0:
        count += f"; the index is {signed_index} in 32 bits without a sign"
    return f"{accessed}, {bytes_past_end} bytes past its end ({count})"
