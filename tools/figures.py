"""What the scripts that draw the figures of ``docs/`` share: the command line, the style, the same bytes every time."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib.pyplot as plt


def draw_all(about: str | None, drawings: Mapping[str, Callable[[Path], None]]) -> None:
    """Draw each figure as ``NAME.svg`` in the folder that the command names."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder; default: docs/figures")
    args = parser.parse_args()
    plt.switch_backend("svg")
    plt.rcParams.update({"svg.hashsalt": "regnet", "svg.fonttype": "none", "font.family": "sans-serif"})
    args.out.mkdir(parents=True, exist_ok=True)
    for name, draw in drawings.items():
        draw(args.out / f"{name}.svg")


def save(figure: plt.Figure, path: Path) -> None:
    """The same bytes every time."""
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
