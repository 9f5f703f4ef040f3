"""What a submission wrote, as an instructor may read it."""

from __future__ import annotations


def clean(text: object) -> str:
    """Return a text in one line and without what steers a terminal, for whoever reads it."""
    one = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else "?" for letter in one)
