"""A question for a class: find the setting that does best, guess, then see where you stand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from accelviz.widgets import drawing
from accelviz.widgets.drawing import GREY, VERMILLION, attributes, rect, svg, text
from accelviz.widgets.panel import Panel, button, slider, view
from accelviz.widgets.sweep_state import FIRST, NAMES, SECOND, SHARES, SweepState


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
        explained = f"<p>{escape(self.explanation)}</p>" if state.revealed else ""
        return {
            "title": f"<b>{escape(self.question)}</b>",
            "controls": [
                *(
                    slider(name, name, values, value)
                    for (name, values), value in zip(
                        state.choices.items(), state.setting, strict=True
                    )
                ),
                button("guess", "Lock this guess in", enabled=not state.may_reveal),
                button("reveal", "Reveal", enabled=state.may_reveal and not state.revealed),
            ],
            "views": [
                view("guesses", "Your guesses", guesses_html(state), width=4),
                view("answer", "All settings", answer_html(state) + explained, width=8),
            ],
        }


def written(state: SweepState, value: float) -> str:
    """Write a value of the question's statistic."""
    if state.statistic in SHARES:
        return f"{value:.2%}"
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.2f}"


def guesses_html(state: SweepState) -> str:
    """Lay out what was guessed, and how good it was."""
    rows = [
        (
            f"{i}. {' x '.join(map(str, guess))}",
            written(state, state.value(guess)),
            "best" if state.value(guess) == state.best else f"place {state.place(guess)}",
        )
        for i, guess in enumerate(state.guessed, 1)
    ]
    left = state.guesses - len(state.guessed)
    said = (
        "Found it!"
        if state.found
        else f"{left} guess{'es' if left != 1 else ''} left. Think first: what does each of "
        "the two parameters do to it?"
        if left
        else "No guess is left: say what you have learned, then reveal the answer."
        if not state.revealed
        else "Compare your guesses with the best: what do the settings around it share?"
    )
    table = drawing.table(("guess", "value", f"of {len(state.table())}"), rows) if rows else ""
    return f'{table}<p class="av-note">{said}</p>'


def answer_html(state: SweepState) -> str:
    """Draw the values of all settings once they are revealed; a locked grid before."""
    columns, lines = state.choices.values()
    values = state.table()
    left, top = 60.0, 8.0
    wide, high = 640 / len(columns), min(28.0, 220 / len(lines))
    best, worst = state.best, (min if state.most else max)(values.values())
    parts = []
    for (block, warp), value in values.items():
        x = left + list(columns).index(block) * wide
        y = top + list(lines).index(warp) * high
        share = (value - best) / (worst - best) if worst != best else 0.0
        colour = drawing.LOADS[round(share * (len(drawing.LOADS) - 1))]
        info = f"{block} x {warp}: {written(state, value)}, place {state.place((block, warp))}"
        if not state.revealed:
            known = (block, warp) in state.guessed
            colour = colour if known else drawing.IDLE
            info = info if known else f"{block} x {warp}: guess first"
        mark = ""
        if (block, warp) == state.setting:
            mark = ' stroke="black" stroke-width="2"'
        if state.revealed and value == state.best:
            mark = f' stroke="{VERMILLION}" stroke-width="3"'
        parts.append(rect(x, y, wide - 1, high - 1, colour, attributes(info=info) + mark))
    bottom = top + len(lines) * high
    every = max(1, math.ceil(22 / wide))
    for i, value in enumerate(columns):
        if i % every == 0:
            parts.append(text(left + (i + 0.5) * wide, bottom + 14, f"{value}", at="middle",
                              colour=GREY, size=10))  # fmt: skip
    for i, value in enumerate(lines):
        parts.append(
            text(left - 5, top + (i + 0.6) * high, f"{value}", at="end", colour=GREY, size=10)
        )
    parts.append(text(left + 320, bottom + 30, FIRST, at="middle", colour=GREY))
    turned = f' transform="rotate(-90 14 {(top + bottom) / 2:.0f})"'
    parts.append(text(14, (top + bottom) / 2, SECOND, at="middle", colour=GREY, extra=turned))
    said = "Locked."
    if state.revealed:
        settings = ", ".join(f"{block} x {warp}" for block, warp in state.answers[:6])
        more = "" if len(state.answers) <= 6 else f" and {len(state.answers) - 6} others"
        said = f"Best is {written(state, state.best)}, at {settings}{more} (red)."
    picture = svg(720, bottom + 36, parts, f"{NAMES[state.statistic]} of all settings")
    return f'{picture}<p class="av-note">{said} Brighter is better.</p>'
