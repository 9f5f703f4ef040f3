"""The panels' front doors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from accelviz.analysis.sweep import sweep
from accelviz.convolution import Network
from accelviz.datasets import load_graph
from accelviz.plans import Operation, Strategy
from accelviz.strategies import find_strategy
from accelviz.widgets.prediction import Prediction
from accelviz.widgets.question import Question
from accelviz.widgets.stages import Stages

#: What a question about Accel-GCN offers unless asked otherwise; of other strategies, what is worth
#: trying. With one warp a block none would wait.
OFFERED = {"max_block_warps": range(2, 33), "max_warp_nzs": (4, 8, 16, 32, 64, 128, 256, 512)}


def explore(
    graph: Any = "cora",
    strategies: Strategy | str | Sequence[Strategy | str] = (),
    *,
    operation: str | Operation | None = None,
    **settings: Any,
) -> Any:
    """Open the explorer on a graph.

    Parameters
    ----------
    graph : Graph, or anything `load_graph` takes
        Every bundled graph can be chosen in the panel too.
    strategies : Strategy, str, or sequence of them, optional
        Strategies of your own, offered beside those there are; the first is shown first.
    operation : str or Operation, optional
        "spmm", "sddmm", "gat", "edge_softmax" ...; if not given, the strategy object's own, or
        "spmm".
    **settings
        Where to begin: `first`, `second` (None for no comparison) with the parameters `pinned`,
        `n_cols`, `row` or `block`, and parameters of the first, such as `max_block_warps`.

    Returns
    -------
    Explorer
        As the last line of a cell it is shown; `.save("x.html")` writes it to a page of its own.
        Without ipywidgets and anywidget, as in a page, no kernel answers what only it can: another
        graph, a trace, the columns of a large graph.

    Raises
    ------
    GraphError
        If `graph` is not a valid sparse matrix.
    ArgumentError
        If there is no such setting or operation, or the operation has no matrix with a row a node
        or a nonzero.
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
    """Ask for the setting that does best; the answer is locked until the guesses are used.

    Parameters
    ----------
    graph : Graph, anything `sweep` takes
    statistic : str
        What is to be small: a column of `sweep`'s table.
    most : bool
        Whether it is to be large instead.
    question : str, optional
        In your own words.
    explanation : str, optional
        Shown with the answer.
    guesses : int
        How many there are.
    strategy : str or Strategy
    n_cols : int
        Columns of X.
    **parameters
        The values to choose from, for one or two parameters of the strategy; those of its first two
        that are worth trying if not given.

    Returns
    -------
    Question
        As the last line of a cell it is shown; it needs no kernel. Guesses are kept while the
        browser's tab is open.

    Raises
    ------
    ArgumentError
        If there is no such statistic or setting, the graph's degrees do not determine it, or
        `guesses` is below 1.
    """
    declared = find_strategy(strategy).parameters
    tried = {name: OFFERED.get(name, one.tries) for name, one in declared.items() if one.tries}
    names = list(dict.fromkeys([*parameters, *tried]))[: max(2, len(parameters))]
    values: dict[str, Any] = {name: parameters.get(name, tried.get(name)) for name in names}
    table = sweep(graph, strategy, n_cols, **values)
    return Question(
        table, statistic, most=most, guesses=guesses, question=question, explanation=explanation
    )


def predict(
    question: str,
    answer: float | str | Sequence[Any] | Callable[[], Any],
    *,
    choices: Sequence[str] = (),
    draw: str = "",
    unit: str = "",
    within: float = 1.0,
    because: str = "",
    show: Callable[[], Any] | None = None,
) -> Any:
    """Take a prediction, and only then show the answer and how good the prediction was.

    Nothing waits for it: cells that follow can run before. A prediction is kept while the
    browser's tab is open, however often its cell runs. It needs no kernel; where no script may run,
    the answer is folded away.

    Parameters
    ----------
    question : str
        What stands between backticks is shown as code.
    answer : float, str, sequence, or callable
        A number; or with `choices` one of them, or all of them in their right order; or with
        `draw` whole numbers, a bar each. A callable gives it.
    choices : sequence of str
        What to choose from, or to put in order.
    draw : str
        What one of the bars stands for, such as "warp": they are drawn, and then compared.
    unit : str
        Of the number or the bars, such as "%", "us" or "nonzeros".
    within : float
        A number is close if it is not off by more than this factor.
    because : str
        Shown with the answer, after `show`. An empty line begins a paragraph.
    show : callable, optional
        `show()` gives what is shown with the answer: Axes or a figure, a table, text, or a
        sequence of such.

    Returns
    -------
    Prediction
        As the last line of a cell it is shown.

    Raises
    ------
    ArgumentError
        If the answer is not a finite number, or does not fit the choices.

    Examples
    --------
    >>> import accelviz
    >>> plan = accelviz.plan("cora", n_cols=64)
    >>> question = predict(
    ...     "Which share of warp time is spent waiting?",
    ...     100 * plan.statistics.idle_share,
    ...     unit="%",
    ...     within=1.2,
    ...     because="Few rows of Cora are long, so that many blocks are not full.",
    ...     show=lambda: plots.load_maps({"Accel-GCN": plan}),
    ... )
    >>> question  # doctest: +SKIP
    """
    return Prediction(question, answer, choices, draw, unit, within, because, show)


def stages(network: Network | str = "VGG16") -> Stages:
    """Move convolutions between the stages of a network, and see gain, parameters and FLOPs.

    Parameters
    ----------
    network : Network, or a name of `accelviz.convolution.NETWORKS`

    Returns
    -------
    Stages
        As the last line of a cell it is shown; it needs no kernel.

    Raises
    ------
    ArgumentError
        If there is no network of that name.
    """
    return Stages(network)
