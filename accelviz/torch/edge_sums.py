"""Products with small edge lists on a GPU: atomic additions, without a partition.

A new mini-batch has no partition yet, and computing one takes the host longer than a product. The
kernel kernels/spmm/edge_sums.cu reads `edge_index` itself, so nothing is stored between calls. The
order of its additions differs from run to run, as that of PyTorch's scatter operations.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from accelviz.devices.cuda import BoundKernel, PointerKernel, zero
from accelviz.plans.launch import WARP_SIZE, KernelSpec
from accelviz.torch import blocks

#: Most elements, items x columns, of a product with a small edge list. With so many the additions
#: take about as long as `blocks` needs to compare the edges and multiply.
_MOST_ELEMENTS = 1 << 22
_BLOCK_THREADS = 128
_EDGES = ("sources", "targets", "edge_stride", "n_edges", "n_loops", "n_sources", "n_targets")
_DEGREES = ("bad_node", *_EDGES, "degrees")
_SUMS = ("n_cols", *_DEGREES, "by_source", "symmetric", "values", "X", "Y")
_DEGREE_POSITIONS, _SUM_POSITIONS = range(1, len(_DEGREES)), range(2, len(_SUMS))


def applies(edge_index: Any, n_items: int, n_cols: int) -> bool:
    """Return whether a product is small, of edges that may change, and may be in any order."""
    return (
        n_items * n_cols <= _MOST_ELEMENTS
        and not torch.are_deterministic_algorithms_enabled()
        and not blocks.is_fixed(edge_index)
    )


def specs(dtype: Any, n_cols: int) -> tuple[KernelSpec, KernelSpec]:
    """Return the kernels of degrees and of sums for `edge_index` of int64 or int32."""
    vector = next(size for size in (4, 2, 1) if n_cols % size == 0)
    vectors = min(n_cols // vector, WARP_SIZE)
    config = {
        "block_threads": _BLOCK_THREADS,
        "vector": vector,
        "lanes": 1 << (vectors - 1).bit_length(),
        "Index": "long long" if dtype == torch.int64 else "int",
    }
    file = "spmm/edge_sums.cu"
    degrees = {**config, "vector": 1, "lanes": 1}
    return (
        KernelSpec(file, "edge_degrees", degrees, _DEGREES),
        KernelSpec(file, "edge_sums", config, _SUMS),
    )


@functools.lru_cache(maxsize=1024)
def _launches(
    dtype: Any, n_cols: int, device: int, n_blocks: int
) -> tuple[BoundKernel, BoundKernel]:
    """Return launches whose first arguments are set; those of `device` are compiled for it."""
    words = {"bad_node": blocks.bad_node().data_ptr(), "n_cols": n_cols}
    degrees, sums = (PointerKernel(spec, _BLOCK_THREADS) for spec in specs(dtype, n_cols))
    return degrees.bind(n_blocks, 1, words), sums.bind(n_blocks, 1, words)


def spmm(
    edge_index: Any,
    weight: Any,
    x: Any,
    size: tuple[int, int, int],
    scaling: str,
    transposed: bool,
    stream: int,
    start: Any,
) -> Any:
    """Compute `operators.spmm` for contiguous float32 operands, added to `start` or to zeros."""
    blocks.check_earlier_nodes()
    sources, targets, loops = size
    n_edges, n_cols = edge_index.size(1), x.size(1)
    n_rows = sources if transposed else targets
    # One allocation, zeroed at once: Y, unless it is given, and then the degrees.
    n_elements, n_degrees = n_rows * n_cols, targets if scaling != "sum" else 0
    y, n_zeros = start, n_degrees if start is not None else n_elements + n_degrees
    degree_address = 0
    if n_zeros:
        memory = torch.empty(n_zeros, dtype=torch.float32, device=x.device)
        address = memory.data_ptr()
        zero(address, 4 * n_zeros, stream)
        degree_address = address + 4 * (n_zeros - n_degrees) if n_degrees else 0
        y = memory.as_strided((n_rows, n_cols), (n_cols, 1)) if y is None else y
    row_stride, stride = edge_index.stride()
    first = edge_index.data_ptr()
    second = first + row_stride * edge_index.element_size()
    edges = first, second, stride, n_edges, loops, sources, targets, degree_address
    n_blocks = 1 << ((n_edges + loops - 1) // _BLOCK_THREADS).bit_length()  # few are stored
    degrees, sums = _launches(edge_index.dtype, n_cols, x.device.index, n_blocks)
    if n_degrees:
        degrees(stream, _DEGREE_POSITIONS, edges)
    values = 0 if weight is None else weight.data_ptr()
    options = transposed, scaling == "symmetric", values, x.data_ptr(), y.data_ptr()
    sums(stream, _SUM_POSITIONS, (*edges, *options))
    return y
