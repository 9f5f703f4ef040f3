"""The panel around the views, as its script talks to it, without a browser."""

import html
import json

import pytest

import accelviz
from accelviz.errors import AccelvizError
from accelviz.graph import Graph
from accelviz.widgets import charts, close_ups, entry
from tests.graphs import MADE
from tests.pages import (
    HOSTILE,
    VIEWS,
    Checked,
    needs_compiler,
    picture,
    pictures,
    told,
)
from tests.test_lookup import Dealt


@pytest.fixture
def explorer():
    pytest.importorskip("anywidget")
    pytest.importorskip("ipywidgets")
    return entry.explore("cora")


def ask(panel, _count=[0], **change):  # noqa: B006 - counts the requests of all tests
    """Ask as the script does, and return the page that answers."""
    _count[0] += 1
    name = f"x:{_count[0]}"
    panel.request = {"number": name, "change": change}
    assert panel.page["number"] == name
    json.dumps(panel.page)  # or it would not reach the script
    return panel.page


def view_of(page, name):
    (found,) = [each for each in page["views"] if each["name"] == name]
    return found["html"]


def control_of(page, name):
    (found,) = [each for each in page["controls"] if each["name"] == name]
    return found


def test_a_request_is_answered_by_its_number(explorer):
    assert explorer.page["number"] == 0
    json.dumps(explorer.page)
    assert [each["name"] for each in explorer.page["views"]] == list(VIEWS)
    page = ask(explorer, max_block_warps=4, n_cols=32)
    assert (page["message"], page["details"]) == ("", "")
    assert explorer.state.settings.given == {"max_block_warps": 4}
    assert control_of(page, "max_block_warps")["value"] == 4
    assert control_of(page, "n_cols")["value"] == 32
    for name, view in VIEWS.items():
        assert view_of(page, name) == view(explorer.state)
    assert page["title"] == charts.headline(explorer.state)
    blocks = accelviz.plan("cora", n_cols=32, max_block_warps=4).launch.n_blocks
    assert control_of(page, "block")["last"] == blocks - 1
    assert ask(explorer)["message"] == ""


def test_controls_listen_to_what_is_chosen(explorer):
    page = ask(explorer, first="cusparse", second="graphblast")
    enabled = {each["name"]: each["enabled"] for each in page["controls"]}
    assert {name for name, on in enabled.items() if not on} == {"block", "trace", "request"}
    assert "block_warps" in enabled  # the second's
    assert not {"max_block_warps", "max_warp_nzs"} & {*enabled}  # nobody's
    page = ask(explorer, first="gnnadvisor", block_warps=None)
    assert [each["name"] for each in page["controls"][3:6]] == ["ngs", "dw", "block_warps"]
    assert control_of(page, "dw")["values"][:2] == [None, 1]  # a rule chooses
    assert control_of(page, "dw")["title"] == "lanes that walk the columns"
    assert control_of(page, "block_warps")["value"] is None
    page = ask(explorer, first="cusparse", second="accel_gcn", max_warp_nzs=100, n_cols=5)
    for name, value in (("max_warp_nzs", 100), ("n_cols", 5)):
        control = control_of(page, name)
        assert control["enabled"]
        assert control["value"] == value
        assert control["values"] == sorted(control["values"])
        assert value in control["values"]
    assert control_of(page, "graph")["values"][0] == "cora"


def test_a_bar_of_degrees_is_a_change(explorer):
    page = ask(explorer, degree=[160, 170])
    assert explorer.state.graph.degrees[explorer.state.settings.row] == 168
    assert "degree 168" in view_of(page, "row")
    for bar in told(picture(view_of(page, "degrees"))):
        page = ask(explorer, **json.loads(bar.get("data-pick")))
        assert page["message"] == ""
    assert ask(explorer, degree=[100, 150])["message"].startswith("degree: no row has 100 to 150")


