"""A pair slice by slice: the windows of a page, what can be laid over the fixed image in them, and the controls."""

from regnet.report.planes import planes_of
from regnet.report.registration import Registration
from regnet.report.scale import determinants, lengths
from regnet.report.slices import as_labels, chooser, legend, pictures, style, window
from regnet.report.upright import upright

_ROOM = 3_000_000  # bytes of all pictures; where they need more (noise does), they are made smaller
_SIDES = (288, 208, 144)  # pixels of a slice's longer side
_SIDES_ALONE = (1024, 720, 512)


def sight(registration: Registration) -> tuple[str, str]:
    """Their HTML, and the CSS that holds the pictures."""
    scales = {"jacobian": determinants(), "length": lengths(_most(registration))}
    names = [*registration.labels, "mask"]
    volumes, flow, spacing = upright(
        [
            *(each.float() for each in (registration.fixed, registration.moving, registration.moved)),
            *(registration.determinant, registration.length),
            *(registration.labels[name] for name in registration.labels),
            as_labels(registration.mask),
        ],
        registration.flow,
        registration.grid,
    )
    greys = dict(zip(("fixed", "moving", "moved"), volumes, strict=False))
    colours = {"jacobian": (volumes[3], scales["jacobian"]), "length": (volumes[4], scales["length"])}
    labels = dict(zip(names, volumes[5:], strict=True))
    planes = planes_of(list(greys.values()), spacing)
    for longest in _SIDES if len(planes) > 1 else _SIDES_ALONE:
        css = "".join(style(plane, pictures(plane, greys, colours, longest)) for plane in planes)
        if len(css) <= _ROOM:
            break
    captions = {
        "jacobian": legend(scales["jacobian"], ", yellow: folds"),
        "length": legend(scales["length"], " mm"),
    }
    outline = (
        '<label><input type="checkbox" id="outlines" checked><span><kbd>c</kbd> outlines of labels: '
        '<b class="key fixed">fixed</b>, <b class="key moved">moving</b></span></label>'
        if registration.labels
        else ""
    )
    windows = "".join(window(plane, flow, labels) for plane in planes)
    html = (
        f'<section class="sight" data-layer="moved" aria-label="slices"><div class="planes">{windows}</div>'
        '<div class="controls"><label>fixed<input type="range" id="wipe" min="0" max="100" value="50" '
        'aria-label="wipe between the fixed image and the layer"><span id="layer-name">moved image</span></label>'
        f"{outline}<span class=hint><kbd>←</kbd> <kbd>→</kbd> wipe, <kbd>↑</kbd> <kbd>↓</kbd> slice, "
        f"<kbd>1</kbd>–<kbd>5</kbd> layer</span></div>{chooser(planes[0], captions)}</section>"
    )
    return html, css


def _most(registration: Registration) -> float:
    """The length of the displacement that few voxels of the mask exceed, mm."""
    values = registration.length[registration.mask]
    return float(values.kthvalue(max(1, round(0.995 * len(values)))).values) if len(values) else 0.0
