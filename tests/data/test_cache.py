"""Prepared images in files: the same values, once, whoever makes them."""

import multiprocessing
import os
import shutil

import pytest
import torch

from regnet.data import Cache, InputSpec, TablePairs, collate, read_table
from regnet.data.recent import Recent

from .heads import grid_of, head, labels_of, save

SPEC = InputSpec(spacing=8.0, margin_mm=8.0)


@pytest.fixture
def study(tmp_path):
    for name, grid in (("a", grid_of(6.0)), ("b", grid_of((5.0, 6.0, 7.0), signs=(-1, 1, 1), turn=8.0))):
        image = head(grid)
        save(tmp_path / f"{name}.nii.gz", image)
        save(tmp_path / f"{name}_labels.nii.gz", labels_of(image))
    columns = "moving,fixed,moving_labels,fixed_labels,fixed_mask\n"
    (tmp_path / "pairs.csv").write_text(columns + "a.nii.gz,b.nii.gz,a_labels.nii.gz,b_labels.nii.gz,b_labels.nii.gz\n")
    return tmp_path


def pair_of(study, cache, spec=SPEC):
    return collate([TablePairs(read_table(study / "pairs.csv"), spec, cache=cache)[0]])


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[key], other[key]) for key in one if isinstance(one[key], torch.Tensor))


def entries(folder):
    return sorted(path.name for path in folder.glob("*/*.safetensors"))


def test_what_comes_from_the_cache_is_what_was_prepared_bit_for_bit(study, monkeypatch):
    plain = pair_of(study, None)
    assert same(pair_of(study, Cache(study / "cache")), plain)
    assert len(entries(study / "cache")) == 6  # fixed, moving, its own voxels, two label maps, a mask
    monkeypatch.setattr("regnet.data.reader.read_image", None)  # nothing is read or made any more
    monkeypatch.setattr("regnet.data.reader.read_labels", None)
    again = TablePairs(read_table(study / "pairs.csv"), SPEC, cache=Cache(study / "cache"))
    assert same(collate([again[0]]), plain)


def test_an_entry_is_found_by_content_and_settings_and_not_by_name_or_date(study):
    cache = study / "cache"
    pair_of(study, Cache(cache))
    known = entries(cache)
    os.utime(study / "a.nii.gz", (1, 1))
    shutil.copytree(study, study.parent / "elsewhere")
    pair_of(study.parent / "elsewhere", Cache(cache))
    assert entries(cache) == known
    pair_of(study, Cache(cache), InputSpec(spacing=9.0, margin_mm=8.0))
    assert len(entries(cache)) == 2 * len(known)
    image = head(grid_of(6.0))
    image.data[0, 3, 3, 3] += 5
    save(study / "a.nii.gz", image)
    changed = pair_of(study, Cache(cache))
    assert len(entries(cache)) == 2 * len(known) + 3  # moving, its own voxels, and labels that go with them
    assert same(changed, pair_of(study, None))


def test_a_damaged_entry_is_made_anew_and_a_full_cache_is_written_no_more(study, caplog):
    cache = study / "cache"
    plain = pair_of(study, Cache(cache))
    for path in cache.glob("*/*.safetensors"):
        path.write_bytes(path.read_bytes()[:-7])
    assert same(pair_of(study, Cache(cache)), plain)
    assert caplog.text.count("is made anew") == 6
    caplog.clear()
    assert same(pair_of(study, Cache(cache)), plain) and not caplog.text
    assert same(pair_of(study, Cache(study / "small", max_gb=1e-6)), plain)
    assert not entries(study / "small")
    (study / "file").write_text("")  # not a folder: as a full disk, it must not end a training
    assert same(pair_of(study, Cache(study / "file" / "cache")), plain)
    assert "written no more" in caplog.text


def _prepare(study):
    torch.set_num_threads(1)
    for _ in range(3):
        pair_of(study, Cache(study / "cache"))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # Python 3.12 warns of any fork
def test_processes_that_prepare_the_same_at_once_leave_whole_entries(study):
    plain = pair_of(study, None)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_prepare, args=(study,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert same(pair_of(study, Cache(study / "cache")), plain)
    assert len(entries(study / "cache")) == 6 and not list((study / "cache").glob("*/.*"))


def test_what_was_used_last_is_kept_while_it_fits():
    recent, made = Recent(limit=8 * 4), []

    def make(key):
        made.append(key)
        return {"x": torch.zeros(4)}

    for key in "abacab":
        recent.get(key, lambda key=key: make(key))
    assert made == ["a", "b", "c", "b"]  # c displaced b, which was used before a
