"""Host time of a call of `spmm`, beside an empty launch of CuPy and `torch.sparse.mm`.

All arrays are on the GPU and plans exist. Calls do not wait for the GPU. The graph is small, so
that the GPU finishes each call before the host launches the next.

    python benchmarks/measure/host_time.py --output host-time.csv
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from study import Row, host_seconds, parser, record

import accelviz
from accelviz.devices import Device, find_device
from accelviz.measure import features
from accelviz.plans import Call, KernelSpec, LaunchConfig

#: Calls between synchronizations; the GPU's queue holds about a thousand launches.
CALLS = 200
EMPTY = KernelSpec("machine/machine.cu", "nothing", {"loads_in_flight": 1}, ())


def main() -> None:
    arguments = parser(__doc__, repeats=50)
    arguments.add_argument("--graph", default="cora")
    arguments.add_argument("--columns", type=int, default=16)
    options = arguments.parse_args()
    device = find_device("cuda")
    device.require()
    cases = calls(device, options.graph, options.columns)
    record(times(cases, options.repeats), options.output, device.hardware())


def calls(
    device: Device, graph_name: str, n_cols: int
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield names and calls, the empty launch first."""
    graph = accelviz.load_graph(graph_name)
    X = device.to_device(features(graph.shape[1], n_cols))
    out = device.empty((graph.n_rows, n_cols))
    plan = accelviz.plan(graph, "lane_groups", n_cols)
    yield "empty launch", empty_launch(device)
    yield "spmm(plan, X, out=out)", lambda: accelviz.spmm(plan, X, out=out)
    yield "spmm(plan, X)", lambda: accelviz.spmm(plan, X)
    yield "spmm(graph, X)", lambda: accelviz.spmm(graph, X)
    ready = find_device("cuda").prepare(plan)
    inputs = ready.inputs(ready.placed({"X": X}))
    yield "its launches alone", lambda: ready.launch(inputs, {"Y": out})
    try:
        import torch
    except ImportError:
        return
    # PyTorch needs the same type for both kinds of indices.
    indices = (graph.row_pointers.astype(np.int32), graph.column_indices)
    arrays = *indices, graph.values
    tensors = (torch.from_numpy(array.copy()).to("cuda") for array in arrays)
    matrix = torch.sparse_csr_tensor(*tensors, size=graph.shape)
    dense = torch.from_numpy(features(graph.shape[1], n_cols)).to("cuda")
    yield "torch.sparse.mm(A, X)", lambda: torch.sparse.mm(matrix, dense)


def empty_launch(device: Device) -> Callable[[], object]:
    """Return a call of CuPy that launches an empty kernel without arguments."""
    from accelviz.devices.cuda.compiler import compiled

    device.launch(Call(LaunchConfig((1, 1, 1), 1), EMPTY), {})
    _, function = compiled(EMPTY)
    return lambda: function((1,), (32,), ())


def times(cases: Iterator[tuple[str, Callable[[], object]]], repeats: int) -> Iterator[Row]:
    """Yield median and quartiles of the host's time for each call."""
    import cupy

    empty = np.nan
    for name, call in cases:
        seconds = np.empty(repeats)
        for i in range(repeats):
            cupy.cuda.Device().synchronize()
            warmup = CALLS if i == 0 else 0
            seconds[i] = host_seconds(call, CALLS, warmup).sum() / CALLS
        low, median, high = np.percentile(1e6 * seconds, [25, 50, 75])
        empty = median if np.isnan(empty) else empty
        quartiles = {"median_us": median, "quartile_1_us": low, "quartile_3_us": high}
        yield {"call": name, **quartiles, "over_empty_us": median - empty}


if __name__ == "__main__":
    main()
