"""Pictures: data in, Axes out. Nothing is computed here that a number could be wrong in."""

from __future__ import annotations

from accelviz.plots.assignment import block_assignment
from accelviz.plots.degrees import degree_histogram, degree_shares
from accelviz.plots.graphs import graph_card, locality_brackets, nonzero_pattern
from accelviz.plots.grids import limit_grid, speedup_grid
from accelviz.plots.lanes import lane_map
from accelviz.plots.loads import block_close_ups, load_maps, warp_loads
from accelviz.plots.measured import speedup_bars, speedup_ranges, time_against_columns
from accelviz.plots.memory import access_map
from accelviz.plots.metadata import metadata_layout
from accelviz.plots.overview import overview
from accelviz.plots.ownership import block_ownership
from accelviz.plots.rooflines import roofline
from accelviz.plots.sweeps import sweep_heatmap, sweep_lines
from accelviz.plots.timeline import sm_timeline, timeline_comparison

__all__ = [
    "access_map",
    "block_assignment",
    "block_close_ups",
    "block_ownership",
    "degree_histogram",
    "degree_shares",
    "graph_card",
    "lane_map",
    "limit_grid",
    "load_maps",
    "locality_brackets",
    "metadata_layout",
    "nonzero_pattern",
    "overview",
    "roofline",
    "sm_timeline",
    "speedup_bars",
    "speedup_grid",
    "speedup_ranges",
    "sweep_heatmap",
    "sweep_lines",
    "time_against_columns",
    "timeline_comparison",
    "warp_loads",
]
