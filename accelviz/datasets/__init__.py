"""Graphs: the bundled real ones, and anything a person brings."""

from __future__ import annotations

from accelviz.datasets.bundled import bundled_graphs
from accelviz.datasets.load import load_graph

__all__ = ["bundled_graphs", "load_graph"]
