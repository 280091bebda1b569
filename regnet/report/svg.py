"""Matplotlib figures as SVG to put into a page."""

import io
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#2b6cb0", "#c05621", "#a0aec0"


def figure(width: float, height: float) -> tuple[Figure, Any]:
    """A figure of so many inches with axes on two sides."""
    made = Figure(figsize=(width, height), layout="constrained")
    axes = made.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return made, axes


def svg(made: Figure) -> str:
    """It as SVG, with a transparent background and text as text."""
    written = io.StringIO()
    made.patch.set_alpha(0)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "regnet", "font.size": 9}):
        FigureCanvasSVG(made).print_svg(written, metadata={"Date": None})
    return "<svg" + written.getvalue().partition("<svg")[2]
