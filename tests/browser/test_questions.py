"""Ten questions of a newcomer, each answered by at most three clicks or keys on an opened page."""

import re

import numpy as np
import pytest

import accelviz
from accelviz.analysis.balance import block_idle_shares
from accelviz.analysis.lookup import find_row
from accelviz.measure.prediction import recorded_times
from accelviz.widgets import explore

from ..compilers import needs_compiler
from .lab import FRAME

MOST_ACTIONS = 3


class Newcomer:
    """A reader of a page as it opens, whose actions are counted."""

    def __init__(self, view):
        self.view, self.page, self.actions = view, view.page, 0

    def act(self, action, selector, *arguments):
        """Do one action of Playwright with a visible element."""
        self.actions += 1
        assert self.actions <= MOST_ACTIONS
        element = self.page.locator(f"{selector}:visible").first
        getattr(element, action)(*arguments)
        for _ in range(2):
            self.page.evaluate(FRAME)

    def read(self, selector=".av-panel"):
        return " ".join(self.page.locator(f"{selector}:visible").first.inner_text().split())


@pytest.fixture
def newcomer(saved):
    def open_(graph, trace=False, **settings):
        return Newcomer(saved(explore(graph, **settings), story=True, trace=trace))

    return open_


def steps_of(plan, block):
    """Steps of the warps of a block."""
    work = plan.workload(block, block + 1)
    return plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(work))[0]


def idlest(plan):
    """The block with the largest idle share; of equal shares the longest."""
    steps = plan.hardware.steps_of_nonzeros(plan.hardware.of_workload(plan.workload()))
    return int(np.lexsort((-steps.max(axis=1), -block_idle_shares(plan)))[0])


def percent(share):
    return f"{100 * share:.1f} %"


@pytest.mark.long
@pytest.mark.parametrize("graph", ["cora", "pubmed"])
def test_which_block_idles_most_and_why(newcomer, graph):
    reader, plan = newcomer(graph), accelviz.plan(graph, "accel_gcn", 64)
    block = idlest(plan)
    steps = steps_of(plan, block)
    text = reader.read(".av-story-text")
    assert f"The {len(steps)} warps of block {block:,} start together" in text
    assert f"{steps.max()} nonzero" in text
    assert f"That is {percent(block_idle_shares(plan)[block])} of the block's warp time" in text
    assert reader.actions == 0


@pytest.mark.long
def test_what_would_fewer_warps_in_a_block_change(newcomer):
    reader = newcomer("cora")
    reader.act("click", "[data-control='guess falls']")
    reader.act("fill", "[data-view=story] input[type=number]", "4")
    reader.act("press", "[data-view=story] input[type=number]", "Enter")
    shares = accelviz.sweep("cora", max_block_warps=[12, 4]).idle_share.map(percent)
    assert f"the idle share falls, {shares[0]} to {shares[1]}; you said that it falls: right" in (
        reader.read(".av-story-answer")
    )


@pytest.mark.long
def test_which_setting_is_fastest_for_pubmed_with_64_columns(newcomer):
    reader = newcomer("pubmed")
    reader.act("click", "[data-group=numbers]")
    times = recorded_times(accelviz.load_graph("pubmed")).query("columns == 64")
    times = times[times["strategy"].isin(accelviz.strategies())]
    times = times[times["run"] == times.groupby("run")["strategy"].nunique().idxmax()]
    fastest = times.loc[times["median_us"].idxmin()]
    text = reader.read("[data-view=recorded] p")
    assert f"with 64 columns: {fastest['strategy']}" in text
    assert f"{fastest['median_us']:.1f} µs" in text


