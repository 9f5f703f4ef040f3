"""Uses of the public functions that are undocumented: each works or raises a clear error."""

import dataclasses
import functools
import importlib
import multiprocessing
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import accelviz
from accelviz.emulator.build import unavailable_reason
from accelviz.errors import ArgumentError, DeviceUnavailable, GraphError, PartitionError
from accelviz.measure.comparison import by_graph, speedups
from accelviz.plans import Buffers, Layout, Strategy
from accelviz.plans.launch import LaunchConfig
from accelviz.plans.settings import Settings, setting
from accelviz.strategies import SDDMM, find_strategy
from tests.graphs import graph_of_degrees

A = sparse.random_array((40, 40), density=0.1, rng=0, dtype=np.float32).tocsr()
X = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)


def masked(array):
    return np.ma.masked_array(array, mask=array > 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accelviz.spmm(A, masked(X), device="cpu"), "X: a masked array.*X.filled"),
        (lambda: accelviz.spmm(A, X, masked(A.data), device="cpu"), "values: a masked array"),
        (lambda: accelviz.spmm(A, X, device="cpu", out=masked(X)), "out: a MaskedArray"),
        (lambda: accelviz.sddmm(A, masked(X), X, device="cpu"), "U: a masked array"),
        (lambda: accelviz.spmm(A, [[1], [1, 2]], device="cpu"), "X: a list: .*an array of numbers"),
        (
            lambda: accelviz.spmm(A, X, strategy=("tc_gnn", {})),
            "strategy: got the tuple.*beside it",
        ),
    ],
)
def test_arrays_that_mean_something_else_are_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_masked_graph_is_refused():
    with pytest.raises(GraphError, match="a masked array, whose mask would be ignored"):
        accelviz.load_graph(masked(np.array([[0, 1], [1, 0]])))


class Tensor:
    """Like PyTorch's tensors, it is no array until its gradients are detached."""

    shape, dtype = X.shape, np.dtype(np.float32)

    def __array__(self, *args, **options):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


class DeviceTensor(Tensor):
    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")


@pytest.mark.parametrize("tensor", [Tensor, DeviceTensor])
@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_tensors_with_gradients_are_refused_with_what_to_do(tensor, device):
    with pytest.raises(ArgumentError, match="requires grad.*X.detach"):
        accelviz.spmm(A, tensor(), device=device)


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    expected = accelviz.spmm(A, X, device="cpu")
    tensor = torch.tensor(X)
    np.testing.assert_array_equal(accelviz.spmm(A, tensor, device="cpu"), expected)
    for wrong in (tensor.clone().requires_grad_(), tensor.bfloat16()):
        with pytest.raises(ArgumentError, match=r"X: a Tensor: .*X.detach\(\).float\(\)"):
            accelviz.spmm(A, wrong, device="cpu")
        with pytest.raises(ArgumentError, match="V: a Tensor: "):
            accelviz.sddmm(A, tensor, wrong, device="cpu")
        accelviz.spmm(A, wrong.detach().float(), device="cpu")


@pytest.mark.parametrize("function", [accelviz.trace, accelviz.tune])
@pytest.mark.parametrize("graph", ["cora", A, accelviz.load_graph(A)])
def test_what_wants_a_plan_says_so(function, graph):
    with pytest.raises(ArgumentError, match="plan: got a .*what accelviz.plan returns"):
        function(graph)


def test_a_trace_of_nothing_says_so():
    empty = accelviz.plan(sparse.csr_array((0, 0), dtype=np.float32), "graphblast", 8)
    with pytest.raises(ArgumentError, match="plan: it launches no block"):
        accelviz.trace(empty, np.empty((0, 8), np.float32))
    with pytest.raises(ArgumentError, match="block: got 1.0"):
        accelviz.trace(accelviz.plan(A, "graphblast", 8), X, block=1.0)
    with pytest.raises(DeviceUnavailable, match="whose kernels are closed"):
        accelviz.trace(accelviz.plan(A, "cusparse", 8), X)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_pool_of_forks_runs_after_a_product_on_all_cores():
    graph, features = accelviz.load_graph("cora"), np.ones((2708, 512), np.float32)
    expected = accelviz.spmm(graph, features, device="cpu")  # large enough for all cores
    run = functools.partial(accelviz.spmm, graph, device="cpu")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for result in pool.map_async(run, [features, features]).get(60):
            np.testing.assert_array_equal(result, expected)


def test_a_kernel_without_a_workload_runs_where_it_can():
    plan = accelviz.plan(A, "graphblast", 8)
    kernel_only = dataclasses.replace(plan, layout=Layout(plan.pattern))
    with pytest.raises(DeviceUnavailable, match="nothing to replay.*device='emulator'"):
        accelviz.spmm(kernel_only, X, device="cpu")
    with pytest.raises(DeviceUnavailable, match="What to do: device='cuda'"):
        accelviz.spmm(A, X, strategy="cusparse", device="cpu")
    if unavailable_reason() is None:
        result = accelviz.spmm(kernel_only, X, device="emulator")
        np.testing.assert_allclose(result, A @ X, rtol=1e-5, atol=1e-5)


