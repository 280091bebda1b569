import errno

import pytest

from regnet.errors import InputError
from regnet.io import atomic_path, check_output
from regnet.io.within import is_within


def test_a_whole_output_takes_its_place_and_makes_its_folders(tmp_path):
    path = tmp_path / "new" / "folder" / "a.nii.gz"
    with atomic_path(path) as temporary:
        assert temporary.name.endswith(".nii.gz") and temporary.parent == path.parent
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text("utf-8") == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_nothing_new_and_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="half way"), atomic_path(path, overwrite=True) as temporary:
        temporary.write_text("half")
        raise RuntimeError("half way")
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_output_is_refused_before_the_work(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(InputError, match=r"a\.csv: exists already.*--overwrite"):
        check_output(path)
    with pytest.raises(InputError, match="exists already"), atomic_path(path) as temporary:
        temporary.write_text("new")
    assert path.read_text("utf-8") == "old"
    with atomic_path(path, overwrite=True) as temporary:
        temporary.write_text("new")
    assert path.read_text("utf-8") == "new"


def test_a_folder_or_device_is_never_replaced(tmp_path):
    for path in (tmp_path, "/dev/null"):
        with pytest.raises(InputError, match="not a regular file"):
            check_output(path, overwrite=True)


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path):
    path = tmp_path / "a.nii"
    with pytest.raises(InputError, match=r"a\.nii: cannot be written \(No space left on device\)"):  # noqa: SIM117
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"), atomic_path(tmp_path / "file" / "a.nii"):
        pass


def test_a_link_to_nothing_is_an_output_that_exists(tmp_path):
    (tmp_path / "link.txt").symlink_to(tmp_path / "elsewhere.txt")
    with pytest.raises(InputError, match="exists already"):
        check_output(tmp_path / "link.txt")
    with atomic_path(tmp_path / "link.txt", overwrite=True) as temporary:
        temporary.write_text("whole", encoding="utf-8")
    assert not (tmp_path / "link.txt").is_symlink() and not (tmp_path / "elsewhere.txt").exists()


def test_a_name_within_a_folder_leads_nowhere_else(tmp_path):
    out, away = tmp_path / "out", tmp_path / "away"
    (out / "sub").mkdir(parents=True)
    away.mkdir()
    (out / "link").symlink_to(away)
    (out / "home").symlink_to(out / "sub")
    (tmp_path / "other_name").symlink_to(out)
    for name in ("a", "sub/a", "new/folder/a", "home/a", "a..b", "..a"):
        assert is_within(out, out / name) and is_within(tmp_path / "other_name", tmp_path / "other_name" / name), name
    for name in ("", "..", "../a", "sub/../../a", "sub/../a", "/etc/passwd", "link/a", "a\nb", "a\0", "sub/\x1b[2J"):
        assert not is_within(out, out / name), name
