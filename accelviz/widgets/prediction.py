"""A question whose answer is shown to whoever has made a prediction, and not before."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from accelviz.errors import ArgumentError

#: What was predicted, by question, so that a cell that runs again remembers it.
_MADE: dict[str, Any] = {}
#: Without a kernel the browser holds the answer back: nothing opens before every field is filled.
_STYLE = """<style>
.ask-predict { margin: 0; padding: .5em 1em; border: 1px solid; border-left-width: 4px; }
.ask-predict label { display: block; padding: .15em 0; }
.ask-predict summary { cursor: pointer; font-weight: bold; padding: .3em 0; }
.ask-predict:invalid > details, .ask-predict:valid > .ask-first { display: none; }
</style>"""


class Prediction:
    """A question, what was predicted, and how good that was; see `widgets.predict`."""

    def __init__(
        self,
        question: str,
        answer: Any,
        choices: Sequence[str],
        unit: str,
        within: float,
        because: str,
        show: Callable[[], Any] | None,
    ) -> None:
        self.question, self.choices, self.unit = question, [*choices], unit
        self.within, self.because, self._answer, self._show = within, because, answer, show
        self._picked: list[str] = []
        self._shown = ""
        if len({*self.choices}) != len(self.choices):
            raise ArgumentError("choices", "one is there twice", "different ones")
        if not within >= 1:
            raise ArgumentError("within", f"got {within}", "a factor of at least 1")
        if not callable(answer):
            self._check(answer)

    # What is known

    @property
    def made(self) -> Any:
        """What was predicted: a number, a choice or a list of choices; None if nothing yet."""
        return _MADE.get(self.question)

    def answer(self) -> Any:
        """Return the answer; what computes it is called once."""
        if callable(self._answer):
            self._answer = self._check(self._answer())
        return self._answer

    def _check(self, answer: Any) -> Any:
        expected = "a number, or choices with it"
        if not self.choices:
            right = isinstance(answer, (int, float, np.number)) and math.isfinite(answer)
        elif self.is_order(answer):
            right, expected = sorted(answer) == sorted(self.choices), "all choices in order"
        else:
            right, expected = answer in self.choices, "one of the choices"
        if not right:
            raise ArgumentError("answer", f"got {answer!r}", expected)
        return answer

    @staticmethod
    def is_order(answer: Any) -> bool:
        """Whether an answer is an order of the choices and not one of them."""
        return isinstance(answer, (list, tuple))

    def judged(self) -> str:
        """Say how good the prediction was."""
        made, answer = self.made, self.answer()
        if self.is_order(answer):
            right = sum(a == b for a, b in zip(made, answer, strict=True))
            return "Right." if right == len(answer) else f"{right} of {len(answer)} places agree."
        if self.written(made) == self.written(answer):
            return "Right."
        if self.choices:
            return "Not so."
        if made * answer <= 0:
            return f"Off by {self.written(abs(made - answer))}."
        factor = max(made / answer, answer / made)
        side = "high" if made > answer else "low"
        if factor > self.within:
            return f"Too {side} by a factor of {_number(factor)}."
        return f"Close: {_number(made / answer)} times that."

    def written(self, value: Any) -> str:
        """Write a prediction or an answer."""
        if self.is_order(value):
            return ", ".join(f"{i}. {each}" for i, each in enumerate(value, 1))
        return str(value) if self.choices else f"{_number(value)} {self.unit}".rstrip()

    # What the panel asks for and shows

    def change(self, wanted: Mapping[str, Any]) -> None:
        """Take what was typed ("typed") or which button was pressed ("choice 2")."""
        if self.made is not None:
            return
        if "typed" in wanted:
            _MADE[self.question] = self._read(str(wanted["typed"]))
        for name in wanted:
            kind, _, place = name.partition(" ")
            if kind == "choice":
                self._pick(self.choices[int(place)])

    def _read(self, text: str) -> float:
        bare = text.replace(",", "").removesuffix(self.unit or " ").strip().removesuffix("%")
        try:
            value = float(bare)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ArgumentError("your prediction", f"got {text!r}", "a number, such as 12 or 0.5")
        return value

    def _pick(self, choice: str) -> None:
        if not self.is_order(self.answer()):
            _MADE[self.question] = choice
        elif choice in self._picked:
            self._picked.remove(choice)
        else:
            self._picked.append(choice)
            left = [each for each in self.choices if each not in self._picked]
            if len(left) <= 1:
                _MADE[self.question] = [*self._picked, *left]

    def page(self) -> Mapping[str, Any]:
        """Describe what the panel shows now."""
        from accelviz.widgets.panel import button, field, view

        title = f'<span class="ask-ask"><b>Prediction.</b> {marked(self.question)}</span>'
        if self.made is not None:
            seen = view("answer", "", self._compared(), width=12)
            return {"title": title, "controls": [], "views": [seen]}
        if not self.choices:
            controls = [field("typed", "Your number", "Lock it in", unit=self.unit)]
        else:
            if self.is_order(self.answer()):
                title += " <i>Press them in order; press again to take one back.</i>"
            controls = [
                button(f"choice {i}", self._label(each), width=12)
                for i, each in enumerate(self.choices)
            ]
        return {"title": title, "controls": controls, "views": []}

    def _label(self, choice: str) -> str:
        at = f"{self._picked.index(choice) + 1}. " if choice in self._picked else ""
        return at + choice

    def _compared(self) -> str:
        return (
            f"<p>You said <b>{escape(self.written(self.made))}</b>. It is "
            f"<b>{escape(self.written(self.answer()))}</b>. {self.judged()}</p>{self._explained()}"
        )

    def _explained(self) -> str:
        if self._show is not None and not self._shown:
            self._shown = html_of(self._show())
        return self._shown + "".join(
            f"<p>{marked(part)}</p>" for part in self.because.split("\n\n") if part
        )

    # Where there is no kernel

    def html(self) -> str:
        """Return it as HTML without a script: the answer opens when something was entered."""
        question = f"<p><b>Prediction.</b> {marked(self.question)}</p>"
        if self.made is not None:
            fields, inside = "", self._compared()
        else:
            fields = self._fields()
            told = f"<p>It is <b>{escape(self.written(self.answer()))}</b>.</p>"
            inside = told + self._explained()
        opened = " open" if self.made is not None else ""
        return (
            f'{_STYLE}<fieldset class="ask-predict">{question}{fields}'
            '<p class="ask-first"><i>Answer; then you can compare.</i></p>'
            f"<details{opened}><summary>Compare</summary>{inside}</details></fieldset>"
        )

    def _fields(self) -> str:
        if not self.choices:
            box = '<input type="number" step="any" required autocomplete="off">'
            return f"<label>Your number: {box} {escape(self.unit)}</label>"
        if self.is_order(self.answer()):
            options = "".join(f"<option>{escape(each)}</option>" for each in self.choices)
            select = f'<select required><option value=""></option>{options}</select>'
            return "".join(f"<label>{i + 1}. {select}</label>" for i in range(len(self.choices)))
        name = f"predict-{zlib.crc32(self.question.encode()):08x}"
        return "".join(
            f'<label><input type="radio" name="{name}" required> {escape(each)}</label>'
            for each in self.choices
        )

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"Prediction: {self.question}"


def marked(text: str) -> str:
    """Turn text into HTML; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def html_of(shown: Any) -> str:
    """Turn a picture, a table, text or a sequence of them into HTML; pictures are closed."""
    parts = [*shown] if isinstance(shown, (list, tuple, np.ndarray)) else [shown]
    # Several axes are one picture.
    roots = [each.get_figure(root=True) if hasattr(each, "get_figure") else each for each in parts]
    return "".join(_html_of(each) for each in {id(root): root for root in roots}.values())


def _html_of(shown: Any) -> str:
    if hasattr(shown, "savefig"):
        from accelviz.plots.style import picture_html

        return picture_html(shown)
    if hasattr(shown, "_repr_html_"):
        return str(shown._repr_html_())
    return "" if shown is None else f"<pre>{escape(str(shown))}</pre>"


def _number(value: float) -> str:
    value = float(value)
    if value.is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
