"""Make the sample brains that ship in ``regnet/data/sample`` from the 1 mm originals.

Usage: ``python tools/make_sample.py SOURCE_DIR [--out regnet/data/sample]``

Every map is averaged over blocks of 2 × 2 × 2 voxels (2 mm). Tissue classes (0 none, 1 grey, 2 white) are made again
at 2 mm: Colin27's by a three-class k-means of its T1 above 20 (middle class grey, high class white), MNI152's from
its maps (grey probability above one half, then white above one half over it).
"""

import argparse
import gzip
from io import BytesIO
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

FOREGROUND = 20  # T1 values at or below are not brain
HALF = 127  # of 255: probability one half

NOTICE = """\
Sample brains of regnet, at 2 mm
================================

colin27_t1.nii.gz, colin27_tissue.nii.gz
    Colin27 T1, brain-extracted (as distributed with MRIcron, `ch2bet`): means of 2 x 2 x 2 voxels, and tissue
    classes (1 grey, 2 white matter) by k-means of these means.
mni152_t1.nii.gz, mni152_gm.nii.gz, mni152_wm.nii.gz, mni152_tissue.nii.gz
    ICBM 2009a nonlinear symmetric template (as distributed with nilearn): T1, grey and white matter probability
    (255 = 1), means of 2 x 2 x 2 voxels, and tissue classes (1 grey, 2 white matter) from the two maps.

Changes: averaged and classified as said above by tools/make_sample.py; nothing else.

Colin27 and the ICBM 2009a templates come with this notice, which applies to the files above and to anything
derived from them:

    Copyright (C) 1993-2009 Louis Collins, McConnell Brain Imaging Centre, Montreal Neurological Institute,
    McGill University. Permission to use, copy, modify, and distribute this software and its documentation for
    any purpose and without fee is hereby granted, provided that the above copyright notice appear in all copies.
    The authors and McGill University make no representations about the suitability of this software for any
    purpose. It is provided "as is" without express or implied warranty. The authors are not responsible for any
    data loss, equipment damage, property loss, or injury to subjects or patients resulting from the use or
    misuse of this software package.
"""


def block_means(volume: np.ndarray) -> np.ndarray:
    """Average blocks of 2 × 2 × 2 voxels; an odd last layer (empty here) is left out."""
    x, y, z = (n // 2 for n in volume.shape)
    blocks = volume[: 2 * x, : 2 * y, : 2 * z].reshape(x, 2, y, 2, z, 2)
    return blocks.mean(axis=(1, 3, 5), dtype=np.float64)


def coarse_affine(affine: np.ndarray) -> np.ndarray:
    """Affine of the block means: twice the step, and the first centre half a fine voxel further in."""
    coarse = affine.copy()
    coarse[:3, :3] *= 2
    coarse[:3, 3] += affine[:3, :3] @ [0.5, 0.5, 0.5]
    return coarse


def three_class_cuts(values: np.ndarray) -> tuple[float, float]:
    """Cuts between the classes of a one-dimensional three-class k-means (Lloyd, to its fixed point)."""
    low, high = values.min(), values.max()
    centres = low + (high - low) * np.array([1, 3, 5]) / 6
    while True:
        cuts = (centres[1:] + centres[:-1]) / 2
        classes = np.digitize(values, cuts)
        moved = np.array([values[classes == k].mean() for k in range(3)])
        if np.allclose(moved, centres, atol=1e-6):
            return float(cuts[0]), float(cuts[1])
        centres = moved


def tissue_from_t1(t1: np.ndarray) -> np.ndarray:
    """Tissue classes of a brain-extracted T1."""
    grey, white = three_class_cuts(t1[t1 > FOREGROUND])
    print(f"tissue cuts: grey from {grey:.1f}, white from {white:.1f}")
    return np.where(t1 > white, 2, np.where(t1 > max(grey, FOREGROUND), 1, 0)).astype(np.uint8)


def tissue_from_maps(grey: np.ndarray, white: np.ndarray) -> np.ndarray:
    """Tissue classes of two probability maps (255 = 1)."""
    return np.where(white > HALF, 2, np.where(grey > HALF, 1, 0)).astype(np.uint8)


def save(path: Path, data: np.ndarray, affine: np.ndarray) -> None:
    """Write uint8 with sform and qform; no time stamp in the gzip header, so the same input gives the same bytes."""
    image = nib.Nifti1Image(np.rint(data).astype(np.uint8), affine)
    image.set_sform(affine, code=4)
    image.set_qform(affine, code=4)
    image.header.set_xyzt_units("mm")
    buffer = BytesIO()
    with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", compresslevel=9, mtime=0) as stream:
        stream.write(image.to_bytes())
    path.write_bytes(buffer.getvalue())
    print(f"{path}: {data.shape}, {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Read the originals, write the sample and its NOTICE."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of colin27_t1.nii.gz, mni152_{t1,gm,wm}.nii.gz at 1 mm")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "regnet" / "data" / "sample")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    means = {}
    affines = {}
    for name in ("colin27_t1", "mni152_t1", "mni152_gm", "mni152_wm"):
        image: Any = nib.load(arguments.source / f"{name}.nii.gz")
        means[name] = block_means(np.asanyarray(image.dataobj))
        affines[name] = coarse_affine(image.affine)
        save(arguments.out / f"{name}.nii.gz", means[name], affines[name])
    save(arguments.out / "colin27_tissue.nii.gz", tissue_from_t1(means["colin27_t1"]), affines["colin27_t1"])
    tissue = tissue_from_maps(means["mni152_gm"], means["mni152_wm"])
    save(arguments.out / "mni152_tissue.nii.gz", tissue, affines["mni152_t1"])
    (arguments.out / "NOTICE").write_text(NOTICE, encoding="utf-8")


if __name__ == "__main__":
    main()
