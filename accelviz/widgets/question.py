"""A question for a class: find the setting that does best, guess, then see where you stand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from accelviz.widgets import drawing
from accelviz.widgets.drawing import VERMILLION, attributes, rect, svg, tick, turned
from accelviz.widgets.panel import Panel, button, slider, view
from accelviz.widgets.sweep_state import STATISTICS, SweepState, written


class Question(Panel):
    """The panel that `ask` returns; `state` is a SweepState."""

    def __init__(self, state: SweepState, question: str, explanation: str = "") -> None:
        self.state, self.question, self.explanation = state, question, explanation
        super().__init__(self._wanted, self._seen)

    def _wanted(self, wanted: Mapping[str, Any]) -> None:
        settings = {name: value for name, value in wanted.items() if name in self.state.choices}
        if settings:
            self.state.choose(**settings)
        if wanted.get("guess"):
            self.state.guess()
        if wanted.get("reveal"):
            self.state.reveal()

    def _seen(self) -> Mapping[str, Any]:
        state = self.state
        chosen = zip(state.choices, state.setting, strict=True)
        explained = f"<p>{escape(self.explanation)}</p>" if state.revealed else ""
        return {
            "title": f"<b>{escape(self.question)}</b>",
            "controls": [
                *(slider(name, name, state.choices[name], now) for name, now in chosen),
                button("guess", "Lock this guess in", enabled=not state.may_reveal),
                button("reveal", "Reveal", enabled=state.may_reveal and not state.revealed),
            ],
            "views": [
                view("guesses", "Your guesses", guesses_html(state), width=4),
                view("answer", "All settings", answer_html(state) + explained, width=8),
            ],
        }


def value_text(state: SweepState, value: float) -> str:
    """Write a value of the question's statistic."""
    if STATISTICS[state.statistic][1] == "share":
        return f"{value:.2%}"
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.2f}"


def guesses_html(state: SweepState) -> str:
    """Lay out what was guessed, and how good it was."""
    rows = [
        (
            f"{i}. {written(guess)}",
            value_text(state, state.of_setting[guess]),
            "best" if state.of_setting[guess] == state.best else f"place {state.place(guess)}",
        )
        for i, guess in enumerate(state.guessed, 1)
    ]
    left = state.guesses - len(state.guessed)
    said = (
        "Found it!"
        if state.found
        else f"{left} guess{'es' if left != 1 else ''} left. Think first: what does each "
        "parameter do to it?"
        if left
        else "No guess is left: say what you have learned, then reveal the answer."
        if not state.revealed
        else "Compare your guesses with the best: what do the settings around it share?"
    )
    table = drawing.table(("guess", "value", f"of {len(state.of_setting)}"), rows) if rows else ""
    return f'{table}<p class="ask-note">{said}</p>'


def answer_html(state: SweepState) -> str:
    """Draw the values of all settings once they are revealed; a locked grid before."""
    columns, lines = (*state.choices.values(), [""])[:2]
    values = state.of_setting
    left, top = 60.0, 8.0
    wide, high = 640 / len(columns), min(28.0, 220 / len(lines))
    best, worst = state.best, (min if state.most else max)(values.values())
    parts = []
    for setting, value in values.items():
        column, line = (*setting, "")[:2]
        x, y = left + columns.index(column) * wide, top + lines.index(line) * high
        share = (value - best) / (worst - best) if worst != best else 0.0
        colour = drawing.LOADS[round(share * (len(drawing.LOADS) - 1))]
        info = f"{written(setting)}: {value_text(state, value)}, place {state.place(setting)}"
        if not state.revealed and setting not in state.guessed:
            colour, info = drawing.IDLE, f"{written(setting)}: guess first"
        mark = ' stroke="black" stroke-width="2"' if setting == state.setting else ""
        if state.revealed and value == state.best:
            mark = f' stroke="{VERMILLION}" stroke-width="3"'
        parts.append(rect(x, y, wide - 1, high - 1, colour, attributes(info=info) + mark))
    bottom = top + len(lines) * high
    every = max(1, math.ceil(22 / wide))
    for i in range(0, len(columns), every):
        middle = left + (i + 0.5) * wide
        parts.append(tick(middle, bottom + 14, str(columns[i])))
    for i, value in enumerate(lines):
        parts.append(tick(left - 5, top + (i + 0.6) * high, str(value), at="end"))
    across, down = (*state.choices, "")[:2]
    parts.append(tick(left + 320, bottom + 30, across, size=11))
    parts.append(turned(14, (top + bottom) / 2, down))
    said = "Locked."
    if state.revealed:
        settings = ", ".join(map(written, state.answers[:6]))
        more = "" if len(state.answers) <= 6 else f" and {len(state.answers) - 6} others"
        said = f"Best is {value_text(state, state.best)}, at {settings}{more} (red)."
    picture = svg(720, bottom + 36, parts, f"{STATISTICS[state.statistic][0]} of all settings")
    return f'{picture}<p class="ask-note">{said} Brighter is better.</p>'
