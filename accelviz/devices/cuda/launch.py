"""`emulate(..., device="cuda")`: one launch of the caller's own kernel on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices.cuda.compiler import compiled
from accelviz.devices.cuda.state import gpu_state, import_cupy, one_line
from accelviz.emulator.call import KernelCall
from accelviz.errors import ArgumentError, KernelError
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
        module, function = compiled(spec, *include, shared_bytes=shared)
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
    except Exception as error:
        raise KernelError(kernel.entry, f"it fails on the GPU: {one_line(error)}") from error
    for name in call.outputs():
        if arguments[name].flags.writeable:
            arguments[name][...] = on_gpu[name].get()
    return call.results()
