"""Process of torch_training.py: builds the contenders of a case, and times them in turn.

Its argument is JSON: cases, device, number of blocks, tiny. It prints a JSON object a line: `start`
before it builds a contender, `row` with a contender's result, `done` at the end of a case.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional
from torch_workloads import as_form, batches, features, network, open_edges

#: Exit status after a failure that was reported, and that leaves the process unusable.
RESTART = 77
#: Steps before timing; a captured step is captured after three.
WARMUP, BEFORE_CAPTURE = 5, 3
#: A block of steps takes about this many seconds, a case's timing this many a contender.
BLOCK_SECONDS, MAX_STEPS, SECONDS = 0.02, 20, 1.2
#: Largest relative difference of two losses, of the first or the fifth step, that counts as equal.
TOLERANCE = 1e-2
now = time.perf_counter


class CaptureError(RuntimeError):
    """The capture of a step failed, and its process with it."""


class Contender(NamedTuple):
    """A step, the function from a number to its batch, and what was measured."""

    step: Callable[[Any], Any]
    batch: Callable[[int], Any]
    steps: int
    row: dict[str, Any]
    times: list[tuple[float, float]]


def main() -> None:
    options = json.loads(sys.argv[1])
    device = options["device"]
    for case in options["cases"]:
        if case["command"] == "compiled":
            torch._dynamo.reset()
            torch._dynamo.config.recompile_limit = 64  # the forms of a case share code
        graph_pool.cache_clear()
        contenders = []
        for names in case["contenders"]:
            emit(start=names)
            try:
                contenders.append(build(case, names, device, options["tiny"]))
            except Exception as error:
                emit(row={**names, "error": describe(error)})
                if isinstance(error, CaptureError) or not usable(device):
                    sys.exit(RESTART)
            collect(device)
        emit(start=None)
        measure(contenders, options["blocks"], device)
        for contender in contenders:
            emit(row=contender.row)
        emit(done=True)
        if not usable(device):
            sys.exit(RESTART)
        contenders.clear()
        collect(device)


def emit(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def describe(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def usable(device: str) -> bool:
    """Return whether the GPU and its random numbers still work."""
    try:
        torch.manual_seed(0)
        torch.rand(1, device=device).item()
    except RuntimeError:
        return False
    return True


def collect(device: str) -> None:
    """Free the memory of what is gone."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def memory(device: str, peak: bool = False) -> float:
    """Return bytes in use, or at the peak, of PyTorch's and of CuPy's memory pool."""
    if device == "cpu":
        return float("nan")
    size = torch.cuda.max_memory_allocated() if peak else torch.cuda.memory_allocated()
    cupy = sys.modules.get("cupy")
    return size + (cupy.get_default_memory_pool().total_bytes() if cupy else 0)


# Steps.


def training_step(net: Any, command: str) -> Callable[[Any], Any]:
    """Return the step that a person writes: forward, cross entropy, backward, Adam."""
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, capturable=command == "captured")
    model = torch.compile(net) if command == "compiled" else net

    def step(batch: Any) -> Any:
        arguments, labels = batch
        optimizer.zero_grad(set_to_none=True)
        scores = model(*arguments)
        if scores.size(0) != labels.numel():  # rows beyond the seeds of a mini-batch
            scores = scores[: labels.numel()]
        loss = functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@functools.lru_cache
def output_gradient(shape: tuple[int, ...], device: torch.device) -> Any:
    generator = torch.Generator(device).manual_seed(2)
    return torch.randn(shape, generator=generator, device=device)


def layer_pass(net: Any, with_backward: bool) -> Callable[[Any], Any]:
    """Return a layer's forward pass, or forward and backward pass for x and all parameters."""
    parameters = [*net.parameters()]

    def step(batch: Any) -> Any:
        (x, edges), _ = batch
        out = net(x, edges)
        if not with_backward:
            return out.detach()
        gradient = output_gradient(out.shape, out.device)
        return torch.autograd.grad(out, [x, *parameters], gradient)[0]

    return step


def captured(step: Callable[[Any], Any], batch: Any, pool: Any) -> Callable[[Any], Any]:
    """Return the replay of a step that was warmed up on a side stream.

    Raises CaptureError, or RuntimeError if the step waits for the GPU, which ends no process.
    """
    torch.cuda.set_sync_debug_mode("error")
    try:
        step(batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, pool=pool):
            result = step(batch)
    except Exception as error:
        raise CaptureError(describe(error)) from error

    def replay(_: Any) -> Any:
        graph.replay()
        return result

    replay.step = step  # type: ignore[attr-defined]  # its parameters live as long as the graph
    return replay


@functools.cache
def graph_pool() -> Any:
    """Return the memory pool of a case's captured graphs, which run one after another."""
    return torch.cuda.graph_pool_handle()


# Contenders.


