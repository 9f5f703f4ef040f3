"""Launches of accelviz.torch's kernels in the emulator, in place of a GPU's."""

import ctypes
import gc

import numpy as np
import torch

from accelviz.devices import find_device
from accelviz.plans.launch import Call, LaunchConfig
from accelviz.torch import blocks, device, edge_sums, operators

#: Types of the arrays that are not float32, by parameter.
TYPES = {
    np.uint32: "header item_numbers items order arrivals degrees row_pointers sorted_rows "
    "spare_item_rows spare_sorted spare_degrees digit_counts begins random",
    np.int32: "output_rows columns metadata sorted_items spare_items spare_rows source",
    np.uint64: "bad_node nodes",
    np.uint8: "codes",
}
TYPE_OF = {name: dtype for dtype, names in TYPES.items() for name in names.split()}
NUMBERS = {"n_rows", "n_cols", "heads", "n_targets", "n_totals", "n_parts", *blocks._NUMBERS[2:]}


def is_in_memory(object_):
    """Return whether an object is a tensor with an address: those that PyTorch traced have none."""
    if not issubclass(type(object_), torch.Tensor):
        return False
    try:
        return bool(object_.numel()) and bool(object_.data_ptr())
    except RuntimeError:
        return False


def array_at(address, dtype, is_whole=False):
    """Return the array of a tensor, or of a region of `Memory`, that begins at an address.

    Of several tensors it is the smallest; with `is_whole` the largest, and not its first rows.
    """
    for memory in gc.get_objects():
        if type(memory) is blocks.Memory and address in memory.address.values():
            end = min(other for other in (*memory.address.values(), memory.end) if other > address)
            first = (address - memory.start) // 4
            return memory.tensor.numpy()[first : first + (end - address) // 4].view(dtype)
    tensors = sorted(filter(is_in_memory, gc.get_objects()), key=torch.Tensor.numel)
    if is_whole:
        tensors = [tensor for tensor in reversed(tensors) if tensor.data_ptr() == address]
    for tensor in tensors:
        offset = address - tensor.data_ptr()
        if 0 <= offset < tensor.nbytes and tensor.is_contiguous():
            array = tensor.detach()
            array = array.view(torch.uint16) if array.element_size() == 2 else array
            return array.reshape(-1).numpy()[offset // array.element_size() :]
    raise AssertionError(f"no array at {address:#x}")


class EmulatedKernel:
    """A kernel of `device` that runs in the emulator, block after block."""

    def __init__(self, spec, threads, *, shared_percent=None, cooperative=False):
        self.spec, self.threads, self.arguments = spec, threads, spec.arguments

    def bind(self, grid_x, grid_y, words):
        cells = [words.get(name, 0) for name in self.spec.arguments]

        def launch(stream, positions, new_words):
            for position, word in zip(positions, new_words, strict=True):
                cells[position] = word
            self.launch(grid_x, grid_y, cells)

        return launch

    def launch(self, grid_x, grid_y, words):
        arguments = {}
        for name, word in zip(self.spec.arguments, words, strict=True):
            if name in ("slope", "rate", "first"):
                arguments[name] = np.uint32(word).view(np.float32)
            elif name in NUMBERS:
                arguments[name] = int(word)
            elif word == 0:
                arguments[name] = None
            elif name in ("sources", "targets"):
                arguments[name] = self.end(word)
            else:
                dtype = TYPE_OF.get(name, np.float32)
                if name == "block_totals" and self.spec.entry == "edge_blocks":
                    dtype = np.uint32
                array = array_at(word, dtype, is_whole=name == "X")
                arguments[name] = array if array.dtype.itemsize == 2 else array.view(dtype)
        call = Call(LaunchConfig((grid_x, grid_y, 1), self.threads // 32), self.spec)
        find_device("emulator").launch(call, arguments)

    @staticmethod
    def end(address):
        """Return a row of an edge_index."""
        for tensor in filter(is_in_memory, gc.get_objects()):
            if tensor.dim() == 2 and tensor.size(0) == 2:
                for row in tensor:
                    if row.data_ptr() == address:
                        whole = row.as_strided(((row.numel() - 1) * row.stride(0) + 1,), (1,))
                        return whole.numpy().copy()
        return None  # of no edges


#: Functions whose caches have kernels, or tensors that these read.
CACHES = (
    *(device._spmm_walk, device._spmm_kernel, device._walks, blocks._kernel),
    *(edge_sums._launches, device._row_dropout, device._no_random),
    *(blocks.bad_node, blocks._bad_node_on_host),
)


def clear():
    """Forget kernels and partitions."""
    gc.unfreeze()
    blocks._recent = blocks._EdgeLists()
    for cache in CACHES:
        cache.cache_clear()


def emulate(monkeypatch):
    """Let operations on tensors of the CPU launch their kernels in the emulator; `clear` after.

    The tensors must be made later.
    """
    clear()
    gc.freeze()  # `array_at` then searches new objects only
    for module in (device, blocks, edge_sums):
        monkeypatch.setattr(module, "PointerKernel", EmulatedKernel)
        monkeypatch.setattr(module, "zero", lambda start, size, _: ctypes.memset(start, 0, size))
    monkeypatch.setattr(device, "_stream", lambda _: 0)
    monkeypatch.setattr(blocks, "multiprocessors", lambda _: 1)
    monkeypatch.setattr(device, "multiprocessors", lambda _: 1)
    monkeypatch.setattr(blocks, "_total_memory", lambda _: 1 << 30)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(operators, "backend", lambda _: device)
