"""A compiled kernel, and the C structures by which a process is told what to do with it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accelviz.emulator import cache, signature
from accelviz.emulator.build import Kernel, build, runtime, twin, unwritten_locals
from accelviz.emulator.memory import HEAD, OUTER, Known, Memory
from accelviz.emulator.problems import kernel_error
from accelviz.emulator.process import Common, wall_seconds, worker
from accelviz.emulator.symbols import Space, function_size, line_of, plain, variables
from accelviz.errors import ArgumentError, KernelError
from accelviz.files import written_whole

#: Where dynamic shared memory lies; EMULATOR_DYNAMIC_SHARED in cuda_on_host.h.
_DYNAMIC = 0x0780_0000_0000
#: Limits of every GPU since 2020: blocks of a grid in x, y and z; threads of a block in all, and in
#: x, y and z; its shared memory, and the part of it that is static.
GRID_LIMITS = (1 << 31) - 1, 65_535, 65_535
BLOCK_THREADS, BLOCK_LIMITS = 1024, (1024, 1024, 64)
SHARED_BYTES, STATIC_SHARED_BYTES = 227 << 10, 48 << 10


def _structure(members: str, *more: tuple[str, Any, int]) -> np.dtype[np.void]:
    """Return a structure of runtime.h: its members, each with NumPy's name of its type."""
    pairs: list[Any] = [tuple(member.split(":")) for member in members.split()]
    return np.dtype([*pairs, *more], align=True)


_ARRAY = _structure("address:u8 bytes:u8 place:u8 space:i4 writable:i4 initialised:i4 filling:u8")
_LAUNCH = _structure(
    "grid:3u4 block:3u4 dynamic_shared_bytes:u4 n_arrays:u4 n_arguments:u4 traced:i4 checked:i4 "
    "first_block:u4 n_blocks:u4 seed:u8 arrays:u8 arguments:u8 kernel:2u8 seconds:2f8 "
    "writer_of:2i8"
)
_NOTE = _structure("code:u8 other_code:u8 block:3u4 thread:3u4 other_thread:3u4 warp:i4 unlike:i4")
_ANSWER = _structure(
    "problem:S32 text:S4096 code:u8 other_code:u8 block:3u4 thread:3u4 other_block:3u4 "
    "other_thread:3u4 array:i4 bytes:i4 kind:i4 finished:i4 offset:i8 waiting:u4 left:u4 "
    "records:u8 n_records:u8 n_notes:u4 in_kernel:u4 other_kind:i4",
    ("notes", _NOTE, 16),
)
_REQUEST = np.dtype([("launch", _LAUNCH), ("answer", _ANSWER)], align=True)
#: One lane's part in one step of a warp, or a wait; `EmulatorRecord` in runtime.h.
RECORD = _structure("block:u4 warp:u2 lane:u1 kind:u1 step:u4 array:i2 bytes:u2 code:u8 offset:u8")


