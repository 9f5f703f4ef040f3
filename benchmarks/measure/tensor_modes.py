"""Time and error of SpMM and SDDMM by windows in every arithmetic, beside other strategies.

    python benchmarks/measure/tensor_modes.py --output modes.csv

A graph is `name` or `name:order`, with a vertex order. `blocks-64` is synthetic: 98,304 rows, each
with 48 random columns of its own block of 64 neighbors. Weights and features are random and signed.
All results are compared with float64 on the GPU; `error` is the largest error over the sum of the
magnitudes of its terms. A result beyond its arithmetic's bound is not timed. Times are medians of
CUDA events, warm; sparse graph translation is timed by the host's clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from study import Row, host_seconds, machine, median_us, open_graph, parser, record
from translation import translate_windows

from accelviz import measure
from accelviz.devices import find_device
from accelviz.devices.cuda.compiler import compiled
from accelviz.errors import AccelvizError
from accelviz.graph import Graph, Pattern
from accelviz.ordering import vertex_order
from accelviz.partition.windows import row_windows
from accelviz.plans import Operation
from accelviz.strategies import SDDMM, SPMM, find_strategy
from accelviz.strategies.choice import sampled_reuse

GRAPHS = (
    *("ppa-twin", "reddit-twin", "products-twin", "collab-twin", "collab-twin:rabbit"),
    *("facebook", "facebook:rabbit", "ca-astroph:rabbit", "mit8:rabbit"),
    *(f"blocks-{size}" for size in (512, 256, 192, 128, 96, 64)),
)
ROWS, DEGREE = 98_304, 48
MODES = ("3xtf32", "tf32", "float16")
ROWS_OF_WINDOWS = (8, 16, 32)
#: Parameters with a column in the table.
SETTINGS = ("window_rows", "column_tile", "ahead")
Case = tuple[str, dict[str, Any]]
TILES: list[Case] = [
    ("window_tiles", {"arithmetic": arithmetic, "window_rows": rows})
    for arithmetic in MODES
    for rows in ROWS_OF_WINDOWS
]
#: Strategies and parameters to time, by operation.
CASES: dict[Operation, list[Case]] = {
    SPMM: [
        *(("cusparse", {}), ("lane_groups", {}), ("lane_groups", {"storage": "float16"})),
        *(("tc_gnn", {}), ("windows", {"window_rows": 16, "block_warps": 4})),
        *TILES,
        *(
            (
                "window_tiles",
                {"arithmetic": "float16", "window_rows": 16, "column_tile": 128, **more},
            )
            for more in ({}, {"ahead": 4})
        ),
    ],
    SDDMM: [("cusparse", {}), ("lane_groups", {}), ("tc_gnn", {}), *TILES],
}
#: Largest allowed error of each arithmetic.
MOST_ERROR = {"float32": 1e-6, "3xtf32": 1e-6, "tf32": 1e-3, "float16": 1.2e-3}
#: Error of a term by rounding to float16: half of its smallest number, times a factor of at most 8.
SMALLEST = 8 * 2.0**-25
#: Nonzeros whose dot products are computed in float64 at a time.
CHUNK = 1 << 20
#: Cases that take longer, in seconds, are timed three times only.
LONG = 0.02


def main() -> None:
    arguments = parser(__doc__, graphs=GRAPHS, columns=(128, 256, 512), repeats=11)
    arguments.add_argument("--only", nargs="+", help="of `operation:strategy:arithmetic`, a few")
    options = arguments.parse_args()
    for operation, cases in CASES.items() if options.only else ():
        cases[:] = [case for case in cases if name_of(operation, *case) in options.only]
    record(rows(options.graphs, options.columns, options.repeats), options.output, machine())


def rows(names: list[str], columns: list[int], repeats: int) -> Iterator[Row]:
    """Measure every graph. All are prepared first, so that the host is idle during timing."""
    with ThreadPoolExecutor(8) as pool:
        graphs = list(pool.map(partial(prepared, columns=columns), names))
    for graph, about in graphs:
        for row in chain(translated(graph), timed(graph, columns, repeats)):
            yield {**about, **row}


def name_of(operation: Operation, strategy: str, parameters: dict[str, Any]) -> str:
    """Return the name of a case for `--only`."""
    kind = parameters.get("arithmetic", parameters.get("storage", "float32"))
    return f"{operation.name}:{strategy}:{kind}"


def prepared(name: str, columns: list[int]) -> tuple[Graph, Row]:
    """Load a graph with random weights in its order; translate it and compile for every case."""
    name, _, order = name.partition(":")
    size = name.removeprefix("blocks-")
    graph = blocks(int(size)) if size != name else open_graph(name, "natural", cache=False)
    if order:
        graph = vertex_order(graph, order).apply_to_graph(graph, columns=True)
    graph = measure.random_weights(graph)
    for operation, cases in CASES.items():
        for strategy, parameters in cases:
            for n_cols in columns:
                plan = find_strategy(strategy, operation).plan(graph, n_cols, **parameters)
                if plan.kernel is not None:
                    compiled(plan.kernel)  # stored on disk
    about = {
        "graph": name,
        "order": order,
        "rows": graph.n_rows,
        "nonzeros": graph.nnz,
        "reuse_8": round(sampled_reuse(graph, 8), 3),
        "reuse_16": round(sampled_reuse(graph, 16), 3),
    }
    return graph, about


def blocks(size: int) -> Graph:
    """Return a graph whose rows have 48 random columns of their own block of `size`."""
    rng = np.random.default_rng(size)
    sets = np.argsort(rng.random((4096, size)), axis=1)[:, :DEGREE]
    columns = np.sort(sets[rng.integers(0, len(sets), ROWS)], axis=1)
    columns += (np.arange(ROWS) // size * size)[:, None]
    pointers = np.arange(ROWS + 1, dtype=np.int64) * DEGREE
    values = np.ones(ROWS * DEGREE, np.float32)
    return Graph(pointers, columns.ravel().astype(np.int32), values, (ROWS, ROWS), f"{size}")


def translated(graph: Graph) -> Iterator[Row]:
    """Check sparse graph translation on the GPU, and time it by the host's clock."""
    import cupy

    arrays = (cupy.asarray(graph.row_pointers), cupy.asarray(graph.column_indices))
    pattern = Pattern(*arrays, graph.shape, graph.name)
    for rows in (8, 16):
        call = partial(translate_windows, find_device("cuda"), pattern, rows)
        times = host_seconds(call, 7, wait=cupy.cuda.Device().synchronize)
        windows, expected = call(), row_windows(graph, rows)
        for name in ("pointers", "columns", "edge_to_column"):
            assert np.array_equal(getattr(windows, name).get(), getattr(expected, name)), name
        about = {"operation": "translation", "window_rows": rows}
        yield {**about, "median_us": median_us(times)}


