"""The explorer: one panel in which a slider shows at once what a partition does to a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelviz.widgets import charts, clocks, close_ups
from accelviz.widgets.panel import Panel, button, menu, slider, steps, view
from accelviz.widgets.state import COLUMNS, State, offered


class Explorer(Panel):
    """The panel that `explore` returns.

    Attributes
    ----------
    state : State
        What it shows, to be read and changed from Python too: `explorer.set(n_cols=16)`.
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
        title = charts.headline(self.state)
        return {"title": title, "controls": self._controls(), "views": self._views()}

    def _controls(self) -> list[dict[str, Any]]:
        state, now, plan = self.state, self.state.settings, self.state.first.plan
        blocks = plan.launch.n_blocks if plan.has_workload else 0
        requests = len(state.traced.steps) if state.traced else 0
        columns = sorted({*COLUMNS, now.n_cols})
        return [
            menu("graph", "graph", state.graphs, now.graph),
            menu("first", "strategy", tuple(state.choices), now.first),
            menu("second", "compare with", tuple(state.choices), now.second),
            *(
                slider(name, name, offered(parameter, value), value, title=parameter.meaning)
                for name, (parameter, value) in state.sliders.items()
            ),
            slider("n_cols", "columns", columns, now.n_cols),
            steps("row", "follow row", state.graph.n_rows - 1, now.row),
            steps("block", "block", blocks - 1, now.block),
            button("trace", "Trace this block", enabled=blocks > 0 and plan.kernel is not None),
            steps("request", "request", requests - 1, state.traced.step if state.traced else 0),
        ]

    def _views(self) -> list[dict[str, Any]]:
        state, number = self.state, f"{self.state.settings.block:,}"
        shown = (
            ("degrees", "Degrees: how a row would be treated alone", charts.degrees, 4),
            ("loads", "Work of a warp", charts.loads, 4),
            ("statistics", "What the partition does", charts.statistics, 4),
            ("map", "Every warp of every block", charts.block_map, 12),
            ("block", f"Block {number}: a colour a row", close_ups.block, 5),
            ("row", "One row, from the graph to memory", close_ups.row, 7),
            ("times", "Time on a GPU", clocks.times, 5),
            ("metadata", f"Metadata of block {number}", close_ups.metadata, 7),
            ("trace", "What the lanes read next", close_ups.trace, 12),
        )
        return [view(name, title, draw(state), width=width) for name, title, draw, width in shown]
