"""What every model is: two images in, a deformation and the deformed moving image out."""

from typing import Any

import torch
from torch import Tensor, nn

from regnet import ops


class Model(nn.Module):
    """Base of all models: a subclass says in ``fields`` what the deformation is, and this class warps with it.

    No model holds a grid or another buffer of an image's size: weights trained on one size serve every other.
    """

    @property
    def regularity(self) -> tuple[float, float] | None:
        """Least and greatest regularisation weight that a conditional network was made for; None: it takes none."""
        networks: list[Any] = [part for part in self.modules() if not isinstance(part, Model)]
        return next((network.regularity for network in networks if hasattr(network, "regularity")), None)

    @property
    def probabilistic(self) -> bool:
        """Whether it draws deformations from a distribution."""
        return False

    def fields(self, moving: Tensor, fixed: Tensor, **told: Tensor) -> dict[str, Tensor]:
        """The deformation.

        Args:
            moving, fixed: ``(N, C, *spatial)``, on one grid.
            told: ``regularity`` and ``draw`` of ``forward``, where they are given.

        Returns:
            ``displacement``: ``(N, D, *spatial)`` float32, voxels, fixed to moving. And what else the model knows:
            ``velocity`` of that shape, if the displacement is its exponential; ``inverse_displacement`` of that
            shape, from moving to fixed; ``control``, ``control_spacing``, ``matrix``, ``mean``, ``log_variance``: see
            the heads.
        """
        raise NotImplementedError

    def forward(
        self,
        moving: Tensor,
        fixed: Tensor,
        view: Tensor | None = None,
        source: Tensor | None = None,
        matrix: Tensor | None = None,
        regularity: Tensor | None = None,
        draw: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Register ``moving`` to ``fixed``.

        Args:
            moving, fixed: ``(N, C, *spatial)``, prepared on one common grid.
            view: ``(N, 1, *spatial)``, 1 where the moving image was in view of that grid; ``None``: everywhere.
            source: ``(N, C + 1, *own)``, the moving image on its own voxels, and 1 where it has some (a batch is
                padded); it is deformed instead of ``moving``, so interpolated once. ``None``: ``moving`` and ``view``.
            matrix: ``(N, D, D + 1)``, voxels of the common grid -> voxels of ``source``.
            regularity: ``(N,)``, weight of the regularisation, for conditional models; ``None``: the middle of their
                range.
            draw: ``(N,)`` integers: which deformation a probabilistic model draws, for one number always the same;
                ``None``: the mean.

        Returns:
            What ``fields`` gives, with ``moving(p + u(p)) ~ fixed(p)``; ``regularity`` if it is given; ``moved`` and
            ``moved_view``: image and view warped by it, 0 out of view.

        Raises:
            ValueError: the model does not give one displacement per voxel.
        """
        shape = fixed.shape[2:]
        told = {} if regularity is None else {"regularity": regularity}
        outputs = {**self.fields(moving, fixed, **told, **({} if draw is None else {"draw": draw})), **told}
        flow = outputs["displacement"]
        if flow.shape != (fixed.shape[0], len(shape), *shape):
            raise ValueError(
                f"images of shape {tuple(fixed.shape)} need a displacement of shape "
                f"{(fixed.shape[0], len(shape), *shape)}, got {tuple(flow.shape)}"
            )
        if source is None:
            source = torch.cat([moving, torch.ones_like(moving[:, :1]) if view is None else view], dim=1)
        moved = ops.warp(source, flow, bound="replicate", extrapolate="edge", matrix=matrix)
        return {**outputs, "moved": moved[:, :-1], "moved_view": moved[:, -1:]}