@needs_compiler
def test_how_many_sectors_does_warp_5_read(newcomer):
    graph, plan = accelviz.load_graph("cora"), accelviz.plan("cora", "accel_gcn", 64)
    row = int(graph.degrees.argsort()[-2])  # the row that the call names is that of the story, too
    reader = newcomer("cora", row=row)
    reader.act("click", "[data-group=product]")
    reader.act("hover", ".av-of-block text[data-f$=':5']")
    block = find_row(plan, row).blocks[0]
    traced = accelviz.trace(plan, np.ones((graph.shape[1], 64), np.float32), block=block)
    reads = traced[(traced["array"] == "X") & (traced["warp"] == 5)]
    sectors = reads.groupby("step")["offset"].agg(lambda bytes_: (bytes_ // 32).nunique()).sum()
    assert f"It reads {sectors} sectors of X in all." in reader.read(".av-tip")


def test_what_does_sorting_change(newcomer):
    reader = newcomer("cora")
    reader.act("click", "[data-control='all controls']")
    reader.act("select_option", "[data-control=first]", "graphblast")
    reader.act("select_option", "[data-control=sorted]", "yes")
    graph = accelviz.load_graph("cora")
    ordered = accelviz.degree_sort(graph).apply_to_graph(graph)
    before, after = (
        accelviz.plan(one, "graphblast", 64).statistics.idle_share for one in (graph, ordered)
    )
    text = reader.read(".av-of-side")
    assert f"{percent(after)} of warp time idle" in text
    assert f"(before: {percent(before)})" in text


def test_which_of_two_strategies_is_faster_and_which_idles_more(newcomer):
    reader = newcomer("cora", second="gnnadvisor")
    reader.act("click", "[data-control='all controls']")
    lines = reader.page.locator(".av-of-side:visible").all_inner_texts()
    for line, name in zip(lines, ("accel_gcn", "gnnadvisor"), strict=True):
        share = accelviz.plan("cora", name, 64).statistics.idle_share
        assert name in line
        assert re.search(r"\d µs on H200", line)
        assert f"{percent(share)} of warp time idle" in line


def test_how_many_warps_have_no_work(newcomer):
    reader, statistics = newcomer("cora"), accelviz.plan("cora", "accel_gcn", 64).statistics
    reader.act("click", "[data-control='step 2']")
    without = statistics.warps - statistics.busy_warps
    assert (
        f"{statistics.blocks} blocks with {statistics.warps:,} warps, of which {without} warps "
        "have no work at all" in reader.read(".av-story-text")
    )


def test_which_warps_compute_the_longest_row(newcomer):
    reader, graph = newcomer("cora"), accelviz.load_graph("cora")
    plan, row = accelviz.plan(graph, "accel_gcn", 64), int(graph.degrees.argmax())
    reader.act("click", "[data-group=balance]")
    reader.act("click", f"[data-view=degrees] [data-say^='Degree {graph.degrees.max()}:']")
    reader.act("click", "[data-group=product]")
    (block,) = find_row(plan, row).blocks
    work = plan.workload(block, block + 1)
    warps = f"combined warps {work.warp.min()} to {work.warp.max()}"  # a block of this row alone
    text = reader.read(".av-way-line")
    assert f"Row {row:,} of A ({graph.degrees[row]} nonzeros)" in text
    assert f"block {block} → {warps}" in text


def test_what_tells_a_block_its_work(newcomer):
    reader, plan = newcomer("cora"), accelviz.plan("cora", "accel_gcn", 64)
    block = idlest(plan)
    reader.act("click", "[data-control='step 3']")
    words = np.frombuffer(np.ascontiguousarray(plan.metadata[block]).tobytes(), np.uint32)
    assert f"This is all that tells block {block} its work: {32 * len(words)} bits" in (
        reader.read(".av-story-text")
    )
    for word in words:
        assert f"0x{word:08x}" in reader.page.locator("[data-view=story] svg").text_content()


def test_how_much_of_what_memory_moves_is_used(newcomer):
    """With 6 columns a row of X has 24 bytes, a load moves at least a sector of 32."""
    reader = newcomer("cora", n_cols=6)
    reader.act("click", "[data-control='step 4']")
    text = reader.read(".av-story-text")
    used = re.search(
        r"6 lanes need 24 bytes; memory moves (\d) sectors? of 32, of which (\d+) %", text
    )
    sectors, share = map(int, used.groups())
    assert 1 <= sectors <= 2
    assert share == round(100 * 24 / (32 * sectors))


@needs_compiler
def test_when_is_a_warp_without_work_done(newcomer):
    reader = newcomer("cora", trace=True, second=None, row=1914)
    reader.act("click", "[data-group=play]")
    reader.act("press", ".av-tracks", "End")
    assert "Done, and idle until the block ends: warps 2 to 11." in reader.read(".av-request")
