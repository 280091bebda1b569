"""The part of a page that shows a pair slice by slice: HTML and the CSS that holds its pictures."""

from collections.abc import Mapping
from html import escape

import torch
from torch import Tensor

from regnet.report.lattice import lattice
from regnet.report.planes import Plane
from regnet.report.scale import Scale
from regnet.report.strips import coloured, grey, outlines, window_of

LAYERS = {
    "moved": "moved image",
    "moving": "moving image as it lay",
    "grid": "fixed grid in the moving image",
    "jacobian": "determinant of the Jacobian",
    "length": "length of the displacement",
}
"""What may lie over the fixed image, by its key in the page."""


def pictures(
    plane: Plane, greys: Mapping[str, Tensor], colours: Mapping[str, tuple[Tensor, Scale]], longest: int
) -> dict[str, str]:
    """Data URIs of a plane's slices, by what they show.

    Args:
        plane: which slices.
        greys: ``fixed``, ``moving`` and ``moved``, upright. The last two are one image, so they share black and white.
        colours: other volumes and their colours.
        longest: pixels of a slice's longer side, at most.
    """
    cut = {name: plane.cut(volume) for name, volume in greys.items()}
    own, shared = window_of(cut["fixed"]), window_of(cut["moving"], cut["moved"])
    found = {name: grey(slices, own if name == "fixed" else shared, longest) for name, slices in cut.items()}
    return found | {name: coloured(plane.cut(volume), scale, longest) for name, (volume, scale) in colours.items()}


def style(plane: Plane, uris: Mapping[str, str]) -> str:
    """CSS that gives each picture of a plane its image, once however often it is shown."""
    return "".join(f".{plane.name} i.{name}{{background-image:url({uri})}}" for name, uri in uris.items())


def window(plane: Plane, field: Tensor, labels: Mapping[str, Tensor]) -> str:
    """A plane's window: the fixed image, over its right part a layer, over both the outlines of labels.

    Args:
        plane: which slices.
        field: upright, voxels.
        labels: upright label maps; the names are classes: ``fixed``, ``moving``, ``moved``, ``mask``.
    """
    count = len(plane.at)
    right = "".join(f'<i class="{name}"></i>' for name in LAYERS if name != "grid")
    lines = film(plane, f'<g id="lines-{plane.name}">{lattice(plane, field)}</g>', "lines")
    paths = "".join(
        film(plane, f'<path transform="scale(.5)" d="{outlines(plane.cut(volume))}"/>', f"outline {name}")
        for name, volume in labels.items()
    )
    letters = "".join(
        f'<b class="edge {side}">{letter}</b>'
        for side, letter in zip(("left", "right", "low", "high"), plane.edges, strict=False)
    )
    slider = (
        f'<label>slice<input type="range" class="slice" min="0" max="{count - 1}" value="{count // 2}" '
        f'aria-label="{plane.name} slice"></label>'
        if count > 1
        else ""
    )
    name = escape(plane.name)
    return (
        f'<figure class="plane {name}" style="--n:{count};--k:{count // 2};flex-grow:{plane.size[0]:g}">'
        f'<div class="stage" style="aspect-ratio:{plane.size[0]:g}/{plane.size[1]:g}" role="img" '
        f'aria-label="{name}: fixed image on the left, another layer on the right of the wipe">'
        f'<div class="view"><i class="fixed"></i></div><div class="view over">{right}{lines}</div>'
        f'<div class="view outlines">{paths}</div>{letters}<s class="bar"></s></div>'
        f"<figcaption>{name}{slider}</figcaption></figure>"
    )


def film(plane: Plane, content: str, kind: str) -> str:
    """SVG as high as all slices, in voxels of the strip."""
    width, height = plane.shape
    box = f"0 0 {width} {height * len(plane.at)}"
    return f'<svg class="{kind}" viewBox="{box}" preserveAspectRatio="none" aria-hidden="true">{content}</svg>'


def chooser(plane: Plane, captions: Mapping[str, str]) -> str:
    """Buttons, each with a small picture of its layer; the first is chosen."""
    buttons = []
    for number, (layer, title) in enumerate(LAYERS.items(), start=1):
        picture = f'<i class="{layer}"></i>'
        if layer == "grid":
            picture = '<i class="moving"></i>' + film(plane, f'<use href="#lines-{plane.name}"/>', "lines")
        buttons.append(
            f'<button type="button" class="layer" data-layer="{layer}" data-name="{title}" '
            f'aria-pressed="{"true" if number == 1 else "false"}">'
            f'<span class="thumb {plane.name}" style="--n:{len(plane.at)};--k:{len(plane.at) // 2};'
            f'aspect-ratio:{plane.size[0]:g}/{plane.size[1]:g}">{picture}</span>'
            f"<span><kbd>{number}</kbd> {title}<small>{captions.get(layer, '')}</small></span></button>"
        )
    return f'<div class="layers" role="group" aria-label="what lies over the fixed image">{"".join(buttons)}</div>'


def legend(scale: Scale, unit: str) -> str:
    """A bar of colours with its ends."""
    ends = f"{scale.low:.3g} … {scale.high:.3g}{unit}"
    return f'<em class="scale"><u style="background:{scale.css()}"></u>{escape(ends)}</em>'


def as_labels(mask: Tensor) -> Tensor:
    """A mask as a label map."""
    return mask.to(torch.int16)
