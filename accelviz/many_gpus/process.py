"""Several processes of one program, each with one GPU: ranks, and an all-gather on the host.

`torchrun`, `mpirun` or `srun` starts the processes and ends them if one fails.
"""

from __future__ import annotations

import datetime
import functools
import os
from dataclasses import dataclass
from typing import Any

from accelviz.errors import ArgumentError, DeviceUnavailable, pip_install

#: Environment variables of each launcher: rank, number of processes, rank on the host, processes on
#: the host.
LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "mpirun (Open MPI)": tuple(
        f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    ),
    "mpirun (MPICH)": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
}
#: Environment variable with the GPU of each process of a host; "0,0" gives two processes one GPU.
GPUS_VARIABLE = "ACCELVIZ_GPUS"
#: Seconds in which rank 0 has to start, after another rank.
JOIN_SECONDS = 60
JOIN_FIX = "torchrun, or MASTER_ADDR and MASTER_PORT of the first host, the same for all processes"


@dataclass(frozen=True)
class Process:
    """One of several processes.

    Attributes
    ----------
    rank, size : int
        Number of this process, which is the number of its device in a split, and number of
        processes.
    gpu : int
        Number of its GPU: the rank on its host, unless ACCELVIZ_GPUS has another.
    devices_a_host : int
        Number of processes per host.
    """

    rank: int
    size: int
    gpu: int
    devices_a_host: int

    def all_gather(self, value: Any) -> list[Any]:
        """Return the values of all processes by rank; all processes have to call it.

        Raises
        ------
        DeviceUnavailable
            If PyTorch is missing, the processes cannot connect, or one of them has ended.
        """
        distributed, group = _joined(self)
        values = [None] * self.size
        try:
            distributed.all_gather_object(values, value, group)
        except RuntimeError as error:
            problem = f"one of them has ended: {error}"
            raise DeviceUnavailable("processes", problem, "start all of them again") from error
        return values


def join(process: Process, backend: str, **options: Any) -> Any:
    """Return `torch.distributed`, joined unless the program has; options of init_process_group.

    Raises
    ------
    DeviceUnavailable
        If PyTorch is missing, or the processes cannot connect.
    """
    try:
        from torch import distributed

        if not distributed.is_initialized():
            ranks = process.rank, process.size
            # NVLink multicast can put a host's GPUs out of service.
            os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
            # A transfer starts beside a product that occupies the GPU.
            os.environ.setdefault("TORCH_NCCL_HIGH_PRIORITY", "1")
            timeout = datetime.timedelta(seconds=JOIN_SECONDS)
            store = next(distributed.rendezvous("env://", *ranks, timeout=timeout))[0]
            store.set_timeout(distributed.default_pg_timeout)
            # torchrun keeps the store when it restarts all processes, with addresses of dead ones.
            attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            options["store"] = distributed.PrefixStore(f"attempt {attempt}", store)
            distributed.init_process_group(
                backend, rank=process.rank, world_size=process.size, **options
            )
    except ImportError as error:
        fix = pip_install("accelviz[nvshmem]")
        raise DeviceUnavailable("processes", "PyTorch is not installed", fix) from error
    except (ValueError, RuntimeError) as error:
        raise DeviceUnavailable("processes", str(error).partition("\n")[0], JOIN_FIX) from error
    return distributed


@functools.cache
def _joined(process: Process) -> tuple[Any, Any]:
    """Return `torch.distributed` and a process group for transfers between hosts."""
    distributed = join(process, "gloo")
    return distributed, distributed.new_group(backend="gloo")


def this_process() -> Process | None:
    """Return the rank and GPU of this process, or None if it is the only one.

    Raises
    ------
    ArgumentError
        If a variable of the launcher is not an integer, or ACCELVIZ_GPUS does not list a GPU for
        this process.
    """
    for names in LAUNCHERS.values():
        if names[0] in os.environ and names[1] in os.environ:
            rank, size, local_rank = map(_integer, names[:3])
            a_host = _integer(names[3]) if names[3] in os.environ else size
            gpus = os.environ.get(GPUS_VARIABLE, "")
            try:
                gpu = int(gpus.split(",")[local_rank]) if gpus else local_rank
            except (ValueError, IndexError) as error:
                expected = f"the GPU of each of {a_host} processes, such as 0,1"
                raise ArgumentError(GPUS_VARIABLE, f"got {gpus!r}", expected) from error
            return Process(rank, size, gpu, a_host) if size > 1 else None
    return None


def _integer(name: str) -> int:
    text = os.environ.get(name, "")
    try:
        return int(text)
    except ValueError as error:
        raise ArgumentError(name, f"got {text!r}", "an integer, as a launcher sets it") from error
