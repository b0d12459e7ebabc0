"""A survey light enough to be made during training: sinks and entropy on one fixed batch.

The model in training is borrowed: put into eval mode, its attention routed through gnomon, run once without gradients, and given back exactly as it was: every module's training flag, every
configuration's attention implementation, every buffer (some rotary scalings rewrite theirs with the length they see) and the random state. So a training run that is looked at and one that is not have the same losses to
the last bit.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from gnomon.capture import install
from gnomon.capture.adapters import adapter_for
from gnomon.capture.attention import NAME
from gnomon.corpus import Windows
from gnomon.measure.protocol import Measure, Observed
from gnomon.model import PositionModel
from gnomon.statistics.values_only import values_only
from gnomon.study.observing import observe
from gnomon.study.registry import choose, make

LIGHT: Final = ("sinks", "attention")


class LightSurvey:
    """Measures on one fixed batch, of a model that others are training.

    Args:
        windows: the batch.
        measures: names; each looks on while the batch runs through once.
        quantities: ``measure/key`` of the headline numbers to keep; all finite ones otherwise.
    """

    def __init__(self, windows: Windows, measures: Sequence[str] = LIGHT, quantities: Sequence[str] | None = None) -> None:
        self.windows = windows
        self.measures: Mapping[str, Measure] = {
            name: one for name, one in make(choose(list(measures))).items() if isinstance(one, Measure)
        }
        self.quantities = None if quantities is None else set(quantities)
        self._proved: Any = None

    def __call__(self, hf: nn.Module) -> dict[str, float]:
        """The headline numbers of the model as it is now."""
        with borrowed(hf), torch.no_grad(), values_only():
            model = PositionModel.of(hf)
            if self._proved is None:
                self._proved = install(model).proof
            else:
                _route(model)
            seen = observe(model, self.windows, self.measures, batch_size=len(self.windows), seed=0, parts=_Memory())
            return self._numbers(seen)

    def _numbers(self, seen: Mapping[str, Observed]) -> dict[str, float]:
        numbers = {
            f"{name}/{key}": float(number.value)
            for name, measure in self.measures.items()
            for key, number in measure.headline(measure.finish(seen[name])).items()
            if not number.is_missing
        }
        return {key: value for key, value in numbers.items() if self.quantities is None or key in self.quantities}


@contextmanager
def borrowed(hf: nn.Module) -> Iterator[None]:
    """The model in eval mode, and afterwards as it was: plain attributes of modules, buffers, attention implementations, methods, and the random state."""
    modules = list(hf.modules())
    plain = [{key: value for key, value in vars(module).items() if isinstance(value, _PLAIN)} for module in modules]
    methods = [{key for key in vars(module) if callable(vars(module)[key])} for module in modules]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in modules
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    configs = {id(one): (one, one._attn_implementation_internal) for one in _configurations(modules)}
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    python, numpy = random.getstate(), copy.deepcopy(np.random.get_state())  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=devices):
            hf.eval()
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        for config, name in configs.values():
            config._attn_implementation_internal = name
        for module, attributes, own in zip(modules, plain, methods, strict=True):
            for added in [key for key in vars(module) if callable(vars(module)[key]) and key not in own]:
                delattr(module, added)
            vars(module).update(attributes)
        with torch.no_grad():
            for module, name, buffer, before in buffers:
                buffer.copy_(before)
                module._buffers[name] = buffer


_PLAIN: Final = (bool, int, float, str, type(None))


class _Memory:
    """Parts of a survey that nobody resumes."""

    def __init__(self) -> None:
        self._kept: dict[str, Mapping[str, Any]] = {}

    def has_part(self, key: str) -> bool:
        return key in self._kept

    def read_part(self, key: str) -> Mapping[str, Any]:
        return self._kept[key]

    def write_part(self, key: str, arrays: Mapping[str, Any]) -> None:
        self._kept[key] = arrays


def _route(model: PositionModel) -> None:
    """What installing does, without proving again what was proved of this architecture before training."""
    adapter = adapter_for(model)
    if adapter is None:
        model.set_attention(NAME)
        return
    adapter.install()


def _configurations(modules: Sequence[nn.Module]) -> Iterator[Any]:
    """Every configuration of the model and those inside of it."""
    waiting = [config for module in modules if (config := getattr(module, "config", None)) is not None]
    seen: set[int] = set()
    while waiting:
        config = waiting.pop()
        if id(config) in seen or not hasattr(config, "_attn_implementation_internal"):
            continue
        seen.add(id(config))
        waiting += [getattr(config, name, None) for name in getattr(config, "sub_configs", {})]
        yield config
