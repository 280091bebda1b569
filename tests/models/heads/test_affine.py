"""Laws of the affine head."""

import pytest
import torch

from regnet import ops
from regnet.models import AffineHead
from regnet.models.heads.affine import affine_displacement, exponential, nearest_affine

from .copying import copying


def generator(ndim, batch=2):
    return 0.1 * torch.randn(batch, ndim, ndim + 1, generator=torch.Generator().manual_seed(ndim), dtype=torch.float64)


def velocity(made, centre, coarse, stride):
    """``L (p - c) + t`` at the middle of the ``stride`` voxels that each node covers."""
    at = ops.identity(coarse, dtype=torch.float64) * stride + (stride - 1) / 2
    at = at - centre.view(1, -1, *[1] * len(coarse))
    shift = made[:, :, -1].reshape(*made.shape[:2], *[1] * len(coarse))
    return torch.einsum("nij,mj...->ni...", made[:, :, :-1], at) + shift


@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("coarse", [(9,), (7, 10), (5, 4, 6)])
def test_an_affine_velocity_is_its_own_fit(coarse, stride):
    made = generator(len(coarse))
    centre = torch.tensor([(n * stride - 1) / 2 for n in coarse], dtype=torch.float64)
    found, middle = nearest_affine(velocity(made, centre, coarse, stride), stride, rigid=False)
    torch.testing.assert_close(middle, centre)
    torch.testing.assert_close(found, made)


@pytest.mark.parametrize("rigid", [False, True])
@pytest.mark.parametrize("coarse", [(7, 10), (5, 4, 6)])
def test_no_affine_velocity_is_nearer_in_the_least_squares(coarse, rigid):
    # At the minimum, the derivative along every motion that is allowed is zero.
    field = torch.randn(2, len(coarse), *coarse, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found, centre = nearest_affine(field, 2, rigid)
    found.requires_grad_()
    linear = found[:, :, :-1]
    used = torch.cat([(linear - linear.mT) / 2 if rigid else linear, found[:, :, -1:]], dim=2)
    (velocity(used, centre, coarse, 2) - field).square().sum().backward()
    assert found.grad.abs().max() < 1e-10
    if rigid:
        torch.testing.assert_close(linear, -linear.mT)


@pytest.mark.parametrize("rigid", [False, True])
@pytest.mark.parametrize("shape", [(17, 22), (9, 16, 13)])
def test_the_map_is_one_matrix_and_its_inverse_undoes_it(shape, rigid):
    ndim = len(shape)
    head = AffineHead(ndim, ndim + 1, stride=4, rigid=rigid, inverse=True)
    torch.nn.init.normal_(head.field.convolution.weight, std=0.1)
    outputs = head(torch.randn(2, ndim + 1, *(-(-n // 4) for n in shape)), shape)
    matrix = outputs["matrix"]
    torch.testing.assert_close(outputs["displacement"], affine_displacement(matrix, shape))
    there = ops.identity(shape) + outputs["inverse_displacement"]
    back = torch.einsum("nij,nj...->ni...", matrix[:, :, :-1], there)
    back = back + matrix[:, :, -1].reshape(2, ndim, *[1] * ndim)
    torch.testing.assert_close(back, ops.identity(shape).expand(2, -1, *shape), rtol=0, atol=1e-3)
    linear = matrix[:, :, :-1]
    assert (linear.det() > 0).all()
    gram = linear @ linear.mT
    assert torch.allclose(gram, torch.eye(ndim).expand(2, ndim, ndim), atol=1e-5) == rigid


def test_half_a_turn_turns_around_the_middle():
    # L = pi [[0, -1], [1, 0]] for one unit of time: p -> 2 c - p.
    half = torch.tensor([[[0.0, -torch.pi, 0.0], [torch.pi, 0.0, 0.0]]])
    matrix = exponential(half, torch.tensor([3.0, 4.0]))
    torch.testing.assert_close(matrix, torch.tensor([[[-1.0, 0.0, 6.0], [0.0, -1.0, 8.0]]]), rtol=0, atol=1e-5)


def test_a_shift_is_counted_in_voxels_of_the_images():
    head = AffineHead(2, 3, stride=8)
    head.field.convolution.weight.data.zero_()
    head.field.convolution.bias.data = torch.tensor([0.5, -0.25])
    field = head(torch.rand(1, 3, 3, 2), (20, 13))["displacement"]
    torch.testing.assert_close(field, torch.tensor([4.0, -2.0]).view(1, 2, 1, 1).expand(1, 2, 20, 13))


def test_one_node_along_an_axis_only_shifts():
    head = AffineHead(2, 2, stride=8)
    head = copying(head, head.field)
    matrix = head(torch.ones(1, 2, 1, 1), (5, 8))["matrix"]
    torch.testing.assert_close(matrix, torch.tensor([[[1.0, 0.0, 8.0], [0.0, 1.0, 8.0]]]))


def test_gradients_are_those_of_finite_differences():
    def matrix(field):
        made, centre = nearest_affine(field, 2, rigid=True)
        return exponential(made, centre)

    field = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(matrix, (field,), rtol=1e-6, atol=1e-8)


def test_features_of_another_stride_are_refused():
    with pytest.raises(ValueError, match="at stride 8: expected"):
        AffineHead(2, 3, 8)(torch.zeros(1, 3, 8, 8), (16, 16))
