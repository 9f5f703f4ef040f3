"""The 18 graphs of Accel-GCN's Table I: their sizes and their degrees."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from accelviz.arrays import Longs

_DEGREES = Path(__file__).resolve().parents[1] / "degrees"

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
    exact : bool
        Whether the degree distribution is the published graph's own. Those of Reddit and PRODUCTS
        are fitted to nodes, edges and maximum degree (`benchmarks/pages/fitted_degrees.py`).
    """

    name: str
    nodes: int
    edges: int
    directed: bool = False
    pieces: tuple[int, int] | None = None
    exact: bool = True

    def histogram(self) -> Histogram:
        """Return the degrees that occur, ascending, and how many rows have each: int64, (k,)."""
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
    table = pd.read_csv(_DEGREES / "table-one.csv")
    with np.load(_DEGREES / "fitted.npz") as fitted:
        histograms: dict[str, Histogram] = {name: tuple(fitted[name]) for name in fitted}
    for name, part in table.groupby("graph"):
        histograms[str(name)] = part["degree"].to_numpy(), part["rows"].to_numpy()
    return histograms