def timed(graph: Graph, columns: list[int], repeats: int) -> Iterator[Row]:
    """Check and time every case."""
    import cupy

    executor, rng = find_device("cuda"), cupy.random.default_rng(graph.nnz)
    for n_cols in columns:
        wide = rng.standard_normal((max(graph.shape), n_cols), dtype=np.float32)
        for operation, cases in CASES.items():
            inputs = operands(graph, operation, wide)
            known = exact(graph, operation, inputs)
            for strategy, parameters in cases:
                try:
                    plan = find_strategy(strategy, operation).plan(graph, n_cols, **parameters)
                    ready = executor.prepare(plan)
                except AccelvizError as problem:
                    print(f"{strategy} of {operation.name}: {problem}", flush=True)
                    continue
                out = ready.outputs()
                for array in out.values():
                    array.fill(np.nan)
                (result,) = ready.run(inputs, out).values()
                kind = plan.storage if plan.arithmetic == "float32" else plan.arithmetic
                off = abs(result.reshape(known[0].shape) - known[0])
                # Rounding to float16 may lose any share of numbers near its smallest one.
                least = known[2] * SMALLEST if kind == "float16" else 0.0
                error = float((off / known[1]).max())
                if not bool((off <= MOST_ERROR[kind] * known[1] + least).all()):
                    print(f"WRONG by {error}: {plan}", flush=True)
                    continue
                once = ready.seconds(inputs, 1, 0)[0]
                times = ready.seconds(inputs, repeats if once < LONG else 3, 1)
                yield {
                    "operation": operation.name,
                    "columns": n_cols,
                    "strategy": strategy,
                    "dtype": kind,
                    **{name: parameters.get(name, "") for name in SETTINGS},
                    "median_us": median_us(times),
                    "error": f"{error:.3g}",
                }
                del plan, ready, out, result, off, least
            del known, inputs
            cupy.get_default_memory_pool().free_all_blocks()


def operands(graph: Graph, operation: Operation, wide: Any) -> dict[str, Any]:
    """Return the inputs on the GPU, as views of one array."""
    n_rows, n_columns = graph.shape
    if operation is SPMM:
        return {"X": wide[:n_columns]}
    return {"U": wide[:n_rows, None], "V": wide[::-1][:n_columns, None].copy()}


def exact(graph: Graph, operation: Operation, inputs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the result in float64, the sums of its terms' magnitudes, and numbers of terms."""
    import cupy
    from cupyx.scipy import sparse

    pointers, columns = cupy.asarray(graph.row_pointers), cupy.asarray(graph.column_indices)
    if operation is SPMM:
        weights = cupy.asarray(graph.values).astype(np.float64)
        matrix = sparse.csr_matrix((weights, columns, pointers.astype(np.int32)), graph.shape)
        X = inputs["X"].astype(np.float64)
        result = matrix @ X
        matrix.data = abs(matrix.data)
        degrees = cupy.asarray(graph.degrees)[:, None]
        return result, matrix @ abs(X) + 1e-300, 2 * degrees
    result, size = cupy.empty(graph.nnz), cupy.empty(graph.nnz)
    row = cupy.searchsorted(pointers, cupy.arange(graph.nnz), side="right") - 1
    for first in range(0, graph.nnz, CHUNK):
        chunk = slice(first, first + CHUNK)
        terms = inputs["U"][row[chunk], 0].astype(np.float64) * inputs["V"][columns[chunk], 0]
        result[chunk], size[chunk] = terms.sum(axis=1), abs(terms).sum(axis=1)
    return result, size + 1e-300, 2 * inputs["U"].shape[-1]


if __name__ == "__main__":
    main()
