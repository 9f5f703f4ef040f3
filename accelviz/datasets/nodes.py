"""Training data: a graph with node features, labels and a split of its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.datasets.load import bundled_archive, bundled_graphs, load_graph
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph
from accelviz.immutable import taken_over

#: Names of the node sets of a split.
SPLITS = ("train", "val", "test")
#: Label of a node whose class is unknown.
UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class NodeData:
    """A graph with features, labels and a split of its nodes, validated at construction.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        A square matrix. Row `i` has the in-neighbors of node `i`.
    features : array of shape (n_nodes, n_features), SciPy sparse matrix or Graph
        Node features, all finite, rounded to float32. Sparse features stay sparse.
    labels : array of int, bool or float, shape (n_nodes,) or (n_nodes, n_outputs)
        One of three tasks. Integers of shape (n_nodes,) are classes, numbered from 0; at least half
        of the numbers must occur, because each class needs a column of the network. Bool, or 0 and
        1, of shape (n_nodes, n_outputs) are labels of which a node has any number. Floats are
        targets of regression. A node with class -1 or target NaN has no label.
    train, val, test : array of bool of shape (n_nodes,), or array of int, optional
        Nodes for training, for early stopping and for testing: a mask, or node numbers, which may
        be `[]`. Without `val` or `test` there are no such nodes; without `train` all other labelled
        nodes are for training.
    name : str, optional
        Name for tables; by default that of the graph.

    Attributes
    ----------
    task : {"classes", "labels", "values"}
        What the labels are: classes, several labels per node, or targets of regression.
    n_outputs : int
        Columns of a network's result: number of classes, labels or targets.

    Raises
    ------
    GraphError, ArgumentError
        If an argument is invalid, with the first wrong entry.
    """

    graph: Graph
    features: Any
    labels: npt.NDArray[Any]
    train: npt.NDArray[np.int64] = None  # type: ignore[assignment]
    val: npt.NDArray[np.int64] = None  # type: ignore[assignment]
    test: npt.NDArray[np.int64] = None  # type: ignore[assignment]
    name: str = ""

    def __post_init__(self) -> None:
        def set_field(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        graph, features = checked_inputs(self.graph, self.features)
        set_field("graph", graph)
        set_field("name", self.name or graph.name)
        set_field("features", features)
        set_field("labels", taken_over(_checked_labels(self.labels, graph.n_rows)))
        is_labelled = labelled_nodes(self.labels)
        splits = {name: getattr(self, name) for name in SPLITS}
        for name, split in splits.items():
            split = [] if split is None else split
            set_field(name, taken_over(_checked_nodes(name, split, is_labelled)))
        if splits["train"] is None:
            is_labelled[self.val] = is_labelled[self.test] = False
            set_field("train", taken_over(np.flatnonzero(is_labelled).astype(np.int64)))
        overlap = np.intersect1d(self.train, np.concatenate([self.val, self.test]))
        if overlap.size:
            problem = f"{overlap.size} nodes are in val or test too, the first is {overlap[0]}"
            raise ArgumentError("train", problem, "splits that have no node in common")

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.graph.n_rows

    @property
    def n_features(self) -> int:
        """Number of columns of the features."""
        return int(self.features.shape[1])

    @property
    def task(self) -> str:
        """What the labels are: "classes", "labels" or "values"."""
        if self.labels.ndim == 1:
            return "classes"
        return "labels" if self.labels.dtype == np.bool_ else "values"

    @property
    def n_outputs(self) -> int:
        """Columns of a network's result: number of classes, labels or targets."""
        return int(self.labels.max()) + 1 if self.labels.ndim == 1 else int(self.labels.shape[1])

    def __repr__(self) -> str:
        split = " + ".join(str(getattr(self, part).size) for part in SPLITS)
        return (
            f"NodeData({self.name!r}: {self.n_nodes:,} nodes, {self.graph.nnz:,} edges, "
            f"{self.n_features:,} features, {self.n_outputs} {self.task}, {split} nodes to train, "
            "validate and test)"
        )


def disjoint_union(parts: Iterable[NodeData], name: str = "union") -> NodeData:
    """Join several graphs into one without edges between them: a block-diagonal matrix.

    Parameters
    ----------
    parts : iterable of NodeData
        Graphs with the same task and widths; features are sparse in all of them or in none. Nodes
        keep their order and their split; `train=[]` makes a graph for validation or testing only.
    name : str

    Returns
    -------
    NodeData
        Layers compute the same on it as on the parts, one after another.

    Raises
    ------
    ArgumentError
        If there is no part, or a part differs from the first one.
    """
    parts = list(parts)
    if not parts or not all(isinstance(part, NodeData) for part in parts):
        problem = "there is none" if not parts else "some are no NodeData"
        raise ArgumentError("parts", problem, "at least one NodeData")
    for number, part in enumerate(parts):
        for attribute, described in _COMPARED.items():
            values = described(part), described(parts[0])
            if values[0] != values[1]:
                problem = f"{attribute} of part {number}: {values[0]}, of part 0: {values[1]}"
                raise ArgumentError("parts", problem, "the same in all parts")
    starts = np.cumsum([0, *(part.n_nodes for part in parts[:-1])])
    placed = [*zip(parts, starts, strict=True)]
    splits = {
        split: np.concatenate([getattr(part, split) + start for part, start in placed])
        for split in SPLITS
    }
    features: Any = [part.features for part in parts]
    if isinstance(features[0], Graph):
        features = sparse.vstack([rows.adjacency for rows in features], format="csr")
    else:
        features = np.concatenate(features)
    graph = sparse.block_diag([part.graph.adjacency for part in parts], format="csr")
    labels = np.concatenate([part.labels for part in parts])
    return NodeData(load_graph(graph, name=name), features, labels, **splits, name=name)


