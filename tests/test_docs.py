"""What the README and the documents tell a reader to type is typed here, on small stand-in images."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch

import regnet
from regnet.data import read_table, sample_path
from regnet.io import read_image, read_labels, write_image, write_transform
from regnet.spatial import Displacement, Grid, Transform, resample, resample_labels

from .warm import Warm

ROOT = Path(__file__).parent.parent
PACKAGE = Path(regnet.__file__).parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
NAMES = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Lines that set up the machine. What make is asked for must exist; the rest is what .ci/run does.
SETUP = ("make ", "bash .ci/run", "git clone ", "python3 -m venv ", "pip install ", ".venv/bin/pre-commit ")

# Minutes become seconds.
SMALLER = (
    (r"regnet train (?!-|experiment=)", "regnet train experiment=smoke "),
    (r"python train\.py -m ", f"python {ROOT}/train.py -m experiment=smoke "),
    (r"trainer\.max_epochs=\d+", ""),
    (r"(experiment|data)=smoke", r"\g<0> trainer.max_epochs=1"),
    (r"(--refine |refine=)\d+", r"\g<1>3"),
    (r"model=probabilistic_velocity", r"\g<0> model.head.steps=2"),  # what is exported repeats them all
)


def installed(path: Path) -> Path:
    """Where a path of the repository is when the package is installed, not beside the documents."""
    return PACKAGE.parent / path.relative_to(ROOT) if path.is_relative_to(ROOT / "regnet") else path


def blocks(path: Path, language: str) -> list[str]:
    return [code for found, code in FENCE.findall(path.read_text(encoding="utf-8")) if found == language]


def smaller(code: str) -> str:
    for pattern, replacement in SMALLER:
        code = re.sub(pattern, replacement, code)
    return code


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_every_block_is_of_a_kind_that_is_checked(path: Path) -> None:
    assert {language for language, _ in FENCE.findall(path.read_text(encoding="utf-8"))} <= {
        "sh",
        "python",
        "csv",
        "text",
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_every_make_target_exists(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = re.findall(r"(?:^|`)make ([a-z][\w-]*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= targets


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_every_link_leads_to_a_file(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", path.read_text(encoding="utf-8"))
    assert not [link for link in links if not installed(path.parent / link).exists()]


def test_every_path_that_the_architecture_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:regnet|csrc|configs|tests|tools|benchmarks|docs)/[\w/.]*)`", text)
    assert "regnet/ops/" in paths
    present = [installed(ROOT / name) for name in paths]
    assert not [path for path in present if "csrc" not in path.parts and not path.exists()]


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in DOCUMENTS if blocks(path, "sh")])
def test_the_commands_of_a_document_run(path: Path, folder: Path, warm: Warm) -> None:
    for block in blocks(path, "sh"):
        code = smaller("".join(line for line in block.splitlines(keepends=True) if not line.startswith(SETUP)))
        search = os.pathsep.join([str(warm.bin), str(Path(sys.executable).parent), os.environ["PATH"]])
        words, environment = ["bash", "-euo", "pipefail", "-c", code], {**os.environ, "PATH": search}
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in DOCUMENTS if blocks(path, "python")])
def test_the_python_of_a_document_runs(path: Path, folder: Path, warm: Warm) -> None:
    for block in blocks(path, "python"):
        with (folder / "output.txt").open("w+", encoding="utf-8") as output:
            status = warm.python(smaller(block), folder, output)
            output.seek(0)
            assert status == 0, f"{block}\n{output.read()}"


def test_the_tables_of_the_documents_are_tables(tmp_path: Path) -> None:
    found = [block for path in DOCUMENTS for block in blocks(path, "csv")]
    assert found
    for block in found:
        for name in re.findall(r"[\w/]+\.nii\.gz", block):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        table = tmp_path / "pairs.csv"
        table.write_text(block, encoding="utf-8")
        assert read_table(table)


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    with Warm() as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the documents speak of: two small brains, their labels, a series, a warp, tables."""
    for name, brain in (("moving", "colin27"), ("fixed", "mni152")):
        image, labels = read_image(sample_path(f"{brain}_t1")), read_labels(sample_path(f"{brain}_tissue"))
        grid = image.grid.with_spacing(10.0)
        write_image(tmp_path / f"{name}.nii.gz", resample(image.data[None], image.grid, grid)[0], grid)
        small = resample_labels(labels.data[None], labels.grid, grid, mode="nearest")
        write_image(tmp_path / f"{name}_labels.nii.gz", small[0], grid)
    fixed = read_image(tmp_path / "fixed.nii.gz")
    write_transform(tmp_path / "warp.nii.gz", shift(fixed.grid), fixed)
    write_image(tmp_path / "fixed.mha", fixed.data, fixed)
    moving = nibabel.load(tmp_path / "moving.nii.gz")
    series = np.stack([np.asarray(moving.dataobj)] * 3, axis=-1)
    nibabel.save(nibabel.Nifti1Image(series, moving.affine), tmp_path / "series.nii.gz")
    (tmp_path / "landmarks.csv").write_text("x,y,z,t,label\n10,-20,30,0,1\n-8,5,12,0,2\n", encoding="utf-8")
    columns = ("moving", "fixed", "moving_labels", "fixed_labels")
    row = ",".join(f"{name}.nii.gz" for name in columns)
    (tmp_path / "pairs.csv").write_text(f"id,{','.join(columns)}\nann,{row}\n", encoding="utf-8")
    return tmp_path


def shift(grid: Grid) -> Transform:
    """Half a voxel along every axis."""
    return Displacement(torch.full((grid.ndim, *grid.shape), 0.5), grid)
