"""The survey: a model and a text in, a run folder out."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from gnomon.corpus import CorpusSpec, Windows, build_corpus
from gnomon.errors import ConfigError
from gnomon.kernels import backend
from gnomon.measure.protocol import Measure
from gnomon.model import PositionModel
from gnomon.result import RunWriter, Survey
from gnomon.statistics import Estimate
from gnomon.study.experiment import Arrays, Context, Experiment
from gnomon.study.given import Asked, described, divided
from gnomon.study.observing import Progress, observe
from gnomon.study.opening import open_model
from gnomon.study.registry import choose, make
from gnomon.study.replicates import Replicates, record_of, replicated

if TYPE_CHECKING:
    import xarray as xr

DEFAULT_MODEL: Final = "smollm2-135m"
TOKENS_PER_BATCH: Final = 2048
PAGE: Final = "report.html"
UNTRAINED: Final = "__untrained"
MOST_EXAMPLE_TOKENS: Final = 256


def survey(
    model: Any = DEFAULT_MODEL,
    *,
    corpus: CorpusSpec | Windows | None = None,
    measures: Asked = "default",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    out: str | Path | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    untrained: bool = False,
    replicates: bool = False,
    page: bool = True,
    progress: Progress | None = None,
    arguments: Mapping[str, Any] | None = None,
    **loading: Any,
) -> Survey:
    """Survey a model.

    Args:
        model: a name, path or model as :func:`gnomon.load` takes it, or an opened one.
        corpus: what text; by default 32 windows of 256 tokens of the built-in prose.
        measures: ``default``, ``all``, names, or measures of your own as objects among them.
        options: parameters by measure.
        out: run folder to write or to resume; nothing is written when not given.
        batch_size: sequences per forward pass; chosen by length when not given.
        seed: of everything random.
        untrained: run the same measures on the same architecture with untrained weights, as a control.
        replicates: keep headlines with groups of sequences left out, so that differences to other runs on this text are paired.
        page: whether to write ``report.html`` into the run folder.
        progress: called with (stage, done, total).
        arguments: what the caller was asked for, for the record.
        **loading: ``revision``, ``device``, ``device_map``, ``dtype``, ``trust_remote_code``, ``stack``.
    """
    asked, given = divided(measures)
    names = choose(asked)
    made = {**make(names, options), **given}
    opened = open_model(model, **loading)
    windows = corpus if isinstance(corpus, Windows) else _windows(opened, corpus, seed)
    check_fit(opened, windows)
    size = batch_size or max(1, TOKENS_PER_BATCH // windows.length)
    fingerprint = {
        "weights": opened.weight_hash(),
        "dtype": str(opened.dtype),
        "corpus": windows.digest(),
        "measures": names,
        "options": {name: dict(values) for name, values in (options or {}).items()},
        "batch_size": size,
        "seed": seed,
        "untrained": untrained,
        **({"replicates": True} if replicates else {}),
        **({"given": described(given)} if given else {}),
    }
    with RunWriter.start(out, fingerprint, _info(opened, windows, fingerprint, arguments)) as writer:
        if writer.survey is not None:
            return _with_page(writer.survey, page)
        run = _Run(writer, windows, size, seed, progress, replicates)
        run.whole(opened, made)
        if untrained:
            run.control(opened, made)
        updates: dict[str, Any] = {"labels": run.labels}
        if replicates:
            updates["replicates"] = record_of(len(windows), run.replicates)
        finished = writer.finish(run.datasets, run.headline, updates)
    return _with_page(finished, page)


def _with_page(finished: Survey, page: bool) -> Survey:
    """The survey, with ``report.html`` in its folder."""
    if page and finished.path is not None and not (Path(finished.path) / PAGE).exists():
        from gnomon.report.html import write_report

        write_report(finished)
    return finished


class _Run:
    """One survey under way: what it has of datasets and headlines so far."""

    def __init__(
        self, writer: RunWriter, windows: Windows, batch_size: int, seed: int, progress: Progress | None, replicate: bool
    ) -> None:
        self.writer, self.windows, self.batch_size, self.seed, self.replicate = writer, windows, batch_size, seed, replicate
        self.progress: Progress = progress or (lambda stage, done, total: None)
        self.datasets: dict[str, xr.Dataset] = {}
        self.headline: dict[str, dict[str, Estimate]] = {}
        self.labels: dict[str, dict[str, str]] = {}
        self.replicates: dict[str, Replicates] = {}

    def whole(self, model: PositionModel, made: Mapping[str, Any]) -> None:
        """All measures, then all experiments."""
        self.observe(model, {name: one for name, one in made.items() if isinstance(one, Measure)})
        for name, one in made.items():
            if isinstance(one, Experiment):
                self.keep(name, one, one.run(model, self.windows, self.context(name)))

    def control(self, model: PositionModel, made: Mapping[str, Any]) -> None:
        """The measures once more, on untrained weights of the same architecture."""
        from gnomon.capture import install
        from gnomon.model import untrained_like

        blank = install(untrained_like(model, self.seed))
        self.observe(blank, {name: one for name, one in made.items() if isinstance(one, Measure)}, suffix=UNTRAINED)
        del blank
        gc.collect()

    def observe(self, model: PositionModel, measures: Mapping[str, Measure], suffix: str = "") -> None:
        """One pass over the text with all measures looking on."""
        if not measures:
            return
        seen = observe(
            model,
            self.windows,
            measures,
            batch_size=self.batch_size,
            seed=self.seed,
            parts=self.writer,
            prefix=f"{suffix.strip('_')}-" if suffix else "",
            progress=self.progress,
        )
        for name, measure in measures.items():
            observed = seen.pop(name)
            self.keep(name + suffix, measure, measure.finish(observed))
            if self.replicate:
                self.replicates[name + suffix] = replicated(measure, observed, self.headline[name + suffix])

    def context(self, name: str) -> Context:
        """What an experiment gets."""

        def stage(key: str, function: Any) -> Arrays:
            part = f"{name}-{key}"
            if not self.writer.has_part(part):
                self.writer.write_part(part, function())
            kept: Arrays = self.writer.read_part(part)
            return kept

        return Context(
            seed=self.seed,
            batch_size=self.batch_size,
            progress=lambda done, total: self.progress(name, done, total),
            stage=stage,
        )

    def keep(self, name: str, one: Measure | Experiment, dataset: xr.Dataset) -> None:
        """A finished dataset with its headline and labels."""
        self.datasets[name] = dataset
        self.headline[name] = one.headline(dataset)
        labels = one.labels(dataset)
        if labels:
            self.labels[name] = labels


def check_fit(model: PositionModel, windows: Windows) -> None:
    """Refuse text longer than the model's context."""
    longest = model.anatomy.max_length
    if longest is not None and windows.length > longest:
        raise ConfigError(
            f"`length` must be at most the model's context of {longest} tokens, got {windows.length}; use --length {longest} or less."
        )
    largest = int(windows.tokens.max())
    if largest >= model.anatomy.vocab_size:
        raise ConfigError(
            f"`corpus` must be made of the model's {model.anatomy.vocab_size} tokens, got token {largest}; it belongs to another tokenizer."
        )


