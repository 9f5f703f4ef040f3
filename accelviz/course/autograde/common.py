"""Helpers shared by commands, graders and submissions' processes; light to import."""

from __future__ import annotations

import importlib
from typing import Any

from accelviz.errors import DeviceUnavailable


def need(package: str, extra: str) -> None:
    """Raise DeviceUnavailable, with how to install it, if a package cannot be imported."""
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise DeviceUnavailable(
            package,
            f"it is not installed ({error})",
            f"`make {extra}` in a checkout, else pip install 'accelviz[{extra}]'",
        ) from error


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
