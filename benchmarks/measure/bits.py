"""Products of bit matrices (QGTC, chapter 2 of the thesis): speed, accuracy, and their limits.

    python benchmarks/measure/bits.py table --output bits-table.csv      # Table 2.3, Figure 2.7c
    python benchmarks/measure/bits.py sizes --output bits-sizes.csv      # Figure 2.9
    python benchmarks/measure/bits.py reuse --output bits-reuse.csv      # Figure 2.10
    python benchmarks/measure/bits.py gather --output bits-gather.csv    # sparse sums, few bits
    python benchmarks/measure/bits.py density --output bits-density.csv  # sparse or dense
    python benchmarks/measure/bits.py parts --batches parts.npz --output parts.csv    # no GPU
    python benchmarks/measure/bits.py network --batches parts.npz --output bits-network.csv
    python benchmarks/measure/bits.py accuracy --output bits-accuracy.csv  # Table 2.2, no GPU

Each begins with the throughput of this GPU's instructions on operands in registers. Rates and
TFLOPS count 2 M N K operations per product for any number of bits. Results are first compared
exactly with the INT8 product. Times are medians of CUDA events, warm, with operands and result on
the GPU. INT8 is cuBLAS through torch._int_mm, with the faster of the two layouts of its right
operand. `gather` and `density` have random columns; their rates count 2 operations per nonzero and
column. `parts` partitions graphs by METIS and stores the first batches of each; `network` runs
Cluster-GCN and batched GIN (section 2.6, 128 features) on these batches, beside PyTorch Geometric
in float32.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array as sparse_matrix
from study import machine, parser, record

import accelviz
from accelviz import bits
from accelviz.datasets import load_nodes, rmat, stochastic_block
from accelviz.datasets.nodes import NodeData
from accelviz.devices import find_device
from accelviz.devices.cuda.timing import CudaLimits, event_seconds
from accelviz.devices.ready_plan import ready
from accelviz.graph import Graph
from accelviz.layers import Network, Products
from accelviz.plans import Call, KernelSpec, LaunchConfig
from accelviz.strategies.bits.products import GROUP_ARCH, SIDE, SPLIT_BITS

ON_GPU = ("table", "sizes", "reuse", "gather", "density", "network")
#: The other graphs of Table 2.1 are made up, with the printed numbers of nodes and edges: unions of
#: as many graphs as Proteins and PPI have, and R-MAT for BlogCatalog.
MADE_UP: dict[str, Callable[[], Graph]] = {
    "proteins": lambda: stochastic_block(162_088, n_nodes=43_471, n_blocks=1113, within=1.0),
    "ppi": lambda: stochastic_block(818_716, n_nodes=56_944, n_blocks=24, within=1.0),
    "blogcatalog": lambda: rmat(2_093_195, n_nodes=88_784),
}
GRAPHS = ("citeseer", "pubmed", "twitter-partial", "artist", "com-amazon", "arxiv", *MADE_UP)
PARTS, PARTS_OF_BATCH, BATCHES = 1500, 16, 4
FEATURES, CLASSES = 128, 10
#: Number of seeds of `accuracy`: accuracies at 2 bits differ by 0.1 between seeds. Other cases take
#: minutes per seed.
SEEDS = {("cora", "gcn"): 20, ("citeseer", "gcn"): 20}
FEW_SEEDS = 3
#: Largest batch, in nodes, whose logits are also computed on the host.
CHECKED = 1000
TABLE = [(n, d) for d in (32, 64) for n in (2048, 4096, 8192)]
WIDE = [(8192, 256), (8192, 1024)]
#: Products added to each sum of a rate's kernel, and operations of one instruction.
REPEATS = 4096
RATES = {"bit": 2 * 16 * 8 * 256, "byte": 2 * 16 * 8 * 32, "nibble": 2 * 16 * 8 * 64}
RATES |= {"popc": 2 * 32 * 32 * 4, "group": 2 * 64 * 128 * 256 // 4}
#: Algorithms of all widths of Table 2.3, and of studies that do not list their own.
ALGORITHMS = ("warpgroup", "tiled", "split")


def main() -> None:
    arguments = parser(__doc__, repeats=20)
    arguments.add_argument("study", choices=(*ON_GPU, "parts", "accuracy"))
    arguments.add_argument("--graphs", nargs="+", default=GRAPHS, help="of `parts`; also products")
    arguments.add_argument("--batches", type=Path, help="what `parts` keeps, and `network` reads")
    options = arguments.parse_args()
    on_gpu = options.study in ON_GPU
    rows = itertools.chain(rates() if on_gpu else (), globals()[options.study](options))
    record(rows, options.output, machine("cuda" if on_gpu else "cpu"))


def rates() -> Iterator[dict[str, Any]]:
    """Measure the throughput of the instructions, and an empty launch."""
    import cupy

    out = cupy.zeros(1, np.int32)
    blocks = 16 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    yield row("launch", 0, 0, 0, CudaLimits().launch_seconds)
    for name, operations in RATES.items():
        repeats = REPEATS // (8 if name == "nibble" else 1)
        arch = GROUP_ARCH if name == "group" else ""
        about = f"{name}_products", {"repeats": repeats}, ("out",)
        kernel = KernelSpec("bits/rates.cu", *about, arch=arch)
        call = Call(LaunchConfig((blocks, 1, 1), 8), kernel)
        launch = functools.partial(find_device("cuda").launch, call, {"out": out})
        seconds = float(np.median(event_seconds(launch, 5, 2)))
        rate = operations * 8 * repeats * 8 * blocks / seconds / 1e12
        yield {**row(f"rate {name}", 0, 0, 0, seconds), "tflops": round(rate, 1)}


def row(algorithm: str, n: int, d: int, bits: int, seconds: float, **more: Any) -> dict[str, Any]:
    """Return a row of the table."""
    us, rate = round(seconds * 1e6, 3), round(2 * n * n * d / seconds / 1e12, 2)
    cells = {"algorithm": algorithm, "n": n, "d": d, "bits": bits, "median_us": us, "tflops": rate}
    return cells | more


class Case:
    """A (n x n, 1 bit) and X (n x d, `width` bits) on the GPU, and their product by INT8."""

    def __init__(self, n: int, d: int, width: int, repeats: int) -> None:
        import torch

        generator = torch.Generator("cuda").manual_seed(n + d + width)
        options = {"device": "cuda", "generator": generator}
        self.a = torch.randint(0, 2, (n, n), dtype=torch.int8, **options)
        self.x = torch.randint(0, 1 << min(width, 7), (d, n), dtype=torch.int8, **options).t()
        self.n, self.d, self.width, self.repeats, self.torch = n, d, width, repeats, torch
        self.A, self.X = self.packed(self.a, 1, "left"), self.packed(self.x, width, "right")
        self.expected = torch._int_mm(self.a, self.x) if n > 16 else None

    def packed(self, whole: Any, width: int, side: str) -> bits.BitTensor:
        """Pack a PyTorch tensor of integers."""
        import cupy

        X = cupy.from_dlpack(whole.float().contiguous())
        return bits.quantize(X, width, side, low=0, high=1 << width)

    def record(
        self, algorithm: str | None = None, called: str = "", **options: Any
    ) -> dict[str, Any]:
        """Check and time an algorithm; return its row, under its own name unless `called`."""
        import cupy

        planned = bits.plan_product(self.A, self.X, algorithm, **options)
        product = planned.run(self.A, self.X, "cuda")
        equal = bool((product == cupy.from_dlpack(self.expected)).all())
        assert equal, f"{algorithm} {self.A} {self.X} {options} is wrong"
        on_gpu = ready(planned.plan, find_device("cuda"))
        seconds = float(np.median(on_gpu.seconds(planned.operands(self.A, self.X), self.repeats)))
        return row(called or planned.plan.name, self.n, self.d, self.width, seconds)

    def int8(self, **more: Any) -> dict[str, Any]:
        """Time cuBLAS with the faster of the two layouts of X."""
        out = self.torch.empty_like(self.expected)
        times = [
            event_seconds(lambda x=x: self.torch._int_mm(self.a, x, out=out), self.repeats, 3)
            for x in (self.x, self.x.contiguous())
        ]
        seconds = min(float(np.median(seconds)) for seconds in times)
        return row("cublas int8", self.n, self.d, 8, seconds, **more)


def table(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time Table 2.3's shapes and wide ones with every algorithm, and INT8."""
    for n, d in (*TABLE, *WIDE):
        for width in range(1, 9) if (n, d) == (8192, 1024) else (1, 2, 3, 4, 8):
            case = Case(n, d, width, options.repeats)
            for algorithm in bits.ALGORITHMS if width in (1, 4) else ALGORITHMS:
                yield case.record(algorithm, jump=False)
            for m, k in ((4, 2), (2, 4), (2, 2)) if width == 1 and d == 1024 else ():
                yield case.record("tiled", f"tiled {m}x{k}", jump=False, warps_m=m, warps_n=k)
        yield case.int8()


