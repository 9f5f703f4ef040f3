"""Attention and its gradients: definition, extreme scores, dropout, plans, wrong input."""

import numpy as np
import pytest

import accelviz
from accelviz import measure
from accelviz.devices import find_device, run_operation
from accelviz.errors import ArgumentError, PartitionError
from accelviz.measure.accuracy import Oracle
from accelviz.random import edge_uniform
from accelviz.strategies import OPERATIONS, find_strategy
from accelviz.strategies.attention.scores import INPUTS, dropout_factors
from accelviz.strategies.attention.walks import cover_head
from tests.compilers import EMULATOR, HOST, needs_compiler
from tests.graphs import MADE, graph_of_degrees
from tests.inherited import central_differences

SCORES = pytest.mark.parametrize("score", list(INPUTS))
DEGREES = [0, 1, 2, 7, 0, 5, 3]
#: `slope` is that of LeakyReLU, `rate` the share of dropped edges, `random` has the words of
#: `accelviz.random.edge_uniform`: seed (low, high), site (number of the array), step.
SETTINGS = {"slope": 0.3, "rate": 0.4, "random": [7, 8, 9, 10]}


def leaky(x):
    return np.where(x > 0, x, SETTINGS["slope"] * x)


def defined(graph, score, inputs):
    """Return the results by their definition, densely, in extended precision."""
    wide = {name: array.astype(np.longdouble) for name, array in inputs.items()}
    V = wide["V"]
    if score == "gat":
        scores = leaky(wide["receiver"][:, None] + wide["sender"][None])
    elif score in ("dot", "cosine"):
        scores = np.einsum("ihc,jhc->ijh", wide["Q"], wide.get("K", V)) * wide.get("scale", 1)
    else:
        scores = (leaky(wide["R"][:, None] + V[None]) * wide["a"]).sum(-1)
    edges = graph.with_values(np.ones(graph.nnz, np.float32)).adjacency.toarray() > 0
    rows = np.repeat(np.arange(graph.n_rows), graph.degrees)
    low, high, site, step = SETTINGS["random"]
    drawn = edge_uniform(np.arange(graph.nnz), V.shape[1], low | high << 32, site, step)
    factors = np.zeros(scores.shape)
    rate = np.float32(SETTINGS["rate"])
    factors[rows, graph.column_indices] = np.where(drawn >= rate, 1 / (1 - rate), 0)
    row_max = np.where(edges[..., None], scores, -np.inf).max(axis=1, keepdims=True)
    row_max[graph.degrees == 0] = 0
    powers = np.where(edges[..., None], np.exp(scores - row_max), 0)
    row_sum = powers.sum(axis=1, keepdims=True)
    alpha = powers / np.where(row_sum > 0, row_sum, 1)
    Y = np.einsum("ijh,jhc->ihc", alpha * factors, V)
    return {"Y": Y, "row_max": row_max[:, 0], "row_sum": row_sum[:, 0]}


def inputs_of(operation, graph, heads=2, n_cols=3):
    widths = {"heads": heads, "n_cols": n_cols}
    dense = measure.random_inputs(operation, graph.pattern, widths)
    return operation.named(*(operand.astype(float) for operand in dense))


def settings(operation):
    return {operand.name: operand.setting(SETTINGS[operand.name]) for operand in operation.settings}


@SCORES
def test_the_reference_is_the_definition(score):
    graph, operation = graph_of_degrees(DEGREES, 9), OPERATIONS[score]
    inputs = inputs_of(operation, graph)
    results = operation.reference(graph.pattern, inputs | settings(operation))
    for name, expected in defined(graph, score, inputs).items():
        # slope and rate are float32
        np.testing.assert_allclose(results[name][0], expected.astype(float), rtol=1e-6, atol=1e-7)


