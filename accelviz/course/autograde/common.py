"""Helpers shared by commands, graders and submissions' processes; light to import."""

from __future__ import annotations

import importlib
import importlib.util

from accelviz.errors import DeviceUnavailable, pip_install
from accelviz.files import is_checkout


def need(package: str, extra: str, *, import_now: bool = True) -> None:
    """Raise DeviceUnavailable, with how to install it, if a package cannot be imported.

    With `import_now=False` it is only looked for: nbgrader's import takes a second, which the first
    line of progress need not wait for. Another call must then come before the first import.
    """
    problem, cause = "", None
    try:
        if importlib.util.find_spec(package) is None:
            problem = "it is not installed"
        elif import_now:
            importlib.import_module(package)
    except (ImportError, ValueError) as error:
        problem, cause = f"it cannot be imported ({first_line(error)})", error
    if problem:
        make = f"`make {extra}`, or " if is_checkout() else ""
        fix = f"run {make}`{pip_install(f'accelviz[{extra}]')}`"
        raise DeviceUnavailable(package, problem, fix) from cause


def clean(text: object) -> str:
    """Return a text of at most 4,000 letters in one line; control characters become "?"."""
    line = " ".join(str(text)[:4_000].split())
    return "".join(character if character.isprintable() else "?" for character in line)


def first_line(error: object) -> str:
    """Return the first line of an exception's text."""
    return next(iter(str(error).splitlines()), "")
