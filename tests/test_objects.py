"""What graphs, plans and results show, and what a graph can do by itself."""

import re
from html import unescape

import numpy as np
import pytest
from scipy import sparse

import accelviz
from accelviz.errors import ArgumentError, GraphError
from accelviz.partition.summary import PartitionSummary
from accelviz.strategies import find_strategy
from tests.graphs import GRAPHS
from tests.inherited import all_widths, each_strategy

CORA = accelviz.load_graph("cora")
RECTANGLE = accelviz.load_graph(sparse.csr_array([[0.5, 0], [0, 2], [0, 0]]), name="<b>&")
PLAN = accelviz.plan(CORA, "accel_gcn", 64)


def text_of(html):
    """Return the text of HTML, whose elements must be closed."""
    tags = re.findall(r"<(/?)(\w+)", html)
    for name in {name for _, name in tags}:
        assert tags.count(("", name)) == tags.count(("/", name)), name
    return unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", html)))


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (CORA, ["cora : a graph of 2,708 nodes and 10,556 edges", "3.9 on average, 168 at most",
                "weights all 1", "a published graph as it is", "3 to 4 942"]),
        (RECTANGLE, ["<b>& : 3 x 2, 2 nonzeros", "weights 0.5 to 2", "rows by number"]),
        (accelviz.load_graph(sparse.csr_array((0, 0))), ["0 nodes and 0 edges", "weights none"]),
        (PLAN, ["accel_gcn : how spmm on cora is mapped onto a GPU", "Y = A X, with n_cols = 64",
                "252 blocks of 12 warps", "16.2% of the warps' time",
                "combined warps by number", "17 to 32 56"]),
        (accelviz.plan(CORA, "cusparse"), ["work of a warp unknown"]),
        (accelviz.plan(CORA), ["lane_groups :", "subwarps 2,640", "subwarps by number"]),
        (PLAN.statistics, ["Statistics :", "blocks 252", "warps 3,024, 6.2%"]),
        (find_strategy("accel_gcn").closed_form(CORA, 64), ["atomics in global memory 0"]),
        (PartitionSummary(), ["Statistics :"]),
        (accelviz.describe("cora"), ["cora : real: a published graph as it is", "nodes 2,708"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else type(value).__name__,
)  # fmt: skip
def test_notebooks_show_it(value, texts):
    text = text_of(value._repr_html_())
    for expected in texts:
        assert expected in text, text
    assert not re.search(r"\bnan\b|None", text)


def test_notebooks_show_the_result_of_tuning():
    start = accelviz.plan(CORA, "accel_gcn", 16)
    choices = {"max_block_warps": [4, 8], "combined_warp": [False]}
    text = text_of(accelviz.tune(start, choices, device="cpu", repeats=3)._repr_html_())
    assert re.search(r"accel_gcn : tuned for cora on cpu: [\d.]+ -> [\d.]+ µs a run", text)
    assert "4 settings" in text
    assert re.search(r"max_block_warps=4, combined_warp=True [\d.]+ µs", text)
    assert "max_warp_nzs=32" not in text  # the same in all settings


@each_strategy()
def test_plans_and_their_parts_have_short_reprs(strategy):
    plan = strategy.plan(GRAPHS["every_kind"](), **all_widths(strategy.operation, (7,))[0])
    parts = [plan, plan.layout, plan.buffers, plan.provenance, *plan.calls]
    parts += [plan.statistics, plan.statistics.loads] if plan.has_workload else []
    for part in parts:
        assert len(repr(part)) < 2500, repr(part)
        assert "array(" not in repr(part)
    assert strategy.name in text_of(plan._repr_html_())


def test_a_graph_is_multiplied_as_a_matrix():
    dense, rng = RECTANGLE.toarray(), np.random.default_rng(0)
    assert (RECTANGLE.n_rows, RECTANGLE.n_cols, RECTANGLE.pattern.n_cols) == (3, 2, 2)
    assert dense.dtype == np.float32
    np.testing.assert_array_equal(dense, [[0.5, 0], [0, 2], [0, 0]])
    np.testing.assert_array_equal(RECTANGLE.T.toarray(), dense.T)
    for dtype in (np.float32, np.float64, np.int64, np.bool_):
        for X in (rng.integers(0, 9, (2, 4)).astype(dtype), np.arange(2).astype(dtype)):
            np.testing.assert_array_equal(RECTANGLE @ X, dense @ X)
        for X in (rng.integers(0, 9, (4, 3)).astype(dtype), np.arange(3).astype(dtype)):
            np.testing.assert_array_equal(X @ RECTANGLE, X @ dense)
    np.testing.assert_array_equal(RECTANGLE @ [[1], [2]], dense @ [[1], [2]])
    X = rng.standard_normal((2708, 8), np.float32)
    np.testing.assert_allclose(CORA @ X, accelviz.spmm(CORA, X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "X", [np.ones((4, 4)), np.ones(4), np.ones((2, 1, 1)), 2, "ab", [[1j], [1]], [[1], [2, 3]]]
)
def test_wrong_factors_of_a_graph(X):
    for product in (lambda: RECTANGLE @ X, lambda: X @ RECTANGLE):
        with pytest.raises(ArgumentError, match="^X: "):
            product()


def test_a_dense_matrix_that_does_not_fit_is_refused():
    large = accelviz.load_graph([[0, 1], [1, 0]], n_nodes=10**7)
    with pytest.raises(GraphError, match="shape: 10,000,000 x 10,000,000 .* GiB"):
        large.toarray()


def test_completion_shows_the_public_names():
    names = {name for name in dir(accelviz) if not name.startswith("_")}
    assert names >= {"plots", "layers", "bits", "many_gpus", "torch", "Graph", "GraphError", "spmm"}
    assert names >= {*accelviz.__all__}
    assert not names & {
        "Any",
        "importlib",
        "sys",
        "annotations",
        "TYPE_CHECKING",
        "store",
        "arrays",
    }
    assert accelviz.GraphError is GraphError
