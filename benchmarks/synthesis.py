"""A synthetic pair of a label map beside one made by the functions of voxelmorph and neurite (0.3.4): seconds.

Usage: ``python benchmarks/synthesis.py [--shape 96 96 96] [--threads 1 2] [--repeats 5]``

Both get one label map of 16 random shapes in a ball, bend it twice (an integrated velocity, five squarings there and
four here on half the grid) and paint both images: a grey value and a texture a label, blur, bias, gamma and noise.
The two packages have no ready generator in torch, so theirs is put together here of their functions, as SynthMorph
does it. Ours also poses, puts shells and blobs around the map, makes thick slices, crops, and knows the true field.
The figure is ours over theirs: it must be at most 0.5.
"""

import argparse
import warnings

import torch
from rich.console import Console
from rich.table import Table
from timing import seconds
from torch import Tensor

from regnet.data.label_pairs import LabelRecipe, pair_of_labels
from regnet.data.shapes import random_body, random_shapes
from regnet.data.synthesis import generator_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import neurite
    import voxelmorph

SPACING = 2.0
SHAPES = 16


def main() -> None:
    """Time both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(96, 96, 96))
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    generator = generator_of(0)
    labels = (random_shapes(args.shape, SHAPES, 12.0, generator) + 1) * random_body(args.shape, generator)
    calls = {
        "regnet": lambda: pair_of_labels(labels, labels, SPACING, LabelRecipe(), generator),
        "voxelmorph and neurite": lambda: peer(labels),
    }
    times = seconds({(name, n): call for n in args.threads for name, call in calls.items()}, args.repeats)
    table = Table("threads", *calls, "ours over theirs")
    for n in args.threads:
        own, other = (times[name, n] for name in calls)
        table.add_row(str(n), f"{own:.3f} s", f"{other:.3f} s", f"{own / other:.2f}")
    Console().print(table)


def peer(labels: Tensor) -> list[Tensor]:
    """Two images, as theirs make them."""
    pair = []
    for _ in range(2):
        field = voxelmorph.functional.random_transform(
            labels.shape[2:], affine_probability=0.0, warp_integrations=5, voxsize=SPACING
        )
        bent = voxelmorph.functional.spatial_transform(labels[0, 0].float(), field, mode="nearest")
        image = neurite.sample_image_from_labels(bent, noise_std=0.1)
        image = neurite.gaussian_smoothing(image, 0.5, method="separable")
        bias = neurite.fractal_noise(image.shape, scales=30, magnitude=0.3, method="upsample")
        image = (image * bias.exp()).clamp(0, 1) ** 1.2
        pair.append((image + 0.03 * torch.randn_like(image)).clamp(0, 1))
    return pair


if __name__ == "__main__":
    main()
