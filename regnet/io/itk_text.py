"""ITK's text files of transforms: ``.txt`` and ``.tfm``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regnet.errors import InputError
from regnet.io.itk import COMPOSITE, FIELD, Record

SUFFIXES = (".txt", ".tfm")
FIRST_LINE = "#Insight Transform File V1.0"


def read(path: Path) -> list[Record]:
    """The transforms of a file.

    Raises:
        InputError: it is no such file, or damaged.
    """
    records: list[Record] = []
    kind, numbers = None, np.zeros(0)
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "Transform":
                kind = value.strip()
                if kind.startswith(COMPOSITE):
                    records.append(Record(kind, np.zeros(0), np.zeros(0)))
            elif key.strip() == "Parameters":
                numbers = np.array(value.split(), dtype=np.float64)
            elif key.strip() == "FixedParameters" and kind is not None:
                records.append(Record(kind, numbers, np.array(value.split(), dtype=np.float64)))
                kind = None
    except ValueError as error:
        raise InputError(f"{path}: damaged, or not a text file of ITK's ({' '.join(str(error).split())})") from error
    if kind is not None and not kind.startswith(COMPOSITE):
        raise InputError(f"{path}: ends within the transform {kind}")
    return records


def write(path: Path, records: Sequence[Record]) -> None:
    """Write transforms; several of them as a composite.

    Raises:
        ValueError: one of them is a field.
    """
    if any(record.name == FIELD for record in records):
        raise ValueError("a displacement field is not written as text: use .nii.gz or .h5")
    if len(records) > 1:
        ndim = records[0].ndim
        records = [Record(f"{COMPOSITE}_double_{ndim}_{ndim}", np.zeros(0), np.zeros(0)), *records]
    lines = [FIRST_LINE]
    for number, record in enumerate(records):
        lines += [f"#Transform {number}", f"Transform: {record.kind}"]
        if record.name != COMPOSITE:
            lines += [f"{key}: {_words(values)}" for key, values in _numbers(record)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _numbers(record: Record) -> list[tuple[str, np.ndarray]]:
    return [("Parameters", record.parameters), ("FixedParameters", record.fixed)]


def _words(values: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in values)
