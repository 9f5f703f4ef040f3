"""The tracks highlighted for the followed row are the warps whose traced reads are for this row."""

import numpy as np
import pytest
import scipy.sparse

import accelviz
from accelviz.analysis.lookup import find_row
from accelviz.measure import random_inputs
from accelviz.strategies import find_strategy
from accelviz.widgets.pack import Differences, pack_text

from ..compilers import needs_compiler

DEGREES = (1, 2, 3, 40, 5, 70, 1, 9, 12, 3, 2, 33)
CASES = [
    ("accel_gcn", 64, {}, "A combined warp is 2 warps side by side"),
    # The block's 4 warps are no multiple of 3.
    ("accel_gcn", 96, {"max_block_warps": 4}, "A combined warp is 3 warps"),
    ("accel_gcn", 64, {"combined_warp": False}, ""),
    ("lane_groups", 64, {}, "A warp is 4 subwarps of 8 lanes"),
    ("fusegnn_gar", 64, {}, "A thread group is 2 warps side by side"),
    ("row_thread", 8, {}, ""),
    ("gnnadvisor", 16, {}, ""),
]
OWN_WARPS = """async ({ text, row, block }) => {
  const { followedRow, makeStore, owningWarps, unpackText, workerSentence } = accelvizPage;
  const store = makeStore(await unpackText(text));
  store.set({ row, block });
  const followed = followedRow(store.scene());
  return [store.scene().settings.block, owningWarps(followed), workerSentence(followed)];
}"""


@pytest.fixture(scope="module")
def graph():
    """A graph whose nonzeros have distinct columns: a row of X is read for one matrix row only."""
    nnz = sum(DEGREES)
    matrix = scipy.sparse.coo_matrix(
        (np.ones(nnz), (np.repeat(np.arange(len(DEGREES)), DEGREES), np.arange(nnz))),
        shape=(nnz, nnz),
    )
    return accelviz.load_graph(matrix.tocsr())


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize(("name", "n_cols", "parameters", "words"), CASES)
def test_highlighted_tracks_read_for_the_row(bundle, graph, name, n_cols, parameters, words):
    explorer = accelviz.explore(graph, find_strategy(name), n_cols=n_cols, **parameters)
    text = pack_text(explorer.content())
    plan = accelviz.plan(graph, name, n_cols=n_cols, **parameters)
    inputs = random_inputs(plan.operation, plan.pattern, plan.widths)
    traced, n_warps = {}, 0
    for row in (3, 5, 8, 11):
        block = find_row(plan, row).blocks[0]
        if block not in traced:
            traced[block] = accelviz.trace(plan, *inputs, block=block)
        reads = traced[block][traced[block]["array"] == "X"]
        first, last = graph.row_pointers[row : row + 2]
        mine = (reads["index"] // n_cols).between(first, last - 1)
        block_shown, shown_warps, sentence = bundle.evaluate(
            OWN_WARPS, {"text": text, "row": row, "block": block}
        )
        assert block_shown == block
        assert set(shown_warps) == set(reads["warp"][mine]), row
        assert words in sentence if words else sentence == ""
        n_warps += len(shown_warps)
    assert n_warps


def test_sentence_on_workers_that_run_in_a_later_turn(bundle, graph):
    """A block of 2 warps runs combined warp 1, like combined warp 0, on warps 0 and 1."""
    text = pack_text(accelviz.explore(graph, max_block_warps=2).content())
    request = {"text": text, "row": DEGREES.index(70), "block": 0}
    _, mine, sentence = bundle.evaluate(OWN_WARPS, request)
    assert mine == [0, 1]
    assert "works in 2 passes: combined warp 1 and those after it are executed later" in sentence


@pytest.mark.parametrize(
    "array", [[3, 5, 5, 70_000], [7, 2, 250], [0, 5 << 32, 6 << 32], [-3, 4, -9], [0.5, 0.25]]
)
def test_differences_unpack_to_the_array(bundle, array):
    """Also arrays that are stored as they are: negative numbers, and offsets of 4 GiB or more."""
    text = pack_text({"array": Differences(np.array(array))})
    unpack = "async (text) => [...(await accelvizPage.unpackText(text)).array]"
    assert bundle.evaluate(unpack, text) == array
