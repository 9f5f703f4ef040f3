"""All-reduce: sums over devices by NCCL, or on the host where there is no NCCL."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from accelviz.devices import find_device
from accelviz.devices.cuda.state import import_nccl, one_line
from accelviz.errors import DeviceUnavailable
from accelviz.layers.train import on_host
from accelviz.many_gpus.peers import Peers
from accelviz.many_gpus.process import Process
from accelviz.many_gpus.symmetric import Symmetric

#: Seconds between two queries whether NCCL is done.
POLL_SECONDS = 1e-5


@functools.cache
def _communicators(gpus: tuple[int, ...], process: Process | None) -> tuple[tuple[Any, ...], str]:
    """Return a communicator for each GPU of this process, or none, and how sums are made.

    All processes return the same. NCCL takes an id once, so that this runs once a process.
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
    """Adds up the devices' arrays, such as gradients.

    Parameters
    ----------
    gpus : Peers, Symmetric or None
        None if all arrays are on the host.

    Attributes
    ----------
    how : str
        "by NCCL" and its version, or "on the host" and why.

    Raises
    ------
    DeviceUnavailable
        If NCCL is installed and fails to join the devices.
    """

    def __init__(self, gpus: Peers | None) -> None:
        self._gpus, self.how = gpus, "on the host, where all is"
        self._communicators: tuple[Any, ...] = ()
        if gpus is not None:
            process = gpus.process if isinstance(gpus, Symmetric) else None
            self._communicators, self.how = _communicators(tuple(gpus.devices), process)

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the sum over all devices on each device of this process, given its arrays.

        It is made in float64, rounded once to float32, and the same on all devices to the last bit.
        """
        if self._gpus is not None:
            self._gpus.wait()  # arrays come from several threads
        if self._communicators:
            return self._by_nccl(self._gpus, arrays)
        wide = np.sum([on_host(array).astype(np.float64) for array in arrays], axis=0)
        if isinstance(self._gpus, Symmetric):
            wide = np.sum(self._gpus.process.all_gather(wide), axis=0)
        total = wide.astype(np.float32)
        if self._gpus is None:
            return [total.copy() for _ in arrays]
        totals = []
        for device in self._gpus.gpu_of:
            with self._gpus.on(device):
                totals.append(find_device("cuda").to_device(total))
        return totals

    def _by_nccl(self, gpus: Any, arrays: Sequence[Any]) -> list[Any]:
        nccl, cuda = import_nccl(), find_device("cuda").xp.cuda
        streams = {device: gpus.streams[device, "compute"] for device in gpus.gpu_of}
        wide, totals, events = [], [], []
        for (device, stream), array in zip(streams.items(), arrays, strict=True):
            with gpus.on(device), stream:
                wide.append(array.astype(np.float64))
        nccl.groupStart()
        for device, one, array in zip(streams, self._communicators, wide, strict=True):
            with gpus.on(device):
                pointer, stream = array.data.ptr, streams[device].ptr
                kind = nccl.NCCL_FLOAT64, nccl.NCCL_SUM
                one.allReduce(pointer, pointer, array.size, *kind, stream)
        nccl.groupEnd()
        for (device, stream), array in zip(streams.items(), wide, strict=True):
            with gpus.on(device), stream:
                totals.append(array.astype(np.float32))
                events.append(cuda.Event(disable_timing=True))
                events[-1].record(stream)
        try:
            while not all(event.done for event in events):
                time.sleep(POLL_SECONDS)
        except cuda.runtime.CUDARuntimeError:
            for one in self._communicators:  # the other GPUs wait for the one that failed
                one.abort()
            gpus.wait()  # raises an error that names it
            raise
        return totals
