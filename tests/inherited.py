"""What every strategy must hold on every device: checked here once, run from the test modules.

Nothing here names an operation or a strategy. A case is a graph and the operation's widths; its
inputs and its oracles are made once and serve all strategies and column counts.
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

#: What widths other than the column count take in turn, beside their default.
OTHER_WIDTHS = (None, 3, 2)


def has_kernel(strategy: Strategy) -> bool:
    """Whether it is not a library's."""
    description = strategy.described(MADE["one_node"](), 1)  # no plan: modules ask for this
    return description is None or not isinstance(description.scheme, Library)


def case_name(value: Any) -> str | None:
    """How pytest calls a strategy, `spmm-accel_gcn`, or a setting, `a=1 b=2`."""
    if isinstance(value, Strategy):
        return f"{value.operation.name}-{value.name}"
    if isinstance(value, dict):
        return " ".join(f"{key}={setting}" for key, setting in value.items()) or "defaults"
    return None


#: The strategies that are not a library's, of every operation.
KERNELS = [strategy for strategy in REGISTRY if has_kernel(strategy)]
#: Their names, of those that multiply.
SPMM_KERNELS = [strategy.name for strategy in KERNELS if strategy.operation is SPMM]


#: Those whose partitions have the most cases, one for each kind of operation; the others come with
#: them where what is tested is not theirs, but takes long: on demand.
DAILY = ("spmm-accel_gcn", "spmm-lane_groups", "sddmm-lane_groups", "gat-lane_groups")


def each_strategy(strategies: Iterable[Strategy] = KERNELS, *, daily: bool = True) -> Any:
    """Run a test for each of them; without `daily` most are `long`."""
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
    """Run a test for each graph; one process runs all of a graph, so that oracles are shared."""
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]
    )


def is_for(strategy: Strategy, name: str) -> bool:
    """Whether a graph is one that a strategy's memory is made for.

    Of a graph almost each nonzero is a tile of a convolution's dense product, and a product of bits
    has a bit for each pair of nodes.
    """
    if strategy.operation.name == "bit_product":
        return not is_large(name)
    return strategy.name != "strided_windows" or name in MADE


def each_case(
    names: Iterable[str],
    *,
    sample: Callable[[str], int] = lambda name: 4 if is_large(name) else 1,
    others: int | None = None,
) -> Any:
    """Run a test for each strategy on each graph, those beyond SpMM and SDDMM on every third graph.

    The others share partitions and device code with each other: each has every third graph, the
    next one another third. `sample` gives how many cases of a graph one case of `make test` stands
    for (`others` beyond SpMM and SDDMM); on a large graph `make test` has those of SpMM and SDDMM
    alone, as references of attention take seconds there. One process runs all of a graph, so that
    oracles are shared, and one all of what needs attention's functions, which Numba compiles in
    20 s.
    """
    pairs = []
    for row, name in enumerate(names):
        every = sample(name)
        for column, strategy in enumerate(KERNELS):
            common = strategy.operation in (SPMM, SDDMM)
            if common or (row + column) % 3 == 0:
                marks = [pytest.mark.xdist_group(name if common else "attention")]
                if not is_for(strategy, name):
                    continue
                slow = every > 1 and not common and is_large(name)
                step = every if common or others is None else others
                marks.append(pytest.mark.long if slow else pytest.mark.sample(step))
                case = f"{name}-{case_name(strategy)}"
                pairs.append(pytest.param(strategy, name, marks=marks, id=case))
    return pytest.mark.parametrize(("strategy", "name"), pairs)


@functools.lru_cache(maxsize=8)
def weighted(graph: Graph) -> Graph:
    """The graph with random signed weights; the bundled ones are all ones, which hide mistakes."""
    return measure.random_weights(graph, seed=graph.nnz)


def other_setting(operand: Operand) -> Any:
    """A setting that is not the default."""
    if isinstance(operand.default, tuple):
        return [word + 3 + i for i, word in enumerate(operand.default)]
    assert operand.default is not None
    return operand.default + 0.3


class Case:
    """Random inputs of an operation on a graph, and what must come out, twice.

    The first run is with the graph's own weights and the default settings, the second with others:
    a plan that keeps some, or something of the first run, is wrong in the second.
    """

    def __init__(self, graph: Graph, operation: Operation, widths: dict[str, int]) -> None:
        self.operation = operation
        self.dense = measure.random_inputs(operation, graph.pattern, widths, seed=graph.nnz)
        others: dict[str, Any] = {one.name: other_setting(one) for one in operation.settings}
        if any(operand.weights for operand in operation.inputs):
            others["values"] = measure.random_weights(graph, seed=graph.nnz + 1).values
        self.runs = [({}, Oracle(graph, *self.dense, operation=operation))]
        self.runs.append(self.runs[0])
        if others:
            self.runs[1] = others, Oracle(graph, *self.dense, operation=operation, **others)

    def check(self, plan: Plan, executor: Device) -> None:
        """Run a plan with both, into outputs poisoned with NaN."""
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
    """The case, made once while tests of the same graph follow each other."""
    return Case(graph, operation, widths)


def all_widths(operation: Operation, columns: Iterable[int]) -> list[dict[str, int]]:
    """The column counts, with every other width of the operation at one of a few sizes in turn."""
    cases = []
    for i, n_cols in enumerate(columns):
        size = OTHER_WIDTHS[i % len(OTHER_WIDTHS)]
        others = {name: size or default for name, default in operation.widths.items() if default}
        cases.append({"n_cols": n_cols, **others})
    return cases


def columns_for(strategy: Strategy, columns: Sequence[int]) -> tuple[int, ...]:
    """What of `columns` a strategy is tried with: all, or of operations with many kernels some.

    Each column count is a build of each of a plan's kernels. Operations beyond SpMM and SDDMM share
    theirs, so that these take turns: together they see every column count. Tensor cores take long
    to emulate: a third of them, in which every width of a load occurs.
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
    """Every column count matches the float64 oracle, with two sets of weights."""
    graph = weighted(graph)
    operation = strategy.operation if isinstance(strategy, Strategy) else SPMM
    strategy = find_strategy(strategy, operation)
    executor = find_device(device) if isinstance(device, str) else device
    wanted = all_widths(operation, columns)
    widest = {name: max(widths[name] for widths in wanted) for name in operation.widths}
    for widths in wanted:
        # Where columns do not depend on each other, the oracle of the widest serves them all.
        known = dict(widths)
        if operation.independent:
            known[operation.independent] = widest[operation.independent]
        try:
            plan = strategy.plan(graph, **widths, **parameters)
        except ArgumentError as error:  # a library may have one head only, and says so
            if widths.get(error.argument, 1) > 1:
                continue
            raise
        case(graph, operation, **known).check(plan, executor)


def slopes(function: Callable[[Any], float], array: Any, step: float = 1e-5) -> Any:
    """Central differences of a number by every entry of a float64 array."""
    result = np.empty(array.shape)
    for index in np.ndindex(array.shape):
        above, below = array.copy(), array.copy()
        above[index] += step
        below[index] -= step
        result[index] = (function(above) - function(below)) / (2 * step)
    return result
