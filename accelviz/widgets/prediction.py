"""A question whose answer is shown to whoever has made a prediction, and not before."""

from __future__ import annotations

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
    """A question, its answer, and what explains it; see `widgets.predict`."""

    question: str
    _answer: Any
    choices: Sequence[str]
    draw: str
    unit: str
    within: float
    because: str
    _show: Callable[[], Any] | None
    _explanation: str = ""

    def __post_init__(self) -> None:
        if len({*self.choices}) != len(self.choices):
            raise ArgumentError("choices", "one is there twice", "different ones")
        if not self.within >= 1:
            raise ArgumentError("within", f"got {self.within}", "a factor of at least 1")
        if not callable(self._answer):
            self._answer = self._check(self._answer)

    def answer(self) -> Any:
        """Return the answer; what computes it is called once."""
        if callable(self._answer):
            self._answer = self._check(self._answer())
        return self._answer

    def _check(self, answer: Any) -> Any:
        if self.draw:
            drawn = np.asarray(answer)
            if drawn.ndim != 1 or not drawn.size or drawn.dtype.kind not in "iu" or drawn.min() < 0:
                raise ArgumentError("answer", f"got {answer!r}", "whole numbers, a bar each")
            return drawn.tolist()
        expected = "a number, or choices with it"
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
        """What is entered: "number", "choice", "order" or "drawn"."""
        if self.draw:
            return "drawn"
        if not self.choices:
            return "number"
        return "order" if isinstance(self.answer(), (list, tuple)) else "choice"

    def content(self) -> dict[str, Any]:
        """Return what the page asks with, the answer included."""
        answer = self.answer()
        content = {
            "form": self.form,
            "question": assets.with_code(self.question),
            "choices": [*self.choices],
            "unit": self.unit,
            "within": self.within,
            "answer": answer,
            "because": self._explained(),
        }
        if self.draw:  # room above, which does not give the largest away
            content |= {"bar": self.draw, "most": 1 << (5 * max(answer) // 4).bit_length()}
        return content

    def _explained(self) -> str:
        if self._show is not None and not self._explanation:
            self._explanation = html_of(self._show())
        return self._explanation + "".join(
            f"<p>{assets.with_code(part)}</p>" for part in self.because.split("\n\n") if part
        )

    def html(self) -> str:
        """Return it as HTML; without a script, the answer is folded away."""
        choices = "".join(f"<li>{escape(choice)}</li>" for choice in self.choices)
        return assets.asking_page(
            "prediction",
            self.content(),
            f"<p><b>Prediction.</b> {assets.with_code(self.question)}</p><ul>{choices}</ul>"
            "<details><summary>Write down what you think, then compare.</summary>"
            f"<p>It is <b>{escape(self._written())}</b>.</p>{self._explained()}</details>",
        )

    def _written(self) -> str:
        answer = self.answer()
        if self.form == "order":
            return ", ".join(f"{i}. {choice}" for i, choice in enumerate(answer, 1))
        if self.form == "drawn":
            return ", ".join(map(_number, answer))
        return str(answer) if self.choices else f"{_number(answer)} {self.unit}".rstrip()

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"Prediction: {self.question}"


def html_of(explanation: Any) -> str:
    """Turn a picture, a table, text or a sequence of them into HTML; pictures are closed."""
    several = isinstance(explanation, (list, tuple, np.ndarray))
    parts = [*explanation] if several else [explanation]
    # Several axes are one picture.
    roots = [p.get_figure(root=True) if hasattr(p, "get_figure") else p for p in parts]
    return "".join(_html_of(root) for root in {id(root): root for root in roots}.values())


def _html_of(part: Any) -> str:
    if hasattr(part, "savefig"):
        from accelviz.plots.style import picture_html

        return picture_html(part)
    if hasattr(part, "_repr_html_"):
        return str(part._repr_html_())
    return "" if part is None else f"<pre>{escape(str(part))}</pre>"


def _number(value: float) -> str:
    value = float(value)
    if value.is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
