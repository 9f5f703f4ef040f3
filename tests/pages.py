"""Shared by the tests of the explorer: its views are text, and are read without a browser."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

import accelviz
from accelviz.executors import find_executor
from accelviz.widgets import charts, clocks, close_ups
from tests.graphs import MADE

needs_compiler = pytest.mark.skipif(
    find_executor("emulator").why_not() is not None, reason="needs a C++ compiler"
)
WARP_LEVEL = "accel_gcn, partition=warp"
VIEWS = {
    "degrees": charts.degrees,
    "loads": charts.loads,
    "statistics": charts.statistics,
    "map": charts.block_map,
    "block": close_ups.block,
    "row": close_ups.row,
    "times": clocks.times,
    "metadata": close_ups.metadata,
    "trace": close_ups.trace,
}
ALL = {**VIEWS, "headline": charts.headline}


class Checked(HTMLParser):
    """Collects the cells of the tables; what is opened has to be closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "style", "iframe", "img")
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        pass  # of SVG

    def handle_endtag(self, tag):
        if tag == "br":
            return
        while self.open[-1] == "br":
            self.open.pop()
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"th", "td"} & {*self.open}:
            self.rows[-1][-1] += data


def table(text):
    """The cells of a view's table, line by line, the header first."""
    return Checked(text).rows


def pictures(text):
    """The SVGs of a view; each is well-formed and draws inside of its frame."""
    found = [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    for svg in found:
        assert svg.get("aria-label")
        left, top, width, height = map(float, svg.get("viewBox").split())
        assert (left, top) == (0, 0)
        for each in parts(svg, "rect"):
            x, y = float(each.get("x")), float(each.get("y"))
            right, bottom = x + float(each.get("width")), y + float(each.get("height"))
            assert x >= -0.1
            assert y >= -0.1
            assert right <= width + 0.1, each.attrib
            assert bottom <= height + 0.1, each.attrib
        for each in parts(svg, "path"):
            assert re.fullmatch(r"M[-\d. LMhvlz]+", each.get("d")), each.get("d")
    return found


def picture(text):
    (found,) = pictures(text)
    return found


def parts(svg, tag):
    return svg.findall(f"{{http://www.w3.org/2000/svg}}{tag}")


def told(svg, tag="rect"):
    """Elements that say something when they are pointed at."""
    return [each for each in parts(svg, tag) if each.get("data-info")]


def number(text):
    return int(text.replace(",", ""))


def holds_row(state):
    """Whether the block shown has some of the row that is followed."""
    return bool((state.work.row == state.place.place).any())


def work(found):
    """What a summary says of the work, whether it was counted or comes from a closed form."""
    loads = found.loads.nonzeros.tolist(), found.loads.warps.tolist(), found.loads.idle
    return found.blocks, found.warps, found.slots, *loads


def opened(name):
    """A graph of `tests.graphs`, made up or bundled."""
    return MADE[name]() if name in MADE else accelviz.load_graph(name)


#: A name that would be code if it were not escaped.
HOSTILE = """<script>alert("1")</script>&'<b>"""
