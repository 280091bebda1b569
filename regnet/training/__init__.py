"""Training: the LightningModule and the callbacks."""

from regnet.training.module import RegistrationModule

__all__ = ["RegistrationModule"]
