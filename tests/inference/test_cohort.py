"""What happens around the measuring of many cases."""

from pathlib import Path

import pytest
import torch

from regnet.data.table import Pair
from regnet.inference import cohort
from regnet.inference.case import Case, Protocol
from regnet.io import write_image
from regnet.spatial import Grid


def _case(folder: Path) -> Case:
    grid = Grid((9, 8), torch.eye(3))
    image, labels = folder / "image.nii.gz", folder / "labels.nii.gz"
    write_image(image, torch.rand(9, 8, generator=torch.Generator().manual_seed(0)), grid)
    write_image(labels, torch.zeros(9, 8, dtype=torch.uint8), grid)
    return Case(Pair("ann", (image,), (image,), moving_labels=labels, fixed_labels=labels))


def test_what_a_case_warns_of_in_another_process_comes_back_with_its_figures(tmp_path: Path) -> None:
    measures, messages = cohort._elsewhere(_case(tmp_path), Protocol(), None, 1)
    assert measures["nmi"].mean == pytest.approx(2)
    assert len(messages) == 1 and "no label in common" in messages[0]


@pytest.mark.filterwarnings("ignore:.*no label in common")
def test_progress_is_told_case_by_case_also_of_those_that_are_kept(tmp_path: Path) -> None:
    case, told = _case(tmp_path), []
    for expected in (1, 2):
        found, failed = cohort.evaluate_cases([case], Protocol(), tmp_path / "keep", progress=lambda: told.append(1))
        assert list(found) == ["ann"] and not failed and len(told) == expected
