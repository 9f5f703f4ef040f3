"""TC-GNN beside formats of dense blocks on tensor cores (thesis, Figure 5.3c and Table 5.5).

    python benchmarks/measure/block_formats.py --output block-formats.csv

`blocked_ell` is cuSPARSE's SpMM of a Blocked-ELL matrix: all block rows have as many blocks as the
fullest one. `triton` is a block-sparse product in Triton: blocks with a nonzero are stored densely.
Both multiply float32 in TF32, with blocks of 16 and of 32 rows; beside them are TC-GNN,
`lane_groups` and cuSPARSE's CSR. All results are compared with float64. A format that needs more
memory than `--gib` gets a row that says how much. tSparse is not measured. Needs a GPU, and Triton,
which comes with PyTorch. Times are medians of CUDA events, warm.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from study import Row, full_machine, median_us, open_graph, parser, record
from tensor_cores import blocked_ell, strategies

from accelviz.graph import Graph
from accelviz.measure import random_weights

GRAPHS = ("cora", "pubmed", "facebook", "artist-twin", "com-amazon-twin", "amazon0601-twin")
SIZES = (16, 32)
#: Largest error of TF32, over the sum of the magnitudes of an element's terms.
TF32_ERROR = 4e-3
#: Columns of X of a block of Triton's product.
TILE = 16
_R_32F = 0


def main() -> None:
    options = parser(__doc__, graphs=GRAPHS, columns=(16, 64, 128), repeats=20)
    options.add_argument("--gib", type=float, default=40.0, help="most memory of a format's values")
    chosen = options.parse_args()
    record(rows(chosen), chosen.output, full_machine())


@dataclass(frozen=True)
class Blocks:
    """The blocks of a matrix that have a nonzero, by rows of blocks.

    Attributes
    ----------
    size : int
        Rows and columns of a block.
    pointers : array of int64, shape (n_block_rows + 1,)
        Position of each block row's first block.
    columns : array of int32, shape (n_blocks,)
        Block column of each block, ascending in a block row.
    block_of : array of int64, shape (nnz,)
        Block of each nonzero.
    inside : array of int32, shape (nnz,)
        Position of each nonzero in its block, row by row.
    """

    size: int
    pointers: np.ndarray[Any, Any]
    columns: np.ndarray[Any, Any]
    block_of: np.ndarray[Any, Any]
    inside: np.ndarray[Any, Any]

    @classmethod
    def of(cls, graph: Graph, size: int) -> Blocks:
        """Find the blocks of a graph."""
        rows = np.repeat(np.arange(graph.n_rows), graph.degrees)
        columns = graph.column_indices.astype(np.int64)
        n_rows, n_columns = (-(-side // size) for side in graph.shape)
        keys, block_of = np.unique(rows // size * n_columns + columns // size, return_inverse=True)
        pointers = np.searchsorted(keys, np.arange(n_rows + 1) * n_columns)
        inside = (rows % size * size + columns % size).astype(np.int32)
        return cls(size, pointers, (keys % n_columns).astype(np.int32), block_of, inside)

    @property
    def row_blocks(self) -> int:
        """Number of blocks of the fullest block row."""
        return int(np.diff(self.pointers).max(initial=1))

    def ell_columns(self) -> np.ndarray[Any, Any]:
        """Return the block columns of Blocked-ELL, (n_block_rows, row_blocks); -1 is padding."""
        counts = np.diff(self.pointers)
        table = np.full((counts.size, self.row_blocks), -1, np.int32)
        table[np.arange(self.row_blocks) < counts[:, None]] = self.columns
        return table

    def ell_places(self) -> np.ndarray[Any, Any]:
        """Return the index of each nonzero in Blocked-ELL's values, which lie row by row."""
        block_rows = np.repeat(np.arange(self.pointers.size - 1), np.diff(self.pointers))
        slots = np.arange(self.columns.size) - self.pointers[block_rows]
        row, column = np.divmod(self.inside, self.size)
        rows = block_rows[self.block_of] * self.size + row
        return (rows * self.row_blocks + slots[self.block_of]) * self.size + column


