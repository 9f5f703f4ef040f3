"""Formulas as SVG: of the right size, on the line of the text, and readable without eyes."""

import re
import xml.etree.ElementTree as ET

import pytest

from accelviz.course.site.formula import formula
from accelviz.errors import ArgumentError


def drawn(tex):
    svg = ET.fromstring(formula(tex))
    style = dict(re.findall(r"([a-z-]+): (-?[\d.]+)em", svg.get("style")))
    return svg, {name: float(value) for name, value in style.items()}


def test_the_tex_is_the_alt_text():
    svg, _ = drawn(r"a < b \cdot c")
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == r"a < b \cdot c"
    assert svg.get("fill") == "currentColor"


def test_size_and_line():
    _, flat = drawn("x")
    _, deep = drawn("x_{ij}")
    _, wide = drawn("x + x + x + x")
    assert flat["height"] == pytest.approx(0.5, abs=0.15)
    assert flat["vertical-align"] == pytest.approx(0, abs=0.03)
    assert deep["vertical-align"] < -0.1
    assert wide["width"] > 4 * flat["width"]


@pytest.mark.parametrize("tex", ["x", r"\frac{a}{b}", r"\sqrt[n]{r_1 \cdots r_n}", r"\sum_{i} j"])
def test_what_is_drawn_is_inside_of_its_frame(tex):
    svg, style = drawn(tex)
    left, top, width, height = map(float, svg.get("viewBox").split())
    (path,) = svg
    numbers = list(map(float, re.findall(r"-?[\d.]+", path.get("d"))))
    assert min(numbers[::2]) >= left - 2
    assert max(numbers[::2]) <= left + width + 2
    assert min(numbers[1::2]) >= top - 2
    assert max(numbers[1::2]) <= top + height + 2
    assert style["width"] / style["height"] == pytest.approx(width / height, rel=0.01)
    assert re.fullmatch(r"[MLQCZ\d. -]+", path.get("d"))


@pytest.mark.parametrize(
    ("tex", "same"),
    [(r"a \ge b", r"a \geq b"), (r"a\le b", r"a\leq b"), ("a\n +  b", "a + b")],
)
def test_tex_that_matplotlib_does_not_know(tex, same):
    assert drawn(tex)[0][0].get("d") == drawn(same)[0][0].get("d")


def test_what_only_looks_like_it_is_left_alone():
    assert drawn(r"\left( a \right)")[0][0].get("d")
    assert drawn(r"v \bmod w")[1]["width"] > drawn("v w")[1]["width"]
    assert drawn(r"a \tag{1}")[1]["width"] > drawn("a")[1]["width"]


@pytest.mark.parametrize("tex", [r"\nonsense", r"\frac{a}", "{", "a $ b"])
def test_what_cannot_be_drawn_is_an_error(tex):
    with pytest.raises(ArgumentError, match="Expected: TeX that Matplotlib knows"):
        formula(tex)
