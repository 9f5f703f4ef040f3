"""The explorer: a page that shows how strategies divide a graph's nonzeros among warps.

`Explorer` holds the settings and packs the data that the page draws. The TypeScript in `src/`
computes partitions in the browser, so that a saved page works without Python. Where a notebook
kernel runs, `connection.Connection` passes the page's other requests to `Explorer.answer` and
`Explorer.trace`.
"""

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
from accelviz.strategies import REGISTRY, find_strategy, operation_of, other_operation_hint
from accelviz.widgets import assets
from accelviz.widgets.contents import (
    column_counts,
    glossary,
    graph_content,
    listed_content,
    operation_content,
    row_columns,
    strategies_content,
    times_content,
)
from accelviz.widgets.traced import trace_content

#: Most bytes of arrays that are traced; the emulator copies every array.
TRACE_BYTES = 400_000_000
#: Most nonzeros times columns of a block whose trace a saved page includes: a few seconds' work.
QUICK_TRACE = 400_000
#: Settings other than the first strategy's parameters: names in Python and in the page.
SETTINGS = {
    **{name: name for name in ("graph", "first", "second", "row", "block", "pinned")},
    "n_cols": "nCols",
    "degree_sorted": "sorted",
}


class Explorer:
    """An interactive page on one graph; parameters as in `widgets.explore`, which returns it."""

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
        registered = [
            strategy
            for strategy in REGISTRY
            if strategy.operation == self.operation
            and strategy.by_sender == self.operation.by_sender
        ]
        requested = [find_strategy(strategy, self.operation) for strategy in strategies]
        for strategy in requested:
            if strategy.by_sender != self.operation.by_sender:
                problem = f"{strategy.name!r} walks the matrix, not its transpose"
                expected = "a strategy whose rows are the page's"
                raise ArgumentError("strategies", problem, expected)
        self.strategies: dict[str, Strategy] = {}
        for strategy in [*requested, *registered]:
            self.strategies.setdefault(strategy.name, strategy)
        self.graphs: dict[str, Graph] = {graph.name: graph}
        self.operation_content = operation_content(self.operation)
        first = next(iter(self.strategies))
        baseline = registered[0].name if registered else first
        second: str | None = baseline
        pinned = {}
        if "partition" in self.strategies[baseline].parameters:
            pinned = {"partition": "warp"}
        elif baseline == first:  # a strategy is compared with another one
            others = [name for name in self.strategies if name != first]
            fastest = self.operation.fastest
            second = fastest if fastest in others else next(iter(others), None)
        #: Settings of the page, with the names of `Settings` in `src/types.ts`.
        self.settings: dict[str, Any] = {
            "graph": graph.name,
            "first": first,
            "second": second,
            # In operands with a row per nonzero, a column is an attention head: usually one.
            "nCols": 1 if self.operation_content["at_nonzeros"] else 64,
            "row": longest_row(self.kernel_matrix(graph)),
            "block": 0,
            "parameters": {},
            "pinned": pinned,
            "sorted": False,
        }
        self._change(settings)
        self._connection: Any = None
        self._stored: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the graphs offered: opened ones, bundled ones, twins of Accel-GCN's Table I."""
        exact = [f"{graph.name}-twin" for graph in TABLE_ONE.values() if graph.exact]
        others = [f"{g.name}-approximate-twin" for g in TABLE_ONE.values() if not g.exact]
        return tuple(dict.fromkeys([*self.graphs, *bundled_graphs(), *exact, *others]))

    def graph(self, name: str) -> Graph:
        """Return a graph by name; each is loaded once."""
        if name not in self.graphs:
            self.graphs[name] = load_graph(name)
        return self.graphs[name]

    def set(self, **settings: Any) -> None:
        """Change settings, as the page's controls do; if one value is invalid, nothing changes.

        Parameters
        ----------
        **settings
            `graph`, `first`, `second` (None for no comparison), `n_cols`, `row`, `block`,
            `degree_sorted` (True for rows that are sorted by degree beforehand), `pinned`
            (parameters of the second strategy), and parameters of the first strategy.

        Raises
        ------
        ArgumentError
            If a setting, graph, strategy, row or block does not exist, or a number is out of range.
        AccelvizError
            If a strategy refuses its parameters.
        """
        self._change(settings)
        if self._connection is not None:
            self._connection.show(self.settings)

    def _change(self, settings: Mapping[str, Any]) -> None:
        new = {**self.settings, "parameters": {**self.settings["parameters"]}}
        for name, value in settings.items():
            if name in SETTINGS:
                new[SETTINGS[name]] = self._checked(name, value)
        graph = self.graph(new["graph"])
        matrix = self.kernel_matrix(graph)
        if new["graph"] != self.settings["graph"] and "row" not in settings:
            new["row"] = longest_row(matrix)
        if "second" in settings and "pinned" not in settings:
            new["pinned"] = {}
        declared = self.strategies[new["first"]].parameters
        for name, value in settings.items():
            if name not in SETTINGS:
                if name not in declared:
                    known = ", ".join(("strategies", *SETTINGS, *declared))
                    raise ArgumentError(name, "there is no such setting", known)
                new["parameters"][name] = declared[name].checked(name, value)
        if "pinned" in settings and new["second"] is not None:
            offered = self.strategies[new["second"]].parameters
            for name in new["pinned"]:
                if name not in offered:
                    problem = f"{new['second']} has no parameter {name!r}"
                    raise ArgumentError("pinned", problem, ", ".join(offered))
        last_row = matrix.n_rows - 1
        if not 0 <= new["row"] <= max(last_row, 0):
            raise ArgumentError("row", f"got {new['row']}", f"0 to {last_row}")
        for side, (strategy, parameters) in self._sides(new).items():
            # Raises if the strategy refuses this combination of values.
            statistics = summary(strategy, graph, new["nCols"], parameters)
            if side == "first" and "block" in settings:
                last_block = max((statistics.blocks or 1) - 1, 0)
                if not 0 <= new["block"] <= last_block:
                    raise ArgumentError("block", f"got {new['block']}", f"0 to {last_block}")
        self.settings = new

    def _sides(self, settings: Mapping[str, Any]) -> dict[str, tuple[Strategy, dict[str, Any]]]:
        """Return strategy and parameters of "first" and, unless None, "second"."""
        sides = {}
        for side, values in (("first", "parameters"), ("second", "pinned")):
            if settings[side] is not None:
                strategy = self.strategies[settings[side]]
                sides[side] = strategy, _parameters_of(strategy, settings[values])
        return sides

    def _checked(self, name: str, value: Any) -> Any:
        if name == "degree_sorted":
            if not isinstance(value, bool | np.bool_):
                raise ArgumentError(name, f"got {value!r}", "True or False")
            return bool(value)
        if name == "pinned":
            if not isinstance(value, Mapping):
                raise ArgumentError(name, f"got {value!r}", "a dict of the second's parameters")
            return dict(value)
        choices = {"graph": self.names, "first": self.strategies, "second": self.strategies}
        if name in choices:
            if value not in choices[name] and not (name == "second" and value is None):
                hint = "" if name == "graph" else other_operation_hint(value)
                raise ArgumentError(name, f"there is no {value!r}", ", ".join(choices[name]) + hint)
            return value
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ArgumentError(name, f"got {value!r}", "an integer")
        return int(value)

    def content(self) -> dict[str, Any]:
        """Return the data that the page draws, `Content` in `src/types.ts`."""
        graph_data = self.graph_and_strategies(self.graph(self.settings["graph"]))
        without_scheme = {data["name"] for data in graph_data["strategies"] if not data["scheme"]}
        listed = [
            self.listed_workload(strategy.name, parameters, self.settings["nCols"])
            for strategy, parameters in self._sides(self.settings).values()
            if strategy.name in without_scheme
        ]
        return {
            "graphs": list(self.names),
            "columns": column_counts(self.settings["nCols"]),
            "operation": self.operation_content,
            "settings": self.settings,
            "glossary": glossary(),
            "listed": listed,
            **graph_data,
        }

    def graph_and_strategies(self, graph: Graph) -> dict[str, Any]:
        """Return the data of a graph, and of the strategies on it."""
        n_cols = self.settings["nCols"]
        chosen = {**self.settings["pinned"], **self.settings["parameters"]}
        return {
            "graph": {
                **graph_content(self.kernel_matrix(graph), self.settings["row"]),
                "name": graph.name,
                "times": times_content(graph, self.operation),
            },
            "strategies": strategies_content([*self.strategies.values()], graph, n_cols, chosen),
        }

    def kernel_matrix(self, graph: Graph) -> Graph:
        """Return the matrix whose rows are partitioned: the transpose if `operation.by_sender`."""
        return graph.transposed().graph if self.operation.by_sender else graph

    def listed_workload(self, name: str, values: Mapping[str, Any], n_cols: int) -> dict[str, Any]:
        """Return the workload of a strategy whose scheme the page cannot compute."""
        strategy, graph = self.strategies[name], self.graph(self.settings["graph"])
        parameters = {**strategy.defaults(), **_parameters_of(strategy, values)}
        return listed_content(strategy, graph, n_cols, parameters)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data that the page requests: a page, a graph, a workload or a row's columns.

        Parameters
        ----------
        request : mapping
            One of "page" (true), "graph" (a name), "listed" (a dict with "strategy", "parameters"
            and "nCols") and "columns" (a row); "graphNow" is the name of the graph shown.

        Raises
        ------
        ArgumentError
            If the request has none of these.
        """
        if request.get("page"):
            return self.content()
        if "graphNow" in request:
            self.settings["graph"] = request["graphNow"]
        if "graph" in request:
            return self.graph_and_strategies(self.graph(str(request["graph"])))
        if "listed" in request:
            side = request["listed"]
            workload = self.listed_workload(side["strategy"], side["parameters"], side["nCols"])
            return {"listed": workload}
        if "columns" in request:
            graph, row = self.graph(self.settings["graph"]), int(request["columns"])
            columns = row_columns(self.kernel_matrix(graph), row)
            return {"row_columns": {"graph": graph.name, "row": row, "columns": columns}}
        raise ArgumentError("question", f"got {list(request)}", "graph, listed or columns")

    def trace(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Run `settings["block"]` in the emulator; return its memory requests under "trace".

        Raises
        ------
        ArgumentError
            If the arrays have more than `TRACE_BYTES` bytes.
        AccelvizError
            As `accelviz.trace`; DeviceUnavailable without a C++ compiler.
        """
        plan = self._plan(settings)
        operands = self.operation.operands.values()
        dense = [operand.shape(plan.sizes) for operand in operands if not operand.of_nonzeros]
        n_bytes = sum(array.nbytes for array in plan.arrays.values())
        n_bytes += 2 * FLOAT_BYTES * sum(map(math.prod, dense))
        if n_bytes > TRACE_BYTES:
            raise ArgumentError(
                "graph",
                f"a trace would copy {n_bytes / 1e6:,.0f} MB of matrices",
                f"at most {TRACE_BYTES / 1e6:,.0f} MB: a smaller graph or fewer columns",
            )
        waits: list[dict[str, Any]] = []
        inputs = random_inputs(self.operation, plan.pattern, plan.widths)
        table = trace(plan, *inputs, block=settings["block"], waits=waits)
        return {"trace": trace_content(table, plan, waits)}

    def _plan(self, settings: Mapping[str, Any]) -> Plan:
        strategy, graph = self.strategies[settings["first"]], self.graph(settings["graph"])
        parameters = _parameters_of(strategy, settings["parameters"])
        return strategy.plan(graph, settings["nCols"], **parameters)

    def traced(self) -> dict[str, Any]:
        """Return the trace of the block that the page opens with.

        Returns
        -------
        dict
            "trace", and "settings" with that block. If the block has more than `QUICK_TRACE`
            nonzeros times columns or cannot be traced, "untraced": the reason. Empty for a library,
            whose kernels have no workload.
        """
        try:
            plan = self._plan(self.settings)
            if not plan.has_workload:
                return {}
            blocks = find_row(plan, self.settings["row"]).blocks or (self.settings["block"],)
            block = max(blocks[0], min(self.settings["block"], blocks[-1]))
            work = plan.workload(block, block + 1)
            size = int(work.nz_count.sum()) * self.settings["nCols"]
            if size > QUICK_TRACE:
                problem = f"block {block:,} has {size:,} nonzeros times columns"
                return {"untraced": f"{problem}, of which a page keeps at most {QUICK_TRACE:,}."}
            settings = {**self.settings, "block": block}
            return {**self.trace(settings), "settings": settings}
        except AccelvizError as error:
            return {"untraced": str(error)}

    def fallback(self) -> str:
        """Return HTML with the key numbers, for readers whose browser runs no scripts."""
        graph = self.graph(self.settings["graph"])
        idle = []
        for strategy, parameters in self._sides(self.settings).values():
            share = summary(strategy, graph, self.settings["nCols"], parameters).idle_share
            percentage = "not known" if np.isnan(share) else f"{share:.1%}"
            label = [strategy.name, *(f"{name}={value}" for name, value in parameters.items())]
            idle.append(f"{escape(' '.join(label))}: {percentage}")
        return (
            f"<p><b>{escape(graph.name)}</b>, {graph.n_rows:,} rows, {graph.nnz:,} nonzeros. "
            f"Warp time idle: {', '.join(idle)}.</p>"
            "<p>Here is a panel to explore this; it needs scripts (in JupyterLab, a notebook that "
            "you trust).</p>"
        )

    def save(self, path: str | os.PathLike[str], *, trace: bool = True) -> Path:
        """Write the page in its present state to an HTML file, and return its path.

        The file works offline and without a kernel.

        Parameters
        ----------
        path : str or path
        trace : bool
            Whether to include a trace of the block shown, which the page can play. Tracing needs a
            C++ compiler, takes about ten seconds the first time, and is left out for blocks with
            more than `QUICK_TRACE` nonzeros times columns.

        Raises
        ------
        ArgumentError
            If the path does not end in `.html`, or its folder is not writable.
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

        page_id = assets.new_name()
        # Packing the content takes seconds, so a message is shown first.
        message = f"Opening the explorer on {escape(self.settings['graph'])} ..."
        opening = {"text/html": f'<p class="av-opening">{message}</p>'}
        output = display(opening, raw=True, display_id=True)
        page = assets.page(self.content(), page_id, self.fallback())
        output.update({"text/html": page, "text/plain": repr(self)}, raw=True)
        try:
            from accelviz.widgets.connection import Connection
        except ImportError:  # without ipywidgets and anywidget, the page works without a kernel
            return
        self._stored = display(self._stored_html(page_id), raw=True, display_id=True)
        self._connection = Connection(self, page_id)
        display(self._connection)

    def _stored_html(self, page_id: str) -> dict[str, str]:
        settings = escape(json.dumps(self.settings))
        html = f'<div class="av-stored" hidden data-page="{page_id}" data-settings="{settings}">'
        return {"text/html": f"{html}</div>", "text/plain": ""}

    def store_settings(self, settings: Mapping[str, Any], page_id: str) -> None:
        """Take settings over from the page, and store them in the notebook's output."""
        self.settings = {**self.settings, **settings}
        if self._stored is not None:
            self._stored.update(self._stored_html(page_id), raw=True)

    def __repr__(self) -> str:
        return f"Explorer of {self.settings['graph']}: {self.settings['first']}"


def longest_row(graph: Graph) -> int:
    """Return the row with the most nonzeros, which shows most about a partition; else 0."""
    return int(graph.degrees.argmax()) if graph.n_rows else 0


def _parameters_of(strategy: Strategy, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in strategy.parameters}
