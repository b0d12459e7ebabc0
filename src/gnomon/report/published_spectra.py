"""The published tables of spectral and wavelet metrics, as data (arXiv 2410.18067v4), and which rows are nearest to a model.

These are other people's figures, made on other texts and mostly on other models, by conventions that the publication leaves partly open; gnomon's ``paper``
convention was chosen to reproduce the relations between them. They carry no interval over texts. Two rows need a warning, which ``note`` gives: the row
named "no PE" is GPT-2, which has learned absolute positions, and the training trajectory seems to come from another pipeline than the table of families,
so its scale sensitivities are no targets.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Final

SOURCE: Final = "arXiv 2410.18067v4"
_WINDOWS: Final = ("window_entropy_16", "window_entropy_32", "window_entropy_64")


@dataclass(frozen=True, kw_only=True)
class PublishedRow:
    """One published model.

    Attributes:
        model: its name in the publication.
        scheme: kind of positional scheme as gnomon names it.
        millions: parameters, in millions.
        values: figure by headline key of gnomon (``spectra/paper/...``, ``scale/paper/...``).
        note: what must be known to read the row.
    """

    model: str
    scheme: str
    millions: float
    values: dict[str, float] = field(default_factory=dict)
    note: str = ""


def _row(model: str, scheme: str, millions: float, figures: tuple[float | None, ...], note: str = "") -> PublishedRow:
    keys = (
        "spectra/paper/spectral_entropy",
        "spectra/paper/selectivity",
        "scale/paper/0.5",
        "scale/paper/0.25",
        "spectra/paper/rho",
        "spectra/paper/reconstruction_error",
        *(f"spectra/paper/{name}" for name in _WINDOWS),
    )
    values = {key: figure for key, figure in zip(keys, figures, strict=False) if figure is not None}
    return PublishedRow(model=model, scheme=scheme, millions=millions, values=values, note=note)


_HALF: Final = "reconstruction error is that of half precision"
ROWS: Final = (
    _row("Qwen2.5-0.5B", "rope", 494, (2.492, 0.700, 0.058, 0.100, -0.438, 1.26e-7, 0.850, 0.864, 0.866)),
    _row("Llama-3.2-1B", "rope", 1236, (2.370, 0.758, 0.038, 0.089, -0.510, 1.28e-7, 0.877, 0.886, 0.882)),
    _row("Gemma-2-2B", "rope", 2614, (2.244, 0.794, 0.038, 0.090, -0.526, 1.27e-7, 0.894, 0.905, 0.904)),
    _row("Pythia-2.8B", "rope", 2775, (3.786, 0.174, 0.082, 0.121, -0.737, 1.16e-7, 0.751, 0.699, 0.624)),
    _row("Mistral-7B", "rope", 7242, (2.443, 0.804, 0.030, 0.074, -0.421, 1.41e-7, 0.870, 0.878, 0.880)),
    _row("Llama-3.1-8B", "rope", 8030, (2.495, 0.691, 0.038, 0.090, -0.474, 1.28e-7, 0.869, 0.877, 0.871)),
    _row("Pythia-12B", "rope", 11846, (2.783, 0.552, 0.059, 0.099, -0.490, 1.26e-7, 0.913, 0.918, 0.916)),
    _row("Llama-3.2-3B", "rope", 3213, (2.425, 0.728, 0.038, 0.090, -0.502, 1.2e-4), _HALF),
    _row("flan-t5-base", "relative", 248, (2.696, 0.704, 0.627, 0.689, -0.790, 4e-5), _HALF),
    _row("bert-base", "learned", 110, (2.449, 0.743, 0.507, 0.548, -0.606, 7e-5), _HALF),
    _row(
        "gpt2", "learned", 124, (2.868, 0.514, 0.141, 0.152, -0.672, 5e-5), 'called "no PE" there, has learned absolute positions'
    ),
    _row("Pythia-14M", "rope", 14, (2.279, 0.829, 0.142, None, -0.884)),
    _row("Pythia-70M", "rope", 70, (2.667, 0.644, 0.152, None, -0.769)),
    _row("Pythia-160M", "rope", 162, (3.018, 0.500, 0.162, None, -0.722)),
    _row("Pythia-410M", "rope", 405, (2.631, 0.621, 0.095, None, -0.111)),
    _row("Pythia-1.4B", "rope", 1415, (2.655, 0.614, 0.061, None, -0.373)),
    _row("Pythia-6.9B", "rope", 6857, (2.764, 0.561, 0.062, None, -0.421)),
)
WAVELET_ENTROPY: Final[dict[str, tuple[float, ...]]] = {
    "Llama-3.2-1B": (0.694, 0.331, 0.562, 0.671, 0.343, 0.235),
    "Qwen2.5-0.5B": (0.814, 0.471, 0.753, 0.949, 0.766, 0.711),
    "Gemma-2-2B": (0.715, 0.351, 0.608, 0.752, 0.424, 0.350),
    "Mistral-7B": (0.689, 0.278, 0.450, 0.633, 0.504, 0.217),
    "Pythia-12B": (0.822, 0.494, 0.766, 0.957, 0.807, 0.772),
}
"""Wavelet entropy by published scale 0 to 5, which are A5, D5, D4, D3, D2, D1."""
TRAINING_STEPS: Final = (0, 128, 512, 1000, 5000, 10000, 143000)
TRAINING: Final[dict[str, tuple[float, ...]]] = {
    "spectra/paper/spectral_entropy": (2.277, 2.291, 3.169, 3.522, 3.381, 3.293, 3.010),
    "spectra/paper/selectivity": (0.757, 0.760, 0.369, 0.230, 0.294, 0.330, 0.454),
    "spectra/paper/low_share": (0.770, 0.760, 0.544, 0.434, 0.486, 0.517, 0.597),
}
"""Pythia-6.9B by training step."""


def nearest_rows(model: str, scheme: str | None, parameters: float | None, count: int = 3) -> list[PublishedRow]:
    """The row of this very model first, then rows of the same scheme, those of like size first.

    Args:
        model: name of the model at hand.
        scheme: its kind of scheme, when known.
        parameters: how many weights it has, when known.
        count: how many rows.
    """

    def distance(row: PublishedRow) -> tuple[bool, bool, float]:
        size = abs(math.log(row.millions * 1e6 / parameters)) if parameters else 0.0
        return not same_model(model, row), scheme is not None and row.scheme != scheme, size

    return sorted(ROWS, key=distance)[:count]


def same_model(model: str, row: PublishedRow) -> bool:
    """Whether a name means the model of a published row, whatever its owner and trailing marks."""
    return _bare(model.rsplit("/", 1)[-1]) == _bare(row.model)


def _bare(name: str) -> str:
    marks = r"-(hf|v\d+(\.\d+)*|deduped|uncased|cased)\b"
    return re.sub(r"[^a-z0-9.]", "", re.sub(marks, "", name.lower()).removeprefix("meta-"))
