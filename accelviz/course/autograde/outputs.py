"""Outputs of cells in the notebook format: errors, trimmed outputs of students, points of tests."""

from __future__ import annotations

import math
import re
from typing import Any

import nbformat

#: Characters kept of an exception's name and of its message; lines kept of its traceback.
_NAME_LENGTH, _TEXT_LENGTH, _TRACEBACK_LINES = 100, 5_000, 100
#: Kinds of data that are kept. HTML and SVG are not, because they may contain scripts.
_MIME_TYPES = ("text/plain", "image/png", "image/jpeg")
_TAG = re.compile(r"<[^<>]*>")
#: Colors of a terminal, for which a page takes a time that grows as the square of their number, and
#: signs that turn the direction of text, so that a person reads other code than Python runs.
_CONTROL = re.compile(r"\x1b(?:\[[\d;?]*[A-Za-z]?)?|[\u202a-\u202e\u2066-\u2069]")


def error_output(name: str, text: str) -> dict[str, Any]:
    """Return the output of an error; nbgrader gives 0 points to a test cell that has one."""
    name, text = valid_text(name)[:_NAME_LENGTH], valid_text(text)[:_TEXT_LENGTH]
    error = nbformat.v4.new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"])
    return dict(error)


def valid_text(value: Any) -> str:
    """Return a value as text that UTF-8 can encode, without colors and turns of direction."""
    return _CONTROL.sub("", str(value)).encode("utf-8", "replace").decode("utf-8")


def trim_outputs(reply: Any, max_length: int) -> list[dict[str, Any]]:
    """Return the outputs of a cell from the reply of a submission's process.

    The reply is not trusted and may have any structure: entries that are no outputs are dropped, as
    are metadata and outputs beyond `max_length` characters in total (errors do not count).
    """
    ending, left = f"\n(more than {max_length:,} bytes; the rest is dropped)\n", max_length
    outputs: list[dict[str, Any]] = []
    entries = reply.get("outputs") if isinstance(reply, dict) else None
    for entry in entries[:1_000] if isinstance(entries, list) else []:
        kind = entry.get("output_type") if isinstance(entry, dict) else None
        data = entry.get("data") if kind in ("display_data", "execute_result") else None
        if kind == "stream":
            name = "stderr" if entry.get("name") == "stderr" else "stdout"
            text = valid_text(entry.get("text", ""))
            text = text if len(text) <= left else text[:left] + ending
            fields: dict[str, Any] = {"name": name, "text": text}
        elif isinstance(data, dict):
            plain = str(data.get("text/plain", ""))
            if "text/markdown" in data or plain.startswith("<IPython.core.display."):  # no text
                page = " ".join(str(data.get("text/html", "")).split())
                page = _TAG.sub(" ", page.replace("</tr>", "\n"))
                text = data.get("text/markdown") or data.get("text/latex") or page or plain
                data = {**data, "text/plain": text}
            present = [mime for mime in _MIME_TYPES if mime in data]
            fields = {"data": {mime: valid_text(data[mime]) for mime in present}}
        elif kind == "error":
            lines = entry.get("traceback")
            lines = lines[-_TRACEBACK_LINES:] if isinstance(lines, list) else []
            fields = {
                "ename": valid_text(entry.get("ename", ""))[:_NAME_LENGTH],
                "evalue": valid_text(entry.get("evalue", ""))[:_TEXT_LENGTH],
                "traceback": [valid_text(line)[:_TEXT_LENGTH] for line in lines],
            }
        else:
            continue
        size = len(str(fields.get("data", "")))
        if kind == "error" or size <= left > 0:
            outputs.append(dict(nbformat.v4.new_output(kind, **fields)))
        left -= size + len(fields.get("text", ""))
    return outputs


def show_points(cell: Any, value: Any) -> str:
    """Replace a test cell's outputs by its points; return the problem with them, "" if none.

    `value` is the value of the cell's last expression: None for full points, else the number of
    points. nbgrader would give full points for NaN, a negative number or an object that is no
    number, and would accept more points than the cell has; here these become an error.
    """
    cell.outputs = []
    if value is None:
        return ""
    max_points = float(cell.metadata["nbgrader"].get("points", math.inf))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 <= value <= max_points or value == math.inf:
        span = "at least 0" if max_points == math.inf else f"0 to {max_points:g}"
        problem = f"the test ended in {str(value)[:60]!r}, which is not a number from {span}"
        cell.outputs = [nbformat.from_dict(error_output("NotPoints", problem))]
        return problem
    output = nbformat.v4.new_output("execute_result", {"text/plain": repr(float(value))})
    cell.outputs = [output]
    return ""
