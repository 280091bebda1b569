"""The viewer of a page, NiiVue, and what it shows; it starts when it is asked to."""

import base64
from html import escape
from pathlib import Path

from regnet.report.page import asset
from regnet.report.registration import Registration
from regnet.report.strips import window_of
from regnet.report.volume import packed_volume

_NIIVUE = "niivue.umd.js.gz"  # from tools/fetch_niivue.sh
_FOLD_LEVELS = 64


def viewer(registration: Registration) -> str:
    """HTML of the viewer with the fixed and the moved image and the Jacobian's determinant; none for 2-D images.

    The volumes and NiiVue itself lie packed in elements that a browser does not read until the button is pressed.
    """
    if registration.grid.ndim != 3:
        return ""
    grid, moved = registration.grid, registration.moved.float()
    volumes = {
        "fixed": packed_volume(registration.fixed, grid, window_of(registration.fixed.float().numpy())),
        "moved": packed_volume(registration.moved, grid, window_of(moved.numpy())),
        "jacobian": packed_volume(registration.determinant, grid, (0.0, 2.0), _FOLD_LEVELS),
    }
    held = {"niivue": base64.b64encode((Path(__file__).parent / "assets" / _NIIVUE).read_bytes()).decode(), **volumes}
    data = "".join(f'<script type="text/plain" id="held-{name}">{text}</script>' for name, text in held.items())
    licence = escape(asset("niivue.LICENSE"))
    return (
        '<section class="viewer"><h2>All slices, and turned in space</h2>'
        '<button type="button" id="start">Open the viewer</button> <span class="sub" id="viewer-state">'
        "needs WebGL 2; drag to move through the image, scroll to change the slice</span>"
        '<div id="viewer" hidden><div class="controls"><label>over the fixed image<select id="overlay">'
        '<option value="1">moved image</option><option value="2">determinant of the Jacobian</option>'
        "</select></label>"
        '<label>opacity<input type="range" id="opacity" min="0" max="100" value="50"></label></div>'
        '<div class="canvas"><canvas id="canvas" tabindex="0" aria-label="viewer of the images"></canvas></div>'
        f"<details><summary>Licence of the viewer</summary><pre>{licence}</pre></details></div>{data}</section>"
    )
