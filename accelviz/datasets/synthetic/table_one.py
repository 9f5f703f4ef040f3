"""The 18 graphs of Accel-GCN's Table I: their sizes and their degrees."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize

from accelviz.arrays import Longs
from accelviz.errors import ArgumentError

_DEGREES = Path(__file__).resolve().parents[1] / "degrees" / "table-one.csv"
#: Range of the tail's shape: from nearly all rows at the maximum to nearly all at 1.
_SHAPES = (-60.0, 60.0)

#: The degrees that occur, ascending, and how many rows have each.
Histogram = tuple[Longs, Longs]


@dataclass(frozen=True)
class TableEntry:
    """A graph of Table I.

    Attributes
    ----------
    name : str
        In the table's spelling.
    nodes, edges : int
        As the table has them; `edges` counts nonzeros, an undirected edge twice.
    directed : bool
        Whether the published data set is directed; its twin is not symmetric then.
    pieces : tuple of int or None
        For a collection of many small graphs side by side, the size of the smallest and of the
        largest; their mean is that of the published collection.
    max_degree : int or None
        Publicly known maximum degree where the distribution is not known and has to be fitted.
    """

    name: str
    nodes: int
    edges: int
    directed: bool = False
    pieces: tuple[int, int] | None = None
    max_degree: int | None = None

    @property
    def exact(self) -> bool:
        """Whether the degree distribution is the published graph's own."""
        return self.max_degree is None

    def histogram(self) -> Histogram:
        """Return the degrees that occur, ascending, and how many rows have each: two int64 arrays.

        Exact or, for Reddit and PRODUCTS, fitted to nodes, edges and maximum degree.
        """
        if self.max_degree is not None:
            return heavy_tailed_degrees(self.nodes, self.edges, self.max_degree)
        return _histograms()[self.name]


#: Lower-case name to entry. The sizes of the pieces give the mean sizes that TUDataset lists: 46.7,
#: 46.6 and 21.5 atoms in a molecule, 4.0 users in a piece of Twitter.
TABLE_ONE: dict[str, TableEntry] = {
    entry.name.lower(): entry
    for entry in (
        TableEntry("am", 881_680, 5_668_682),
        TableEntry("amazon0601", 403_394, 5_478_357, directed=True),
        TableEntry("Artist", 50_515, 1_638_396),
        TableEntry("Arxiv", 169_343, 1_166_243, directed=True),
        TableEntry("Citation", 2_927_963, 30_387_995, directed=True),
        TableEntry("Collab", 235_868, 2_358_104),
        TableEntry("com-amazon", 334_863, 1_851_744),
        TableEntry("OVCAR-8H", 1_889_542, 3_946_402, pieces=(17, 220)),
        TableEntry("PRODUCTS", 2_449_029, 123_718_280, max_degree=17_481),
        TableEntry("Pubmed", 19_717, 99_203),
        TableEntry("PPA", 576_289, 42_463_862),
        TableEntry("Reddit", 232_965, 114_615_891, max_degree=21_657),
        TableEntry("SW-620H", 1_888_584, 3_944_206, pieces=(17, 220)),
        TableEntry("TWITTER-Partial", 580_768, 1_435_116, pieces=(2, 13)),
        TableEntry("wikikg2", 2_500_604, 16_109_182, directed=True),
        TableEntry("Yelp", 716_847, 13_954_819),
        TableEntry("Yeast", 1_710_902, 3_636_546, pieces=(7, 130)),
        TableEntry("youtube", 1_138_499, 5_980_886),
    )
}


@functools.cache
def _histograms() -> dict[str, Histogram]:
    table = pd.read_csv(_DEGREES)
    return {
        str(name): (found["degree"].to_numpy(), found["rows"].to_numpy())
        for name, found in table.groupby("graph")
    }


def heavy_tailed_degrees(n_rows: int, nnz: int, max_degree: int) -> Histogram:
    """Fit a degree distribution to a graph's nodes, edges and largest degree.

    Parameters
    ----------
    n_rows : int
        Rows; every one gets at least one nonzero.
    nnz : int
        Nonzeros in all; met exactly.
    max_degree : int
        Largest degree; met exactly, by the last row.

    Returns
    -------
    degrees, rows : arrays of int64, shape (k,)
        The degrees that occur, ascending, and how many rows have each.

    Raises
    ------
    ArgumentError
        If no distribution has these figures.

    Notes
    -----
    The degree of the row at quantile u is `1 + (max - 1) * expm1(c t) / expm1(c t_last)` with
    `t = -log(1 - u)`: a generalised Pareto law whose one parameter c is solved for the mean. c > 0
    has a power-law tail, c = 0 an exponential one, c < 0 none.
    """
    low, high = n_rows + max_degree - 1, n_rows * max_degree
    if n_rows < 1 or not max_degree >= 1 or not low <= nnz <= high:
        raise ArgumentError(
            "nnz",
            f"{nnz} nonzeros in {n_rows} rows of degree 1 to {max_degree}",
            f"at least 1 row, and {low} to {high} nonzeros",
        )
    t = -np.log1p(-(np.arange(n_rows) + 0.5) / n_rows)

    def fitted(shape: float) -> npt.NDArray[np.float64]:
        rise = np.expm1(shape * t) / np.expm1(shape * t[-1]) if shape else t / t[-1]
        return 1 + (max_degree - 1) * rise

    def excess(shape: float) -> float:
        return float(fitted(shape).sum()) - nnz

    low_shape, high_shape = (shape / t[-1] for shape in _SHAPES)
    if excess(low_shape) <= 0:
        shape = low_shape
    elif excess(high_shape) >= 0:
        shape = high_shape
    else:
        shape = optimize.brentq(excess, low_shape, high_shape, xtol=1e-14)
    each = np.rint(fitted(shape)).astype(np.int64)
    each[-1] = max_degree
    # What rounding left over goes to the rows that have room, one nonzero to each.
    while (due := nnz - int(each.sum())) != 0:
        rows = np.flatnonzero(each[:-1] < max_degree if due > 0 else each[:-1] > 1)
        chosen = rows[np.linspace(0, rows.size - 1, min(abs(due), rows.size)).astype(np.int64)]
        each[chosen] += np.sign(due)
    degrees, rows = np.unique(each, return_counts=True)
    return degrees, rows
