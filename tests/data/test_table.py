import logging

import pytest

from regnet.data.table import Subject, read_pairs, read_table
from regnet.errors import InputError


@pytest.fixture
def table(tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    for name in ("a.nii", "b.nii", "c.nii", "la.nii", "lb.nii"):
        (folder / name).touch()

    def write(text, encoding="utf-8"):
        path = folder / "pairs.csv"
        path.write_text(text, encoding=encoding)
        return path

    return write


def test_paths_are_relative_to_the_tables_folder_and_channels_are_split(table):
    path = table("id,moving,fixed,moving_labels,split,group\none, a.nii ; b.nii ,b.nii;c.nii,la.nii,train,g\n")
    (pair,) = read_pairs(path)
    assert pair.moving == (path.parent / "a.nii", path.parent / "b.nii")
    assert pair.fixed == (path.parent / "b.nii", path.parent / "c.nii")
    assert pair.moving_labels == path.parent / "la.nii"
    assert pair.fixed_labels is None
    assert (pair.id, pair.split, pair.group) == ("one", "train", "g")


def test_only_moving_and_fixed_are_required_and_rows_are_numbered(table):
    pairs = read_pairs(table("moving,fixed\na.nii,b.nii\n\nb.nii,c.nii\n"))
    assert [pair.id for pair in pairs] == ["0001", "0002"]
    assert [pair.split for pair in pairs] == ["", ""]


def test_a_spreadsheets_byte_order_mark_and_quotes_do_no_harm(table):
    (pair,) = read_pairs(table('moving,fixed,id\n"a.nii","b.nii","x, y"\n', encoding="utf-8-sig"))
    assert pair.id == "x, y"


def test_unknown_columns_are_kept_and_named_in_one_line(table, caplog):
    with caplog.at_level(logging.WARNING):
        (pair,) = read_pairs(table("moving,fixed,age,site\na.nii,b.nii,42,x\n"))
    assert pair.extra == {"age": "42", "site": "x"}
    (record,) = caplog.records
    assert record.getMessage().endswith("columns kept but not used: age, site")


def test_an_unpaired_table_gives_subjects(table):
    rows = read_table(table("subject,image,labels,split\nann,a.nii,la.nii,train\nbob,b.nii,lb.nii,train\n"))
    assert [type(row) for row in rows] == [Subject, Subject]
    pair = rows[0].onto(rows[1])
    assert (pair.id, pair.moving[0].name, pair.fixed_labels.name) == ("ann_to_bob", "a.nii", "lb.nii")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("moving,fixed\na.nii,missing.nii\n", r"pairs.csv line 2: fixed .*missing.nii does not exist"),
        ("moving,fixed\na.nii,b.nii\na.nii,\n", r"pairs.csv line 3: no fixed"),
        ("moving,fixed,fixed_labels\na.nii,b.nii,lx.nii\n", r"line 2: fixed_labels .*lx.nii does not exist"),
        ("moving,fixed\n~nobody_here/a.nii,b.nii\n", r"line 2: moving ~nobody_here/a.nii cannot be looked for"),
        (f"moving,fixed\na.nii,{'n' * 300}\n", r"line 2: fixed nnn.* cannot be looked for \(File name too long\)"),
        ("moving,fixed\na.nii,b.nii,c.nii\n", r"line 2: 3 cells, but the header has 2"),
        ("id,moving,fixed\nx,a.nii,b.nii\nx,b.nii,a.nii\n", r"'x' names two rows"),
        ("id,moving,fixed\nx/y,a.nii,b.nii\n", r"'x/y' must not hold a slash"),
        ("moving;fixed\na.nii;b.nii\n", r"needs columns 'moving' and 'fixed'.*found moving;fixed"),
        ("moving,moving,fixed\na.nii,a.nii,b.nii\n", r"column moving comes twice"),
        ("moving,fixed\n", r"has no rows"),
        ("", r"is empty"),
    ],
)
def test_a_bad_table_is_one_line_that_names_row_and_file(table, text, message):
    with pytest.raises(InputError, match=message) as error:
        read_pairs(table(text))
    assert "\n" not in str(error.value)


def test_a_missing_table_and_one_of_bytes_are_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"none.csv: cannot be read"):
        read_pairs(tmp_path / "none.csv")
    (tmp_path / "image.csv").write_bytes(b"\x1f\x8b\x08\xff\xfe\x00")
    with pytest.raises(InputError, match=r"image.csv: not a CSV table"):
        read_pairs(tmp_path / "image.csv")


def test_an_unpaired_table_is_refused_where_pairs_are_needed(table):
    with pytest.raises(InputError, match="columns 'moving' and 'fixed' are needed"):
        read_pairs(table("image\na.nii\nb.nii\n"))
