"""Tensor cores (chapter 5 of the thesis): tiles with and without translation, and times.

    python benchmarks/measure/tensor_cores.py tiles --output tiles.csv      # Figure 5.4, no GPU
    python benchmarks/measure/tensor_cores.py density --output density.csv  # Table 5.6
    python benchmarks/measure/tensor_cores.py graphs --output graphs.csv    # Figure 5.3c, 5.7
    python benchmarks/measure/tensor_cores.py all --output FOLDER           # these and more

`all` measures every table of docs/tensor-cores.md, also with tensor_modes.py and
training_accuracy.py, into files named like those of benchmarks/results.

`density` has a matrix of 4,096 x 4,096 whose windows of 16 rows have 1 to 256 dense blocks of 16 x
16. Beside the strategies it measures cuSPARSE's Blocked-ELL with the same blocks, and cuBLAS's
dense product, in float32 and in TF32. All results are compared with float64; `error` is the largest
error over the sum of the magnitudes of its terms. Times are medians of CUDA events, warm.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from study import Row, machine, median_us, parser, record

import accelviz
from accelviz.datasets import bundled_graphs
from accelviz.devices.cuda import cusparse
from accelviz.graph import Graph
from accelviz.ordering import vertex_order
from accelviz.partition.windows import row_windows

SIDE, BLOCK = 4096, 16
BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
STRATEGIES = ("tc_gnn", "lane_groups", "cusparse")
GRAPHS = ("cora", "pubmed", "facebook", "ca-astroph", "mit8", "collab", "amazon0601", "yelp")
ACCURACY = "tensor-accuracy-h200.csv"
TRAINED = "--cases gcn:cora --seeds 10 --strategy"
#: Commands of `all`, and the files that they write.
RUNS = {
    "tensor_cores.py tiles": "tensor-tiles.csv",
    "tensor_cores.py density --columns 16 128": "tensor-density-h200.csv.gz",
    "tensor_cores.py graphs": "tensor-graphs-h200.csv",
    "tensor_modes.py": "tensor-modes-h200.csv.gz",
    **{
        f"training_accuracy.py --device cuda {TRAINED} {strategy}": ACCURACY
        for strategy in ("lane_groups", "tc_gnn", "window_tiles")
    },
}
#: Size of a tile: of the sparse operand in SpMM, of the result in SDDMM.
TILES = {"spmm": (16, 8), "sddmm": (16, 16)}
#: Values of cudaDataType, order and operation for nvmath-python.
_R_32F, _R_16F, _ROW_ORDER, _PLAIN = 0, 2, 2, 0


def main() -> None:
    arguments = parser(__doc__, columns=(16, 64, 128), repeats=20)
    arguments.add_argument("study", choices=("tiles", "density", "graphs", "all"))
    arguments.add_argument("--graphs", nargs="+", help="names that load_graph takes")
    options = arguments.parse_args()
    if options.study == "all":
        measure_all(options.output)
    else:
        studies = {"tiles": tiles, "density": density, "graphs": graphs}
        about = {} if options.study == "tiles" else machine()
        record(studies[options.study](options), options.output, about)


def measure_all(folder: Path) -> None:
    """Run every measurement of the chapter; stop at the first failure."""
    folder.mkdir(parents=True, exist_ok=True)
    for run, file in RUNS.items():
        script, *arguments = shlex.split(run)
        print(run, flush=True)
        command = [sys.executable, Path(__file__).with_name(script), *arguments]
        subprocess.run([*command, "--output", folder / file], check=True)


def tiles(options: argparse.Namespace) -> Iterator[Row]:
    """Count tiles with a nonzero: unchanged, with condensed columns, and in Rabbit order."""
    for name in options.graphs or bundled_graphs():
        graph = accelviz.load_graph(name)
        order = vertex_order(graph, "rabbit")
        ordered = order.apply_to_graph(graph, columns=True)
        for operation, (height, width) in TILES.items():
            windows, moved = row_windows(graph, height), row_windows(ordered, height)
            window = np.repeat(np.arange(graph.n_rows) // height, graph.degrees)
            before = np.unique(window * graph.shape[1] + graph.column_indices // width).size
            after = int(windows.blocks(width).sum())
            yield {
                "graph": graph.name,
                "nonzeros": graph.nnz,
                "operation": operation,
                "tiles_before": before,
                "tiles_after": after,
                "saved": round(1 - after / before, 4),
                "fill": round(windows.fill(width), 4),
                "reuse": round(windows.reuse, 4),
                "rabbit_tiles": int(moved.blocks(width).sum()),
                "rabbit_fill": round(moved.fill(width), 4),
                "rabbit_reuse": round(moved.reuse, 4),
            }


def density(options: argparse.Namespace) -> Iterator[Row]:
    """Time products of a matrix of dense blocks by every strategy and library."""
    for blocks in BLOCKS:
        graph, block_columns = dense_blocks(blocks)
        about = {"blocks_of_window": blocks, "density": graph.nnz / SIDE**2}
        for n_cols in options.columns:
            work = 2 * graph.nnz * n_cols
            rows = strategies(graph, n_cols, options.repeats)
            for row in chain(rows, libraries(graph, block_columns, n_cols, options.repeats)):
                yield {**about, **row, "gflops": round(work / row["median_us"] / 1e3, 1)}


def graphs(options: argparse.Namespace) -> Iterator[Row]:
    """Time SpMM and SDDMM on real graphs and twins."""
    for name in options.graphs or GRAPHS:
        graph = accelviz.load_graph(name)
        reuse = round(row_windows(graph, BLOCK).reuse, 4)
        for operation in TILES:
            for n_cols in options.columns:
                for row in strategies(graph, n_cols, options.repeats, operation):
                    yield {"graph": graph.name, "reuse": reuse, **row}


def strategies(graph: Graph, n_cols: int, repeats: int, operation: str = "spmm") -> Iterator[Row]:
    """Check and time the strategies, with random signed weights."""
    available = [
        name for name in STRATEGIES if name != "cusparse" or cusparse.unavailable_reason() is None
    ]
    options = {"operation": operation, "repeats": repeats, "states": ["warm"], "progress": False}
    table = accelviz.benchmark(graph, available, n_cols, **options)
    wanted = ["operation", "strategy", "columns", "dtype", "median_us", "error_over_bound"]
    yield from table[wanted].to_dict("records")


def dense_blocks(count: int) -> tuple[Graph, np.ndarray[Any, Any]]:
    """Return a matrix with `count` dense blocks per window, and the columns of these blocks."""
    rng = np.random.default_rng(count)
    windows = SIDE // BLOCK
    blocks = np.stack([np.sort(rng.choice(windows, count, replace=False)) for _ in range(windows)])
    columns = (blocks[:, :, None] * BLOCK + np.arange(BLOCK)).reshape(windows, -1)
    indices = np.repeat(columns, BLOCK, axis=0).astype(np.int32)
    pointers = np.arange(SIDE + 1, dtype=np.int64) * columns.shape[1]
    values = rng.standard_normal(indices.size).astype(np.float32)
    name = f"{count} blocks a window"
    return Graph(pointers, indices.ravel(), values, (SIDE, SIDE), name), blocks.astype(np.int32)


def libraries(graph: Graph, block_columns: Any, n_cols: int, repeats: int) -> Iterator[Row]:
    """Check and time Blocked-ELL in float32 and float16, and the dense product."""
    import cupy
    from cupy._core import _routines_linalg as linalg

    from accelviz.devices.cuda.timing import event_seconds

    X = cupy.asarray(np.random.default_rng(1).standard_normal((SIDE, n_cols), dtype=np.float32))
    ell = cupy.asarray(graph.values.reshape(SIDE, -1))
    dense = cupy.asarray(graph.adjacency.toarray())
    exact = dense.astype(np.float64) @ X.astype(np.float64)
    magnitude = abs(dense.astype(np.float64)) @ abs(X.astype(np.float64))
    Y = cupy.empty((SIDE, n_cols), np.float32)

    def row(name: str, dtype: str, run: Callable[[], object], result: Any) -> Row:
        run()
        error = float((abs(result - exact) / magnitude).max())
        assert error < 1e-2, f"{name} in {dtype} is wrong: {error}"
        about = {"operation": "spmm", "strategy": name, "columns": n_cols, "dtype": dtype}
        times = event_seconds(run, repeats, 3)
        return {**about, "median_us": median_us(times), "error": error}

    # Blocked-ELL multiplies float32 in TF32, as its errors show.
    kinds = (("tf32", np.float32, _R_32F), ("float16", np.float16, _R_16F))
    for dtype_name, dtype, kind in kinds if cusparse.unavailable_reason() is None else ():
        out = Y.astype(dtype)
        run = blocked_ell(block_columns, ell.astype(dtype), X.astype(dtype), out, kind)
        yield row("blocked_ell", dtype_name, run, out)
    before = linalg.get_compute_type(np.float32)
    types = {"float32": linalg.COMPUTE_TYPE_FP32, "tf32": linalg.COMPUTE_TYPE_TF32}
    for dtype_name, compute in types.items():
        linalg.set_compute_type(np.float32, compute)
        yield row("dense", dtype_name, lambda: cupy.matmul(dense, X, out=Y), Y)
    linalg.set_compute_type(np.float32, before)


def blocked_ell(
    block_columns: Any, values: Any, X: Any, out: Any, kind: int, block: int = BLOCK
) -> Callable[[], None]:
    """Return a prepared call of cuSPARSE's SpMM on a square Blocked-ELL matrix."""
    import cupy
    from nvmath.bindings import cusparse as library

    (side, n_cols), ell_columns = X.shape, values.shape[1]
    handle, index = library.create(), cupy.asarray(block_columns)
    matrix = library.create_blocked_ell(
        *(side, side, block, ell_columns, index.data.ptr, values.data.ptr),
        *(library.IndexType.INDEX_32I, 0, kind),
    )
    one, zero = np.array(1, np.float32), np.array(0, np.float32)
    x, y = (
        library.create_dn_mat(side, n_cols, n_cols, matrix.data.ptr, kind, _ROW_ORDER)
        for matrix in (X, out)
    )
    algorithm = int(library.SpMMAlg.BLOCKED_ELL_ALG1)
    call = (handle, _PLAIN, _PLAIN, one.ctypes.data, matrix, x, zero.ctypes.data, y, _R_32F)
    size = library.sp_mm_buffer_size(*call, algorithm)
    workspace = cupy.empty(max(size, 1), np.uint8)
    held = index, values, X, out, one, zero, workspace

    def run() -> None:
        library.set_stream(handle, cupy.cuda.get_current_stream().ptr)
        library.sp_mm(*call, algorithm, held[-1].data.ptr)

    return run


if __name__ == "__main__":
    main()
