"""What is compared with what, on which sizes, and what is wanted of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import peers
import torch
from timing import Call, backward
from torch import Tensor

from regnet import ops


@dataclass(frozen=True)
class Peer:
    """Somebody else's way of doing the same."""

    name: str
    make: Callable[[], Call]  # ImportError where the peer is not installed
    goals: Mapping[int, tuple[float, float]] = field(default_factory=dict)  # threads: (must, aim)
    threads: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Comparison:
    """One operation: our call and the peers'.

    ``goals`` of the peers are times faster; of calls that do next to nothing, ``overhead``, times as long at most.
    """

    operation: str
    size: Sequence[int]
    ours: Call
    peers: Sequence[Peer]
    repeats: int = 5
    calls: int = 1  # that one Call makes
    overhead: bool = False


@dataclass(frozen=True)
class Sizes:
    """Of the volumes, of the one that slow peers get, of the velocity field and of the lattice's field."""

    volumes: Sequence[Sequence[int]] = ((128, 128, 128), (160, 192, 224))
    slow: Sequence[int] = (128, 128, 128)
    velocity: Sequence[int] = (96, 112, 96)
    lattice: Sequence[int] = (160, 192, 224)


QUICK = Sizes(volumes=((14, 12, 13),), slow=(14, 12, 13), velocity=(12, 14, 13), lattice=(16, 12, 20))
TORCH = "torch grid_sample"
SPACING, STEPS, LABELS = 4, 7, 32


def comparisons(sizes: Sizes) -> Iterator[Comparison]:
    """All of them, made one after the other, so that their tensors do not pile up."""
    for size in sizes.volumes:
        for channels in (1, 3):
            yield from sampling(size, channels)
    yield from warps(sizes.slow)
    yield slow_gradients(sizes.slow)
    for size in sizes.volumes:
        yield prefilter(size, slow=size == sizes.slow)
    yield from integrate(sizes.velocity)
    yield from ffd(sizes.lattice)
    yield from labels(sizes.slow)
    yield one_call()


def problem(size: Sequence[int], channels: int = 1) -> tuple[Tensor, Tensor]:
    """An image of noise and a field of a few voxels, one sine a channel, each along another axis."""
    image = torch.randn(1, channels, *size, generator=torch.Generator().manual_seed(0))
    p = ops.identity(size)
    return image, torch.cat([3 * torch.sin(0.1 * p[:, (d + 1) % 3, None]) + 0.3 for d in range(3)], 1)


def leaves(*tensors: Tensor) -> list[Tensor]:
    """Copies that need gradients."""
    return [t.clone().requires_grad_() for t in tensors]


def sampling(size: Sequence[int], channels: int) -> Iterator[Comparison]:
    """Pull, its gradients and push against ``grid_sample``, whose normalised grid is ready made."""
    image, flow = problem(size, channels)
    coords = ops.identity(size) + flow
    grid = peers.normalised(coords)

    def forward(goals: Mapping[int, tuple[float, float]]) -> list[Peer]:
        return [Peer(TORCH, lambda: peers.grid_sample(image, grid), goals)]

    name = f"C={channels}"
    yield Comparison(f"pull, order 1, {name}", size, lambda: ops.pull(image, coords), forward({1: (3, 4), 2: (6, 8)}))
    yield Comparison(
        f"pull, order 3 (theirs 1), {name}",
        size,
        lambda: ops.pull(image, coords, 3),
        forward({1: (1, 1.5), 2: (2, 3)}),
    )
    x, c, g = leaves(image, coords, grid)
    yield Comparison(
        f"both gradients, order 1, {name}",
        size,
        backward(ops.pull(x, c), (x, c)),
        [Peer(TORCH, lambda: backward(peers.grid_sample(x, g)(), (x, g)), {1: (1.5, 2.5), 2: (3, 5)})],
    )
    yield Comparison(
        f"push, order 1, {name}",
        size,
        lambda: ops.push(image, coords, size),
        [Peer(f"{TORCH}, gradient of input", lambda: backward(peers.grid_sample(x, grid)(), (x,)), {2: (2, 4)})],
    )


def warps(size: Sequence[int]) -> Iterator[Comparison]:
    """From image and displacement to the warped image, with all that this takes."""
    image, flow = problem(size)
    yield Comparison(
        "warp, order 1",
        size,
        lambda: ops.warp(image, flow),
        [
            Peer("monai Warp", lambda: peers.monai_warp(image, flow)),
            Peer("SimpleITK", lambda: peers.simpleitk_warp(image, flow, 1)),
        ],
    )
    yield Comparison(
        "warp, order 3, prefilter included",
        size,
        lambda: ops.warp(image, flow, 3),
        [Peer("SimpleITK", lambda: peers.simpleitk_warp(image, flow, 3))],
        repeats=3,
    )