def test_a_plan_cannot_be_changed():
    plan = accelviz.plan(A, "accel_gcn", 8)
    pointers = A.indptr.copy()
    buffers = Buffers({**plan.arrays, "row_pointers": pointers})
    plan = dataclasses.replace(plan, buffers=buffers)
    pointers[:] = 0  # the caller's own array is still the caller's
    assert plan.arrays["row_pointers"][-1] == A.nnz
    again = pickle.loads(pickle.dumps(plan))
    assert (again.arrays.keys(), again.parameters) == (plan.arrays.keys(), plan.parameters)
    for one in (plan, again):
        mappings = [one.buffers.zeroed_workspace, one.buffers.workspace]
        mappings += [one.arrays, one.parameters, one.widths, one.setup_seconds]
        for mapping in mappings:
            with pytest.raises(TypeError):
                mapping["mine"] = 1
        for name, array in one.arrays.items():
            if isinstance(array, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 0
                assert one.arrays[name] is array


@pytest.mark.parametrize(
    ("grid", "warps", "message"),
    [
        ((1, 1, 1), 0, "warps_per_block: got 0. Expected: 1 to 32"),
        ((1, 1, 1), 33, "warps_per_block: got 33"),
        ((1, 1, 1), -1, "warps_per_block: got -1"),
        ((1, 1, 1), 1.5, "warps_per_block: got 1.5"),
        ((0, 1, 1), 0, "warps_per_block: got 0"),
        ((-1, 1, 1), 1, "grid: got -1"),
        ((1, 1.5, 1), 1, "grid: got 1.5"),
        ((1, 65536, 1), 1, "65,536 blocks in y"),
    ],
)
def test_a_launch_that_no_gpu_makes_is_refused(grid, warps, message):
    with pytest.raises(PartitionError, match=message):
        LaunchConfig(grid, warps)


def test_an_empty_launch_and_a_full_block_are_fine():
    assert LaunchConfig((0, 1, 1), 32).n_blocks == 0
    assert LaunchConfig((np.int64(3), 1, 1), np.int32(1)).n_blocks == 3


class Warps(Settings):
    warps: int = setting(1, "", 4)


class Scores(Strategy):
    """`row_warp` of SDDMM under another name."""

    operation = SDDMM
    name = "scores"
    summary = ""
    Settings = Warps

    def build(self, graph, widths, settings):
        strategy = find_strategy("row_warp", SDDMM)
        return strategy.plan(graph, **widths, block_warps=settings.warps)


def timed(strategies, graphs=A, **options):
    return accelviz.benchmark(
        graphs, strategies, 4, "cpu", repeats=1, states=("warm",), progress=False, **options
    )


def test_a_benchmark_of_an_object_is_of_its_operation():
    several = [("row_warp", {}), Scores()]
    for strategies in (Scores(), [Scores()], several, (Scores(), {"warps": 2})):
        assert set(timed(strategies)["operation"]) == {"sddmm"}
    assert set(timed("graphblast")["operation"]) == {"spmm"}
    with pytest.raises(ArgumentError, match="'scores' is of sddmm"):
        timed(Scores(), operation="spmm")


def test_two_matrices_have_two_names_in_a_benchmark(tmp_path):
    path = tmp_path / "times.csv"
    graphs = [A, A.T.tocsr(), A, graph_of_degrees([1, 2, 3])]
    table = timed("graphblast", graphs, path=path)
    assert table["graph"].tolist()[:2] == ["matrix", "matrix 2"]
    assert table.groupby("graph")["fingerprint"].nunique().max() == 1
    assert len(timed("graphblast", graphs[:2], path=path)) == len(table)  # known by its name
    third = sparse.eye_array(3, dtype=np.float32).tocsr()
    assert timed("graphblast", third, path=path)["graph"].iloc[-1] == "matrix 3"


def test_a_parameter_may_not_have_the_name_of_a_statistic():
    with pytest.raises(
        ArgumentError, match="warps: a parameter of a strategy has the name of a column"
    ):
        accelviz.sweep(A, Scores(), warps=[1, 2])


def test_operations_are_never_compared_with_each_other():
    both = pd.concat([timed("graphblast"), timed("row_warp", operation="sddmm")])
    both["run"] = "same"
    table = speedups(both, "graphblast", "row_warp")
    assert table.empty
    assert table.attrs["dropped"] == 1
    alone = [speedups(table, "x", "y") for table in map(twice, (both[:1], both[1:]))]
    with pytest.raises(ArgumentError, match="more than one operation: spmm, sddmm"):
        by_graph(pd.concat(alone))


def twice(table):
    """Return a table of strategies x and y with the same times."""
    return pd.concat([table.assign(strategy=name) for name in "xy"])


@pytest.mark.parametrize(
    ("package", "name"), [("torch", "PyTorch"), ("torch_geometric", "PyTorch Geometric")]
)
def test_without_pytorch_the_adapter_says_what_to_install(monkeypatch, package, name):
    if package != "torch":
        pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "accelviz.torch", raising=False)
    monkeypatch.delattr(accelviz, "torch", raising=False)
    message = rf"accelviz.torch needs {name}: (%pip|.* -m pip) install 'accelviz\[torch\]'"
    with pytest.raises(AttributeError, match=message):
        accelviz.torch.GCNConv  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=message):
        importlib.import_module("accelviz.torch")
