"""Helpers shared by commands, graders and submissions' processes; light to import."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from accelviz.errors import DeviceUnavailable


def need(package: str, extra: str) -> None:
    """Raise DeviceUnavailable, with how to install it, if a package is not installed.

    It is not imported: nbgrader takes a second, which the first line of progress need not wait for.
    """
    try:
        is_installed = importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        is_installed = False
    if not is_installed:
        raise DeviceUnavailable(
            package,
            "it is not installed",
            f"`make {extra}` in a checkout, else pip install 'accelviz[{extra}]'",
        )


def clean(text: object) -> str:
    """Return a text in one line, with control characters replaced by "?"."""
    line = " ".join(str(text).split())
    return "".join(character if character.isprintable() else "?" for character in line)


def first_line(error: object) -> str:
    """Return the first line of an exception's text."""
    return next(iter(str(error).splitlines()), "")


def import_function(path: str) -> Any:
    """Return the function that a path "module:name" refers to."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
