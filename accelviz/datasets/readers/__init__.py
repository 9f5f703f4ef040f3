"""Readers of graph files: to add one, write a function and put `@reader(".ending")` over it.

What is malformed is a GraphError, which names the file and, of text, the line.
"""

from __future__ import annotations

# Importing a reader's module registers it.
from accelviz.datasets.readers import edge_list, matrix_market, npz
from accelviz.datasets.readers.registry import READERS, read_file, reader

__all__ = [
    "READERS",
    "edge_list",
    "matrix_market",
    "npz",
    "read_file",
    "reader",
]
