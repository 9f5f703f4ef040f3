"""Regenerate the marked sections of documents in docs/, and their pictures, from recorded results.

python -m benchmarks.pages                  # all except graphs, which generates every graph again
python -m benchmarks.pages performance      # docs/performance.md only
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from accelviz.files import results_directory
from benchmarks.pages.document import ROOT, Page, Results

#: Modules of this folder with a list `PAGES`. A document may have sections from several modules.
MODULES = (
    *("accel_gcn", "bits", "checkers", "convolution", "fusegnn", "graphs", "many_gpus"),
    *("peers", "performance", "sddmm", "sources", "tensor_cores", "training"),
)


def pages() -> dict[str, list[Page]]:
    """Return the pages by the name of their document, without ".md"."""
    documents: dict[str, list[Page]] = {}
    for module in MODULES:
        for page in import_module(f"benchmarks.pages.{module}").PAGES:
            documents.setdefault(page.document.removesuffix(".md"), []).append(page)
    return documents


def main(arguments: list[str] | None = None) -> None:
    documents = pages()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", nargs="*", metavar="DOCUMENT", help=", ".join(documents))
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the documents")
    parser.add_argument("--results", type=Path, default=results_directory(), help="folder of CSVs")
    options = parser.parse_args(arguments)
    results = Results(options.results)
    for name in options.documents or [name for name in documents if name != "graphs"]:
        if name not in documents:
            parser.error(f"no document {name!r}; choose from {', '.join(documents)}")
        path = options.docs / f"{name}.md"
        text = path.read_text("utf-8")
        for page in documents[name]:
            text = page.renew(results, text, options.docs)
        path.write_text(text, "utf-8")
        print(f"renewed {path}")


if __name__ == "__main__":
    main()
