"""The explorer: one panel in which a slider shows at once what a partition does to a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accelviz.widgets import charts, clocks, close_ups
from accelviz.widgets.panel import Panel, button, menu, slider, steps, view
from accelviz.widgets.state import BLOCK_WARPS, COLUMNS, WARP_NZS, State


class Explorer(Panel):
    """The panel that `explore` returns.

    Attributes
    ----------
    state : State
        What it shows, to be read and changed from Python too: `explorer.set(max_block_warps=4)`.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        super().__init__(self._wanted, self._seen)

    def set(self, **settings: Any) -> None:
        """Change settings, as the controls do; see `State.change`."""
        self.state.change(**settings)
        self.refresh()

    def _wanted(self, wanted: Mapping[str, Any]) -> None:
        state, rest = self.state, dict(wanted)
        degrees = rest.pop("degree", None)
        if degrees is not None:
            rest["row"] = state.row_of_degree(*degrees)
        step, traced = rest.pop("request", None), rest.pop("trace", None)
        if rest:
            state.change(**rest)
        if traced:
            state.trace()
        if step is not None and state.traced is not None:
            state.traced.go(step)

    def _seen(self) -> Mapping[str, Any]:
        return {
            "title": charts.headline(self.state),
            "controls": self._controls(),
            "views": self._views(),
        }

    def _controls(self) -> list[dict[str, Any]]:
        state, now = self.state, self.state.settings
        listening = {*state.first.choice.sliders, *state.second.choice.sliders}
        plan = state.first.plan
        blocks = plan.launch.n_blocks if plan.has_workload else 0
        traced = state.traced
        return [
            menu("graph", "graph", state.graphs, now.graph),
            menu("first", "strategy", tuple(state.choices), now.first),
            menu("second", "compare with", tuple(state.choices), now.second),
            *(
                slider(name, name, values, getattr(now, name), enabled=name in listening)
                for name, values in (
                    ("max_block_warps", BLOCK_WARPS),
                    ("max_warp_nzs", _with(WARP_NZS, now.max_warp_nzs)),
                )
            ),
            slider("n_cols", "columns of X", _with(COLUMNS, now.n_cols), now.n_cols),
            steps("row", "follow row", state.graph.n_rows - 1, now.row),
            steps("block", "block", blocks - 1, now.block),
            button("trace", "Trace this block", enabled=blocks > 0 and plan.kernel is not None),
            steps(
                "request",
                "request",
                len(traced.steps) - 1 if traced else 0,
                traced.step if traced else 0,
            ),
        ]

    def _views(self) -> list[dict[str, Any]]:
        state = self.state
        number = state.settings.block
        return [
            view(
                "degrees",
                "Degrees: how a row would be treated alone",
                charts.degrees(state),
                width=4,
            ),
            view("loads", "Work of a warp", charts.loads(state), width=4),
            view("statistics", "What the partition does", charts.statistics(state), width=4),
            view("map", "Every warp of every block", charts.block_map(state), width=12),
            view("block", f"Block {number:,}: a colour a row", close_ups.block(state), width=5),
            view("row", "One row, from the graph to memory", close_ups.row(state), width=7),
            view("times", "Time on a GPU", clocks.times(state), width=5),
            view("metadata", f"Metadata of block {number:,}", close_ups.metadata(state), width=7),
            view("trace", "What the lanes read next", close_ups.trace(state), width=12),
        ]


def _with(values: Sequence[int], value: int) -> tuple[int, ...]:
    """Put a value that the slider does not offer in its place among those that it does."""
    return tuple(sorted({*values, value}))
