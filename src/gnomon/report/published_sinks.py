"""Published sink rates: share of (sequence, layer, head) with a mean weight on position 0 above 0.3 (Gu et al., ICLR 2025).

They are of natural text in windows of 64 tokens, and the rate depends on that length, so a run compares only when its windows are as
long. They carry no interval and were made on another text: agreement within a few hundredths is what can be asked.
"""

from __future__ import annotations

import re
from typing import Final

SOURCE: Final = "Gu et al., ICLR 2025"
LENGTH: Final = 64
QUANTITY: Final = "sink_rate_03"
RATES: Final = {"GPT2-XL": 0.770, "Mistral-7B": 0.975, "Llama-2-7B": 0.925, "Llama-3-8B": 0.990}


def rate_of(model: str) -> float | None:
    """The figure of the model of this name, whatever its owner's prefix and a mark such as ``-hf`` or ``-v0.1``."""
    name = _bare(model.rsplit("/", 1)[-1])
    return next((rate for known, rate in RATES.items() if name == _bare(known)), None)


def _bare(name: str) -> str:
    without_marks = re.sub(r"-(hf|v\d+(\.\d+)*)\b", "", name.lower()).removeprefix("meta-")
    return re.sub(r"[^a-z0-9.]", "", without_marks)
