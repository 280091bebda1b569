"""The page of a training run."""

import io
from collections.abc import Mapping, Sequence
from html import escape

import PIL.Image

from regnet.report.curves import loss_curves, measure_curves
from regnet.report.log import Log
from regnet.report.page import fold, page, settings, table
from regnet.report.strips import data_uri

_WIDTH = 1800  # pixels of a picture


def run_page(
    name: str,
    log: Log,
    panels: Sequence[tuple[int, bytes]],
    metrics: Mapping[str, float],
    config: str,
    environment: Mapping[str, object],
    commands: Mapping[str, str],
) -> str:
    """One HTML file.

    Args:
        name: of the run.
        log: its curves.
        panels: pictures of a validation pair, by step.
        metrics: what its best weights came to; empty of a run that has not ended.
        config: its resolved configuration, YAML.
        environment: what it was made with.
        commands: how to use it and how to make it again: what it is for, and the words.
    """
    epochs = max((max(at) for at, _ in log.curves.values()), default=0)
    state = "ended" if metrics else "has not ended yet, or was cut off"
    facts = [f"{epochs:.0f} epochs", state]
    if "seconds" in metrics:
        facts.append(f"{metrics['seconds']:.0f} s of training")
    shown = [
        (f"<code>{escape(key)}</code>", f"{value:.5g}")
        for key, value in metrics.items()
        if not key.startswith("val/weighted/") and key != "seconds"
    ]
    best = f"<section><h2>The best weights, on the validation pairs</h2>{table(('', ''), shown)}</section>"
    words = "".join(f"<p class=sub>{escape(what)}</p><pre>{escape(line)}</pre>" for what, line in commands.items())
    measures = measure_curves(log)
    body = (
        f'<main><h1>{escape(name)}</h1><p class="sub">{escape(" · ".join(facts))}</p>'
        f"<h2>Loss</h2>{loss_curves(log)}"
        + (f"<h2>Validation</h2>{measures}" if measures else "")
        + _panels(panels)
        + f'<div class="columns">{best if shown else ""}<section><h2>Again</h2>{words}</section></div>'
        f"<section><h2>Where it comes from</h2>{fold('Configuration, resolved', f'<pre>{escape(config)}</pre>')}"
        f"{fold('Environment', settings(dict(environment)))}</section></main>"
    )
    return page(name, body)


def _panels(panels: Sequence[tuple[int, bytes]]) -> str:
    if not panels:
        return ""
    figures = "".join(
        f'<figure class="panel"><img src="{_jpeg(png)}" alt="fixed, moving and moved image, their difference, the '
        f'determinant of the Jacobian and the warped grid"><figcaption>step {step}</figcaption></figure>'
        for step, png in panels
    )
    return f"<h2>A validation pair, first and last</h2>{figures}"


def _jpeg(png: bytes) -> str:
    with PIL.Image.open(io.BytesIO(png)) as picture:
        small = picture.convert("RGB")
        small.thumbnail((_WIDTH, _WIDTH))
        return data_uri(small, "JPEG", quality=85)
