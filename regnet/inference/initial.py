"""What comes before the deformation: where the headers, a file or the affine stage put the moving image."""

from regnet.data.prepare import place
from regnet.data.spec import InputSpec
from regnet.inference.affine import Aligner
from regnet.inference.preflight import check_overlap, warn_of_orientation, warn_of_turn
from regnet.io.image import Image
from regnet.spatial.affine import Affine
from regnet.spatial.transform import Transform

INITS = ("auto", "none", "centre", "moments", "rigid", "affine")


def check_init(init: str, start: Transform | None) -> None:
    """Refuse what cannot be started with.

    Raises:
        ValueError: an unknown init, or a start that is not affine or leaves the init nothing to do.
    """
    if init not in INITS:
        raise ValueError(f"init must be one of {', '.join(INITS)}, got {init!r}")
    if start is not None and not isinstance(start, Affine):
        raise ValueError("the initial transform must be an affine map; this one deforms")
    if start is not None and init in ("centre", "moments"):
        raise ValueError(f"an initial transform leaves nothing for init={init} to do: use none, rigid or affine")


def initial(
    moving: Image,
    fixed: Image,
    init: str,
    spec: InputSpec | None,
    start: Affine | None = None,
    moving_mask: Image | None = None,
    fixed_mask: Image | None = None,
    seed: int = 0,
) -> Affine:
    """The affine map that the deformation starts from; warns where the images fit better mirrored or turned.

    Args:
        moving, fixed: the images.
        init: one of :data:`INITS`. ``auto``: none where the headers overlap and the network was trained on images that
            lie over each other, or where there is a start; else affine.
        spec: what the network expects; None: there is no network.
        start: an affine map to begin with.
        moving_mask, fixed_mask: what counts.
        seed: of the samples drawn.

    Returns:
        The map, fixed -> moving.

    Raises:
        InputError: the images then do not overlap.
    """
    if init == "auto":
        aligned = spec is not None and not spec.affine_first and moving.grid.overlaps(fixed.grid)
        init = "none" if aligned or start is not None else "affine"
    aligner = Aligner(moving, fixed, moving_mask, fixed_mask, seed=seed)
    found = (start or Affine.identity(fixed.grid.ndim)) if init == "none" else aligner.align(init, start)
    check_overlap(place(moving, found), fixed, init)
    warn_of_orientation(aligner, moving, fixed, found)
    if init != "none":
        warn_of_turn(moving, fixed, found)
    return found
