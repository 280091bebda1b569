"""Does each head learn, under each loss? Trained alike on synthetic pairs of the two sample brains, three seeds each.

Usage: ``python benchmarks/ablation.py [--quick] [--epochs 6] [--threads 1] [--markdown FILE] [--json FILE]``;
``make ablation`` writes ``ablation.md`` and ``ablation.json``.

One U-Net (the same widths; each head takes the stride it is configured with), one optimiser, the same pairs for all of
one seed. Measured on pairs that were not trained on, whose true field is known, in the foreground of the fixed image:
mean end-point error (mm; "before" is that of no deformation), folded voxels (%), and seconds of the training. Mean and
standard deviation over the seeds, which change the first weights and the pairs. A head learned when its
error is below "before" for every seed. Slices of two brains rank no head or loss above another: which one is best for
your data, only your data says.
"""

import argparse
import contextlib
import io
import json
import logging
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import hydra
import lightning.pytorch as pl
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor

from regnet.config import config_dir
from regnet.memory import keep_freed
from regnet.models import build
from regnet.training import RegistrationModule
from regnet.training.measure import measure

MODELS = (
    "unet_displacement",
    "unet_velocity",
    "unet_spline",
    "unet_spline_velocity",
    "probabilistic_velocity",
    "unet_affine",
)
LOSSES = ("lncc", "mse")
SEEDS = (0, 1, 2)
# Slices, since a head in 3-D needs hours: what is asked here is whether each learns at all.
PAIRS = (
    "data.spec.ndim=2",
    "data.spec.spacing=3",
    "data.shape=64",
    "data.batch_size=8",
    "data.pairs=512",
    "data.validation_pairs=16",
    "data.recipe.displacement_mm=[2,8]",
    "data.recipe.anatomy_mm=[0,0]",
)
QUICK = (*PAIRS, "data.spec.spacing=8", "data.shape=null", "data.pairs=2", "data.validation_pairs=1")


@dataclass(frozen=True)
class Row:
    """One head under one loss: mean and deviation over the seeds."""

    model: str
    loss: str
    before_mm: float
    error_mm: float
    error_sd: float
    folding_percent: float
    folding_sd: float
    seconds: float
    seconds_sd: float
    learned: bool


def configuration(model: str, loss: str, seed: int, more: Sequence[str]) -> Any:
    """As ``regnet train`` would compose it."""
    words = [f"model={model}", f"loss={loss}", f"seed={seed}", "paths.run_dir=.", *more]
    if model == "unet_affine":
        words.append("loss.terms.smoothness=null")  # would shrink the map itself
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        return OmegaConf.to_container(hydra.compose("train", words), resolve=True)


def run(model: str, loss: str, seed: int, epochs: int, more: Sequence[str]) -> dict[str, float]:
    """Train once and measure on the pairs of the validation."""
    config = configuration(model, loss, seed, more)
    pl.seed_everything(seed, verbose=False)
    data = instantiate(config["data"], _convert_="all")
    terms, optimizer = (instantiate(config[group], _convert_="all") for group in ("loss", "optimizer"))
    module = RegistrationModule(build(config["model"]), terms, optimizer, seed=seed)
    nothing = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    quiet: dict[str, Any] = dict.fromkeys(nothing, False)
    trainer = pl.Trainer(accelerator="cpu", max_epochs=epochs, limit_val_batches=0, gradient_clip_val=1.0, **quiet)
    data.setup()
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):  # the terms of the loss
        trainer.fit(module, train_dataloaders=data.train_dataloader())
    seconds = time.perf_counter() - start
    module.eval()
    found = []
    with torch.inference_mode():
        for batch in data.val_dataloader():
            own = batch.get("source"), batch.get("matrix")
            flow: Tensor = module(batch["moving"], batch["fixed"], batch["view"], *own)["displacement"]
            now, before = (measure({"displacement": field}, batch) for field in (flow, torch.zeros_like(flow)))
            found.append((before["epe"], now["epe"], 100 * now["folding"]))
    means = [statistics.fmean(each) for each in zip(*found, strict=True)]
    return dict(zip(("before", "error", "folding", "seconds"), [*means, seconds], strict=True))


def row(model: str, loss: str, runs: Sequence[dict[str, float]]) -> Row:
    """Mean and deviation of the runs."""

    def of(name: str) -> tuple[float, float]:
        values = [one[name] for one in runs]
        return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0

    learned = all(one["error"] < one["before"] for one in runs)
    return Row(model, loss, of("before")[0], *of("error"), *of("folding"), *of("seconds"), learned)


def markdown(rows: Sequence[Row]) -> str:
    """The table."""
    lines = [
        "| model | loss | before, mm | end-point error, mm | folding, % | training, s | learned |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        cells = (
            f"{r.model} | {r.loss} | {r.before_mm:.2f} | {r.error_mm:.2f} ± {r.error_sd:.2f} | "
            f"{r.folding_percent:.3f} ± {r.folding_sd:.3f} | {r.seconds:.0f} ± {r.seconds_sd:.0f}"
        )
        lines.append(f"| {cells} | {'yes' if r.learned else 'no'} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the ablation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=6, help="of 512 pairs of 64² pixels of 3 mm")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--quick", action="store_true", help="two pairs of 8 mm, one epoch, two heads: seconds")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    keep_freed()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning.*")
    warnings.filterwarnings("ignore", ".*LeafSpec.*", FutureWarning)  # Lightning 2.6 with torch 2.13
    models, seeds, epochs, more = (
        (MODELS[:2], SEEDS[:2], 1, QUICK) if args.quick else (MODELS, SEEDS, args.epochs, PAIRS)
    )
    rows = []
    for loss in LOSSES:
        for model in models:
            rows.append(row(model, loss, [run(model, loss, seed, epochs, more) for seed in seeds]))
            print(markdown(rows[-1:]).splitlines()[-1], flush=True)
            if args.json is not None:
                args.json.write_text(json.dumps([asdict(r) for r in rows], indent=2) + "\n")
            if args.markdown is not None:
                args.markdown.write_text(markdown(rows))


if __name__ == "__main__":
    main()
