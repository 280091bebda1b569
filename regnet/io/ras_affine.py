"""A plain matrix, fixed -> moving, in RAS millimetres: what greedy, c3d and NiftyReg call an affine map."""

from pathlib import Path

from regnet.errors import InputError
from regnet.io.fsl_affine import read_matrix, write_matrix
from regnet.spatial.affine import Affine


def read(path: Path) -> Affine:
    """Read four (2-D: three) rows of numbers.

    Raises:
        InputError: something else, or no inverse.
    """
    matrix = read_matrix(path)
    try:
        return Affine(matrix)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def write(path: Path, transform: Affine) -> None:
    """Write the matrix."""
    write_matrix(path, transform.matrix)
