"""Files: images, transforms, checkpoints. The only package that imports nibabel."""

from regnet.io.atomic import atomic_path, check_output
from regnet.io.checkpoint import read_checkpoint
from regnet.io.displacement import read_displacement, write_displacement
from regnet.io.image import Image, as_image, check_image, read_image, read_labels, write_image
from regnet.io.kinds import CONVENTIONS
from regnet.io.transform import read_transform, target_of, write_transform

__all__ = [
    "CONVENTIONS",
    "Image",
    "as_image",
    "atomic_path",
    "check_image",
    "check_output",
    "read_checkpoint",
    "read_displacement",
    "read_image",
    "read_labels",
    "read_transform",
    "target_of",
    "write_displacement",
    "write_image",
    "write_transform",
]
