"""Graphs: bundled data sets, files, objects of other libraries, twins and random graphs."""

from __future__ import annotations

from accelviz.datasets.load import bundled_graphs, describe, load_graph
from accelviz.datasets.nodes import NodeData, disjoint_union, load_nodes
from accelviz.datasets.synthetic.random_models import rmat, stochastic_block
from accelviz.datasets.synthetic.staircase import graph_of_degrees
from accelviz.datasets.synthetic.table_one import TABLE_ONE, TableEntry
from accelviz.datasets.synthetic.twins import twin

__all__ = [
    "TABLE_ONE",
    "NodeData",
    "TableEntry",
    "bundled_graphs",
    "describe",
    "disjoint_union",
    "graph_of_degrees",
    "load_graph",
    "load_nodes",
    "rmat",
    "stochastic_block",
    "twin",
]
