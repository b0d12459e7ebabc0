"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from gnomon.errors import ConfigError

DEFAULT_MODEL: Final = "smollm2-135m"
RUNS: Final = Path("runs")


class Bos(StrEnum):
    """What stands at position 0."""

    auto = "auto"
    always = "always"
    never = "never"


class Synthetic(StrEnum):
    """Tokens without meaning."""

    random = "random"
    repeated = "repeated"
    shuffled = "shuffled"


class Precision(StrEnum):
    """Number formats of a model."""

    auto = "auto"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"
    float64 = "float64"


Model = Annotated[str, typer.Argument(help="Hub id, folder, GGUF file, zoo:NAME, or a name that `gnomon fetch` knows.")]
Revision = Annotated[str | None, typer.Option(help="Branch, tag or commit of a hub model.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; the fastest there is otherwise.")]
DeviceMap = Annotated[str | None, typer.Option(help="`auto` spreads a large model over devices (needs accelerate).")]
Dtype = Annotated[Precision | None, typer.Option(help="Number format of the weights; the model's own otherwise.")]
Trust = Annotated[bool, typer.Option(help="Run code that comes with the model. Off unless you trust its author.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor threads; as torch chooses otherwise.")]


def token_range(text: str, option: str) -> tuple[int, int]:
    """Reads ``A-B`` as two token counts."""
    match = re.fullmatch(r"\s*([0-9]{1,9})\s*-\s*([0-9]{1,9})\s*", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"`{option}` must be two token counts with the smaller first, such as 6-50, got {text!r}.")
    return int(match[1]), int(match[2])


def loading_options(
    revision: str | None, device: str | None, device_map: str | None, dtype: Precision | None, trust_remote_code: bool
) -> dict[str, Any]:
    """What is passed on to the loader: the options that were given."""
    given = {"revision": revision, "device": device, "device_map": device_map, "dtype": dtype and dtype.value}
    return {**{key: value for key, value in given.items() if value}, **({"trust_remote_code": True} if trust_remote_code else {})}


def run_name(model: str, decisive: Mapping[str, Any]) -> Path:
    """A folder under ``runs/`` that is the same for the same command, so that repeating it resumes."""
    from gnomon.result.strict_json import digest

    slug = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[-48:].strip("-") or "model"
    return RUNS / f"{slug}-{digest(decisive)[:8]}"


def set_threads(threads: int | None) -> None:
    """Tells torch how many processor threads to use."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