#: What the parts of `disjoint_union` have in common.
_COMPARED = {
    "task": lambda part: part.task,
    "features": lambda part: "sparse" if isinstance(part.features, Graph) else "dense",
    "columns of features": lambda part: part.n_features,
    "columns of labels": lambda part: part.labels.shape[1:],
}


def load_nodes(data: Any) -> NodeData:
    """Load a bundled graph with its features, labels and public split.

    Parameters
    ----------
    data : str or NodeData
        "cora" or "citeseer", in any case. A NodeData is returned unchanged.

    Returns
    -------
    NodeData
        The features are sparse bags of words, each row divided by its sum, as in Kipf and Welling
        (ICLR 2017). The split is that of Yang et al. (ICML 2016): 20 nodes of each class for
        training, 500 for validation, 1,000 for testing. 15 nodes of citeseer have no label (-1).

    Raises
    ------
    ArgumentError
        If there is no bundled graph of that name with labels.

    Examples
    --------
    >>> from accelviz.datasets import load_nodes
    >>> load_nodes("cora")  # doctest: +NORMALIZE_WHITESPACE
    NodeData('cora': 2,708 nodes, 10,556 edges, 1,433 features, 7 classes,
    140 + 500 + 1000 nodes to train, validate and test)
    """
    if isinstance(data, NodeData):
        return data
    name = data.lower() if isinstance(data, str) else None
    arrays = bundled_archive(name) if name in bundled_graphs() else {}
    if "labels" not in arrays:
        labelled = [key for key in bundled_graphs() if "labels" in bundled_archive(key)]
        is_graph = arrays or isinstance(data, Graph)
        problem = (
            "has neither labels nor features" if is_graph else "is no bundled graph with labels"
        )
        expected = f"{', '.join(labelled)}, or NodeData(graph, features, labels, train, val, test)"
        raise ArgumentError("data", f"{data!r:.60} {problem}", expected)
    words = sparse.csr_array(
        (arrays["x_data"], arrays["x_indices"], arrays["x_indptr"]), shape=tuple(arrays["x_shape"])
    )
    sums = np.asarray(words.sum(axis=1)).ravel()
    words.data /= np.repeat(np.maximum(sums, 1), np.diff(words.indptr)).astype(np.float32)
    split = {key: arrays[key] for key in SPLITS}
    return NodeData(load_graph(name), words, arrays["labels"], **split, name=str(name))


def checked_inputs(graph: Any, features: Any) -> tuple[Graph, Any]:
    """Return a square graph, and features as a float32 array or, if they are sparse, a Graph.

    Raises
    ------
    GraphError, ArgumentError
        If the graph is not square, or the features are not one finite row per node.
    """
    graph = load_graph(graph)
    n_nodes, n_columns = graph.shape
    if n_nodes != n_columns:
        raise GraphError("graph", f"{n_nodes} x {n_columns} is not square", "a square matrix")
    return graph, _checked_features(features, n_nodes)


