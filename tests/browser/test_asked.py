"""Predictions, questions and stages on pages in the browser, by keyboard, and without scripts."""

import pytest

from accelviz.course import predict
from accelviz.widgets import ask, assets, stages

from .lab import artifacts

#: Predictions, answers entered, and verdicts.
JUDGED = [
    ({"form": "number", "answer": 12.5, "unit": "%", "within": 1.5}, number, verdict)
    for number, verdict in (
        (12.5, "Right."),
        (25, "Too high by a factor of 2."),
        (5, "Too low by a factor of 2.5."),
        (15, "Close: 1.2 times that."),
        (0, "Off by 12.5 %."),
        (-12.5, "Off by 25 %."),
    )
]
JUDGED += [
    ({"form": "order", "answer": ["a", "b", "c"]}, ["b", "a", "c"], "1 of 3 places agree."),
    ({"form": "drawn", "answer": [4, 2, 0]}, [4, 2, 0], "Right."),
    (
        {"form": "drawn", "answer": [4, 2, 0]},
        [2, 2, 2],
        "Your bars and the right ones have 50 % in common.",
    ),
]
JUDGED += [
    ({"form": "number", "answer": 16, "also": [24], "unit": "", "within": 1.5}, number, verdict)
    for number, verdict in (
        (16, "Right."),
        (24, "Right."),
        (30, "Close: 1.25 times that."),
        (8, "Too low by a factor of 2."),
        (-4, "Off by 20."),
    )
]
COUNT, SHARE = "How many sectors does the warp need?", "Which share is idle, in percent?"
#: Unit and question of a prediction, and texts with their numbers, or words of the reply.
TYPED = {
    ("", COUNT): {"12": 12, " 12.5 ": 12.5, "12.": 12, ".5": 0.5, "+3": 3, "-3": -3, "- 3": -3}
    | {"−3": -3, "1e-3": 1e-3, "1E3": 1000}
    | {"0,0625": 0.0625, ",5": 0.5, "12,5": 12.5, "1,5e3": 1500, "12,3456": 12.3456}
    | {"1/16": 0.0625, "1 / 16": 0.0625, "-1/4": -0.25, "½": 0.5, "1½": 1.5, "1 1/2": 1.5}
    | {"2^-10": 2**-10, "2**10": 1024, "2⁻¹⁰": 2**-10, "10²": 100}
    | {"1.5 x 10^6": 1.5e6, "1.5·10⁶": 1.5e6, "3*10**2": 300, "1/2.5": 0.4, "1.250": 1.25}
    | {"1 024": 1024, "1\u202f024": 1024, "1\xa0024,5": 1024.5, "1'024": 1024, "1_024": 1024}
    | {"1,024,000": 1_024_000, "1,024.5": 1024.5, "1.024,5": 1024.5, "1.024.000": 1_024_000}
    | {"2x": 2, "2 ×": 2, "2 times": 2, "2-fold": 2, "~5": 5, "≈ 5": 5, "about 5": 5}
    | {"(5)": 5, "(5/2) x": 2.5, "x2.5": 2.5, "× 2": 2, "6!": 6, "sectors: 6": 6, "s = 6": 6}
    | {"six": 6, "Six sectors": 6, "half": 0.5, "a third": 1 / 3, "2.5 times as fast": 2.5}
    | dict.fromkeys(("5 - 6", "5–7", "5 to 7", "5 or 6"), "These are two numbers. Expected: one.")
    | {"6 sectors": 6, "1 sector": 1, "1 Warp": 1, "6.25 %": 0.0625, "0,001": 0.001}
    | {"1,024": "can be 1024 or 1.024. Type", "12,500 sectors": "can be 12500 or 12.5. Type"}
    | dict.fromkeys(("3 cats", "3 ms", "2 %%"), "is not clear. Expected: the number alone.")
    | {"6 of 8": "6 of 8 can be 6 or 0.75. Type one", "two out of three": "can be 2 or 0.666667"}
    | {"two thirds": 2 / 3, "Three quarters": 0.75, "3 eighths": 0.375, "one-half": 0.5}
    | {"one and a half": 1.5, "2 and a quarter": 2.25, "a tenth": 0.1, "6 of 0": "no num"}
    | {"4 Sektoren": 4, "2 mal": 2, "2-fach": 2, "3 Prozent": 0.03, "3 Katzen": "not clear"}
    | dict.fromkeys(("", "many", "nan", "inf", "1 2", "1e999", "1/0", ".", "1,2,3"), "no num")
    | dict.fromkeys(("12 34", "1.2.3", "1,02,400", "-", "1e", "0x10"), ("no num", "not clear")),
    ("%", "How much?"): {"65 % of the time": 65, "2/3": "can be 0.666667 % or 66.6667 %"}
    | {"two thirds": 200 / 3, "half": 50, "a third of": "not clear", "12,5 Prozent": 12.5}
    | {"6 of 12": 50, "two of three": 200 / 3, "7 out of 8 warps": 87.5, "6 of 0": "no num"}
    | {"12 %": 12, "12%": 12, "12 percent": 12, "12,5 %": 12.5, "12": 12}
    | {"1/8 %": 0.125, "7/8": "can be 0.875 % or 87.5 %", "2x": "not clear", "3 ms": "not clear"}
    | {"0.647": "can be 0.647 % or 64.7 %", ",647": "can be 0.647 % or 64.7 %", "0.647 %": 0.647}
    | {"-.5": "can be -0.5 % or -50 %", "647e-3": "can be 0.647 % or", "0": 0, "1": 1, "1.0": 1},
    ("", SHARE): {"88 %": 88, "88": 88, "7/8": "can be 0.875 % or 87.5 %"}
    | {"0.88": "can be 0.88 % or 88 %", "0,88 %": 0.88},
    ("", "By what factor?"): {"0.647": 0.647},
    ("us", "How long?"): {"3.4 µs": 3.4, "3.4 μs": 3.4, "3,4us": 3.4, "0.2 ms": 200, "200 ns": 0.2}
    | {"3.4 usec": 3.4, "3.4 microsec": 3.4, "1e-3 sec": 1000, "1 millisecond": 1000}
    | {"3,4 Mikrosekunden": 3.4, "2 Millisekunden": 2000, "half": 0.5}
    | {"3.4 microseconds": 3.4, "5 %": "Expected: a number in us", "2 GB": "not clear"},
    ("times", "How often?"): {"2.4x": 2.4, "2.4 times": 2.4, "2,4": 2.4},
}


