"""Gnomon inside other programs: so far, the Trainer of transformers."""

from gnomon.integrations.trainer import GnomonCallback

__all__ = ["GnomonCallback"]
