"""What a network is trained on: a graph with features, labels and a split of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from accelviz.datasets.load import bundled_archive, bundled_graphs, load_graph
from accelviz.errors import ArgumentError, GraphError
from accelviz.graph import Graph, taken_over

#: The parts of a split.
SPLITS = ("train", "val", "test")
#: Label of a node whose class is not known.
UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class NodeData:
    """A graph whose nodes are to be classified, checked once when it is made.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Square; row `i` holds the in-neighbors of node `i`.
    features : array of shape (n_nodes, n_features), SciPy sparse matrix or Graph
        Rounded to float32, all finite. What is sparse stays sparse: a network multiplies it by its
        nonzeros.
    labels : array of int, shape (n_nodes,)
        Classes from 0 on, at least half of which have a node: each costs a column of the network.
        -1 stands for a node whose class is not known.
    train, val, test : array of bool of shape (n_nodes,), or array of int
        The nodes to learn from, to stop by and to be judged by: a mask, or their numbers.
    name : str, optional
        For tables; the graph's if not given.

    Attributes
    ----------
    n_classes : int
        One more than the largest label.

    Raises
    ------
    GraphError, ArgumentError
        If something does not fit, naming it and the first place at fault.
    """

    graph: Graph
    features: Any
    labels: npt.NDArray[np.int64]
    train: npt.NDArray[np.int64]
    val: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]
    name: str = ""

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        put("graph", load_graph(self.graph))
        n_nodes, n_columns = self.graph.shape
        if n_nodes != n_columns:
            raise GraphError("graph", f"{n_nodes} x {n_columns} is not square", "a square matrix")
        put("name", self.name or self.graph.name)
        put("features", _checked_features(self.features, n_nodes))
        put("labels", taken_over(_checked_labels(self.labels, n_nodes)))
        for split in SPLITS:
            put(split, taken_over(_nodes_of(split, getattr(self, split), self.labels)))
        both = np.intersect1d(self.train, np.concatenate([self.val, self.test]))
        if both.size:
            problem = f"{both.size} nodes are in val or test too, the first is {both[0]}"
            raise ArgumentError("train", problem, "splits that have no node in common")

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.graph.n_rows

    @property
    def n_features(self) -> int:
        """Columns of the features."""
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
        "cora" or "citeseer", in any case. A NodeData is returned as it is.

    Returns
    -------
    NodeData
        The features, bags of words, are sparse, and each row is divided by its sum, as in Kipf and
        Welling (ICLR 2017). The split is that of Yang et al. (ICML 2016): 20 nodes of each class
        to train, 500 to validate, 1,000 to test. 15 nodes of citeseer have no label (-1).

    Raises
    ------
    ArgumentError
        If there are no labels of that name.

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
        known = arrays or isinstance(data, Graph)
        problem = "has neither labels nor features" if known else "is no bundled graph with labels"
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
    """Return float32 features, read-only, or those of a sparse matrix as a Graph."""
    if np.iscomplexobj(features):
        raise ArgumentError("features", "they are complex", "real numbers")
    if sparse.issparse(features):
        data = features.tocoo()
        _check_finite(data.data, lambda k: (int(data.coords[0][k]), int(data.coords[1][k])))
        features = load_graph(features, name="features")
    if not isinstance(features, Graph):
        try:
            with np.errstate(over="ignore"):  # what becomes infinite is named below
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


def _nodes_of(name: str, split: Any, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the nodes of a mask, or of node numbers, ascending; each must have a label."""
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
        wrong = nodes[0] if nodes[0] < 0 else nodes[-1]
        raise ArgumentError(name, f"there is no node {wrong}", f"0 to {labels.size - 1}")
    unknown = nodes[labels[nodes] == UNLABELLED]
    if unknown.size:
        problem = f"{unknown.size} of its nodes have no label, the first is {unknown[0]}"
        raise ArgumentError(name, problem, "nodes with a label")
    return nodes
