"""Block partitions of edge lists on the GPU, computed there without a wait of the host.

The kernel kernels/spmm/edge_blocks.cu turns `edge_index` into the block records and nonzeros that
the `lane_groups` kernels read. It runs before each product. If a hash of the edges is that of the
last launch, it ends at once: so every change of `edge_index` is noticed, and an unchanged one costs
a launch of a few microseconds. While a CUDA graph is captured, the partition is computed in each
replay. `accelviz.torch.Edges` has a graph that does not change: its partitions are computed once.
"""

from __future__ import annotations

import collections
import functools
import weakref
from typing import Any, NamedTuple

import torch

from accelviz.devices.cuda import PointerKernel
from accelviz.errors import ArgumentError
from accelviz.partition.block_level import FIELD_BITS, BlockSetting
from accelviz.plans.launch import KernelSpec
from accelviz.strategies.spmm.lane_groups.preprocessing import (
    BLOCK_THREADS,
    DIGIT_BITS,
    TOTALS_WORDS,
    most_blocks,
)

#: Parameters of the kernel `edge_blocks`: of the launch, arrays that are kept, and workspace.
_NUMBERS = (
    *("edge_stride", "n_edges", "n_loops", "n_sources", "n_targets", "by_source", "verify", "turn"),
    *("groups", "max_group_nzs", "short_nzs", "symmetric", "records"),
)
_KEPT = ("output_rows", "metadata", "columns", "item_numbers", "scale", "degrees")
_WORKSPACE = (
    *("row_pointers", "sorted_rows", "sorted_items", "spare_item_rows", "spare_items"),
    *("spare_sorted", "spare_degrees", "spare_rows", "digit_counts", "block_totals", "begins"),
)
PARAMETERS = ("header", "sources", "targets", *_NUMBERS, *_KEPT, *_WORKSPACE, "bad_node")
#: Words of the kernel's `Header`, and its alignment in words.
_HEADER_WORDS, _ALIGNMENT = 16, 4
#: Partitions of recent calls are stored, up to this share of the GPU's memory.
_MEMORY_SHARE = 1 / 8


class Setting(NamedTuple):
    """Blocks of a kernel: subwarps per block, and most nonzeros of a subwarp.

    `short_nzs` is the number of most nonzeros of a subwarp with several rows.
    """

    subwarps: int
    group_nzs: int
    short_nzs: int

    @property
    def deg_bound(self) -> int:
        """Most nonzeros of a row that one block handles alone."""
        return self.subwarps * self.group_nzs


