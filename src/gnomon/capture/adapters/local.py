"""GPT-Neo: unscaled dot products, and layers that alternate between all earlier tokens and a window."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from gnomon.capture.adapters.rerouting import Adapter
from gnomon.capture.attention import attend


class GPTNeoAdapter(Adapter):
    """GPT-Neo: queries and keys arrive at ``_attn``; the window is the layer's own."""

    method: ClassVar[str] = "_attn"

    def compute(self, module: Any, *args: Any, **options: Any) -> tuple[Tensor, None]:
        """See :meth:`Adapter.compute`."""
        query, key, value = args[:3]
        window = module.config.window_size if module.attention_type == "local" else None
        return attend(module, query, key, value, scaling=1.0, causal=True, window=window), None