class Launch(NamedTuple):
    """Blocks and threads of a launch in x, y and z, and its dynamic shared memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int = 0

    def check(self, kernel: str) -> None:
        """Refuse what no GPU launches.

        Raises
        ------
        ArgumentError
        """
        limits = zip("xyz", self.grid, GRID_LIMITS, self.block, BLOCK_LIMITS, strict=True)
        for axis, blocks, most_blocks, threads, most_threads in limits:
            if not 1 <= blocks <= most_blocks:
                what = f"{blocks:,} blocks in {axis} for {kernel}"
                raise ArgumentError("grid", what, f"1 to {most_blocks:,}")
            if not 1 <= threads <= most_threads:
                what = f"{threads:,} threads in {axis} for {kernel}"
                raise ArgumentError("block", what, f"1 to {most_threads:,}")
        threads = int(np.prod(self.block, dtype=object))
        if threads > BLOCK_THREADS:
            what = f"{threads:,} threads for {kernel}"
            raise ArgumentError("block", what, f"at most {BLOCK_THREADS:,}")
        if not 0 <= self.dynamic_shared_bytes <= SHARED_BYTES:
            what = f"{self.dynamic_shared_bytes:,} bytes of dynamic shared memory for {kernel}"
            raise ArgumentError("shared_bytes", what, f"at most {SHARED_BYTES:,}")


def compiled(kernel: Kernel, *, checked: bool = True, symbols: tuple[str, ...] = ()) -> Library:
    """Compile a kernel for the host and load it, each at most once; see `build`.

    Raises
    ------
    DeviceUnavailable
        If there is no compiler.
    KernelError
        If it does not compile, or calls what is defined nowhere.
    """
    path = build(kernel, checked=checked, symbols=symbols)
    return _load(path, runtime(), kernel.entry, kernel.names, symbols)


@functools.lru_cache(maxsize=256)
def _load(
    path: Path, program: Path, kernel: str, names: tuple[str, ...], symbols: tuple[str, ...]
) -> Library:
    return Library(path, program, kernel, names, symbols)


class Library:
    """A kernel compiled for the host; `path` is for its debugging information.

    Raises
    ------
    KernelError
        If it cannot be loaded, as where a function that it calls is defined nowhere.
    """

    def __init__(
        self,
        path: Path,
        program: Path,
        kernel: str,
        names: tuple[str, ...],
        symbols: tuple[str, ...],
    ) -> None:
        self.path, self.kernel, self._program = path, kernel, program
        self._file = path.read_bytes()
        other = twin(path)
        self.twin = _load(other, program, kernel, names, symbols) if other.exists() else None
        #: Launches whose results do not depend on unwritten local variables.
        self.independent: set[bytes] = set()
        answer, _ = self._send(Memory(Common(HEAD)), np.zeros((), _LAUNCH), 60.0)
        if answer["problem"]:
            raise KernelError(kernel, *_not_loaded(answer))
        of_kernel, _, of_variables = answer["text"].decode().partition("symbols\n")
        self.parameters = signature.parameters(of_kernel, names)
        self._symbols = signature.parameters(of_variables, symbols)
        start = int(answer["code"])
        self._code = start, start + function_size(path, start)
        self.variables = [
            Known(
                *(each.name, each.size, each.offset),
                space=each.space,
                writable=each.space not in (Space.CONSTANT, Space.HOST),
                initialised=each.filled,
            )
            for each in variables(path)
        ]
        shared = sum(-(-each.size // 16) * 16 for each in self.variables if each.shared)
        if shared > STATIC_SHARED_BYTES:
            what = f"it has {shared:,} bytes of static shared memory"
            right = f"at most {STATIC_SHARED_BYTES:,}; more only as dynamic shared memory"
            raise KernelError(kernel, what, right)
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
        writer_of: tuple[int, int] = (-1, 0),
    ) -> tuple[Any, list[Known], str]:
        """Run blocks of a launch, counted with x fastest; all of them if `n_blocks` is not given.

        `launch` has `grid`, `block` and `dynamic_shared_bytes`; `names` are those of the arguments
        in `memory`, in the order of the parameters. `EmulatorDevice` says what `seed`, `checked`
        and `timeout` are. With `traced`, every access is recorded for `trace`. With `writer_of`, an
        array's number and a byte of it, the answer tells who wrote it, as a problem.

        Returns
        -------
        structured scalar
            What came of it: `EmulatorAnswer` in runtime.h.
        list of Known
            The arrays that its `array` and the trace count.
        str
            What the kernel has printed.
        """
        launch = Launch(launch.grid, launch.block, launch.dynamic_shared_bytes)
        launch.check(self.kernel)
        dynamic = launch.dynamic_shared_bytes
        if dynamic + self._static_shared > SHARED_BYTES:
            what = f"{dynamic:,} bytes beside {self._static_shared:,} static ones"
            raise ArgumentError("shared_bytes", what, f"at most {SHARED_BYTES:,} together")
        known = [*memory.known.values(), *self._filled(memory)]
        if dynamic or not traced:  # also without a byte, so that who goes there is told so
            about = "dynamic shared memory", dynamic, _DYNAMIC
            known.append(Known(*about, space=Space.DYNAMIC))
        values = self._values(names, memory)
        arrays = np.array(
            [
                (k.address, k.size, k.place, k.space, k.writable, k.initialised, k.filling)
                for k in known
            ],
            dtype=_ARRAY,
        )
        start = _REQUEST.itemsize
        head = np.frombuffer(memory.common.data, np.uint8, HEAD)
        cells = start + arrays.nbytes
        starts = cells + 8 * len(values) + np.cumsum([0, *(-(-len(v) // 16) * 16 for v in values)])
        starts = -(-starts // 16) * 16
        if starts[-1] > HEAD:
            raise KernelError(self.kernel, f"{len(known)} arrays are too many", "fewer")
        head[start : start + arrays.nbytes] = arrays.view(np.uint8)
        head[cells : cells + 8 * len(values)] = starts[:-1].astype(np.uint64).view(np.uint8)
        for offset, value in zip(starts, values, strict=False):
            head[offset : offset + len(value)] = np.frombuffer(value, np.uint8)
        total = launch.grid[0] * launch.grid[1] * launch.grid[2]
        n_blocks = total - first_block if n_blocks is None else n_blocks
        size = dynamic, len(known), len(values), traced, checked, first_block, n_blocks
        limits = timeout, wall_seconds(timeout)
        rest = seed, start, cells, self._code, limits, writer_of
        request = np.array((launch.grid, launch.block, *size, *rest), dtype=_LAUNCH)
        answer, printed = self._send(memory, request, timeout)
        return answer, known, printed

    def run_checked(
        self, launch: Any, names: Sequence[str], memory: Memory, **options: Any
    ) -> tuple[list[Known], Any]:
        """Run as `run` does and raise what it finds; return the arrays it counts, and its answer.

        What the kernel prints is printed. One that may read local variables before it writes them
        runs a second time, with others in their place, and must come to the same results; not again
        with arguments with which it already has.
        """
        twin = None if options.get("traced") else self.twin
        run = memory.digest((launch, *names, *options.items())) if twin else b""
        if run in self.independent:
            twin = None
        before = memory.contents() if twin else []
        answer, known, printed = self.run(launch, names, memory, **options)
        if printed:
            print(printed, end="")
        self.raise_problem(answer, known, options)
        if twin:
            after = memory.contents()
            memory.restore(before)
            other, *_ = twin.run(launch, names, memory, **options | {"checked": False})
            twin.raise_problem(other, known, options)
            for number, (one, two) in enumerate(zip(after, memory.contents(), strict=True)):
                if np.array_equal(one, two):
                    continue
                memory.restore(before)
                options["writer_of"] = number, int(np.argmax(one != two))
                answer, *_ = self.run(launch, names, memory, **options)
                answer["text"] = unwritten_locals(self.path).read_bytes()
                self.raise_problem(answer, known, options)
            memory.restore(after)
            self.independent.add(run)
        return known, answer

    def raise_problem(
        self, answer: Any, known: Sequence[Known], options: Mapping[str, Any]
    ) -> None:
        """Raise a KernelError for what `run`, called with `options`, has found."""
        line, seconds = functools.partial(line_of, self.path), options.get("timeout", 0.0)
        error = kernel_error(answer, known, self.parameters, line, self.kernel, seconds)
        if error is not None:
            raise error

    def _filled(self, memory: Memory) -> list[Known]:
        """Return the variables, with the places of what those among `memory.symbols` begin as."""
        given = {name.rpartition("::")[2]: known for name, known in memory.symbols.items()}
        for symbol in self._symbols:
            data, last = memory.symbols[symbol.name].data, symbol.name.rpartition("::")[2]
            symbol.check_array(data)
            room = {each.name: each for each in self.variables if each.space in OUTER}.get(last)
            if room is None:
                what = "it is no __constant__ or __device__ variable"
                raise ArgumentError(symbol.name, f"{what} that could be filled", "such a variable")
            if given[last].size > room.size:
                what = f"an array of {given[last].size:,} bytes for the variable"
                raise ArgumentError(symbol.name, what, f"at most {room.size:,}")
        return [
            replace(
                each, place=given[each.name].place, filling=given[each.name].size, initialised=True
            )
            if each.name in given and each.space in OUTER
            else each
            for each in self.variables
        ]

    def device_variables(
        self, symbols: Mapping[str, npt.NDArray[Any]]
    ) -> dict[str, npt.NDArray[Any]]:
        """Return those of the arrays that a kernel may write and its caller too."""
        constant = {each.name for each in self.variables if each.space is Space.CONSTANT}
        return {
            name: array
            for name, array in symbols.items()
            if name.rpartition("::")[2] not in constant and array.flags.writeable and array.ndim
        }

    def _values(self, names: Sequence[str], memory: Memory) -> list[bytes]:
        """Return what each parameter gets, after checking that it is what the kernel takes."""
        signature.check_count(self.parameters, names, self.kernel)
        values = []
        for parameter, name in zip(self.parameters, names, strict=True):
            array = memory.array(name)
            if array is not None:
                parameter.check_array(array.data)
                values.append(np.uint64(array.address).tobytes())
            else:
                values.append(parameter.number(memory.numbers[name]))
        return values

    def _send(self, memory: Memory, launch: Any, timeout: float) -> tuple[Any, str]:
        self._keep()
        common = memory.common
        request = np.frombuffer(common.data, _REQUEST, 1)
        answer = request["answer"]
        answer[...] = np.zeros((), _ANSWER)
        answer["records"] = common.size
        request["launch"] = launch
        with worker(self._program) as process:
            status, printed = process.launch(self.path, common, timeout)
        outcome = answer[0].copy()
        if status is None:
            outcome["problem"] = b"too long"
        elif not outcome["finished"]:
            outcome["problem"], outcome["text"] = b"died", str(status).encode()
        return outcome, printed

    def _keep(self) -> None:
        """Put the file back if it was dropped from the cache meanwhile; it is in use again."""
        if not cache.used(self.path):
            with written_whole(self.path) as temporary:
                temporary.write_bytes(self._file)

    def trace(self, memory: Memory, answer: Any) -> npt.NDArray[np.void]:
        """Return the records of a traced run, dtype `RECORD`, in the order of the steps."""
        count = int(answer["n_records"])
        if not count:
            return np.empty(0, dtype=RECORD)
        return np.frombuffer(memory.common.behind(count * RECORD.itemsize), dtype=RECORD)


def _not_loaded(answer: Any) -> tuple[str, str]:
    """Say why a library could not be loaded: mostly a function that is declared and not defined."""
    text = answer["text"].decode("utf-8", "replace")
    missing = text.partition("undefined symbol: ")[2]
    if missing:
        name = plain(missing)
        return f"it calls {name}, which is declared and defined nowhere", f"define {name}"
    return f"it cannot be loaded: {text or answer['problem'].decode()}", ""
