"""Sinks and entropy while a model trains, through whatever the Trainer reports to.

>>> from gnomon.integrations import GnomonCallback  # doctest: +SKIP
>>> Trainer(model, args, train_dataset=..., callbacks=[GnomonCallback(every=100)]).train()  # doctest: +SKIP

Every ``every`` steps the model runs once over one fixed batch, in eval mode and without gradients, and headline numbers are logged as ``gnomon/sinks/head_share_03`` and so on, through ``Trainer.log``: they go to TensorBoard,
Weights & Biases and the like as the loss does, and into ``state.log_history``. The model is given back as it was (:mod:`gnomon.study.light`): losses with and without the callback are equal to the bit. ``gnomon/seconds`` is
what each look cost.

On several devices the main process looks, alone. Weights that are spread over processes (FSDP, DeepSpeed ZeRO 3) are not whole anywhere, and are refused when training begins.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Sequence
from typing import Any, Final

from torch import nn
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from gnomon.corpus import CorpusSpec, Windows, build_corpus
from gnomon.errors import ConfigError, GnomonError
from gnomon.model import PositionModel
from gnomon.study.light import LIGHT, LightSurvey

_log = logging.getLogger(__name__)
QUANTITIES: Final = (
    "sinks/head_share_03",
    "sinks/sink_rate_03",
    "sinks/position_0_mass",
    "attention/entropy",
    "attention/relative_entropy",
    "attention/offset_mean",
)
SEQUENCES: Final = 8
LENGTH: Final = 128


class GnomonCallback(TrainerCallback):  # type: ignore[misc]
    """Looks at the attention of a model in training.

    Args:
        every: steps between two looks; there is one before the first step and one after the last as well.
        text: windows, or what text to make them of with the Trainer's tokenizer; by default 8 windows of 128 tokens of the built-in prose.
        measures: names, see ``gnomon measures``; those with passes of their own are left out.
        quantities: ``measure/key`` of what to log; of sinks and entropy by default, everything for other measures.
    """

    def __init__(
        self,
        every: int = 100,
        *,
        text: Windows | CorpusSpec | None = None,
        measures: Sequence[str] = LIGHT,
        quantities: Sequence[str] | None = None,
    ) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ConfigError(f"`every` must be a number of steps from 1 on, got {every!r}.")
        self.every = every
        self.text = text
        self.measures = tuple(measures)
        self.quantities = QUANTITIES if quantities is None and self.measures == LIGHT else quantities
        self.seconds = 0.0
        self._survey: LightSurvey | None = None
        self._trainer: Any = None
        self._last = -1

    def on_init_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any) -> None:
        """Remember the Trainer."""
        self._trainer = trainer_of(self)

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any) -> None:
        """Prepare the batch and look once, so that what cannot work is said before training starts."""
        if not state.is_world_process_zero:
            return
        if getattr(args, "fsdp", None) or (
            getattr(args, "hf_deepspeed_config", None) is not None and args.hf_deepspeed_config.is_zero3()
        ):
            raise ConfigError(
                "`model` must be whole in one process, got weights spread over processes (FSDP or ZeRO 3); leave the callback out."
            )
        self._trainer = self._trainer or trainer_of(self)
        model = unwrapped(given["model"])
        self._survey = LightSurvey(self._windows(model, given.get("processing_class")), self.measures, self.quantities)
        self._look(model, state, control)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any) -> None:
        """Look every so many steps."""
        if state.is_world_process_zero and state.global_step % self.every == 0:
            self._try_to_look(given["model"], state, control)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any) -> None:
        """Look at what came out."""
        if state.is_world_process_zero and state.global_step != self._last:
            self._try_to_look(given["model"], state, control)

    def _try_to_look(self, model: nn.Module, state: TrainerState, control: TrainerControl) -> None:
        """Training goes on when a later look fails; the log says why."""
        try:
            self._look(unwrapped(model), state, control)
        except GnomonError as reason:
            _log.warning("step %d was not surveyed: %s", state.global_step, reason)

    def _look(self, model: nn.Module, state: TrainerState, control: TrainerControl) -> None:
        if self._survey is None:
            return
        begun = time.perf_counter()
        numbers = self._survey(model)
        spent = time.perf_counter() - begun
        self.seconds += spent
        self._last = state.global_step
        logs = {**{f"gnomon/{key}": value for key, value in numbers.items()}, "gnomon/seconds": spent}
        if self._trainer is None:
            state.log_history.append({**logs, "step": state.global_step})
            return
        # Logging takes back the Trainer's own wish to log at this step.
        wished = control.should_log
        self._trainer.log(logs)
        control.should_log = self._trainer.control.should_log = wished

    def _windows(self, model: nn.Module, tokenizer: Any) -> Windows:
        if isinstance(self.text, Windows):
            return self.text
        if tokenizer is None:
            raise ConfigError(
                "`text` must be windows when the Trainer has no tokenizer, got none; give processing_class=tokenizer to the Trainer, or windows."
            )
        anatomy = PositionModel.of(model).anatomy
        spec = self.text or CorpusSpec(sequences=SEQUENCES, length=min(LENGTH, anatomy.max_length or LENGTH))
        return build_corpus(spec, tokenizer, encoder=not anatomy.causal)


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside of what trains it in parallel or compiled."""
    from accelerate.utils import extract_model_from_parallel

    inner: nn.Module = extract_model_from_parallel(model, keep_fp32_wrapper=True)
    return inner


def trainer_of(callback: TrainerCallback) -> Any:
    """The Trainer that is calling, found up the stack, since it hands its callbacks everything but itself; ``None`` without one."""
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Trainer) and callback in caller.callback_handler.callbacks:
            return caller
        frame = frame.f_back
    return None
