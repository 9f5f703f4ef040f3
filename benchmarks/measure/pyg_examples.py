"""Run PyTorch Geometric's examples as they are and with the layers of accelviz.torch.

CHECKOUT is a checkout of PyTorch Geometric's repository. Each example runs in processes of its own
with the same seeds: as it is, and with one import changed. If printed numbers then differ by more
than 1e-4, it runs as it is once more, with one rounding of the largest gradient added at random to
each gradient of every step: this shows how far another order of sums moves the numbers. Datasets
that would be downloaded are replaced by those of `pyg_stand_ins.py`. Rows that the output has are
skipped.

    python benchmarks/measure/pyg_examples.py CHECKOUT --output pyg-examples.csv [--only gcn.py ...]
"""

from __future__ import annotations

import argparse
import ast
import importlib
import itertools
import json
import multiprocessing
import os
import random
import re
import runpy
import signal
import statistics
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import torch_geometric
from pyg_stand_ins import install
from torch.optim import optimizer as hooks

from accelviz.measure.records import source_commit


class Example(NamedTuple):
    """A program of the checkout with its arguments, and how much of it runs."""

    path: str  # below examples/, or a page of docs/source/ and the numbers of its code blocks
    arguments: str = ""
    last_epoch: int | None = None  # stop after the lines of this epoch; None: run to the end
    dropout: bool = True  # False: attention dropout off; its random numbers differ from PyG's


EXAMPLES = (
    Example("agnn.py", last_epoch=10),
    Example("ar_link_pred.py", last_epoch=10),
    Example("argva_node_clustering.py", last_epoch=10),
    Example("autoencoder.py", last_epoch=10),
    Example("autoencoder.py", "--variational", last_epoch=10),
    Example("autoencoder.py", "--linear --variational", last_epoch=10),
    Example("cluster_gcn_ppi.py", last_epoch=2),
    Example("cluster_gcn_reddit.py", last_epoch=5),
    Example("colors_topk_pool.py", last_epoch=5),
    Example("compile/gcn.py", last_epoch=10),
    Example("compile/gin.py", last_epoch=5),
    Example("contrib/pgm_explainer_node_classification.py"),
    Example("contrib/rbcd_attack.py"),
    Example("contrib/rbcd_attack_poisoning.py"),
    Example("cpp/save_model.py"),
    Example("dir_gnn.py", last_epoch=10),
    Example("explain/captum_explainer.py"),
    Example("explain/captum_explainer_hetero_link.py"),
    Example("explain/gnn_explainer.py"),
    Example("explain/gnn_explainer_ba_shapes.py"),
    Example("explain/gnn_explainer_link_pred.py"),
    Example("explain/graphmask_explainer.py"),
    Example("gat.py", last_epoch=10),
    Example("gat.py", last_epoch=20, dropout=False),
    Example("gcn.py", last_epoch=10),
    Example("gcn.py", "--use_gdc", last_epoch=10),
    Example("geniepath.py", "--model GeniePath", last_epoch=5),
    Example("geniepath.py", "--model GeniePathLazy", last_epoch=5),
    Example("glnn.py", last_epoch=10),
    Example("graph_sage_unsup.py", last_epoch=10),
    Example("graph_sage_unsup_ppi.py", last_epoch=3),
    Example("graphland.py", "--name hm-categories --split RL"),
    Example("hetero/bipartite_sage.py", last_epoch=10),
    Example("hetero/bipartite_sage_unsup.py", last_epoch=5),
    Example("hetero/dmgi_unsup.py", last_epoch=10),
    Example("hetero/hetero_conv_dblp.py", last_epoch=10),
    Example("hetero/hetero_link_pred.py", last_epoch=10),
    Example("hetero/hierarchical_sage.py", last_epoch=5),
    Example("hetero/recommender_system.py", last_epoch=3),
    Example("hetero/temporal_link_pred.py", last_epoch=3),
    Example("hetero/to_hetero_mag.py", last_epoch=5),
    Example("hierarchical_sampling.py"),
    Example("infomax_inductive.py", last_epoch=5),
    Example("infomax_transductive.py", last_epoch=10),
    Example("jit/gat.py", last_epoch=10),
    Example("jit/gcn.py", last_epoch=10),
    Example("jit/gin.py", last_epoch=10),
    Example("link_pred.py", last_epoch=10),
    Example("mem_pool.py", last_epoch=5),
    Example("mem_pool.py", last_epoch=5, dropout=False),
    Example("mutag_gin.py", last_epoch=10),
    Example("ogbn_train.py", "--dataset ogbn-arxiv --model sage --num_workers 0", last_epoch=3),
    Example("ogbn_train.py", "--dataset ogbn-arxiv --model gat --num_workers 0", last_epoch=3),
    Example(
        "ogbn_train.py",
        "--dataset ogbn-arxiv --model gat --num_workers 0",
        last_epoch=3,
        dropout=False,
    ),
    Example("ppi.py", last_epoch=5),
    Example("proteins_dmon_pool.py", last_epoch=5),
    Example("proteins_gmt.py", last_epoch=5),
    Example("proteins_mincut_pool.py", last_epoch=5),
    Example("pytorch_ignite/gin.py", last_epoch=5),
    Example("pytorch_lightning/gin.py", last_epoch=2),
    Example("pytorch_lightning/graph_sage.py", last_epoch=2),
    Example("pytorch_lightning/relational_gnn.py", last_epoch=2),
    Example("reddit.py", last_epoch=5),
    Example("rev_gnn.py", last_epoch=3),
    Example("seal_link_pred.py", last_epoch=2),
    Example("shadow.py", last_epoch=5),
    Example("tensorboard_logging.py", last_epoch=10),
    Example("tgn.py", last_epoch=3),
    Example("triangles_sag_pool.py", last_epoch=1),
    Example("unimp_arxiv.py", last_epoch=10),
    Example("unimp_arxiv.py", last_epoch=10, dropout=False),
    Example("upfd.py", "--model GCN", last_epoch=10),
    Example("upfd.py", "--model GAT", last_epoch=10),
    Example("upfd.py", "--model SAGE", last_epoch=10),
    Example("get_started/introduction.rst#16-19"),
    Example("tutorial/heterogeneous.rst#11-12"),
    Example("tutorial/heterogeneous.rst#11-13,12"),
    Example("tutorial/heterogeneous.rst#15-16"),
)
#: PyG's models and the layers that their `init_conv` makes.
MODELS = {
    "GCN": ("GCNConv",),
    "GraphSAGE": ("SAGEConv",),
    "GIN": ("GINConv",),
    "GAT": ("GATConv", "GATv2Conv"),
}
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?(?![\w.]*\w)")
EPOCH = re.compile(r"\bEpoch:? *\[?0*(\d+)")


