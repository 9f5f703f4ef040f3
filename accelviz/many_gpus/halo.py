"""Ours: each remote row fetched once, in pieces, while the local rows are multiplied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.arrays import Ints
from accelviz.errors import checked_choice, checked_integer
from accelviz.graph import Graph, taken_over
from accelviz.many_gpus.program import SplitProgram, features_and_results, peer_buffers
from accelviz.many_gpus.split import Part, Split, word_shift
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.program import Buffer, Buffers, Step, buffer_name
from accelviz.plans.storage import STORAGE_BYTES, restored, stored
from accelviz.strategies import find_strategy
from accelviz.strategies.spmm.lane_groups import accumulating

Words = npt.NDArray[np.uint32]

#: Threads of a block of `pull_rows`, and loads that each has in flight.
PULL_THREADS, PULLS_AT_ONCE = 256, 4
#: Blocks that fetch: enough for the link, few enough for the product beside them.
PULL_BLOCKS = 64
MOST_PIECES, MOST_PULL_BLOCKS = 16, 1024
#: Columns that one load can move, the widest first, and its bytes at most.
VECTORS, VECTOR_BYTES = (8, 4, 2, 1), 16


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
    """Fetch the rows of others once each, and multiply with them as they come.

    Parameters
    ----------
    split : Split
    n_cols : int
        Columns of the features.
    pieces : int
        Parts in which a device's halo comes, 1 to 16: the first is used while the next travels.
        Each costs another pass over the rows of Y that it has edges to.
    storage : {"float32", "float16", "bfloat16"}
        What halo rows travel in. 16 bits are half the bytes on the link and another problem: remote
        rows are rounded, local rows are not.
    pull_blocks : int
        Blocks of the kernel that fetches, 1 to 1,024.
    devices_a_host : int, optional
        Rows for a device of another host are packed by their owner, to travel together. By default
        all devices are of one host.
    all_gather : bool
        Fetch all rows of the others, needed or not.

    Notes
    -----
    Each device, all at the same time:

    - `round`, with 16 bits: writes its rows in that storage, for others to fetch;
    - `pack`, with several hosts: puts the rows together that a device of another host needs;
    - `fetch`: reads the rows that it needs from the others' memory into its halo, piece by piece;
    - `multiply`: its rows with its own vertices' features, by `lane_groups`, meanwhile;
    - `add`: its rows with a piece of the halo, added to that, once the piece has come.
    """
    pieces = checked_integer("pieces", pieces, MOST_PIECES)
    blocks = checked_integer("pull_blocks", pull_blocks, MOST_PULL_BLOCKS)
    storage = checked_choice("storage", storage, STORAGE_BYTES)
    a_host = split.n_devices if devices_a_host is None else devices_a_host
    a_host = min(checked_integer("devices_a_host", a_host), split.n_devices)
    builder = _Builder(split, n_cols, storage, blocks, a_host)
    halos = [_Halo.of(part, split, all_gather) for part in split.parts]
    cuts = [[_Piece(halo, number, pieces) for number in range(pieces)] for halo in halos]
    if storage != "float32":
        for part in split.parts:
            builder.round(part)
    for of_device in cuts:
        for piece in of_device:
            builder.pack(piece)
    ready = tuple(range(len(builder.steps)))  # every row that others fetch is written
    for of_device, part in zip(cuts, split.parts, strict=True):
        fetched = [builder.fetch(piece, ready) for piece in of_device]
        builder.product("multiply", part.local, part.device, buffer_name("X", part.device))
        for piece, after in zip(of_device, fetched, strict=True):
            builder.add(piece, after)
    parameters: dict[str, Any] = {"pieces": pieces, "storage": storage, "pull_blocks": blocks}
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


@dataclass(frozen=True)
class _Halo:
    """The rows that a device fetches, as words, and its matrix of them."""

    device: int
    words: Words
    remote: sparse.csr_array
    name: str

    @classmethod
    def of(cls, part: Part, split: Split, all_gather: bool) -> _Halo:
        """Take the part's halo, or all rows of all others, the next device's first."""
        n_devices, matrix = split.n_devices, part.remote.adjacency
        if all_gather:
            ring = np.roll(np.arange(n_devices), -part.device)[1:]
            sizes, starts = np.diff(split.bounds)[ring], np.zeros(n_devices, np.int64)
            starts[ring] = np.cumsum(sizes) - sizes
            owners = np.repeat(ring, sizes)
            rows = np.arange(owners.size) - starts[owners]
            columns = (starts[part.halo_owner] + part.halo_row)[matrix.indices].astype(np.int32)
            shape = part.n_rows, owners.size
            matrix = sparse.csr_array((matrix.data, columns, matrix.indptr), shape=shape)
            part = replace(part, halo_owner=owners.astype(np.int32), halo_row=rows.astype(np.int32))
        return cls(part.device, part.words(n_devices), matrix, part.remote.name)


class _Piece:
    """A range of a device's halo."""

    def __init__(self, halo: _Halo, number: int, pieces: int) -> None:
        first, stop = (len(halo.words) * i // pieces for i in (number, number + 1))
        self.halo, self.device, self.number = halo, halo.device, number
        self.words, self.columns = halo.words[first:stop], slice(first, stop)
        self.buffer = buffer_name(f"halo {number}", halo.device)

    def packed(self, owner: int) -> str:
        """Return the buffer in which an owner of another host packs its rows."""
        return buffer_name(f"packed {self.device}.{self.number}", owner)


class _Builder:
    """Collects steps and their buffers."""

    def __init__(
        self, split: Split, n_cols: int, storage: str, pull_blocks: int, devices_a_host: int
    ) -> None:
        self.n_devices, self.n_cols, self.storage = split.n_devices, n_cols, storage
        self.pull_blocks, self.devices_a_host = pull_blocks, devices_a_host
        self.buffers = features_and_results(split, n_cols, zeroed=False)
        self.steps: list[Step] = []
        self._shift = word_shift(split.n_devices)
        self._features = list(STORAGE_BYTES).index(storage)
        self._source = "X" if storage == "float32" else "rounded X"

    def _workspace(self, name: str, device: int, rows: int) -> str:
        dtype = "float32" if self.storage == "float32" else "uint16"
        self.buffers[name] = Buffer(device, rows * self.n_cols, dtype, "workspace")
        return name

    def round(self, part: Part) -> None:
        """Write a device's rows in 16 bits."""
        device, size = part.device, part.n_rows * self.n_cols
        source = buffer_name("X", device)
        target = self._workspace(buffer_name("rounded X", device), device, part.n_rows)
        spec = KernelSpec(
            "many_gpus/round_rows.cu",
            "round_rows",
            {"features": self._features, "block_threads": PULL_THREADS},
            ("X", "rounded", "size"),
        )
        step = Step(
            "round",
            device,
            "link",
            Call(_launch(min(-(-size // PULL_THREADS), 4096)), spec),
            arrays={"size": np.int64(size)},
            buffers={"X": source, "rounded": target},
            writes=frozenset({target}),
            replay=partial(_replay_round, source, target, self.storage),
        )
        self.steps.append(step)

    def pack(self, piece: _Piece) -> None:
        """Let owners of other hosts pack the rows of a piece."""
        for owner, chosen in self._far(piece):
            target = self._workspace(piece.packed(owner), owner, int(chosen.sum()))
            source = dict.fromkeys(peer_buffers(self.n_devices), buffer_name(self._source, owner))
            self._pull("pack", owner, piece.words[chosen], source, target)

    def fetch(self, piece: _Piece, after: tuple[int, ...]) -> tuple[int, ...]:
        """Read a piece of a device's halo from the others; return the step to wait for."""
        self._workspace(piece.buffer, piece.device, piece.words.size)
        if not piece.words.size:
            return ()
        words = piece.words.copy()
        owners = np.bincount(words >> np.uint32(self._shift), minlength=self.n_devices)
        local = buffer_name(self._source, piece.device)
        source = dict.fromkeys(peer_buffers(self.n_devices), local)
        for owner in np.flatnonzero(owners).tolist():
            source[f"X{owner}"] = buffer_name(self._source, owner)
        for owner, chosen in self._far(piece):
            source[f"X{owner}"] = piece.packed(owner)
            words[chosen] = owner << self._shift | np.arange(chosen.sum())
        row_bytes = self.n_cols * STORAGE_BYTES[self.storage]
        link_bytes = {owner: int(n) * row_bytes for owner, n in enumerate(owners) if n}
        self._pull("fetch", piece.device, words, source, piece.buffer, after, link_bytes)
        return (len(self.steps) - 1,)

    def _far(self, piece: _Piece) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
        """Yield the owners of other hosts, and which words are theirs."""
        owners = (piece.words >> np.uint32(self._shift)).astype(np.int64)
        for owner in np.unique(owners):
            if owner // self.devices_a_host != piece.device // self.devices_a_host:
                yield int(owner), owners == owner

    def _pull(
        self,
        name: str,
        device: int,
        words: Words,
        source: dict[str, str],
        target: str,
        after: tuple[int, ...] = (),
        link_bytes: Mapping[int, int] | None = None,
    ) -> None:
        """Add the step that writes the rows of `words` behind each other."""
        element, words = STORAGE_BYTES[self.storage], taken_over(words)
        fitting = (v for v in VECTORS if self.n_cols % v == 0 and v * element <= VECTOR_BYTES)
        vector = next(fitting)
        spec = KernelSpec(
            "many_gpus/pull_rows.cu",
            "pull_rows",
            {
                "n_devices": self.n_devices,
                "row_bits": self._shift,
                "vector": vector,
                "row_vectors": self.n_cols // vector,
                "features": self._features,
                "at_once": PULLS_AT_ONCE,
                "block_threads": PULL_THREADS,
            },
            ("words", *peer_buffers(self.n_devices), "halo", "n_rows"),
        )
        blocks = -(-words.size * (self.n_cols // vector) // PULL_THREADS)
        step = Step(
            name,
            device,
            "link",
            Call(_launch(min(blocks, self.pull_blocks)), spec),
            arrays={"words": words, "n_rows": np.int32(words.size)},
            buffers={**source, "halo": target},
            writes=frozenset({target}),
            after=after,
            replay=partial(_replay_pull, words, self._shift, source, target, self.n_cols),
            link_bytes=link_bytes or {},
        )
        self.steps.append(step)

    def add(self, piece: _Piece, after: tuple[int, ...]) -> None:
        """Add the products with a piece of the halo, once it has come."""
        matrix = piece.halo.remote[:, piece.columns]
        matrix.sort_indices()
        rows = np.flatnonzero(np.diff(matrix.indptr)).astype(np.int32)
        if rows.size:
            name = f"{piece.halo.name} {piece.number}"
            graph = as_graph(matrix[rows], name)
            storage = self.storage
            self.product("add", graph, piece.device, piece.buffer, rows, storage, after)

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
        """Add a product by `lane_groups`. With `rows` it is added to those rows of Y."""
        if not graph.n_rows:
            return
        plan, values = graph.store.get(
            ("product on one of several devices", self.n_cols, storage),
            lambda: _planned(graph, self.n_cols, storage),
        )
        target, number = buffer_name("Y", device), len(self.steps)
        replay = partial(_replay_product, plan, values, source, target, rows)
        plan = plan if rows is None else accumulating(plan, rows)
        buffers = {"X": source, "Y": target}
        for kind, sizes in (
            ("zero", plan.buffers.zeroed_workspace),
            ("workspace", plan.buffers.workspace),
        ):
            for argument, (size, dtype) in sizes.items():
                buffers[argument] = buffer_name(f"{argument} {number}", device)
                self.buffers[buffers[argument]] = Buffer(device, size, np.dtype(dtype).name, kind)
        (call,) = plan.calls
        assert isinstance(call, Call)
        step = Step(
            name,
            device,
            call=call,
            arrays={**plan.arrays, "values": values},
            buffers=buffers,
            writes=frozenset({*buffers.values()} - {source}),
            after=after,
            replay=replay,
        )
        self.steps.append(step)


def _launch(blocks: int) -> LaunchConfig:
    return LaunchConfig((blocks, 1, 1), PULL_THREADS // WARP_SIZE)


def as_graph(matrix: sparse.csr_array, name: str) -> Graph:
    """Return a CSR matrix with sorted columns as a graph."""
    pointers, columns = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return Graph(pointers, columns, matrix.data, matrix.shape, name)


def _planned(graph: Graph, n_cols: int, storage: str) -> tuple[Plan, npt.NDArray[np.float32]]:
    """Plan a product by `lane_groups`; return also the values in the order of its kernel."""
    plan = find_strategy("lane_groups").plan(graph, n_cols, storage=storage)
    order = plan.layout.nonzero_order
    return plan, graph.values if order is None else taken_over(graph.values[order])


def _replay_round(source: str, target: str, storage: str, buffers: Buffers) -> None:
    buffers[target][:] = stored(buffers[source], storage)


def _replay_pull(
    words: Words,
    shift: int,
    source: Mapping[str, str],
    target: str,
    n_cols: int,
    buffers: Buffers,
) -> None:
    sources = {owner: buffers[name] for owner, name in enumerate(source.values())}
    buffers[target].reshape(-1, n_cols)[...] = rows_of_words(words, shift, sources, n_cols)


def rows_of_words(
    words: Words, shift: int, sources: Mapping[int, npt.NDArray[Any]], n_cols: int
) -> npt.NDArray[Any]:
    """Return the rows that words name, each word an owner above `shift` bits of a row number."""
    owners = words >> np.uint32(shift)
    rows = (words & np.uint32((1 << shift) - 1)).astype(np.int64)
    fetched = np.empty((words.size, n_cols), sources[0].dtype)
    for owner in np.unique(owners).tolist():
        chosen = owners == owner
        fetched[chosen] = sources[owner].reshape(-1, n_cols)[rows[chosen]]
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
