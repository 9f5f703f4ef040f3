"""Launches of kernels without a plan: the caller's own kernel, and kernels on PyTorch's tensors."""

from __future__ import annotations

import contextlib
import operator
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.state import gpu_state, import_cupy, one_line
from accelviz.emulator.call import KernelCall
from accelviz.errors import AccelvizError, ArgumentError, KernelError
from accelviz.plans import KernelSpec


def run_kernel(call: KernelCall) -> dict[str, npt.NDArray[Any]]:
    """Compile a kernel for the current GPU, run it on copies of arrays and copy outputs back.

    The host's C++ compiler determines the types of the parameters. Without one, numbers must be
    NumPy scalars. Returns the outputs, written in place. Raises as `emulate` does.
    """
    gpu_state().require("device 'cuda'")
    cupy, kernel, launch, aliases = import_cupy(), call.kernel, call.launch, call.aliases()
    arguments = call.typed_arguments()
    on_gpu: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            on_gpu[name] = on_gpu[aliases[name]] if name in aliases else cupy.asarray(value)
        elif isinstance(value, np.generic):
            on_gpu[name] = value
        else:
            problem = f"got {value!r}, and without a C++ compiler the kernel's types are not known"
            raise ArgumentError(
                name, problem, "a NumPy scalar of the parameter's type: np.int32(1)"
            )
    spec = KernelSpec(
        kernel.file, kernel.entry, {}, kernel.names, kernel.source, defines=kernel.defines
    )
    include, shared = (f"-I{kernel.folder}",) * bool(kernel.folder), launch.dynamic_shared_bytes
    try:
        cooperative = "this_grid" in kernel.source
        module, function = compiled(spec, *include, shared_bytes=shared, cooperative=cooperative)
        variables = {
            name: cupy.ndarray(array.shape, array.dtype, module.get_global(name))
            for name, array in call.symbols.items()
        }
        for name, variable in variables.items():
            variable[...] = cupy.asarray(call.symbols[name])
        function(launch.grid, launch.block, tuple(on_gpu.values()), shared_mem=shared)
        cupy.cuda.Device().synchronize()
        for name, array in call.symbols.items():
            if array.flags.writeable:
                array[...] = variables[name].get()
    except AccelvizError:
        raise
    except Exception as error:
        raise KernelError(kernel.entry, f"it fails on the GPU: {one_line(error)}") from error
    for name in call.outputs():
        if arguments[name].flags.writeable:
            arguments[name][...] = on_gpu[name].get()
    return call.results()


class PointerKernel:
    """A compiled kernel that takes the addresses of its arrays, for arrays of other libraries.

    Parameters
    ----------
    spec : KernelSpec
    threads : int
        Threads per block.
    shared_percent : int, optional
    cooperative : bool
        See `LaunchConfig`.
    """

    def __init__(
        self,
        spec: KernelSpec,
        threads: int,
        *,
        shared_percent: int | None = None,
        cooperative: bool = False,
    ) -> None:
        _, self._function = compiled(spec, shared_percent=shared_percent, cooperative=cooperative)
        driver = import_cupy().cuda.driver
        self._launch = driver.launchCooperativeKernel if cooperative else driver.launchKernel
        self._last = () if cooperative else (0,)
        self.arguments, self._threads = spec.arguments, threads
        self._zeros = dict.fromkeys(spec.arguments, 0)
        self._in_order = operator.itemgetter(*spec.arguments)

    def bind(self, grid_x: int, grid_y: int, words: Mapping[str, int]) -> BoundKernel:
        """Return a launch with arguments by name, as 64-bit words; missing ones are 0."""
        sizes = self._function.kernel.ptr, grid_x, grid_y, 1, self._threads, 1, 1, 0
        cells = array("Q", self._in_order({**self._zeros, **words}))
        return BoundKernel(self._launch, sizes, cells, self._last)


class BoundKernel:
    """A launch of a kernel, whose arguments are stored.

    Attributes
    ----------
    cells : array of 64-bit words
        The arguments in order: addresses, or the bits of numbers.
    """

    def __init__(
        self,
        launch: Callable[..., None],
        sizes: tuple[int, ...],
        cells: array[int],
        last: tuple[int, ...],
    ) -> None:
        self.cells, self._launch, self._sizes = cells, launch, sizes
        # The driver reads the arguments through an array of their addresses.
        start, n_cells = cells.buffer_info()
        self._addresses = array("Q", range(start, start + 8 * n_cells, 8))
        self._last = self._addresses.buffer_info()[0], *last
        self._lock = threading.Lock()

    def __call__(self, stream: int, positions: Iterable[int], words: Iterable[int]) -> None:
        """Set the arguments at some positions and launch the kernel on a stream."""
        cells = self.cells
        with self._lock:
            for position, word in zip(positions, words, strict=True):
                cells[position] = word
            self._launch(*self._sizes, stream, *self._last)


def preload() -> None:
    """Import CuPy before the first launch, which says how to install it if it is missing."""
    with contextlib.suppress(ImportError):
        import_cupy()


def zero(address: int, n_bytes: int, stream: int) -> None:
    """Set memory to zero on a stream."""
    import_cupy().cuda.runtime.memsetAsync(address, 0, n_bytes, stream)
