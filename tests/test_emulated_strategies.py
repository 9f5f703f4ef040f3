"""The inherited tests with every kernel's source in the emulator."""

from dataclasses import replace

import pytest

from accelviz.devices import find_device
from accelviz.devices.emulator import EmulatorDevice
from accelviz.strategies import SDDMM, SPMM
from tests.compilers import needs_compiler
from tests.graphs import COLUMNS, GRAPHS, MADE, columns_of, is_large
from tests.inherited import (
    DAILY,
    KERNELS,
    case,
    case_name,
    check_results,
    columns_for,
    each_case,
    each_strategy,
    fits_memory,
    with_random_weights,
)

pytestmark = needs_compiler

BUNDLED = [name for name in GRAPHS if name not in MADE]
SMALL = [name for name in BUNDLED if not is_large(name)]
LARGE = sorted((name for name in BUNDLED if name not in SMALL), key=lambda name: GRAPHS[name]().nnz)
#: The smallest bundled graph, for products of bits, which have a bit per pair of nodes.
SMALLEST = min(BUNDLED, key=lambda name: GRAPHS[name]().nnz)


def turn_of(position, strategy):
    """Return a large graph for each strategy: one of the three smallest for SpMM's, in turn."""
    if not fits_memory(strategy, LARGE[0]):
        return SMALLEST
    return LARGE[position % 3 if strategy.operation is SPMM else 0]


#: All strategies of SpMM and SDDMM, and the third of the others that `each_case(SMALL)` leaves out,
#: so that each strategy runs on at least one real graph.
TURNS = [
    pytest.param(
        strategy,
        turn_of(position, strategy),
        id=case_name(strategy),
        marks=() if case_name(strategy) in DAILY else pytest.mark.long,
    )
    for position, strategy in enumerate(KERNELS)
    if fits_memory(strategy, SMALLEST)
    and (
        strategy.operation in (SPMM, SDDMM)
        or case_name(strategy) in DAILY
        or (position + len(SMALL)) % 3 == 0
    )
]


def runs_unchecked(strategy):
    """Return whether a strategy runs unchecked: those of each day, and a third of the others.

    Without checks, only the compiler's options differ, for all kernels alike.
    """
    return case_name(strategy) in DAILY or KERNELS.index(strategy) % 3 == 0


#: Column counts wider than any column tile, one for each graph.
WIDE = {"isolated_ends": 1500, "degree_33": 1000, "hub_alone": 512}
#: Cases of wide features; each strategy has one in `make test`.
WIDE_CASES = [
    (name, strategy)
    for i, strategy in enumerate(kernel for kernel in KERNELS if kernel.operation in (SPMM, SDDMM))
    for name in [*WIDE][i % 3 :] + [*WIDE][: i % 3]
]


@each_case([name for name in MADE if name != "every_kind"], sample=lambda _: 36, others=24, turns=5)
def test_kernel_matches_the_oracle(strategy, name):
    """SpMM and SDDMM take their two column counts in turn, whose kernels another test compiles.

    Each strategy of the other operations has three of these graphs: one of the first five, which
    have no or one nonzero, one of uneven rows and one of critical degrees.
    """
    graph, columns = GRAPHS[name](), (8,)
    if 10 < graph.nnz < 10_000 and strategy.operation in (SPMM, SDDMM):
        counts = two_column_counts(strategy)
        columns = (counts[[*MADE].index(name) % len(counts)],)
    check_results(graph, strategy, "emulator", columns=columns_for(strategy, columns))


@pytest.mark.sample(8, always=lambda case: case_name(case["strategy"]) in DAILY)
@each_strategy()
def test_kernel_takes_every_column_count(strategy):
    """Rows are of every kind: aligned and unaligned vectors, several tiles, split and empty rows.

    Each column count compiles a kernel, so a strategy has two, different from the next strategy's.
    """
    check_results(GRAPHS["every_kind"](), strategy, "emulator", two_column_counts(strategy))


def two_column_counts(strategy):
    """Return up to two column counts of a strategy, different from the next strategy's."""
    counts = columns_for(strategy, COLUMNS)
    step = -(-len(counts) // 2)
    return counts[KERNELS.index(strategy) % step :: step]


def other_column_counts(strategy):
    """Return every third of the other column counts; the next two strategies have those between."""
    counts = two_column_counts(strategy)
    others = [n_cols for n_cols in columns_for(strategy, COLUMNS) if n_cols not in counts]
    return others[KERNELS.index(strategy) % 3 :: 3]


@pytest.mark.long
@each_strategy([strategy for strategy in KERNELS if other_column_counts(strategy)])
def test_kernel_takes_the_other_column_counts(strategy):
    columns = other_column_counts(strategy)
    check_results(GRAPHS["every_kind"](), strategy, "emulator", columns)


@pytest.mark.sample(6)
@pytest.mark.parametrize(("name", "strategy"), WIDE_CASES, ids=case_name)
def test_kernel_takes_many_columns(name, strategy):
    check_results(GRAPHS[name](), strategy, "emulator", columns=[WIDE[name]])


@each_case(SMALL, sample=lambda _: 12)
def test_kernel_matches_the_oracle_on_real_graphs(strategy, name):
    columns = columns_for(strategy, columns_of(name, 2)[1:])
    check_results(GRAPHS[name](), strategy, "emulator", columns=columns)


@pytest.mark.parametrize(("strategy", "name"), TURNS)
def test_kernel_matches_the_oracle_on_large_graphs(strategy, name):
    columns = columns_for(strategy, [min(columns_of(name, 3))])
    check_results(GRAPHS[name](), strategy, "emulator", columns=columns)


@each_case(["hub", "every_kind", "isolated_ends"], sample=lambda _: 18, others=16)
def test_the_order_of_threads_and_blocks_does_not_matter(strategy, name):
    columns = columns_for(strategy, (33,))
    executor = EmulatorDevice(seed=1 + KERNELS.index(strategy) % 5)
    check_results(GRAPHS[name](), strategy, executor, columns=columns)


@each_strategy([*filter(runs_unchecked, KERNELS)], daily=False)
def test_unchecked_runs_give_the_same(strategy):
    executor = EmulatorDevice(checked=False)
    check_results(GRAPHS["every_kind"](), strategy, executor, columns=(64,))


@each_strategy(daily=False)
def test_no_kernel_reads_a_local_variable_that_it_has_not_written(strategy):
    """With the source as text, the emulator checks initialization, which it skips for files."""
    graph = with_random_weights(GRAPHS["every_kind"]())
    plan = strategy.plan(graph, (3, 40)[KERNELS.index(strategy) % 2])
    first, *then = (replace(part, calls=spelled_out(part.calls)) for part in plan.parts)
    case(graph, strategy.operation, **plan.widths).check(
        replace(first, then=tuple(then)), find_device("emulator")
    )


def spelled_out(calls):
    """Return the calls with kernels that have their source as text instead of a file."""
    kernels = [replace(call.kernel, code=call.kernel.source()) for call in calls]
    return tuple(replace(call, kernel=kernel) for call, kernel in zip(calls, kernels, strict=True))
