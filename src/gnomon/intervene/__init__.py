"""Reversible changes to a model or its input."""

from gnomon.intervene.change import Applied, Change, Edit, Together, Unchanged
from gnomon.intervene.first_token import REPLACEMENTS, ReplaceFirst, mean_embedding
from gnomon.intervene.positions import RotaryBase, ShiftPositions, takes_position_ids
from gnomon.intervene.reads import Head, HideFirst, HideKey, NarrowWindow, largest_heads, matched_heads

__all__ = [
    "REPLACEMENTS",
    "Applied",
    "Change",
    "Edit",
    "Head",
    "HideFirst",
    "HideKey",
    "NarrowWindow",
    "ReplaceFirst",
    "RotaryBase",
    "ShiftPositions",
    "Together",
    "Unchanged",
    "largest_heads",
    "matched_heads",
    "mean_embedding",
    "takes_position_ids",
]
