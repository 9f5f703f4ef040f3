"""Predictions, questions and stages on pages in the browser, by keyboard, and without scripts."""

import nbformat
import pytest

from accelviz.course import predict
from accelviz.course.pages import write
from accelviz.widgets import ask, assets, stages

from .lab import artifacts

#: Predictions, answers entered, and verdicts; None for text that is no number.
JUDGED = [
    ({"form": "number", "answer": 12.5, "unit": "%", "within": 1.5}, text, verdict)
    for text, verdict in (
        ("12.5", "Right."),
        ("12.5 %", "Right."),
        ("25%", "Too high by a factor of 2."),
        ("1,250", "Too high by a factor of 100."),
        ("5", "Too low by a factor of 2.5."),
        ("15", "Close: 1.2 times that."),
        ("0", "Off by 12.5 %."),
        ("-12.5", "Off by 25 %."),
        *((text, None) for text in ("", "many", "nan", "inf", "1 2", "0x", "1e999")),
    )
]
JUDGED += [
    ({"form": "choice", "answer": "b"}, "a", "Not so."),
    ({"form": "order", "answer": ["a", "b", "c"]}, ["b", "a", "c"], "1 of 3 places agree."),
    ({"form": "drawn", "answer": [4, 2, 0]}, [4, 2, 0], "Right."),
    (
        {"form": "drawn", "answer": [4, 2, 0]},
        [2, 2, 2],
        "Your bars and the right ones have 50 % in common.",
    ),
]
JUDGE = """(cases) => {
  const { parseNumber, verdict } = accelvizPage;
  return cases.map(([data, entered]) => {
    const answer = data.form === "number" ? parseNumber(entered, data.unit) : entered;
    return Number.isNaN(answer) ? null : verdict(data, answer);
  });
}"""


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens a page of widgets; at the end, no page has logged an error."""
    pages = []

    def open_(*widgets, **options):
        path = tmp_path / "asked.html"
        head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>asked</title>'
        path.write_text(head + "".join(widget.html() for widget in widgets), encoding="utf-8")
        page = browser.new_page(viewport={"width": 480, "height": 900}, **options)
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.goto(path.as_uri())
        page.locator(".av-asked").nth(len(widgets) - 1).wait_for()
        pages.append(page)
        return page

    yield open_
    for page in pages:
        assert page.complaints == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 480
        page.close()


def test_how_good_a_prediction_was(browser):
    page = browser.new_page()
    page.add_script_tag(content=assets.script("asking"))
    verdicts = page.evaluate(JUDGE, [[data, entered] for data, entered, _ in JUDGED])
    assert verdicts == [verdict for *_, verdict in JUDGED]
    page.close()


def test_predictions_take_keys_and_hide_the_answer_until_then(opened):
    page = opened(
        predict("How many?", 1234, because="So it is."),
        predict("Which?", "this", choices=["that", "this"]),
        predict("Sort.", ["a", "b", "c"], choices=["b", "c", "a"]),
        predict("Draw.", [3, 0, 5], draw="warp", unit="nonzeros"),
    )
    press, boxes = page.keyboard.press, page.locator(".av-asked")
    for hidden in ("1,234", "1234", "So it is."):
        assert hidden not in "".join(boxes.evaluate_all("all => all.map((b) => b.innerHTML)"))
    boxes.nth(0).locator("input").focus()
    page.keyboard.type("many")
    press("Enter")
    assert "Expected: a number" in boxes.nth(0).inner_text()
    press("Control+a")
    page.keyboard.type("617")
    press("Tab")  # to the button
    press("Enter")
    assert "You said 617. It is 1,234. Too low by a factor of 2." in boxes.nth(0).inner_text()
    assert "So it is." in boxes.nth(0).inner_text()
    press("Tab")  # continues from the answer
    assert page.evaluate("document.activeElement.dataset.control") == "choice 0"
    press("Tab")
    press("Enter")
    assert "Right." in boxes.nth(1).inner_text()
    buttons = boxes.nth(2).locator("button")
    for i in (2, 2, 2):  # the second click removes the choice
        buttons.nth(i).click()
    assert buttons.all_inner_texts() == ["b", "c", "1. a"]
    buttons.nth(0).click()
    assert "You said 1. a, 2. b, 3. c." in boxes.nth(2).inner_text()
    bars = boxes.nth(3).get_by_role("slider")
    bars.focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight", "PageUp"):
        press(key)
    assert bars.get_attribute("aria-valuetext") == "warp 1: 1 nonzeros"
    box = bars.bounding_box()
    page.mouse.move(box["x"] + 0.85 * box["width"], box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.85 * box["width"], box["y"] + 93)  # the middle: 4 of 8
    page.mouse.up()
    assert bars.get_attribute("aria-valuetext") == "warp 2: 4 nonzeros"
    page.screenshot(path=artifacts() / "asked.png", full_page=True)
    boxes.nth(3).get_by_role("button").click()
    assert "have 77 % in common" in boxes.nth(3).inner_text()
    page.reload()  # like a cell that runs again
    assert "You said 617" in boxes.nth(0).inner_text()
    assert "have 77 % in common" in boxes.nth(3).inner_text()


def test_a_question_is_locked_until_it_may_be_seen(opened):
    asked = ask("cora", "idle_share", guesses=2, max_block_warps=[2, 4, 12], max_warp_nzs=[8, 32],
                n_cols=32, explanation="Because of <this>.")  # fmt: skip
    values = asked.content["values"]
    page = opened(asked)
    guess, reveal = page.locator("[data-control=guess]"), page.locator("[data-control=reveal]")
    cells = page.locator("[data-say]")
    assert {cell.get_attribute("data-say").split(": ")[1] for cell in cells.all()} == {
        "guess first."
    }
    assert reveal.is_disabled()
    guess.click()  # 4 x 32, in the middle
    assert guess.is_disabled()  # the same one again
    rank = 1 + (values < values[3]).sum()
    assert f"4 × 32: {100 * values[3]:.2f} %, place {rank} of 6." in page.inner_text("body")
    page.locator("[data-control=max_block_warps]").focus()
    page.keyboard.press("ArrowRight")
    guess.click()
    assert guess.is_disabled()
    assert "Because" not in page.inner_text("body")
    reveal.click()
    text = page.inner_text("body")
    best = ["2 × 8", "2 × 32", "4 × 8", "4 × 32", "12 × 8", "12 × 32"][values.argmin()]
    assert f"Best is {100 * values.min():.2f} %, at {best} (framed)" in text
    assert "Because of <this>." in text
    marks = page.locator("svg [data-say]")
    assert marks.nth(values.argmin()).get_attribute("fill") == "#c6d6f6"
    assert marks.nth(values.argmax()).get_attribute("fill") == "#743206"
    page.reload()
    assert "Because of <this>." in page.inner_text("body")


def test_a_page_without_a_script_folds_the_answer_away(browser, tmp_path):
    asked = predict("How much?", 5, because="Because.")
    outputs = [nbformat.v4.new_output("display_data", data={"text/html": asked.html()})]
    cell = nbformat.v4.new_code_cell("", outputs=outputs)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "a.ipynb")
    write(tmp_path, tmp_path, run=False)
    page = browser.new_page(java_script_enabled=False)
    page.goto((tmp_path / "a.html").as_uri())
    assert page.get_by_text("Because.").is_hidden()
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    page.get_by_text("Because.").wait_for()
    page.close()


def test_convolutions_are_moved_between_stages(opened):
    page = opened(stages("VGG16"))
    control = lambda name: page.locator(f'[data-control="{name}"]')  # noqa: E731
    status = page.locator("[role=status]")
    assert status.inner_text().startswith("Gain 4.94 (4.94 at the start), 14.73 M parameters")
    assert control("more 0").is_disabled()
    control("less 3").focus()
    page.keyboard.press("Enter")
    assert "1 unit in your hand" in status.inner_text()
    control("more 0").click()  # as the organizer's first step
    assert "Gain 5.83" in status.inner_text()
    for _ in range(4):
        control("step").click()
    assert control("step").is_disabled()
    assert "Gain 7.43" in status.inner_text()
    assert "5.10 M parameters (−65 %), 370 MFLOPs (+18 %)" in status.inner_text()
    page.reload()  # answers are stored while the tab is open
    page.locator(".av-asked").wait_for()
    assert "Gain 7.43" in status.inner_text()
    control("back").click()
    assert "14.73 M" in status.inner_text()
