"""Predictions made with real keys: in JupyterLab, and on a page with neither kernel nor script."""

import nbformat

from accelviz.course import predict
from accelviz.course.site.rendering import Renderer
from accelviz.course.site.sources import Source

CELLS = (
    "from accelviz.course import predict\npredict('How many?', 1234, because='So it is.')",
    "predict('Which?', 'this', choices=['that', 'this'])",
    "predict('Sort.', ['a', 'b', 'c'], choices=['b', 'c', 'a'])",
)


def test_predictions_take_keys_and_hide_the_answer_until_then(open_notebook):
    notebook = open_notebook(*CELLS).run_all()
    page, press = notebook.page, notebook.page.keyboard.press
    page.locator("[data-control='choice 2']").wait_for()
    outputs = page.locator(".jp-OutputArea").all()
    assert not any("1,234" in each.inner_html() for each in outputs)
    assert not any("So it is." in each.inner_html() for each in outputs)
    page.locator("[data-control=typed]").focus()
    page.keyboard.type("617")
    press("Tab")  # to the button
    press("Enter")
    page.get_by_text("Too low by a factor of 2.").wait_for()
    page.locator("[data-view=answer]").get_by_text("So it is.").wait_for()
    press("Tab")  # goes on from where the answer now stands
    page.wait_for_function("document.activeElement.dataset.control === 'choice 0'")
    press("Tab")
    press("Enter")
    page.get_by_text("Right.").first.wait_for()
    page.locator("[data-control='choice 2']").focus()
    press("Enter")
    page.get_by_text("1. a").wait_for()
    press("Shift+Tab")
    press("Shift+Tab")
    press("Space")
    page.get_by_text("Right.").nth(1).wait_for()
    notebook.run_all()
    page.get_by_text("You said 617").wait_for()
    assert notebook.complaints() == []


def test_a_page_without_a_script_opens_the_answer_after_an_entry(browser, tmp_path):
    asked = [
        predict("How much?", 5, because="Because."),
        predict("Which one?", "b", choices=["a", "b"]),
        predict("In which order?", ["a", "b"], choices=["b", "a"]),
    ]
    outputs = [
        nbformat.v4.new_output("display_data", data={"text/html": each.html()}) for each in asked
    ]
    cell = nbformat.v4.new_code_cell("", outputs=outputs)
    source = Source(tmp_path / "a.ipynb", "a.html", nbformat.v4.new_notebook(cells=[cell]))
    (tmp_path / "a.html").write_text(Renderer({}).page(source), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "a.html").as_uri())
    summaries = page.locator("summary")
    assert [each.is_visible() for each in summaries.all()] == [False] * 3
    page.locator("input").first.focus()
    page.keyboard.type("4")
    page.keyboard.press("Enter")  # sends nothing anywhere
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Because.").wait_for()
    page.locator("[type=radio]").first.focus()
    page.keyboard.press("Space")
    assert [each.is_visible() for each in summaries.all()] == [True, True, False]
    for select in page.locator("select").all():
        select.press("a")
    assert summaries.nth(2).is_visible()
    context.close()
