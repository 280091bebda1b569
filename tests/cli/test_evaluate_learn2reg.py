"""``regnet evaluate --dataset`` gives the official numbers on the official files."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
import torch
from scipy import ndimage

from regnet.cli.main import main
from regnet.io import write_image
from regnet.spatial import Grid
from tests.metrics.test_distance import _blobs, _slow
from tests.metrics.test_learn2reg import SHAPE, _flow, _official_sdlogj

SPACING = (1.5, 1.0, 2.5)


def _grid(origin: float = 0.0) -> Grid:
    affine = torch.diag(torch.tensor([-SPACING[0], SPACING[1], SPACING[2], 1.0]))
    affine[:3, 3] = origin
    return Grid(SHAPE, affine)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A pair of images whose affines differ, labels up to the faces, landmarks in voxels, a mask."""
    generator = torch.Generator().manual_seed(8)
    for number, grid in ((1, _grid()), (2, _grid(7.0))):
        name = f"Lung_000{number}_0000"
        write_image(tmp_path / f"imagesTr/{name}.nii.gz", torch.rand(SHAPE, generator=generator), grid)
        write_image(tmp_path / f"labelsTr/{name}.nii.gz", _blobs(number, *SHAPE), grid)
        points = 2 + torch.rand(7, 3, generator=generator, dtype=torch.float64) * 7
        (tmp_path / "landmarksTr").mkdir(exist_ok=True)
        np.savetxt(tmp_path / f"landmarksTr/{name}.csv", points.numpy(), delimiter=",")
    mask = (torch.rand(SHAPE, generator=generator) > 0.4).byte()
    write_image(tmp_path / "masksTr/Lung_0001_0000.nii.gz", mask, _grid())
    path = tmp_path / "Lung_dataset.json"
    entry = {side: f"./imagesTr/Lung_000{n}_0000.nii.gz" for side, n in (("fixed", 1), ("moving", 2))}
    path.write_text(json.dumps({"name": "Lung", "registration_val": [entry]}))
    return path


@pytest.mark.parametrize("name", ["disp_0001_0002.npz", "disp_0001_0000_0002_0000.nii.gz"])
def test_the_figures_are_those_of_the_official_script(dataset: Path, name: str) -> None:
    folder, out = dataset.parent, dataset.parent / "out"
    flow = _flow(1.3)[0].numpy().astype(np.float32).astype(np.float64)
    (folder / "disp").mkdir()
    field = np.moveaxis(flow, 0, -1).astype(np.float32)
    if name.endswith(".npz"):
        np.savez_compressed(folder / "disp" / name, field)
    else:
        image = sitk.GetImageFromArray(
            field.transpose(3, 2, 1, 0), isVector=False
        )  # 4-D, no intent: as the challenge's
        sitk.WriteImage(image, folder / "disp" / name)
    assert main(["evaluate", "--dataset", str(dataset), "--transforms", str(folder / "disp"), "--out", str(out)]) == 0
    with (out / "cases.csv").open(newline="") as stream:
        (case,) = csv.DictReader(stream)
    assert case["id"] == "0001_0000_0002_0000"

    moving, fixed = (_blobs(n, *SHAPE).numpy() for n in (2, 1))
    warped = ndimage.map_coordinates(moving, np.indices(SHAPE) + flow, order=0)
    measure = sitk.LabelOverlapMeasuresImageFilter()
    measure.Execute(sitk.GetImageFromArray(fixed), sitk.GetImageFromArray(warped))
    for label in (1, 2):
        assert float(case[f"dice_{label}"]) == pytest.approx(measure.GetDiceCoefficient(label), abs=1e-5)
        distances = _slow(warped == label, fixed == label, 1.0)
        assert float(case[f"hd95_voxel_{label}"]) == pytest.approx(distances["hd95"], rel=1e-5)
        assert float(case[f"assd_voxel_{label}"]) == pytest.approx(distances["assd"], rel=1e-5)

    assert float(case["sdlogj_learn2reg"]) == pytest.approx(_official_sdlogj(flow), rel=1e-4)
    mask = sitk.GetArrayFromImage(sitk.ReadImage(folder / "masksTr/Lung_0001_0000.nii.gz")).T > 0
    assert float(case["sdlogj_learn2reg_mask"]) == pytest.approx(_official_sdlogj(flow, mask), rel=1e-4)

    here, there = (np.loadtxt(folder / f"landmarksTr/Lung_000{n}_0000.csv", delimiter=",") for n in (1, 2))
    shift = np.stack([ndimage.map_coordinates(u, here.T) for u in flow], 1)
    errors = np.linalg.norm((here + shift - there) * SPACING, axis=1)
    assert float(case["tre_mm_learn2reg"]) == pytest.approx(errors.mean(), rel=1e-4)
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert summary["name"] == "Lung_dataset" and summary["labels"] == "learn2reg"
    assert summary["cases"][case["id"]]["tre_mm_learn2reg"]["detailed"] == pytest.approx(errors.tolist(), rel=1e-4)
    assert summary["aggregates"]["sdlogj_learn2reg"]["30"] == pytest.approx(_official_sdlogj(flow), rel=1e-4)


def test_a_missing_displacement_is_named_as_the_challenge_names_it(dataset: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    (dataset.parent / "disp").mkdir()
    assert main(["evaluate", "--dataset", str(dataset), "--transforms", str(dataset.parent / "disp")]) == 2
    assert "disp_0001_0000_0002_0000.nii.gz" in capsys.readouterr().err
