"""The halo scheme: fetch each remote row once, in pieces, while local rows are multiplied.

This scheme is ours, in contrast to MGG's (`published`). The halo of a device are the rows of X that
it needs from other devices. Each halo row is a word of 32 bits: the owner's number and the row's
number on the owner (`Part.words`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.arrays import Ints, Longs
from accelviz.datasets import load_graph
from accelviz.errors import checked_choice, checked_integer
from accelviz.graph import Graph
from accelviz.immutable import taken_over
from accelviz.many_gpus.program import SplitProgram, features_and_results, peer_buffers
from accelviz.many_gpus.split import Part, Split, word_shift
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.program import Buffer, Buffers, Step, buffer_name
from accelviz.plans.storage import STORAGE_BYTES, restored, stored
from accelviz.strategies import find_strategy
from accelviz.strategies.spmm.lane_groups import accumulating_plan

Words = npt.NDArray[np.uint32]

#: Threads of a block of the kernel `pull_rows`, and loads in flight per thread.
PULL_THREADS, PULLS_AT_ONCE = 256, 4
#: Default number of fetching blocks: enough to saturate the link, few enough to leave SMs for the
#: product that runs at the same time.
PULL_BLOCKS = 64
MAX_PIECES, MAX_PULL_BLOCKS = 16, 1024
#: Columns that one load can move, the widest first, and the most bytes of a load.
VECTORS, VECTOR_BYTES = (8, 4, 2, 1), 16
#: Most blocks of the kernel `round_rows`.
MAX_ROUND_BLOCKS = 4096


def halo(
    split: Split,
    n_cols: int,
    *,
    pieces: int = 2,
    storage: str = "float32",
    pull_blocks: int = PULL_BLOCKS,
    devices_a_host: int | None = None,
    all_gather: bool = False,
) -> SplitProgram:
    """Return the program that fetches each halo row once and multiplies piece by piece.

    Parameters
    ----------
    split : Split
    n_cols : int
        Columns of the features.
    pieces : int
        Number of pieces of each device's halo, 1 to 16. A piece is multiplied while the next one is
        fetched. Each piece costs another pass over the rows of Y to which it has edges.
    storage : {"float32", "float16", "bfloat16"}
        Data type in which halo rows are fetched. 16 bits halve the bytes on the link but change the
        result: remote rows are rounded, local rows are not.
    pull_blocks : int
        Blocks of the kernel that fetches, 1 to 1,024.
    devices_a_host : int, optional
        Devices per host, by default all. A device packs the rows that a device of another host
        needs into one buffer.
    all_gather : bool
        Fetch all rows of the other devices, needed or not.

    Notes
    -----
    The steps of each device, in parallel on all devices:

    - `round`, with 16 bits: converts the device's rows of X for the others to fetch;
    - `pack`, with several hosts: packs the rows that a device of another host needs;
    - `fetch`: reads a piece of the halo from the other devices' memory;
    - `multiply`: computes Y from the device's own rows of X by `lane_groups`, during `fetch`;
    - `add`: adds the product with a piece of the halo to Y, after its `fetch`.
    """
    pieces = checked_integer("pieces", pieces, MAX_PIECES)
    pull_blocks = checked_integer("pull_blocks", pull_blocks, MAX_PULL_BLOCKS)
    storage = checked_choice("storage", storage, STORAGE_BYTES)
    a_host = split.n_devices if devices_a_host is None else devices_a_host
    a_host = min(checked_integer("devices_a_host", a_host), split.n_devices)
    builder = _Builder(split, n_cols, storage, pull_blocks, a_host)
    parts = [_with_all_rows(part, split.bounds) if all_gather else part for part in split.parts]
    halos = [list(_pieces(part, split.n_devices, pieces)) for part in parts]
    if storage != "float32":
        for part in parts:
            builder.round(part)
    for halo_pieces in halos:
        for piece in halo_pieces:
            builder.pack(piece)
    writers = tuple(range(len(builder.steps)))  # the steps that write what others fetch
    for part, halo_pieces in zip(parts, halos, strict=True):
        fetches = [builder.fetch(piece, writers) for piece in halo_pieces]
        builder.product("multiply", part.local, part.device, buffer_name("X", part.device))
        for piece, after in zip(halo_pieces, fetches, strict=True):
            builder.add(piece, after)
    parameters: dict[str, Any] = {"pieces": pieces, "storage": storage, "pull_blocks": pull_blocks}
    if a_host < split.n_devices:
        parameters["devices_a_host"] = a_host
    return SplitProgram(
        steps=tuple(builder.steps),
        buffers=builder.buffers,
        split=split,
        scheme="all_gather" if all_gather else "halo",
        n_cols=n_cols,
        parameters=parameters,
    )


def _with_all_rows(part: Part, bounds: Longs) -> Part:
    """Return the part with all rows of all other devices as its halo, the next device's first."""
    n_devices = bounds.size - 1
    ring = np.roll(np.arange(n_devices), -part.device)[1:]  # the other devices, in halo order
    sizes, starts = np.diff(bounds)[ring], np.zeros(n_devices, np.int64)
    starts[ring] = np.cumsum(sizes) - sizes
    owners = np.repeat(ring, sizes).astype(np.int32)
    rows = (np.arange(owners.size) - starts[owners]).astype(np.int32)
    columns = (starts[part.halo_owner] + part.halo_row)[part.remote.column_indices]
    shape = part.n_rows, owners.size
    remote = replace(part.remote, column_indices=columns.astype(np.int32), shape=shape)
    return replace(part, remote=remote, halo_owner=owners, halo_row=rows)