def redirected(source: str, names: set[str]) -> tuple[str, list[str]]:
    """Return an example that imports the layers `names` from accelviz.torch, and the new lines."""
    lines, changes = source.splitlines(), []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.ImportFrom) and node.module.startswith("torch_geometric.nn")):
            continue
        imports = [alias.name for alias in node.names]
        layers = [name for name in imports if name in names]
        patched = [name for name in imports if name in MODELS and name not in names]
        if not layers and not patched:
            continue
        others = [name for name in imports if name not in layers]
        new = [f"from {node.module} import {', '.join(others)}"] if others else []
        if layers:
            new.append(f"from accelviz.torch import {', '.join(layers)}")
        if patched:
            new.append("import accelviz.torch, torch_geometric.nn.models.basic_gnn as basic_gnn")
            layers = [layer for model in patched for layer in MODELS[model]]
            new += [f"basic_gnn.{layer} = accelviz.torch.{layer}" for layer in layers]
        changes += new[bool(others) :]
        indent = " " * node.col_offset
        lines[node.lineno - 1 : node.end_lineno] = [  # keep the line numbers of tracebacks
            indent + "; ".join(new),
            *[""] * (node.end_lineno - node.lineno),
        ]
    return "\n".join(lines) + "\n", changes


def read_example(checkout: Path, path: str) -> str:
    """Return the source of an example; code blocks of a page are joined, without doctests."""
    if "#" not in path:
        return (checkout / "examples" / path).read_text()
    page, _, numbers = path.partition("#")
    text = (checkout / "docs/source" / page).read_text()
    blocks = re.findall(r"^( *)\.\. code-block:: python\n((?:\1 +.*\n|\s*\n)+)", text, re.M)
    chosen = []
    for part in numbers.split(","):
        first, _, last = part.partition("-")
        chosen += [blocks[index][1] for index in range(int(first), int(last or first) + 1)]
    sources = [textwrap.dedent(re.sub(r"^ *>>>.*\n", "", block, flags=re.M)) for block in chosen]
    return "\n".join(["import torch", *sources])


#: Random numbers of `add_rounding`, apart from those of the example.
ROUNDING = torch.Generator().manual_seed(0)
#: Printed numbers that differ by no more are the same.
SAME = 1e-4


