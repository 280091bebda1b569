import errno

import pytest

from regnet.errors import InputError
from regnet.io import atomic_path, check_output


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