def _windows(model: PositionModel, spec: CorpusSpec | None, seed: int) -> Windows:
    return build_corpus(spec or CorpusSpec(seed=seed), model.tokenizer, encoder=not model.anatomy.causal)


def _info(
    model: PositionModel, windows: Windows, fingerprint: Mapping[str, Any], arguments: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What ``run.json`` says of model and text."""
    from dataclasses import asdict

    return {
        "arguments": dict(arguments or {}),
        "model": {"name": model.name, **model.provenance, "weights": fingerprint["weights"]},
        "anatomy": asdict(model.anatomy),
        "scheme": {"description": model.scheme.describe(), **asdict(model.scheme)},
        "proof": None if model.proof is None else model.proof.to_json(),
        "corpus": {
            "source": windows.source,
            "digest": fingerprint["corpus"],
            "sequences": len(windows),
            "length": windows.length,
            "tokens": windows.num_tokens,
            "first_token": asdict(windows.first_token),
            "seed": windows.seed,
            **_example(model, windows),
        },
        "dtype": fingerprint["dtype"],
        "device": str(model.device),
        "backend": backend(model.device),
        "threads": torch.get_num_threads(),
        "seed": fingerprint["seed"],
    }


def _example(model: PositionModel, windows: Windows) -> dict[str, Any]:
    """Token strings of the first of the longest sequences, at most so many: names for the keys of an example row."""
    if model.tokenizer is None:
        return {}
    index = int(windows.lengths.argmax())
    tokens = windows.tokens[index, : min(int(windows.lengths[index]), MOST_EXAMPLE_TOKENS)].tolist()
    return {"example": {"sequence": index, "tokens": [str(text) for text in model.tokenizer.convert_ids_to_tokens(tokens)]}}
