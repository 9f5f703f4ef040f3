"""Several GPUs of one process, which read each other's memory by peer access.

`Peers` are the GPUs with their streams. `PeersProgram` has the kernels and buffers of a program on
them, and launches it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.devices import find_device
from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.state import one_line
from accelviz.devices.cuda.timing import pause
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError, checked_integer
from accelviz.many_gpus.program import SplitProgram
from accelviz.many_gpus.split import MAX_DEVICES
from accelviz.plans.program import Buffer, Step

#: CUDA's error code cudaErrorPeerAccessAlreadyEnabled.
_ALREADY_ENABLED = 704
#: Stream priority of each queue: without the higher one, the few blocks that fetch would wait for
#: those of the product.
QUEUES = {"compute": 0, "link": -1}
#: Columns of a timeline.
TIMELINE = ["device", "queue", "step", "start", "stop"]
#: The advice when memory is short.
MORE_MEMORY = "more devices, or fewer columns at a time"


def usable_gpus() -> list[int]:
    """Return the numbers of the GPUs visible to this process; [] without CuPy or a driver."""
    cuda = find_device("cuda")
    if cuda.unavailable_reason() is not None:
        return []
    return list(range(cuda.xp.cuda.runtime.getDeviceCount()))


class Peers:
    """GPUs of this host with access to each other's memory.

    Parameters
    ----------
    devices : int or sequence of int
        Number of GPUs, at least 1, or the numbers of the GPUs. A GPU whose number occurs twice is
        used as two devices, for tests: results are correct, but times mean nothing.

    Attributes
    ----------
    gpu_of : mapping of int to int
        GPU of each device of this process.
    devices : list of int
        The GPUs in `gpu_of`, in order.
    streams : dict of (int, str) to CuPy Stream
        Stream of each device and queue ("compute" or "link").

    Raises
    ------
    ArgumentError
        If there is no device.
    DeviceUnavailable
        If there are too few GPUs, or two cannot access each other's memory.

    Notes
    -----
    A split gives all GPUs the same number of edges. If the GPUs differ (see `names`), the slowest
    one determines the time.
    """

    def __init__(self, devices: int | Sequence[int] = 2) -> None:
        usable = usable_gpus()
        numbers: Sequence[int]
        if isinstance(devices, Sequence | np.ndarray):
            numbers = devices
        else:
            numbers = range(checked_integer("devices", devices, MAX_DEVICES, error=ArgumentError))
        if not len(numbers):
            raise ArgumentError("devices", f"got {devices!r}", "at least one")
        gpus = [checked_integer("devices", n, least=0, error=ArgumentError) for n in numbers]
        if missing := [gpu for gpu in gpus if gpu not in usable]:
            problem = f"there is no GPU {missing[0]}"
            if isinstance(devices, int):
                problem = f"there are {len(usable)} GPUs, and {len(gpus)} are wanted"
            fix = "fewer devices; device='emulator' or 'cpu' takes any number of devices"
            raise DeviceUnavailable("devices", problem, fix)
        self._use(dict(enumerate(gpus)))
        self._enable_access()

    def _use(self, gpu_of: Mapping[int, int]) -> None:
        """Store the GPU of each device of this process, and create their streams."""
        self.gpu_of, self.devices = gpu_of, list(gpu_of.values())
        self._cupy = find_device("cuda").xp
        self.streams: dict[tuple[int, str], Any] = {}
        for device in gpu_of:
            with self.on(device):
                for queue, priority in QUEUES.items():
                    stream = self._cupy.cuda.Stream(non_blocking=True, priority=priority)
                    self.streams[device, queue] = stream

    def on(self, device: int) -> Any:
        """Return the context in which a device's GPU is current."""
        return self._cupy.cuda.Device(self.gpu_of[device])

    def _enable_access(self) -> None:
        runtime = self._cupy.cuda.runtime
        for gpu, peer in itertools.permutations({*self.devices}, 2):
            if not runtime.deviceCanAccessPeer(gpu, peer):
                problem = f"GPU {gpu} cannot read the memory of GPU {peer}"
                fix = "GPUs joined by NVLink, or on one PCIe switch (nvidia-smi topo -p2p r)"
                raise DeviceUnavailable("devices", problem, fix)
            with self._cupy.cuda.Device(gpu):
                try:
                    runtime.deviceEnablePeerAccess(peer)
                except runtime.CUDARuntimeError as error:
                    if error.status != _ALREADY_ENABLED:
                        raise

    @property
    def names(self) -> list[str]:
        """Model name of each GPU."""
        properties = self._cupy.cuda.runtime.getDeviceProperties
        return [properties(gpu)["name"].decode() for gpu in self.devices]

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def wait(self) -> None:
        """Wait until all launched work is complete on all devices.

        Raises
        ------
        KernelError
            If a GPU failed; the message names the first one.
        """
        for gpu in self.devices:
            try:
                with self._cupy.cuda.Device(gpu):
                    self._cupy.cuda.runtime.deviceSynchronize()
            except self._cupy.cuda.runtime.CUDARuntimeError as error:
                fix = "a new process: its memory is lost"
                raise KernelError(f"GPU {gpu}", f"it failed: {one_line(error)}", fix) from error

    def ready(self, program: SplitProgram) -> PeersProgram:
        """Compile a program's kernels, and copy its arrays to the GPUs."""
        return PeersProgram(self, program)


