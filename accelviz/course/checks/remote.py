"""What a submission defines, as tests see it: it stays in the submission's own process.

A test calls a student's function as if it were there. Arguments and results cross as plain data,
so that no test runs a line of the student's, and no object of the student's answers for itself.
"""

from __future__ import annotations

import builtins
from typing import Any

from accelviz.course.autograde.common import named
from accelviz.course.autograde.wire import Lost, decode, encode, receive, send


class Link:
    """The process of a submission, as a test sees it.

    `cells` are the sources of the submission's own cells, `twin` is another process, which ran the
    same cells and nothing else.
    """

    def __init__(self, child: Any, cells: tuple[str, ...], twin: Any = None) -> None:
        self.cells, self._child, self._twin = cells, child, twin

    @property
    def twin(self) -> Link:
        """The link to the other process."""
        assert self._twin is not None
        return Link(self._twin, self.cells)

    def processor_seconds(self) -> float:
        """Return the processor time that the submission has taken."""
        return float(self._child.processor_seconds())

    def ask(self, message: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        """Ask for a value.

        Raises an exception like the one that the submission raised; Lost if its process is gone, or
        does not keep to the rules.
        """
        if message["do"] in ("call", "run"):
            data = encode((arguments, options), handle_of)
            message = {**message, "arguments": data}
        send(self._child.connection, message)
        answer = receive(self._child.connection)
        if not isinstance(answer, dict):
            raise Lost("an answer is no plain data")
        if "error" in answer:
            name, text, *_ = [str(part)[:5000] for part in (*answer["error"], "", "")]
            raise exception_of(name[:100], text)
        name = message.get("name", "")
        return decode(answer.get("value"), lambda handle: Remote(self, int(handle), name))


class Remote:
    """A function, a class or an object of a submission, which its process knows by a handle.

    `name` is its name in the notebook, "" if it has none.
    """

    def __init__(self, link: Link, handle: int, name: str = "") -> None:
        self._link, self._handle, self._name = link, handle, name

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: D102
        return self._link.ask({"do": "call", "handle": self._handle}, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._link.ask({"do": "attribute", "handle": self._handle, "name": name})

    def __repr__(self) -> str:
        return f"<{self._name or 'an object'} of the submission>"


def link_of(subject: Any) -> Link | None:
    """Return the way to the process of a `Remote`; None for what is in this process."""
    return subject._link if isinstance(subject, Remote) else None


def name_of(subject: Any) -> str:
    """Return the name of a student's function in its notebook, "" if it has none."""
    return subject._name if isinstance(subject, Remote) else getattr(subject, "__name__", "")


def handle_of(value: Any) -> int:
    """Return the handle of a `Remote`; nothing else can be handed to a submission."""
    if isinstance(value, Remote):
        return value._handle
    raise TypeError(f"a {type(value).__name__} cannot be handed to a submission")


def call_beside(subject: Any, function: str, *arguments: Any) -> Any:
    """Call a function of the library ("module:name") in the process of its first argument.

    That is a student's function or object, or a `Remote` of one; the others are plain data.
    """
    if link := link_of(subject):
        return link.ask({"do": "run", "function": function}, subject, *arguments)
    return named(function)(subject, *arguments)


def exception_of(name: str, text: str) -> Exception:
    """Return an exception like the one that a submission raised.

    Never a StopIteration: it would end a test's `all(map(function, cases))`, and with success.
    """
    if name in ("SystemExit", "KeyboardInterrupt"):
        return RuntimeError(f"it ended in {name}")
    kind: Any = getattr(builtins, name, None)
    known = isinstance(kind, type) and issubclass(kind, Exception)
    if not known or kind is StopIteration:
        kind = type(name if name.isidentifier() else "StudentError", (Exception,), {})
    try:
        return kind(text)
    except TypeError:  # such as UnicodeDecodeError, which wants more
        return ValueError(f"{name}: {text}")
