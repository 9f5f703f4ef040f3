"""A prediction: a question whose answer is shown after the learner has answered it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from accelviz.errors import ArgumentError
from accelviz.widgets import assets


@dataclass(eq=False, repr=False)
class Prediction:
    """A question with its answer and explanation; fields as in `widgets.predict`."""

    question: str
    _answer: Any
    choices: Sequence[str]
    draw: str
    unit: str
    within: float
    because: str
    _show: Callable[[], Any] | None
    _pictures: str = ""

    def __post_init__(self) -> None:
        if len({*self.choices}) != len(self.choices):
            raise ArgumentError("choices", "one is there twice", "different ones")
        if not self.within >= 1:
            raise ArgumentError("within", f"got {self.within}", "a factor of at least 1")
        if not callable(self._answer):
            self._answer = self._check(self._answer)

    def answer(self) -> Any:
        """Return the answer; a callable is called once."""
        if callable(self._answer):
            self._answer = self._check(self._answer())
        return self._answer

    def _right_answers(self) -> list[Any]:
        answer = self.answer()
        return sorted(answer) if isinstance(answer, frozenset) else [answer]

    def _check(self, answer: Any) -> Any:
        if self.draw:
            bars = np.asarray(answer)
            if bars.ndim != 1 or not bars.size or bars.dtype.kind not in "iu" or bars.min() < 0:
                raise ArgumentError("answer", f"got {answer!r}", "whole numbers, a bar each")
            return bars.tolist()
        expected = "a number, or choices with it"
        if isinstance(answer, (set, frozenset)):
            if not answer or any(isinstance(one, tuple) for one in answer):
                raise ArgumentError(
                    "answer", f"got {answer!r}", "numbers or choices, equally right"
                )
            return frozenset(map(self._check, answer))
        if not self.choices:
            valid = isinstance(answer, (int, float, np.number)) and math.isfinite(answer)
        elif isinstance(answer, (list, tuple)):
            valid, expected = sorted(answer) == sorted(self.choices), "all choices in order"
        else:
            valid, expected = answer in self.choices, "one of the choices"
        if not valid:
            raise ArgumentError("answer", f"got {answer!r}", expected)
        return answer if self.choices else float(answer)

    @property
    def form(self) -> str:
        """Kind of answer that the learner enters: "number", "choice", "order" or "drawn"."""
        if self.draw:
            return "drawn"
        if not self.choices:
            return "number"
        return "order" if isinstance(self.answer(), (list, tuple)) else "choice"

    def content(self) -> dict[str, Any]:
        """Return the data that the page draws, `PredictionData` in `src/prediction.ts`."""
        first, *also = self._right_answers()
        content = {
            "form": self.form,
            "question": assets.with_code(self.question),
            "choices": self.offered(),
            "unit": self.unit,
            "within": self.within,
            "answer": first,
            "also": also,
            "because": self._because_html(),
            "pictures": self._pictures_html(),
        }
        if self.draw:  # headroom, so that the axis does not give the largest bar away
            content |= {"bar": self.draw, "most": 1 << (5 * max(first) // 4).bit_length()}
        return content

    def offered(self) -> list[str]:
        """Return the choices as shown: of one to pick, in an order given by the question's text.

        The order depends neither on the answer nor on the order of `choices`.
        """

        def position(choice: str) -> bytes:
            return hashlib.sha256(f"{self.question}\n{choice}".encode()).digest()

        return sorted(self.choices, key=position) if self.form == "choice" else [*self.choices]

    def _pictures_html(self) -> str:
        if self._show is not None and not self._pictures:
            self._pictures = as_html(self._show())
        return self._pictures

    def _because_html(self) -> str:
        paragraphs = [paragraph for paragraph in self.because.split("\n\n") if paragraph]
        return "".join(f"<p>{assets.with_code(text)}</p>" for text in paragraphs)

    def html(self) -> str:
        """Return HTML with a script; where scripts are blocked, the answer is folded away."""
        choices = "".join(f"<li>{escape(choice)}</li>" for choice in self.offered())
        return assets.asking_page(
            "prediction",
            self.content(),
            f"<p><b>Prediction.</b> {assets.with_code(self.question)}</p><ul>{choices}</ul>"
            "<details><summary>Write down what you think, then compare.</summary>"
            f"<p>It is <b>{escape(self._answer_text())}</b>.</p>"
            f"{self._pictures_html()}{self._because_html()}</details>",
        )

    def _answer_text(self) -> str:
        answer = self.answer()
        if self.form == "order":
            return ", ".join(f"{i}. {choice}" for i, choice in enumerate(answer, 1))
        if self.form == "drawn":
            return ", ".join(map(_three_digits, answer))
        texts = (
            str(one) if self.choices else f"{_three_digits(one)} {self.unit}".rstrip()
            for one in self._right_answers()
        )
        return " or ".join(texts)

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"Prediction: {self.question}"


def as_html(explanation: Any) -> str:
    """Convert a figure, Axes, a table, text or a sequence of them to HTML; close the figures."""
    is_sequence = isinstance(explanation, (list, tuple, np.ndarray))
    parts = [*explanation] if is_sequence else [explanation]
    # Axes of one figure become one picture.
    parts = [part.get_figure(root=True) if hasattr(part, "get_figure") else part for part in parts]
    return "".join(_part_as_html(part) for part in {id(part): part for part in parts}.values())


def _part_as_html(part: Any) -> str:
    if hasattr(part, "savefig"):
        from accelviz.plots.style import picture_html

        return picture_html(part)
    if hasattr(part, "_repr_html_"):
        return str(part._repr_html_())
    return "" if part is None else f"<pre>{escape(str(part))}</pre>"


def _three_digits(value: float) -> str:
    value = float(value)
    if value.is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
