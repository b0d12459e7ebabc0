"""Options that commands over several models share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gnomon.cli.choices import Bos

Text = Annotated[
    list[str] | None,
    typer.Option("--text", help="Text file, JSONL, Parquet or hf:DATASET; may be repeated. Built-in prose otherwise."),
]
Sequences = Annotated[int, typer.Option(min=1, help="Number of windows, the same for all.")]
Length = Annotated[int, typer.Option(min=2, help="Tokens per window.")]
Measures = Annotated[str, typer.Option(help="Names joined by commas (see `gnomon measures`), `default` or `all`.")]
FirstToken = Annotated[Bos, typer.Option(help="Whether a BOS or CLS token is put at position 0.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder of the runs; the same command on it goes on. Named after the command otherwise.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of everything random.")]
BatchSize = Annotated[int | None, typer.Option(min=1, help="Windows per forward pass; chosen by length otherwise.")]
Workers = Annotated[int, typer.Option(min=1, help="How many at once on this machine; more than one needs Ray (`gnomon[sweep]`).")]
RayAddress = Annotated[str | None, typer.Option(help="Spread over this Ray cluster: `auto` or HOST:PORT.")]
DiskCap = Annotated[
    float | None,
    typer.Option(min=0.0, help="GB that downloaded checkpoints may take once they are done with; no limit otherwise."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")]


def cap_bytes(gigabytes: float | None) -> int | None:
    """The cap in bytes."""
    return None if gigabytes is None else int(gigabytes * 1e9)
