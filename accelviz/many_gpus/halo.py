"""Ours: each remote row fetched once, in pieces, while the rows at home are multiplied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.errors import checked_choice, checked_integer
from accelviz.graph import Graph, taken_over
from accelviz.many_gpus.split import Part, Split, word_shift
from accelviz.many_gpus.steps import (
    Buffer,
    Buffers,
    Program,
    Step,
    every,
    matrices,
    of,
    peers,
)
from accelviz.plans import Call, KernelSpec, LaunchConfig, Plan
from accelviz.plans.launch import WARP_SIZE
from accelviz.plans.storage import STORAGE_BYTES, restored, stored
from accelviz.strategies import find_strategy

#: Threads of a block of `pull_rows`, and loads that each has on their way.
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
    everything: bool = False,
) -> Program:
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
        What halo rows travel in. 16 bits are half the bytes on the link and another problem: rows
        of others are rounded, those at home are not.
    pull_blocks : int
        Blocks of the kernel that fetches, 1 to 1,024.
    devices_a_host : int, optional
        What a device of another host needs is packed by its owner, to travel in one go. By default
        all devices are of one host.
    everything : bool
        Fetch all rows of the others, needed or not, as an all-gather does.

    Notes
    -----
    Each device, all at the same time:

    - `round`, with 16 bits: writes its rows in that storage, for others to fetch;
    - `pack`, with several hosts: puts the rows together that a device of another host needs;
    - `fetch`: reads the rows that it needs from the others' memory into its halo, piece by piece;
    - `multiply`: its rows with its own vertices' features, by `lane_groups`, meanwhile;
    - `add`: its rows with a piece of the halo, added to that, once the piece is there.
    """
    pieces = checked_integer("pieces", pieces, MOST_PIECES)
    blocks = checked_integer("pull_blocks", pull_blocks, MOST_PULL_BLOCKS)
    storage = checked_choice("storage", storage, STORAGE_BYTES)
    a_host = split.n_devices if devices_a_host is None else devices_a_host
    a_host = min(checked_integer("devices_a_host", a_host), split.n_devices)
    builder = _Builder(split, n_cols, storage, blocks, a_host)
    made = [_Halo.of(part, split, everything) for part in split.parts]
    if storage != "float32":
        for part in split.parts:
            builder.round(part)
    for own in made:
        for piece in range(pieces):
            builder.pack(own, own.cut(piece, pieces))
    ready = every(builder.steps, "round") + every(builder.steps, "pack")
    for own in made:
        for piece in range(pieces):
            builder.fetch(own, own.cut(piece, pieces), ready)
        builder.multiply(own.part)
        for piece in range(pieces):
            builder.add(own, own.cut(piece, pieces))
    parameters = {"pieces": pieces, "storage": storage, "pull_blocks": blocks}
    if a_host < split.n_devices:
        parameters["devices_a_host"] = a_host
    scheme = "whole" if everything else "halo"
    return Program(split, scheme, n_cols, tuple(builder.steps), builder.buffers, parameters)


