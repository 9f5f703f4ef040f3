"""The widget behind a page: it carries questions to the kernel and answers back."""

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

#: Seconds between two words about what takes long, and after which there is more to say.
_EVERY, _LONG = 0.25, 1.5


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

    _cancelled = False

    def show(self, settings: Mapping[str, Any]) -> None:
        """Have the page show other settings."""
        # The number makes it another value where the page has moved since.
        self.wanted = {"settings": dict(settings), "number": self.wanted.get("number", 0) + 1}

    def _settled(self, event: Mapping[str, Any]) -> None:
        self.explorer.keep(event["new"], self.page)

    def _asked(self, _: Any, message: Mapping[str, Any], buffers: Any) -> None:
        number, question = message["number"], message["question"]
        if question.get("cancel"):
            self._cancelled = True
        elif settings := question.get("trace"):
            said = f"Running block {settings['block']:,} in the emulator"
            more = "The first time, the CUDA source is compiled, half a minute at most."
            self._begin(number, lambda: self.explorer.trace(settings), said, more)
        elif name := question.get("graph"):
            more = "A twin of a large graph is made here, which may take a minute."
            self._begin(number, lambda: self.explorer.answer(question), f"Opening {name}", more)
        else:
            self._answer(number, lambda: self.explorer.answer(question))

    def _answer(self, number: str, answer: Callable[[], Mapping[str, Any]]) -> None:
        try:
            packed = pack(answer())
        except AccelvizError as error:
            self.send({"number": number, "error": str(error)})
        except Exception as error:  # a dead page would say less
            said = f"Something failed: {type(error).__name__}: {error}"
            self.send({"number": number, "error": said})
        else:
            self.send({"number": number}, [packed])

    def _begin(
        self, number: str, answer: Callable[[], Mapping[str, Any]], said: str, more: str
    ) -> None:
        """Answer in threads, so that the kernel can say how long it has been and be told to stop.

        What runs cannot be stopped half-way; it ends by itself, and what it made is kept.
        """
        self._cancelled = False
        begun = time.monotonic()
        pool = ThreadPoolExecutor(1)
        future = pool.submit(answer)
        pool.shutdown(wait=False)

        def tell() -> None:
            while not wait([future], timeout=_EVERY).done:
                seconds = time.monotonic() - begun
                text = f"{said}: {seconds:.0f} s." + f" {more}" * (seconds > _LONG)
                self.send({"number": number, "progress": text})
                if self._cancelled:
                    self.send({"number": number, "error": f"{said} was cancelled."})
                    return
            self._answer(number, future.result)

        Thread(target=tell, daemon=True).start()
