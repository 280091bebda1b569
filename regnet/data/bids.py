"""Images of a BIDS dataset or of its derivatives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from regnet.data.table import Subject
from regnet.errors import InputError

_SUFFIX = ".nii.gz"
_SAME = ("sub", "ses", "acq", "run", "space", "res")  # what an image shares with its labels and its mask


@dataclass(frozen=True)
class Bids:
    """A folder laid out as BIDS says, ``sub-01[/ses-1]/anat/sub-01_[ses-1_][entities_]T1w.nii.gz``.

    What fMRIPrep and sMRIPrep write beside an image is taken with it: ``..._dseg.nii.gz`` as labels and
    ``..._desc-brain_mask.nii.gz`` as mask, of the same subject, session, acquisition, run, space and resolution.

    Args:
        root: the dataset, or one of its ``derivatives``.
        suffix: the last word of the images' names.
        entities: what the names must hold besides, such as ``{"space": "MNI152NLin2009cAsym", "desc": "preproc"}``;
            an entity of value None must be absent.

    Source: the BIDS specification 1.9, "Common principles" and "Derivatives: Imaging".
    """

    root: str | Path
    suffix: str = "T1w"
    entities: Mapping[str, str | None] = field(default_factory=dict)

    def read(self) -> tuple[Subject, ...]:
        """The images, in the order of their names; ``group`` is the subject.

        Raises:
            InputError: no such folder, or no image.
        """
        root = Path(self.root).expanduser()
        if not root.is_dir():
            raise InputError(f"{root}: no such folder")
        files = [file for at in ("anat", "ses-*/anat") for file in root.glob(f"sub-*/{at}/sub-*{_SUFFIX}")]
        images = [file for file in sorted(files) if self._wanted(file)]
        if not images:
            told = "".join(f"{key}-{value}_" for key, value in self.entities.items() if value is not None)
            raise InputError(f"{root}: no image sub-*[/ses-*]/anat/sub-*_{told}{self.suffix}{_SUFFIX}")
        dseg = {_identity(file): file for file in files if _words(file)[1] == "dseg" and "desc" not in _words(file)[0]}
        masks = {
            _identity(file): file
            for file in files
            if _words(file)[1] == "mask" and _words(file)[0].get("desc", "brain") == "brain"
        }
        return tuple(
            Subject(
                id=file.name.removesuffix(_SUFFIX),
                image=(file,),
                labels=dseg.get(_identity(file)),
                mask=masks.get(_identity(file)),
                group=_words(file)[0]["sub"],
            )
            for file in images
        )

    def _wanted(self, file: Path) -> bool:
        entities, suffix = _words(file)
        return suffix == self.suffix and all(entities.get(key) == value for key, value in self.entities.items())


def _words(file: Path) -> tuple[dict[str, str], str]:
    """Entities and suffix of ``sub-01_space-MNI_T1w.nii.gz``."""
    *entities, suffix = file.name.removesuffix(_SUFFIX).split("_")
    return dict(word.split("-", 1) for word in entities if "-" in word), suffix


def _identity(file: Path) -> tuple[str | None, ...]:
    entities, _ = _words(file)
    return tuple(entities.get(key) for key in _SAME)
