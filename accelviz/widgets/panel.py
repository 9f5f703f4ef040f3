"""A panel of controls and views in a notebook: Python decides what is in it, the script shows it.

The script sends `request` and Python answers with `page`, each with a number, so that the script
knows what has been answered: it has one request on its way at most, and says so when none comes
back. A burst of key presses ends on its last value.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from accelviz.errors import AccelvizError

_HERE = Path(__file__).resolve().parent
Change = Callable[[Mapping[str, Any]], None]


def slider(
    name: str, label: str, values: Sequence[Any], value: Any, *, title: str = ""
) -> dict[str, Any]:
    """Describe a slider over some values, in order; `title` says what they mean."""
    return _control("slider", name, label, 4, values=list(values), value=value, title=title)


def steps(name: str, label: str, last: int, value: int) -> dict[str, Any]:
    """Describe a slider from 0 to `last` with a field for the number."""
    return _control("steps", name, label, 3, last=max(last, 0), value=value, enabled=last > 0)


def menu(name: str, label: str, values: Sequence[str], value: str) -> dict[str, Any]:
    """Describe a menu."""
    return _control("menu", name, label, 4, values=list(values), value=value)


def button(name: str, label: str, *, enabled: bool = True, width: int = 2) -> dict[str, Any]:
    """Describe a button; pressing it asks for the change `{name: True}`."""
    return _control("button", name, label, width, enabled=enabled)


def field(name: str, label: str, button: str, *, unit: str = "") -> dict[str, Any]:
    """Describe a line to type in; the Enter key or its button asks for `{name: text}`."""
    return _control("field", name, label, 12, button=button, unit=unit)


def _control(kind: str, name: str, label: str, width: int, **rest: Any) -> dict[str, Any]:
    of_all = {"kind": kind, "name": name, "label": label, "width": width}
    return {**of_all, "enabled": True, "title": "", **rest}


def view(name: str, title: str, html: str, *, width: int) -> dict[str, Any]:
    """Describe a view: a titled piece of HTML, so many twelfths of the panel wide."""
    return {"name": name, "title": title, "html": html, "width": width}


class Panel(anywidget.AnyWidget):
    """Controls on top, views below.

    Parameters
    ----------
    change : callable
        `change(wanted)` is given a mapping of names to values, as controls and views ask for them.
        An AccelvizError that it raises is shown as it is; any other with its traceback.
    page : callable
        `page()` gives what is to be seen now: `title` (HTML), `controls` and `views`.
    html : callable, optional
        `html()` gives it all as HTML without a script; title and views if not given.
    """

    _esm = _HERE / "panel.js"
    _css = _HERE / "panel.css"
    request = traitlets.Dict().tag(sync=True)
    page = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        change: Change,
        page: Callable[[], Mapping[str, Any]],
        html: Callable[[], str] | None = None,
    ) -> None:
        self._change, self._page, self._html = change, page, html
        super().__init__(page={"number": 0, "message": "", "details": "", **page()})
        self.observe(self._answer, "request")

    def _answer(self, event: Mapping[str, Any]) -> None:
        number, wanted = event["new"].get("number", 0), event["new"].get("change", {})
        message = details = ""
        try:
            self._change(wanted)
        except AccelvizError as error:
            message = str(error)
        except Exception as error:  # a dead slider would say less
            message = f"Something failed: {type(error).__name__}: {error}"
            details = traceback.format_exc()
        self._show(number, message, details)

    def _show(self, number: int, message: str = "", details: str = "") -> None:
        try:
            seen = dict(self._page())
        except Exception as error:
            seen = {key: self.page.get(key) for key in ("title", "controls", "views")}
            message = message or f"Something failed: {type(error).__name__}: {error}"
            details = details or traceback.format_exc()
        self.page = {"number": number, "message": message, "details": details, **seen}

    def refresh(self) -> None:
        """Show what changed in Python."""
        self._show(self.page["number"])

    def html(self) -> str:
        """Return the panel as it is now as HTML without a script, for pages that have no kernel."""
        if self._html is not None:
            return self._html()
        shown = self.page
        style = (_HERE / "panel.css").read_text(encoding="utf-8")
        boxes = "".join(
            f'<section style="grid-column: span {each["width"]}"><h4>{escape(each["title"])}</h4>'
            f'<div class="ask-body">{each["html"]}</div></section>'
            for each in shown["views"]
        )
        return (
            f'<style>{style}</style><div class="ask-panel"><div class="ask-title">{shown["title"]}'
            f'</div><div class="ask-views">{boxes}</div></div>'
        )

    def _repr_mimebundle_(self, **options: Any) -> Any:
        found = super()._repr_mimebundle_(**options)
        data, metadata = found if isinstance(found, tuple) else (found, {})
        return {**(data or {}), "text/html": self.html()}, metadata