@SCORES
def test_gradients_are_those_of_float64_differences(score):
    graph, operation = graph_of_degrees(DEGREES, 9), OPERATIONS[score]
    gradient = OPERATIONS[f"{score}_gradient"]
    inputs, scalars = inputs_of(operation, graph), settings(operation)
    dY = measure.features(graph.n_rows, 6).reshape(-1, 2, 3).astype(float)

    def attend(changed):
        return {
            name: expected
            for name, (expected, _) in operation.reference(graph.pattern, changed | scalars).items()
        }

    saved_for_backward = {**inputs, **attend(inputs), "dY": dY} | scalars
    gradients = gradient.reference(graph.pattern, saved_for_backward)
    for name, output in zip(inputs, gradient.outputs, strict=True):

        def loss(changed, name=name):
            return (attend({**inputs, name: changed})["Y"] * dY).sum()

        expected = central_differences(loss, inputs[name], 1e-6)
        np.testing.assert_allclose(gradients[output.name][0], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.sample(3)
@HOST
@SCORES
@pytest.mark.parametrize("strategy", ["row_warp", "lane_groups"])
@pytest.mark.parametrize("size", [50.0, 1e4])
def test_scores_of_any_size(score, strategy, size, device):
    """The exponentials of these scores exceed the range of float32."""
    graph, operation = graph_of_degrees([0, 1, 40, 300, 3]), OPERATIONS[score]
    dense = measure.random_inputs(operation, graph.pattern, {"heads": 2, "n_cols": 4})
    inputs = operation.named(*dense)
    first_input = next(iter(inputs))
    inputs[first_input] = inputs[first_input] * np.float32(size)
    results = run_operation(score, graph, inputs, strategy, device)
    assert all(np.isfinite(operand).all() for operand in results.values())
    assert Oracle(graph, *inputs.values(), operation=operation).error(results) <= 1


def near_a_million(score, n_rows, n_columns, rng):
    """Return operands with scores of 2^20 and a few eighths, exact in float32; `slope` is 0.25."""

    def integers(*shape):
        return rng.integers(-1, 2, shape).astype(np.float32)

    features = rng.standard_normal((n_columns, 2, 5), dtype=np.float32)
    if score == "gat":
        receiver, sender = integers(n_rows, 2), 2.0**20 + integers(n_columns, 2)
        return {"receiver": receiver, "sender": sender, "V": features}
    # Column 0 of keys and queries has products of 2^20 + an integer.
    keys, queries = integers(n_columns, 2, 5), integers(n_rows, 2, 5)
    keys[..., 0] = 1 + 2.0**-20 * keys[..., 0]
    if score == "gatv2":
        queries[..., 0] = 0
        return {"R": queries, "V": keys, "a": np.float32([[2**20, 0.5, -0.5, 1, 0.5]] * 2)}
    queries[..., 0] = 2**20
    if score == "dot":
        return {"Q": queries, "K": keys, "V": features}
    return {"Q": queries / 2, "V": keys, "scale": np.full((n_columns, 2), 2.0)}


def saturated(score, n_rows, n_columns, rng):
    """Return operands with a column near 1e6: the largest score of a row gets a weight of 1."""
    # Each lane of both strategies has several of 40 columns.
    shapes = {"rows": n_rows, "columns": n_columns, "heads": 2, "n_cols": 40}
    operands = {
        operand.name: rng.standard_normal([shapes[axis] for axis in operand.axes], np.float32)
        for operand in INPUTS[score]
    }
    operands[{"gat": "sender", "dot": "K"}.get(score, "V")].reshape(n_columns, 2, -1)[..., 0] *= 1e6
    return operands


@pytest.mark.long
@pytest.mark.parametrize("device", ["cpu", EMULATOR, pytest.param("cuda", marks=pytest.mark.gpu)])
@SCORES
@pytest.mark.parametrize("strategy", ["row_warp", "lane_groups"])
@pytest.mark.parametrize("operands", [near_a_million, saturated])
def test_gradients_of_large_scores_are_those_of_float64(score, strategy, operands, device):
    """A column's gradients differ by 1e-5 of its largest; float32 scores have units of 0.1."""
    graph = graph_of_degrees([0, 1, 40, 300, 3], 300)
    rng = np.random.default_rng(3)
    inputs = operands(score, *graph.shape, rng)
    scalars = {"slope": 0.25} if score in ("gat", "gatv2") else {}
    n_cols = inputs["V"].shape[2]
    dY = rng.standard_normal((graph.n_rows, 2, n_cols), dtype=np.float32)
    results = run_operation(score, graph, inputs | scalars, strategy, device)
    saved = {**inputs, **results, "dY": dY}
    name = f"{score}_gradient"
    gradients = run_operation(name, graph, saved | scalars, strategy, device)

    doubles = {key: np.asarray(array, np.float64) for key, array in inputs.items()}
    defaults = {operand.name: operand.setting(None) for operand in OPERATIONS[score].settings}
    forward = OPERATIONS[score].reference(graph.pattern, doubles | defaults | scalars)
    doubles |= {key: expected for key, (expected, _) in forward.items()}
    doubles["dY"] = dY.astype(np.float64)
    expected = OPERATIONS[name].reference(graph.pattern, doubles | defaults | scalars)
    # Sums over a row's softmax cancel in column 0, of 2^20 and similar numbers.
    first = 1 if operands is near_a_million else 0
    largest = abs(expected["dV"][0][..., first:]).max()
    for key, gradient in gradients.items():
        columns = slice(first if gradient.shape[-1] == n_cols else 0, None)
        error = abs(gradient - expected[key][0])[..., columns].max()
        assert error <= 1e-5 * max(abs(expected[key][0][..., columns]).max(), largest), key


def test_lanes_cover_a_head():
    for n_cols in range(1, 2049):
        lanes = cover_head(n_cols)
        assert n_cols % lanes.vector == 0
        assert lanes.lanes in (1, 2, 4, 8, 16, 32)
        covered = lanes.vector * lanes.lanes * lanes.lane_vectors
        assert n_cols <= covered < n_cols + lanes.vector * lanes.lanes


@pytest.mark.long
@pytest.mark.sample(2)
@SCORES
@pytest.mark.parametrize(("n_cols", "together"), [(20, 1), (20, 2), (20, 4), (128, 1), (128, 4)])
@needs_compiler
def test_heads_are_gathered_together_or_apart(score, n_cols, together):
    """With 128 columns, tiles of a head of `gat` are heads to its kernel; their score is the same.

    Long rows are split, and the last group of heads is not full.
    """
    graph, operation = graph_of_degrees([0, 1, 2, 9, 70, 700], 800), OPERATIONS[score]
    dense = measure.random_inputs(operation, graph.pattern, {"heads": 3, "n_cols": n_cols})
    inputs = operation.named(*dense) | settings(operation)
    strategy = find_strategy("lane_groups", operation)
    plan = strategy.plan(graph, n_cols, heads=3, heads_together=together)
    lanes = 32 // plan.parameters["head_lanes"]
    n_heads = 6 if score == "gat" and n_cols == 128 else 3
    assert plan.kernel.config["heads_together"] == min(together, n_heads, lanes)
    results = find_device("emulator").prepare(plan).run(inputs)
    oracle = Oracle(graph, *dense, operation=operation, **settings(operation))
    assert oracle.error(results) <= 1


def test_a_gradient_s_dropout_is_that_of_its_forward_pass():
    """Dropped edges contribute nothing to the gradient of their source's features."""
    graph = graph_of_degrees([3, 4, 2, 5], 30)
    words = {"rate": 0.5, "random": [1, 2, 3, 4]}
    ones = {"receiver": np.zeros((4, 1)), "sender": np.zeros((30, 1)), "V": np.ones((30, 1, 1))}
    for strategy in ("row_warp", "lane_groups"):
        results = run_operation("gat", graph, {**ones, **words}, strategy, "cpu")
        inputs = {**ones, **results, "dY": np.ones((4, 1, 1)), **words}
        back = run_operation("gat_gradient", graph, inputs, strategy, "cpu")
        factors = dropout_factors(graph.nnz, 1, {k: np.asarray(v) for k, v in words.items()})[:, 0]
        alpha = 1 / graph.degrees[np.repeat(np.arange(4), graph.degrees)]
        wanted = np.bincount(graph.column_indices, factors * alpha, 30)
        np.testing.assert_allclose(back["dV"].ravel(), wanted, rtol=1e-5)
        assert 0 < (factors == 0).sum() < graph.nnz


def test_plans_of_a_gradient_walk_the_matrix_and_its_transpose():
    graph = graph_of_degrees(DEGREES, 9)
    plan = accelviz.plan(graph, "lane_groups", 4, operation="cosine_gradient", heads=2)
    assert [part.walked.shape for part in plan.parts] == [(9, 7), (7, 9)]
    assert [call.kernel.entry for call in plan.calls] == [
        "statistics_of_any",
        "cosine_sources<Config>",
    ]
    assert plan.kernel.entry == "cosine_sources<Config>"
    assert [call.kernel.entry for call in plan.then[0].calls] == ["cosine_targets<Config>"]
    plan.check()
    row_warp = accelviz.plan(graph, "row_warp", 4, operation="gatv2_gradient")
    np.testing.assert_array_equal(row_warp.layout.nonzero_order, graph.transposed().nonzeros)
    entries = [call.kernel.entry for call in row_warp.then[0].calls]
    assert entries == ["gatv2_targets<Config>", "add_totals", "add_parts"]


@needs_compiler
def test_the_main_kernel_is_traced_after_those_before_it():
    graph = graph_of_degrees(DEGREES, 9)
    plan = accelviz.plan(graph, "row_warp", 4, operation="gat_gradient", heads=2)
    dense = measure.random_inputs(plan.operation, plan.pattern, plan.widths)
    traced = accelviz.trace(plan, *dense, block=range(int(np.prod(plan.launch.grid))))
    stored = traced[traced.kind == "store"]
    assert set(stored.array) == {"d_sender", "dV"}
    assert "atomic" not in set(traced.kind)


WRONG = [
    ({"sender": None}, "sender: gat needs it"),
    ({"sender": np.ones((9, 3))}, r"sender: shape \(9, 3\).*\(9, 2\): columns = 9, heads = 2"),
    ({"V": np.ones((9, 2))}, r"V: shape \(9, 2\).*3-D: columns, heads, n_cols"),
    ({"V": np.ones((9, 2, 0))}, "V: .*at least one n_cols"),
    ({"V": np.ones((9, 2, 4), complex)}, "V: dtype complex128"),
    ({"rate": 1.0}, "rate: got 1.0.*at least 0 and below 1"),
    ({"rate": float("nan")}, "rate: got nan"),
    ({"rate": True}, "rate: got True"),
    ({"slope": float("inf")}, "slope: got inf.*finite"),
    ({"slope": "0.2"}, "slope: got '0.2'"),
    ({"random": [1, 2, 3]}, "random: got .*4 integers"),
    ({"random": [1, 2, 3, -4]}, "random: got .*4 integers"),
    ({"random": [1.5] * 4}, "random: got .*4 integers"),
    ({"K": np.ones((9, 2, 4))}, "K: gat has no such operand"),
]


@HOST
@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[message[:24] for _, message in WRONG])
def test_wrong_operands_are_named(wrong, message, device):
    graph = graph_of_degrees(DEGREES, 9)
    inputs = {"receiver": np.ones((7, 2)), "sender": np.ones((9, 2)), "V": np.ones((9, 2, 4))}
    with pytest.raises(ArgumentError, match=message):
        run_operation("gat", graph, {**inputs, **wrong}, device=device)


