"""Proxies for the functions and objects of a submission, which stay in the submission's process.

A test calls a student's function through a `Remote` as if it were local. Arguments and results
cross as plain data (see `autograde.wire`), so the test's process runs none of the student's code.
"""

from __future__ import annotations

import builtins
import functools
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from accelviz.course.autograde.wire import SubmissionLostError, decode, encode
from accelviz.course.checks.common import remarks

#: Calls of a student's function in one message.
_CALLS = 64


class Link:
    """Connection of a test to a process in the sandbox.

    `child_of` returns the process of a role (`autograde.child.Child`): "student" has run the
    submission's cells, "twin" too but no test, "kernels" has run none and is for CUDA text.
    `cells` are the texts of the student's own cells.
    """

    def __init__(
        self, child_of: Callable[[str], Any], cells: tuple[str, ...], role: str = "student"
    ) -> None:
        self._child_of, self.cells, self._role = child_of, cells, role
        #: What all tests of the submission share, such as the plan of a graph.
        self.shared: dict[Any, Any] = {}
        #: Names of functions of the submission that `RIGHT_HELPERS` replace.
        self.replaced: tuple[str, ...] = ()

    def to(self, role: str) -> Link:
        """Return the link to the process of another role."""
        return Link(self._child_of, self.cells, role)

    def processor_seconds(self) -> float:
        """Return the processor time that the process and its children have used."""
        return float(self._child_of(self._role).processor_seconds())

    def request(self, message: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        """Send a message of `autograde.student.Server` and return the value in the reply.

        Raises an exception of the same name and text if the submission raised one, and
        SubmissionLostError if its process is gone or violates the protocol.
        """
        child = self._child_of(self._role)
        if message["do"] in ("call", "run"):
            arguments_of_call = encode((arguments, options), _handle_of)
            message = {**message, "arguments": arguments_of_call, "replaced": self.replaced}
        child.send(message)
        while True:
            reply = child.receive()
            if not isinstance(reply, dict):
                raise SubmissionLostError("an answer is no plain data")
            if reply.get("ask") not in self.replaced:
                break
            child.send(_helped(reply))
        if "error" in reply:
            name, text, *_ = [str(part)[:5000] for part in (*reply["error"], "", "")]
            raise exception_of(name[:100], text)
        name = message.get("name", "")
        return decode(reply.get("value"), lambda handle: Remote(self, int(handle), name))


#: Right versions of functions that other functions of a submission call, by their names.
RIGHT_HELPERS: dict[str, Callable[..., Any]] = {}


def charged_once(*helpers: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a check of a function that calls these `RIGHT_HELPERS` of the same submission.

    If it fails, it is run again with right helpers: a fault in a helper costs the points of the
    helper's own tests. The judge answers each call of a helper, so no code of it crosses.
    """

    def decorated(check: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(check)
        def checked(function: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return check(function, *arguments, **options)
            except Exception as error:
                if (link := link_of(function)) is None:
                    raise
                first_error = error
            remarks.clear()
            link.replaced = helpers
            try:
                result = check(function, *arguments, **options)
            except Exception:
                raise first_error from None
            finally:
                link.replaced = ()
            remarks.append(
                f"right with right {' and '.join(helpers)}, which have tests of their own"
            )
            return result

        return checked

    return decorated


def _helped(request: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a submission's call of a helper that was replaced."""
    try:
        arguments, options = decode(request.get("arguments"), lambda _: None)
        return {"value": encode(RIGHT_HELPERS[request["ask"]](*arguments, **options), _handle_of)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


#: Link to the process for CUDA text; None outside of grading, where kernels are the user's own.
kernels: Link | None = None


def run_kernels(function: str, *arguments: Any) -> Any:
    """Call a function of the library ("module:name") where a student's CUDA text may be run."""
    if kernels is not None:
        return kernels.request({"do": "run", "function": function}, *arguments)
    return pkgutil.resolve_name(function)(*arguments)


def _handle_of(value: Any) -> int:
    if isinstance(value, Remote):
        return value._handle
    raise TypeError(f"a {type(value).__name__} cannot be handed to a submission")


class Remote:
    """Proxy of a submission's function, class or object.

    `handle` is the number that the submission's process gave to the object, `name` its name in the
    notebook ("" if it has none).
    """

    def __init__(self, link: Link, handle: int, name: str = "") -> None:
        self._link, self._handle, self._name = link, handle, name

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: D102
        message = {"do": "call", "handle": self._handle, "name": f"{self._name}()"}
        return self._link.request(message, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._link.request({"do": "attribute", "handle": self._handle, "name": name})

    def __repr__(self) -> str:
        return f"<{self._name or 'an object'} of the submission>"


def link_of(subject: Any) -> Link | None:
    """Return the link of a `Remote`, None for an object of this process."""
    return subject._link if isinstance(subject, Remote) else None


def name_of(subject: Any) -> str:
    """Return the name of a student's function in its notebook, "" if it has none."""
    return subject._name if isinstance(subject, Remote) else getattr(subject, "__name__", "")


def call_in_submission(subject: Any, function: str, *arguments: Any) -> Any:
    """Call `function(subject, *arguments)` in the process that owns `subject`.

    `function` is a function of the library ("module:name"). `subject` is a student's function or
    object, or a `Remote` of one; the other arguments are plain data.
    """
    if link := link_of(subject):
        return link.request({"do": "run", "function": function}, subject, *arguments)
    return pkgutil.resolve_name(function)(subject, *arguments)


def results_of(subject: Any, arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield the result of a student's function for each tuple of arguments.

    A message has many calls, as each takes two switches between processes, which wait on a loaded
    machine. If one call raises an exception, so does the first result of its message.
    """
    for first in range(0, len(arguments), _CALLS):
        calls = list(arguments[first : first + _CALLS])
        yield from call_in_submission(subject, f"{__name__}:_results", calls)


def _results(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    return [function(*arguments) for arguments in calls]


def exception_of(name: str, text: str) -> Exception:
    """Return an exception of the same name and text as one that a submission raised.

    The result is never a StopIteration, which would end a test's `all(map(function, cases))` as if
    all cases had passed.
    """
    if name in ("SystemExit", "KeyboardInterrupt"):
        return RuntimeError(f"it ended in {name}")
    kind: Any = getattr(builtins, name, None)
    known = isinstance(kind, type) and issubclass(kind, Exception)
    if not known or kind is StopIteration:
        kind = type(name if name.isidentifier() else "StudentError", (Exception,), {})
    try:
        return kind(text)
    except TypeError:  # such as UnicodeDecodeError, which has more parameters
        return ValueError(f"{name}: {text}")