class Memory:
    """Regions of one tensor of 32-bit words.

    Attributes
    ----------
    words : dict of str to int
        Size of each region.
    address : dict of str to int
        Address of each region, a multiple of 16 bytes.
    """

    def __init__(self, words: dict[str, int], device: Any) -> None:
        offset, offsets = 0, []
        for size in words.values():
            offsets.append(4 * offset)
            offset += -(-size // _ALIGNMENT) * _ALIGNMENT
        # Not a tensor of inference mode: the memory outlives the mode.
        with torch.inference_mode(False):
            self.tensor = torch.empty(offset, dtype=torch.int32, device=device)
        self.words, start = words, self.tensor.data_ptr()
        self.address = dict(zip(words, [start + at for at in offsets], strict=True))
        self.bytes = 4 * offset


class EdgeBlocks:
    """The block partition of an edge list for one direction and one setting.

    Attributes
    ----------
    address : dict of str to int
        Addresses of `metadata`, `output_rows`, `columns`, `item_numbers` and `scale`.
    n_items : int
        Number of edges and added self loops, those that are ignored included.
    records : int
        Number of records in `metadata`, at least that of blocks; the others are blocks without
        rows.
    parts : int
        Upper bound of the number of blocks that are parts of a split row.
    """

    def __init__(
        self, edge_index: Any, size: Any, by_source: bool, setting: Setting, scaling: str
    ) -> None:
        n_edges, (n_sources, n_targets, n_loops) = edge_index.size(1), size
        device = edge_index.device
        n_rows = n_sources if by_source else n_targets
        self.n_items = n_edges + n_loops
        if self.n_items >= 1 << 31:
            raise ArgumentError("edge_index", f"{self.n_items} edges and loops", "fewer than 2^31")
        blocks = BlockSetting(setting.subwarps, setting.group_nzs)
        self.records = most_blocks(n_rows, self.n_items, blocks)
        self.parts = 2 * self.n_items // setting.deg_bound + 1
        scaled = n_targets if scaling != "sum" else 0
        self._memory = Memory(
            {
                "header": _HEADER_WORDS,
                "output_rows": n_rows,
                "metadata": 4 * self.records,
                "columns": self.n_items,
                "item_numbers": self.n_items,
                "scale": scaled,
                "degrees": scaled,
            },
            device,
        )
        self._memory.tensor[:_HEADER_WORDS].zero_()
        self.address, self.bytes = self._memory.address, self._memory.bytes
        self._workspaces: dict[Any, Memory] = {}
        self.reference: Any = None  # to edge_index; partitions are forgotten when it is deleted
        self._device, self._launches = device, 0
        self._stream: int | None = None
        sms = _multiprocessors(device.index)
        self._grid = max(1, min(sms, -(-max(n_rows, self.n_items) // BLOCK_THREADS)))
        self._kernel = _kernel(edge_index.dtype, device.index)
        self._numbers = (
            *(edge_index.stride(1), n_edges, n_loops, n_sources, n_targets, int(by_source)),
            *(*setting, int(scaling == "symmetric"), self.records),
        )
        kept = [self.address[name] for name in _KEPT]
        self._kept = kept if scaled else [*kept[:-2], 0, 0]
        self._workspace_words = dict.fromkeys(_WORKSPACE, n_rows) | {
            **dict.fromkeys(_WORKSPACE[1:5], self.n_items),
            "row_pointers": n_rows + 1,
            "digit_counts": self._grid << DIGIT_BITS,
            "block_totals": self._grid * TOTALS_WORDS,
            "begins": self._grid * (BLOCK_THREADS // 32),
        }

    def update(self, edge_index: Any, stream: int, verify: bool) -> None:
        """Compute the partition on a stream; with `verify` only if the edges have changed."""
        sources = edge_index.data_ptr()
        targets = sources + edge_index.stride(0) * edge_index.element_size()
        workspace = Memory(self._workspace_words, self._device)
        numbers = *self._numbers[:6], int(verify), self._launches & 1, *self._numbers[6:]
        self._launches += 1
        words = (
            *(self.address["header"], sources, targets, *numbers, *self._kept),
            *(*workspace.address.values(), _bad_node().data_ptr()),
        )
        self._kernel(self._grid, 1, stream, words)

    def on_stream(self, stream: int, captured: bool) -> None:
        """Let a stream wait for the stream of the last call."""
        if self._stream is not None and self._stream != stream and not captured:
            new, old = (
                torch.cuda.ExternalStream(one, self._device) for one in (stream, self._stream)
            )
            new.wait_stream(old)
            for memory in (self._memory, *self._workspaces.values()):
                memory.tensor.record_stream(new)
        self._stream = stream

    def workspace(self, key: Any, words: dict[str, int], zeroed: int) -> dict[str, int]:
        """Return addresses of a kernel's workspace; the first `zeroed` regions begin as zeros."""
        if key not in self._workspaces:
            memory = Memory(words, self._device)
            regions = list(words)
            if zeroed:
                last = regions[zeroed - 1]
                end = (memory.address[last] - memory.tensor.data_ptr()) // 4 + words[last]
                memory.tensor[:end].zero_()
            self._workspaces[key] = memory
            self.bytes += memory.bytes
        return self._workspaces[key].address


@functools.cache
def _kernel(dtype: Any, device: int) -> PointerKernel:
    """Return the kernel of a type of `edge_index`."""
    return PointerKernel(spec(dtype), BLOCK_THREADS, cooperative=True)


def spec(dtype: Any) -> KernelSpec:
    """Return the specification of the kernel for `edge_index` of int64 or int32."""
    config: dict[str, int | str] = {"block_threads": BLOCK_THREADS, "digit_bits": DIGIT_BITS}
    config |= {"info_field_bits": FIELD_BITS}
    config |= {"Index": "long long" if dtype == torch.int64 else "int"}
    return KernelSpec("spmm/edge_blocks.cu", "edge_blocks", config, PARAMETERS)


@functools.cache
def _multiprocessors(device: int) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@functools.cache
def _bad_node() -> Any:
    """Return the host's word that gets 2 n + 1 from a kernel, for a node n that does not exist."""
    return torch.zeros(1, dtype=torch.int64, pin_memory=torch.cuda.is_available())


@functools.cache
def _bad_node_on_host() -> Any:
    return _bad_node().numpy()


#: Partitions by the arguments of `edge_blocks`, in the order of their last use.
_recent: collections.OrderedDict[Any, EdgeBlocks] = collections.OrderedDict()
#: Addresses of tensors that do not change, and the objects that hold them.
_fixed: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def fix(edge_index: Any, owner: Any) -> None:
    """Compute the partitions of a tensor once, as long as its owner exists."""
    address = edge_index.data_ptr()
    for key in [key for key in _recent if key[0] == address]:
        del _recent[key]
    _fixed[address] = owner


def edge_blocks(
    edge_index: Any, size: Any, by_source: bool, setting: Setting, scaling: str, stream: int
) -> EdgeBlocks:
    """Return the partition of an edge list, for kernels on a stream.

    Raises
    ------
    ArgumentError
        If an earlier call had a node that does not exist.
    """
    bad_node = _bad_node_on_host()
    if bad_node[0]:
        node = int(bad_node[0]) >> 1
        bad_node[0] = 0
        problem = f"an earlier call had the node {node}, which does not exist"
        raise ArgumentError("edge_index", problem, "0 to the number of rows of x, exclusive")
    address, is_fixed = edge_index.data_ptr(), edge_index.data_ptr() in _fixed
    captured = torch.cuda.is_current_stream_capturing()
    if captured and not is_fixed:
        blocks = EdgeBlocks(edge_index, size, by_source, setting, scaling)
        blocks.update(edge_index, stream, verify=False)
        return blocks
    key = (
        *(address, *edge_index.stride(), edge_index.size(1), edge_index.dtype),
        *(edge_index.device, *size, by_source, setting, scaling),
    )
    blocks_or_none = _recent.get(key)
    if blocks_or_none is not None:
        _recent.move_to_end(key)
        blocks_or_none.on_stream(stream, captured)
        if not is_fixed:
            blocks_or_none.update(edge_index, stream, verify=True)
        return blocks_or_none
    blocks = EdgeBlocks(edge_index, size, by_source, setting, scaling)
    blocks.on_stream(stream, captured)
    blocks.update(edge_index, stream, verify=not is_fixed)
    blocks.reference = weakref.ref(edge_index, functools.partial(_forget, key))
    _recent[key] = blocks
    limit = _MEMORY_SHARE * _total_memory(edge_index.device.index)
    while len(_recent) > 1 and sum(entry.bytes for entry in _recent.values()) > limit:
        _recent.popitem(last=False)
    return blocks


def _forget(key: Any, _: Any) -> None:
    _recent.pop(key, None)


@functools.cache
def _total_memory(device: int) -> int:
    return int(torch.cuda.get_device_properties(device).total_memory)
