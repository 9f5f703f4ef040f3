"""Formulas as SVG, for pages that are read where no script can be loaded to set them."""

from __future__ import annotations

import re
from html import escape

from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextToPath

from accelviz.errors import ArgumentError

#: TeX that MathJax knows and Matplotlib does not, and what comes close.
_SYNONYMS = {
    r"\\ge(?![a-zA-Z])": r"\\geq",
    r"\\le(?![a-zA-Z])": r"\\leq",
    r"\\bmod(?![a-zA-Z])": r"\\ \\mathrm{mod}\\ ",
    r"\\tag\{([^{}]*)\}": r"\\qquad(\1)",
}
#: Letters of SVG for a path's codes.
_CODES = (Path.MOVETO, Path.LINETO, Path.CURVE3, Path.CURVE4, Path.CLOSEPOLY)
_VERBS = dict(zip(map(int, _CODES), "MLQCZ", strict=True))
_SIZE = 100.0  # of the letters while they are laid out
_FONT = FontProperties(size=_SIZE, math_fontfamily="cm")
#: Computer Modern is a small letter for its size beside a page's own.
_EM = 1.15


def formula(tex: str) -> str:
    r"""Set a formula.

    Parameters
    ----------
    tex : str
        What stands between dollar signs, such as `Y = A X`; the TeX that Matplotlib understands.

    Returns
    -------
    str
        An `<svg>` with the height of the text around it, in its colour and on its line; the TeX is
        its alt text.

    Raises
    ------
    ArgumentError
        If Matplotlib does not understand it.
    """
    known = " ".join(tex.split())
    for pattern, synonym in _SYNONYMS.items():
        known = re.sub(pattern, synonym, known)
    layout = TextToPath()
    try:
        width, height, depth = layout.get_text_width_height_descent(f"${known}$", _FONT, True)
        points, codes = layout.get_text_path(_FONT, f"${known}$", ismath=True)
    except ValueError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ArgumentError("tex", reason, "TeX that Matplotlib knows") from error
    em = _EM / _SIZE
    return (
        f'<svg class="formula" role="img" aria-label="{escape(tex)}" '
        f'style="width: {width * em:.3f}em; height: {height * em:.3f}em; '
        f'vertical-align: {-depth * em:.3f}em" fill="currentColor" overflow="visible" '
        f'viewBox="0 {depth - height:.1f} {width:.1f} {height:.1f}">'
        f'<path d="{_drawn(Path(points, codes))}"/></svg>'
    )


def _drawn(path: Path) -> str:
    """Write a path as SVG does, in which y grows downwards."""
    words = []
    for points, code in path.iter_segments(simplify=False):
        verb = _VERBS[int(code)]
        pairs = [] if verb == "Z" else zip(points[::2], points[1::2], strict=True)
        words += [verb, *(f"{x:.1f} {-y:.1f}" for x, y in pairs)]
    return " ".join(words)
