"""What a registration is trained and refined on: pure functions, thin modules over them, and their weighted sum."""

from regnet.losses.consistency import GradICON, InverseConsistency, gradicon, inverse_consistency
from regnet.losses.endpoint import EndPointError, endpoint_error
from regnet.losses.folding import Folding, LogJacobian, folding_penalty, log_jacobian
from regnet.losses.intensity import MAE, MSE, Charbonnier, GemanMcClure, charbonnier, geman_mcclure, mae, mse
from regnet.losses.kl import KL, kl_divergence
from regnet.losses.labels import CrossEntropy, SoftDice
from regnet.losses.landmarks import Landmarks, landmark_distance
from regnet.losses.lncc import LNCC, lncc
from regnet.losses.mind import MIND, mind, mind_descriptor
from regnet.losses.mutual_information import MutualInformation, mutual_information
from regnet.losses.ncc import NCC, ncc
from regnet.losses.ngf import NGF, ngf
from regnet.losses.objective import Objective
from regnet.losses.overlap import cross_entropy, soft_dice
from regnet.losses.regularity import bending_energy, diffusion, elastic, total_variation
from regnet.losses.smoothness import BendingEnergy, Diffusion, Elastic, TotalVariation
from regnet.losses.spline import spline_bending_energy, spline_diffusion
from regnet.losses.term import Term
from regnet.losses.warped_labels import warped_cross_entropy, warped_dice

__all__ = [
    "KL",
    "LNCC",
    "MAE",
    "MIND",
    "MSE",
    "NCC",
    "NGF",
    "BendingEnergy",
    "Charbonnier",
    "CrossEntropy",
    "Diffusion",
    "Elastic",
    "EndPointError",
    "Folding",
    "GemanMcClure",
    "GradICON",
    "InverseConsistency",
    "Landmarks",
    "LogJacobian",
    "MutualInformation",
    "Objective",
    "SoftDice",
    "Term",
    "TotalVariation",
    "bending_energy",
    "charbonnier",
    "cross_entropy",
    "diffusion",
    "elastic",
    "endpoint_error",
    "folding_penalty",
    "geman_mcclure",
    "gradicon",
    "inverse_consistency",
    "kl_divergence",
    "landmark_distance",
    "lncc",
    "log_jacobian",
    "mae",
    "mind",
    "mind_descriptor",
    "mse",
    "mutual_information",
    "ncc",
    "ngf",
    "soft_dice",
    "spline_bending_energy",
    "spline_diffusion",
    "total_variation",
    "warped_cross_entropy",
    "warped_dice",
]
