"""The widget that connects an explorer's page to the notebook kernel.

The page sends messages {"number": id, "request": request}. The kernel replies with the same
number: first, while a slow request runs, {"progress": text}; at the end {"error": text}, or a
buffer with the packed answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Thread
from typing import Any

import anywidget
import traitlets

from accelviz.errors import AccelvizError
from accelviz.widgets import assets
from accelviz.widgets.pack import pack

#: Seconds between two progress messages, and after which they say why a request is slow.
_PROGRESS_INTERVAL, _SLOW = 0.25, 1.5


class Connection(anywidget.AnyWidget):
    """A widget without a view of its own; it answers the requests of one page.

    Attributes
    ----------
    page : str
        Id of the page's HTML element.
    settings : dict
        Settings of the page; the page writes them, Python reads them.
    wanted : dict
        Settings for the page, and a number; Python writes them, the page reads them.
    """

    _esm = assets.module()
    _css = assets.style()
    page = traitlets.Unicode().tag(sync=True)
    settings = traitlets.Dict().tag(sync=True)
    wanted = traitlets.Dict().tag(sync=True)
    _cancelled = False

    def __init__(self, explorer: Any, page: str) -> None:
        self.explorer = explorer
        super().__init__(page=page)
        self.on_msg(self._receive)
        self.observe(self._store_settings, "settings")

    def show(self, settings: Mapping[str, Any]) -> None:
        """Send settings to the page, which then shows them."""
        # The new number makes traitlets send settings that equal those sent before.
        self.wanted = {"settings": dict(settings), "number": self.wanted.get("number", 0) + 1}

    def _store_settings(self, event: Mapping[str, Any]) -> None:
        self.explorer.store_settings(event["new"], self.page)

    def _receive(self, _: Any, message: Mapping[str, Any], buffers: Any) -> None:
        number, request = message["number"], message["request"]
        if request.get("cancel"):
            self._cancelled = True
        elif settings := request.get("trace"):
            task = f"Running block {settings['block']:,} in the emulator"
            reason = "The first time, the CUDA source is compiled, half a minute at most."
            self._answer_slowly(number, lambda: self.explorer.trace(settings), task, reason)
        elif name := request.get("graph"):
            reason = "A twin of a large graph is made here, which may take a minute."
            self._answer_slowly(
                number, lambda: self.explorer.answer(request), f"Opening {name}", reason
            )
        else:
            self._answer(number, lambda: self.explorer.answer(request))

    def _answer(self, number: str, compute: Callable[[], Mapping[str, Any]]) -> None:
        try:
            packed = pack(compute())
        except AccelvizError as error:
            self.send({"number": number, "error": str(error)})
        except Exception as error:  # the page shows it, where a traceback would go to a log
            message = f"Something failed: {type(error).__name__}: {error}"
            self.send({"number": number, "error": message})
        else:
            self.send({"number": number}, [packed])

    def _answer_slowly(
        self, number: str, compute: Callable[[], Mapping[str, Any]], task: str, reason: str
    ) -> None:
        """Answer from threads, so that the kernel can send progress and receive "cancel".

        A cancelled computation still runs to its end; the explorer keeps a graph that it loads.
        """
        self._cancelled = False
        start = time.monotonic()
        pool = ThreadPoolExecutor(1)
        future = pool.submit(compute)
        pool.shutdown(wait=False)

        def report_progress() -> None:
            while not wait([future], timeout=_PROGRESS_INTERVAL).done:
                seconds = time.monotonic() - start
                text = f"{task}: {seconds:.0f} s."
                if seconds > _SLOW:
                    text += f" {reason}"
                self.send({"number": number, "progress": text})
                if self._cancelled:
                    self.send({"number": number, "error": f"{task} was cancelled."})
                    return
            self._answer(number, future.result)

        Thread(target=report_progress, daemon=True).start()
