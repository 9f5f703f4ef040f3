"""A function whose launches are captured once as a CUDA graph and then replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accelviz.devices.cuda.state import import_cupy

#: Number of ordinary runs before the capture; they compile kernels and fill the memory pool.
WARM_RUNS = 2


class CapturedGraph:
    """A callable that captures a function's launches as a CUDA graph and replays the graph.

    The first `WARM_RUNS` calls run the function. The next call captures its launches, without
    executing them, and launches the graph; later calls only launch the graph. Values that differ
    between calls must be in device memory. Call it on a non-blocking stream of its own.

    Parameters
    ----------
    work : callable
        The function. It neither synchronises with the GPU nor reads its memory. Each call returns
        the same arrays, overwritten.
    clock : EventClock
        Paused during the capture.

    Attributes
    ----------
    pool : MemoryPool
        CuPy's pool of the function's memory; `pool.total_bytes()` is the size of that memory.

    Notes
    -----
    The pool is private, so that replays never overwrite other arrays. CuPy's pool keeps freed
    memory, so that the capture, in which allocations are forbidden, reuses memory of earlier runs.
    """

    def __init__(self, work: Callable[[], Any], clock: Any) -> None:
        self._work, self._clock, self._cupy = work, clock, import_cupy()
        self.pool = self._cupy.cuda.MemoryPool()
        self._calls = 0
        self._graph: Any = None
        self._result: Any = None

    def __call__(self) -> Any:
        """Run the function, or launch the graph; return the function's result."""
        if self._graph is None:
            with self._cupy.cuda.using_allocator(self.pool.malloc):
                if self._calls < WARM_RUNS:
                    self._calls += 1
                    return self._work()
                self._capture()
        self._graph.launch(self._cupy.cuda.get_current_stream())
        return self._result

    def _capture(self) -> None:
        stream = self._cupy.cuda.get_current_stream()
        stream.synchronize()
        self._clock.paused = True
        try:
            stream.begin_capture()
            try:
                self._result = self._work()
            finally:
                self._graph = stream.end_capture()
        finally:
            self._clock.paused = False
