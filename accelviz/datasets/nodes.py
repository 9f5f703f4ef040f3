"""Training data: a graph with node features, labels and a split of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.datasets.load import bundled_archive, bundled_graphs, load_graph
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph, taken_over

#: Names of the node sets of a split.
SPLITS = ("train", "val", "test")
#: Label of a node whose class is unknown.
UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class NodeData:
    """A graph for node classification, validated at construction.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        A square matrix. Row `i` has the in-neighbors of node `i`.
    features : array of shape (n_nodes, n_features), SciPy sparse matrix or Graph
        Node features, all finite, rounded to float32. Sparse features stay sparse.
    labels : array of int, shape (n_nodes,)
        Classes, numbered from 0; at least half of the numbers must occur, because each class needs
        a column of the network. -1 for a node of unknown class.
    train, val, test : array of bool of shape (n_nodes,), or array of int
        Nodes for training, for early stopping and for testing: a mask, or node numbers.
    name : str, optional
        Name for tables; by default that of the graph.

    Attributes
    ----------
    n_classes : int
        One more than the largest label.

    Raises
    ------
    GraphError, ArgumentError
        If an argument is invalid, with the first wrong entry.
    """

    graph: Graph
    features: Any
    labels: npt.NDArray[np.int64]
    train: npt.NDArray[np.int64]
    val: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]
    name: str = ""

    def __post_init__(self) -> None:
        def set_field(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        set_field("graph", load_graph(self.graph))
        n_nodes, n_columns = self.graph.shape
        if n_nodes != n_columns:
            raise GraphError("graph", f"{n_nodes} x {n_columns} is not square", "a square matrix")
        set_field("name", self.name or self.graph.name)
        set_field("features", _checked_features(self.features, n_nodes))
        set_field("labels", taken_over(_checked_labels(self.labels, n_nodes)))
        for split in SPLITS:
            set_field(split, taken_over(_checked_nodes(split, getattr(self, split), self.labels)))
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
    def n_classes(self) -> int:
        """One more than the largest label."""
        return int(self.labels.max()) + 1

    def __repr__(self) -> str:
        split = " + ".join(str(getattr(self, part).size) for part in SPLITS)
        return (
            f"NodeData({self.name!r}: {self.n_nodes:,} nodes, {self.graph.nnz:,} edges, "
            f"{self.n_features:,} features, {self.n_classes} classes, {split} nodes to train, "
            "validate and test)"
        )


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


def _checked_labels(labels: Any, n_nodes: int) -> npt.NDArray[np.int64]:
    array = np.asarray(labels)
    if labels is None or array.size == 0:
        problem = "there are none" if labels is None or n_nodes else "the graph has no node"
        raise ArgumentError("labels", problem, "a class, from 0 on, for each node to learn from")
    if array.dtype.kind not in "iu":
        raise ArgumentError("labels", f"dtype {array.dtype}", "integers: numbers of classes")
    if array.shape != (n_nodes,):
        problem, expected = f"shape {array.shape} for {n_nodes:,} nodes", f"shape ({n_nodes},)"
        raise ArgumentError("labels", problem, f"{expected}: one for each node, -1 where not known")
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


def _checked_nodes(name: str, split: Any, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the ascending nodes of a mask or of node numbers; each must have a label."""
    array = np.asarray(split)
    if array.dtype == np.bool_:
        if array.shape != labels.shape:
            problem = f"a mask of shape {array.shape} for {labels.size:,} nodes"
            raise ArgumentError(name, problem, f"shape {labels.shape}")
        array = np.flatnonzero(array)
    elif array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        problem = f"shape {array.shape}, dtype {array.dtype}"
        raise ArgumentError(name, problem, "a mask of bool, or a list of node numbers")
    nodes = np.unique(array).astype(np.int64)
    if array.shape == labels.shape and array.size > 2 and np.isin(nodes, (0, 1)).all():
        problem = f"a number, 0 or 1, for each of the {labels.size:,} nodes"
        raise ArgumentError(name, problem, "a mask of bool, mask.astype(bool), or node numbers")
    if nodes.size == 0:
        raise ArgumentError(name, "no node is in it", "at least one")
    if nodes.size != array.size:
        raise ArgumentError(name, f"{array.size - nodes.size} nodes are twice in it", "each once")
    if nodes[0] < 0 or nodes[-1] >= labels.size:
        node = nodes[0] if nodes[0] < 0 else nodes[-1]
        raise ArgumentError(name, f"there is no node {node}", f"0 to {labels.size - 1}")
    unlabelled = nodes[labels[nodes] == UNLABELLED]
    if unlabelled.size:
        problem = f"{unlabelled.size} of its nodes have no label, the first is {unlabelled[0]}"
        raise ArgumentError(name, problem, "nodes with a label")
    return nodes
