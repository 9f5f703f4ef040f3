"""Tests that every strategy inherits on every device, and their parametrization.

Nothing here depends on a certain operation or strategy. A case is a graph with the operation's
widths. Its inputs and its float64 oracles serve all strategies and column counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from accelviz import measure
from accelviz.devices import Device, find_device
from accelviz.errors import ArgumentError
from accelviz.graph import Graph
from accelviz.measure.accuracy import Oracle
from accelviz.measure.checks import poison
from accelviz.partition.scheme import Library
from accelviz.plans import Operand, Operation, Plan, Strategy
from accelviz.strategies import REGISTRY, SDDMM, SPMM, find_strategy
from tests.graphs import COLUMNS, MADE, is_large

#: Sizes of widths other than the column count, used in turn; None is the default.
OTHER_WIDTHS = (None, 3, 2)


def has_kernel(strategy: Strategy) -> bool:
    """Return whether a strategy has kernels of its own, instead of a library's."""
    description = strategy.described(MADE["one_node"](), 1)  # without a plan, as imports need this
    return description is None or not isinstance(description.scheme, Library)


def case_name(value: Any) -> str | None:
    """Return the name of a test case: `spmm-accel_gcn` for a strategy, `a=1 b=2` for a setting."""
    if isinstance(value, Strategy):
        return f"{value.operation.name}-{value.name}"
    if isinstance(value, dict):
        return " ".join(f"{key}={setting}" for key, setting in value.items()) or "defaults"
    return None


#: Strategies of every operation with kernels of their own.
KERNELS = [strategy for strategy in REGISTRY if has_kernel(strategy)]
#: Names of the SpMM strategies with kernels of their own.
SPMM_KERNELS = [strategy.name for strategy in KERNELS if strategy.operation is SPMM]


#: Strategies that `make test` runs in tests of each_strategy(daily=False): one for each kind of
#: partition scheme and operation.
DAILY = ("spmm-accel_gcn", "spmm-lane_groups", "sddmm-lane_groups", "gat-lane_groups")


def each_strategy(strategies: Iterable[Strategy] = KERNELS, *, daily: bool = True) -> Any:
    """Parametrize a test by strategy; without `daily`, those not in DAILY are marked `long`."""
    return pytest.mark.parametrize(
        "strategy",
        [
            pytest.param(
                strategy,
                id=case_name(strategy),
                marks=() if daily or case_name(strategy) in DAILY else pytest.mark.long,
            )
            for strategy in strategies
        ],
    )


def each_graph(names: Iterable[str]) -> Any:
    """Parametrize a test by graph; all tests of a graph run in one process and share oracles."""
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]
    )


def fits_memory(strategy: Strategy, name: str) -> bool:
    """Return whether a strategy's memory suffices for a graph.

    A convolution's dense product would have a tile for almost each nonzero of a graph, and a
    product of bits has a bit for each pair of nodes.
    """
    if strategy.operation.name == "bit_product":
        return not is_large(name)
    return strategy.name != "strided_windows" or name in MADE


def each_case(
    names: Iterable[str],
    *,
    sample: Callable[[str], int] = lambda name: 4 if is_large(name) else 1,
    others: int | None = None,
    turns: int = 3,
) -> Any:
    """Parametrize a test by strategy and graph.

    SpMM and SDDMM run on every graph. Other operations share partition schemes and device code, so
    each of their strategies runs on one graph in `turns`, in turn. `sample(name)` is the n of
    `sample(n)` for a graph; `others` replaces it beyond SpMM and SDDMM. On large graphs, cases
    beyond SpMM and SDDMM are `long` if they are sampled, because their references take seconds.
    Cases of a graph run in one process and share oracles; other operations run in one process
    because Numba takes 20 s to compile their references.
    """
    pairs = []
    for row, name in enumerate(names):
        every = sample(name)
        for column, strategy in enumerate(KERNELS):
            common = strategy.operation in (SPMM, SDDMM)
            if common or (row + column) % turns == 0:
                marks = [pytest.mark.xdist_group(name if common else "attention")]
                if not fits_memory(strategy, name):
                    continue
                slow = every > 1 and not common and is_large(name)
                step = every if common or others is None else others
                marks.append(pytest.mark.long if slow else pytest.mark.sample(step))
                case = f"{name}-{case_name(strategy)}"
                pairs.append(pytest.param(strategy, name, marks=marks, id=case))
    return pytest.mark.parametrize(("strategy", "name"), pairs)


@functools.lru_cache(maxsize=8)
def with_random_weights(graph: Graph) -> Graph:
    """Return the graph with random signed weights; weights of one would hide mistakes."""
    return measure.random_weights(graph, seed=graph.nnz)


