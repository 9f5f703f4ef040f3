"""The GPUs of one process, which read each other's memory: peer pointers, streams and events."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.devices.cuda.arrays import on_device
from accelviz.devices.cuda.compiler import compile_options
from accelviz.devices.cuda.state import gpu_state, import_cupy, one_line
from accelviz.devices.cuda.timing import pause
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError, checked_integer
from accelviz.many_gpus.split import MOST_DEVICES
from accelviz.many_gpus.steps import Buffer, Program, Step
from accelviz.plans.launch import STATIC_SHARED_BYTES

#: CUDA's code for access that is already there.
_ALREADY = 704
#: Priorities of the queues. Few blocks fetch; they go first, or they would wait for the product.
QUEUES = {"compute": 0, "link": -1}
#: What to do where memory is short.
MORE_MEMORY = "more devices, or fewer columns at a time"


def usable_gpus() -> list[int]:
    """Return the numbers of the GPUs that this process sees; none without CuPy or a driver."""
    if not gpu_state().ready:
        return []
    return list(range(import_cupy().cuda.runtime.getDeviceCount()))


@functools.cache
def _module(source: str, options: tuple[str, ...], device: int) -> Any:
    """Return CuPy's module of a source, compiled for and loaded on a device, which is current."""
    return import_cupy().RawModule(code=source, options=options)


class Peers:
    """Some GPUs of this host, with access to each other's memory.

    Parameters
    ----------
    devices : int or sequence of int
        How many, from the first on, at least 1, or their numbers. A number that comes twice is a
        GPU that plays two devices: right, and of no use but to try things out.

    Raises
    ------
    ArgumentError
        If none are wanted.
    DeviceUnavailable
        If there are fewer, or two have no access to each other's memory.

    Notes
    -----
    GPUs of different kinds are taken as they are (`names`), and the slower one decides: splits deal
    edges out evenly.
    """

    def __init__(self, devices: int | Sequence[int] = 2) -> None:
        there = usable_gpus()
        numbers: Sequence[int]
        if isinstance(devices, Sequence | np.ndarray):
            numbers = devices
        else:
            numbers = range(checked_integer("devices", devices, MOST_DEVICES, error=ArgumentError))
        if not len(numbers):
            raise ArgumentError("devices", f"got {devices!r}", "at least one")
        wanted = [checked_integer("devices", d, least=0, error=ArgumentError) for d in numbers]
        if missing := [each for each in wanted if each not in there]:
            what = f"there are {len(there)} GPUs, and {len(wanted)} are wanted"
            what = what if isinstance(devices, int) else f"there is no GPU {missing[0]}"
            fix = "fewer devices; device='emulator' or 'cpu' pretends as many as you like"
            raise DeviceUnavailable("devices", what, fix)
        self._use(dict(enumerate(wanted)))
        self._allow()

    def _use(self, gpu_of: Mapping[int, int]) -> None:
        """Note the GPUs of those devices of a split that this process has; make their streams."""
        self.gpu_of, self.devices, self._cupy = gpu_of, list(gpu_of.values()), import_cupy()
        self.streams: dict[tuple[int, str], Any] = {}
        for place, device in gpu_of.items():
            with self._cupy.cuda.Device(device):
                for queue, priority in QUEUES.items():
                    stream = self._cupy.cuda.Stream(non_blocking=True, priority=priority)
                    self.streams[place, queue] = stream

    def _allow(self) -> None:
        runtime = self._cupy.cuda.runtime
        for one in {*self.devices}:
            for other in {*self.devices} - {one}:
                if not runtime.deviceCanAccessPeer(one, other):
                    what = f"GPU {one} cannot read the memory of GPU {other}"
                    fix = "GPUs joined by NVLink, or on one PCIe switch (nvidia-smi topo -p2p r)"
                    raise DeviceUnavailable("devices", what, fix)
                with self._cupy.cuda.Device(one):
                    try:
                        runtime.deviceEnablePeerAccess(other)
                    except runtime.CUDARuntimeError as error:
                        if error.status != _ALREADY:
                            raise

    @property
    def names(self) -> list[str]:
        """What each GPU is."""
        properties = self._cupy.cuda.runtime.getDeviceProperties
        return [properties(each)["name"].decode() for each in self.devices]

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def wait(self) -> None:
        """Wait until all devices have done all that was queued.

        Raises
        ------
        KernelError
            Naming the first device that failed.
        """
        for device in self.devices:
            try:
                with self._cupy.cuda.Device(device):
                    self._cupy.cuda.runtime.deviceSynchronize()
            except self._cupy.cuda.runtime.CUDARuntimeError as error:
                what = f"it failed: {one_line(error)}"
                raise KernelError(
                    f"GPU {device}", what, "a new process: its memory is lost"
                ) from error

    def ready(self, program: Program) -> PeersProgram:
        """Compile a program's kernels and put its arrays on the GPUs."""
        return PeersProgram(self, program)