@dataclass(frozen=True)
class _Piece:
    """A range of halo rows of a device: their words, and the matrix of the edges from them."""

    device: int
    number: int
    words: Words
    matrix: sparse.csr_array
    name: str

    @property
    def buffer(self) -> str:
        return buffer_name(f"halo {self.number}", self.device)

    def packed(self, owner: int) -> str:
        """Return the buffer in which `owner`, on another host, packs its rows of this piece."""
        return buffer_name(f"packed {self.device}.{self.number}", owner)


def _pieces(part: Part, n_devices: int, pieces: int) -> Iterator[_Piece]:
    """Divide the halo of a part into equal pieces."""
    words, remote = part.words(n_devices), part.remote
    for number in range(pieces):
        columns = slice(len(words) * number // pieces, len(words) * (number + 1) // pieces)
        name = f"{remote.name} {number}"
        yield _Piece(part.device, number, words[columns], remote.adjacency[:, columns], name)


class _Builder:
    """Appends the steps of a program and their buffers."""

    def __init__(
        self, split: Split, n_cols: int, storage: str, pull_blocks: int, devices_a_host: int
    ) -> None:
        self.n_devices, self.n_cols, self.storage = split.n_devices, n_cols, storage
        self.pull_blocks, self.devices_a_host = pull_blocks, devices_a_host
        self.buffers = features_and_results(split, n_cols, zeroed=False)
        self.steps: list[Step] = []
        self._shift, self._element_bytes = word_shift(split.n_devices), STORAGE_BYTES[storage]
        self._storage_number = list(STORAGE_BYTES).index(storage)
        #: Family of the buffers that are fetched.
        self._source = "X" if storage == "float32" else "rounded X"

    def _launch(
        self,
        name: str,
        device: int,
        spec: KernelSpec,
        blocks: int,
        arrays: Mapping[str, Any],
        buffers: Mapping[str, str],
        target: str,
        rows: int,
        **attributes: Any,
    ) -> None:
        """Append a step that writes `rows` rows to a new buffer `target`."""
        dtype = "float32" if self.storage == "float32" else "uint16"
        self.buffers[target] = Buffer(device, rows * self.n_cols, dtype, "workspace")
        call = Call(LaunchConfig((blocks, 1, 1), PULL_THREADS // WARP_SIZE), spec)
        writes = frozenset({target})
        self.steps.append(Step(name, device, "link", call, arrays, buffers, writes, **attributes))

    def round(self, part: Part) -> None:
        """Append the step that converts a device's rows to 16 bits."""
        device, size = part.device, part.n_rows * self.n_cols
        source, target = buffer_name("X", device), buffer_name("rounded X", device)
        config = {"features": self._storage_number, "block_threads": PULL_THREADS}
        arguments = ("X", "rounded", "size")
        self._launch(
            *("round", device),
            KernelSpec("many_gpus/round_rows.cu", "round_rows", config, arguments),
            min(-(-size // PULL_THREADS), MAX_ROUND_BLOCKS),
            {"size": np.int64(size)},
            {"X": source, "rounded": target},
            *(target, part.n_rows),
            replay=partial(_replay_round, source, target, self.storage),
        )

    def pack(self, piece: _Piece) -> None:
        """Append the steps by which owners on other hosts pack their rows of a piece."""
        for owner, is_owned in self._owners_on_other_hosts(piece):
            source = dict.fromkeys(peer_buffers(self.n_devices), buffer_name(self._source, owner))
            self._pull("pack", owner, piece.words[is_owned], source, piece.packed(owner))

    def fetch(self, piece: _Piece, after: tuple[int, ...]) -> tuple[int, ...]:
        """Append the step that fetches a piece; return its number, nothing for an empty piece."""
        words = piece.words.copy()
        if not words.size:
            self.buffers[piece.buffer] = Buffer(piece.device, 0, "float32", "workspace")
            return ()
        rows_of_owner = np.bincount(words >> np.uint32(self._shift), minlength=self.n_devices)
        # The kernel has an argument for each device; those that it does not read get local rows.
        local = buffer_name(self._source, piece.device)
        source = dict.fromkeys(peer_buffers(self.n_devices), local)
        for owner in np.flatnonzero(rows_of_owner).tolist():
            source[f"X{owner}"] = buffer_name(self._source, owner)
        for owner, is_owned in self._owners_on_other_hosts(piece):
            source[f"X{owner}"] = piece.packed(owner)
            words[is_owned] = owner << self._shift | np.arange(is_owned.sum())
        row_bytes = self.n_cols * self._element_bytes
        link_bytes = {owner: int(n) * row_bytes for owner, n in enumerate(rows_of_owner) if n}
        attributes = {"after": after, "link_bytes": link_bytes}
        self._pull("fetch", piece.device, words, source, piece.buffer, **attributes)
        return (len(self.steps) - 1,)

    def _owners_on_other_hosts(self, piece: _Piece) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
        """Yield each such owner of rows of a piece, and a mask of its words."""
        owners = (piece.words >> np.uint32(self._shift)).astype(np.int64)
        for owner in np.unique(owners).tolist():
            if owner // self.devices_a_host != piece.device // self.devices_a_host:
                yield owner, owners == owner

    def _pull(
        self,
        name: str,
        device: int,
        words: Words,
        source: dict[str, str],
        target: str,
        **attributes: Any,
    ) -> None:
        """Append a step that copies the rows `words` to consecutive rows of the buffer `target`."""
        vectors = (
            v for v in VECTORS if self.n_cols % v == 0 and v * self._element_bytes <= VECTOR_BYTES
        )
        words, vector = taken_over(words), next(vectors)
        config = {"n_devices": self.n_devices, "row_bits": self._shift, "vector": vector}
        config |= {"row_vectors": self.n_cols // vector, "features": self._storage_number}
        config |= {"at_once": PULLS_AT_ONCE, "block_threads": PULL_THREADS}
        arguments = ("words", *peer_buffers(self.n_devices), "halo", "n_rows")
        blocks = -(-words.size * (self.n_cols // vector) // PULL_THREADS)
        self._launch(
            *(name, device),
            KernelSpec("many_gpus/pull_rows.cu", "pull_rows", config, arguments),
            min(blocks, self.pull_blocks),
            {"words": words, "n_rows": np.int32(words.size)},
            {**source, "halo": target},
            *(target, words.size),
            replay=partial(_replay_pull, words, self._shift, source, target, self.n_cols),
            **attributes,
        )

    def add(self, piece: _Piece, after: tuple[int, ...]) -> None:
        """Append the step that adds the product with a piece, after the steps `after`."""
        rows = np.flatnonzero(np.diff(piece.matrix.indptr)).astype(np.int32)
        if rows.size:
            graph = load_graph(piece.matrix[rows], name=piece.name)
            self.product("add", graph, piece.device, piece.buffer, rows, self.storage, after)

    def product(
        self,
        name: str,
        graph: Graph,
        device: int,
        source: str,
        rows: Ints | None = None,
        storage: str = "float32",
        after: tuple[int, ...] = (),
    ) -> None:
        """Append a product by `lane_groups`. With `rows`, its rows are added to those of Y."""
        if not graph.n_rows:
            return
        plan, values = graph.weighted_store.get(
            ("product on one of several devices", self.n_cols, storage),
            lambda: _plan_and_values(graph, self.n_cols, storage),
        )
        target, number = buffer_name("Y", device), len(self.steps)
        replay = partial(_replay_product, plan, values, source, target, rows)
        plan = plan if rows is None else accumulating_plan(plan, rows)
        buffers = {"X": source, "Y": target}
        workspaces = {"zero": plan.buffers.zeroed_workspace, "workspace": plan.buffers.workspace}
        for kind, sizes in workspaces.items():
            for argument, (size, dtype) in sizes.items():
                buffers[argument] = buffer_name(f"{argument} {number}", device)
                self.buffers[buffers[argument]] = Buffer(device, size, np.dtype(dtype).name, kind)
        (call,) = plan.calls
        assert isinstance(call, Call)
        arrays = {**plan.arrays, "values": values}
        writes = frozenset({*buffers.values()} - {source})
        step = Step(name, device, "compute", call, arrays, buffers, writes, after, replay)
        self.steps.append(step)


def _plan_and_values(
    graph: Graph, n_cols: int, storage: str
) -> tuple[Plan, npt.NDArray[np.float32]]:
    """Return a plan by `lane_groups`, and the graph's values in the order of its kernel."""
    plan = find_strategy("lane_groups").plan(graph, n_cols, storage=storage)
    order = plan.layout.nonzero_order
    return plan, graph.values if order is None else taken_over(graph.values[order])


def _replay_round(source: str, target: str, storage: str, buffers: Buffers) -> None:
    buffers[target][:] = stored(buffers[source], storage)


def _replay_pull(
    words: Words, shift: int, source: Mapping[str, str], target: str, n_cols: int, buffers: Buffers
) -> None:
    sources = {owner: buffers[name] for owner, name in enumerate(source.values())}
    buffers[target].reshape(-1, n_cols)[...] = rows_of_words(words, shift, sources, n_cols)


def rows_of_words(
    words: Words, shift: int, sources: Mapping[int, npt.NDArray[Any]], n_cols: int
) -> npt.NDArray[Any]:
    """Return the rows of `sources` that words refer to, shape (n_words, n_cols).

    The lower `shift` bits of a word are the row's number, the upper bits its owner.
    """
    owners = words >> np.uint32(shift)
    rows = (words & np.uint32((1 << shift) - 1)).astype(np.int64)
    fetched = np.empty((words.size, n_cols), sources[0].dtype)
    for owner in np.unique(owners).tolist():
        is_owned = owners == owner
        fetched[is_owned] = sources[owner].reshape(-1, n_cols)[rows[is_owned]]
    return fetched


def _replay_product(
    plan: Plan,
    values: npt.NDArray[np.float32],
    source: str,
    target: str,
    rows: Ints | None,
    buffers: Buffers,
) -> None:
    n_rows, n_columns = plan.pattern.shape
    X = restored(buffers[source], plan.storage).reshape(n_columns, plan.n_cols)
    products = np.empty((n_rows, plan.n_cols), np.float32)
    plan.operation.replay(plan)({"X": X, "values": values}, {"Y": products})
    Y = buffers[target].reshape(-1, plan.n_cols)
    if rows is None:
        Y[...] = products
    else:
        Y[rows] += products