class EpochLimit:
    """Standard output that ends the program when it prints an epoch after the last one."""

    def __init__(self, stream: Any, last_epoch: int) -> None:
        self.stream, self.last_epoch = stream, last_epoch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write `text` unless it belongs to a later epoch."""
        match = EPOCH.search(text)
        if match and int(match[1]) > self.last_epoch:
            raise SystemExit(0)
        return self.stream.write(text)


def run_child(example: Example, name: str, path: Path, record: Path) -> None:
    """Run an example in this process, and write its times and final parameters to `record`."""
    os.setsid()
    os.chdir(path.parent)
    os.environ |= {"MPLBACKEND": "agg", "COLUMNS": "500"}
    for number, stream in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(path.parent / stream, os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    sys.stdout.reconfigure(line_buffering=True)
    install(record.parent)
    times: list[float] = []
    optimizers: list[Any] = []

    def before_step(optimizer: Any, *_: Any) -> None:
        if not any(optimizer is other for other in optimizers):
            optimizers.append(optimizer)
        if name == "rounded":
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        add_rounding(parameter.grad)

    hooks.register_optimizer_step_pre_hook(before_step)
    hooks.register_optimizer_step_post_hook(lambda *_: times.append(time.perf_counter()))
    if not example.dropout:
        _switch_attention_dropout_off()
    if example.last_epoch is not None:
        sys.stdout = EpochLimit(sys.stdout, example.last_epoch)
        if "lightning" in example.path:
            _limit_lightning(example.last_epoch)
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(12345)
    sys.argv = [str(path), *example.arguments.split()]
    sys.path.insert(0, str(path.parent))
    start = time.perf_counter()
    names: dict[str, Any] = {}
    try:
        names = runpy.run_path(str(path), run_name="__main__")
    except SystemExit as stop:
        if stop.code:
            raise
    steps = [later - earlier for earlier, later in itertools.pairwise(times)]
    groups = (group for optimizer in optimizers for group in optimizer.param_groups)
    tensors = [parameter for group in groups for parameter in group["params"]]
    outputs = names.get("out", [])
    tensors += list(outputs.values()) if isinstance(outputs, dict) else []
    content = {
        "seconds": time.perf_counter() - start,
        "ms_step": 1e3 * statistics.median(steps) if steps else None,
        "parameters": sorted(tensor.abs().sum().item() for tensor in tensors),
    }
    record.write_text(json.dumps(content))
    sys.stdout.flush()


def add_rounding(gradient: Any) -> None:
    """Add at most one rounding of the largest element to each, as another order of sums does."""
    unit = 2.0**-23 * gradient.abs().max()
    noise = torch.rand(gradient.shape, generator=ROUNDING)
    gradient.add_(unit * (2 * noise.to(gradient.device) - 1))


def _switch_attention_dropout_off() -> None:
    import accelviz.torch

    def without_dropout(initialize: Any) -> Any:
        def changed(self: Any, *arguments: Any, **options: Any) -> None:
            initialize(self, *arguments, **options)
            self.dropout = 0.0

        return changed

    for name in ("GATConv", "GATv2Conv", "TransformerConv"):
        for library in (torch_geometric.nn, accelviz.torch):
            layer = getattr(library, name)
            layer.__init__ = without_dropout(layer.__init__)


def _limit_lightning(n_epochs: int) -> None:
    import pytorch_lightning

    initialize = pytorch_lightning.Trainer.__init__

    def limited(self: Any, *arguments: Any, **options: Any) -> None:
        options |= {"max_epochs": n_epochs, "devices": 1}
        if not torch.cuda.is_available():
            options |= {"accelerator": "cpu", "strategy": "auto"}
        initialize(self, *arguments, **options)

    pytorch_lightning.Trainer.__init__ = limited


def run(
    example: Example, name: str, sources: dict[str, str], options: argparse.Namespace
) -> dict[str, Any]:
    """Run an example in a process of its own; return its output, times and error."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "examples" / Path(example.path.partition("#")[0]).parent
        folder.mkdir(parents=True)
        for file_name, source in sources.items():
            (folder / file_name).write_text(source)
        record, path = Path(temporary) / "record.json", folder / next(iter(sources))
        # A fork: libraries are imported once, and no thread has been started before.
        process = multiprocessing.get_context("fork").Process(
            target=run_child, args=(example, name, path, record)
        )
        process.start()
        process.join(options.limit)
        status = "runs"
        if process.is_alive():  # The numbers printed so far are compared.
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            status = f"stopped after {options.limit:g} s"
        output, errors = ((folder / stream).read_text() for stream in ("stdout", "stderr"))
        if process.exitcode and status == "runs":
            lines = errors.strip().splitlines() or [f"exit status {process.exitcode}"]
            raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)]
            status = (raised or lines)[-1]
        times = json.loads(record.read_text()) if record.exists() else {}
        ran = process.exitcode in (0, -signal.SIGKILL)
        return {"output": output, "errors": errors, "status": status, "ran": ran, **times}


