"""Make the model file that comes with regnet of a run of ``experiment=brains``: its network twice, at 3 and 1.5 mm.

Usage: ``python tools/make_shipped.py RUN [--out FILE.safetensors]``
"""

import argparse
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

import regnet
from regnet.config import config_dir
from regnet.data import InputSpec
from regnet.inference import shipped_model
from regnet.inference.export import describe_model
from regnet.inference.shipped import RECIPE
from regnet.io.model_file import write_model
from regnet.models import build, describe


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run folder or checkpoint")
    parser.add_argument("--out", type=Path, default=shipped_model())
    args = parser.parse_args()
    weights, about = describe_model(args.run)
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        composed = compose("train", [f"experiment={RECIPE}", "paths.run_dir=."])
    recipe: dict = OmegaConf.to_container(composed, resolve=True)  # type: ignore[assignment]
    model = describe(recipe["model"])
    (stage,) = model["stages"]
    if stage != about["model"]:
        raise SystemExit(f"{args.run}: its network is not the stage of experiment={RECIPE}")
    renamed = {f"stages.0.{name}": value for name, value in weights.items()}
    build(model).load_state_dict(renamed)
    spec = {name: value for name, value in recipe["data"]["spec"].items() if name != "_target_"}
    known = {"model": model, "spec": InputSpec.from_dict(spec).to_dict(), "regnet": regnet.__version__}
    write_model(args.out, renamed, known | {"epoch": about.get("epoch")}, overwrite=True)
    print(f"{args.out}: {args.out.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