def rows(options: Any) -> Iterator[Row]:
    """Time the formats on each graph, and yield what they store."""
    for name in options.graphs:
        graph = random_weights(open_graph(name, cache=True))
        about = {"graph": graph.name, "nodes": graph.n_rows, "nonzeros": graph.nnz}
        for n_cols in options.columns:
            for row in strategies(graph, n_cols, options.repeats):
                yield {**about, **row}
        for size in SIZES:
            blocks = Blocks.of(graph, size)
            stored = {
                "blocked_ell": (blocks.pointers.size - 1) * blocks.row_blocks * size**2,
                "triton": blocks.columns.size * size**2,
            }
            for format_name, values in stored.items():
                case = {**about, "operation": "spmm", "strategy": f"{format_name} {size}"}
                case |= {"dtype": "tf32", "stored": values, "gib": round(values * 4 / 2**30, 3)}
                for n_cols in options.columns:
                    row = {**case, "columns": n_cols}
                    if case["gib"] > options.gib:
                        yield {**row, "problem": f"more than {options.gib} GiB"}
                        continue
                    try:
                        yield {**row, **timed(format_name, graph, blocks, n_cols, options.repeats)}
                    except Exception as error:  # each library has classes of its own
                        yield {**row, "problem": " ".join(str(error).split())[:200]}


@functools.lru_cache(maxsize=8)
def problem(graph: Graph, n_cols: int) -> tuple[Any, Any, Any]:
    """Return X, the product in float64, and the sums of the magnitudes of its terms."""
    X = np.random.default_rng(1).standard_normal((graph.shape[1], n_cols), np.float32)
    matrix, wide = graph.adjacency.astype(np.float64), X.astype(np.float64)
    return X, matrix @ wide, abs(matrix) @ abs(wide)


def timed(name: str, graph: Graph, blocks: Blocks, n_cols: int, repeats: int) -> Row:
    """Check and time a format's product."""
    import cupy

    from accelviz.devices.cuda.timing import event_seconds

    side = -(-graph.n_rows // blocks.size) * blocks.size
    features, exact, terms = problem(graph, n_cols)
    X = cupy.zeros((side, n_cols), np.float32)
    X[: graph.shape[1]] = cupy.asarray(features)
    Y = cupy.empty((side, n_cols), np.float32)
    make: Callable[..., Callable[[], None]] = {"blocked_ell": ell, "triton": triton_product}[name]
    run = make(graph, blocks, X, Y)
    run()
    off = abs(cupy.asnumpy(Y[: graph.n_rows]) - exact)
    error = float((off / np.maximum(terms, 1e-30)).max())
    if not error <= TF32_ERROR:
        return {"error": error, "problem": "wrong"}
    return {"median_us": median_us(event_seconds(run, repeats, 3)), "error": error}


def ell(graph: Graph, blocks: Blocks, X: Any, Y: Any) -> Callable[[], None]:
    """Return a call of cuSPARSE's SpMM of the graph as Blocked-ELL."""
    import cupy

    values = cupy.zeros((X.shape[0], blocks.row_blocks * blocks.size), np.float32)
    values.ravel()[cupy.asarray(blocks.ell_places())] = cupy.asarray(graph.values)
    return blocked_ell(blocks.ell_columns(), values, X, Y, _R_32F, blocks.size)


def triton_product(graph: Graph, blocks: Blocks, X: Any, Y: Any) -> Callable[[], None]:
    """Return a call of the block-sparse product."""
    import cupy
    import torch
    from triton_blocks import product

    from accelviz.torch.arrays import stream_of

    size = blocks.size
    values = cupy.zeros(blocks.columns.size * size**2, np.float32)
    places = cupy.asarray(blocks.block_of * size**2 + blocks.inside)
    values[places] = cupy.asarray(graph.values)
    arrays = cupy.asarray(blocks.pointers), cupy.asarray(blocks.columns), values, X, Y
    tensors = [torch.from_dlpack(array) for array in arrays]
    grid = blocks.pointers.size - 1, -(-X.shape[1] // TILE)

    def run() -> None:
        with torch.cuda.stream(stream_of(cupy.cuda.get_current_stream().ptr)):
            product[grid](*tensors, X.shape[1], SIZE=size, TILE=TILE)

    return run


if __name__ == "__main__":
    main()
