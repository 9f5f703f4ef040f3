"""A submission's text and pictures on the pages of nbgrader's formgrader and of feedback."""

import base64
import io

import pytest

nbformat = pytest.importorskip("nbformat", reason="grading needs nbgrader")
pytest.importorskip("nbgrader", reason="grading needs nbgrader")


def test_wide_pictures_and_long_words_fit_the_page(browser):
    from nbconvert import HTMLExporter
    from PIL import Image

    from accelviz.course.autograde.execute import PlainText

    file = io.BytesIO()
    Image.new("RGB", (4000, 300)).save(file, "png")
    data = {"image/png": base64.b64encode(file.getvalue()).decode()}
    output = nbformat.v4.new_output("display_data", data)
    cells = [
        nbformat.v4.new_markdown_cell("x" * 15_000 + "\n- " + "y" * 900),
        nbformat.v4.new_code_cell("", outputs=[output]),
    ]
    notebook, _ = PlainText().preprocess(nbformat.v4.new_notebook(cells=cells), {})
    text, _ = HTMLExporter(template_name="classic").from_notebook_node(notebook)
    page = browser.new_page(viewport={"width": 1280, "height": 800}, java_script_enabled=False)
    page.set_content(text, wait_until="commit")
    picture = page.locator("img")
    picture.wait_for()
    assert 500 < picture.bounding_box()["width"] <= 1280
    assert page.locator("p").first.evaluate("element => element.scrollWidth") <= 1280
    page.close()