def printed_numbers(output: str) -> list[float]:
    """Return the numbers of an output without those that are times."""
    lines = [line for line in output.splitlines() if not re.search(r"\btimes?\b|it/s", line, re.I)]
    return [float(number) for line in lines for number in NUMBER.findall(line)]


def difference(first: Any, second: Any) -> float | None:
    """Return the largest difference of two lists of numbers, relative where they exceed 1."""
    pairs = zip(first, second, strict=False)
    return max((abs(a - b) / max(1.0, abs(a)) for a, b in pairs), default=None)


def read_sources(checkout: Path, path: str) -> dict[str, str]:
    """Return an example and the files beside it that it imports, by file name."""
    name = Path(path.partition("#")[0]).with_suffix(".py").name
    sources = {name: read_example(checkout, path)}
    for module in re.findall(r"^from (\w+) import", sources[name], re.M):
        sibling = (checkout / "examples" / path).with_name(f"{module}.py")
        if sibling.exists():
            sources[sibling.name] = sibling.read_text()
    return sources


def measure(example: Example, layers: set[str], options: Any) -> dict[str, Any]:
    """Run an example in every way; return its row of the table."""
    sources = read_sources(options.checkout, example.path)
    changed = {name: redirected(source, layers) for name, source in sources.items()}
    results: dict[str, dict[str, Any]] = {}
    numbers: dict[str, list[float]] = {}
    differences: dict[str, float | None] = {}
    for name in ("pyg", "accelviz", "rounded"):
        if results and not results["pyg"]["ran"]:
            break
        if name == "rounded" and not (differences.get("numbers_differ") or 0) > SAME:
            break
        ours = {file_name: source for file_name, (source, _) in changed.items()}
        result = run(example, name, ours if name == "accelviz" else sources, options)
        results[name], numbers[name] = result, printed_numbers(result["output"])
        if options.logs:
            options.logs.mkdir(exist_ok=True)
            stem = re.sub(r"\W+", "-", f"{example.path} {example.arguments} {example.dropout}")
            text = "\n--- stderr ---\n".join([result["output"], result["errors"]])
            (options.logs / f"{stem}.{name}.txt").write_text(text)
        if name != "pyg" and result["ran"]:
            suffix = "_by_rounding" if name == "rounded" else ""
            sums = results["pyg"].get("parameters", []), result.get("parameters", [])
            differences[f"numbers_differ{suffix}"] = difference(numbers["pyg"], numbers[name])
            differences[f"parameters_differ{suffix}"] = difference(*sums)
    pyg, accelviz = results["pyg"], results.get("accelviz", {})
    warnings = {
        line.split("Warning: ")[-1]
        for line in accelviz.get("errors", "").splitlines()
        if "Warning: " in line and "accelviz" in line
    }
    return {
        **key_of(example),
        "epochs": example.last_epoch or "all",
        "new_lines": "; ".join(line for _, lines in changed.values() for line in lines),
        "pyg": pyg["status"],
        "accelviz": accelviz.get("status", ""),
        "n_numbers": len(numbers["pyg"]),
        "n_numbers_accelviz": len(numbers.get("accelviz", [])),
        **differences,
        **{f"{name}_ms_step": results.get(name, {}).get("ms_step") for name in ("pyg", "accelviz")},
        **{f"{name}_s": results.get(name, {}).get("seconds") for name in ("pyg", "accelviz")},
        "warnings": "; ".join(sorted(warnings)),
    }


def key_of(example: Example) -> dict[str, str]:
    """Return the columns that tell rows apart."""
    dropout = "as written" if example.dropout else "none in attention"
    return {"example": example.path, "arguments": example.arguments, "dropout": dropout}


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="paths below examples/")
    parser.add_argument("--limit", type=float, default=300, help="seconds a run may take")
    parser.add_argument("--epochs", type=int, help="stop every example after this epoch")
    parser.add_argument("--logs", type=Path, help="folder for the outputs of all runs")
    options = parser.parse_args()
    for name in ("explain", "loader", "nn", "transforms"):
        importlib.import_module(f"torch_geometric.{name}")
    import accelviz.torch

    layers = {name for name in accelviz.torch.__all__ if hasattr(torch_geometric.nn, name)}
    rows = []
    if options.output.exists():
        rows = pd.read_csv(options.output, keep_default_na=False).to_dict("records")
    for example in EXAMPLES:
        is_done = any(key_of(example).items() <= row.items() for row in rows)
        if is_done or (options.only and example.path not in options.only):
            continue
        if options.epochs:
            example = example._replace(last_epoch=options.epochs)
        rows.append(measure(example, layers, options) | {"commit": source_commit()})
        print(" | ".join(str(value) for value in rows[-1].values()), flush=True)
        pd.DataFrame(rows).to_csv(options.output, index=False)


if __name__ == "__main__":
    main()
