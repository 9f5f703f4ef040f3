"""The 18 graphs of Accel-GCN's Table I: sizes and degree histograms."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accelviz.arrays import Longs

_DEGREES = Path(__file__).resolve().parents[1] / "degrees"

#: Distinct degrees, ascending, and the number of rows of each: int64, shape (k,).
Histogram = tuple[Longs, Longs]


@dataclass(frozen=True)
class TableEntry:
    """A graph of Table I.

    Attributes
    ----------
    name : str
        Name as spelled in the table.
    nodes, edges : int
        Numbers from the table. `edges` is the number of nonzeros: an undirected edge counts twice.
    directed : bool
        Whether the published data set is directed, so that its twin is not symmetric.
    pieces : tuple of int or None
        For a collection of many small graphs, the smallest and largest number of nodes of one. They
        are chosen so that the mean is that of the published collection.
    exact : bool
        Whether the degrees are those of the published graph. For Reddit and PRODUCTS they are
        fitted to nodes, edges and maximum degree (`benchmarks/pages/fitted_degrees.py`).
    """

    name: str
    nodes: int
    edges: int
    directed: bool = False
    pieces: tuple[int, int] | None = None
    exact: bool = True

    def histogram(self) -> Histogram:
        """Return the distinct degrees, ascending, and the number of rows of each: int64, (k,)."""
        return _histograms()[self.name]


#: Entries by lower-case name. `pieces` gives the mean sizes of TUDataset: 46.7, 46.6 and 21.5 atoms
#: per molecule, and 4.0 users per graph of TWITTER-Partial.
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
        TableEntry("PRODUCTS", 2_449_029, 123_718_280, exact=False),
        TableEntry("Pubmed", 19_717, 99_203),
        TableEntry("PPA", 576_289, 42_463_862),
        TableEntry("Reddit", 232_965, 114_615_891, exact=False),
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
    import pandas as pd

    table = pd.read_csv(_DEGREES / "table-one.csv")
    with np.load(_DEGREES / "fitted.npz") as fitted:
        histograms: dict[str, Histogram] = {name: tuple(fitted[name]) for name in fitted}
    for name, part in table.groupby("graph"):
        histograms[str(name)] = part["degree"].to_numpy(), part["rows"].to_numpy()
    return histograms
