"""Scales, short numbers and attributes that the views are drawn with."""

import json
import xml.etree.ElementTree as ET

import pytest

from accelviz.widgets import drawing
from accelviz.widgets.drawing import Axis


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis(0, 10, 0, 100), [0, 2, 4, 6, 8, 10]),
        (Axis(0, 1, 0, 100), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (Axis(0, 32, 0, 100), [0, 10, 20, 30]),
        (Axis(1, 1000, 0, 100, log=True), [1, 10, 100, 1000]),
        (Axis(0.7, 5, 0, 100, log=True), [1, 2, 4]),
        (Axis(1, 10**12, 0, 100, log=True), [1, 10**3, 10**6, 10**9, 10**12]),
    ],
)
def test_ticks_are_round_and_few(axis, ticks):
    assert axis.ticks() == pytest.approx(ticks)


def test_an_axis_goes_from_end_to_end():
    line, log = Axis(10, 20, 100, 0), Axis(1, 100, 0, 50, log=True)
    assert [line(each) for each in (10, 15, 20, 25, -5)] == [100, 50, 0, 0, 100]
    assert [log(each) for each in (1, 10, 100, 0, 1000)] == pytest.approx([0, 25, 50, 0, 50])
    assert Axis(3, 3, 7, 9)(3) == 7


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (950, "950"), (9999, "9,999"), (12_345, "12.3k"), (999_999, "1000k"),
     (2_927_963, "2.93M"), (1.5e9, "1.5G"), (0.25, "0.25"), (float("nan"), "not known")],
)  # fmt: skip
def test_short_numbers(value, written):
    assert drawing.short(value) == written


def test_attributes_survive_what_is_in_them():
    said = """a "quoted" <b> & 'this'"""
    text = drawing.rect(0, 0, 1, 1, "red", drawing.attributes(said, said, {"row": said}, [said]))
    found = ET.fromstring(text)
    assert found.get("data-key") == found.get("data-info") == said
    assert json.loads(found.get("data-pick")) == {"row": said}
    assert json.loads(found.get("data-scale")) == [said]
