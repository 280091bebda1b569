"""Data: the input contract, the table of pairs, synthetic pairs, datasets."""

import importlib
from typing import TYPE_CHECKING, Any

from regnet.data.augment import Augmentation
from regnet.data.bids import Bids
from regnet.data.cache import Cache
from regnet.data.datasets import SyntheticPairs
from regnet.data.folder import Folder
from regnet.data.label_pairs import LabelPairs, LabelRecipe
from regnet.data.loading import EpochSampler, collate
from regnet.data.painting import Look
from regnet.data.pairing import AllPairs, AtlasPairs, WithinGroups
from regnet.data.prepare import Prepared, check_same_grid, prepare, prepare_labels
from regnet.data.sample import sample_path
from regnet.data.slices import axial_slice
from regnet.data.sources import read_rows
from regnet.data.spec import InputSpec
from regnet.data.split import split_rows
from regnet.data.synthesis import Recipe, Source, make_sources, synthetic_pair
from regnet.data.table import Pair, Subject, read_pairs, read_table
from regnet.data.table_pairs import TablePairs

if TYPE_CHECKING:
    from regnet.data.datamodule import PairsData, SynthesisData, SyntheticData

# Loaded on first use: the data modules import lightning, which registration does not need.
_LAZY = dict.fromkeys(("SyntheticData", "SynthesisData", "PairsData"), "regnet.data.datamodule")

__all__ = [
    "AllPairs",
    "AtlasPairs",
    "Augmentation",
    "Bids",
    "Cache",
    "EpochSampler",
    "Folder",
    "InputSpec",
    "LabelPairs",
    "LabelRecipe",
    "Look",
    "Pair",
    "PairsData",
    "Prepared",
    "Recipe",
    "Source",
    "Subject",
    "SynthesisData",
    "SyntheticData",
    "SyntheticPairs",
    "TablePairs",
    "WithinGroups",
    "axial_slice",
    "check_same_grid",
    "collate",
    "make_sources",
    "prepare",
    "prepare_labels",
    "read_pairs",
    "read_rows",
    "read_table",
    "sample_path",
    "split_rows",
    "synthetic_pair",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'regnet.data' has no attribute {name!r}")
