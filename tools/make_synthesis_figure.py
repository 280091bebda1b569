"""Draw the page of samples of ``docs/synthesis.md``: pairs of random shapes and of the sample tissue maps.

Usage: ``python tools/make_synthesis_figure.py [--out docs/figures]``
"""

from pathlib import Path

import matplotlib.pyplot as plt
from figures import draw_all, save

from regnet.data.datamodule import SynthesisData

COLUMNS = 4
ROWS = {"moving": "gray", "fixed": "gray", "fixed_labels": "nipy_spectral"}


def draw(path: Path) -> None:
    """Middle slices of pairs: the first columns of shapes, the others of brains."""
    figure, panels = plt.subplots(len(ROWS), 2 * COLUMNS, figsize=(12, 4.8), layout="constrained")
    spec = {"spacing": 3.0}
    columns = []
    for share, labels in ((1.0, None), (0.0, "sample")):
        pairs = SynthesisData(spec, labels, 72, pairs=COLUMNS, shapes_share=share).dataset()
        columns += [pairs[index] for index in range(COLUMNS)]
    for place, pair in enumerate(columns):
        for row, (name, colours) in enumerate(ROWS.items()):
            axes = panels[row, place]
            axes.imshow(pair[name][0, :, :, 36].mT, origin="lower", cmap=colours, vmin=0, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            if place == 0:
                axes.set_ylabel(name.replace("_", " "))
    panels[0, 0].set_title("random shapes", loc="left")
    panels[0, COLUMNS].set_title("tissue maps of the sample brains", loc="left")
    save(figure, path)


if __name__ == "__main__":
    draw_all(__doc__, {"synthesis": draw})
