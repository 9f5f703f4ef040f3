"""A kernel compiled for the host, and its launches, each in a process of its own."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accelviz.emulator import cache, process, signature
from accelviz.emulator.build import HOST_SOURCES, Kernel, build, runtime
from accelviz.emulator.memory import HEAD, OUTER, Known, Memory, Space
from accelviz.emulator.problems import kernel_error
from accelviz.emulator.process import Common, wall_seconds
from accelviz.emulator.source import other_kernels
from accelviz.emulator.symbols import function_size, line_of, lines_to, plain, variables
from accelviz.errors import ArgumentError, KernelError
from accelviz.files import written_whole

#: Address of dynamic shared memory; EMULATOR_DYNAMIC_SHARED in cuda_on_host.h.
_DYNAMIC = 0x0780_0000_0000
#: Limits of GPUs since 2020: blocks of a grid in x, y and z; threads of a block, in total and in x,
#: y and z; shared memory of a block, in total and static.
GRID_LIMITS = (1 << 31) - 1, 65_535, 65_535
CLUSTER_BLOCKS = 8
BLOCK_THREADS, BLOCK_LIMITS = 1024, (1024, 1024, 64)
SHARED_BYTES, STATIC_SHARED_BYTES = 227 << 10, 48 << 10

#: Problems that cause undefined values; others may be caused by undefined values.
_CAUSES = (b"lane outside mask", b"lane gone", b"not in mask", b"width")


def _structures() -> dict[str, Any]:
    """Return NumPy dtypes of the structures in runtime.h, read from that file."""
    types: dict[str, Any] = {"double": "f8", "EmulatorSpace": "i4"}
    for size in (1, 2, 4, 8):
        types |= {f"std::uint{8 * size}_t": f"u{size}", f"std::int{8 * size}_t": f"i{size}"}
    text = re.sub(r"//.*", "", (HOST_SOURCES / "runtime.h").read_text("utf-8"))
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", text, re.S):
        members: list[Any] = [
            (member, f"S{length}")
            if type_ == "char"
            else (member, types[type_], (int(length),) if length else ())
            for type_, names in re.findall(r"([\w:]+) ([^;]+);", body)
            for member, length in re.findall(r"(\w+)(?:\[(\d+)\])?", names)
        ]
        types[name] = np.dtype(members, align=True)
    return types


_TYPES = _structures()
_LAUNCH, _REQUEST = _TYPES["EmulatorLaunch"], _TYPES["EmulatorRequest"]
#: An access of one lane, or a wait of a warp at a barrier.
RECORD: np.dtype[np.void] = _TYPES["EmulatorRecord"]


class Launch(NamedTuple):
    """Numbers of blocks and threads in x, y and z, bytes of dynamic shared memory.

    `cluster` is the number of blocks of a cluster, by default that of the kernel's declaration.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int = 0
    cluster: tuple[int, int, int] | None = None

    def check(self, kernel: str) -> None:
        """Raise ArgumentError if the launch exceeds the limits of GPUs."""
        threads, dynamic = int(np.prod(self.block, dtype=object)), self.dynamic_shared_bytes
        checks: list[tuple[str, str, int, int, int]] = []
        for axis, blocks, limit in zip("xyz", self.grid, GRID_LIMITS, strict=True):
            checks.append(("grid", f"blocks in {axis}", blocks, 1, limit))
        for axis, size, limit in zip("xyz", self.block, BLOCK_LIMITS, strict=True):
            checks.append(("block", f"threads in {axis}", size, 1, limit))
        checks.append(("block", "threads", threads, 0, BLOCK_THREADS))
        checks.append(("shared_bytes", "bytes of dynamic shared memory", dynamic, 0, SHARED_BYTES))
        for name, unit, count, least, most in checks:
            if not least <= count <= most:
                expected = f"{'1 to' if least else 'at most'} {most:,}"
                raise ArgumentError(name, f"{count:,} {unit} for {kernel}", expected)


def compiled(kernel: Kernel, *, checked: bool = True, symbols: tuple[str, ...] = ()) -> Library:
    """Compile a kernel for the host and load it; both are cached. See `build`.

    Raises
    ------
    DeviceUnavailable
        If there is no compiler.
    KernelError
        If it does not compile, or calls an undefined function.
    """
    path = build(kernel, checked=checked, symbols=symbols)
    tracks_undefined = checked and kernel.tracks_undefined
    others = other_kernels(kernel.source, kernel.entry)
    library = _load(path, runtime(), kernel.entry, kernel.names, symbols, tracks_undefined, others)
    library.texts = kernel.texts  # of the same text for each kernel with this path
    return library


