"""Compositions: models made of models."""

from regnet.models.compositions.cascade import Cascade
from regnet.models.compositions.pyramid import Pyramid
from regnet.models.compositions.symmetric import Symmetric

__all__ = ["Cascade", "Pyramid", "Symmetric"]
