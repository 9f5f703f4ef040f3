"""The widget behind a page: it carries questions to the kernel and answers back."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from accelviz.errors import AccelvizError
from accelviz.widgets import assets
from accelviz.widgets.pack import pack


class Connection(anywidget.AnyWidget):
    """Connects a page to the explorer in the kernel; it shows nothing itself.

    Attributes
    ----------
    page : str
        The id of the page that it belongs to.
    settings : dict
        What the page shows, as the page tells.
    wanted : dict
        What Python wants it to show.
    """

    _esm = assets.module()
    _css = assets.style()
    page = traitlets.Unicode().tag(sync=True)
    settings = traitlets.Dict().tag(sync=True)
    wanted = traitlets.Dict().tag(sync=True)

    def __init__(self, explorer: Any, page: str) -> None:
        self.explorer = explorer
        super().__init__(page=page)
        self.on_msg(self._asked)
        self.observe(self._settled, "settings")

    def show(self, settings: Mapping[str, Any]) -> None:
        """Have the page show other settings."""
        # The number makes it another value where the page has moved since.
        self.wanted = {"settings": dict(settings), "number": self.wanted.get("number", 0) + 1}

    def _settled(self, event: Mapping[str, Any]) -> None:
        self.explorer.keep(event["new"], self.page)

    def _asked(self, _: Any, message: Mapping[str, Any], buffers: Any) -> None:
        number, question = message["number"], message["question"]
        try:
            packed = pack(self.explorer.answer(question))
        except AccelvizError as error:
            self.send({"number": number, "error": str(error)})
        except Exception as error:  # a dead page would say less
            said = f"Something failed: {type(error).__name__}: {error}"
            details = traceback.format_exc()
            self.send({"number": number, "error": said, "details": details})
        else:
            self.send({"number": number}, [packed])
