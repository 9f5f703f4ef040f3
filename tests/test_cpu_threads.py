"""Replays on the CPU use the cores that this process may use, and leave busy ones alone."""

import os

import numpy as np
import pytest

import accelviz
from accelviz.devices import find_device
from accelviz.measure.checks import random_inputs
from accelviz.plans import Plan, replay
from accelviz.plans.replay import Records
from tests.graphs import GRAPHS
from tests.inherited import KERNELS, all_widths

ROWS = 64


@pytest.fixture
def pieces(monkeypatch):
    """Return a function from a number of products per nonzero to the computed ranges of rows."""
    records = Records((), np.arange(ROWS + 1, dtype=np.int64))
    monkeypatch.setattr(replay, "usable_cores", lambda: 4)

    def computed(products, idle, threads=None):
        ranges = []
        monkeypatch.setattr(replay, "idle_cores", lambda: idle)
        replay.in_pieces(lambda *rows: ranges.append(rows), records, products, threads)
        return sorted(ranges)

    return computed


def test_small_products_and_those_beside_busy_cores_take_one_thread(pieces):
    small, medium, large = ((1 << bits) // ROWS for bits in (20, 24, 28))
    assert pieces(small, idle=4) == [(0, ROWS)]
    assert pieces(medium, idle=1) == [(0, ROWS)]
    assert pieces(large, idle=4, threads=1) == [(0, ROWS)]
    for ranges in (pieces(medium, idle=4), pieces(large, idle=1)):
        assert len(ranges) > 4
        assert [first for first, _ in ranges] == [0, *(last for _, last in ranges[:-1])]
        assert ranges[-1][1] == ROWS


def test_cores_are_those_of_the_process_and_the_idle_among_them(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert replay.usable_cores() == 6
    file = tmp_path / "loadavg"
    for running, idle in ((1, 6), (3, 4), (6, 1), (40, 1)):  # this thread is one of the running
        file.write_text(f"0.52 0.58 0.59 {running}/970 1234\n")
        opened = os.open(file, os.O_RDONLY)
        monkeypatch.setattr(replay, "_load_file", lambda opened=opened: opened)
        assert replay.idle_cores() == idle
        os.close(opened)
    monkeypatch.setattr(replay, "_load_file", lambda: None)
    assert replay.idle_cores() == 6


def test_spmm_on_the_cpu_keeps_the_order_of_rows_by_default():
    graph = accelviz.load_graph("cora")
    X = np.ones((graph.n_cols, 3), np.float32)
    default = accelviz.spmm(graph, X, device="cpu")
    in_order = accelviz.spmm(graph, X, strategy="graphblast", device="cpu")
    assert np.array_equal(default, in_order)
    entries = graph.store._entries.values()
    plans = {entry.name for entry in entries if isinstance(entry, Plan)}
    assert plans == {"graphblast"}


@pytest.mark.parametrize("name", sorted({strategy.operation.name for strategy in KERNELS}))
def test_threads_do_not_change_a_bit(name, monkeypatch):
    graph = GRAPHS["every_kind"]()
    strategy = next(item for item in KERNELS if item.operation.name == name)
    (widths,) = all_widths(strategy.operation, (7,))
    plan = strategy.plan(graph, **widths)
    dense = [operand.name for operand in strategy.operation.dense]
    inputs = dict(zip(dense, random_inputs(strategy.operation, graph, widths), strict=True))
    monkeypatch.setattr(replay, "usable_cores", lambda: 4)
    monkeypatch.setattr(replay, "_PRODUCTS_OF_ONE_THREAD", 0)
    results = []
    for idle in (1, 3, 3):
        monkeypatch.setattr(replay, "idle_cores", lambda idle=idle: idle)
        ready = find_device("cpu").prepare(plan)
        out = ready.outputs()
        ready.run(ready.placed(inputs | {"values": graph.values}), out)
        results.append(out)
    for output, expected in results[0].items():
        assert all(np.array_equal(result[output], expected) for result in results[1:]), output
