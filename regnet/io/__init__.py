"""Files: images, displacement fields, checkpoints. The only package that imports nibabel."""

from regnet.io.atomic import atomic_path, check_output
from regnet.io.checkpoint import read_checkpoint
from regnet.io.displacement import read_displacement, read_transform, write_displacement, write_transform
from regnet.io.image import Image, as_image, check_image, read_image, read_labels, write_image

__all__ = [
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
    "write_displacement",
    "write_image",
    "write_transform",
]
