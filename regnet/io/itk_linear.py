"""The matrices that ITK's linear transforms make of their parameters, by its Software Guide."""

import math

import numpy as np


def matrix_of(
    name: str, ndim: int, parameters: np.ndarray, fixed_parameters: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a class of ITK's does: ``y = matrix (x - centre) + centre + shift``.

    Args:
        name: of the class, such as ``Euler3DTransform``.
        ndim: of its space.
        parameters, fixed_parameters: as it keeps them.

    Returns:
        Matrix ``(D, D)``, shift ``(D,)`` and centre ``(D,)``.

    Raises:
        ValueError: another class, or another number of parameters.
    """
    p = np.asarray(parameters, dtype=np.float64)
    fixed = np.asarray(fixed_parameters, dtype=np.float64)
    none, unit = np.zeros(ndim), np.eye(ndim)
    centre = fixed[:ndim] if fixed.size >= ndim else none
    lengths = {
        "AffineTransform": ndim * (ndim + 1),
        "MatrixOffsetTransformBase": ndim * (ndim + 1),
        "TranslationTransform": ndim,
        "ScaleTransform": ndim,
        "IdentityTransform": p.size,
        "Euler2DTransform": 3,
        "Rigid2DTransform": 3,
        "Similarity2DTransform": 4,
        "Euler3DTransform": 6,
        "VersorTransform": 3,
        "VersorRigid3DTransform": 6,
        "Similarity3DTransform": 7,
    }
    if name not in lengths:
        raise ValueError(f"transforms of the kind {name!r} are not known here; those of a field or a matrix are")
    if p.size != lengths[name]:
        raise ValueError(f"{name} needs {lengths[name]} parameters, got {p.size}")
    if name in ("AffineTransform", "MatrixOffsetTransformBase"):
        return p[: ndim * ndim].reshape(ndim, ndim), p[ndim * ndim :], centre
    if name == "TranslationTransform":
        return unit, p, none
    if name == "ScaleTransform":
        return np.diag(p), none, centre
    if name in ("Euler2DTransform", "Rigid2DTransform"):
        return _turn(2, 0, 1, p[0]), p[1:], centre
    if name == "Similarity2DTransform":
        return p[0] * _turn(2, 0, 1, p[1]), p[2:], centre
    if name == "Euler3DTransform":
        about_x, about_y, about_z = _turn(3, 1, 2, p[0]), _turn(3, 2, 0, p[1]), _turn(3, 0, 1, p[2])
        y_last = fixed.size > 3 and fixed[3] != 0
        return about_z @ (about_y @ about_x if y_last else about_x @ about_y), p[3:], centre
    if name == "IdentityTransform":
        return unit, none, none
    scale = p[6] if name == "Similarity3DTransform" else 1.0
    return scale * _versor(p[:3]), p[3:6] if p.size > 3 else none, centre


def _turn(ndim: int, a: int, b: int, angle: float) -> np.ndarray:
    """The rotation of axis ``a`` towards axis ``b``."""
    turn = np.eye(ndim)
    turn[a, a] = turn[b, b] = math.cos(angle)
    turn[b, a], turn[a, b] = math.sin(angle), -math.sin(angle)
    return turn


def _versor(v: np.ndarray) -> np.ndarray:
    """The rotation of a unit quaternion given by its vector part."""
    x, y, z = v
    w = math.sqrt(max(0.0, 1.0 - float(v @ v)))
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross
