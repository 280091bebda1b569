"""How good a registration is, in plain numbers: overlap, distances, regularity, consistency, similarity."""

from regnet.metrics.displacement import displacement_statistics, endpoint_error, inverse_consistency_error
from regnet.metrics.distance import average_surface_distance, hd95, surface_distances
from regnet.metrics.information import normalised_mutual_information
from regnet.metrics.jacobian import folding_fraction, jacobian_statistics, log_jacobian_determinant, sdlogj
from regnet.metrics.overlap import common_labels, dice
from regnet.metrics.points import map_voxels, target_registration_error
from regnet.metrics.volume import non_diffeomorphic_volume

__all__ = [
    "average_surface_distance",
    "common_labels",
    "dice",
    "displacement_statistics",
    "endpoint_error",
    "folding_fraction",
    "hd95",
    "inverse_consistency_error",
    "jacobian_statistics",
    "log_jacobian_determinant",
    "map_voxels",
    "non_diffeomorphic_volume",
    "normalised_mutual_information",
    "sdlogj",
    "surface_distances",
    "target_registration_error",
]
