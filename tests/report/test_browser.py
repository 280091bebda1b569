"""Pages in a real browser, where there is one: they open quietly, obey the keyboard and fit their window."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from regnet.report.cohort_page import Entry, cohort_page
from regnet.report.pair_page import pair_page

from .chromium import PROGRAM, Browser
from .pairs import registration

pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A page of a pair, and an index."""
    (tmp_path / "pair.html").write_text(pair_page(registration(), {}, "index.html"), encoding="utf-8")
    entries = [
        Entry("ann", "done", 12.0, link="pair.html", figures={"dice": 0.8, "sdlogj": 0.2}),
        Entry("bob", "failed", 1.0, error="no image"),
        Entry("eve", "done", 9.0, figures={"dice": 0.9, "sdlogj": 0.1}),
    ]
    (tmp_path / "index.html").write_text(cohort_page("study", entries, [], {}), encoding="utf-8")
    return tmp_path


def quiet(browser: Browser) -> bool:
    return not browser.said and not browser.asked


@pytest.mark.parametrize("width", [1280, 700])
@pytest.mark.parametrize("name", ["pair.html", "index.html"])
def test_a_page_fits_its_window_and_says_nothing_on_the_console(
    browser: Browser, pages: Path, name: str, width: int
) -> None:
    browser.open(pages / name, width)
    assert browser.tell("document.documentElement.scrollWidth <= innerWidth")
    assert quiet(browser), (browser.said, browser.asked)
    browser.picture(pages / "picture.png")
    assert (pages / "picture.png").stat().st_size > 10_000


def test_keys_move_the_wipe_the_slices_and_the_layer(browser: Browser, pages: Path) -> None:
    browser.open(pages / "pair.html")

    def state(*names: str) -> list[str]:
        at = "getComputedStyle(document.querySelector"
        return [browser.tell(f"{at}('{where}')).getPropertyValue('{name}')") for where, name in map(str.split, names)]

    watched = (".sight --wipe", ".axial --k", ".sagittal --k")
    assert state(*watched) == ["50%", "4", "4"]
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowUp"):
        browser.press(key)
    assert state(*watched) == ["45%", "5", "5"]
    shown = "getComputedStyle(document.querySelector('.axial .over .{}')).display"
    assert [browser.tell(shown.format(layer)) for layer in ("moved", "jacobian")] == ["block", "none"]
    browser.press("4")
    assert [browser.tell(shown.format(layer)) for layer in ("moved", "jacobian")] == ["none", "block"]
    assert browser.tell("document.querySelector('[aria-pressed=true]').dataset.layer") == "jacobian"
    outline = "getComputedStyle(document.querySelector('.axial .outline.fixed')).display"
    assert browser.tell(outline) == "block"
    browser.press("c")
    assert browser.tell(outline) == "none"
    assert quiet(browser), browser.said


def test_the_viewer_starts_when_asked_and_shows_the_images(browser: Browser, pages: Path) -> None:
    browser.open(pages / "pair.html")
    assert browser.tell("typeof window.niivue") == "undefined"
    browser.tell("document.getElementById('start').focus()")
    browser.press("Enter")
    browser.until("document.documentElement.dataset.viewer === 'ready'", 120)
    box = browser.tell("(({x, y, right, bottom}) => [x, y, right, bottom])(canvas.getBoundingClientRect())")
    top = browser.tell("scrollY")
    browser.picture(pages / "viewer.png")
    with PIL.Image.open(pages / "viewer.png") as picture:
        seen = np.asarray(picture.convert("L").crop((box[0], box[1] + top, box[2], box[3] + top)))
    assert (seen < 30).mean() > 0.2 and (seen > 120).mean() > 0.02
    assert quiet(browser), (browser.said, browser.asked)


def test_the_index_is_sorted_by_the_keyboard_and_what_has_no_number_stays_last(browser: Browser, pages: Path) -> None:
    browser.open(pages / "index.html")
    names = "[...document.querySelectorAll('tbody th')].map(each => each.dataset.value).join(' ')"
    assert browser.tell(names) == "bob ann eve"
    browser.tell("document.querySelectorAll('thead button')[3].focus()")
    browser.press("Enter")
    assert browser.tell(names) == "ann eve bob"
    browser.press("Enter")
    assert browser.tell(names) == "eve ann bob"
    assert browser.tell("document.querySelectorAll('thead th')[4].getAttribute('aria-sort')") == "descending"
    assert quiet(browser), browser.said
