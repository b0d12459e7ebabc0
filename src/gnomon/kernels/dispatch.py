"""Which kernel runs: chosen by what the tensors and the machine can do, and told to whoever asks."""

from __future__ import annotations

import torch
from torch import Tensor

from gnomon.kernels import blockwise
from gnomon.kernels.problem import AttentionProblem
from gnomon.kernels.quantities import Needs, Quantities

_workspace = blockwise.Workspace()


def attention_statistics(problem: AttentionProblem, needs: Needs, special: Tensor) -> Quantities:
    """Output and statistics of one layer by the best kernel there is."""
    return blockwise.attention_statistics(problem, needs, special, _workspace)


def attention_output(problem: AttentionProblem) -> Tensor:
    """The output alone: torch's fused attention where its mask can be said in a word, the blockwise kernel elsewhere."""
    mask = problem.mask
    full = bool((mask.lengths >= problem.length).all())
    simple = problem.softcap is None and problem.bias is None and problem.sinks is None and mask.chunk is None
    windowed = mask.window is not None and mask.window < problem.length
    if simple and not windowed and (mask.causal or full):
        return torch.nn.functional.scaled_dot_product_attention(
            problem.query, problem.key, problem.value, is_causal=mask.causal, scale=problem.scaling, enable_gqa=problem.group > 1
        )
    nothing = torch.zeros(len(problem.query), problem.length, dtype=torch.bool, device=problem.query.device)
    return blockwise.attention_statistics(problem, Needs(), nothing, _workspace).output


def backend(device: torch.device | str) -> str:
    """Name of the kernel that serves a device, for the record of a run."""
    return f"blockwise torch on {torch.device(device).type}"


def release() -> None:
    """Give scratch memory back."""
    _workspace.clear()
