"""What a cell's outputs say, to nbgrader and to us."""

from __future__ import annotations

import math
from typing import Any

import nbformat

#: Letters of an exception's name, of its message, and of a line of its traceback that are kept.
_NAME, _TEXT, _LINES = 100, 5_000, 100
#: What is kept of what a cell shows: a page made of it runs no script.
_SHOWN = ("text/plain", "image/png", "image/jpeg")


def error_output(name: str, text: str) -> dict[str, Any]:
    """Return the output of an error, which nbgrader takes for 0 points."""
    name, text = _text(name)[:_NAME], _text(text)[:_TEXT]
    error = nbformat.v4.new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"])
    return dict(error)


def _text(value: Any) -> str:
    """Return a text that can be written to a file."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def trimmed(answer: Any, most: int) -> list[dict[str, Any]]:
    """Return what a submission's process says a cell has shown, as far as it is outputs.

    The answer may be of any shape, as a submission may have made it. At most `most` letters are
    kept, without metadata.
    """
    outputs: list[dict[str, Any]] = []
    answered = answer.get("outputs") if isinstance(answer, dict) else None
    for entry in answered[:10_000] if isinstance(answered, list) else []:
        kind = entry.get("output_type") if isinstance(entry, dict) else None
        data = entry.get("data") if kind in ("display_data", "execute_result") else None
        if kind == "stream":
            name = "stderr" if entry.get("name") == "stderr" else "stdout"
            fields: dict[str, Any] = {"name": name, "text": _text(entry.get("text", ""))}
        elif isinstance(data, dict):
            fields = {"data": {mime: _text(data[mime]) for mime in _SHOWN if mime in data}}
        elif kind == "error":
            lines = entry.get("traceback")
            lines = lines[-_LINES:] if isinstance(lines, list) else []
            fields = {
                "ename": _text(entry.get("ename", ""))[:_NAME],
                "evalue": _text(entry.get("evalue", ""))[:_TEXT],
                "traceback": [_text(line)[:_TEXT] for line in lines],
            }
        else:
            continue
        output = dict(nbformat.v4.new_output(kind, **fields))
        most -= len(str(output)) if kind != "error" else 0
        if most >= 0:
            outputs.append(output)
    return outputs


def show_points(cell: Any, value: Any) -> str:
    """Make a test cell's outputs say the points that its last value is; none says all of them.

    nbgrader takes a value that is no number, not a number or negative for full points, and lets
    more than there are pass. Here such a value is an error. Return what is wrong with it, or "".
    """
    cell.outputs = []
    if value is None:
        return ""
    most = float(cell.metadata["nbgrader"].get("points", math.inf))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0.0 <= value <= most or value == math.inf:
        span = "at least 0" if most == math.inf else f"0 to {most:g}"
        problem = f"the test ended in {str(value)[:60]!r}, which is not a number from {span}"
        cell.outputs = [nbformat.from_dict(error_output("NotPoints", problem))]
        return problem
    output = nbformat.v4.new_output("execute_result", {"text/plain": repr(float(value))})
    cell.outputs = [output]
    return ""