class Library:
    """A kernel compiled to the shared library `path`, which the runtime `program` loads.

    `names` are those of the parameters, `symbols` those of variables with initial values, `others`
    those of kernels in the same library. Raises
    KernelError if the library cannot be loaded, for example if a called function is undefined.
    """

    def __init__(
        self,
        path: Path,
        program: Path,
        kernel: str,
        names: tuple[str, ...],
        symbols: tuple[str, ...],
        tracks_undefined: bool = False,
        others: frozenset[str] = frozenset(),
    ) -> None:
        self.path, self.kernel, self._program = path, kernel, program
        self._tracks_undefined = tracks_undefined
        self._file = path.read_bytes()
        self.texts: Callable[[], Mapping[str, str]] = dict  # sources by file name, for messages
        # A launch of no block returns the description of the kernel.
        answer, _ = self._send(Memory(Common(HEAD)), np.zeros((), _LAUNCH), 60.0)
        if answer["problem"]:
            raise KernelError(kernel, *_not_loaded(answer))
        bound, _, description = answer["text"].decode().partition("\n")
        threads, blocks = map(int, bound.split())
        self._most_threads = threads or BLOCK_THREADS
        sizes = blocks & 0xFFFF, blocks >> 16 & 0xFFFF, blocks >> 32
        self._cluster = sizes if blocks else None
        parameters_text, _, variables_text = description.partition("variables\n")
        self.parameters = signature.parameters(parameters_text, names)
        self.symbols = signature.parameters(variables_text, symbols)
        start = int(answer["code"])
        self._code = start, start + function_size(path, start)
        self.variables = variables(path, others)
        shared = sum(-(-known.size // 16) * 16 for known in self.variables if known.shared)
        if shared > STATIC_SHARED_BYTES:
            problem = f"it has {shared:,} bytes of static shared memory"
            expected = f"at most {STATIC_SHARED_BYTES:,}; more only as dynamic shared memory"
            raise KernelError(kernel, problem, expected)
        self._static_shared = shared

    def run(
        self,
        launch: Any,
        names: Sequence[str],
        memory: Memory,
        *,
        seed: int = 0,
        first_block: int = 0,
        n_blocks: int | None = None,
        traced: bool = False,
        checked: bool = True,
        timeout: float = 60.0,
        compared: bool = False,
        same_values: bool = False,
    ) -> tuple[Any, list[Known], str]:
        """Run blocks of a launch in a new process; return (answer, known, printed).

        `launch` has the attributes of `Launch`; `names` are the names of the arguments in `memory`,
        in the order of the parameters. `n_blocks` blocks run from `first_block` on, numbered with x
        fastest, by default all. `seed`, `checked` and `timeout` are those of `EmulatorDevice`.
        `traced` records every access for `trace`. `compared` does not change the arrays, but
        reports a dependence on undefined values as a problem (see compare.h). `same_values` accepts
        that threads store the same value in one place, unordered (see `notes`).

        `answer` is an `EmulatorAnswer` of runtime.h, `known` the arrays to which array numbers in
        the answer and in the trace refer, `printed` the output of the kernel's printf.
        """
        if (threads := math.prod(launch.block)) > self._most_threads:
            problem = f"{threads} threads for {self.kernel}, which promises __launch_bounds__"
            raise ArgumentError("block", problem, f"at most {self._most_threads}")
        cluster = self._checked_cluster(launch)
        dynamic = launch.dynamic_shared_bytes
        if dynamic + self._static_shared > SHARED_BYTES:
            problem = f"{dynamic:,} bytes beside {self._static_shared:,} static ones"
            raise ArgumentError("shared_bytes", problem, f"at most {SHARED_BYTES:,} together")
        known = [*memory.known.values(), *self._initialised_variables(memory)]
        if dynamic or not traced:  # also 0 bytes, so that an access has a message of its own
            known.append(Known("dynamic shared memory", dynamic, _DYNAMIC, space=Space.DYNAMIC))
        # Layout of common memory: request, arrays, offsets of the argument values, values.
        members = _TYPES["EmulatorArray"].names
        rows = [(one.address, one.size, *(getattr(one, m) for m in members[2:])) for one in known]
        arrays = np.array(rows, _TYPES["EmulatorArray"]).tobytes()
        values = [value + bytes(-len(value) % 16) for value in self._values(names, memory)]
        arrays_start, offsets_start = _REQUEST.itemsize, _REQUEST.itemsize + len(arrays)
        values_start = -(-(offsets_start + 8 * len(values)) // 16) * 16
        *offsets, end = itertools.accumulate(map(len, values), initial=values_start)
        if end > HEAD:
            raise KernelError(self.kernel, f"{len(known)} arrays are too many", "fewer")
        head = arrays + np.array(offsets, np.uint64).tobytes()
        padded_head = head.ljust(values_start - arrays_start, b"\0")
        memory.common.data[arrays_start:end] = b"".join([padded_head, *values])
        if n_blocks is None:
            n_blocks = int(np.prod(launch.grid)) - first_block
        fields = (  # of EmulatorLaunch, in order
            *(
                launch.grid,
                launch.block,
                cluster,
                dynamic,
                len(known),
                len(values),
                traced,
                checked,
            ),
            *(first_block, n_blocks, seed, arrays_start, offsets_start, self._code),
            *((timeout, wall_seconds(timeout)), compared, same_values),
        )
        request = np.array(fields, dtype=_LAUNCH)
        answer, printed = self._send(memory, request, timeout)
        return answer, known, printed

    def _checked_cluster(self, launch: Any) -> tuple[int, int, int]:
        """Return the number of blocks of a cluster in x, y and z."""
        requested, declared = getattr(launch, "cluster", None), self._cluster
        cluster: tuple[int, int, int] = requested or declared or (1, 1, 1)
        if requested and declared and requested != declared:
            problem = (
                f"got {requested} for {self.kernel}, which declares __cluster_dims__{declared}"
            )
            raise ArgumentError("cluster", problem, "none, or the same")
        if math.prod(cluster) > CLUSTER_BLOCKS:
            problem = f"{math.prod(cluster)} blocks in a cluster of {self.kernel}"
            raise ArgumentError("cluster", problem, f"at most {CLUSTER_BLOCKS}")
        if any(blocks % size for blocks, size in zip(launch.grid, cluster, strict=True)):
            problem = f"{launch.grid} blocks for {self.kernel}, whose clusters have {cluster}"
            raise ArgumentError("grid", problem, "multiples of the cluster's size")
        return cluster

    def run_checked(
        self, launch: Any, names: Sequence[str], memory: Memory, **options: Any
    ) -> tuple[list[Known], Any]:
        """Run, print the kernel's output, raise a problem; return (known, answer) of `run`.

        If there were undefined values, results must not depend on them.
        """
        tracks_undefined = self._tracks_undefined and not options.get("traced")
        before = memory.contents() if tracks_undefined else []
        answer, known, printed = self.run(launch, names, memory, **options)
        print(printed, end="")
        is_late = answer["problem"] == b"too long"
        if tracks_undefined and answer["undefined"] and answer["problem"] not in _CAUSES:
            after = memory.contents()
            memory.restore(before)
            comparison_options = options | {"checked": False, "compared": True}
            if is_late:  # compare what the first seconds do
                comparison_options["timeout"] = min(2.0, options.get("timeout", 60.0))
            comparison, *_ = self.run(launch, names, memory, **comparison_options)
            memory.restore(after)
            if comparison["problem"] not in (b"", b"too long"):
                self.raise_problem(comparison, known, options)
        self.raise_problem(answer, known, options)
        return known, answer

    def raise_problem(
        self, answer: Any, known: Sequence[Known], options: Mapping[str, Any]
    ) -> None:
        """Raise a KernelError if an answer of `run` with these options has a problem."""
        lines, seconds = functools.partial(lines_to, self.path), options.get("timeout", 0.0)
        texts = self.texts() if answer["problem"] else {}
        error = kernel_error(answer, known, self.parameters, lines, self.kernel, seconds, texts)
        if error is not None:
            raise error

    def notes(self, known: Sequence[Known], answer: Any) -> tuple[KernelError, ...]:
        """Return what a GPU allows and a reader may not expect: errors that are not raised."""
        notes = [
            self._gap_note(known[gap["array"]], gap) for gap in answer["gaps"][: answer["n_gaps"]]
        ]
        if answer["n_same"]:
            notes.insert(0, self._same_value_note(known, answer))
        return tuple(notes)

    def _gap_note(self, array: Known, gap: Any) -> KernelError:
        """Return the note on an output with elements that no thread has written."""
        count, size = int(gap["count"]), array.size // array.itemsize
        verb = "was" if count == 1 else "were"
        elements = f"element{'' if size == 1 else 's'}"
        problem = f"{count:,} of {size:,} {elements} of {array.name} {verb} never written"
        problem += f" (first: {int(gap['first'])})"
        expected = "nothing if it is meant; else let threads write them, as behind the last vector"
        line = line_of(self.path, self._code[0] + 1)
        note = KernelError(f"{self.kernel}, {line}" if line else self.kernel, problem, expected)
        note.mistake = "never-written"
        return note

    def _same_value_note(self, known: Sequence[Known], answer: Any) -> KernelError:
        """Return the note on threads that have stored the same value in one place."""
        line, array = line_of(self.path, int(answer["same_code"])), known[answer["same_array"]]
        problem = f"several threads store the same value in {array.name}, and one of them wins"
        expected = "nothing if it is meant; a store by one thread, under an `if`, is clearer"
        note = KernelError(f"{self.kernel}, {line}" if line else self.kernel, problem, expected)
        note.mistake = "same-value"
        return note

    def _initialised_variables(self, memory: Memory) -> list[Known]:
        """Return the variables, with initial values from `memory.symbols`."""
        fillable = {known.name: known for known in self.variables if known.space in OUTER}
        initialised: dict[Known, Known] = {}
        for symbol in self.symbols:
            value, variable = memory.symbols[symbol.name], fillable.get(_unqualified(symbol.name))
            symbol.check_array(value.data)
            if variable is None:
                problem = "it is no __constant__ or __device__ variable that could be filled"
                raise ArgumentError(symbol.name, problem, "such a variable")
            if value.size > variable.size:
                problem = f"an array of {value.size:,} bytes for the variable"
                raise ArgumentError(symbol.name, problem, f"at most {variable.size:,}")
            # A `__constant__` without an initialiser is not initialised beyond these bytes.
            initialised[variable] = replace(
                variable,
                initialised=variable.initialised or value.size == variable.size,
                content=value.content,
                filled_bytes=value.size,
            )
        return [initialised.get(known, known) for known in self.variables]

    def device_variables(
        self, symbols: Mapping[str, npt.NDArray[Any]]
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the writable arrays of `symbols` that belong to `__device__` variables."""
        constant = {known.name for known in self.variables if known.space is Space.CONSTANT}
        return {
            name: array
            for name, array in symbols.items()
            if _unqualified(name) not in constant and array.flags.writeable and array.ndim
        }

    def _values(self, names: Sequence[str], memory: Memory) -> list[bytes]:
        """Return the bytes of each argument, checked against the parameters."""
        if len(self.parameters) != len(names):
            problem = f"got {len(names)} arguments" + (f" ({', '.join(names)})" if names else "")
            parameters = ", ".join(map(str, self.parameters)) or "none"
            raise ArgumentError(self.kernel, problem, f"{len(self.parameters)}: {parameters}")
        values = []
        for parameter, name in zip(self.parameters, names, strict=True):
            array = memory.array(name)
            if array is not None:
                if parameter.pointer:  # else it is a texture
                    parameter.check_array(array.data)
                values.append(np.uint64(array.address).tobytes())
            else:
                if name not in memory.numbers:
                    known = ", ".join(sorted({*memory.known, *memory.numbers}))
                    raise ArgumentError(name, "the kernel takes it, and there is none", known)
                values.append(parameter.number(memory.numbers[name]))
        return values

    def _send(self, memory: Memory, launch: Any, timeout: float) -> tuple[Any, str]:
        """Run the process of a launch; return a copy of its answer, and its output."""
        if not cache.mark_used(self.path):  # deleted from the cache meanwhile
            with written_whole(self.path) as temporary:
                temporary.write_bytes(self._file)
        request = np.frombuffer(memory.common.data, _REQUEST, 1)
        shared_answer = request["answer"]
        shared_answer[...] = np.zeros((), shared_answer.dtype)
        shared_answer["records"] = memory.common.size
        request["launch"] = launch
        # Comparing runs (see `run_checked`) do not count.
        total = 0 if launch["compared"] else int(launch["n_blocks"])
        progress = process.Progress(total, lambda: int(shared_answer["n_done"][0]))
        status, printed = process.launch(self._program, self.path, memory.common, timeout, progress)
        answer = shared_answer[0].copy()
        if status is None:
            answer["problem"] = b"too long"
        elif not answer["finished"]:
            answer["problem"], answer["text"] = b"died", str(status).encode()
        return answer, printed

    def trace(self, memory: Memory, answer: Any) -> npt.NDArray[np.void]:
        """Return the records of a traced run, dtype `RECORD`, in the order of the steps."""
        count = int(answer["n_records"])
        content = memory.common.take_appended(count * RECORD.itemsize) if count else b""
        return np.frombuffer(content, RECORD)


_load = functools.lru_cache(maxsize=256)(Library)


def _unqualified(name: str) -> str:
    return name.rpartition("::")[2]


def _not_loaded(answer: Any) -> tuple[str, str]:
    """Return (reason why a library could not be loaded, advice)."""
    text = answer["text"].decode("utf-8", "replace")
    missing = text.partition("undefined symbol: ")[2]
    if missing:
        name = plain(missing)
        return f"it calls {name}, which is declared and defined nowhere", f"define {name}"
    return f"it cannot be loaded: {text or answer['problem'].decode()}", ""
