"""The explorer: a page that is alive by itself, and the kernel behind it for what it cannot do."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from accelviz.analysis.lookup import find_row
from accelviz.analysis.sweep import summary
from accelviz.datasets import bundled_graphs, load_graph
from accelviz.datasets.synthetic.table_one import TABLE_ONE
from accelviz.devices import trace
from accelviz.errors import AccelvizError, ArgumentError
from accelviz.files import written_whole
from accelviz.graph import Graph
from accelviz.measure import random_inputs
from accelviz.plans import Operation, Plan, Strategy
from accelviz.plans.operation import FLOAT_BYTES
from accelviz.strategies import REGISTRY, elsewhere, find_strategy, operation_of
from accelviz.widgets import assets
from accelviz.widgets.contents import (
    columns_of,
    columns_offered,
    glossary,
    graph_content,
    listed_content,
    operation_content,
    strategies_content,
    times_content,
)
from accelviz.widgets.traced import trace_content

#: Memory that a trace may copy: the emulator keeps its own copy of every array.
TRACE_BYTES = 400_000_000
#: Nonzeros times columns of a block that a saved page is given the trace of: a few seconds' work.
QUICK_TRACE = 400_000
#: What may be set, besides the first strategy's parameters: name in Python to name in the page.
SETTINGS = {
    **{name: name for name in ("graph", "first", "second", "row", "block", "pinned")},
    "n_cols": "nCols",
}


class Explorer:
    """What `widgets.explore` returns, with its parameters; as a cell's last line it is shown."""

    def __init__(
        self,
        graph: Graph,
        strategies: Strategy | str | Sequence[Strategy | str] = (),
        *,
        operation: str | Operation | None = None,
        **settings: Any,
    ) -> None:
        if isinstance(strategies, Strategy | str):
            strategies = [strategies]
        if not isinstance(strategies, Sequence):
            expected = "a strategy, its name, or a list of them"
            raise ArgumentError("strategies", f"got {strategies!r}", expected)
        self.operation = operation_of(strategies, operation)
        registered = [one for one in REGISTRY if one.operation == self.operation]
        offered = [*(find_strategy(one, self.operation) for one in strategies), *registered]
        self.strategies: dict[str, Strategy] = {}
        for strategy in offered:
            self.strategies.setdefault(strategy.name, strategy)
        self.graphs: dict[str, Graph] = {graph.name: graph}
        self.names_of_operation = operation_content(self.operation)
        first = next(iter(self.strategies))
        plain = registered[0].name if registered else first
        second: str | None = plain
        pinned = {}
        if "partition" in self.strategies[plain].parameters:
            pinned = {"partition": "warp"}
        elif plain == first:  # nothing is learned from a strategy beside itself
            others = [name for name in self.strategies if name != first]
            second = min(others, key=lambda name: name != self.operation.fastest, default=None)
        #: What the page shows; names as in `src/store.ts`.
        self.settings: dict[str, Any] = {
            "graph": graph.name,
            "first": first,
            "second": second,
            # Of what is given for each nonzero a column is a head, most often one.
            "nCols": 1 if self.names_of_operation["at_nonzeros"] else 64,
            "row": longest(self.walked(graph)),
            "block": 0,
            "parameters": {},
            "pinned": pinned,
        }
        self._change(settings)
        self._connection: Any = None
        self._stored: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """The graphs that can be chosen: this one, the bundled ones, twins of Table I."""
        exact = [f"{graph.name}-twin" for graph in TABLE_ONE.values() if graph.exact]
        others = [f"{g.name}-approximate-twin" for g in TABLE_ONE.values() if not g.exact]
        return tuple(dict.fromkeys([*self.graphs, *bundled_graphs(), *exact, *others]))

    def graph(self, name: str) -> Graph:
        """Return a graph by name, opened once."""
        if name not in self.graphs:
            self.graphs[name] = load_graph(name)
        return self.graphs[name]

    def set(self, **settings: Any) -> None:
        """Change settings, as the controls do; nothing changes if one of them cannot be.

        Parameters
        ----------
        **settings
            `graph`, `first`, `second` (None for no comparison), `n_cols`, `row`, `block`, `pinned`
            (the second's parameters), and parameters of the first.

        Raises
        ------
        ArgumentError
            If there is no such setting, graph, strategy, row or block, or a number is out of range.
        AccelvizError
            What the strategy says of parameters that it cannot have.
        """
        self._change(settings)
        if self._connection is not None:
            self._connection.show(self.settings)

    def _change(self, settings: Mapping[str, Any]) -> None:
        wanted = {**self.settings, "parameters": {**self.settings["parameters"]}}
        for name, value in settings.items():
            if name in SETTINGS:
                wanted[SETTINGS[name]] = self._checked(name, value)
        graph = self.graph(wanted["graph"])
        if wanted["graph"] != self.settings["graph"] and "row" not in settings:
            wanted["row"] = longest(self.walked(graph))
        if "second" in settings and "pinned" not in settings:
            wanted["pinned"] = {}
        declared = self.strategies[wanted["first"]].parameters
        for name, value in settings.items():
            if name not in SETTINGS:
                if name not in declared:
                    known = ", ".join(("strategies", *SETTINGS, *declared))
                    raise ArgumentError(name, "there is no such setting", known)
                wanted["parameters"][name] = declared[name].checked(name, value)
        if "pinned" in settings and wanted["second"] is not None:
            offered = self.strategies[wanted["second"]].parameters
            for name in wanted["pinned"]:
                if name not in offered:
                    problem = f"{wanted['second']} has no parameter {name!r}"
                    raise ArgumentError("pinned", problem, ", ".join(offered))
        last_row = self.walked(graph).n_rows - 1
        if not 0 <= wanted["row"] <= max(last_row, 0):
            raise ArgumentError("row", f"got {wanted['row']}", f"0 to {last_row}")
        for side, (strategy, parameters) in self._sides(wanted).items():
            # Values that cannot be had together fail here.
            counted = summary(strategy, graph, wanted["nCols"], parameters)
            if side == "first" and "block" in settings:
                last = max((counted.blocks or 1) - 1, 0)
                if not 0 <= wanted["block"] <= last:
                    raise ArgumentError("block", f"got {wanted['block']}", f"0 to {last}")
        self.settings = wanted

    def _sides(self, settings: Mapping[str, Any]) -> dict[str, tuple[Strategy, dict[str, Any]]]:
        """Return the strategy of each side with those of the values given that it can have."""
        sides = {}
        for side, values in (("first", "parameters"), ("second", "pinned")):
            if settings[side] is not None:
                strategy = self.strategies[settings[side]]
                sides[side] = strategy, _only(strategy, settings[values])
        return sides

    def _checked(self, name: str, value: Any) -> Any:
        if name == "pinned":
            if not isinstance(value, Mapping):
                raise ArgumentError(name, f"got {value!r}", "a dict of the second's parameters")
            return dict(value)
        known = {"graph": self.names, "first": self.strategies, "second": self.strategies}
        if name in known:
            if value not in known[name] and not (name == "second" and value is None):
                names = ", ".join(known[name]) + ("" if name == "graph" else elsewhere(value))
                raise ArgumentError(name, f"there is no {value!r}", names)
            return value
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ArgumentError(name, f"got {value!r}", "an integer")
        return int(value)

    def content(self) -> dict[str, Any]:
        """Return what the page draws from, as it is set now."""
        now = self.settings
        answer = self.graph_answer(self.graph(now["graph"]))
        unknown = {content["name"] for content in answer["strategies"] if not content["scheme"]}
        listed = [
            self.listed(strategy.name, parameters)
            for strategy, parameters in self._sides(now).values()
            if strategy.name in unknown
        ]
        return {
            "graphs": list(self.names),
            "columns": columns_offered(now["nCols"]),
            "operation": self.names_of_operation,
            "settings": now,
            "glossary": glossary(),
            "listed": listed,
            **answer,
        }

    def graph_answer(self, graph: Graph) -> dict[str, Any]:
        """Return a graph and what the strategies make of graphs of its size."""
        now = self.settings
        chosen = {**now["pinned"], **now["parameters"]}
        return {
            "graph": {
                **graph_content(self.walked(graph), now["row"]),
                "name": graph.name,
                "times": times_content(graph, self.operation),
            },
            "strategies": strategies_content(
                [*self.strategies.values()], graph, now["nCols"], chosen
            ),
        }

    def walked(self, graph: Graph) -> Graph:
        """Return the matrix whose rows are dealt out: of an operation by sender the transpose."""
        return graph.transposed().graph if self.operation.by_sender else graph

    def listed(self, name: str, values: Mapping[str, Any], n_cols: int | None = None) -> Any:
        """Return the workload of a strategy whose scheme the page does not know."""
        strategy, now = self.strategies[name], self.settings
        parameters = {**strategy.defaults(), **_only(strategy, values)}
        graph = self.graph(now["graph"])
        return listed_content(strategy, graph, n_cols or now["nCols"], parameters)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer what the page asks for: a graph, a workload, columns, a trace."""
        if question.get("page"):
            return self.content()
        if "graphNow" in question:
            self.settings["graph"] = question["graphNow"]
        if "graph" in question:
            return self.graph_answer(self.graph(str(question["graph"])))
        if "listed" in question:
            wanted = question["listed"]
            return {
                "listed": self.listed(wanted["strategy"], wanted["parameters"], wanted["nCols"])
            }
        if "columns" in question:
            graph, row = self.graph(self.settings["graph"]), int(question["columns"])
            columns = columns_of(self.walked(graph), row)
            return {"row_columns": {"graph": graph.name, "row": row, "columns": columns}}
        raise ArgumentError("question", f"got {list(question)}", "graph, listed or columns")

    def trace(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Run a block in the emulator and return what each lane touched, for the page.

        Raises
        ------
        ArgumentError
            If the graph is too large for the emulator's copies of its arrays.
        AccelvizError
            As `accelviz.trace` does; where there is no C++ compiler, DeviceUnavailable.
        """
        plan = self._plan(settings)
        operands = self.operation.operands.values()
        dense = [operand.shape(plan.sizes) for operand in operands if not operand.of_nonzeros]
        size = sum(array.nbytes for array in plan.arrays.values())
        size += 2 * FLOAT_BYTES * sum(map(math.prod, dense))
        if size > TRACE_BYTES:
            raise ArgumentError(
                "graph",
                f"a trace would copy {size / 1e6:,.0f} MB of matrices",
                f"at most {TRACE_BYTES / 1e6:,.0f} MB: a smaller graph or fewer columns",
            )
        waits: list[dict[str, Any]] = []
        inputs = random_inputs(self.operation, plan.pattern, plan.widths)
        table = trace(plan, *inputs, block=settings["block"], waits=waits)
        return {"trace": trace_content(table, plan, waits)}

    def _plan(self, settings: Mapping[str, Any]) -> Plan:
        strategy, graph = self.strategies[settings["first"]], self.graph(settings["graph"])
        parameters = _only(strategy, settings["parameters"])
        return strategy.plan(graph, settings["nCols"], **parameters)

    def traced(self) -> dict[str, Any]:
        """Return the trace of the block that the page opens with, and the settings with this block.

        Where it cannot be traced (no C++ compiler) or does too much, "untraced", why not; of a
        library's kernel nothing.
        """
        now = self.settings
        try:
            plan = self._plan(now)
            if not plan.has_workload:
                return {}
            blocks = find_row(plan, now["row"]).blocks or (now["block"],)
            block = max(blocks[0], min(now["block"], blocks[-1]))
            work = plan.workload(block, block + 1)
            size = int(work.nz_count.sum()) * now["nCols"]
            if size > QUICK_TRACE:
                named = (
                    f"block {block:,} has {size:,} nonzeros times columns, of which a page keeps"
                )
                return {"untraced": f"{named} at most {QUICK_TRACE:,}."}
            settings = {**now, "block": block}
            return {**self.trace(settings), "settings": settings}
        except AccelvizError as error:
            return {"untraced": str(error)}

    # Shown and kept

    def html(self) -> str:
        """Return it as it is now as HTML with a script, alive without a kernel or a network."""
        return assets.page(self.content(), assets.new_name(), self.fallback())

    def fallback(self) -> str:
        """Say the most important in HTML without a script."""
        now = self.settings
        graph = self.graph(now["graph"])
        waiting = []
        for strategy, parameters in self._sides(now).values():
            share = summary(strategy, graph, now["nCols"], parameters).idle_share
            known = "not known" if np.isnan(share) else f"{share:.1%}"
            words = [strategy.name, *(f"{n}={v}" for n, v in parameters.items())]
            waiting.append(f"{escape(' '.join(words))}: {known}")
        return (
            f"<p><b>{escape(graph.name)}</b>, {graph.n_rows:,} rows, {graph.nnz:,} nonzeros. "
            f"Warp time spent waiting: {', '.join(waiting)}.</p>"
            "<p>Here is a panel to explore this; it needs scripts (in JupyterLab, a notebook that "
            "you trust).</p>"
        )

    def save(self, path: str | os.PathLike[str], *, trace: bool = True) -> Path:
        """Write it as it is now to a page of HTML, alive without a kernel or a network.

        Parameters
        ----------
        path : str or path
        trace : bool
            Whether to keep a trace of the block that it opens with, so that it can be played. That
            takes a C++ compiler, which needs about ten seconds the first time, and a block that is
            not large (`QUICK_TRACE`).

        Raises
        ------
        ArgumentError
            If the path does not end in `.html`, or its folder cannot be written to.
        """
        target = Path(path)
        if target.suffix != ".html":
            raise ArgumentError("path", f"got {str(path)!r}", "a name that ends in .html")
        title = f"{self.settings['graph']}, explored with accelviz"
        with written_whole(target) as temporary:
            content = {**self.content(), **(self.traced() if trace else {})}
            text = assets.document(content, title, self.fallback())
            Path(temporary).write_text(text, "utf-8")
        return target

    def _ipython_display_(self) -> None:
        from IPython.display import display

        name = assets.new_name()
        # What follows takes seconds, on a busy machine many.
        said = f"Opening the explorer on {escape(self.settings['graph'])} ..."
        opening = {"text/html": f'<p class="av-opening">{said}</p>'}
        output = display(opening, raw=True, display_id=True)
        page = assets.page(self.content(), name, self.fallback())
        output.update({"text/html": page, "text/plain": repr(self)}, raw=True)
        try:
            from accelviz.widgets.connection import Connection
        except ImportError:  # without ipywidgets the page has no kernel, and lives
            return
        self._stored = display(self._stored_html(name), raw=True, display_id=True)
        self._connection = Connection(self, name)
        display(self._connection)

    def _stored_html(self, name: str) -> dict[str, str]:
        text = escape(json.dumps(self.settings))
        html = f'<div class="av-stored" hidden data-page="{name}" data-settings="{text}"></div>'
        return {"text/html": html, "text/plain": ""}

    def keep(self, settings: Mapping[str, Any], name: str) -> None:
        """Take the settings over from the page, and keep them in the notebook."""
        self.settings = {**self.settings, **settings}
        if self._stored is not None:
            self._stored.update(self._stored_html(name), raw=True)

    def __repr__(self) -> str:
        return f"Explorer of {self.settings['graph']}: {self.settings['first']}"


def longest(graph: Graph) -> int:
    """Return the row with the most nonzeros, which shows most about a partition."""
    return int(graph.degrees.argmax()) if graph.n_rows else 0


def _only(strategy: Strategy, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some values that are parameters of a strategy."""
    return {name: value for name, value in values.items() if name in strategy.parameters}