def labelled_nodes(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return whether each node has a label, given those of a `NodeData`."""
    if labels.ndim == 1:
        return np.asarray(labels != UNLABELLED)
    return np.asarray(np.isfinite(labels).all(axis=1))


def _checked_features(features: Any, n_nodes: int) -> Any:
    """Return features as a read-only float32 array, or as a Graph if they are sparse."""
    if np.iscomplexobj(features):
        raise ArgumentError("features", "they are complex", "real numbers")
    if sparse.issparse(features):
        data = features.tocoo()
        _check_finite(data.data, lambda k: (int(data.coords[0][k]), int(data.coords[1][k])))
        features = load_graph(features, name="features")
    if not isinstance(features, Graph):
        try:
            with np.errstate(over="ignore"):  # infinite values raise an error below
                features = np.ascontiguousarray(features, dtype=np.float32)
        except (TypeError, ValueError) as error:
            expected = "a 2-D array of numbers, or a SciPy sparse matrix"
            raise ArgumentError("features", str(error), expected) from error
    if len(features.shape) != 2 or features.shape[0] != n_nodes:
        expected = f"a row for each of the {n_nodes:,} nodes"
        raise ArgumentError("features", f"shape {features.shape}", expected)
    if features.shape[1] < 1:
        raise ArgumentError("features", f"shape {features.shape}", "at least one column")
    if isinstance(features, Graph):
        return features
    _check_finite(features, lambda k: divmod(k, features.shape[1]))
    return taken_over(features.copy())


def _check_finite(values: Any, locate: Any) -> None:
    """Raise an ArgumentError for NaN or infinity; `locate(i)` returns entry i's row and column."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.asarray(values, np.float32)).ravel()
    if not finite.all():
        first = int(np.argmin(finite))
        node, column = locate(first)
        problem = f"{finite.size - int(finite.sum()):,} are NaN or infinite in float32, the first "
        problem += f"({np.ravel(values)[first]}) is column {column} of node {node}"
        raise ArgumentError("features", problem, "finite numbers, such as np.nan_to_num(features)")


def _checked_labels(labels: Any, n_nodes: int) -> npt.NDArray[Any]:
    """Return classes as int64, (n_nodes,), labels as bool or targets as float32, both 2-D."""
    array = np.asarray(labels)
    kind = array.dtype.kind
    if labels is None or array.size == 0:
        problem = "there are none" if labels is None or n_nodes else "the graph has no node"
        raise ArgumentError("labels", problem, "a class, from 0 on, for each node to learn from")
    if kind not in "biuf" or (kind == "b" and array.ndim == 1):
        expected = "integers: numbers of classes; a table of bool: several labels; or floats"
        raise ArgumentError("labels", f"shape {array.shape}, dtype {array.dtype}", expected)
    if array.ndim > 2 or len(array) != n_nodes:
        problem, expected = f"shape {array.shape} for {n_nodes:,} nodes", f"shape ({n_nodes},)"
        raise ArgumentError("labels", problem, f"{expected}: one for each node, -1 where not known")
    if kind == "f":
        with np.errstate(over="ignore"):  # infinite values raise an error below
            targets = array.reshape(n_nodes, -1).astype(np.float32)
        if np.isinf(targets).any():
            node = int(np.argmax(np.isinf(targets).any(axis=1)))
            problem = f"one of node {node} is infinite in float32"
            raise ArgumentError("labels", problem, "finite numbers, NaN where not known")
        if not labelled_nodes(targets).any():
            raise ArgumentError("labels", "every node has a NaN", "numbers to learn from")
        return targets
    if array.ndim == 2:
        if not np.isin(array, (0, 1)).all():
            node = int(np.argmin(np.isin(array, (0, 1)).all(axis=1)))
            problem = f"shape {array.shape}, and node {node} has others than 0 and 1"
            raise ArgumentError("labels", problem, f"bool, or classes of shape ({n_nodes},)")
        return array.astype(np.bool_)
    if array.min() < UNLABELLED:
        node = int(np.argmin(array))
        raise ArgumentError("labels", f"{array[node]} of node {node}", "0 and more, -1: not known")
    if array.max() < 0:
        raise ArgumentError("labels", "no node has one", "a class for each node to learn from")
    classes = np.unique(array[array != UNLABELLED])
    if classes[-1] >= 2 * classes.size:
        problem = (
            f"{classes[-1]} of node {int(np.argmax(array))}, but {classes.size} classes in all"
        )
        raise ArgumentError(
            "labels", problem, f"0 to {classes.size - 1}, most of which have a node"
        )
    return array.astype(np.int64)


def _checked_nodes(
    name: str, split: Any, is_labelled: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return the ascending nodes of a mask or of node numbers; each must have a label."""
    array, n_nodes = np.asarray(split), is_labelled.size
    if array.dtype == np.bool_:
        if array.shape != is_labelled.shape:
            problem = f"a mask of shape {array.shape} for {n_nodes:,} nodes"
            raise ArgumentError(name, problem, f"shape {is_labelled.shape}")
        if not array.any():
            raise ArgumentError(name, "no node is in it", "at least one, or None")
        array = np.flatnonzero(array)
    elif array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        problem = f"shape {array.shape}, dtype {array.dtype}"
        raise ArgumentError(name, problem, "a mask of bool, or a list of node numbers")
    nodes = np.unique(array).astype(np.int64)
    if array.size == n_nodes > 2 and np.isin(nodes, (0, 1)).all():
        problem = f"a number, 0 or 1, for each of the {n_nodes:,} nodes"
        raise ArgumentError(name, problem, "a mask of bool, mask.astype(bool), or node numbers")
    if nodes.size != array.size:
        raise ArgumentError(name, f"{array.size - nodes.size} nodes are twice in it", "each once")
    if nodes.size and (nodes[0] < 0 or nodes[-1] >= n_nodes):
        node = nodes[0] if nodes[0] < 0 else nodes[-1]
        raise ArgumentError(name, f"there is no node {node}", f"0 to {n_nodes - 1}")
    unlabelled = nodes[~is_labelled[nodes]]
    if unlabelled.size:
        problem = f"{unlabelled.size} of its nodes have no label, the first is {unlabelled[0]}"
        raise ArgumentError(name, problem, "nodes with a label")
    return nodes
