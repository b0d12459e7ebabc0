"""The only place that touches transformers' attention: one attention function, hooks, adapters, the proof at load."""

from gnomon.capture.attention import NAME, Edit, Pass, add_bias, attend, observing
from gnomon.capture.engine import capture_pass
from gnomon.capture.opening import install, open_model
from gnomon.capture.proof import Proof, eager_attention, prove
from gnomon.capture.view import AttentionView, StateView

__all__ = [
    "NAME",
    "AttentionView",
    "Edit",
    "Pass",
    "Proof",
    "StateView",
    "add_bias",
    "attend",
    "capture_pass",
    "eager_attention",
    "install",
    "observing",
    "open_model",
    "prove",
]
