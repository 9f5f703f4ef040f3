"""HTML pages around the two bundles, "explorer" and "asking", which build.js makes of `src/`."""

from __future__ import annotations

import functools
import json
import re
import secrets
import zlib
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from accelviz.widgets.pack import pack_text

_HERE = Path(__file__).resolve().parent


@functools.cache
def script(bundle: str = "explorer") -> str:
    """Return the JavaScript of a bundle; it sets `accelvizPage` to the bundle's exports."""
    return (_HERE / "dist" / f"{bundle}.mjs").read_text("utf-8")


@functools.cache
def style(bundle: str = "explorer") -> str:
    """Return the CSS of a bundle."""
    return (_HERE / "dist" / f"{bundle}.css").read_text("utf-8")


def module() -> str:
    """Return the explorer as the module that anywidget loads."""
    return f"{script()}\nexport default {{ render: accelvizPage.render }};\n"


def page(content: Any, name: str, fallback: str, bundle: str = "explorer") -> str:
    """Return self-contained HTML, with data, script and styles, for a notebook or a document.

    Parameters
    ----------
    content : object
        Data that the page draws, for `pack`.
    name : str
        Id of the HTML element, unique in the document.
    fallback : str
        HTML shown until the script runs, or instead of it where scripts are blocked.
    bundle : str
        "explorer" or "asking".
    """
    # `</script` cannot occur in base64, and esbuild escapes it in the bundles.
    return (
        f"<style>{style(bundle)}</style>"
        f'<div class="av-page" id="{name}">{fallback}</div>'
        f'<script type="text/plain" id="{name}-data">{pack_text(content, 9)}</script>'
        f'<script>(() => {{\n{script(bundle)}\naccelvizPage.open("{name}");\n}})();</script>'
    )


def asking_page(kind: str, content: dict[str, Any], fallback: str) -> str:
    """Return a page of the bundle "asking"; its `key` is a hash of the question.

    The browser stores the learner's answers under this key.
    """
    question = {"kind": kind, **content}
    hashed = {
        name: value for name, value in question.items() if name not in ("because", "pictures")
    }
    key = zlib.crc32(json.dumps(hashed, default=list).encode())
    return page({**question, "key": f"{key:08x}"}, new_name(), fallback, "asking")


def with_code(text: str) -> str:
    """Turn text into HTML; text between backticks becomes code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def document(content: Any, title: str, fallback: str) -> str:
    """Return an HTML document with the explorer's page."""
    template = Template((_HERE / "src" / "document.html").read_text("utf-8"))
    return template.substitute(
        title=escape(title),
        operation=escape(content["operation"]["title"]),
        page=page(content, new_name(), fallback),
    )


def new_name() -> str:
    """Return a random id for a page's HTML element."""
    return f"accelviz-{secrets.token_hex(6)}"