class _Halo:
    """The rows that a device fetches, and its matrix of them."""

    def __init__(self, part: Part, words: npt.NDArray[np.uint32], remote: sparse.csr_array) -> None:
        self.part, self.words, self.remote = part, words, remote

    @classmethod
    def of(cls, part: Part, split: Split, everything: bool) -> _Halo:
        """Take the part's halo as it is, or all rows of all others."""
        if not everything:
            return cls(part, part.words(split.n_devices), part.remote.adjacency)
        sizes, order = np.diff(split.bounds), np.arange(1, split.n_devices) + part.device
        owners = np.repeat(order % split.n_devices, sizes[order % split.n_devices])
        starts = np.cumsum([0, *sizes[order % split.n_devices]])
        rows = np.arange(owners.size) - np.repeat(starts[:-1], np.diff(starts))
        start_of = np.zeros(split.n_devices, np.int64)
        start_of[order % split.n_devices] = starts[:-1]
        place = start_of[part.halo_owner] + part.halo_row
        pairs = owners.astype(np.int32), rows.astype(np.int32)
        words = replace(part, halo_owner=pairs[0], halo_row=pairs[1]).words(split.n_devices)
        old = part.remote.adjacency
        columns = place[old.indices].astype(np.int32)
        shape = part.n_rows, owners.size
        return cls(part, words, sparse.csr_array((old.data, columns, old.indptr), shape=shape))

    def cut(self, piece: int, pieces: int) -> tuple[int, int, int]:
        """Return a piece's number, its first row of the halo and the one after its last."""
        ends = [len(self.words) * i // pieces for i in (piece, piece + 1)]
        return piece, ends[0], ends[1]


class _Builder:
    """Collects steps and their buffers."""

    def __init__(
        self, split: Split, n_cols: int, storage: str, pull_blocks: int, devices_a_host: int
    ) -> None:
        self.split, self.n_cols, self.storage = split, n_cols, storage
        self.pull_blocks, self.devices_a_host = pull_blocks, devices_a_host
        self.buffers = matrices(split, n_cols, cleared=False)
        self.steps: list[Step] = []
        self._fetched: dict[tuple[int, int], int] = {}
        self._source = "X" if storage == "float32" else "rounded X"
        self._dtype = "float32" if storage == "float32" else "uint16"

    def round(self, part: Part) -> None:
        """Write a device's rows in 16 bits."""
        size = part.n_rows * self.n_cols
        name = of("rounded X", part.device)
        self.buffers[name] = Buffer(part.device, size, self._dtype, "workspace")
        blocks = min(-(-size // PULL_THREADS), 4096)
        half = list(STORAGE_BYTES).index(self.storage)
        spec = KernelSpec(
            "many_gpus/round_rows.cu",
            "round_rows",
            {"FEATURES": half, "BLOCK_THREADS": PULL_THREADS},
            ("X", "rounded", "size"),
        )
        self.steps.append(
            Step(
                "round",
                part.device,
                "link",
                Call(_launch(blocks), spec),
                {"size": np.int64(size)},
                {"X": of("X", part.device), "rounded": name},
                frozenset({name}),
                (),
                partial(_replay_round, part.device, self.storage),
            )
        )

    def pack(self, own: _Halo, cut: tuple[int, int, int]) -> None:
        """Let the owners of a piece of a device's halo pack it, if they are of other hosts."""
        piece, first, stop = cut
        words = own.words[first:stop]
        for owner, chosen in self._far(own.part.device, words):
            name = of(f"packed {own.part.device}.{piece}", owner)
            self.buffers[name] = self._workspace(owner, int(chosen.sum()))
            source = dict.fromkeys(peers(self.split.n_devices), of(self._source, owner))
            self._pull("pack", owner, taken_over(words[chosen]), source, name, (), {})

    def fetch(self, own: _Halo, cut: tuple[int, int, int], after: tuple[int, ...]) -> None:
        """Read a piece of a device's halo from the others."""
        piece, first, stop = cut
        device = own.part.device
        name = of(f"halo {piece}", device)
        self.buffers[name] = self._workspace(device, stop - first)
        if first == stop:
            return
        words, shift = own.words[first:stop].copy(), word_shift(self.split.n_devices)
        owners = np.bincount(words >> np.uint32(shift), minlength=self.split.n_devices)
        source = dict.fromkeys(peers(self.split.n_devices), of(self._source, device))
        source |= {f"X{p}": of(self._source, p) for p in np.flatnonzero(owners).tolist()}
        for owner, chosen in self._far(device, words):
            source[f"X{owner}"] = of(f"packed {device}.{piece}", owner)
            words[chosen] = owner << shift | np.arange(chosen.sum())
        row_bytes = self.n_cols * STORAGE_BYTES[self.storage]
        link_bytes = {p: int(count) * row_bytes for p, count in enumerate(owners) if count}
        self._fetched[device, piece] = len(self.steps)
        self._pull("fetch", device, taken_over(words), source, name, after, link_bytes)

    def _far(
        self, device: int, words: npt.NDArray[np.uint32]
    ) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
        """Yield the owners of other hosts, and which words are theirs."""
        owners = (words >> np.uint32(word_shift(self.split.n_devices))).astype(np.int64)
        for owner in np.unique(owners):
            if owner // self.devices_a_host != device // self.devices_a_host:
                yield int(owner), owners == owner

    def _workspace(self, device: int, rows: int) -> Buffer:
        return Buffer(device, rows * self.n_cols, self._dtype, "workspace")

    def _pull(
        self,
        step: str,
        device: int,
        words: npt.NDArray[np.uint32],
        source: dict[str, str],
        target: str,
        after: tuple[int, ...],
        link_bytes: Mapping[int, int],
    ) -> None:
        """Queue the kernel that writes the rows which words name, behind each other."""
        n_devices, element = self.split.n_devices, STORAGE_BYTES[self.storage]
        fitting = (v for v in VECTORS if self.n_cols % v == 0 and v * element <= VECTOR_BYTES)
        vector = next(fitting)
        defines = {"N_DEVICES": n_devices, "ROW_BITS": word_shift(n_devices)}
        defines |= {"VECTOR": vector, "ROW_VECTORS": self.n_cols // vector}
        defines |= {"FEATURES": list(STORAGE_BYTES).index(self.storage)}
        defines |= {"AT_ONCE": PULLS_AT_ONCE, "BLOCK_THREADS": PULL_THREADS}
        names = ("words", *peers(n_devices), "halo", "n_rows")
        wanted = -(-words.size * (self.n_cols // vector) // PULL_THREADS)
        self.steps.append(
            Step(
                step,
                device,
                "link",
                Call(
                    _launch(min(wanted, self.pull_blocks)),
                    KernelSpec("many_gpus/pull_rows.cu", "pull_rows", defines, names),
                ),
                {"words": words, "n_rows": np.int32(words.size)},
                {**source, "halo": target},
                frozenset({target}),
                after,
                partial(_replay_pull, words, n_devices, source, target, self.n_cols),
                link_bytes,
            )
        )

    def multiply(self, part: Part) -> None:
        """Multiply a device's rows with its own vertices' features; all of Y is written."""
        self._product("multiply", part, part.local, of("X", part.device), None, "float32", ())

    def add(self, own: _Halo, cut: tuple[int, int, int]) -> None:
        """Add the products with a piece of the halo, once it is there."""
        piece, first, stop = cut
        if first == stop:
            return
        matrix = own.remote[:, first:stop]
        matrix.sort_indices()
        rows = np.flatnonzero(np.diff(matrix.indptr)).astype(np.int32)
        if not rows.size:
            return
        matrix = matrix[rows]
        part = own.part
        graph = Graph(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            matrix.data,
            matrix.shape,
            f"{part.remote.name} {piece}",
        )
        after = (self._fetched[part.device, piece],)
        source = of(f"halo {piece}", part.device)
        self._product("add", part, graph, source, rows, self.storage, after)

    def _product(
        self,
        name: str,
        part: Part,
        graph: Graph,
        source: str,
        rows: npt.NDArray[np.int32] | None,
        storage: str,
        after: tuple[int, ...],
    ) -> None:
        """Queue a product by `lane_groups`; with `rows` it is added to those rows of Y."""
        if not graph.n_rows:
            return
        plan, values = graph.store.get(
            ("product on one of several devices", self.n_cols, storage),
            lambda: _planned(graph, self.n_cols, storage),
        )
        call, device, number = plan.calls[0], part.device, len(self.steps)
        assert isinstance(call, Call)
        assert call.kernel is not None
        arrays: dict[str, Any] = {**plan.arrays, "values": values}
        if rows is not None:
            arrays["output_rows"] = taken_over(rows[np.asarray(plan.arrays["output_rows"])])
            defines = {**call.kernel.defines, "ACCUMULATE": 1}
            call = Call(call.launch, replace(call.kernel, defines=defines))
        own: dict[str, str] = {}
        for kind, sizes in (("zero", plan.scratch), ("workspace", plan.workspace)):
            for each, (size, dtype) in sizes.items():
                own[each] = of(f"{each} {number}", device)
                self.buffers[own[each]] = Buffer(device, size, np.dtype(dtype).name, kind)
        out = of("Y", device)
        self.steps.append(
            Step(
                name,
                device,
                "compute",
                call,
                arrays,
                {"X": source, "Y": out, **own},
                frozenset({out, *own.values()}),
                after,
                partial(_replay_product, plan, values, source, out, rows),
            )
        )


def _launch(blocks: int) -> LaunchConfig:
    return LaunchConfig((blocks, 1, 1), PULL_THREADS // WARP_SIZE)


def _planned(graph: Graph, n_cols: int, storage: str) -> tuple[Plan, npt.NDArray[np.float32]]:
    """Plan a product by `lane_groups`; return also the values in the order of its kernel."""
    plan = find_strategy("lane_groups").plan(graph, n_cols, storage=storage)
    order = plan.nonzero_order
    return plan, graph.values if order is None else taken_over(graph.values[order])


def _replay_round(device: int, storage: str, buffers: Buffers) -> None:
    buffers[of("rounded X", device)][:] = stored(buffers[of("X", device)], storage)


def _replay_pull(
    words: npt.NDArray[np.uint32],
    n_devices: int,
    source: Mapping[str, str],
    target: str,
    n_cols: int,
    buffers: Buffers,
) -> None:
    shift = word_shift(n_devices)
    owners, found = words >> np.uint32(shift), buffers[target].reshape(-1, n_cols)
    rows = (words & np.uint32((1 << shift) - 1)).astype(np.int64)
    for owner in np.unique(owners):
        chosen = owners == owner
        found[chosen] = buffers[source[f"X{owner}"]].reshape(-1, n_cols)[rows[chosen]]


def _replay_product(
    plan: Plan,
    values: npt.NDArray[np.float32],
    source: str,
    out: str,
    rows: npt.NDArray[np.int32] | None,
    buffers: Mapping[str, Any],
) -> None:
    n_rows, n_columns = plan.pattern.shape
    X = restored(buffers[source], plan.storage).reshape(n_columns, plan.n_cols)
    Y = np.empty((n_rows, plan.n_cols), np.float32)
    plan.operation.replay(plan)({"X": X, "values": values}, {"Y": Y})
    whole = buffers[out].reshape(-1, plan.n_cols)
    if rows is None:
        whole[...] = Y
    else:
        whole[rows] += Y
