"""All-reduce: sums over devices by NCCL, or on the host if NCCL cannot be used."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from accelviz.devices import find_device
from accelviz.devices.cuda.state import import_nccl, one_line
from accelviz.errors import DeviceUnavailable
from accelviz.many_gpus.peers import Peers
from accelviz.many_gpus.process import Process
from accelviz.many_gpus.symmetric import Symmetric

#: Seconds between two queries whether NCCL has finished.
POLL_SECONDS = 1e-5


@functools.cache
def _communicators(gpus: tuple[int, ...], process: Process | None) -> tuple[tuple[Any, ...], str]:
    """Return NCCL's communicators of this process's GPUs (or none), and `AllReduce.how`.

    All processes decide alike. An id of NCCL can be used once, so that the result is cached.
    """
    nccl, runtime = import_nccl(), find_device("cuda").xp.cuda.runtime
    uuids = [
        runtime.getDeviceProperties(gpu)["uuid"].hex() if nccl.available else "" for gpu in gpus
    ]
    if process is not None:
        uuids = process.all_gather(uuids[0])
    if "" in uuids:
        return (), "on the host, as NCCL is not installed"
    if len({*uuids}) < len(uuids):
        return (), "on the host, as a GPU plays several devices, which NCCL refuses"
    version = nccl.get_version()
    how = f"by NCCL {version // 10000}.{version // 100 % 100}.{version % 100}"
    try:
        if process is None:
            return tuple(nccl.NcclCommunicator.initAll(list(gpus))), how
        identity = process.all_gather(nccl.get_unique_id() if process.rank == 0 else None)[0]
        return (nccl.NcclCommunicator(process.size, identity, process.rank),), how
    except nccl.NcclError as error:
        fix = "NCCL_DEBUG=WARN tells more; without NCCL sums are made on the host"
        raise DeviceUnavailable("NCCL", one_line(error), fix) from error


class AllReduce:
    """Sums arrays over all devices, such as gradients.

    Parameters
    ----------
    gpus : Peers, Symmetric or None
        None if all arrays are on the host.

    Attributes
    ----------
    how : str
        "by NCCL" and its version, or "on the host" and the reason.

    Raises
    ------
    DeviceUnavailable
        If NCCL is installed but cannot connect the devices.
    """

    def __init__(self, gpus: Peers | None) -> None:
        self._gpus, self.how = gpus, "on the host, where all is"
        self._communicators: tuple[Any, ...] = ()
        if gpus is not None:
            process = gpus.process if isinstance(gpus, Symmetric) else None
            self._communicators, self.how = _communicators(tuple(gpus.devices), process)

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the sum over all devices, on each device of this process.

        `arrays` has one array per device of this process. The sum is computed in float64 and
        rounded once to float32. It has the same bits on all devices.
        """
        gpus = self._gpus
        if gpus is None:
            total = np.asarray(np.sum(arrays, axis=0, dtype=np.float64), np.float32)
            return [total.copy() for _ in arrays]
        gpus.wait()  # the arrays come from several threads
        if self._communicators:
            return self._by_nccl(gpus, arrays)
        wide_total = np.sum([array.get() for array in arrays], axis=0, dtype=np.float64)
        if isinstance(gpus, Symmetric):
            wide_total = np.sum(gpus.process.all_gather(wide_total), axis=0)
        totals = []
        for device in gpus.gpu_of:
            with gpus.on(device):
                totals.append(find_device("cuda").to_device(np.asarray(wide_total, np.float32)))
        return totals

    def _by_nccl(self, gpus: Any, arrays: Sequence[Any]) -> list[Any]:
        nccl, cuda = import_nccl(), find_device("cuda").xp.cuda
        streams = {device: gpus.streams[device, "compute"] for device in gpus.gpu_of}
        wide_arrays, totals, events = [], [], []
        for (device, stream), array in zip(streams.items(), arrays, strict=True):
            with gpus.on(device), stream:
                wide_arrays.append(array.astype(np.float64))
        nccl.groupStart()
        devices = zip(streams.items(), self._communicators, wide_arrays, strict=True)
        for (device, stream), communicator, array in devices:
            with gpus.on(device):
                pointer, kind = array.data.ptr, (nccl.NCCL_FLOAT64, nccl.NCCL_SUM)
                communicator.allReduce(pointer, pointer, array.size, *kind, stream.ptr)
        nccl.groupEnd()
        for (device, stream), array in zip(streams.items(), wide_arrays, strict=True):
            with gpus.on(device), stream:
                totals.append(array.astype(np.float32))
                events.append(cuda.Event(disable_timing=True))
                events[-1].record(stream)
        try:
            while not all(event.done for event in events):
                time.sleep(POLL_SECONDS)
        except cuda.runtime.CUDARuntimeError:
            for communicator in self._communicators:  # the other GPUs wait for the failed one
                communicator.abort()
            gpus.wait()  # raises an error that names the failed GPU
            raise
        return totals