class PeersProgram:
    """A program whose kernels are compiled and whose memory is in place.

    Attributes
    ----------
    buffers : dict of str to CuPy array
        All of it, flat. Features go in as the inputs, results come out as the outputs.
    """

    def __init__(self, gpus: Peers, program: Program) -> None:
        self.gpus, self.program, self._cupy = gpus, program, import_cupy()
        self._home = min(gpus.gpu_of)
        self.buffers: dict[str, Any] = {}
        self._make_buffers()
        self._kept: list[Any] = []  # what addresses point to
        #: By the steps' numbers: those that this process has.
        self._launches: dict[int, Any] = {}
        self._done: dict[int, Any] = {}
        for number, step in enumerate(program.steps):
            if step.device in gpus.gpu_of:
                self._launches[number] = self._launch(step)
                with self._on(step.device):
                    self._done[number] = self._cupy.cuda.Event(disable_timing=True)
        gpus.wait()

    def _on(self, place: int) -> Any:
        return self._cupy.cuda.Device(self.gpus.gpu_of[place])

    def _make_buffers(self) -> None:
        for name, each in self.program.buffers.items():
            if each.device in self.gpus.gpu_of:
                self.buffers[name] = self._memory(name, each)

    def _memory(self, name: str, each: Buffer) -> Any:
        with self._on(each.device):
            make = self._cupy.zeros if each.kind == "zero" else self._cupy.empty
            try:
                return make(max(each.size, 1), each.dtype)[: each.size]
            except self._cupy.cuda.memory.OutOfMemoryError as error:
                what = f"{one_line(error)} for {name!r} of {self.program}"
                gpu = f"GPU {self.gpus.gpu_of[each.device]}"
                raise DeviceUnavailable(gpu, what, MORE_MEMORY) from error

    def _launch(self, step: Step) -> Any:
        spec, launch = step.call.kernel, step.call.launch
        assert spec is not None
        if 0 in launch.grid:
            return None
        with self._on(step.device):
            try:
                options = compile_options(spec)
                module = _module(spec.source(), options, self.gpus.gpu_of[step.device])
                function = module.get_function(spec.entry)
            except self._cupy.cuda.compiler.CompileException as error:
                raise KernelError(spec.file, f"it does not compile:\n{error}") from error
            if launch.dynamic_shared_bytes > STATIC_SHARED_BYTES:
                function.max_dynamic_shared_size_bytes = launch.dynamic_shared_bytes
            if launch.shared_percent is not None:
                function.preferred_shared_memory_carveout = launch.shared_percent
            arguments = [
                self.buffers.get(step.buffers[name], np.uint64(0))  # what it does not read
                if name in step.buffers
                else on_device(step.arrays[name])
                for name in spec.arguments
            ]
        # Peers' arrays lie on other devices: their addresses are passed, as CuPy would refuse them.
        plain = tuple(
            np.uint64(each.data.ptr) if isinstance(each, self._cupy.ndarray) else each
            for each in arguments
        )
        self._kept.append(arguments)
        return function, launch.grid, launch.block, plain, launch.dynamic_shared_bytes

    def queue(
        self,
        start: Any = None,
        stop: Any = None,
        *,
        only: Collection[str] = (),
        marks: dict[Any, Any] | None = None,
    ) -> None:
        """Queue all steps once; all begin together and, for what is queued next, end together.

        Parameters
        ----------
        start, stop : Event of the first device, optional
            Recorded when all devices may begin, and when all have ended.
        only : collection of str
            Names of steps, without the others.
        marks : dict, optional
            Gets events: when each device may begin, and before and after each step, by number.
        """
        streams, event = self.gpus.streams, self._cupy.cuda.Event
        self._begin(start)
        if marks is not None:
            for place in self.gpus.gpu_of:
                with self._on(place):
                    marks["begin", place] = event()
                    marks["begin", place].record(streams[place, "link"])
        if not only:
            self._clear()
        for number, step in enumerate(self.program.steps):
            self._before(number)
            if number not in self._launches or (only and step.name not in only):
                continue
            stream = streams[step.device, step.queue]
            with self._on(step.device), stream:
                for each in step.after:
                    if each in self._done:
                        stream.wait_event(self._done[each])
                self._bring(step, stream)
                if marks is not None:
                    marks[number] = event(), event()
                    marks[number][0].record(stream)
                if self._launches[number] is not None:
                    function, grid, block, arguments, shared = self._launches[number]
                    function(grid, block, arguments, shared_mem=shared)
                if marks is not None:
                    marks[number][1].record(stream)
                self._done[number].record(stream)
        self._end(stop)

    def _before(self, number: int) -> None:
        """Do what other processes wait for before a step, of whatever device."""

    def _bring(self, step: Step, stream: Any) -> None:
        """Queue what brings memory that a step's kernel cannot read itself."""

    def _begin(self, start: Any) -> None:
        """Let all streams wait for the first device's, which knows of the last run's end."""
        home = self.gpus.streams[self._home, "compute"]
        with self._on(self._home):
            begin = start or self._cupy.cuda.Event(disable_timing=True)
            begin.record(home)
        for (place, _), stream in self.gpus.streams.items():
            with self._on(place):
                stream.wait_event(begin)

    def _end(self, stop: Any) -> None:
        """Let the first device's stream wait for all others."""
        home = self.gpus.streams[self._home, "compute"]
        for (place, _), stream in self.gpus.streams.items():
            with self._on(place):
                event = self._cupy.cuda.Event(disable_timing=True)
                event.record(stream)
            with self._on(self._home):
                home.wait_event(event)
        if stop is not None:
            with self._on(self._home):
                stop.record(home)

    def _clear(self) -> None:
        for name, each in self.program.buffers.items():
            if each.cleared and each.size and each.device in self.gpus.gpu_of:
                with self._on(each.device), self.gpus.streams[each.device, "compute"]:
                    self.buffers[name].data.memset_async(0, self.buffers[name].nbytes)

    def put(self, inputs: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Copy the devices' features to them."""
        self.gpus.wait()
        for name, array in inputs.items():
            if self.program.buffers[name].device in self.gpus.gpu_of:
                with self._on(self.program.buffers[name].device):
                    self.buffers[name].set(array)
        self.gpus.wait()

    def get(self, name: str) -> npt.NDArray[Any]:
        """Copy a buffer to the host."""
        with self._on(self.program.buffers[name].device):
            found: npt.NDArray[Any] = self.buffers[name].get()
        return found

    def run(self, inputs: Mapping[str, npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        """Run on features of the host; return the result in the caller's order."""
        self.put(inputs)
        self.queue()
        self.gpus.wait()
        return self.program.result(self.outputs())

    def outputs(self) -> dict[str, npt.NDArray[Any]]:
        """Copy the results of all devices to the host."""
        kinds = self.program.buffers.items()
        return {name: self.get(name) for name, each in kinds if each.kind == "output"}

    def seconds(
        self, repeats: int = 20, warmup: int = 3, *, only: Collection[str] = ()
    ) -> npt.NDArray[np.float64]:
        """Time runs by events of the first device, around all devices' work.

        Parameters
        ----------
        repeats, warmup : int
        only : collection of str
            Names of steps, to time them without the others.

        Returns
        -------
        array of float64, shape (repeats,)
            From the moment at which all may begin to that at which the last has ended, with what
            the devices need to tell each other so.
        """
        cuda = self._cupy.cuda
        for _ in range(warmup):
            self.queue(only=only)
        self.gpus.wait()
        with self._on(self._home):
            pairs = [(cuda.Event(), cuda.Event()) for _ in range(repeats)]
            with self.gpus.streams[self._home, "compute"]:
                pause(repeats * (2 + len(self.program.steps)))
        for start, stop in pairs:
            self.queue(start, stop, only=only)
        self.gpus.wait()
        return np.array([cuda.get_elapsed_time(*pair) for pair in pairs]) * 1e-3

    def timeline(self) -> pd.DataFrame:
        """Run once and say when each step began and ended.

        Returns
        -------
        DataFrame
            A line a step: `device`, `queue`, `step`, `start`, `stop` in seconds since all began, by
            each device's own clock.
        """
        self.queue()
        self.gpus.wait()
        with self._on(self._home), self.gpus.streams[self._home, "compute"]:
            pause(2 + len(self.program.steps))
        marks: dict[Any, Any] = {}
        self.queue(marks=marks)
        self.gpus.wait()

        def seconds(number: int, end: int) -> float:
            begin = marks["begin", self.program.steps[number].device]
            return float(self._cupy.cuda.get_elapsed_time(begin, marks[number][end])) * 1e-3

        return pd.DataFrame(
            {
                "device": step.device,
                "queue": step.queue,
                "step": step.name,
                "start": seconds(number, 0),
                "stop": seconds(number, 1),
            }
            for number, step in enumerate(self.program.steps)
            if number in self._launches
        )
