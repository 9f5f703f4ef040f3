"""Work that the GPU repeats without the host: recorded once as a CUDA graph, launched as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accelviz.devices.cuda.state import import_cupy

#: Runs before the recording: kernels are compiled, plans made ready and memory is found in them.
WARM_RUNS = 2


class CapturedGraph:
    """A function whose launches are recorded, called as the function is.

    The first calls run it as it is, and are real: what it changes is changed. Then it is run once
    more to record what it launches, which does nothing else, and from there on each call is one
    launch of the whole. So everything that differs from call to call has to lie in device memory.
    It has to be called on a stream of its own, non-blocking.

    Parameters
    ----------
    work : callable
        It neither waits for the GPU nor reads its memory. What it returns is the same array at
        each call, overwritten.
    clock : EventClock
        Paused while recording.

    Attributes
    ----------
    pool : MemoryPool
        Where its memory comes from; `pool.total_bytes()` is what the step holds.

    Notes
    -----
    Memory comes from a pool that nobody else takes from, so that what the recording writes to is
    never somebody else's. CuPy's pool keeps freed memory, so that a recording allocates nothing.
    """

    def __init__(self, work: Callable[[], Any], clock: Any) -> None:
        self._work, self._clock, self._cupy = work, clock, import_cupy()
        self.pool = self._cupy.cuda.MemoryPool()
        self._calls = 0
        self._graph: Any = None
        self._result: Any = None

    def __call__(self) -> Any:
        """Run, or launch the recording."""
        if self._graph is None:
            with self._cupy.cuda.using_allocator(self.pool.malloc):
                if self._calls < WARM_RUNS:
                    self._calls += 1
                    return self._work()
                self._record()
        self._graph.launch(self._cupy.cuda.get_current_stream())
        return self._result

    def _record(self) -> None:
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