@pytest.mark.parametrize("strategy", ["row_warp", "lane_groups"])
def test_heads_too_wide_are_refused(strategy):
    with pytest.raises(PartitionError, match="n_cols: got 2049.*2,048 of a head"):
        accelviz.plan(MADE["one_node"](), strategy, 2049, operation="gat")


@HOST
def test_a_nan_in_features_stays_in_its_columns(device):
    graph = graph_of_degrees([1, 2, 0, 3], 4)
    inputs = {"receiver": np.ones((4, 1)), "sender": np.ones((4, 1)), "V": np.ones((4, 1, 2))}
    inputs["V"][1, 0, 1] = np.nan
    Y = run_operation("gat", graph, inputs, device=device)["Y"]
    rows = np.repeat(np.arange(4), graph.degrees)[graph.column_indices == 1]
    assert np.isnan(Y[rows, 0, 1]).all()
    assert not np.isnan(Y[..., 0]).any()
    np.testing.assert_array_equal(Y[2], 0)


def test_random_words_may_be_a_list_or_an_array():
    ready = find_device("cpu").prepare(accelviz.plan("cora", None, 2, operation="gat"))
    dense = measure.random_inputs(OPERATIONS["gat"], accelviz.load_graph("cora").pattern,
                                  {"heads": 1, "n_cols": 2})  # fmt: skip
    named = OPERATIONS["gat"].named(*dense, rate=0.5)
    from_list = ready.run({**named, "random": [1, 2, 3, 4]})["Y"]
    from_array = ready.run({**named, "random": np.array([1, 2, 3, 4], np.uint32)})["Y"]
    next_step = ready.run({**named, "random": [1, 2, 3, 5]})["Y"]
    np.testing.assert_array_equal(from_list, from_array)
    assert (from_list != next_step).any()
