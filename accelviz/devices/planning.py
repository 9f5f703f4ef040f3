"""The plan of a call such as `spmm`: given by the caller, stored with the graph, or new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelviz.datasets import load_graph
from accelviz.devices.choice import as_operand, choose
from accelviz.devices.cuda import device_pattern
from accelviz.devices.ready_plan import ReadyPlan, ready
from accelviz.errors import ArgumentError
from accelviz.graph import Graph, Pattern
from accelviz.plans import Operation, Plan, Strategy
from accelviz.strategies import REGISTRY, SPMM, find_strategy

#: Unknown parameter names for which the error message recommends `values`.
_LIKE_VALUES = ("value", "weight", "weights")
_ON_HOST = "the matrix on the host, as from A.get()"


def prepared(
    operation: Operation,
    graph: Any,
    operands: Mapping[str, Any],
    strategy: str | Strategy | None,
    device: str,
    parameters: dict[str, Any],
) -> tuple[ReadyPlan, dict[str, Any]]:
    """Return the plan, ready on the chosen device, and the operands of the run."""
    dense_names = [operand.name for operand in operation.dense]
    missing = [name for name in dense_names if operands.get(name) is None]
    unknown = [name for name in operands if name not in operation.operands]
    if missing or unknown:
        problem = f"{operation.name} " + ("needs it" if missing else "has no such operand")
        names = ", ".join(operand.name for operand in operation.inputs)
        raise ArgumentError((missing or unknown)[0], problem, names)
    dense = {name: as_operand(name, operands[name]) for name in dense_names}
    operands, arrays = {**operands, **dense}, [*dense.values()]
    if isinstance(graph, Plan):
        if graph.operation != operation:
            raise ArgumentError("plan", f"a plan of {graph.operation.name}", operation.name)
        if parameters or strategy not in (None, graph.name, graph.strategy):
            problem = "given beside a Plan, which has its own"
            raise ArgumentError("strategy", problem, "one or the other")
        return ready(graph, choose(device, arrays, graph)), operands
    if strategy is None and parameters:
        names = ", ".join(parameters)
        fix = "values=... for weights" if names in _LIKE_VALUES else "strategy=... beside it"
        raise ArgumentError(names, "given without a strategy", fix)
    on_cpu = operation.fastest_on_cpu and choose(device, arrays).name == "cpu"
    default = operation.fastest_on_cpu if on_cpu else operation.fastest
    chosen = find_strategy(strategy or default, operation)
    widths = operation.widths_of(operands)
    if "n_cols" not in {*widths, *parameters}:
        problem = f"packed operands of {operation.name} do not tell it"
        raise ArgumentError("n_cols", problem, "parameters={'n_cols': ...}, or a Plan")
    gpu_matrix = device_pattern(graph)
    if gpu_matrix is not None:
        pattern, values = gpu_matrix
        gpu = choose("auto", [pattern.column_indices])
        if device not in ("auto", gpu.name):
            problem = f"{device!r} for a matrix that lies on the GPU"
            raise ArgumentError("device", problem, f"{gpu.name!r}, or {_ON_HOST}")
        plan = device_plan(pattern, strategy=chosen, **widths, **parameters)
        arrays.append(pattern.column_indices)
    else:
        loaded = load_graph(graph)
        plan = plan_of(loaded, chosen, {**widths, **parameters})
        values = loaded.values
    if operands.get("values") is None:
        operands["values"] = values
    return ready(plan, choose(device, arrays, plan)), operands


def short_run(graph: Any, X: Any, device: str) -> Any:
    """Return the `run_single` that an earlier `spmm` stored for arrays like X, or None."""
    kind: Any = type(graph)
    if kind is Plan:
        return graph.ready.latest.get((type(X), device))
    shape: Any = getattr(X, "shape", ())
    if kind is Graph and len(shape) == 2:
        weights, run = graph.store.latest.get((type(X), shape[1], device), (None, None))
        return run if weights is graph.values else None  # copies with other weights share the store
    return None


def leave_short_run(graph: Any, X: Any, device: str, plan: ReadyPlan) -> None:
    """Store a plan's `run_single`, if it has one, for `short_run` in later calls of `spmm`."""
    run = getattr(plan, "run_single", None)
    if run is None or not isinstance(X, plan.device.array_type):
        return
    array: Any = X
    if isinstance(graph, Plan):
        graph.ready.latest[type(array), device] = run
    elif isinstance(graph, Graph) and plan.operands.graph_weights is graph.values:
        graph.store.latest[type(array), array.shape[1], device] = graph.values, run


def plan_of(graph: Any, strategy: Strategy, settings: dict[str, Any]) -> Plan:
    """Return the plan from the graph's store; build and store it if it is new."""
    key = (strategy, tuple(sorted(settings.items())))
    try:
        hash(key)
    except TypeError:  # an unhashable value, for which `plan` raises an error
        return strategy.plan(graph, **settings)
    return graph.store.get(key, lambda: strategy.plan(graph, **settings))


def device_plan(
    pattern: Pattern, n_cols: int, strategy: str | Strategy = SPMM.fastest, **parameters: Any
) -> Plan:
    """Plan an SpMM on the device that has the matrix, without a copy to the host.

    Parameters
    ----------
    pattern : Pattern
        Pattern with arrays on a device, from `devices.cuda.device_pattern` or `uploaded`.
    n_cols, **parameters
        As in `plan`.
    strategy : str or Strategy
        A strategy with `build_on`: `lane_groups`.

    Returns
    -------
    Plan
        The same plan as `plan` returns, with its arrays on the device. `values` is a required
        operand of its runs.

    Raises
    ------
    ArgumentError, PartitionError
        As `plan` does, and if the strategy has no `build_on`.
    """
    chosen = strategy if isinstance(strategy, Strategy) else find_strategy(strategy)
    if not _plans_on_devices(chosen):
        able = filter(_plans_on_devices, REGISTRY)
        names = ", ".join(f"{one.name!r} of {one.operation.name}" for one in able)
        problem = f"{chosen.name!r} of {chosen.operation.name} for a matrix that lies on the GPU"
        raise ArgumentError("strategy", problem, f"{names}, or {_ON_HOST}")
    widths, settings = chosen.checked(n_cols, parameters)
    return chosen.build_on(choose("auto", [pattern.column_indices]), pattern, widths, settings)


def _plans_on_devices(strategy: Strategy) -> bool:
    return type(strategy).build_on is not Strategy.build_on
