"""The site that `make docs` builds: pages of docs/, lessons and puzzles with their outputs, API.

Sphinx reads the checkout itself, so that links between files work there and on the site.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from nbclient import NotebookClient
from sphinx import addnodes

SITE = Path(__file__).resolve().parent
ROOT = SITE.parents[1]
sys.path[:0] = [str(ROOT), str(SITE)]

import accelviz  # noqa: E402

project = "accelviz"
project_copyright = "The accelviz developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "gallery"]
root_doc = "docs/site/index"
include_patterns = ["*.md", "docs/*.md", "docs/site/**.md", "notebooks/**", "benchmarks/**.md"]
exclude_patterns = [
    *(".*", "build", "dist", "accelviz", "kernels", "tests", "**/node_modules"),
    *("benchmarks/[!p]*/**", "notebooks/assignments", "**/.ipynb_checkpoints"),
]

html_theme = "furo"
pygments_dark_style = "github-dark"  # the default underlines modules like links
html_title = "accelviz"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
templates_path = ["templates"]
html_additional_pages = {"index": "redirect.html"}
html_copy_source = False
html_use_index = False
html_domain_indices = False
html_search_scorer = str(SITE / "scorer.js")
html_show_search_summary = False  # a page that is opened from a folder may not read others

myst_enable_extensions = ["attrs_inline", "dollarmath"]
myst_heading_anchors = 6
html_math_renderer = "mathml"

default_role = "name"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch", "torch_geometric"]
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# An executed notebook is stored by the text of its cells and its kernel.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
# Widgets are shown by their HTML, which needs neither a kernel nor a network.
nb_ipywidgets_js: dict[str, Any] = {}
nb_mime_priority_overrides = [("html", "text/html", 0)]
NotebookClient.store_widget_state.default_value = False
os.environ["CUDA_VISIBLE_DEVICES"] = ""


#: Modules of which each has a page of the reference.
ROOMS = {path.stem for path in (SITE / "api").glob("*.md")}


def prepare_source(app: Any, name: str, content: list[str]) -> None:
    """Hide cells that Jupyter folds, with answers of predictions; make HTML anchors MyST's."""
    if app.env.doc2path(name).suffix != ".ipynb":
        content[0] = re.sub(r'<a id="([^"]+)"></a>', r"[]{#\1}", content[0])
        return
    notebook = json.loads(content[0])
    for cell in notebook["cells"]:
        if cell["metadata"].get("jupyter", {}).get("source_hidden"):
            cell["metadata"].setdefault("tags", []).append("remove-input")
    content[0] = json.dumps(notebook)


def name_role(role: str, raw: str, text: str, line: int, inliner: Any, *_: Any) -> Any:
    """Link a public name between backticks to its documentation; leave other text as code."""
    name = text.removeprefix("accelviz.").removesuffix("()")
    public = name in accelviz.__all__ or name.partition(".")[0] in ROOMS
    if not public or not re.fullmatch(r"[\w.]+", name):
        return [nodes.literal(raw, text)], []
    link = inliner.document.settings.env.get_domain("py").role("obj")
    return link("py:obj", raw, f"{text} <accelviz.{name}>", line, inliner)


def prepare_docstring(app: Any, kind: str, name: str, *rest: Any) -> None:
    """Link pages of docs/; cut what accelviz.torch appends from PyTorch Geometric's classes."""
    lines = rest[-1]
    for number, line in enumerate(lines):
        if line.startswith("The documentation of `torch_geometric.nn."):
            del lines[number:]
            return
        lines[number] = re.sub(r"(?<!`)\bdocs/([\w-]+)\.md", r":doc:`\1 </docs/\1>`", line)


def unlink_types(app: Any, doctree: nodes.document) -> None:
    """Show types of parameters as text: single words of them would link to anything of the name."""
    for link in [*doctree.findall(addnodes.pending_xref)]:
        if link["refdomain"] == "py" and not link["refexplicit"]:
            link.replace_self(link.children)


def complete_headings(app: Any, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Say the level of captions, which Sphinx calls headings."""
    for name in {"body", "furo_navigation_tree"} & context.keys():
        context[name] = context[name].replace('role="heading"', 'role="heading" aria-level="2"')


def write_mathml(writer: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw without a script."""
    writer.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Connect what Sphinx has no setting for."""
    app.add_role("name", name_role)
    app.connect("autodoc-process-docstring", prepare_docstring)
    app.connect("doctree-read", unlink_types)
    app.connect("html-page-context", complete_headings, priority=900)
    app.connect("source-read", prepare_source)
    app.add_html_math_renderer("mathml", (write_mathml, None), (write_mathml, None))
