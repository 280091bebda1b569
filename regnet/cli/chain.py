"""What ``-t T[:inverse]`` means: transforms in the order of ANTs, and whether that order can be right."""

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from regnet.cli.options import check_axes
from regnet.cli.transforms import INVERSE
from regnet.errors import InputError
from regnet.io import ImageFile, read_transform
from regnet.spatial import Affine, Grid, Transform

_LATTICE = 5  # points along each axis that stand for an image


@dataclass(frozen=True)
class Link:
    """One transform of a chain.

    Args:
        word: what was typed.
        path: its file.
        is_inverse: whether it is meant the other way.
        forward: as the file has it; None before it was read.
    """

    word: str
    path: Path
    is_inverse: bool
    forward: Transform | None = None

    @classmethod
    def parse(cls, word: str) -> "Link":
        """Take ``T[:inverse]`` apart."""
        return cls(word, Path(word.removesuffix(INVERSE)), word.endswith(INVERSE))

    def transform(self) -> Transform:
        """The map that is meant."""
        assert self.forward is not None
        return self.forward.inverse() if self.is_inverse else self.forward


def read_links(
    words: Sequence[Link], source: str | None, reference: ImageFile | None, moving: ImageFile | None
) -> list[Link]:
    """Read the files of a chain.

    Args:
        words: what was typed.
        source: whose files they are, where their content does not say.
        reference, moving: the images on its two sides. A transform that stands alone is between them, which is what
            FSL's and Learn2Reg's files need to know.

    Raises:
        InputError: a file is no transform, or has another number of axes than the reference.
    """
    alone = len(words) == 1
    to, of = (None if image is None or not alone else image.grid for image in (moving, reference))
    links = []
    for link in words:
        moving_side, fixed_side = (of, to) if link.is_inverse else (to, of)
        forward = read_transform(link.path, source, moving_side, fixed_side)
        if reference is not None:
            check_axes(link.path, forward, reference)
        links.append(replace(link, forward=forward))
    return links


def check_links(chain: Sequence[Link], reference: ImageFile, moving: ImageFile) -> None:
    """Refuse a chain that brings nothing of the moving image onto the reference; warn of an unlikely order.

    Raises:
        InputError: fields that lie elsewhere than where the chain comes to them, or a moving image that does; other
            axes than the reference's.
    """
    check_axes(moving.name, moving.grid, reference)
    points = _lattice(reference.grid)
    told = "-t goes as in ANTs: the last given touches the moving image first"
    hints = {0: "by their headers they lie in different places", 1: "is the direction right (:inverse)?"}
    hint = hints.get(len(chain), told)
    for link in chain:
        assert link.forward is not None
        home = link.forward.home
        if home is not None and not _meet(points, home):
            raise InputError(f"{link.word}: lies elsewhere than {reference.name} as the chain brings it there; {hint}")
        if home is None and link.is_inverse:
            points = link.transform().map_points(points)
        elif not link.is_inverse:
            points = link.forward.map_points(points)
    if not _meet(points, moving.grid):
        raise InputError(f"{moving.name}: nothing of it comes into the view of {reference.name}; {hint}")
    for first, second in itertools.pairwise(chain):
        forward = not first.is_inverse and not second.is_inverse and isinstance(first.forward, Affine)
        home = None if second.forward is None else second.forward.home
        if forward and home is not None and home.matches(reference.grid):
            warnings.warn(
                f"{second.word}: lies on the grid of the reference, yet {first.word} comes before it; {told}, so an "
                "affine transform usually follows its warp",
                stacklevel=2,
            )


def _lattice(grid: Grid) -> Tensor:
    """Places all over the field of view of a grid, RAS mm, ``(P, D)``."""
    axes = [torch.linspace(-0.5, n - 0.5, _LATTICE, dtype=torch.float64) for n in grid.shape]
    return grid.to_world(torch.cartesian_prod(*axes))


def _meet(points: Tensor, grid: Grid) -> bool:
    """Whether the box about some places and the field of view of a grid share anything."""
    seen = grid.to_voxel(points)
    return bool((seen.amax(0) >= -0.5).all() and (seen.amin(0) <= torch.tensor(grid.shape) - 0.5).all())
