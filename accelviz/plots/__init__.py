"""Pictures of plans, graphs, traces and measurements. Statistics come from other packages.

Common parameters and results:

- `ax` is the Axes to draw on; the default is those of a new figure, which has alt text in a
  notebook. Functions return the Axes; functions that draw several panels return a list.
- `table`, in pictures of times, has results of one machine, with the columns of
  `measure.records.COLUMNS`. `state` selects the "warm" or "cold" times.
- `strategies` selects cases of the table, in the notation of `measure.comparison`, or maps names
  to cases; the default is all strategies. The title describes the first.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelviz.plots.assignment import block_assignment
    from accelviz.plots.bits import bit_planes, bits_crossover, jumped_tiles
    from accelviz.plots.convolution import channel_windows, field_growth
    from accelviz.plots.degrees import degree_histogram, degree_shares
    from accelviz.plots.graphs import graph_card, locality_brackets, nonzero_pattern
    from accelviz.plots.lanes import lane_map
    from accelviz.plots.loads import block_close_ups, load_maps, warp_loads
    from accelviz.plots.many_gpus import device_shares, device_timelines, second_gpu
    from accelviz.plots.measured import error_against_speed, ladder_times, time_against_columns
    from accelviz.plots.memory import access_map
    from accelviz.plots.metadata import metadata_layout
    from accelviz.plots.overviews import overview
    from accelviz.plots.rooflines import roofline
    from accelviz.plots.speedups import speedup_bars, speedup_ranges
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

#: Functions by module. A module is imported when a function of it is used first, as one picture
#: needs few of the libraries that all of them need.
_FUNCTIONS = {
    "assignment": ("block_assignment",),
    "bits": ("bit_planes", "bits_crossover", "jumped_tiles"),
    "convolution": ("channel_windows", "field_growth"),
    "degrees": ("degree_histogram", "degree_shares"),
    "graphs": ("graph_card", "locality_brackets", "nonzero_pattern"),
    "lanes": ("lane_map",),
    "loads": ("block_close_ups", "load_maps", "warp_loads"),
    "many_gpus": ("device_shares", "device_timelines", "second_gpu"),
    "measured": ("error_against_speed", "ladder_times", "time_against_columns"),
    "memory": ("access_map",),
    "metadata": ("metadata_layout",),
    "overviews": ("overview",),
    "rooflines": ("roofline",),
    "speedups": ("speedup_bars", "speedup_ranges"),
    "sweeps": ("sweep_heatmap", "sweep_lines"),
    "tiles": ("fragment_lanes", "window_tiles"),
    "timeline": ("block_durations", "sm_timeline", "sm_timelines"),
    "training": ("accuracies", "neighbor_weights", "step_memory", "step_times"),
}
_MODULES = {name: module for module, names in _FUNCTIONS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
