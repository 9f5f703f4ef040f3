"""Block partitions of edge lists on the GPU, computed there without a wait of the host.

The kernel kernels/spmm/edge_blocks.cu turns `edge_index` into the block records and nonzeros that
the `lane_groups` kernels read. It runs before each product. If a hash of the edges is that of the
last launch, it ends at once: so every change of `edge_index` is noticed, and an unchanged one costs
a launch of a few microseconds. `accelviz.torch.Edges` has a graph that does not change: its
partitions are computed once.
"""

from __future__ import annotations

import collections
import functools
import sys
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch

from accelviz.devices.cuda import PointerKernel, zero
from accelviz.errors import ArgumentError
from accelviz.partition.block_level import BlockSetting
from accelviz.plans.launch import KernelSpec
from accelviz.strategies.spmm.lane_groups import preprocessing
from accelviz.strategies.spmm.lane_groups.preprocessing import BLOCK_THREADS
from accelviz.torch.arrays import stream_of
from accelviz.torch.composed import Size

#: Parameters of the kernel `edge_blocks` in order: of the edges, memory that is kept, workspace.
_NUMBERS = (
    *("sources", "targets", "edge_stride", "n_edges", "n_loops", "n_sources", "n_targets"),
    *("by_source", "verify", "groups", "max_group_nzs", "short_nzs", "symmetric", "records"),
)
_KEPT = ("header", "output_rows", "metadata", "columns", "item_numbers", "scale", "degrees")
_WORKSPACE = (
    *("row_pointers", "sorted_rows", "sorted_items", "spare_item_rows", "spare_items"),
    *("spare_sorted", "spare_degrees", "spare_rows", "digit_counts", "block_totals", "begins"),
)
PARAMETERS = ("header", *_NUMBERS, *_KEPT[1:], *_WORKSPACE, "bad_node")
_HEADER_WORDS = 12
#: Partitions of recent calls are stored, up to this share of the GPU's memory.
_MEMORY_SHARE = 1 / 8
#: Workspace of a partition of at most so many bytes is kept for the next launch.
_KEPT_WORKSPACE_BYTES = 4 << 20


class Setting(NamedTuple):
    """Blocks of a kernel.

    `subwarps` are those of a block; `group_nzs` is the most nonzeros of a subwarp, `short_nzs` that
    of a subwarp with several rows.
    """

    subwarps: int
    group_nzs: int
    short_nzs: int


