"""Pairs by their number, splits by people, rows by their bytes."""

import gc
import sys
from pathlib import Path

import pytest

from regnet.data import AllPairs, InputSpec, Pair, Subject, TablePairs, WithinGroups, read_table, split_rows
from regnet.data.pairing import AtlasPairs, has
from regnet.errors import InputError


def subjects(n, group=lambda i: ""):
    return [Subject(f"s{i}", (Path(f"s{i}.nii"),), group=group(i)) for i in range(n)]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_all_pairs_are_numbered_once_each_and_none_is_of_an_image_with_itself(n):
    pairs = AllPairs(subjects(n))
    names = [pair.id for pair in pairs]
    assert len(names) == len(pairs) == n * (n - 1) and len(set(names)) == len(names)
    assert not [name for name in names if len(set(name.split("_to_"))) == 1]
    assert [pair.id for pair in pairs[1:3]] == names[1:3]
    with pytest.raises(IndexError):
        pairs[len(pairs)]


def test_pairs_within_groups_are_all_of_those_and_no_others():
    images = subjects(7, lambda i: "abcabca"[i])
    names = {pair.id for pair in WithinGroups(images)}
    wanted = {f"{m.id}_to_{f.id}" for m in images for f in images if m is not f and m.group == f.group}
    assert names == wanted and len(WithinGroups(images)) == len(wanted) == 3 * 2 + 2 + 2
    with pytest.raises(InputError, match="no group has two images"):
        WithinGroups(subjects(3))


def test_pairs_of_a_million_images_are_never_made():
    class Many:
        def __len__(self):
            return 1_000_000

        def __getitem__(self, index):
            return Subject(f"s{index}", (Path("x"),))

    pairs = AllPairs(Many())
    assert len(pairs) == 999_999_000_000 and pairs[999_998_999_999].id == "s999998_to_s999999"


def test_labels_are_looked_for_in_the_images_and_in_the_atlas():
    plain, labelled = subjects(2), Subject("l", (Path("l.nii"),), labels=Path("seg.nii"))
    assert not has(AllPairs(plain), "labels") and has(AllPairs([*plain, labelled]), "labels")
    assert has(AtlasPairs([*plain, labelled], labelled), "labels")
    assert not has(AtlasPairs([labelled], plain[0]), "labels") and not has((), "labels")


def test_a_split_is_of_people_whatever_the_order_and_the_folder():
    images = subjects(20, lambda i: f"person{i // 2}")
    shares = {"val": 0.2, "test": 0.1}
    found = dict(zip([s.id for s in images], split_rows(images, shares, seed=3), strict=True))
    again = dict(zip([s.id for s in images[::-1]], split_rows(images[::-1], shares, seed=3), strict=True))
    assert found == again and found != dict(zip(found, split_rows(images, shares, seed=5), strict=True))
    assert all(found[f"s{i}"] == found[f"s{i + 1}"] for i in range(0, 20, 2))
    assert [list(found.values()).count(name) for name in ("train", "val", "test")] == [14, 4, 2]

    def pairs(folder):
        names = [("a", "b"), ("b", "c"), ("d", "e"), ("f", "g")]
        return [Pair(f"{m}{f}", (folder / m,), (folder / f,)) for m, f in names]

    here, there = split_rows(pairs(Path("/here")), {"val": 0.3}), split_rows(pairs(Path("/and/there")), {"val": 0.3})
    assert here == there and here[0] == here[1] and here.count("val") in (1, 2)


@pytest.mark.parametrize(
    ("shares", "message"),
    [({"val": 1.2}, "between 0 and 1"), ({"train": 0.5}, "other than train"), ({"val": 0.4, "test": 0.3}, "too few")],
)
def test_shares_that_make_no_sense_are_refused(shares, message):
    with pytest.raises(InputError, match=message):
        split_rows(subjects(2), shares)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A table of 100,000 pairs of 300 images."""
    folder = tmp_path_factory.mktemp("many")
    for i in range(300):
        (folder / f"s{i}.nii").touch()
    lines = (f"s{i % 300}.nii,s{i // 300 % 300}.nii,{'val' if i % 10 == 0 else 'train'}\n" for i in range(100_000))
    (folder / "pairs.csv").write_text("moving,fixed,split\n" + "".join(lines))
    return read_table(folder / "pairs.csv")


def test_a_table_of_many_pairs_is_a_few_arrays_of_bytes(many):
    # cases C-62: what workers share must hold no Python object a row
    training = many.select([split == "train" for split in many.column("split")])
    dataset = TablePairs(training, InputSpec())
    assert len(dataset) == 90_000 and dataset.rows[89_999].id == "100000"
    assert dataset.rows[0].moving[0].name == "s1.nii"
    gc.collect()
    held = [thing for thing in gc.get_objects() if type(thing) is Pair]
    assert len(held) < 10
    assert many._text.nbytes < 4e6 and sys.getsizeof(many._text) < 4e6


def test_reading_many_rows_leaves_nothing_behind(many):
    before = len(gc.get_objects())
    for index in range(0, 100_000, 25):
        assert many[index].split in ("train", "val")
    gc.collect()
    assert len(gc.get_objects()) < before + 100
