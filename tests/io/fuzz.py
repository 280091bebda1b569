"""Files of every kind that we read, and the ways to spoil them."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from regnet.io import (
    read_checkpoint,
    read_displacement,
    read_header,
    read_image,
    read_labels,
    read_points,
    write_displacement,
    write_image,
)
from regnet.spatial import Grid

AFFINE = np.array([[-1.2, 0.6, 0, 4], [0.9, 0.8, 0, 5], [0, 0, 2, -6], [0, 0, 0, 1]])
IMAGES = ("a.nii", "a.nii.gz", "a.mgh", "a.mgz", "a.png", "a.tif")
ITK_IMAGES = ("a.nrrd", "a.mha")
TEXTS = {
    "a.csv": "x,y,z,t,label,comment\n1.5,-2,3,0,1,here\n4,5,6.25,0,2,there\n",
    "a.txt": "1 2 3\n4 5 6\n",
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
READERS: dict[str, tuple[Callable[[Path], Any], ...]] = {
    **{name: (read_image, read_labels, read_header) for name in (*IMAGES, *ITK_IMAGES)},
    **{name: (read_points,) for name in TEXTS},
    "warp.nii.gz": (read_displacement,),
    "a.ckpt": (read_checkpoint,),
}


class Files(dict[str, bytes]):
    """Files by name; few words where a test fails."""

    def __repr__(self) -> str:
        return "Files"


def seeds(folder: Path) -> Files:
    """A sound file of every kind, by name."""
    grid, flat = Grid((5, 4, 3), torch.from_numpy(AFFINE)), Grid((6, 5), torch.diag(torch.tensor([-1.0, -2, 1])))
    for name in (*IMAGES, *ITK_IMAGES):
        place = flat if name in ("a.png", "a.tif") else grid
        write_image(folder / name, torch.arange(place.voxels).reshape(place.shape).to(torch.int16), place)
    write_displacement(folder / "warp.nii.gz", torch.ones(3, *grid.shape), grid.affine)
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    hyper = {"model": {"_target_": "x"}, "spec": {"ndim": 3}, "regnet": "0"}
    torch.save({"state_dict": {"w": torch.ones(2)}, "hyper_parameters": hyper}, folder / "a.ckpt")
    return Files({name: (folder / name).read_bytes() for name in READERS})


_EDIT = st.one_of(
    st.tuples(st.just("set"), st.floats(0, 1), st.binary(min_size=1, max_size=8)),
    st.tuples(
        st.just("set"),
        st.floats(0, 0.2),
        st.sampled_from([b"\0\0", b"\xff\xff\xff\x7f", b"\0\0\xc0\x7f", b"\x7f\xc0\0\0"]),
    ),
    st.tuples(
        st.just("put"), st.floats(0, 1), st.sampled_from([b"-", b"9" * 9, b"nan", b"\n", b",", b'"', b"\0", b"#"])
    ),
    st.tuples(st.just("cut"), st.floats(0, 1), st.integers(1, 40)),
    st.tuples(st.just("end"), st.floats(0, 1), st.none()),
)
# An edit, and whether it is made to the contents of a compressed file rather than to its bytes.
EDITS = st.lists(st.tuples(_EDIT, st.booleans()), min_size=1, max_size=4)


def spoil(content: bytes, name: str, edits: list) -> bytes:
    """A file's bytes after some edits."""
    packed = name.endswith(("gz", "mgz"))
    for (how, where, what), inside in edits:
        unpack = packed and inside
        try:
            raw = bytearray(gzip.decompress(content) if unpack else content)
        except (OSError, EOFError, ValueError, gzip.zlib.error):
            raw, unpack = bytearray(content), False
        at = int(where * len(raw))
        if how == "set":
            raw[at : at + len(what)] = what
        elif how == "put":
            raw[at:at] = what
        elif how == "cut":
            del raw[at : at + what]
        else:
            del raw[at:]
        content = gzip.compress(bytes(raw), 1) if unpack else bytes(raw)
    return content