class PeersProgram:
    """A program with compiled kernels and allocated buffers.

    Attributes
    ----------
    buffers : dict of str to CuPy array
        Flat arrays by the program's names. Write features to the inputs before `launch`; read
        results from the outputs after it.
    """

    def __init__(self, gpus: Peers, program: SplitProgram) -> None:
        self.gpus, self.program, self._cupy = gpus, program, find_device("cuda").xp
        self._first = min(gpus.gpu_of)
        self.buffers: dict[str, Any] = {}
        self._make_buffers()
        self._arguments: list[Any] = []  # references to the memory whose pointers launches have
        #: Launch function of each step of this process, and the event recorded after it.
        self._launches: dict[int, Any] = {}
        self._done: dict[int, Any] = {}
        for number, step in enumerate(program.steps):
            if step.device in gpus.gpu_of:
                self._launches[number] = self._prepared(step)
                with gpus.on(step.device):
                    self._done[number] = self._cupy.cuda.Event(disable_timing=True)
        gpus.wait()

    def _make_buffers(self) -> None:
        for name, buffer in self.program.buffers.items():
            if buffer.device in self.gpus.gpu_of:
                self.buffers[name] = self._memory(name, buffer)

    def _memory(self, name: str, buffer: Buffer) -> Any:
        with self.gpus.on(buffer.device):
            make = self._cupy.zeros if buffer.kind == "zero" else self._cupy.empty
            try:
                return make(max(buffer.size, 1), buffer.dtype)[: buffer.size]
            except self._cupy.cuda.memory.OutOfMemoryError as error:
                problem = f"{one_line(error)} for {name!r} of {self.program}"
                gpu = f"GPU {self.gpus.gpu_of[buffer.device]}"
                raise DeviceUnavailable(gpu, problem, MORE_MEMORY) from error

    def _prepared(self, step: Step) -> Any:
        """Compile a step's kernel; return a function that launches it, None for an empty grid."""
        assert step.call is not None
        spec, launch = step.call.kernel, step.call.launch
        assert spec is not None
        if 0 in launch.grid:
            return None
        with self.gpus.on(step.device):
            shared, percent = launch.dynamic_shared_bytes, launch.shared_percent
            _, function = compiled(spec, shared_bytes=shared, shared_percent=percent)
            arguments = [
                self.buffers.get(step.buffers[name], np.uint64(0))  # a pointer that is not read
                if name in step.buffers
                else find_device("cuda").shared(step.arrays[name])
                for name in spec.arguments
            ]
        self._arguments.append(arguments)
        # Addresses, because CuPy rejects arrays of other devices.
        values = tuple(
            np.uint64(value.data.ptr) if isinstance(value, self._cupy.ndarray) else value
            for value in arguments
        )
        return partial(function, launch.grid, launch.block, values, shared_mem=shared)

    def launch(
        self,
        start: Any = None,
        stop: Any = None,
        *,
        only: Collection[str] = (),
        marks: dict[Any, Any] | None = None,
    ) -> None:
        """Launch all steps once, with a barrier of all devices before and after them.

        Parameters
        ----------
        start, stop : Event of the first device, optional
            Recorded after the barrier at the begin, and after the one at the end.
        only : collection of str
            Names of the steps to launch, by default all.
        marks : dict, optional
            Receives events: for the key ("begin", device) the begin of the device, for the number
            of a step the pair of its begin and end.
        """
        streams, event = self.gpus.streams, self._cupy.cuda.Event
        self._begin(start)
        if marks is not None:
            for device in self.gpus.gpu_of:
                with self.gpus.on(device):
                    marks["begin", device] = event()
                    marks["begin", device].record(streams[device, "link"])
        if not only:
            self._zero_outputs()
        for number, step in enumerate(self.program.steps):
            self._before(number)
            if number not in self._launches or (only and step.name not in only):
                continue
            stream = streams[step.device, step.queue]
            with self.gpus.on(step.device), stream:
                for earlier in step.after:
                    if earlier in self._done:
                        stream.wait_event(self._done[earlier])
                self._copy_remote(step, stream)
                if marks is not None:
                    marks[number] = event(), event()
                    marks[number][0].record(stream)
                if self._launches[number] is not None:
                    self._launches[number]()
                if marks is not None:
                    marks[number][1].record(stream)
                self._done[number].record(stream)
        self._end(stop)

    def _before(self, number: int) -> None:
        """Run before step `number`, also of other processes; `SymmetricProgram` has barriers."""

    def _copy_remote(self, step: Step, stream: Any) -> None:
        """Copy buffers that a step's kernel cannot read by a pointer, in `SymmetricProgram`."""

    def _begin(self, start: Any) -> None:
        """Let all streams wait for the first device's stream, which waited for the last run."""
        first = self.gpus.streams[self._first, "compute"]
        with self.gpus.on(self._first):
            begin = start or self._cupy.cuda.Event(disable_timing=True)
            begin.record(first)
        for (device, _), stream in self.gpus.streams.items():
            with self.gpus.on(device):
                stream.wait_event(begin)

    def _end(self, stop: Any) -> None:
        """Let the first device's stream wait for all other streams."""
        first = self.gpus.streams[self._first, "compute"]
        for (device, _), stream in self.gpus.streams.items():
            with self.gpus.on(device):
                event = self._cupy.cuda.Event(disable_timing=True)
                event.record(stream)
            with self.gpus.on(self._first):
                first.wait_event(event)
        if stop is not None:
            with self.gpus.on(self._first):
                stop.record(first)

    def _zero_outputs(self) -> None:
        for name, buffer in self.program.buffers.items():
            if buffer.zeroed and buffer.size and buffer.device in self.gpus.gpu_of:
                with self.gpus.on(buffer.device), self.gpus.streams[buffer.device, "compute"]:
                    self.buffers[name].data.memset_async(0, self.buffers[name].nbytes)

    def put(self, inputs: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Copy features to the devices of this process."""
        self.gpus.wait()
        for name, array in inputs.items():
            device = self.program.buffers[name].device
            if device in self.gpus.gpu_of:
                with self.gpus.on(device):
                    self.buffers[name].set(array)
        self.gpus.wait()

    def get(self, name: str) -> npt.NDArray[Any]:
        """Copy a buffer to the host."""
        with self.gpus.on(self.program.buffers[name].device):
            array: npt.NDArray[Any] = self.buffers[name].get()
        return array

    def run(self, inputs: Mapping[str, npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        """Run on features on the host; return the result in the caller's vertex order."""
        self.put(inputs)
        self.launch()
        self.gpus.wait()
        return self.program.result(self.outputs())

    def outputs(self) -> dict[str, npt.NDArray[Any]]:
        """Copy the results of all devices to the host."""
        buffers = self.program.buffers.items()
        return {name: self.get(name) for name, buffer in buffers if buffer.kind == "output"}

    def seconds(
        self, repeats: int = 20, warmup: int = 3, *, only: Collection[str] = ()
    ) -> npt.NDArray[np.float64]:
        """Time runs by events of the first device.

        Parameters
        ----------
        repeats, warmup : int
            Number of timed runs, and of runs before them.
        only : collection of str
            Names of the steps to time, by default all.

        Returns
        -------
        array of float64, shape (repeats,)
            Seconds from the begin of the first device to the end of the last one, including the
            barriers.
        """
        cuda = self._cupy.cuda
        for _ in range(warmup):
            self.launch(only=only)
        self.gpus.wait()
        with self.gpus.on(self._first):
            pairs = [(cuda.Event(), cuda.Event()) for _ in range(repeats)]
            with self.gpus.streams[self._first, "compute"]:
                pause(repeats * (2 + len(self.program.steps)))
        for start, stop in pairs:
            self.launch(start, stop, only=only)
        self.gpus.wait()
        return np.array([cuda.get_elapsed_time(*pair) for pair in pairs]) * 1e-3

    def timeline(self) -> pd.DataFrame:
        """Run once; return the begin and end of each step.

        Returns
        -------
        DataFrame
            One row per step: `device`, `queue`, `step`, `start` and `stop`, in seconds since the
            barrier at the begin, by each device's own clock.
        """
        self.launch()
        self.gpus.wait()
        with self.gpus.on(self._first), self.gpus.streams[self._first, "compute"]:
            pause(2 + len(self.program.steps))
        marks: dict[Any, Any] = {}
        self.launch(marks=marks)
        self.gpus.wait()
        elapsed, rows = self._cupy.cuda.get_elapsed_time, []
        for number in self._launches:
            step = self.program.steps[number]
            times = (1e-3 * elapsed(marks["begin", step.device], mark) for mark in marks[number])
            rows.append((step.device, step.queue, step.name, *times))
        return pd.DataFrame(rows, columns=TIMELINE)
