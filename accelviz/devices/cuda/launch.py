"""One launch of a kernel that belongs to no plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.cuda.compiler import compile_options
from accelviz.devices.cuda.state import gpu_state, import_cupy, one_line
from accelviz.errors import ArgumentError, KernelError
from accelviz.plans import KernelSpec


def run_kernel(
    spec: KernelSpec,
    launch: Any,
    arguments: Mapping[str, Any],
    folder: Path | None = None,
    outputs: Collection[str] | None = None,
    same: Mapping[str, str] | None = None,
    symbols: Mapping[str, npt.NDArray[Any]] | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Compile a kernel for the current GPU, run it on copies of arrays and copy outputs back.

    Parameters
    ----------
    spec : KernelSpec
    launch : object
        With `grid`, `block` and `dynamic_shared_bytes`.
    arguments : mapping of str to array or NumPy scalar
        In the order of the parameters.
    folder : Path, optional
        Where the source may include files from.
    outputs : collection of str, optional
        Arrays to copy back; all of them where nobody knows which.
    same : mapping of str to str, optional
        Arrays that are the very memory of another.
    symbols : mapping of str to array, optional
        What `__constant__` and `__device__` variables hold before; they get what these hold after.

    Returns
    -------
    dict of str to array
        The outputs, written in place.

    Raises
    ------
    ArgumentError
        If a number is none of NumPy's types, which the kernel needs to be told.
    DeviceUnavailable
        If there is no GPU.
    KernelError
        If the kernel does not compile or run.
    """
    gpu_state().require("device 'cuda'")
    cupy, same = import_cupy(), same or {}
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            given[name] = cupy.asarray(value) if name not in same else given[same[name]]
        elif isinstance(value, np.generic):
            given[name] = value
        else:
            what = f"got {value!r}, and without a C++ compiler the kernel's types are not known"
            raise ArgumentError(name, what, "a NumPy scalar of the parameter's type: np.int32(1)")
    options = (*compile_options(spec), *((f"-I{folder}",) if folder else ()))
    try:
        # The name as in the source: `extern "C"` is not needed, and templates have instances.
        module = cupy.RawModule(code=spec.source(), options=options, name_expressions=(spec.entry,))
        function = module.get_function(spec.entry)
        variables = {
            name: cupy.ndarray(array.shape, array.dtype, module.get_global(name))
            for name, array in (symbols or {}).items()
        }
        for name, variable in variables.items():
            variable[...] = cupy.asarray(symbols[name])  # type: ignore[index]
        if launch.dynamic_shared_bytes > 48 * 1024:
            function.max_dynamic_shared_size_bytes = launch.dynamic_shared_bytes
        shared = {"shared_mem": launch.dynamic_shared_bytes}
        function(launch.grid, launch.block, tuple(given.values()), **shared)
        cupy.cuda.Device().synchronize()
        for name, array in (symbols or {}).items():
            if array.flags.writeable:
                array[...] = variables[name].get()
    except Exception as error:
        raise KernelError(spec.entry, f"it fails on the GPU: {one_line(error)}") from error
    written = [name for name, value in arguments.items() if isinstance(value, np.ndarray)]
    written = [name for name in written if outputs is None or name in outputs]
    for name in written:
        if arguments[name].flags.writeable:
            arguments[name][...] = given[name].get()
    return {name: arguments[name] for name in written}
