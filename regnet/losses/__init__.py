"""What a registration is trained and refined on: pure functions, thin modules over them, and their weighted sum."""

from regnet.losses.objective import Objective
from regnet.losses.overlap import soft_dice
from regnet.losses.regularity import bending_energy, diffusion
from regnet.losses.similarity import lncc, mse
from regnet.losses.terms import LNCC, MSE, BendingEnergy, Diffusion, SoftDice

__all__ = [
    "LNCC",
    "MSE",
    "BendingEnergy",
    "Diffusion",
    "Objective",
    "SoftDice",
    "bending_energy",
    "diffusion",
    "lncc",
    "mse",
    "soft_dice",
]