def build(case: dict[str, Any], names: dict[str, Any], device: str, tiny: bool) -> Contender:
    """Build a contender, and take the steps before its timing."""
    command, form = case["command"], names["form"]
    if command in ("minibatch", "graphs", "changing"):
        sample = batches(command, case["graph"], device, tiny)
        (x, edges, *_), _ = sample(0, form)
        edges = edges.edge_index if form == "blocks" else edges
        about = {"nodes": x.size(0), "edges": edges.size(1)}
        base = reset_memory(device)

        def batch(number: int) -> Any:
            return sample(number, form)
    else:
        edge_index, n_nodes = open_edges(case["graph"], device)
        x, labels = features(n_nodes, device)
        if command == "host":
            x = x.detach().requires_grad_()
        about = {"nodes": n_nodes, "edges": edge_index.size(1)}
        base = reset_memory(device)
        constant = (x, as_form(edge_index, n_nodes, form)), labels

        def batch(number: int) -> Any:
            return constant

    net = network(case, names["library"], form).to(device)
    if command == "host":
        step = layer_pass(net, names["part"] != "forward")
    else:
        step = training_step(net, command)
    losses, seconds = [], []
    stream = side_stream() if command == "captured" else contextlib.nullcontext()
    with stream:
        for number in range(BEFORE_CAPTURE):
            take_step(step, batch, number, device, losses, seconds)
    if command == "captured":
        step = captured(step, batch(0), graph_pool())
        losses.append(float("nan"))  # of the step that looked for waits
    while len(losses) < WARMUP:
        take_step(step, batch, len(losses), device, losses, seconds)
    row = {**names, **about, "first_ms": seconds[0] * 1e3}
    row |= {"first_loss": losses[0], "loss": losses[-1]}
    row["peak_mib"] = (memory(device, peak=True) - base) / 2**20
    steps = int(np.clip(BLOCK_SECONDS / min(seconds[1:]), 1, 2 if tiny else MAX_STEPS))
    return Contender(step, batch, steps, row, [])


def reset_memory(device: str) -> float:
    """Reset the peak of memory; return bytes in use."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    return memory(device)


@contextlib.contextmanager
def side_stream() -> Any:
    """Run on another stream, as steps have to before their capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream().wait_stream(stream)


def take_step(step: Any, batch: Any, number: int, device: str, losses: Any, seconds: Any) -> None:
    """Take a step; append its loss, or the mean square of its matrix, and its seconds."""
    wait(device)
    start = now()
    result = step(batch(number))
    wait(device)
    seconds.append(now() - start)
    losses.append(float(result if result.dim() == 0 else result.square().mean()))


def measure(contenders: list[Contender], blocks: int, device: str) -> None:
    """Time blocks of all contenders in turn, and complete their rows."""
    start = now()
    for block in range(blocks):
        for contender in contenders[:: -1 if block % 2 else 1]:
            if "error" not in contender.row:
                try:
                    contender.times.append(time_block(contender, block, device))
                except Exception as error:
                    contender.row["error"] = describe(error)
                    collect(device)
        if block >= 2 and now() - start > SECONDS * len(contenders):
            break
    for contender in contenders:
        row = contender.row
        if "error" in row:
            continue
        total, host = np.array(contender.times).T * 1e3
        low, median, high = np.percentile(total, [10, 50, 90])
        row |= {"median_ms": median, "p10_ms": low, "p90_ms": high, "host_ms": np.median(host)}
        row |= {"blocks": len(total), "steps": contender.steps}
        reference = reference_of(row, contenders)
        pairs = [(row[name], reference[name]) for name in ("first_loss", "loss")]
        row["difference"] = max(abs(one - other) / abs(other) for one, other in pairs)
        if not row["difference"] <= TOLERANCE:
            row["error"] = f"losses {pairs[0][0]}, {pairs[1][0]}; PyG {pairs[0][1]}, {pairs[1][1]}"


def reference_of(row: dict[str, Any], contenders: list[Contender]) -> dict[str, Any]:
    """Return the row of PyG's same form, or of its first form; the row itself if there is none."""
    rows = [other.row for other in contenders if other.row["part"] == row["part"]]
    rows = [other for other in rows if other["library"] == "PyG"]
    same = [other for other in rows if other["form"] == row["form"]]
    return (same or rows or [row])[0]


def time_block(contender: Contender, block: int, device: str) -> tuple[float, float]:
    """Return seconds a step, and those in which the host queued it, of a block of new batches."""
    numbers = range(block * MAX_STEPS, block * MAX_STEPS + contender.steps)
    batch = contender.batch
    if contender.row["part"] == "without sampling":
        batches_ahead = {number: batch(number) for number in numbers}
        batch = batches_ahead.pop
    wait(device)
    start = now()
    for number in numbers:
        contender.step(batch(number))
    queued = now()
    wait(device)
    return (now() - start) / contender.steps, (queued - start) / contender.steps


if __name__ == "__main__":
    main()