def test_what_cannot_be_is_said_and_nothing_else_changes(explorer):
    before = ask(explorer, max_block_warps=4)
    page = ask(explorer, max_block_warps=99)
    assert page["message"].startswith("max_block_warps: got 99. Expected: 1 to 32")
    assert page["details"] == ""
    page = ask(explorer, row=10**9)
    assert page["message"] == "row: got 1000000000. Expected: 0 to 2707."
    for key in ("title", "controls", "views"):
        assert page[key] == before[key]
    assert ask(explorer, max_block_warps=5)["message"] == ""


def test_what_fails_is_said_with_its_traceback_and_the_next_request_works(explorer, monkeypatch):
    before = explorer.page

    def broken(state):
        raise ZeroDivisionError("no map today")

    with monkeypatch.context() as patch:
        patch.setattr(charts, "block_map", broken)
        page = ask(explorer, max_block_warps=3)
    assert page["message"] == "Something failed: ZeroDivisionError: no map today"
    assert "in broken" in page["details"]
    assert page["views"] == before["views"]
    page = ask(explorer, max_warp_nzs=8)
    assert (page["message"], page["details"]) == ("", "")
    assert "3 x 8" in page["title"]
    with monkeypatch.context() as patch:
        patch.setattr(explorer.state, "change", broken)
        page = ask(explorer, max_block_warps=5)
    assert page["message"].startswith("Something failed: TypeError")  # it takes no such argument
    assert "in _wanted" in page["details"]
    assert control_of(page, "max_block_warps")["value"] == 3
    assert ask(explorer, max_block_warps=5)["message"] == ""


def test_it_is_changed_from_python_too(explorer):
    ask(explorer, max_block_warps=99)
    assert explorer.page["message"]
    explorer.set(max_block_warps=6, row=3)
    assert explorer.page["message"] == ""
    assert control_of(explorer.page, "max_block_warps")["value"] == 6
    assert view_of(explorer.page, "row") == close_ups.row(explorer.state)
    with pytest.raises(AccelvizError, match="max_block_warps: got 99"):
        explorer.set(max_block_warps=99)


@needs_compiler
def test_a_block_is_traced_and_stepped_through(explorer):
    page = ask(explorer, row=0, trace=True)
    assert page["message"] == ""
    assert "request 1 of " in view_of(page, "trace")
    steps = control_of(page, "request")
    assert steps["enabled"]
    assert steps["last"] == len(explorer.state.traced.steps) - 1 > 5
    assert "request 5 of " in view_of(ask(explorer, request=4), "trace")
    page = ask(explorer, request=10**6)
    assert control_of(page, "request")["value"] == steps["last"]
    page = ask(explorer, n_cols=32)
    assert "Press" in view_of(page, "trace")
    assert not control_of(page, "request")["enabled"]
    assert ask(explorer, request=3)["message"] == ""  # late, and of no use any more


def test_a_page_without_a_kernel_has_all_views(explorer):
    text = explorer.html()
    assert "<script" not in text
    for each in explorer.page["views"]:
        assert each["html"] in text
        assert f"<h4>{html.escape(each['title'])}</h4>" in text
    assert explorer.page["title"] in text
    body = text.partition("</style>")[2]
    Checked(body)
    pictures(body)
    bundle = explorer._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/html"] == text
    assert "application/vnd.jupyter.widget-view+json" in data


def test_names_in_a_page_are_no_code():
    pytest.importorskip("anywidget")
    graph = MADE["wide"]()
    named = Graph(graph.row_pointers, graph.column_indices, graph.values, graph.shape, HOSTILE)
    panel = entry.explore(named)
    assert "<script" not in panel.html()
    assert control_of(panel.page, "graph")["value"] == HOSTILE


def test_own_strategies_and_settings_reach_the_panel():
    pytest.importorskip("anywidget")
    panel = entry.explore(MADE["wide"](), [Dealt()], n_cols=8, max_block_warps=2)
    assert control_of(panel.page, "first")["value"] == "dealt"
    assert control_of(panel.page, "first")["values"][0] == "dealt"
    assert not control_of(panel.page, "trace")["enabled"]  # it has no kernel
    assert control_of(panel.page, "n_cols")["value"] == 8
    assert control_of(panel.page, "max_block_warps")["value"] == 2
    with pytest.raises(AccelvizError, match="colour: there is no such setting"):
        entry.explore("cora", colour="red")
