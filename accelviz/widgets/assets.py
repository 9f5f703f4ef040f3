"""Puts the page's modules and styles together, and writes pages of HTML around them.

No bundler and no network: each module becomes a function that returns what it exports, in an order
in which what is imported comes first.
"""

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

_HERE = Path(__file__).resolve().parent / "page"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.M)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) (\w+)", re.M)


#: The styles of each page, by the module that opens it.
_STYLES = {
    "main.js": ("style.css", "views.css"),
    "widget.js": ("style.css", "views.css"),
    "prediction.js": ("style.css", "asked.css"),
    "question.js": ("style.css", "asked.css"),
    "stages.js": ("style.css", "asked.css"),
}


@functools.cache
def script(entry: str = "main.js") -> str:
    """Return a module and all that it needs as one script.

    It sets `modules`, an object of each module's exports.
    """
    done: dict[str, str] = {}

    def add(path: Path) -> None:
        name = path.relative_to(_HERE).as_posix()
        if name in done:
            return
        done[name] = ""  # a circle would find it empty
        source = path.read_text("utf-8")

        def bound(found: re.Match[str]) -> str:
            other = (path.parent / found[2]).resolve()
            add(other)
            names = re.sub(r"(\w+) as (\w+)", r"\1: \2", " ".join(found[1].split()))
            return f'const {{ {names} }} = modules["{other.relative_to(_HERE).as_posix()}"];\n'

        body = _IMPORT.sub(bound, source)
        exported = ", ".join(each[1] for each in _EXPORT.findall(body))
        body = re.sub(r"^export ", "", body, flags=re.M)
        text = f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n'
        # What is imported was put together meanwhile; this comes after it.
        del done[name]
        done[name] = text

    add(_HERE / entry)
    return "const modules = {};\n" + "".join(done.values())


@functools.cache
def style(entry: str = "main.js") -> str:
    """Return the styles of a page."""
    return "\n".join((_HERE / name).read_text("utf-8") for name in _STYLES[entry])


def module() -> str:
    """Return the modules as the one that a widget is made of."""
    return f'{script("widget.js")}\nexport default {{ render: modules["widget.js"].render }};\n'


def page(content: Any, name: str, fallback: str, entry: str = "main.js") -> str:
    """Return HTML that is alive by itself: data, script and styles, for a notebook or a page.

    Parameters
    ----------
    content : object
        What `mount` draws from.
    name : str
        The id of the element; no other in the document has it.
    fallback : str
        HTML that is shown until the script runs, and where none may.
    entry : str
        The module that opens it.
    """
    # `</script` cannot occur in base64; in the modules it does not.
    return (
        f"<style>{style(entry)}</style>"
        f'<div class="av-page" id="{name}">{fallback}</div>'
        f'<script type="text/plain" id="{name}-data">{pack_text(content, 9)}</script>'
        f"<script>(() => {{\n{script(entry)}\n"
        f'modules["{entry}"].open("{name}");\n}})();</script>'
    )


def asked(entry: str, content: dict[str, Any], fallback: str) -> str:
    """Return a page that asks; the browser keeps what is answered by what was asked."""
    asked_of = {name: value for name, value in content.items() if name != "because"}
    key = zlib.crc32(json.dumps(asked_of, default=list).encode())
    return page({**content, "key": f"{key:08x}"}, new_name(), fallback, entry)


def marked(text: str) -> str:
    """Turn text into HTML; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


@functools.cache
def frames() -> dict[str, str]:
    """Return the HTML around a page and the text that needs no script, for `filled`."""
    return {name: (_HERE / f"{name}.html").read_text("utf-8") for name in ("document", "fallback")}


def filled(frame: str, **parts: str) -> str:
    """Put HTML in the places of a frame; the page itself does so in `share.js`."""
    return Template(frames()[frame]).substitute(parts)


def document(content: Any, title: str, fallback: str) -> str:
    """Return a whole document of HTML around the explorer's page."""
    operation = escape(content["operation"]["title"])
    made = page(content, new_name(), fallback)
    return filled("document", title=escape(title), operation=operation, page=made)


def new_name() -> str:
    """Return an id for a page."""
    return f"accelviz-{secrets.token_hex(6)}"
