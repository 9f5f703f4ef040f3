"""Firefox without a window, driven by Marionette, the protocol that each Firefox has built in."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from .server import free_port, poll

PROGRAMS = ("firefox", "firefox-esr")
#: The key under which WebDriver names an element.
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_PREFERENCES = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.proxy.type": 0,
    "remote.log.level": "Error",
}


def find_firefox() -> str | None:
    """Return the path of Firefox, or None if there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Firefox:
    """A Firefox with one page; `close` ends it."""

    def __init__(self, path: str, folder: Path) -> None:
        port, profile = free_port(), folder / "profile"
        profile.mkdir()
        preferences = {**_PREFERENCES, "marionette.port": port}
        (profile / "user.js").write_text(
            "".join(
                f'user_pref("{name}", {json.dumps(preferences[name])});\n' for name in preferences
            )
        )
        self.process = subprocess.Popen(
            [path, "--headless", "--no-remote", "--profile", str(profile), "--marionette"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._sent = 0

        def connect() -> socket.socket | None:
            assert self.process.poll() is None, "Firefox has ended"
            try:
                return socket.create_connection(("127.0.0.1", port), 5)
            except OSError:
                return None

        self._socket = poll(connect, "Firefox to start")
        self._socket.settimeout(120)
        self._stream = self._socket.makefile("rb")
        self._receive()  # its greeting
        self.ask("NewSession")

    def ask(self, command: str, **parameters: Any) -> Any:
        """Send a command of WebDriver; return its answer."""
        self._sent += 1
        text = json.dumps([0, self._sent, f"WebDriver:{command}", parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, answer = self._receive()
        assert error is None, f"{command}: {error['message']}"
        return answer.get("value") if isinstance(answer, dict) else answer

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self.ask("ExecuteScript", script=f"return {script}", args=[])

    def wait(self, script: str) -> Any:
        """Return the value of a JavaScript expression as soon as it is true."""
        return poll(lambda: self.run(script), script)

    def element(self, selector: str) -> dict[str, str]:
        return {"id": self.ask("FindElement", using="css selector", value=selector)[_ELEMENT]}

    def click(self, selector: str) -> None:
        self.ask("ElementClick", **self.element(selector))

    def type(self, selector: str, keys: str) -> None:
        """Send real keys to an element."""
        self.ask("ElementSendKeys", **self.element(selector), text=keys)

    def close(self) -> None:
        self._socket.close()
        self.process.terminate()
        self.process.wait(30)

    def _receive(self) -> Any:
        size = b""
        while (digit := self._stream.read(1)) != b":":
            assert digit, "Firefox has closed its connection"
            size += digit
        return json.loads(self._stream.read(int(size)))
