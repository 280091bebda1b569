"""The pages of pairs and cohorts, as text."""

import re
from html.parser import HTMLParser

import pytest
import torch

from regnet.report.cohort_page import Entry, cohort_page
from regnet.report.measures import Measure
from regnet.report.pair_page import pair_page
from regnet.report.remarks import Remark
from regnet.report.thumbnail import thumbnail

from .pairs import registration

_VOID = {"meta", "link", "input", "img", "br"}


class Tree(HTMLParser):
    """Checks that what is opened is closed, and gathers tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(text: str) -> Tree:
    tree = Tree(text)
    assert not tree.open
    for _, attributes in tree.found:
        for name in ("src", "href"):
            assert not (attributes.get(name) or "").startswith(("http", "//"))
    outside = re.findall(r"url\((?!data:|#)", text) + re.findall(r"@import|<script src|<link rel=.stylesheet", text)
    assert not outside and "default-src 'none'" in text
    return tree


def test_the_page_of_a_pair_holds_its_layers_figures_and_origin_and_fetches_nothing() -> None:
    text = pair_page(registration(), {"dice": "mean <over> the labels"}, "../index.html")
    tree = checked(text)
    layers = [about["data-layer"] for tag, about in tree.found if tag == "button" and "data-layer" in about]
    assert layers == ["moved", "moving", "grid", "jacobian", "length"]
    assert sum(about.get("class", "").startswith("plane ") for _, about in tree.found if about.get("class")) == 3
    assert text.count("background-image:url(data:image/") == 15
    for said in (
        "No voxel folds",
        "Dice rose from 0.600 to 0.900",
        "0.900",
        "mean &lt;over&gt;",
        "registered &lt;in&gt;",
    ):
        assert said in text
    assert 'href="../index.html"' in text and len(text) < 2e6


def test_pairs_without_labels_have_no_outlines_to_choose_and_flat_ones_have_one_plane() -> None:
    after = {"lncc": Measure(0.8)}
    text = pair_page(registration((24, 30), labels={}, after=after, before=after), {})
    checked(text)
    assert 'id="outlines"' not in text and text.count("<figure") == 1 and 'class="slice"' not in text


def test_the_worst_case_of_noise_in_large_images_stays_below_eight_megabytes() -> None:
    shape = (300, 300, 10)
    noise = torch.rand(shape)
    text = pair_page(
        registration(shape, fixed=noise, moving=noise, moved=noise, labels={}, flow=torch.rand(3, *shape) * 4), {}
    )
    assert len(text) < 8e6


def test_the_index_lists_failed_pairs_first_with_their_reason_and_links_the_others() -> None:
    told = [Remark("warning", "Folds."), Remark("good", "Fine.")]
    entries = [
        Entry("ann", "done", 3.0, "", "pairs/ann.html", thumbnail(registration()), {"dice": 0.9, "sdlogj": 0.1}),
        Entry("b<b>", "failed", 1.0, error="no & such image"),
        Entry("eve", "done", 5.0, figures={"dice": 0.7}, remarks=told),
    ]
    text = cohort_page("study", entries, ["regnet 0.1.0"], {})
    tree = checked(text)
    assert "3 pairs: 2 done, 1 failed" in text and "no &amp; such image" in text and "b&lt;b&gt;" in text
    assert text.index("no &amp; such") < text.index("pairs/ann.html")
    assert "Folds." in text and "Fine." not in text
    assert [about["href"] for tag, about in tree.found if tag == "a"] == ["pairs/ann.html"]
    foot = text[text.index("<tfoot>") :]
    assert "<td>4.0</td><td>0.800</td>" in foot and "<td>0.100</td>" in foot


@pytest.mark.parametrize("shape", [(24, 30, 20), (24, 30)])
def test_a_thumbnail_is_small(shape: tuple[int, ...]) -> None:
    assert len(thumbnail(registration(shape))) < 8000
