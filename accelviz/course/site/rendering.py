"""From a notebook to a page: nbconvert, with formulas drawn and links that lead to pages."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from accelviz.course.site.formula import formula
from accelviz.course.site.sources import Source
from accelviz.errors import ArgumentError

#: The page that lists the others.
INDEX = "index.html"
_HERE = Path(__file__).parent
_CONTENTS = (
    '<nav class="course-contents" aria-label="On this page"><details>'
    "<summary>On this page</summary><ul>{}</ul></details></nav>"
)


class _Markdown(IPythonRenderer):
    """Draws formulas, and lets links lead to pages.

    Parameters
    ----------
    source : Source
        Whose text is rendered.
    pages : mapping of Path to str
        The page of each file that has one.
    unknown : set of str
        Receives formulas that cannot be drawn.
    """

    def __init__(self, source: Source, pages: Mapping[Path, str], unknown: set[str]) -> None:
        folder = str(source.path.parent)
        super().__init__(escape=False, embed_images=True, path=folder, exclude_anchor_links=True)
        self.source, self.pages, self.unknown = source, pages, unknown
        self.contents: list[str] = []

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """Return a heading that links can lead to; sections are noted in `contents`."""
        place = _place(unescape(re.sub("<[^>]*>", "", text)))
        if level == 2:
            name = re.sub("</?a[^>]*>", "", text)
            self.contents.append(f'<li><a href="#{place}">{name}</a></li>')
        return f'<h{level} id="{place}">{text}</h{level}>\n'

    def inline_math(self, body: str) -> str:
        """Return a formula of the text."""
        return self._drawn(body, body)

    def block_math(self, body: str) -> str:
        """Return a formula that has a line of its own."""
        large = re.sub(r"\\frac(?![a-zA-Z])", r"\\dfrac", body)
        return f'<div class="course-display">{self._drawn(large, body)}</div>'

    def _drawn(self, tex: str, body: str) -> str:
        try:
            return formula(tex)
        except ArgumentError:
            self.unknown.add(body.strip())
            return f"<code>{escape(body.strip())}</code>"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Return a link; the text alone if it means a file that has no page."""
        path, place = self.source.linked(url)
        if path is not None and path not in self.pages:
            return f'<span title="{escape(url)}">{text}</span>'
        if path is not None:
            url = _way(self.source.page, self.pages[path])
            url += f"#{_place(unquote(place))}" if place else ""
        elif url.startswith("#"):
            url = f"#{_place(unquote(url))}"
        rendered: str = super().link(text, url, title)
        return rendered

    def _html_embed_images(self, html: str) -> str:
        # nbconvert's parser would close tags that Markdown closes further down: <details>
        rendered: str = super()._html_embed_images(html) if "<img" in html else html
        return rendered


#: What keys reach, as it may be wider than the page, and an image that says nothing of itself.
_REACHED = re.compile(
    r'<div (?:id="[^"]*" )?class="(?:jp-Cell-inputWrapper|[^"]*jp-OutputArea-output)\b'
)
_SILENT = re.compile(r"<img\b(?![^>]*\balt=)")


class _Filled(TemplateExporter):
    """The filled-in template, on the way to HTMLExporter, which would read all of it again.

    It looks for what keys are to reach, and for images without a text; reading took as long as all
    else. A page that has such images it still gets.
    """

    filled = ""

    def from_notebook_node(self, nb: Any, resources: Any = None, **options: Any) -> Any:
        """Keep the page in `filled` and pass on nothing, or pass on the page."""
        text, resources = super().from_notebook_node(nb, resources, **options)
        self.filled = "" if _SILENT.search(text) else _REACHED.sub(_focusable, text)
        return ("" if self.filled else text), resources


def _focusable(tag: re.Match[str]) -> str:
    return tag[0].replace("<div", '<div tabindex="0"', 1)


class _Exporter(HTMLExporter, _Filled):
    """Renders Markdown with `renderer`."""

    renderer: Any = None

    def from_notebook_node(self, nb: Any, resources: Any = None, **options: Any) -> Any:
        """Return the page, and nbconvert's resources."""
        text, resources = super().from_notebook_node(nb, resources, **options)
        return self.filled or text, resources

    def markdown2html(self, source: str) -> str:
        rendered: str = MarkdownWithMath(renderer=self.renderer).render(source)
        return rendered


def _place(heading: str) -> str:
    """Return a heading's name in links, whether GitHub's or JupyterLab's is given."""
    return re.sub(r"[^\w-]", "", heading.strip().lower().replace(" ", "-"))


def _way(page: str, target: str) -> str:
    """Return the link from one page to another."""
    return quote(Path(os.path.relpath(target, os.path.dirname(page) or ".")).as_posix())


class Renderer:
    """Makes pages that link to one another.

    Parameters
    ----------
    pages : mapping of Path to str
        The page of each file that has one.

    Attributes
    ----------
    unknown : set of str
        Formulas that could not be drawn, and stand as TeX.
    """

    def __init__(self, pages: Mapping[Path, str]) -> None:
        self.pages = pages
        self.unknown: set[str] = set()
        self._exporter = _Exporter(raw_template=(_HERE / "page.html.j2").read_text("utf-8"))
        self._style = (_HERE / "page.css").read_text("utf-8")

    def page(
        self, source: Source, before: Source | None = None, after: Source | None = None
    ) -> str:
        """Return a page.

        Parameters
        ----------
        source : Source
        before, after : Source, optional
            The lessons that it leads to, above and below its text.
        """
        course: dict[str, Any] = {"style": self._style}
        if source.page != INDEX:
            course["home"] = _way(source.page, INDEX)
        for name, lesson in (("before", before), ("after", after)):
            if lesson is not None:
                link = _way(source.page, lesson.page)
                course[name] = {"link": link, "title": _plain(lesson.title)}
        for cell in source.notebook.cells:
            if cell.metadata.get("jupyter", {}).get("source_hidden"):  # a prediction's: the answer
                cell.metadata["transient"] = {"remove_source": True}
        source.notebook.metadata["title"] = _plain(source.title)
        self._exporter.renderer = markdown = _Markdown(source, self.pages, self.unknown)
        resources = {"metadata": {"name": source.path.stem}, "course": course}
        text: str = self._exporter.from_notebook_node(source.notebook, resources)[0]
        few = source.page == INDEX or len(markdown.contents) < 3
        sections = "" if few else "".join(markdown.contents)
        return text.replace("<!-- contents -->", sections and _CONTENTS.format(sections), 1)


def _plain(markdown: str) -> str:
    return re.sub(r"[`$*]", "", markdown)