def changed_setting(operand: Operand) -> Any:
    """Return a value of a setting that is not its default."""
    if isinstance(operand.default, tuple):
        return [word + 3 + i for i, word in enumerate(operand.default)]
    assert operand.default is not None
    return operand.default + 0.3


class Case:
    """Random inputs of an operation on a graph, with the expected results of two runs.

    The first run has the graph's weights and the default settings, the second has others. A plan
    that keeps weights, settings or results of the first run fails in the second.
    """

    def __init__(self, graph: Graph, operation: Operation, widths: dict[str, int]) -> None:
        self.operation = operation
        self.dense = measure.random_inputs(operation, graph.pattern, widths, seed=graph.nnz)
        others: dict[str, Any] = {one.name: changed_setting(one) for one in operation.settings}
        if any(operand.weights for operand in operation.inputs):
            others["values"] = measure.random_weights(graph, seed=graph.nnz + 1).values
        self.runs = [({}, Oracle(graph, *self.dense, operation=operation))]
        self.runs.append(self.runs[0])
        if others:
            self.runs[1] = others, Oracle(graph, *self.dense, operation=operation, **others)

    def check(self, plan: Plan, executor: Device) -> None:
        """Run a plan with both, with outputs that are poisoned with NaN."""
        ready = executor.prepare(plan)
        dense = [
            array[tuple(slice(n) for n in operand.shape(plan.sizes))]
            for array, operand in zip(self.dense, self.operation.dense, strict=True)
        ]
        for number, (others, oracle) in enumerate(self.runs):
            operands = ready.placed(self.operation.named(*dense, **others))
            out = ready.outputs()
            for array in out.values():
                poison(array)
            error = oracle.error(ready.run(operands, out), plan.arithmetic)
            assert error <= 1, f"{plan} on {executor.name}, run {number}: {error:.3g} of the bound"


@functools.lru_cache(maxsize=1)  # of a large graph it holds half a gigabyte
def case(graph: Graph, operation: Operation, **widths: int) -> Case:
    """Return a cached case; consecutive tests of a graph share it."""
    return Case(graph, operation, widths)


def all_widths(operation: Operation, columns: Iterable[int]) -> list[dict[str, int]]:
    """Return widths for each column count; other widths take the values of OTHER_WIDTHS in turn."""
    cases = []
    for i, n_cols in enumerate(columns):
        size = OTHER_WIDTHS[i % len(OTHER_WIDTHS)]
        others = {name: size or default for name, default in operation.widths.items() if default}
        cases.append({"n_cols": n_cols, **others})
    return cases


def columns_for(strategy: Strategy, columns: Sequence[int]) -> tuple[int, ...]:
    """Return the column counts to test a strategy with: all or some of `columns`.

    Each column count compiles each kernel of a plan. Operations beyond SpMM and SDDMM share their
    kernels and take turns, so that together they cover all column counts. Strategies on tensor
    cores are slow to emulate and get a third, which includes every width of a load.
    """
    if strategy.operation in (SPMM, SDDMM):
        on_tensor_cores = strategy.plan(MADE["one_node"](), 1).arithmetic != "float32"
        return tuple(columns)[:: 3 if on_tensor_cores else 1]
    turn = [one for one in KERNELS if one.name == strategy.name].index(strategy) % 8
    return tuple(columns[turn::8]) if len(columns) > 3 else (8, 17)[: len(columns)]


def check_results(
    graph: Graph,
    strategy: str | Strategy,
    device: str | Device,
    columns: Iterable[int] = COLUMNS,
    **parameters: Any,
) -> None:
    """Check the results for every column count against float64, with two sets of weights."""
    graph = with_random_weights(graph)
    operation = strategy.operation if isinstance(strategy, Strategy) else SPMM
    strategy = find_strategy(strategy, operation)
    executor = find_device(device) if isinstance(device, str) else device
    wanted = all_widths(operation, columns)
    widest = {name: max(widths[name] for widths in wanted) for name in operation.widths}
    for widths in wanted:
        # If columns are independent, the oracle of the widest case serves all.
        known = dict(widths)
        if operation.independent:
            known[operation.independent] = widest[operation.independent]
        try:
            plan = strategy.plan(graph, **widths, **parameters)
        except ArgumentError as error:  # a library may support only one head
            if widths.get(error.argument, 1) > 1:
                continue
            raise
        case(graph, operation, **known).check(plan, executor)


def central_differences(function: Callable[[Any], float], array: Any, step: float = 1e-5) -> Any:
    """Return the central differences of a scalar function by each entry of a float64 array."""
    result = np.empty(array.shape)
    for index in np.ndindex(array.shape):
        above, below = array.copy(), array.copy()
        above[index] += step
        below[index] -= step
        result[index] = (function(above) - function(below)) / (2 * step)
    return result
