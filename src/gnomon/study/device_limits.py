"""What the device at hand has to offer: free memory and the speed of a matrix product."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch

from gnomon.study.budget import Budget, check_fits, readable_bytes, readable_seconds

if TYPE_CHECKING:
    from gnomon.model import PositionModel

PRODUCT_SIZE: Final = 512
REPEATS: Final = 3


@dataclass(frozen=True)
class Forecast:
    """What a survey is expected to take.

    Attributes:
        budget: memory and work.
        seconds: time of its forward passes, right within a factor of two or so.
    """

    budget: Budget
    seconds: float

    def describe(self) -> str:
        """One line for people."""
        return f"about {readable_seconds(self.seconds)} and {readable_bytes(self.budget.total_bytes)} of memory"


def forecast(model: PositionModel, *, length: int, sequences: int, batch_size: int, logits: bool = False) -> Forecast:
    """What a survey of an opened model will take; refused when a batch does not fit into the memory that is free.

    Args:
        model: the model, already on its device.
        length: tokens of a window.
        sequences: windows.
        batch_size: windows per pass.
        logits: whether a pass also gives logits.

    Raises:
        ResourceError: saying what would fit.
    """
    budget = check_fits(
        model.anatomy,
        length=length,
        sequences=sequences,
        batch_size=batch_size,
        available=available_bytes(model.device),
        bytes_per_number=model.dtype.itemsize,
        logits=logits,
    )
    return Forecast(budget, budget.seconds(product_speed(model.device, model.dtype)))


def available_bytes(device: torch.device | str) -> int | None:
    """Free memory of a device; ``None`` where the system does not say."""
    device = torch.device(device)
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    found = [number for number in (_free_of_system(), _free_of_group()) if number is not None]
    return min(found) if found else None


def product_speed(device: torch.device | str, dtype: torch.dtype = torch.float32) -> float:
    """Operations per second of a matrix product, measured in a few milliseconds."""
    device = torch.device(device)
    left = torch.ones(PRODUCT_SIZE, PRODUCT_SIZE, device=device, dtype=dtype)
    left @ left
    best = float("inf")
    for _ in range(REPEATS):
        begun = time.perf_counter()
        out = left @ left
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - begun)
    return 2 * PRODUCT_SIZE**2 * out.shape[0] / max(best, 1e-9)


def _free_of_system() -> int | None:
    """What the system could give without swapping."""
    memory = Path("/proc/meminfo")
    if memory.is_file():
        for line in memory.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_of_group() -> int | None:
    """What the control group (a container, a batch job) leaves, counting file caches as free."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit, used = (folder / "memory.max").read_text().strip(), int((folder / "memory.current").read_text())
        if limit == "max":
            return None
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max(0, int(limit) - used + int(statistics.get("inactive_file", 0)))
    except (OSError, ValueError):
        return None
