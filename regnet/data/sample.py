"""The two brains that ship with regnet (see ``sample/NOTICE``)."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "sample"


def sample_names() -> tuple[str, ...]:
    """Names of the shipped files, without ``.nii.gz``."""
    return tuple(sorted(path.name.removesuffix(".nii.gz") for path in _FOLDER.glob("*.nii.gz")))


def sample_path(name: str) -> Path:
    """Path of a shipped image.

    Args:
        name: ``colin27_t1``, ``colin27_tissue``, ``mni152_t1``, ``mni152_gm``, ``mni152_wm`` or ``mni152_tissue``;
            2 mm, the brains have different shapes and affines. Tissue: 1 grey, 2 white matter.

    Raises:
        ValueError: there is no such image.
    """
    path = _FOLDER / f"{name}.nii.gz"
    if not path.is_file():
        raise ValueError(f"no sample image {name!r}; there are {', '.join(sample_names())}")
    return path