def sizes(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time products of one bit by one bit, by N and D."""
    for n, d in itertools.product((1 << i for i in range(7, 16)), (1 << i for i in range(4, 11))):
        case = Case(n, d, 1, options.repeats)
        yield from (case.record(algorithm, jump=False) for algorithm in ALGORITHMS)


def reuse(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time products that read a tile of A once for all planes of X, or once per plane."""
    for n, width in itertools.product((1024, 2048, 4096, 8192), (4, 8, 16)):
        case = Case(n, 1024, width, options.repeats)
        for again in (True, False):
            yield case.record("tiled", jump=False, reuse=again) | {"reuse": again}


def sparse(n: int, degree: int) -> Graph:
    """Return a square matrix with about `degree` random columns in each row."""
    rng = np.random.default_rng(degree)
    keys = np.unique(np.arange(n)[:, None] * n + rng.integers(0, n, (n, degree)))
    pointers = np.append(0, np.cumsum(np.bincount(keys // n, minlength=n)))
    columns = (keys % n).astype(np.int32)
    ones = np.ones(keys.size, np.float32)
    return Graph(pointers.astype(np.int64), columns, ones, (n, n), f"{degree} a row of {n}")


def sums(graph: Graph, d: int, repeats: int) -> Iterator[tuple[str, int, float]]:
    """Check and time sums of neighbors in float32, 8 and 4 bits; yield name, bits, seconds."""
    for operation, width in (("spmm", 32), ("bit_spmm_8", 8), ("bit_spmm_4", 4)):
        options = {"operation": operation, "repeats": repeats, "states": ["warm"]}
        times = accelviz.benchmark(graph, ["lane_groups"], d, **options)
        name = "lane_groups" if width == 32 else "gather"
        yield name, width, float(times["median_us"].iloc[0]) * 1e-6


def gather(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time sums of rows of X in float32, 8 and 4 bits, by degree and by columns."""
    n = 1 << 16
    for degree in (8, 32, 128):
        graph = sparse(n, degree)
        for d in (64, 128, 256):
            for name, width, seconds in sums(graph, d, options.repeats):
                cells = row(name, n, d, width, seconds, nonzeros=graph.nnz)
                yield cells | {"tflops": round(2 * graph.nnz * d / seconds / 1e12, 3)}


def density(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time products of an 8,192 x 8,192 matrix, sparse and dense, by density."""
    n = 8192
    for d in (64, 256):
        for width in (1, 2, 4, 8):
            case = Case(n, d, width, options.repeats)
            yield case.record() | {"density": 1.0}
        yield case.int8(density=1.0)
        for degree in (2, 8, 32, 128, 512):
            graph = sparse(n, degree)
            for name, width, seconds in sums(graph, d, options.repeats):
                yield row(name, n, d, width, seconds, density=graph.nnz / n**2)


def parts(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Partition graphs into 1,500 parts; store the edges of the first batches of 16 parts."""
    arrays: dict[str, Any] = {}
    for name in options.graphs:
        graph = MADE_UP[name]() if name in MADE_UP else accelviz.load_graph(name)
        start = time.perf_counter()
        part = bits.batches.partition(graph, PARTS)
        seconds = time.perf_counter() - start
        cut = bits.batches.cut_edges(graph, part)
        batches = list(itertools.islice(bits.batches.batches(graph, part, PARTS_OF_BATCH), BATCHES))
        shares: dict[str, list[float]] = {"jumped_8": [], f"jumped_{SIDE}": []}
        for i, batch in enumerate(batches):
            n, edges = batch.nodes.size, np.nonzero(batch.A.levels())
            arrays[f"{name} {i}"] = np.stack([[n, n], *np.transpose(edges)]).astype(np.int32)
            for rows, width in ((8, 128), (SIDE, SPLIT_BITS)):
                tiles = -(-n // rows) * -(-n // width)
                used = np.unique(edges[0] // rows * n + edges[1] // width).size
                shares[f"jumped_{rows}"].append(1 - used / tiles)
        jumped = {column: round(float(np.mean(share)), 4) for column, share in shares.items()}
        nodes = round(float(np.mean([batch.nodes.size for batch in batches])), 1)
        cells = {"graph": name, "edges": graph.nnz, "cut": round(cut / graph.nnz, 4)}
        yield cells | {"nodes": nodes, **jumped, "metis_seconds": round(seconds, 2)}
    np.savez_compressed(options.batches, **arrays)


def network(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time both models on batches, with 8, 4 and 2 bits, and in float32 by PyTorch Geometric."""
    import torch

    arrays = np.load(options.batches)
    names = dict.fromkeys(key.rpartition(" ")[0] for key in arrays)
    for name, model in itertools.product(names, bits.networks.MODELS):
        times: dict[str, list[float]] = {"pyg": [], "8": [], "4": [], "2": []}
        for i in range(BATCHES // 2):
            edges = arrays[f"{name} {i}"]
            n, pairs = int(edges[0, 0]), edges[1:]
            batch, nodes = batch_of(n, pairs)
            with torch.no_grad():
                times["pyg"].append(pyg(model, nodes, pairs, options.repeats))
            for width in (8, 4, 2):
                built = bits.networks.layers_of(model, FEATURES, CLASSES, width)
                network = Network(built, nodes.graph, Products(None, "cuda"))
                quantized = bits.networks.BitNetwork.of(network, nodes, width)
                X = quantized.features(nodes.features)
                run, logits = quantized.prepare_launch(batch, X)
                seconds = event_seconds(run, options.repeats, 3)
                if n <= CHECKED and width == 4:
                    assert np.array_equal(logits.get(), quantized.run(batch, X, "cpu"))
                times[str(width)].append(float(np.median(seconds)))
        for algorithm, seconds in times.items():
            cells = {"graph": name, "model": model, "algorithm": algorithm}
            us = round(float(np.mean(seconds)) * 1e6, 3)
            yield cells | {"batches": len(seconds), "median_us": us}


def batch_of(n: int, pairs: Any) -> tuple[bits.batches.Batch, NodeData]:
    """Return a batch with the given edges, and its graph with random features."""
    ones = np.ones(len(pairs), np.float32)
    graph = accelviz.load_graph(sparse_matrix((ones, tuple(pairs.T)), shape=(n, n)))
    batch = next(bits.batches.batches(graph, np.zeros(n, np.int32), 1))
    X = np.random.default_rng(n).random((n, FEATURES), dtype=np.float32)
    return batch, NodeData(graph, X, np.zeros(n, int), [0], [1], [2])


def pyg(model: str, nodes: NodeData, pairs: Any, repeats: int) -> float:
    """Time PyTorch Geometric in float32, with cached normalization."""
    import torch
    from torch_geometric import nn

    layers, hidden = bits.networks.MODELS[model]
    widths = [FEATURES, *[hidden] * (layers - 1), CLASSES]
    convolutions = [
        nn.GCNConv(a, b, cached=True, add_self_loops=False)
        if model == "gcn"
        else nn.GINConv(
            torch.nn.Sequential(
                torch.nn.Linear(a, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, b)
            )
        )
        for a, b in itertools.pairwise(widths)
    ]
    built = [layer.cuda() for layer in convolutions]
    X = torch.from_numpy(np.array(nodes.features)).cuda()
    edges = torch.from_numpy(np.ascontiguousarray(pairs.T[::-1])).long().cuda()

    def run() -> None:
        Y = X
        for i, layer in enumerate(built):
            Y = layer(Y, edges)
            if i < len(built) - 1:
                Y = Y.relu_()

    return float(np.median(event_seconds(run, repeats, 5)))


def accuracy(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Train with and without rounding, run with integers, and yield accuracies by bits."""
    for data in (load_nodes("cora"), load_nodes("citeseer"), planted()):
        whole = bits.batches.partition(data.graph, 1)
        (batch,) = bits.batches.batches(data.graph, whole, 1)
        runs = [(model, SEEDS.get((data.name, model), FEW_SEEDS)) for model in ("gcn", "gin")]
        for model, seed in ((model, seed) for model, seeds in runs for seed in range(seeds)):
            for width in (32, 16, 8, 4, 2, 1):
                settings: dict[str, Any] = {"seed": seed, "device": "cpu", "progress": False}
                result, trained = bits.networks.train(model, data, width, **settings)
                about = {"data": data.name, "model": model, "seed": seed}
                yield {**about, "bits": width, "how": "trained", "accuracy": result.test_accuracy}
                for bits_of in (8, 4, 2) if width == 32 else (width,):
                    quantized = bits.networks.BitNetwork.of(trained, data, bits_of)
                    logits = quantized.run(batch, quantized.features(data.features), "cpu")
                    share = bits.networks.accuracy(logits, data)
                    how = "quantized afterwards" if width == 32 else "whole numbers"
                    yield {**about, "bits": bits_of, "how": how, "accuracy": share}


def planted() -> NodeData:
    """Return a graph of equal communities; features are noise around the community's center."""
    n, classes = 8192, 16
    graph = stochastic_block(16 * n, n_nodes=n, n_blocks=classes, within=0.5, seed=1)
    rng = np.random.default_rng(1)
    labels = np.arange(n) * classes // n
    X = rng.standard_normal((classes, 32))[labels] + 3 * rng.standard_normal((n, 32))
    split = np.split(rng.permutation(n), (320, 1320, 3320))
    return NodeData(graph, X.astype(np.float32), labels, *split[:3], name="planted")


if __name__ == "__main__":
    main()
