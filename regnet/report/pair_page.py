"""The page of one registration."""

from collections.abc import Mapping
from html import escape
from typing import Any

from regnet.report.figures import figures
from regnet.report.histogram import histogram
from regnet.report.page import fold, page, settings, table
from regnet.report.registration import Registration
from regnet.report.sight import sight
from regnet.report.viewer import viewer


def pair_page(registration: Registration, meaning: Mapping[str, str], home: str = "") -> str:
    """One HTML file.

    Args:
        registration: what it is of.
        meaning: what each figure is, by its name.
        home: address of the page of all pairs, relative to this one; none where there is none.
    """
    seen, css = sight(registration)
    said = "".join(f'<li class="{each.kind}">{escape(each.text)}</li>' for each in registration.remarks())
    back = f'<nav><a href="{escape(home)}">all pairs</a></nav>' if home else ""
    body = (
        f"<main>{back}<h1>{escape(registration.name)}</h1><p class=sub>{_facts(registration)}</p>"
        f'<ul class="remarks">{said}</ul>{seen}{viewer(registration)}'
        f'<div class="columns"><section><h2>Figures</h2>{figures(registration, meaning)}</section>'
        f"<section><h2>Changes of volume</h2>{_spread(registration)}</section></div>"
        f"{_origin(registration.about)}</main>"
    )
    return page(registration.name, body, ["slices.js", "viewer.js"], css)


def _facts(registration: Registration) -> str:
    grid, about = registration.grid, registration.about
    facts = [
        f"{' × '.join(map(str, grid.shape))} voxels of {' × '.join(f'{mm:.3g}' for mm in grid.spacing)} mm",
        f"{grid.orientation}" if grid.ndim == 3 else "2-D",
    ]
    if about.get("seconds"):
        facts.append(f"registered in {about['seconds']:.1f} s")
    if about.get("version"):
        facts.append(f"regnet {about['version']}")
    return escape(" · ".join(facts))


def _spread(registration: Registration) -> str:
    determinant, length, mask = registration.determinant, registration.length, registration.mask
    most = max(1e-6, float(length.max()))
    first = histogram(determinant[mask], determinant, "determinant of the Jacobian", (-0.5, 3), 0)
    second = histogram(length[mask], length, "length of the displacement, mm", (0, most), -1)
    return (
        f"{first}<p class=sub>Below 1 a structure of the moving image was enlarged; at 0 and below the map folds. "
        "What lies beyond an end is counted there.</p>"
        f"<h2>Displacement</h2>{second}"
    )


def _origin(about: Mapping[str, Any]) -> str:
    parts = []
    if about.get("settings"):
        parts.append(fold("Settings", settings(dict(about["settings"]))))
    files = {**about.get("inputs", {}), **about.get("transforms", {})}
    if files:
        rows = [
            tuple(f"<code>{escape(str(cell))}</code>" for cell in (path, each.get("size", ""), each.get("sha256", "")))
            for path, each in files.items()
        ]
        parts.append(fold("Files", table(("file", "bytes", "SHA-256"), rows)))
    if about.get("told"):
        parts.append(fold("What the command said", f"<pre>{escape(chr(10).join(about['told']))}</pre>"))
    made = {key: about[key] for key in ("version", "torch", "status", "seconds") if key in about}
    if made:
        parts.append(fold("Versions", settings(made)))
    return f'<section class="origin"><h2>Where it comes from</h2>{"".join(parts)}</section>' if parts else ""
