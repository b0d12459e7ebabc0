"""Attention statistics without the attention matrix: the specification, and what runs."""

from gnomon.kernels.dispatch import attention_output, attention_statistics, backend
from gnomon.kernels.problem import AlibiBias, AttentionProblem, Bias, DenseBias, MaskStructure
from gnomon.kernels.quantities import DEFAULT_OFFSET_EDGES, MOMENTS, Needs, Quantities

__all__ = [
    "DEFAULT_OFFSET_EDGES",
    "MOMENTS",
    "AlibiBias",
    "AttentionProblem",
    "Bias",
    "DenseBias",
    "MaskStructure",
    "Needs",
    "Quantities",
    "attention_output",
    "attention_statistics",
    "backend",
]
