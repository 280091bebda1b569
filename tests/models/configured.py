"""The models of ``configs/model``, without Hydra."""

from typing import Any

from omegaconf import OmegaConf

from regnet.config import config_dir

NAMES = sorted(path.stem for path in config_dir().glob("model/*.yaml"))
AFFINE = ("unet_affine", "unet_rigid", "affine_velocity")


def configured(name: str, ndim: int) -> dict[str, Any]:
    """What ``build`` makes the model from."""
    whole = OmegaConf.create({"data": {"spec": {"ndim": ndim}}})
    whole.model = OmegaConf.load(config_dir() / "model" / f"{name}.yaml")
    return OmegaConf.to_container(whole, resolve=True)["model"]
