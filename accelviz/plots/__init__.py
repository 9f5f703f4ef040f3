"""Pictures: data in, Axes out. Nothing is computed here that a number could be wrong in."""

from __future__ import annotations

from accelviz.plots.card import graph_card, nonzero_pattern
from accelviz.plots.degrees import degree_histogram
from accelviz.plots.loads import block_close_ups, load_maps
from accelviz.plots.locality import locality_brackets
from accelviz.plots.measured import speedup_bars, speedup_ranges, time_against_columns
from accelviz.plots.overview import overview
from accelviz.plots.timeline import sm_timeline, timeline_comparison

__all__ = [
    "block_close_ups",
    "degree_histogram",
    "graph_card",
    "load_maps",
    "locality_brackets",
    "nonzero_pattern",
    "overview",
    "sm_timeline",
    "speedup_bars",
    "speedup_ranges",
    "time_against_columns",
    "timeline_comparison",
]
