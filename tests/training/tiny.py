"""The smallest training there is: 2-D blobs that are shifted, two weights layers, no files but checkpoints."""

from functools import partial

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset

from regnet.data.loading import EpochSampler, ResumableLoader, collate
from regnet.losses import LNCC, Diffusion, Objective
from regnet.models import build, describe
from regnet.training import RegistrationModule
from regnet.training.callbacks import Checkpoint

# Lightning's advice on loaders and loggers, meant for large trainings, is no error of ours.
quiet = pytest.mark.filterwarnings(
    "ignore:.*LeafSpec.*:FutureWarning",  # Lightning 2.6 with torch 2.13
    "ignore:.*does not have many workers.*",
    "ignore:.*smaller than the logging interval.*",
    "ignore:Checkpoint directory .* exists and is not empty.*",
)
MODEL = {
    "_target_": "regnet.models.Registration",
    "network": {"_target_": "regnet.models.UNet", "ndim": 2, "encoder": [4, 4], "decoder": [4]},
    "head": {"_target_": "regnet.models.VelocityHead", "ndim": 2, "in_channels": 4},
}


class Blobs(Dataset):
    """Pairs of a blob and the same blob elsewhere; ``poison`` holds a NaN from epoch 2 on."""

    def __init__(self, poison=None):
        self.poison = poison

    def __len__(self):
        return 3

    def __getitem__(self, key):
        index = key[1] if isinstance(key, tuple) else key
        x, y = torch.meshgrid(torch.arange(20.0), torch.arange(16.0), indexing="ij")
        moving, fixed = (torch.exp(-((x - 9 - index - by) ** 2 + (y - 8) ** 2) / 18)[None] for by in (0, 2))
        if index == self.poison:
            fixed = fixed.clone()
            fixed[0, 3, 3] = float("nan")
        labels = {f"{name}_labels": (image > 0.5).long() for name, image in (("moving", moving), ("fixed", fixed))}
        flow = torch.tensor([-2.0, 0.0]).view(2, 1, 1).expand(2, 20, 16)
        view, spacing = torch.ones(1, 20, 16), torch.tensor([2.0, 1.0])
        return {
            "moving": moving, "fixed": fixed, "view": view, "spacing": spacing, "flow": flow, "id": f"pair{index}",
            **labels,
        }  # fmt: skip


def loader(poison=None):
    return DataLoader(Blobs(poison), batch_size=1)


class Data(pl.LightningDataModule):
    """The pairs in an order of their own each epoch, from a loader that can be resumed."""

    def __init__(self, batch_size=1):
        super().__init__()
        self.batch_size = batch_size

    def train_dataloader(self):
        sampler = EpochSampler(Blobs(), seed=3)
        return ResumableLoader(Blobs(), self.batch_size, sampler=sampler, collate_fn=collate)

    def val_dataloader(self):
        return loader()


def module(scheduler=None, lr=1e-3):
    torch.manual_seed(0)
    objective = Objective({"similarity": LNCC(window=5), "smoothness": Diffusion(weight=0.01)})
    return RegistrationModule(
        build(MODEL), objective, partial(torch.optim.Adam, lr=lr), scheduler, describe(MODEL), spec={"ndim": 2}
    )


def trainer(folder, epochs, **arguments):
    callbacks = [
        Checkpoint(folder / "checkpoints", "best", monitor="val/loss", save_on_train_epoch_end=True),
        Checkpoint(folder / "checkpoints", "last", save_on_train_epoch_end=True, enable_version_counter=False),
    ]
    defaults = {
        "accelerator": "cpu", "max_epochs": epochs, "callbacks": callbacks, "logger": CSVLogger(folder, "csv"),
        "enable_progress_bar": False, "enable_model_summary": False, "deterministic": True, "log_every_n_steps": 1,
        "default_root_dir": folder,
    }  # fmt: skip
    return pl.Trainer(**{**defaults, **arguments})
