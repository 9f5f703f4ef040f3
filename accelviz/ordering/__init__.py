"""Vertex orders, each as a Permutation."""

from __future__ import annotations

from accelviz.ordering.degree import DegreeHistogram, degree_sort, sort_by_degree
from accelviz.ordering.permutation import Permutation, permuted_row_pointers

__all__ = [
    "DegreeHistogram",
    "Permutation",
    "degree_sort",
    "permuted_row_pointers",
    "sort_by_degree",
]
