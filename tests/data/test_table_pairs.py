"""Masks, labels, landmarks and affines of a table, as far as the losses."""

import math

import numpy as np
import pytest
import torch

from regnet import ops
from regnet.data import InputSpec, TablePairs, collate, read_table
from regnet.errors import InputError
from regnet.io import read_image, write_transform
from regnet.io.image import Image
from regnet.losses import MSE, Landmarks, Objective, SoftDice
from regnet.spatial.affine import Affine

from .heads import grid_of, head, labels_of, save

SPEC = InputSpec(spacing=8.0, margin_mm=8.0)
GRIDS = {"a": grid_of(4.0), "b": grid_of((5.0, 4.0, 6.0), signs=(-1, 1, 1), turn=8.0), "c": grid_of(6.0)}


@pytest.fixture
def study(tmp_path):
    """Heads a, b, c with labels, masks (all but the right half) and five landmarks in mm."""
    rng = np.random.default_rng(0)
    places = rng.uniform(-20, 20, (5, 3))
    for name, grid in GRIDS.items():
        image = head(grid)
        save(tmp_path / f"{name}.nii", image)
        save(tmp_path / f"{name}_labels.nii", labels_of(image))
        index = torch.stack(torch.meshgrid(*(torch.arange(n).double() for n in grid.shape), indexing="ij"), -1)
        mask = (grid.to_world(index)[..., 0] < 0).float()[None]
        save(tmp_path / f"{name}_mask.nii", Image(mask, grid))
        lines = [",".join(f"{x:.6f}" for x in (-p[0], -p[1], p[2])) + f",0,{n}" for n, p in enumerate(places)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,y,z,t,label", *lines]) + "\n")

    def table(text, spec=SPEC, **settings):
        (tmp_path / "pairs.csv").write_text(text)
        return TablePairs(read_table(tmp_path / "pairs.csv"), spec, **settings)

    table.folder, table.places = tmp_path, places
    return table


ALL = "moving,fixed,moving_labels,fixed_labels,moving_mask,fixed_mask,moving_points,fixed_points\n"


def row(moving, fixed):
    return ",".join(f"{n}{end}" for end in (".nii", "_labels.nii", "_mask.nii", ".csv") for n in (moving, fixed)) + "\n"


def loss_of(batch, **terms):
    displacement = torch.zeros(len(batch["fixed"]), 3, *batch["fixed"].shape[2:])
    moved = ops.warp(batch["source"], displacement, bound="replicate", extrapolate="edge", matrix=batch["matrix"])
    outputs = {"displacement": displacement, "moved": moved[:, :-1], "moved_view": moved[:, -1:]}
    return Objective(terms)(outputs, batch)[1]


def test_what_the_masks_leave_out_has_no_part_in_the_similarity(study):
    plain = collate([study("moving,fixed\na.nii,b.nii\n")[0]])
    fixed = collate([study("moving,fixed,fixed_mask\na.nii,b.nii,b_mask.nii\n")[0]])
    moving = collate([study("moving,fixed,moving_mask\na.nii,b.nii,a_mask.nii\n")[0]])
    right = torch.zeros_like(plain["fixed"])
    right[:, :, right.shape[2] * 2 // 3 :] = 5.0  # far from the masks' border
    for batch, moves in ((plain, True), (fixed, False), (moving, False)):
        before = loss_of(batch, mse=MSE())["mse"]
        after = loss_of({**batch, "fixed": batch["fixed"] + right}, mse=MSE())["mse"]
        assert bool((after - before).abs() > 1) is moves
    assert 0.3 < fixed["fixed_mask"].mean() / plain["fixed_mask"].mean() < 0.6
    assert torch.equal(fixed["view"], plain["view"]) and torch.equal(moving["fixed_mask"], plain["fixed_mask"])


def test_landmarks_in_the_world_become_voxels_of_the_fixed_grid_and_reach_their_loss(study):
    batch = collate([study(ALL + row("a", "b"))[0]])
    assert batch["fixed_points"].shape == (1, 5, 3)
    torch.testing.assert_close(batch["fixed_points"], batch["moving_points"], atol=1e-4, rtol=0)
    # the same places in the world: nothing to correct, and a landmark shifted by 2 voxels of 8 mm is 16 mm off
    assert loss_of(batch, tre=Landmarks())["tre"] < 1e-2
    shifted = {**batch, "fixed_points": batch["fixed_points"] + torch.tensor([0.0, 2.0, 0.0])}
    assert float(loss_of(shifted, tre=Landmarks())["tre"]) == pytest.approx(16.0, abs=1e-2)
    spread = (batch["fixed_points"][0, 1:] - batch["fixed_points"][0, :1]).double() * 8.0
    torch.testing.assert_close(
        spread, torch.from_numpy(study.places[1:] - study.places[:1]), atol=1e-3, rtol=0
    )  # the network's grid lies along the world's axes


def test_pairs_without_labels_or_landmarks_train_beside_those_that_have_them(study):
    # the semi-supervised case, and the pair without labels of case C-61
    dataset = study(ALL + row("a", "b") + "c.nii,b.nii,,,,,,\n")
    both = collate([dataset[0], dataset[1]])
    assert both["moving_points"].shape == (2, 5, 3) and bool(both["moving_points"][1].isnan().all())
    assert not both["fixed_labels"][1].any()
    terms = {"dice": SoftDice(), "tre": Landmarks()}
    with_labels, together = loss_of(collate([dataset[0]]), **terms), loss_of(both, **terms)
    torch.testing.assert_close(together["dice"], with_labels["dice"])
    torch.testing.assert_close(together["tre"], with_labels["tre"] / 2)  # a mean over samples; none adds 0
    alone = loss_of(collate([dataset[1]]), **terms)
    assert alone["dice"] == 0 and alone["tre"] == 0


def test_padding_does_not_count_where_sizes_differ(study):
    dataset = study("moving,fixed\na.nii,b.nii\na.nii,c.nii\n")
    items = [dataset[0], dataset[1]]
    shapes = [item["fixed"].shape[1:] for item in items]
    assert shapes[0] != shapes[1]
    batch = collate(items)
    for mask, shape in zip(batch["fixed_mask"], shapes, strict=True):
        own = tuple(slice(n) for n in shape)
        assert mask.sum() == mask[0][own].sum()


def test_an_initial_transform_changes_where_the_moving_image_lies_and_none_of_its_voxels(study):
    c, s = math.cos(0.2), math.sin(0.2)
    turn = Affine(torch.tensor([[c, -s, 0, 6.0], [s, c, 0, -4.0], [0, 0, 1, 9.0], [0, 0, 0, 1]]).double())
    image = head(GRIDS["a"])
    moved = Image(image.data, type(image.grid)(image.grid.shape, torch.linalg.solve(turn.matrix, image.grid.affine)))
    save(study.folder / "moved.nii", moved)
    write_transform(study.folder / "start.tfm", turn, read_image(study.folder / "b.nii"))
    fine = InputSpec(spacing=4.0, margin_mm=8.0)  # as the moving image
    told = study(
        "moving,fixed,initial_transform,moving_points,fixed_points\na.nii,b.nii,start.tfm,a.csv,b.csv\n", fine
    )[0]
    lies = study("moving,fixed\nmoved.nii,b.nii\n", fine)[0]
    plain = study("moving,fixed\na.nii,b.nii\n", fine)[0]
    torch.testing.assert_close(told["source"], plain["source"], atol=1e-5, rtol=0)
    torch.testing.assert_close(told["matrix"], lies["matrix"], atol=1e-4, rtol=0)
    torch.testing.assert_close(told["moving"], lies["moving"], atol=1e-4, rtol=0)
    # landmarks go with their image: where start sends the fixed grid's point, there the moving landmark was
    voxels = told["moving_points"].double() @ told["matrix"][:, :3].double().T + told["matrix"][:, 3].double()
    there = GRIDS["a"].to_world(voxels)
    torch.testing.assert_close(there, torch.from_numpy(study.places), atol=1e-2, rtol=0)


def test_a_mask_that_is_empty_and_landmarks_that_do_not_go_together_are_named(study):
    empty = Image(torch.zeros(1, *GRIDS["a"].shape), GRIDS["a"])
    save(study.folder / "none.nii", empty)
    with pytest.raises(InputError, match=r"none\.nii: the mask is empty"):
        study("moving,fixed,moving_mask\na.nii,b.nii,none.nii\n")[0]
    (study.folder / "few.csv").write_text("x,y,z,t,label\n1,2,3,0,1\n")
    with pytest.raises(InputError, match=r"b\.csv: has 5 landmarks, but .*few\.csv has 1"):
        study("moving,fixed,moving_points,fixed_points\nb.nii,a.nii,b.csv,few.csv\n")[0]


def test_an_epoch_of_a_few_pairs_takes_one_from_each_part_of_the_table(study):
    rows = "".join(f"p{n},a.nii,b.nii\n" for n in range(10))
    training = study("id,moving,fixed\n" + rows, length=3)
    parts = ({"p0", "p1", "p2"}, {"p3", "p4", "p5"}, {"p6", "p7", "p8", "p9"})
    drawn = [[training[(epoch, index)]["id"] for index in range(3)] for epoch in range(8)]
    for index, part in enumerate(parts):
        names = {names[index] for names in drawn}
        assert names <= part and len(names) > 1
    validation = study("id,moving,fixed\n" + rows, length=3, training=False)
    assert [validation[(5, index)]["id"] for index in range(3)] == ["p0", "p3", "p6"]
    with pytest.raises(InputError, match="11 pairs an epoch are asked for, but there are 10"):
        study("id,moving,fixed\n" + rows, length=11)
