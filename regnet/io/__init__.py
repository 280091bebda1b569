"""Files: images, points, transforms, checkpoints. The only package that imports nibabel and SimpleITK."""

from regnet.io.atomic import atomic_path, check_output
from regnet.io.checkpoint import read_checkpoint
from regnet.io.claim import claimed
from regnet.io.displacement import read_displacement, write_displacement
from regnet.io.image import Image, as_image, check_image, read_image, read_labels
from regnet.io.image_file import ImageFile, open_image, read_header
from regnet.io.kinds import CONVENTIONS
from regnet.io.points import Points, read_points, write_points
from regnet.io.transform import read_transform, target_of, write_transform
from regnet.io.writer import image_writer, write_image

__all__ = [
    "CONVENTIONS",
    "Image",
    "ImageFile",
    "Points",
    "as_image",
    "atomic_path",
    "check_image",
    "check_output",
    "claimed",
    "image_writer",
    "open_image",
    "read_checkpoint",
    "read_displacement",
    "read_header",
    "read_image",
    "read_labels",
    "read_points",
    "read_transform",
    "target_of",
    "write_displacement",
    "write_image",
    "write_points",
    "write_transform",
]
