"""Files of every kind that we read, and the ways to spoil them.

``python -m tests.io.fuzz SECONDS [SEED]`` spoils files for so long, and tells of each way in which a reader failed.
"""

import gzip
import json
import random
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regnet.errors import InputError
from regnet.io import (
    read_checkpoint,
    read_displacement,
    read_header,
    read_image,
    read_labels,
    read_points,
    read_transform,
    write_displacement,
    write_image,
    write_transform,
)
from regnet.spatial import Affine, Displacement, Grid, chain

AFFINE = torch.tensor([[-1.2, 0.6, 0, 4], [0.9, 0.8, 0, 5], [0, 0, 2, -6], [0, 0, 0, 1]], dtype=torch.float64)
GRID, FLAT = Grid((5, 4, 3), AFFINE), Grid((6, 5), torch.diag(torch.tensor([-1.0, -2, 1])))
IMAGES = ("a.nii", "a.nii.gz", "a.mgh", "a.mgz", "a.png", "a.tif", "a.nrrd", "a.mha")
TEXTS = {
    "a.csv": "x,y,z,t,label,comment\n1.5,-2,3,0,1,here\n4,5,6.25,0,2,there\n",
    "a.fcsv": "# Markups fiducial file version = 4.11\n# CoordinateSystem = LPS\n# columns = id,x,y,z,label\n"
    "n0,1.5,-2,3,F-1\nn1,4,5,6,F-2\n",
    "a.dat": "1.5 -2 3\n4 5 6\ninfo\nnumpoints 2\nuseRealRAS 1\n",
    "a.label": "#!ascii label  , from subject me vox2ras=scanner\n2\n-1 1.5 -2 3 0.0\n7 4 5 6 0.5\n",
    "a.json": json.dumps(
        {"data_type": "fs_pointset", "vox2ras": "scanner_ras", "points": [{"coordinates": {"x": 1, "y": 2, "z": 3}}]}
    ),
    "b.mrk.json": json.dumps(
        {"markups": [{"coordinateSystem": "LPS", "controlPoints": [{"id": "1", "position": [1.5, -2, 3]}]}]}
    ),
}
# For whom a transform is written, by name.
TRANSFORMS = {
    "t.mat": "itk",
    "t.tfm": "itk",
    "t.h5": "itk",
    "t.lta": "freesurfer",
    "t.mgz": "freesurfer",
    "fsl.mat": "fsl",
    "fsl.nii.gz": "fsl",
    "l2r.npz": "learn2reg",
    "nifty.nii.gz": "nifty",
    "spm.nii": "spm",
}
Reader = Callable[[Path], Any]
READERS: dict[str, tuple[Reader, ...]] = {
    **{name: (read_image, read_labels, read_header) for name in IMAGES},
    **{name: (read_points,) for name in TEXTS},
    **{name: (lambda path: read_transform(path, moving=GRID, fixed=GRID),) for name in TRANSFORMS},
    "warp.nii.gz": (read_displacement, read_transform),
    "a.ckpt": (read_checkpoint,),
}
_BITS = (b"\0\0", b"\xff\xff\xff\x7f", b"\0\0\xc0\x7f", b"\x7f\xc0\0\0", b"\x80", b"\0\0\0\x80")
_WORDS = (b"-", b"9" * 9, b"nan", b"\n", b",", b'"', b"\0", b"#", b" ", b"1e999")

Edit = tuple[str, float, bytes, bool]


class Files(dict[str, bytes]):
    """Files by name; few words where a test fails."""

    def __repr__(self) -> str:
        return "Files"


def seeds(folder: Path) -> Files:
    """A sound file of every kind, by name."""
    for name in IMAGES:
        place = FLAT if name in ("a.png", "a.tif") else GRID
        write_image(folder / name, torch.arange(place.voxels).reshape(place.shape).to(torch.int16), place)
    field, affine = Displacement(torch.ones(3, *GRID.shape), GRID), Affine(torch.eye(4))
    write_displacement(folder / "warp.nii.gz", field.flow, GRID.affine)
    for name, target in TRANSFORMS.items():
        kind = chain([field, affine]) if name == "t.h5" else field if name.endswith(("z", "nii")) else affine
        write_transform(folder / name, kind, GRID, target=target, moving=GRID)
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    hyper = {"model": {"_target_": "x"}, "spec": {"ndim": 3}, "regnet": "0"}
    torch.save({"state_dict": {"w": torch.ones(2)}, "hyper_parameters": hyper}, folder / "a.ckpt")
    return Files({name: (folder / name).read_bytes() for name in READERS})


def draw_edits(draw: random.Random) -> list[Edit]:
    """One to four edits: what is done, where (a share of the file), with what, and whether inside the compression."""
    edits = []
    for _ in range(draw.randint(1, 4)):
        how = draw.choice(("set", "set", "set", "put", "cut", "end"))
        where = draw.random() ** draw.choice((1, 3))  # headers come first
        what = draw.choice((*_BITS, draw.randbytes(draw.randint(1, 8)))) if how == "set" else draw.choice(_WORDS)
        edits.append((how, where, what, draw.random() < 0.7))
    return edits


def spoil(content: bytes, name: str, edits: list[Edit]) -> bytes:
    """A file's bytes after some edits."""
    for how, where, what, inside in edits:
        unpack = inside and name.endswith(("gz", "mgz"))
        try:
            raw = bytearray(gzip.decompress(content) if unpack else content)
        except (OSError, EOFError, zlib.error):
            raw, unpack = bytearray(content), False
        at = int(where * len(raw))
        if how == "set":
            raw[at : at + len(what)] = what
        elif how == "put":
            raw[at:at] = what
        elif how == "cut":
            del raw[at : at + 4 * len(what)]
        else:
            del raw[at:]
        content = gzip.compress(bytes(raw), 1) if unpack else bytes(raw)
    return content


def check(read: Reader, path: Path) -> None:
    """An answer, or one line that names the file; all else is a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of files that say less than they should
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's arithmetic: what comes of it is checked
        warnings.simplefilter("ignore", ResourceWarning)  # nibabel leaves .mgh open when it fails
        try:
            read(path)
        except InputError as error:
            assert str(path) in str(error), error
            assert "\n" not in str(error), error


def main(limit: float, seed: int) -> None:
    """Spoil files for so many seconds."""
    warnings.simplefilter("error")
    draw, count, faults = random.Random(seed), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, until = seeds(folder), time.monotonic() + limit
        while time.monotonic() < until:
            for kind, content in files.items():
                edits = draw_edits(draw)
                path = folder / f"spoiled_{kind}"
                path.write_bytes(spoil(content, kind, edits))
                count += 1
                for read in READERS[kind]:
                    try:
                        check(read, path)
                    except Exception as error:
                        where = traceback.extract_tb(error.__traceback__)[-1]
                        fault = f"{kind} {type(error).__name__} {Path(where.filename).name}:{where.lineno}"
                        if not faults[fault]:
                            print(f"{fault}: {error}\n  {edits}", flush=True)
                        faults[fault] += 1
            if count % 10_000 < len(files):
                print(f"{count} files, {sum(faults.values())} faults", flush=True)
    print(f"{count} files, {sum(faults.values())} faults")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
