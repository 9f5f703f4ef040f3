"""Write pages of HTML around the page's bundles, which esbuild makes of `src/` (see build.js)."""

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
    """Return a bundle as a script, which sets `accelvizPage` to what the bundle exports."""
    return (_HERE / "dist" / f"{bundle}.mjs").read_text("utf-8")


@functools.cache
def style(bundle: str = "explorer") -> str:
    """Return the styles of a bundle."""
    return (_HERE / "dist" / f"{bundle}.css").read_text("utf-8")


def module() -> str:
    """Return the explorer as the module that anywidget loads."""
    return f"{script()}\nexport default {{ render: accelvizPage.render }};\n"


def page(content: Any, name: str, fallback: str, bundle: str = "explorer") -> str:
    """Return HTML that works by itself: data, script and styles, for a notebook or a page.

    Parameters
    ----------
    content : object
        Data that the page draws.
    name : str
        The id of the element; no other in the document has it.
    fallback : str
        HTML that is shown until the script runs, and where none may.
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
    """Return a page that asks; the browser keeps its answers under a hash of the question."""
    question = {"kind": kind, **content}
    hashed = {name: value for name, value in question.items() if name != "because"}
    key = zlib.crc32(json.dumps(hashed, default=list).encode())
    return page({**question, "key": f"{key:08x}"}, new_name(), fallback, "asking")


def with_code(text: str) -> str:
    """Turn text into HTML; text between backticks becomes code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def document(content: Any, title: str, fallback: str) -> str:
    """Return a whole document of HTML around the explorer's page."""
    frame = Template((_HERE / "src" / "document.html").read_text("utf-8"))
    return frame.substitute(
        title=escape(title),
        operation=escape(content["operation"]["title"]),
        page=page(content, new_name(), fallback),
    )


def new_name() -> str:
    """Return an id for a page."""
    return f"accelviz-{secrets.token_hex(6)}"