@pytest.fixture
def script(browser):
    """Return a page with the script of predictions."""
    page = browser.new_page()
    page.add_script_tag(content=assets.script("asking"))
    yield page
    page.close()


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


@pytest.mark.long
def test_how_good_a_prediction_was(script):
    said = "(cases) => cases.map((case_) => accelvizPage.verdict(...case_))"
    cases = [[{"also": []} | data, entered] for data, entered, _ in JUDGED]
    verdicts = script.evaluate(said, cases)
    assert verdicts == [verdict for *_, verdict in JUDGED]


def test_numbers_are_read_as_people_type_them(script):
    cases = [(text, *asked) for asked, texts in TYPED.items() for text in texts]
    assert len(cases) > 90
    parsed = script.evaluate("(all) => all.map((each) => accelvizPage.parseNumber(...each))", cases)
    for (text, *asked), number in zip(cases, parsed, strict=True):
        expected = TYPED[tuple(asked)][text]
        if isinstance(expected, int | float):
            assert number == pytest.approx(expected, rel=1e-12), (text, number)
        else:
            wanted = (expected,) if isinstance(expected, str) else expected
            assert isinstance(number, str), (text, number)
            assert any(words in number for words in wanted), (text, number)


def test_equal_choices_are_right_alike(opened):
    question = "Which is fastest?"
    asked = predict(question, {"a", "b"}, choices=["a", "b", "c"], because="Equal.")
    page = opened(asked)
    page.get_by_role("button", name="b", exact=True).click()
    assert "You chose 'b', which is right, because:" in page.locator(".av-shown").inner_text()
    page = opened(predict("Another?", {"a", "b"}, choices=["a", "b", "c"]))
    page.get_by_role("button", name="c", exact=True).click()
    assert "The answer is 'a' or 'b'." in page.locator(".av-shown").inner_text()
    page = opened(predict("How many?", {24, 16}))
    page.locator("input").fill("24")
    page.keyboard.press("Enter")
    assert "You said 24. It is 16 or 24. Right." in page.locator(".av-shown").inner_text()


def test_predictions_take_keys_and_hide_the_answer_until_then(opened):
    page = opened(
        predict("How many?", 1234, because="So it is."),
        predict("Which?", "this", choices=["that", "this"], because="Look."),
        predict("Sort.", ["a", "b", "c"], choices=["b", "c", "a"]),
        predict("Draw.", [3, 0, 5], draw="warp", unit="nonzeros"),
    )
    press, boxes = page.keyboard.press, page.locator(".av-asked")
    for hidden in ("1,234", "1234", "So it is."):
        assert hidden not in "".join(boxes.evaluate_all("all => all.map((b) => b.innerHTML)"))
    boxes.nth(0).locator("input").focus()
    for text, reply in (("many", "Expected: a number"), ("1,234", "1234 or 1.234. Type one")):
        press("Control+a")
        page.keyboard.type(text)
        press("Enter")
        assert reply in boxes.nth(0).inner_text()
    press("Control+a")
    page.keyboard.type("617")
    press("Tab")  # to the button
    press("Enter")
    assert "You said 617. It is 1,234. Too low by a factor of 2." in boxes.nth(0).inner_text()
    assert "So it is." in boxes.nth(0).inner_text()
    press("Tab")  # continues from the answer
    assert page.evaluate("document.activeElement.dataset.control") == "choice 0"
    boxes.nth(1).get_by_text("that").focus()
    press("Enter")
    chosen = " ".join(boxes.nth(1).inner_text().split())
    assert "You chose 'that'. The answer is 'this', because: Look." in chosen
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
    box = page.get_by_label("max_block_warps, as a number")
    box.fill("9")
    box.press("Enter")
    assert "max_block_warps: 9 is not one of the values here, so the nearest, 12" in (
        page.inner_text("body")
    )
    assert box.input_value() == "12"
    page.locator("[data-control=max_block_warps]").press("ArrowLeft")
    assert "is not one of the values" not in page.inner_text("body")
    page.locator("[data-control=max_block_warps]").press("ArrowRight")
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
    (tmp_path / "a.html").write_text(asked.html(), "utf-8")
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
