"""Sums over devices: by NCCL, and on the host where that cannot be had."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from accelviz.devices.cuda.state import import_cupy, import_nccl, one_line
from accelviz.errors import DeviceUnavailable
from accelviz.layers.train import on_host
from accelviz.many_gpus.launch import Place
from accelviz.many_gpus.peers import Peers
from accelviz.many_gpus.symmetric import Symmetric

#: Seconds between two looks at whether NCCL is done.
LOOK = 1e-5


@functools.cache
def _joined(gpus: tuple[int, ...], here: Place | None) -> tuple[tuple[Any, ...], str]:
    """Return a communicator for each GPU of this process, or none, and how sums are made.

    All processes come to the same answer. NCCL takes an id once, so this is done once a process.
    """
    nccl, properties = import_nccl(), import_cupy().cuda.runtime.getDeviceProperties
    known = [properties(gpu)["uuid"].hex() if nccl.available else "" for gpu in gpus]
    if here is not None:
        here.told(f"GPU of process {here.rank}", known[0])
        known = [here.told(f"GPU of process {rank}", None) for rank in range(here.size)]
    if "" in known:
        return (), "on the host, as NCCL is not installed"
    if len({*known}) < len(known):
        return (), "on the host, as a GPU plays several devices, which NCCL refuses"
    version = nccl.get_version()
    how = f"by NCCL {version // 10000}.{version // 100 % 100}.{version % 100}"
    try:
        if here is None:
            return tuple(nccl.NcclCommunicator.initAll(list(gpus))), how
        own = nccl.get_unique_id().hex() if here.rank == 0 else None
        identity = bytes.fromhex(here.told("NCCL", own))
        return (nccl.NcclCommunicator(here.size, identity, here.rank),), how
    except nccl.NcclError as error:
        fix = "NCCL_DEBUG=WARN tells more; without NCCL sums are made on the host"
        raise DeviceUnavailable("NCCL", one_line(error), fix) from error


class Sums:
    """Adds up what the devices have, such as gradients.

    Parameters
    ----------
    gpus : Peers, Symmetric or None
        None if all devices are pretended.

    Attributes
    ----------
    how : str
        "by NCCL" and its version, or "on the host" and why.

    Raises
    ------
    DeviceUnavailable
        If NCCL is there and fails to join the devices.
    """

    def __init__(self, gpus: Peers | None) -> None:
        self._gpus, self.how = gpus, "on the host, where all is"
        self._communicators: tuple[Any, ...] = ()
        if gpus is not None:
            here = gpus.here if isinstance(gpus, Symmetric) else None
            self._communicators, self.how = _joined(tuple(gpus.devices), here)

    def added(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the sum of all devices' arrays on each, given those of this process.

        It is made in float64, rounded once to float32, and the same on all devices to the last bit.
        """
        if self._gpus is not None:
            self._gpus.wait()  # a thread knows nothing of what others have queued
        if self._communicators:
            return self._by_nccl(self._gpus, arrays)
        everything = np.sum([on_host(array).astype(np.float64) for array in arrays], axis=0)
        if isinstance(self._gpus, Symmetric):
            everything = self._gpus.total(everything)
        total = everything.astype(np.float32)
        if self._gpus is None:
            return [total.copy() for _ in arrays]
        cupy, found = import_cupy(), []
        for device in self._gpus.devices:
            with cupy.cuda.Device(device):
                found.append(cupy.asarray(total))
        return found

    def _by_nccl(self, gpus: Any, arrays: Sequence[Any]) -> list[Any]:
        nccl, cuda = import_nccl(), import_cupy().cuda
        own = [(gpu, gpus.streams[place, "compute"]) for place, gpu in gpus.gpu_of.items()]
        wide, found, done = [], [], []
        for (gpu, stream), array in zip(own, arrays, strict=True):
            with cuda.Device(gpu), stream:
                wide.append(array.astype(np.float64))
        nccl.groupStart()
        for (gpu, stream), each, array in zip(own, self._communicators, wide, strict=True):
            with cuda.Device(gpu):
                place, about = array.data.ptr, (nccl.NCCL_FLOAT64, nccl.NCCL_SUM, stream.ptr)
                each.allReduce(place, place, array.size, *about)
        nccl.groupEnd()
        for (gpu, stream), array in zip(own, wide, strict=True):
            with cuda.Device(gpu), stream:
                found.append(array.astype(np.float32))
                done.append(cuda.Event(disable_timing=True))
                done[-1].record(stream)
        try:
            while not all(event.done for event in done):
                time.sleep(LOOK)
        except cuda.runtime.CUDARuntimeError:
            for each in self._communicators:  # GPUs that wait for the one that failed
                each.abort()
            gpus.wait()  # says which
            raise
        return found
