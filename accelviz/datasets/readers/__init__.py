"""Readers of graph files. To add one, write a function with the decorator `@reader(".ending")`.

A reader raises a GraphError for a malformed file, with its path and, for text, the line.
"""

from __future__ import annotations

# The import of a reader's module registers it.
from accelviz.datasets.readers import edge_list, matrix_market, npz
from accelviz.datasets.readers.registry import READERS, read_file, reader

__all__ = ["READERS", "edge_list", "matrix_market", "npz", "read_file", "reader"]