def slow_gradients(size: Sequence[int]) -> Comparison:
    """Gradients of order 3 against torch-interpol, which takes many seconds."""
    image, flow = problem(size)
    coords = ops.identity(size) + flow
    x, c, g = leaves(image, coords, coords.movedim(1, -1).contiguous())
    return Comparison(
        "both gradients, order 3",
        size,
        backward(ops.pull(x, c, 3), (x, c)),
        [
            Peer(
                "torch-interpol",
                lambda: backward(peers.interpol_pull(x, g, 3)(), (x, g)),
                goals={2: (25, 40)},
                threads=(2,),
            )
        ],
        repeats=2,
    )


def prefilter(size: Sequence[int], slow: bool) -> Comparison:
    """Spline coefficients, of order 3; torch-interpol where slow peers have their turn."""
    image, _ = problem(size)
    theirs = [Peer("scipy", lambda: peers.scipy_prefilter(image, 3), {1: (2, 4)}, threads=(1,))]
    if slow:
        theirs.append(Peer("torch-interpol", lambda: peers.interpol_prefilter(image, 3), {2: (2, 4)}))
    return Comparison("prefilter, order 3", size, lambda: ops.prefilter(image, 3), theirs)


def integrate(size: Sequence[int]) -> Iterator[Comparison]:
    """Scaling and squaring, and its backward pass."""
    _, velocity = problem(size)
    (v,) = leaves(velocity)
    yield Comparison(
        f"integrate, {STEPS} steps",
        size,
        lambda: ops.integrate(velocity, STEPS),
        [
            Peer("voxelmorph", lambda: peers.voxelmorph_integrate(velocity, STEPS), {2: (6, 8)}),
            Peer("monai", lambda: peers.monai_integrate(velocity, STEPS), threads=(2,)),
        ],
        repeats=3,
    )
    yield Comparison(
        f"integrate, {STEPS} steps, backward",
        size,
        backward(ops.integrate(v, STEPS), (v,)),
        [
            Peer("voxelmorph", lambda: backward(peers.voxelmorph_integrate(v, STEPS)(), (v,)), {2: (4, 6)}),
            Peer("monai", lambda: backward(peers.monai_integrate(v, STEPS)(), (v,)), threads=(2,)),
        ],
        repeats=3,
    )


def ffd(size: Sequence[int]) -> Iterator[Comparison]:
    """A lattice of control points to a dense field, and back."""
    points = [(n - 1) // SPACING + 4 for n in size]
    control = torch.randn(1, 3, *points, generator=torch.Generator().manual_seed(0))
    (c,) = leaves(control)
    goals = {2: (2, 4)}

    def convolution(lattice: Tensor, separable: bool) -> Callable[[], Tensor]:
        return peers.transposed_convolution(lattice, size, SPACING, separable)

    yield Comparison(
        f"ffd, spacing {SPACING}",
        size,
        lambda: ops.ffd(control, size, SPACING),
        [
            Peer("torch transposed convolution, by axis", lambda: convolution(control, True), goals),
            Peer("torch transposed convolution, dense", lambda: convolution(control, False), goals, threads=(2,)),
        ],
        repeats=3,
    )
    yield Comparison(
        f"ffd, spacing {SPACING}, backward",
        size,
        backward(ops.ffd(c, size, SPACING), (c,)),
        [
            Peer("torch transposed convolution, by axis", lambda: backward(convolution(c, True)(), (c,)), goals),
            Peer("torch transposed convolution, dense", lambda: backward(convolution(c, False)(), (c,)), goals),
        ],
        repeats=3,
    )


def labels(size: Sequence[int]) -> Iterator[Comparison]:
    """A map of many labels, in blocks."""
    _, flow = problem(size)
    grid = peers.normalised(ops.identity(size) + flow)
    blocks = (ops.identity(size) / 8).floor().sum(1, keepdim=True) % LABELS
    label_map = blocks.to(torch.int16)
    yield Comparison(
        f"warp_labels, linear, {LABELS} labels",
        size,
        lambda: ops.warp_labels(label_map, flow, "linear"),
        [Peer(f"{TORCH} of one-hots", lambda: peers.one_hot_labels(label_map, grid))],
        repeats=3,
    )
    yield Comparison(
        f"warp_labels, nearest, {LABELS} labels",
        size,
        lambda: ops.warp_labels(label_map, flow, "nearest"),
        [Peer(f"{TORCH}, nearest", lambda: peers.nearest_labels(label_map, grid))],
    )


def one_call() -> Comparison:
    """What a call costs before it computes: one on a volume of 8 x 8 x 8."""
    size, calls = (8, 8, 8), 200
    image, flow = problem(size)
    coords = ops.identity(size) + flow
    theirs = peers.grid_sample(image, peers.normalised(coords))

    def many(call: Call) -> Call:
        return lambda: [call() for _ in range(calls)]

    return Comparison(
        "one call of pull, order 1",
        size,
        many(lambda: ops.pull(image, coords)),
        [Peer(TORCH, lambda: many(theirs), goals={1: (8, 5)}, threads=(1,))],
        calls=calls,
        overhead=True,
    )
