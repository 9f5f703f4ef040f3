"""Graphs and plans never change, and neither do their copies."""

import copy
import pickle
from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest

import accelviz
from accelviz.graph import Graph, Pattern
from accelviz.ordering import Permutation
from accelviz.store import Store
from tests.graphs import GRAPHS
from tests.inherited import all_widths, each_strategy

COPIES = {
    "itself": lambda value: value,
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}


def with_buffers(value):
    """Return an unpickled copy, whose arrays the pickle shares with a writable buffer."""
    buffers = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytearray(buffer.raw()) for buffer in buffers])


COPIES["pickle with buffers"] = with_buffers


def writable_parts(value, path, seen=None):
    """Yield the paths of arrays and containers of accelviz's objects that can be changed."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return
    seen[id(value)] = value
    parts = {}
    if isinstance(value, np.ndarray):
        try:
            value.setflags(write=True)
        except ValueError:
            return
        yield path
    elif isinstance(value, dict | list | set):
        yield path
    elif isinstance(value, Mapping):
        parts = {f"[{key!r}]": part for key, part in value.items()}
    elif isinstance(value, tuple):
        parts = {f"[{i}]": part for i, part in enumerate(value)}
    elif isinstance(value, partial):
        parts = {".args": value.args, **{f".{key}": part for key, part in value.keywords.items()}}
    elif type(value).__module__.startswith("accelviz") and not isinstance(value, type | Store):
        parts = {f".{name}": part for name, part in getattr(value, "__dict__", {}).items()}
    for name, part in parts.items():
        yield from writable_parts(part, path + name, seen)


def computed(plan):
    """Compute what a plan stores at first use."""
    for part in plan.parts:
        assert part.tiles is None or len(part.tiles) >= 0
        assert len(part.output_rows) == part.walked.n_rows
        if part.has_workload:
            assert part.statistics.nonzeros >= 0
    return plan


@each_strategy()
def test_no_part_of_a_plan_can_be_changed(strategy):
    graph = GRAPHS["every_kind"]()
    plan = computed(strategy.plan(graph, **all_widths(strategy.operation, (7,))[0]))
    for how, copied in COPIES.items():
        other = computed(copied(plan))
        assert [*writable_parts(other, f"{how} of plan")] == []
        assert repr(other) == repr(plan)
        if other.has_workload:
            other.check()


@pytest.mark.parametrize("how", COPIES)
def test_no_part_of_a_graph_can_be_changed(how):
    graph = GRAPHS["every_kind"]()
    for original in (graph, graph.pattern, graph.transposed()):
        other = COPIES[how](original)
        if isinstance(other, Graph):
            assert (
                other.degrees.sum() == other.pattern.degrees.sum() == other.transposed().graph.nnz
            )
        assert [*writable_parts(other, how)] == []
        assert repr(other) == repr(original)


def test_arrays_that_a_caller_keeps_are_copied():
    order = np.array([1, 0], np.int32)
    view = order.view()
    view.setflags(write=False)  # the caller can still write to `order`
    permutations = [Permutation(array) for array in (order, view)]
    pattern = Pattern(np.array([0, 1]), order[:1], (1, 2))
    order[:] = 7
    assert [permutation.order.tolist() for permutation in permutations] == [[1, 0]] * 2
    assert permutations[0].inverse.tolist() == [1, 0]
    assert pattern.column_indices.tolist() == [1]


def test_a_damaged_pickle_is_refused():
    graph = accelviz.load_graph("cora")
    columns = graph.column_indices.copy()
    columns[-1] = 10**9
    damaged = pickle.dumps(graph).replace(graph.column_indices.tobytes(), columns.tobytes())
    with pytest.raises(accelviz.errors.GraphError, match="column_indices: 1000000000 at position"):
        pickle.loads(damaged)
