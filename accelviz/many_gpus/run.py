"""`plan`, `run` and `spmm`: sparse products on several devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accelviz.devices import choose
from accelviz.devices.emulator import EmulatorDevice
from accelviz.devices.operands import on_host
from accelviz.errors import ArgumentError, checked_choice, checked_integer, checked_type
from accelviz.many_gpus.halo import halo
from accelviz.many_gpus.peers import Peers, usable_gpus
from accelviz.many_gpus.process import this_process
from accelviz.many_gpus.program import SplitProgram
from accelviz.many_gpus.published import mgg
from accelviz.many_gpus.split import MAX_DEVICES, Split, split
from accelviz.many_gpus.symmetric import Symmetric

#: The largest seed of the emulator.
MAX_SEED = (1 << 63) - 1
DEVICES = ("auto", "cuda", "nvshmem", "emulator", "cpu")
#: Function that returns the program of each scheme.
SCHEMES: dict[str, Callable[..., SplitProgram]] = {
    "halo": halo,
    "mgg": mgg,
    "all_gather": partial(halo, all_gather=True),
}


def plan(split: Split, n_cols: int = 64, scheme: str = "halo", **parameters: Any) -> SplitProgram:
    """Plan `Y = A X` on the devices of a split.

    Parameters
    ----------
    split : Split
    n_cols : int
        Columns of the features, at least 1.
    scheme : {"halo", "mgg", "all_gather"}
        "halo" is ours and fetches each required remote row once. "mgg" is MGG as published and
        fetches a row for each remote edge. "all_gather" fetches all remote rows once.
    **parameters
        Parameters of the scheme: for "halo" and "all_gather" `pieces`, `storage`, `pull_blocks` and
        `devices_a_host`; for "mgg" `ps`, `dist`, `wpb`, `interleave`, `asynchronous`, `get`.

    Returns
    -------
    SplitProgram

    Raises
    ------
    ArgumentError, PartitionError
        If an argument is unknown or out of range.

    Examples
    --------
    >>> from accelviz import many_gpus
    >>> many_gpus.plan(many_gpus.split("cora", 2), 16, "mgg", ps=4)
    Program('mgg' for 'cora' on 2 devices, n_cols=16, ps=4, dist=1, wpb=2, interleave=True, \
asynchronous=True, get=warp: 2 launches)
    """
    checked_type("split", split, Split, "what many_gpus.split returns")
    checked_integer("devices", split.n_devices, MAX_DEVICES)
    if isinstance(n_cols, str):
        raise ArgumentError("n_cols", f"got {n_cols!r}", f"an integer; scheme={n_cols!r} by name")
    n_cols = checked_integer("n_cols", n_cols, error=ArgumentError)
    make = SCHEMES[checked_choice("scheme", scheme, SCHEMES)]
    try:
        return make(split, n_cols, **parameters)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise ArgumentError(scheme, str(error).partition(") ")[2], "see many_gpus.plan") from error


def run(
    program: SplitProgram, X: Any, *, device: str = "auto", seed: int = 0
) -> npt.NDArray[np.float32]:
    """Run a program on features in host memory.

    Parameters
    ----------
    program : SplitProgram
    X : array of float32, shape (n_vertices, n_cols)
        Features in the caller's vertex order.
    device : {"auto", "cuda", "nvshmem", "emulator", "cpu"}
        "cuda" runs on GPUs of this process. "nvshmem" runs on one GPU per process of `torchrun`;
        all processes get the result. "emulator" emulates the kernels and checks each access. "cpu"
        replays the partition. "auto" is the GPUs if there are enough of them, else the CPU.
    seed : int
        Seed of the emulator; see `EmulatorDevice`.

    Returns
    -------
    array of float32, shape (n_vertices, n_cols)
        Result in the caller's vertex order.

    Raises
    ------
    ArgumentError
        If X has a wrong shape or dtype.
    DeviceUnavailable
        If there are too few GPUs, or they cannot read each other's memory.
    KernelError
        If a kernel fails, or the emulator detects an error.

    See Also
    --------
    Peers, Symmetric : Keep features on the GPUs between calls.
    """
    checked_type("program", program, SplitProgram, "what many_gpus.plan returns")
    checked_choice("device", device, DEVICES)
    seed = checked_integer("seed", seed, MAX_SEED, least=0, error=ArgumentError)
    features = on_host("X", X)
    shape = (program.split.graph.n_rows, program.n_cols)
    if features.shape != shape or features.dtype.kind not in "biuf":
        problem = f"shape {features.shape}, dtype {features.dtype}"
        raise ArgumentError("X", problem, f"real numbers of shape {shape}")
    if device == "auto":
        device = fastest_device(program.n_devices)
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite, as in spmm
        inputs = program.inputs(features.astype(np.float32, copy=False))
    if device == "cuda":
        choose(device).require()
        with Peers(program.n_devices) as gpus:
            return gpus.ready(program).run(inputs)
    if device == "nvshmem":
        with Symmetric().ready(program) as ready:
            return ready.run(inputs)
    executor = EmulatorDevice(seed=seed) if device == "emulator" else choose(device)
    return program.result(executor.run_program(program, inputs))


def fastest_device(n_devices: int) -> str:
    """Return the device that "auto" selects for a program of `n_devices` devices."""
    device = choose().name
    if device == "cuda" and this_process() is not None:
        return "nvshmem"
    return "cpu" if device == "cuda" and len(usable_gpus()) < n_devices else device


def spmm(
    graph: Any,
    X: Any,
    devices: int = 2,
    scheme: str = "halo",
    *,
    device: str = "auto",
    order: Any = None,
    by: Any = "edges",
    **parameters: Any,
) -> npt.NDArray[np.float32]:
    """Compute `Y = A X` on several devices: `split`, `plan` and `run` in one call.

    Parameters
    ----------
    graph, devices, by, order
        As in `split`.
    X, device
        As in `run`.
    scheme, **parameters
        As in `plan`.

    Returns
    -------
    array of float32, shape (n_vertices, n_cols)

    Examples
    --------
    >>> import numpy as np
    >>> from accelviz import many_gpus
    >>> Y = many_gpus.spmm("cora", np.ones((2708, 8), np.float32), devices=2, device="cpu")
    >>> Y.shape
    (2708, 8)
    """
    divided = split(graph, devices, by=by, order=order)
    features = on_host("X", X)
    if features.ndim != 2:
        raise ArgumentError("X", f"shape {features.shape}", "2-D: vertices, columns")
    return run(plan(divided, features.shape[1], scheme, **parameters), features, device=device)