class Memory:
    """Regions of one tensor of 32-bit words.

    Attributes
    ----------
    address : dict of str to int
        Address of each region, a multiple of 16 bytes.
    start, end : int
        Addresses of the first byte and behind the last one.
    """

    def __init__(self, names: Iterable[str], words: Iterable[int], device: Any) -> None:
        offsets, end = {}, 0
        for name, size in zip(names, words, strict=True):
            offsets[name] = end
            end += 4 * (size + 3 & ~3)
        # Not a tensor of inference mode: the memory outlives the mode.
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                self.tensor = torch.empty(end // 4, dtype=torch.int32, device=device)
        else:
            self.tensor = torch.empty(end // 4, dtype=torch.int32, device=device)
        start = self.start = self.tensor.data_ptr()
        self.address = {name: start + offset for name, offset in offsets.items()}
        self.end = start + end


class EdgeBlocks:
    """The block partition of an edge list for one direction, setting and scaling.

    Attributes
    ----------
    address : dict of str to int
        Addresses of `metadata`, `output_rows`, `columns`, `item_numbers` and `scale`.
    records : int
        Number of records in `metadata`, at least that of blocks; the others are blocks without
        rows.
    parts : int
        Upper bound of the number of blocks that are parts of a split row.

    Notes
    -----
    `address` also has the workspace of the first product, in words per part of a split row. One
    allocation and one launch that zeroes memory suffice for a new batch.
    """

    def __init__(
        self,
        edge_index: Any,
        size: Size,
        by_source: bool,
        setting: Setting,
        scaling: str,
        stream: int,
        zeroed_part_words: Mapping[str, int] = {},
        part_words: Mapping[str, int] = {},
    ) -> None:
        n_edges, device = edge_index.size(1), edge_index.device
        n_rows, n_items = size[not by_source], n_edges + size.loops
        if n_items >= 1 << 31:
            raise ArgumentError("edge_index", f"{n_items} edges and loops", "fewer than 2^31")
        sms, kernel = multiprocessors(device.index), _kernel(edge_index.dtype, device.index)
        grid = max(1, min(sms, -(-max(n_rows, n_items) // BLOCK_THREADS)))
        blocks = _block_setting(setting)
        self.records = preprocessing.most_blocks(n_rows, n_items, blocks)
        self.parts = 2 * n_items // blocks.deg_bound + 1
        n_scaled = size.targets if scaling != "sum" else 0
        regions = {"header": _HEADER_WORDS}
        for name, number in zeroed_part_words.items():
            regions[name] = number * self.parts
        stored = n_rows, 4 * self.records, n_items, n_items, n_scaled, n_scaled
        regions.update(zip(_KEPT[1:], stored, strict=True))
        for name, number in part_words.items():
            regions[name] = number * self.parts
        workspace = (
            *(n_rows + 1, n_items, n_items, n_items, n_items, n_rows, n_rows, n_rows),
            *preprocessing.counters(grid),
        )
        is_kept = 16 * (n_items + n_rows) <= _KEPT_WORKSPACE_BYTES
        if is_kept:
            regions.update(zip(_WORKSPACE, workspace, strict=True))
        self.memory = Memory(regions, regions.values(), device)
        self.address, self._device = self.memory.address, device
        self._workspace = None if is_kept else workspace
        zero(self.memory.start, self.address["output_rows"] - self.memory.start, stream)
        sources, (row_stride, stride) = edge_index.data_ptr(), edge_index.stride()
        targets = sources + row_stride * edge_index.element_size()
        numbers = (
            *(sources, targets, stride, n_edges, size.loops, size.sources, size.targets),
            *(by_source, 0, *setting, scaling == "symmetric", self.records),
        )
        words = dict(zip(_NUMBERS, numbers, strict=True)) | self.address
        words["bad_node"] = bad_node().data_ptr()
        if not n_scaled:
            words["scale"] = words["degrees"] = 0
        self._launch = kernel.bind(grid, 1, words)
        self.is_built = False

    def update(self, stream: int, verify: bool) -> None:
        """Compute the partition on a stream; with `verify` only if the edges have changed."""
        positions, words = _VERIFY, [int(verify)]
        if self._workspace is not None:
            workspace = Memory(_WORKSPACE, self._workspace, self._device)
            positions, words = _VERIFY_AND_WORKSPACE, [*words, *workspace.address.values()]
        self._launch(stream, positions, words)
        self.is_built = True


_VERIFY = [PARAMETERS.index("verify")]
_VERIFY_AND_WORKSPACE = [*_VERIFY, *map(PARAMETERS.index, _WORKSPACE)]


@functools.cache
def _kernel(dtype: Any, device: int) -> PointerKernel:
    """Return the kernel of a type of `edge_index`."""
    return PointerKernel(spec(dtype), BLOCK_THREADS, cooperative=True)


def spec(dtype: Any) -> KernelSpec:
    """Return the specification of the kernel for `edge_index` of int64 or int32."""
    index = "long long" if dtype == torch.int64 else "int"
    config = {**preprocessing.spec("partition").config, "Index": index}
    return KernelSpec("spmm/edge_blocks.cu", "edge_blocks", config, PARAMETERS)


@functools.cache
def _block_setting(setting: Setting) -> BlockSetting:
    return BlockSetting(setting.subwarps, setting.group_nzs)


@functools.cache
def multiprocessors(device: int) -> int:
    """Return the number of multiprocessors of a GPU."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@functools.cache
def _total_memory(device: int) -> int:
    return int(torch.cuda.get_device_properties(device).total_memory)


@functools.cache
def bad_node() -> Any:
    """Return the host's word that gets 2 n + 1 from a kernel, for a node n that does not exist."""
    return torch.zeros(1, dtype=torch.int64, pin_memory=torch.cuda.is_available())


@functools.cache
def _bad_node_on_host() -> Any:
    return bad_node().numpy()


class EdgeList:
    """An `edge_index` on the GPU, with the partitions and products computed for it.

    Attributes
    ----------
    products : dict
        Anything that a product stores by its kind, for the next call.
    verify : bool
        Whether the edges may change.
    is_uncached : bool
        Whether it belongs to a CUDA graph, which computes its partitions in each replay.
    """

    def __init__(self, edge_index: Any, verify: bool, is_uncached: bool = False) -> None:
        self.verify, self.is_uncached = verify, is_uncached
        self.bytes, self.is_captured = 0, False
        self.products: dict[Any, Any] = {}
        self._partitions: dict[Any, EdgeBlocks] = {}
        self._memories: list[Memory] = []
        self._device, self._stream = edge_index.device, -1
        self.reference: Any = None

    def partition(
        self,
        edge_index: Any,
        size: Size,
        by_source: bool,
        setting: Setting,
        scaling: str,
        stream: int,
        *part_words: Mapping[str, int],
    ) -> tuple[EdgeBlocks, bool]:
        """Return a partition, and whether it is new; `update` computes it.

        A new one has a workspace of `part_words`; see `EdgeBlocks`.
        """
        key = size, by_source, setting, scaling
        blocks = self._partitions.get(key)
        is_new = blocks is None
        if blocks is None:
            blocks = self._partitions[key] = EdgeBlocks(edge_index, *key, stream, *part_words)
            self.keep(blocks.memory)
        return blocks, is_new

    def keep(self, memory: Memory) -> None:
        """Own memory of a product."""
        self._memories.append(memory)
        n_bytes = memory.end - memory.start
        self.bytes += n_bytes
        if not self.is_uncached:
            _recent.bytes += n_bytes

    def update(self, blocks: EdgeBlocks, stream: int) -> None:
        """Compute a partition if the edges have changed, or may have changed."""
        if self.verify or not blocks.is_built:
            blocks.update(stream, self.verify and not self.is_uncached)

    def for_new_product(self, edge_index: Any) -> EdgeList:
        """Return the list to which a product may be added: memory of a CUDA graph is not stored."""
        if self.is_uncached or not _is_recorded(edge_index):
            return self
        return EdgeList(edge_index, True, is_uncached=True)

    def on_stream(self, stream: int) -> None:
        """Let a stream wait for the stream of the last call."""
        if self._stream >= 0 and not torch.cuda.is_current_stream_capturing():
            new = stream_of(stream, self._device)
            new.wait_stream(stream_of(self._stream, self._device))
            for memory in self._memories:
                memory.tensor.record_stream(new)
        self._stream = stream


class _EdgeLists(collections.OrderedDict[Any, EdgeList]):
    """Edge lists by the memory of their tensors, in the order of their last use; their bytes."""

    bytes = 0

    def __delitem__(self, key: Any) -> None:
        self.bytes -= self[key].bytes
        super().__delitem__(key)


_recent = _EdgeLists()
#: Edge lists whose memory a CUDA graph uses. When such a graph is deleted is not known here.
_captured: list[EdgeList] = []


def check_earlier_nodes() -> None:
    """Raise ArgumentError if an earlier call had a node that does not exist."""
    bad_node = _bad_node_on_host()
    if bad_node[0]:
        node = int(bad_node[0]) >> 1
        bad_node[0] = 0
        problem = f"an earlier call had the node {node}, which does not exist"
        raise ArgumentError("edge_index", problem, "0 to the number of rows of x, exclusive")


def edge_list(edge_index: Any, stream: int) -> EdgeList:
    """Return the edge list of a tensor, for kernels on a stream."""
    check_earlier_nodes()
    key = _key(edge_index)
    edges = _recent.get(key)
    if edges is None:
        edges = EdgeList(edge_index, True, is_uncached=_is_recorded(edge_index))
        if edges.is_uncached:
            return edges
        _remember(key, edge_index, edges)
    elif torch.cuda.is_current_stream_capturing() and not edges.is_captured:
        edges.is_captured = True
        _captured.append(edges)
    _recent.move_to_end(key)
    if edges._stream != stream:
        edges.on_stream(stream)
    return edges


def fix(edge_index: Any) -> None:
    """Compute the partitions of a tensor once: it will not be changed."""
    _remember(_key(edge_index), edge_index, EdgeList(edge_index, False))


def is_fixed(edge_index: Any) -> bool:
    """Return whether a tensor was given to `fix`."""
    edges = _recent.get(_key(edge_index))
    return edges is not None and not edges.verify


def _key(edge_index: Any) -> Any:
    return edge_index.data_ptr(), edge_index.stride(), edge_index.size(1), edge_index.dtype


def _remember(key: Any, edge_index: Any, edges: EdgeList) -> None:
    """Store an edge list until its tensor is deleted or its memory is needed."""
    if key in _recent:
        del _recent[key]
    edges.reference = weakref.ref(edge_index, functools.partial(_forget, key))
    _recent[key] = edges
    limit = _MEMORY_SHARE * _total_memory(edge_index.device.index)
    if _recent.bytes > limit:
        for old, stored in [*_recent.items()]:
            if _recent.bytes > limit and stored.verify and not stored.is_captured and old != key:
                del _recent[old]


def _forget(key: Any, reference: Any) -> None:
    if key in _recent and _recent[key].reference is reference:
        del _recent[key]


def _is_recorded(edge_index: Any) -> bool:
    """Return whether memory of this call belongs to a CUDA graph."""
    if torch.cuda.is_current_stream_capturing():
        return True
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    if trees is None:
        return False
    manager = trees.get_manager(edge_index.device.index, create_if_none_exists=False)
    return manager is not None and (manager.in_warmup or manager.in_recording)
