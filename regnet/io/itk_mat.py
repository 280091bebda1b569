"""ITK's MATLAB files of transforms: ``.mat`` of version 4, as ANTs writes its affine maps."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.io

from regnet.errors import InputError
from regnet.io.itk import FIELD, Record

SUFFIXES = (".mat",)
_FIXED = "fixed"


def read(path: Path) -> list[Record]:
    """The transform of a file: a variable with its type's name, and ``fixed``.

    Raises:
        InputError: it is no such file, or damaged.
    """
    try:
        found = scipy.io.loadmat(path)
    except Exception as error:  # the reader of a foreign format fails in any way
        raise InputError(f"{path}: damaged, or not a MATLAB file ({' '.join(str(error).split())})") from error
    variables = {name: value for name, value in found.items() if not name.startswith("__")}
    names = [name for name in variables if name != _FIXED]
    values = [value for value in variables.values() if isinstance(value, np.ndarray) and value.dtype.kind in "fiu"]
    if len(names) != 1 or len(values) != len(variables):
        raise InputError(f"{path}: one transform and '{_FIXED}' are needed, this file holds {sorted(variables)}")
    fixed = np.asarray(variables.get(_FIXED, np.zeros(0)), dtype=np.float64).ravel()
    return [Record(names[0], np.asarray(variables[names[0]], dtype=np.float64).ravel(), fixed)]


def write(path: Path, records: Sequence[Record]) -> None:
    """Write one affine transform.

    Raises:
        ValueError: there are several, or it is a field.
    """
    if len(records) != 1 or records[0].name == FIELD:
        raise ValueError("a .mat file holds one affine map: use .nii.gz or .h5 for what deforms")
    record = records[0]
    variables = {record.kind: record.parameters[:, None], _FIXED: record.fixed[:, None]}
    with path.open("wb") as stream:
        scipy.io.savemat(stream, variables, format="4")
