"""What commands, graders and submissions' processes share; it imports next to nothing."""

from __future__ import annotations

import importlib
from typing import Any

from accelviz.errors import DeviceUnavailable


def need(package: str, extra: str) -> None:
    """Raise DeviceUnavailable, which says how to get it, where a package is missing."""
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise DeviceUnavailable(
            package,
            f"it is not installed ({error})",
            f"`make {extra}` in a checkout, else pip install 'accelviz[{extra}]'",
        ) from error


def clean(text: object) -> str:
    """Return a text in one line and without what steers a terminal, for whoever reads it."""
    one = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else "?" for letter in one)


def first_line(error: object) -> str:
    """Return the first line of an exception's text."""
    return next(iter(str(error).splitlines()), "")


def named(function: str) -> Any:
    """Return a function of the library by "module:name"."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)
