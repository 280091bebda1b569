"""``regnet register``: files in, files out, and one line for whatever cannot work."""

import errno
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk
import torch
from torch import Tensor

from regnet import ops
from regnet.data.spec import InputSpec
from regnet.io import gz, read_displacement, read_image, read_labels, read_transform, write_image, write_transform
from regnet.spatial import Affine, Displacement
from tests.inference.heads import centred, head, points, shift
from tests.inference.networks import write_checkpoint

from .command import refused, regnet, write_pair


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pair, registered by refinement alone, and every output."""
    folder = tmp_path_factory.mktemp("pair")
    moving, fixed, labels = write_pair(folder)
    status = regnet(
        *("register", "--moving", moving, "--fixed", fixed, "--model", "none"),
        *("--refine", 12, "--background", -5),
        *("--moved", folder / "new/moved.nii.gz", "--warp", folder / "new/warp.nii.gz"),
        *("--inverse-warp", folder / "new/inverse.nii.gz", "--jacobian", folder / "new/jacobian.nii.gz", "--total"),
        *("--moving-labels", labels, "--moved-labels", folder / "new/moved_labels.nii.gz"),
        *("--figure", folder / "new/figure.png", "--threads", torch.get_num_threads()),
    )
    assert status == 0
    return folder


def relative(difference: Tensor, image: Tensor) -> float:
    return float(difference.abs().max() / (image.max() - image.min()))


def test_simpleitk_applies_the_warp_with_the_same_result(registered: Path) -> None:
    ours = read_image(registered / "new/moved.nii.gz").data[0]
    field = sitk.ReadImage(str(registered / "new/warp.nii.gz"), sitk.sitkVectorFloat64)
    theirs = sitk.Resample(
        sitk.ReadImage(str(registered / "moving.nii.gz")),
        sitk.ReadImage(str(registered / "fixed.nii.gz")),
        sitk.DisplacementFieldTransform(field),
        sitk.sitkLinear,
        -5.0,
    )
    theirs = torch.from_numpy(sitk.GetArrayFromImage(theirs)).permute(2, 1, 0).float()
    # On the last half voxel of the field of view, ITK and we cut at slightly different places.
    both = (ours != -5) & (theirs != -5)
    assert float((both | ((ours == -5) & (theirs == -5))).float().mean()) > 0.99
    assert relative((ours - theirs)[both], ours) < 1e-3


def test_the_saved_field_gives_the_moved_image_and_has_the_fixed_grid(registered: Path) -> None:
    file = nibabel.load(registered / "new/warp.nii.gz")
    assert file.shape == (26, 32, 22, 1, 3)
    assert int(file.header["intent_code"]) == 1007
    np.testing.assert_allclose(file.affine, nibabel.load(registered / "fixed.nii.gz").affine)
    moved = registered / "again.nii.gz"
    status = regnet(
        *("apply", "--moving", registered / "moving.nii.gz", "--reference", registered / "fixed.nii.gz"),
        *("-t", registered / "new/warp.nii.gz", "--out", moved, "--background", -5, "--overwrite"),
    )
    assert status == 0
    ours, theirs = read_image(registered / "new/moved.nii.gz").data, read_image(moved).data
    assert relative(ours - theirs, ours) < 1e-3


def test_the_inverse_field_leads_back(registered: Path) -> None:
    forward, back = read_transform(registered / "new/warp.nii.gz"), read_transform(registered / "new/inverse.nii.gz")
    assert back.grid.matches(read_image(registered / "moving.nii.gz").grid)
    start = points(forward.grid)
    inside = start.norm(dim=-1) < 9
    error = (back.map_points(forward.map_points(start)) - start).norm(dim=-1)[inside]
    # Voxels of 1.2 mm, stretched by up to 1.6: what remains is the interpolation between them.
    assert float(error.mean()) < 0.1
    assert float(error.quantile(0.99)) < 0.4


def test_the_jacobian_is_that_of_the_map(registered: Path) -> None:
    flow, _ = read_displacement(registered / "new/warp.nii.gz")
    expected = ops.jacobian_determinant(flow[None])[0]
    torch.testing.assert_close(read_image(registered / "new/jacobian.nii.gz").data, expected, atol=1e-4, rtol=0)


def test_labels_stay_labels_of_their_type(registered: Path) -> None:
    stored = nibabel.load(registered / "new/moved_labels.nii.gz")
    assert stored.get_data_dtype() == np.int16
    moved = read_labels(registered / "new/moved_labels.nii.gz").data
    assert set(moved.unique().tolist()) == {0, 7, 41}


def test_the_figure_is_drawn(registered: Path) -> None:
    assert (registered / "new/figure.png").stat().st_size > 1000


def test_the_registered_image_is_nearer_to_the_fixed_one(registered: Path) -> None:
    fixed, moving = read_image(registered / "fixed.nii.gz"), read_image(registered / "moving.nii.gz")
    before = Displacement.identity(fixed.grid).apply(moving.data[None], moving.grid)[0]
    after = read_image(registered / "new/moved.nii.gz").data.clamp(min=0)
    assert float((after - fixed.data).abs().mean()) < 0.6 * float((before - fixed.data).abs().mean())


def test_the_field_points_from_fixed_to_moving_in_lps(tmp_path: Path) -> None:
    # The head lies 2 mm further to the right in the moving image: + 2 mm along R is - 2 mm along L.
    grid = centred((34, 38, 28))
    write_image(tmp_path / "fixed.nii.gz", head(grid, 10).data, grid)
    write_image(tmp_path / "moving.nii.gz", head(grid, 10, shift(-2.0, 0.0, 0.0)).data, grid)
    status = regnet(
        *("register", "--moving", tmp_path / "moving.nii.gz", "--fixed", tmp_path / "fixed.nii.gz"),
        *("--model", "none", "--refine", 60, "--warp", tmp_path / "warp.nii.gz"),
    )
    assert status == 0
    field = np.asarray(nibabel.load(tmp_path / "warp.nii.gz").dataobj)[:, :, :, 0]
    inside = field[points(grid).norm(dim=-1).numpy() < 8].mean(axis=0)
    np.testing.assert_allclose(inside, [-2, 0, 0], atol=0.3)


def test_a_network_registers_and_a_refinement_goes_on_from_it(tmp_path: Path) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    model = write_checkpoint(tmp_path / "a.ckpt", InputSpec(ndim=3, spacing=2.0), push=0.5)
    common = ("register", "--moving", moving, "--fixed", fixed, "--model", model)
    assert regnet(*common, "--warp", tmp_path / "network.nii.gz") == 0
    assert regnet(*common, "--refine", 1, "--warp", tmp_path / "refined.nii.gz") == 0
    alone, refined = (read_transform(tmp_path / f"{name}.nii.gz") for name in ("network", "refined"))
    assert float(alone.displacement_mm()[0].mean()) == pytest.approx(1.0, abs=0.01)
    # One step of Adam moves no voxel of the coarsest level by more than its rate.
    assert 0 < float((alone.flow - refined.flow).abs().max()) < 1.0


@pytest.mark.parametrize("shape", [(32, 30, 24, 1), (64, 48, 1), (64, 48)])
def test_trailing_axes_of_one_voxel_are_no_obstacle(tmp_path: Path, shape: tuple[int, ...]) -> None:
    spatial = tuple(n for n in shape if n > 1)
    for name, there in (("fixed", shift(*(0.0,) * len(spatial))), ("moving", shift(1.0, *(0.0,) * (len(spatial) - 1)))):
        data = head(centred(spatial), 10, there).data[0].numpy().reshape(shape)
        nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), tmp_path / f"{name}.nii.gz")
    status = regnet(
        *("register", "--moving", tmp_path / "moving.nii.gz", "--fixed", tmp_path / "fixed.nii.gz"),
        *("--model", "none", "--refine", 2),
        *("--moved", tmp_path / "moved.nii.gz", "--warp", tmp_path / "warp.nii.gz"),
    )
    assert status == 0
    assert read_image(tmp_path / "moved.nii.gz").data.shape[1:] == spatial
    assert nibabel.load(tmp_path / "moved.nii.gz").shape[: len(spatial)] == spatial


def _nothing(_: Path) -> None:
    """No file at all."""


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _truncated(path: Path) -> None:
    grid = centred((26, 32, 22))
    write_image(path, head(grid, 9).data, grid)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _text(path: Path) -> None:
    path.write_text("not an image")


def _save(path: Path, data: np.ndarray) -> None:
    nibabel.save(nibabel.Nifti1Image(data.astype(np.float32), np.eye(4)), path)


def _channels(path: Path) -> None:
    _save(path, np.random.default_rng(0).random((32, 32, 24, 2)))


def _nan(path: Path) -> None:
    data = np.random.default_rng(0).random((26, 32, 22))
    data[3, 4, 5] = np.nan
    _save(path, data)


def _constant(path: Path) -> None:
    _save(path, np.full((26, 32, 22), 3.0))


BAD = {
    "missing": (_nothing, "no such file"),
    "empty": (_empty, "empty"),
    "truncated": (_truncated, "truncated"),
    "text": (_text, "not an image"),
    "two channels": (_channels, "4-D"),
    "nan": (_nan, "NaN"),
    "constant": (_constant, "every voxel"),
}


@pytest.mark.parametrize("kind", list(BAD))
@pytest.mark.parametrize("role", ["moving", "fixed"])
def test_an_image_that_cannot_be_used_is_named_with_the_reason(
    kind: str, role: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    bad = tmp_path / "bad.nii.gz"
    make, reason = BAD[kind]
    make(bad)
    before = sorted(tmp_path.rglob("*"))
    files = {"moving": moving, "fixed": fixed, role: bad}
    line = refused(
        capsys,
        *("register", "--moving", files["moving"], "--fixed", files["fixed"], "--refine", 2),
        *("--moved", tmp_path / "moved.nii.gz", "--warp", tmp_path / "warp.nii.gz"),
    )
    assert str(bad) in line
    assert reason in line
    assert sorted(tmp_path.rglob("*")) == before


def test_labels_on_other_voxels_than_their_image_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    other = tmp_path / "other.nii.gz"
    write_image(other, torch.ones(5, 6, 7, dtype=torch.uint8), centred((5, 6, 7)))
    line = refused(
        capsys,
        *("register", "--moving", moving, "--fixed", fixed, "--refine", 2),
        *("--moving-labels", other, "--moved-labels", tmp_path / "moved.nii.gz"),
    )
    assert str(other) in line
    assert str(moving) in line
    assert not (tmp_path / "moved.nii.gz").exists()


@pytest.mark.parametrize("content", [b"", b"PK no zip", None])
def test_what_is_no_checkpoint_of_ours_is_named(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    model = tmp_path / "theirs.ckpt"
    if content is None:
        torch.save({"weights": torch.zeros(3)}, model)
    else:
        model.write_bytes(content)
    line = refused(
        capsys,
        *("register", "--moving", moving, "--fixed", fixed, "--model", model, "--moved", tmp_path / "moved.nii.gz"),
    )
    assert f"{model}: not a regnet checkpoint" in line
    assert not (tmp_path / "moved.nii.gz").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--model", "none", "--moved", "m.nii.gz"), "--refine"),
        (("--refine", "2"), "nothing to write"),
        (("--refine", "1", "--finetune", "-1", "--moved", "m.nii.gz"), "from 0 to"),
        (("--model", "none", "--refine", "1", "--finetune", "1", "--moved", "m.nii.gz"), "nothing to train"),
        (("--refine", "1", "--seconds", "0", "--moved", "m.nii.gz"), "above 0"),
        (("--refine", "1", "--seconds", "nan", "--moved", "m.nii.gz"), "above 0"),
        (("--refine", "1", "--smoothness", "-1", "--moved", "m.nii.gz"), "0 or more"),
        (("--refine", "-1", "--moved", "m.nii.gz"), "from 0 to"),
        (("--refine", "1" + "0" * 23, "--moved", "m.nii.gz"), "from 0 to"),
        (("--refine", "2", "--prefix", ""), "--prefix"),
        (("--refine", "2", "--moved", "m.nii.gz", "--background", "nan"), "not a finite number"),
        (("--refine", "two", "--moved", "m.nii.gz"), "--refine"),
        (("--refine", "2", "--moved", "m.jpg"), "m.jpg"),
        (("--refine", "2", "--warp", "w.h5"), "w.h5"),
        (("--refine", "2", "--moved", "m.nii.gz", "--warp", "./m.nii.gz"), "two outputs"),
        (("--refine", "2", "--moved-labels", "m.nii.gz"), "--moving-labels"),
        (("--refine", "2", "--moved", "m.nii.gz", "--device", "cuda:99"), "cuda:99"),
        (("--refine", "2", "--moved", "m.nii.gz", "--device", "gpu"), "gpu"),
        (("--refine", "2", "--moved", "m.nii.gz", "--seed", "9" * 30), "--seed"),
        (("--refine", "2", "--moved", "m.nii.gz", "--background", "1e39"), "float32"),
        (("--refine", "2", "--warp", "fixed.nii.gz", "--overwrite"), "fixed.nii.gz: is an input and an output"),
        (("--refine", "2", "--moved", "m.nii.gz", "--threads", "0"), "--threads"),
        (("--refine", "2", "--moved", "m.nii.gz", "--model", "nowhere"), "nowhere"),
    ],
)
def test_options_that_cannot_work_are_refused_before_the_work(
    words: tuple[str, ...],
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert reason in refused(capsys, "register", "--moving", moving, "--fixed", fixed, *words)
    assert len(list(tmp_path.iterdir())) == 3


def test_an_output_that_exists_is_kept_unless_told_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    moved = tmp_path / "moved.nii.gz"
    moved.write_text("precious")
    words = ("register", "--moving", moving, "--fixed", fixed, "--refine", 1, "--moved", moved)
    assert str(moved) in refused(capsys, *words)
    assert moved.read_text("utf-8") == "precious"
    assert regnet(*words, "--overwrite") == 0
    assert read_image(moved).data.shape == (1, 26, 32, 22)


def test_a_full_disk_is_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    save = gz.save

    def fills_up(image: Any, path: Path) -> None:
        if "warp" in str(path):  # the moved image fits, the warp does not
            path.write_bytes(b"half of it")
            raise OSError(errno.ENOSPC, "No space left on device")
        save(image, path)

    monkeypatch.setattr(gz, "save", fills_up)
    line = refused(
        capsys,
        *("register", "--moving", moving, "--fixed", fixed, "--refine", 1),
        *("--moved", tmp_path / "moved.nii.gz", "--warp", tmp_path / "warp.nii.gz"),
    )
    assert "No space left on device" in line
    assert "warp.nii.gz" in line
    assert sorted(tmp_path.rglob("*")) == before


def test_an_affine_map_alone_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    matrix = torch.eye(4, dtype=torch.float64)
    matrix[0, 3] = 1.5
    write_transform(tmp_path / "shift.tfm", Affine(matrix))
    words = ("register", "--moving", moving, "--fixed", fixed, "--model", "none", "--prefix", tmp_path / "p_")
    line = refused(capsys, *words, "--init", "none")
    assert all(word in line for word in ("--model RUN", "--refine 100", "--init affine"))
    assert regnet(*words, "--initial-transform", tmp_path / "shift.tfm") == 0
    told = capsys.readouterr().out
    assert told.count("affine only: ") == 1 and "folded" not in told and " mm" not in told
    assert torch.equal(read_transform(tmp_path / "p_0GenericAffine.mat").matrix, matrix)
