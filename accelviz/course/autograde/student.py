"""The main program of a submission's process: runs cells with IPython and replies to messages.

The judge (`autograde.judge`) sends cells to run and calls of the student's functions. The student's
code can change everything in this process, so the judge does not trust the replies.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import os
import pkgutil
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from IPython.core import pylabtools
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from IPython.lib import pretty
from IPython.utils.capture import capture_output
from traitlets import Type
from traitlets.config import Config

from accelviz.course.autograde.wire import Line, decode, encode


class _Hook(DisplayHook):
    """Publishes a cell's last value, and keeps it as `_` and in `Out`."""

    shell: Shell

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        self.shell.display_pub.publish(format_dict)

    def finish_displayhook(self) -> None:
        pass


class Shell(InteractiveShell):
    """IPython without a terminal and without a kernel, which collects the outputs of cells."""

    displayhook_class = Type(_Hook)
    #: Characters that are sent of a cell's output.
    limit = 1_000_000
    exited = False
    errors: list[dict[str, Any]]

    def ask_exit(self) -> None:
        """Record that a cell has called `exit` or `quit`."""
        self.exited = True

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing."""

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        error = {"output_type": "error", "ename": etype.__name__, "evalue": str(evalue)[:5000]}
        lines = [str(line)[:5000] for line in stb[-100:]]
        self.errors.append({**error, "traceback": lines})

    def run(self, source: str, seconds: float) -> dict[str, Any]:
        """Run a cell; return its `outputs` and whether it has `exited`.

        After `seconds` the cell is interrupted as by Ctrl-C.
        """
        self.errors = []
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with capture_output() as captured:
            try:
                self._run_past_stand_ins(source)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        texts, left = (captured.stdout, captured.stderr), self.limit
        outputs: list[dict[str, Any]] = [
            {"output_type": "stream", "name": name, "text": text[: left + 1]}  # the judge cuts it
            for name, text in zip(("stdout", "stderr"), texts, strict=True)
            if text
        ]
        for item in captured.outputs:
            left -= len(str(item.data))
            if left >= 0:
                outputs.append({"output_type": "display_data", "data": item.data})
        return {"outputs": [*outputs, *self.errors], "exited": self.exited}

    def _run_past_stand_ins(self, source: str, skipped: tuple[str, ...] = ("NotYours",)) -> None:
        """Run a cell; if a statement uses a stand-in, continue with the statement after it.

        From then on, continue after names that the statement would have defined, too.
        """
        error = self.run_cell(source, store_history=True).error_in_exec
        if type(error).__name__ not in skipped:
            return
        frame = error.__traceback__
        while frame and not frame.tb_frame.f_code.co_filename.startswith("<ipython"):
            frame = frame.tb_next
        text, line = self.transform_cell(source), frame.tb_lineno if frame else 0
        ends = [item.end_lineno or 0 for item in ast.parse(text).body if item.lineno <= line]
        if ends and (remaining := "\n".join(text.split("\n")[max(ends) :])).strip():
            self._run_past_stand_ins(remaining, ("NotYours", "NameError"))


def main(descriptor: int, output_limit: int, reads_files: bool, source: str, root: str) -> None:
    """Run the process: reply to messages over a socket until the judge closes it.

    It works in `root`, on copies of the files in `source`, which no process changes. Without
    `reads_files` it imports nothing from beside the notebook: a file could have the name of a
    library that the library looks for and that is not installed.
    """
    for path in sorted(Path(source).rglob("*")):
        target = Path(root, path.relative_to(source))
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            shutil.copy(path, target, follow_symlinks=False)
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.xmode = "Plain"  # a deep recursion has thousands of frames to print
    config.InteractiveShell.colors = "NoColor"
    pretty.for_type_by_name(
        "pandas.io.formats.style", "Styler", lambda table, page, _: page.text(table.to_string())
    )
    # a notebook may ask for pictures as SVG, which no page shows as it may contain scripts
    select = pylabtools.select_figure_formats
    pylabtools.select_figure_formats = lambda shell, _, **options: select(shell, "png", **options)
    shell = Shell.instance(config=config)
    shell.limit = output_limit
    os.chdir(Path(root, "work" if reads_files else "home"))
    if reads_files:
        sys.path.append("")  # last: a file beside the notebook must not replace a library
    line = Line(socket.socket(fileno=descriptor))
    server = Server(shell, line)
    line.send({"ready": True})
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # an interrupt that arrives after its cell
            line.send(server.reply(line.receive()))


class Server:
    """Replies to messages of the judge.

    {"cell": source, "seconds": limit} runs a cell. The other messages have an item "do": "get"
    returns the notebook's variable "name", "attribute" the attribute "name" of the object "handle";
    "call" calls the object "handle" and "run" the library's function "function". During a call, the
    functions with the names in "replaced" ask the judge for their results.
    """

    def __init__(self, shell: Shell, line: Line) -> None:
        self.shell, self._line = shell, line
        #: Objects that the judge has handles of; a handle is an index.
        self._objects: list[Any] = []

    def reply(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the reply: a cell's outputs, a value, or an exception's name and text."""
        try:
            if "cell" in message:
                return self.shell.run(message["cell"], message["seconds"])
            # a submission must not lose points for its output and warnings
            discarded = io.StringIO()
            with contextlib.redirect_stdout(discarded), contextlib.redirect_stderr(discarded):
                return {"value": encode(self._value(message), self._handle)}
        except BaseException as error:
            text = ""
            with contextlib.suppress(Exception):
                text = str(error)[:5000]
            return {"error": [type(error).__name__[:100], text]}

    def _value(self, message: dict[str, Any]) -> Any:
        kind, name, namespace = message["do"], message.get("name", ""), self.shell.user_ns
        if kind == "get":
            if name not in namespace:
                raise NameError(f"name {name!r} is not defined")
            return namespace[name]
        if kind == "attribute":
            return getattr(self._objects[message["handle"]], name)
        arguments, options = decode(message["arguments"], self._objects.__getitem__)
        helpers = {name: functools.partial(self._ask, name) for name in message["replaced"]}
        originals = {name: namespace[name] for name in helpers if name in namespace}
        namespace.update(helpers)
        try:
            if kind == "call":
                return self._objects[message["handle"]](*arguments, **options)
            return pkgutil.resolve_name(message["function"])(*arguments, **options)
        finally:
            for name in helpers:
                namespace.pop(name, None)
            namespace.update(originals)

    def _ask(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Return the judge's result of a helper."""
        asked = encode((arguments, options), self._handle)
        self._line.send({"ask": name, "arguments": asked})
        reply = self._line.receive()
        if "error" in reply:
            raise ValueError(reply["error"])
        return decode(reply["value"], self._objects.__getitem__)

    def _handle(self, value: Any) -> int:
        for handle, known in enumerate(self._objects):
            if known is value:
                return handle
        self._objects.append(value)
        return len(self._objects) - 1
