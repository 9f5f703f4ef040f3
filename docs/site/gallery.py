"""The gallery of measurements: a card for each recorded CSV, whose rows a script can filter.

A page that is opened from a folder may not read a CSV, but it may load a script. So each CSV lies
beside the gallery twice: as it is in benchmarks/results, and as a script that holds its text.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

SITE = Path(__file__).resolve().parent
ROOT = SITE.parents[1]
RECORDS = sorted((ROOT / "benchmarks" / "results").glob("*.csv*"))
#: Folder of the records on the site, beside the gallery's page.
FOLDER = "records"


def stem(path: Path) -> str:
    """Return the name of a record without its endings."""
    return path.name.partition(".")[0]


@cache
def mentions() -> dict[str, list[str]]:
    """Return the pages of docs/ that name each record, or that a script makes of it."""
    texts = {page.stem: page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md")}
    for script in (ROOT / "benchmarks" / "pages").glob("*.py"):
        page = script.stem.replace("_", "-")
        page = {"accel-gcn": "reproduction", "fusegnn": "reproduction"}.get(page, page)
        if page in texts:
            texts[page] += script.read_text("utf-8")
    del texts["measuring"], texts["sources"]  # they name nearly every record
    names = map(stem, RECORDS)
    return {
        name: [page for page, text in sorted(texts.items()) if re.search(rf"\b{name}\b", text)]
        for name in names
    }


@cache
def questions() -> dict[str, str]:
    """Return the question that each record answers."""
    return pd.read_csv(SITE / "records.csv", index_col="record")["question"].to_dict()


def card(path: Path) -> str:
    """Return the HTML of a record's card."""
    name, rows = stem(path), pd.read_csv(path, low_memory=False)
    machines = sorted({str(machine) for machine in rows.get("hardware", pd.Series()).dropna()})
    pages = "".join(f', <a href="../{page}.html">{page}</a>' for page in mentions()[name])
    return (
        f'<details class="record" data-record="{name}" data-machines="{escape("|".join(machines))}"'
        f' data-columns="{escape(" ".join(map(str, rows.columns)))}">'
        f"<summary><b>{name}</b> {escape(questions()[name])}</summary>"
        f"<p>{len(rows):,} rows, {escape(', '.join(machines) or 'no GPU')}: "
        f'<a download href="{FOLDER}/{path.name}">'
        f"{path.name}</a>{pages}</p></details>"
    )


class Measurements(SphinxDirective):
    """The cards of all records."""

    def run(self) -> list[nodes.Node]:
        """Return the cards as HTML."""
        for path in (Path(__file__), SITE / "records.csv", *RECORDS):
            self.env.note_dependency(path)
        cards = "\n".join(map(card, RECORDS))
        html = f'<div id="records">{cards}</div><script src="../../_static/gallery.js"></script>'
        return [nodes.raw("", html, format="html")]


def copy_records(app: Any, failure: Exception | None) -> None:
    """Write each record beside the gallery, as CSV and as a script."""
    if failure or "docs/site/measurements" not in app.env.found_docs:
        return
    folder = Path(app.outdir) / "docs" / "site" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for path in RECORDS:
        shutil.copy(path, folder)
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
        script = f"showRecord({json.dumps(stem(path))}, {json.dumps(text)});\n"
        (folder / f"{stem(path)}.js").write_text(script, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("measurements", Measurements)
    app.connect("build-finished", copy_records)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
