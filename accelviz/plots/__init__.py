"""Pictures: data in, Axes out. Nothing is computed here that a number could be wrong in.

- `ax` says where to draw; a new figure if not given. The functions return what they draw on, those
  of several panels a list. In a notebook a new figure has alt text.
- `table`, where times are drawn, is the results of one machine, with the columns of
  `measure.records.COLUMNS`. `state` says which times: "warm" or "cold" ones.
- A strategy in such a table is named as a case of `measure.comparison`. `strategies` are cases, or
  a mapping of names to cases; all of the table if not given. The title speaks of the first.
"""

from __future__ import annotations

from accelviz.plots.assignment import block_assignment
from accelviz.plots.bits import bit_planes, bits_crossover, jumped_tiles
from accelviz.plots.convolution import channel_windows, field_growth
from accelviz.plots.degrees import degree_histogram, degree_shares
from accelviz.plots.graphs import graph_card, locality_brackets, nonzero_pattern
from accelviz.plots.lanes import lane_map
from accelviz.plots.loads import block_close_ups, load_maps, warp_loads
from accelviz.plots.many_gpus import device_shares, device_timelines, second_gpu
from accelviz.plots.measured import (
    error_against_speed,
    ladder_times,
    speedup_bars,
    speedup_ranges,
    time_against_columns,
)
from accelviz.plots.memory import access_map
from accelviz.plots.metadata import metadata_layout
from accelviz.plots.overview import overview
from accelviz.plots.rooflines import roofline
from accelviz.plots.sweeps import sweep_heatmap, sweep_lines
from accelviz.plots.tiles import fragment_lanes, window_tiles
from accelviz.plots.timeline import block_durations, sm_timeline, sm_timelines
from accelviz.plots.training import accuracies, neighbor_weights, step_memory, step_times

__all__ = [
    "access_map", "accuracies", "bit_planes", "bits_crossover", "block_assignment",
    "block_close_ups", "block_durations", "channel_windows", "degree_histogram", "degree_shares",
    "device_shares", "device_timelines", "error_against_speed", "field_growth", "fragment_lanes",
    "graph_card", "jumped_tiles", "ladder_times", "lane_map", "load_maps", "locality_brackets",
    "metadata_layout", "neighbor_weights", "nonzero_pattern", "overview", "roofline", "second_gpu",
    "sm_timeline", "sm_timelines", "speedup_bars", "speedup_ranges", "step_memory", "step_times",
    "sweep_heatmap", "sweep_lines", "time_against_columns", "warp_loads", "window_tiles",
]  # fmt: skip
