"""The saved page in Firefox: story, controls and pictures, with real clicks and keys."""

import pytest

import accelviz

from .firefox import Firefox, find_firefox
from .saved import FAULTS

ARROW_LEFT = "\ue012"


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    path = find_firefox()
    if path is None:
        pytest.skip("a test in Firefox needs Firefox")
    running = Firefox(path, tmp_path_factory.mktemp("firefox"))
    yield running
    running.close()


@pytest.mark.long
@pytest.mark.parametrize(("width", "height"), [(500, 900), (1180, 900)])
def test_the_page_works_in_firefox(firefox, tmp_path, width, height):
    path = accelviz.explore("cora").save(tmp_path / "page.html", trace=False)
    firefox.ask("SetWindowRect", width=width, height=height)
    firefox.ask("Navigate", url=path.as_uri())
    firefox.run("localStorage.clear()")
    firefox.ask("Refresh")
    firefox.wait("Boolean(document.querySelector('.av-panel[data-drawn]'))")
    firefox.run("window.faults = [], addEventListener('error', (e) => faults.push(e.message))")
    text = "document.querySelector('.av-story-text').textContent"
    share = "document.querySelector('.av-of-side').textContent"
    seen = []
    for step in range(5):
        firefox.click(f"[data-control='step {step}']")
        firefox.wait("!document.querySelector('.av-zoomed')")
        seen.append(firefox.run(text))
        assert firefox.run(f"({FAULTS})()") == []
    assert len(set(seen)) == 5
    # A key on the story's slider, whose change the headline has.
    table = accelviz.sweep("cora", max_block_warps=[12, 11]).idle_share
    before, after = (f"{100 * one:.1f} % of warp time idle" for one in table)
    assert before in firefox.run(share)
    firefox.type("[data-control='story max_block_warps']", ARROW_LEFT)
    firefox.wait(f"{share}.includes('{after}')")
    for group in ("product", "balance", "numbers", "play"):
        firefox.click(f"[data-group={group}]")
        firefox.wait(f"document.querySelector('.av-panel').dataset.shown === '{group}'")
        firefox.run("new Promise((done) => setTimeout(done, 300))")
        assert firefox.run(f"({FAULTS})()") == []
    firefox.click("[data-group=numbers]")
    cell = "document.querySelector('[data-statistic=idle_share] td').textContent"
    assert firefox.wait(cell) == f"{table[1]:.2%}"
    assert firefox.run("faults") == []
