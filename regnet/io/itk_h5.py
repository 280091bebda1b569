"""ITK's HDF5 files of transforms: ``.h5`` and ``.hdf5``, composite or single."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from regnet.errors import InputError
from regnet.io.itk import COMPOSITE, FIELD, Record

SUFFIXES = (".h5", ".hdf5")
_GROUP = "TransformGroup"
_KIND = "TransformType"
# ITK up to 4.x misspelt its names.
_PARAMETERS = ("TransformParameters", "TranformParameters")
_FIXED = ("TransformFixedParameters", "TranformFixedParameters")
_RATIO = 1100  # HDF5's compression does no better: a file that claims more is damaged
# Damaged words can make HDF5 turn in circles for ever, where nothing stops it but the end of its process.
_SECONDS = 15
_TRY = f"import h5py, sys; [g[{_KIND!r}][()] for g in h5py.File(sys.argv[1])[{_GROUP!r}].values() if {_KIND!r} in g]"


def read(path: Path) -> list[Record]:
    """The transforms of a file, in its order.

    Raises:
        InputError: it is no such file, or damaged.
    """
    try:
        subprocess.run([sys.executable, "-c", _TRY, str(path)], timeout=_SECONDS, capture_output=True, check=False)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{path}: damaged (HDF5 finds no end of its words)") from error
    try:
        with h5py.File(path, "r") as file:
            group = file[_GROUP]
            return [_record(group[key]) for key in sorted(group, key=int)]
    except MemoryError as error:
        raise InputError(f"{path}: its numbers do not fit into memory") from error
    except Exception as error:  # damaged files make the library fail in any way
        raise InputError(f"{path}: damaged, or no transform of ITK's ({' '.join(str(error).split())})") from error


def write(path: Path, records: Sequence[Record]) -> None:
    """Write transforms as a composite. Fields are kept as compressed float32."""
    ndim = records[0].ndim
    text = h5py.string_dtype("ascii")
    composite = Record(f"{COMPOSITE}_double_{ndim}_{ndim}", np.zeros(0), np.zeros(0))
    with h5py.File(path, "w") as file:
        for number, record in enumerate([composite, *records]):
            group = file.create_group(f"{_GROUP}/{number}")
            group.create_dataset(_KIND, data=np.array([record.kind], dtype=object), dtype=text)
            if record.name == COMPOSITE:
                continue
            packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if record.name == FIELD else {}
            group.create_dataset(_PARAMETERS[0], data=record.parameters, **packed)
            group.create_dataset(_FIXED[0], data=np.asarray(record.fixed, dtype=np.float64))


def _record(group: h5py.Group) -> Record:
    if group[_KIND].size != 1:  # any number of words may be claimed, and would be made
        raise ValueError(f"{_KIND} of {group[_KIND].size} words, one is needed")
    kind = np.asarray(group[_KIND]).ravel()[0]
    kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
    if kind.startswith(COMPOSITE):
        return Record(kind, np.zeros(0), np.zeros(0))
    return Record(kind, _numbers(group, _PARAMETERS), _numbers(group, _FIXED))


def _numbers(group: h5py.Group, names: tuple[str, ...]) -> np.ndarray:
    for name in names:
        if name in group:
            stored = group[name]
            if stored.dtype.kind not in "fiu" or stored.nbytes > _RATIO * stored.id.get_storage_size():
                raise ValueError(f"{name} of {stored.size} {stored.dtype} that are not there")
            return np.asarray(stored).ravel()
    raise ValueError(f"without {names[0]}")
