"""Public functions that open the widgets: `explore`, `ask`, `predict`, `stages`.

In this file, a kernel is the notebook's running Python kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from accelviz.analysis.sweep import sweep
from accelviz.convolution import Network
from accelviz.datasets import load_graph
from accelviz.plans import Operation, Strategy
from accelviz.strategies import find_strategy
from accelviz.widgets.prediction import Prediction
from accelviz.widgets.question import Question
from accelviz.widgets.stages import Stages

#: Values that `ask` offers by default for these parameters of Accel-GCN; for other parameters it
#: offers `Setting.tries`.
#: One warp per block is left out: no warp could idle.
DEFAULT_CHOICES = {
    "max_block_warps": range(2, 33),
    "max_warp_nzs": (4, 8, 16, 32, 64, 128, 256, 512),
}


def explore(
    graph: Any = "cora",
    strategies: Strategy | str | Sequence[Strategy | str] = (),
    *,
    operation: str | Operation | None = None,
    **settings: Any,
) -> Any:
    """Open an interactive page on how strategies divide a graph's nonzeros among warps.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        The graph shown first; with a notebook kernel, the page also offers every bundled graph.
    strategies : Strategy, str, or sequence of them, optional
        Strategies to offer besides the registered ones; the first is shown first.
    operation : str or Operation, optional
        "spmm", "sddmm", "gat", "edge_softmax" ...; by default that of the first strategy object,
        or "spmm".
    **settings
        Initial settings: `first`, `second` (None for no comparison) with the parameters `pinned`,
        `n_cols`, `row` or `block`, and parameters of the first, such as `max_block_warps`.

    Returns
    -------
    Explorer
        Displayed as the last line of a cell; `.save("x.html")` writes it to a file. In a file, or
        without ipywidgets and anywidget, the page has no kernel. Then it cannot load another graph,
        trace a block or show the column indices of a large graph.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.
    ArgumentError
        If a setting or the operation does not exist, or no operand of the operation has a row per
        node or per nonzero, as in image convolutions.
    """
    from accelviz.widgets.explorer import Explorer

    return Explorer(load_graph(graph), strategies, operation=operation, **settings)


def ask(
    graph: Any,
    statistic: str = "idle_warps",
    *,
    most: bool = False,
    question: str | None = None,
    explanation: str = "",
    guesses: int = 3,
    strategy: str | Strategy = "accel_gcn",
    n_cols: int = 64,
    **parameters: Iterable[Any],
) -> Any:
    """Ask for the best setting; the answer stays locked until it is guessed or no guess is left.

    Parameters
    ----------
    graph : Graph, anything `sweep` takes
    statistic : str
        The statistic to minimize: a column of `sweep`'s table.
    most : bool
        Whether to maximize it instead.
    question : str, optional
        Text of the question, in place of a generated one.
    explanation : str, optional
        Text shown with the answer.
    guesses : int
        Number of guesses.
    strategy : str or Strategy
    n_cols : int
        Columns of X.
    **parameters
        Values to choose from, for one or two parameters of the strategy. By default, values worth
        trying (`Setting.tries`) of its first two parameters that have some.

    Returns
    -------
    Question
        Displayed as the last line of a cell; it needs no kernel. Guesses are stored while the
        browser's tab is open.

    Raises
    ------
    ArgumentError
        If the statistic or a setting does not exist, the graph's degrees do not determine the
        statistic, or `guesses` is below 1.
    """
    declared = find_strategy(strategy).parameters
    defaults = {
        name: DEFAULT_CHOICES.get(name, setting.tries)
        for name, setting in declared.items()
        if setting.tries
    }
    names = list(dict.fromkeys([*parameters, *defaults]))[: max(2, len(parameters))]
    values: dict[str, Any] = {name: parameters.get(name, defaults.get(name)) for name in names}
    table = sweep(graph, strategy, n_cols, **values)
    return Question(
        table, statistic, most=most, guesses=guesses, question=question, explanation=explanation
    )


def predict(
    question: str,
    answer: float | str | Sequence[Any] | Set[Any] | Callable[[], Any],
    *,
    choices: Sequence[str] = (),
    draw: str = "",
    unit: str = "",
    within: float = 1.0,
    because: str = "",
    show: Callable[[], Any] | None = None,
) -> Any:
    """Ask for a prediction; show the answer, and how close the prediction was, afterwards.

    Later cells can run without a prediction. A prediction is stored while the browser's tab is
    open, also when its cell runs again. No kernel is needed; where scripts are blocked, the answer
    is folded away.

    Parameters
    ----------
    question : str
        Text of the question; text between backticks is shown as code.
    answer : float, str, sequence, or callable
        A number; with `choices`, one of them or all of them in the right order; with `draw`, the
        heights of the bars, as whole numbers. A set has numbers or choices that are equally right.
        A callable returns one of these.
    choices : sequence of str
        Answers to choose from, which are shown in another order, or to put in order.
    draw : str
        Name of what a bar stands for, such as "warp". The learner draws the bars.
    unit : str
        Unit of the number or the bars, such as "%", "us" or "nonzeros".
    within : float
        Largest factor, at least 1, by which a number that counts as close may be off.
    because : str
        Explanation shown with the answer, after `show`, for a choice before it. An empty line
        begins a paragraph.
    show : callable, optional
        `show()` returns a picture to show with the answer: Axes, a figure, a table, text, or a
        sequence of these.

    Returns
    -------
    Prediction
        Displayed as the last line of a cell.

    Raises
    ------
    ArgumentError
        If the answer is no finite number, or is not among the choices.

    Examples
    --------
    >>> import accelviz
    >>> plan = accelviz.plan("cora", "accel_gcn", n_cols=64)
    >>> question = predict(
    ...     "Which share of warp time is idle?",
    ...     100 * plan.statistics.idle_share,
    ...     unit="%",
    ...     within=1.2,
    ...     because="Few rows of Cora are long, so that many blocks are not full.",
    ...     show=lambda: accelviz.plots.load_maps({"Accel-GCN": plan}),
    ... )
    >>> question  # doctest: +SKIP
    """
    return Prediction(question, answer, choices, draw, unit, within, because, show)


def stages(network: Network | str = "VGG16") -> Stages:
    """Open a panel for moving convolutions between the stages of a network.

    It shows how the moves change the network's parameters, FLOPs and gain, which is that of chapter
    7 of the thesis (docs/convolution.md).

    Parameters
    ----------
    network : Network, or a name of `accelviz.convolution.NETWORKS`

    Returns
    -------
    Stages
        Displayed as the last line of a cell; it needs no kernel.

    Raises
    ------
    ArgumentError
        If no network has that name.
    """
    return Stages(network)
