"""Timing by CUDA events, and measured limits of the GPU: launch time and bandwidths."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.state import import_cupy
from accelviz.plans import KernelSpec

#: Number of independent 16-byte loads in flight per thread of the gather measurement.
_LOADS_IN_FLIGHT = 8
_GATHER_THREADS = 256
#: Bytes read by the gather measurement, and bytes copied by the copy measurement.
_GATHER_BYTES = _COPY_BYTES = 1 << 30
_VECTOR_FLOATS, _VECTOR_BYTES = 4, 16
_REPEATS, _WARMUP = 11, 3
#: Upper bound on the host's time to launch one run; the GPU pauses this long per run.
_LAUNCH_NANOSECONDS = 100_000
#: Bytes written to flush the L2, as a multiple of its size.
_FLUSH_FACTOR = 4


def event_seconds(
    run: Callable[[], object], repeats: int, warmup: int, *, cold: bool = False
) -> npt.NDArray[np.float64]:
    """Time the work that `run` launches on the current stream; `run` must not synchronise.

    Returns seconds, float64, shape (repeats,), after `warmup` untimed runs. With `cold`, memory of
    four times the L2's size is overwritten before each timed run.

    Notes
    -----
    The GPU pauses until the host has launched all runs, so that no time includes waiting for the
    host. Each time includes the overhead of two events, about a microsecond.
    """
    cupy = import_cupy()
    for _ in range(warmup):
        run()
    flush = _flush_buffer() if cold else None
    events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(repeats)]
    cupy.cuda.Device().synchronize()
    pause(repeats)
    for i, (start, stop) in enumerate(events):
        if flush is not None:
            flush.data.memset_async(i, flush.nbytes)
        start.record()
        run()
        stop.record()
    cupy.cuda.Device().synchronize()
    return np.array([cupy.cuda.get_elapsed_time(*pair) for pair in events]) * 1e-3


def pause(runs: int) -> None:
    """Pause the current stream for as long as the host may take to launch `runs` runs."""
    _machine("pause")((1,), (1,), (np.uint64(_LAUNCH_NANOSECONDS * runs),))


class EventClock:
    """Sums up seconds by name between pairs of CUDA events; see `devices.base.HostClock`.

    While `paused`, as during the capture of a CUDA graph, nothing is timed.
    """

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds, self._cupy = seconds, import_cupy()
        self._pairs: list[tuple[str, Any, Any]] = []
        self.paused = False

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time the launches of a `with` block on the current stream."""
        if self.paused:
            yield
            return
        start, stop = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record()
        yield
        stop.record()
        self._pairs.append((name, start, stop))

    def settle(self) -> None:
        """Wait for the timed launches and add their seconds."""
        for name, start, stop in self._pairs:
            stop.synchronize()
            seconds = self._cupy.cuda.get_elapsed_time(start, stop) * 1e-3
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds
        self._pairs.clear()


class CudaLimits:
    """Limits of the current GPU, measured by the constructor; see `devices.base.Limits`."""

    def __init__(self) -> None:
        cupy = import_cupy()
        empty_kernel = _machine("nothing")
        self.launch_seconds = _median(lambda: empty_kernel((1,), (32,), ()))
        source = positive(cupy, _COPY_BYTES // 4)
        target = cupy.empty_like(source)
        seconds = _median(lambda: target.data.copy_from_device_async(source.data, _COPY_BYTES))
        self.copy_bandwidth = 2 * _COPY_BYTES / seconds

    def gather_bandwidth(self, rows: int, n_cols: int) -> float:
        """Measure the rate of reading uniformly random rows of a matrix, in bytes per second.

        The matrix is float32, rows x n_cols; rows are padded to whole 16-byte vectors.
        """
        cupy = import_cupy()
        vectors = -(-n_cols // _VECTOR_FLOATS)
        X = positive(cupy, max(rows, 1) * vectors * _VECTOR_FLOATS)
        sink = cupy.zeros(1, np.float32)
        batches = -(-max(_GATHER_BYTES // (vectors * _VECTOR_BYTES), 1) // _LOADS_IN_FLIGHT)
        gathers = batches * _LOADS_IN_FLIGHT
        grid = (-(-batches * vectors // _GATHER_THREADS),)
        arguments = (X, sink, np.uint32(max(rows, 1)), np.int32(vectors), np.uint32(gathers))
        gather = _machine("gather")
        seconds = _median(lambda: gather(grid, (_GATHER_THREADS,), arguments))
        return gathers * vectors * _VECTOR_BYTES / seconds


def positive(cupy: Any, size: int) -> Any:
    """Return float32 values 1, 2, ..., size; kernels can be faster on zeros than on real data."""
    return cupy.arange(1, size + 1, dtype=np.float32)


def _median(run: Callable[[], object]) -> float:
    return float(np.median(event_seconds(run, _REPEATS, _WARMUP)))


@functools.cache
def _machine(entry: str) -> Any:
    config = {"loads_in_flight": _LOADS_IN_FLIGHT}
    return compiled(KernelSpec("machine/machine.cu", entry, config, ()))[1]


@functools.cache
def _flush_buffer() -> Any:
    cupy = import_cupy()
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return cupy.empty(_FLUSH_FACTOR * properties["l2CacheSize"], np.uint8)
