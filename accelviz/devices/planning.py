"""The plan of a call: the caller's, the graph's, or one made for a matrix on the GPU."""

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

#: Names that callers try for `values`.
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
    """Return the plan, ready on the chosen device, and the operands of its run."""
    missing = [one.name for one in operation.dense if operands.get(one.name) is None]
    unknown = [name for name in operands if name not in operation.operands]
    if missing or unknown:
        problem = f"{operation.name} " + ("needs it" if missing else "has no such operand")
        names = ", ".join(one.name for one in operation.inputs)
        raise ArgumentError((missing or unknown)[0], problem, names)
    dense = {one.name: as_operand(one.name, operands[one.name]) for one in operation.dense}
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
    chosen = find_strategy(strategy or operation.fastest, operation)
    widths = operation.widths_of(operands)
    if "n_cols" not in {*widths, *parameters}:
        problem = f"packed operands of {operation.name} do not tell it"
        raise ArgumentError("n_cols", problem, "parameters={'n_cols': ...}, or a Plan")
    on_gpu = device_pattern(graph)
    if on_gpu is not None:
        pattern, values = on_gpu
        holder = choose("auto", [pattern.column_indices])
        if device not in ("auto", holder.name):
            problem = f"{device!r} for a matrix that lies on the GPU"
            raise ArgumentError("device", problem, f"{holder.name!r}, or {_ON_HOST}")
        plan = device_plan(pattern, strategy=chosen, **widths, **parameters)
        arrays.append(pattern.column_indices)
    else:
        loaded = load_graph(graph)
        plan = plan_of(loaded, chosen, {**widths, **parameters})
        values = loaded.values
    if operands.get("values") is None:
        operands["values"] = values
    return ready(plan, choose(device, arrays, plan)), operands


def short_run(graph: Any, X: Any) -> Any:
    """Return the short run that an earlier call of `spmm` left for arrays like X, or None."""
    kind: Any = type(graph)
    if kind is Plan:
        return graph.ready.latest.get(type(X))
    shape: Any = getattr(X, "shape", ())
    if kind is Graph and len(shape) == 2:
        return graph.store.latest.get((type(X), shape[1]))
    return None


def leave_short_run(graph: Any, X: Any, plan: ReadyPlan) -> None:
    """Leave a plan's short run, if it has one, for later calls of `spmm`."""
    run = getattr(plan, "run_single", None)
    if run is None or not isinstance(X, plan.device.array_type):
        return
    array: Any = X
    if isinstance(graph, Plan):
        graph.ready.latest[type(array)] = run
    elif isinstance(graph, Graph):
        graph.store.latest[type(array), array.shape[1]] = run


def plan_of(graph: Any, strategy: Strategy, settings: dict[str, Any]) -> Plan:
    """Return the plan from the graph's store, made there if it is new."""
    key = (strategy, tuple(sorted(settings.items())))
    try:
        hash(key)
    except TypeError:  # a parameter that cannot be a key; the strategy says what is wrong with it
        return strategy.plan(graph, **settings)
    return graph.store.get(key, lambda: strategy.plan(graph, **settings))


def device_plan(
    pattern: Pattern, n_cols: int, strategy: str | Strategy = SPMM.fastest, **parameters: Any
) -> Plan:
    """Plan an SpMM of a matrix that lies on a device, there: the host neither reads nor sorts it.

    Parameters
    ----------
    pattern : Pattern
        Of the device's arrays, as `devices.cuda.device_pattern` and `uploaded` give it.
    n_cols, **parameters
        As of `plan`.
    strategy : str or Strategy
        One that plans there: `lane_groups`.

    Returns
    -------
    Plan
        As `plan` makes it on the host, but with its arrays on the device. Its runs have to bring
        `values`.

    Raises
    ------
    ArgumentError, PartitionError
        As `plan` does, and if the strategy plans on the host alone.
    """
    known = strategy if isinstance(strategy, Strategy) else find_strategy(strategy)
    if not _plans_on_devices(known):
        names = [
            f"{one.name!r} of {one.operation.name}" for one in REGISTRY if _plans_on_devices(one)
        ]
        problem = f"{known.name!r} of {known.operation.name} for a matrix that lies on the GPU"
        raise ArgumentError("strategy", problem, f"{', '.join(names)}, or {_ON_HOST}")
    widths, settings = known.checked(n_cols, parameters)
    return known.build_on(choose("auto", [pattern.column_indices]), pattern, widths, settings)


def _plans_on_devices(strategy: Strategy) -> bool:
    return type(strategy).build_on is not Strategy.build_on
