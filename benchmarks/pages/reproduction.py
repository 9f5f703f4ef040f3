"""Renew the marked sections of docs/reproduction.md and the pictures beside it.

Figure 2 and Equation 1 follow from the degrees; the other figures read what measure.py recorded in
benchmarks/results, or in the folder that is named. A section without results stays as it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import equation1
import figure2
import figure5
import figure6
import figures7_8
from graphs import renewed
from paper import FIGURES, ROOT

from accelviz.files import results_directory

#: Section to what draws it, and the recorded results it needs.
SECTIONS: dict[str, tuple[Callable[..., str], str | None]] = {
    "figure-2": (figure2.section, None),
    "equation-1": (equation1.section, None),
    "figure-5": (figure5.section, "strategies-h200"),
    "figure-6": (figure6.section, "columns-h200"),
    "figures-7-8": (figures7_8.section, "ablations-h200"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "reproduction.md")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="folder of the pictures")
    parser.add_argument("--results", type=Path, default=results_directory(), help="folder of CSVs")
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    options = parser.parse_args()

    text = options.document.read_text("utf-8")
    for name in options.sections:
        section, needed = SECTIONS[name]
        if needed is None:
            text = renewed(text, name, section(figures=options.figures))
            continue
        found = sorted(options.results.glob(f"{needed}.csv*"))
        if found:
            text = renewed(text, name, section(str(found[0]), figures=options.figures))
        else:
            print(f"{name} stays as it is: there is no {options.results / needed}.csv")
    options.document.write_text(text, "utf-8")
    print(f"renewed {options.document}")


if __name__ == "__main__":
    main()
