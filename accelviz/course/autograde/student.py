"""A submission's own process: runs its cells as IPython does, and answers what it is asked.

Everything here is in reach of the student's code, and nothing that it says is believed.
"""

from __future__ import annotations

import ast
import contextlib
import io
import shutil
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from accelviz.course.autograde.border import GIVEN, WORK
from accelviz.course.autograde.common import named
from accelviz.course.autograde.wire import decode, encode, receive, send


class Outputs:
    """What a cell has shown so far, up to a limit of bytes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.clear()

    def clear(self) -> None:
        """Begin a new cell."""
        self.items: list[dict[str, Any]] = []
        self.left = self.most

    def add(self, kind: str, **fields: Any) -> None:
        """Keep an output, if there is room for it."""
        output = {"output_type": kind, **fields}
        if self.left < 0:
            return
        self.left -= len(str(output))
        if self.left < 0:
            text = f"\n(more than {self.most:,} bytes; the rest is dropped)\n"
            output = {"output_type": "stream", "name": "stdout", "text": text}
        last = self.items[-1] if self.items else {}
        if "text" in output and last.get("name") == output["name"]:
            last["text"] += output["text"]
        else:
            self.items.append(output)


class _Stream(io.TextIOBase):
    def __init__(self, name: str, outputs: Outputs) -> None:
        self._name, self._outputs = name, outputs

    def write(self, text: str) -> int:
        if text:
            self._outputs.add("stream", name=self._name, text=str(text))
        return len(text)

    def writable(self) -> bool:
        return True


class _Hook(DisplayHook):
    shell: Shell

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        self.shell.outputs.add("execute_result", data=format_dict, metadata=md_dict or {})

    def finish_displayhook(self) -> None:
        pass


class _Publisher(DisplayPublisher):
    def publish(self, data: Any, metadata: Any = None, *args: Any, **options: Any) -> None:
        self.shell.outputs.add("display_data", data=data, metadata=metadata or {})

    def clear_output(self, wait: bool = False) -> None:
        self.shell.outputs.items.clear()


class Shell(InteractiveShell):
    """IPython without a terminal and without a kernel."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)
    outputs = Outputs(1_000_000)
    exited = False

    def ask_exit(self) -> None:
        """Note that a cell wants to end its process."""
        self.exited = True

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: there are no windows."""

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        error = {"output_type": "error", "ename": etype.__name__, "evalue": str(evalue)[:5000]}
        lines = [str(line)[:5000] for line in stb[-100:]]
        self.outputs.items.append({**error, "traceback": lines})

    def run(self, source: str, seconds: float) -> dict[str, Any]:
        """Run a cell; return its outputs, and whether it asked for an end.

        After `seconds` it is interrupted, as by Ctrl-C.
        """
        self.outputs.clear()
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        streams = _Stream("stdout", self.outputs), _Stream("stderr", self.outputs)
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            try:
                self._run_all(source)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        return {"outputs": self.outputs.items, "exited": self.exited}

    def _run_all(self, source: str) -> None:
        """Run a cell; where it asks for what is not there while it is graded, go on below that."""
        error = self.run_cell(source, store_history=True).error_in_exec
        if type(error).__name__ != "NotYours":
            return
        frame = error.__traceback__
        while frame and not frame.tb_frame.f_code.co_filename.startswith("<ipython"):
            frame = frame.tb_next
        text, line = self.transform_cell(source), frame.tb_lineno if frame else 0
        begun = [item.end_lineno or 0 for item in ast.parse(text).body if item.lineno <= line]
        if begun and (rest := "\n".join(text.split("\n")[max(begun) :])).strip():
            self._run_all(rest)


def main(descriptor: int, most_output: int) -> None:
    """Answer over a socket until the other side is gone; the main function of the process."""
    if Path(GIVEN).is_dir():  # behind bubblewrap
        shutil.copytree(GIVEN, Path(WORK).parent, dirs_exist_ok=True)
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.xmode = "Plain"  # a deep recursion has thousands of frames to print
    config.InteractiveShell.colors = "NoColor"
    shell = Shell.instance(config=config)
    shell.outputs.most = most_output
    sys.path.append("")  # a file beside the notebook does not take a library's place
    connection, answers = Connection(descriptor), Answers(shell)
    send(connection, {"ready": True})
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # too late, between two answers
            message = receive(connection)
            send(connection, answers.to(message))


class Answers:
    """What a shell's namespace answers."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self._held: list[Any] = []

    def to(self, message: dict[str, Any]) -> dict[str, Any]:
        """Answer a message with a value, or with the name and the text of an exception."""
        try:
            if "cell" in message:
                return self.shell.run(message["cell"], message["seconds"])
            # a submission must not lose points for what it prints or warns of
            nowhere = io.StringIO()
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                return {"value": encode(self._value(message), self._handle)}
        except BaseException as error:
            text = ""
            with contextlib.suppress(Exception):
                text = str(error)[:5000]
            return {"error": [type(error).__name__[:100], text]}

    def _value(self, message: dict[str, Any]) -> Any:
        kind, name, space = message["do"], message.get("name", ""), self.shell.user_ns
        if kind == "get":
            if name not in space:
                raise NameError(f"name {name!r} is not defined")
            return space[name]
        if kind == "attribute":
            return getattr(self._held[message["handle"]], name)
        arguments, options = decode(message["arguments"], self._held.__getitem__)
        function = self._held[message["handle"]] if kind == "call" else named(message["function"])
        return function(*arguments, **options)

    def _handle(self, value: Any) -> int:
        for number, known in enumerate(self._held):
            if known is value:
                return number
        self._held.append(value)
        return len(self._held) - 1
