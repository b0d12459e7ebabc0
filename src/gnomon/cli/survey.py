"""``gnomon survey``: measure one model on text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.choices import DEFAULT_MODEL, Bos, Device, DeviceMap, Dtype, Model, Revision, Synthetic, Threads, Trust

if TYPE_CHECKING:
    from gnomon.corpus import CorpusSpec
    from gnomon.model import PositionModel


def survey(
    model: Model = DEFAULT_MODEL,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", help="Text file, JSONL, Parquet or hf:DATASET; may be repeated. Built-in prose otherwise."),
    ] = None,
    sequences: Annotated[int, typer.Option(min=1, help="Number of windows: the sample that every interval is over.")] = 32,
    length: Annotated[int, typer.Option(min=2, help="Tokens per window.")] = 256,
    passages: Annotated[
        str | None, typer.Option(metavar="A-B", help="Whole passages of A to B tokens instead of windows.")
    ] = None,
    sentences: Annotated[
        str | None, typer.Option(metavar="A-B", help="Whole sentences of A to B tokens instead of windows.")
    ] = None,
    synthetic: Annotated[Synthetic | None, typer.Option(help="Tokens without meaning instead of text.")] = None,
    measures: Annotated[
        str, typer.Option(help="Names joined by commas (see `gnomon measures`), `default` or `all`.")
    ] = "default",
    bos: Annotated[
        Bos, typer.Option(help="Whether a BOS or CLS token is put at position 0; auto does what the tokenizer does.")
    ] = "auto",  # type: ignore[assignment]
    out: Annotated[
        Path | None, typer.Option(help="Run folder; the same command on it resumes. Named after the run otherwise.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Windows per forward pass; chosen to fit memory otherwise.")
    ] = None,
    revision: Revision = None,
    device: Device = None,
    device_map: DeviceMap = None,
    dtype: Dtype = None,
    trust_remote_code: Trust = False,
    untrained: Annotated[bool, typer.Option(help="Survey the same architecture with random weights, as a control.")] = False,
    replicates: Annotated[
        bool, typer.Option("--replicates", help="Keep what paired comparisons with other runs on this text need.")
    ] = False,
    threads: Threads = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
) -> None:
    """Measure a model on text and say where its sense of position comes from."""
    from gnomon.cli.choices import loading_options, run_name, set_threads
    from gnomon.cli.progress import ProgressReport
    from gnomon.report.terminal import print_survey

    corpus = corpus_of(text, sequences, length, passages, sentences, synthetic, bos, seed)
    chosen = loading_options(revision, device, device_map, dtype, trust_remote_code)
    arguments = {"model": model, "corpus": corpus.to_json(), "measures": measures, "seed": seed, "untrained": untrained, **chosen}
    arguments["batch_size"] = batch_size
    if replicates:
        arguments["replicates"] = True
    folder = out if out is not None else run_name(model, arguments)

    from gnomon.study.registry import choose

    names = choose(measures)
    set_threads(threads)

    from gnomon.study.opening import open_model
    from gnomon.study.survey import survey as run_survey

    opened = open_model(model, **chosen)
    with ProgressReport("survey", quiet=quiet) as progress:
        progress.say(expected(opened, corpus, batch_size))
        result = run_survey(
            opened,
            corpus=corpus,
            measures=names,
            out=folder,
            batch_size=batch_size,
            seed=seed,
            untrained=untrained,
            replicates=replicates,
            progress=progress,
            arguments={**arguments, "out": str(folder), "threads": threads},
        )
    print_survey(result)


def expected(model: PositionModel, corpus: CorpusSpec, batch_size: int | None) -> str:
    """What the survey will take, in one line; refused here when it cannot fit."""
    from gnomon.study.device_limits import forecast
    from gnomon.study.survey import TOKENS_PER_BATCH

    length = min(corpus.longest or corpus.length, model.anatomy.max_length or 2**62)
    size = batch_size or max(1, TOKENS_PER_BATCH // length)
    ahead = forecast(model, length=length, sequences=corpus.sequences, batch_size=size)
    return f"{model.name}: {corpus.sequences} windows of up to {length} tokens; {ahead.describe()}"


def corpus_of(
    text: list[str] | None,
    sequences: int,
    length: int,
    passages: str | None,
    sentences: str | None,
    synthetic: Synthetic | None,
    bos: Bos,
    seed: int,
) -> CorpusSpec:
    """The corpus that the options ask for; at most one of the three kinds beside plain windows."""
    from gnomon.cli.choices import token_range
    from gnomon.corpus import CorpusSpec
    from gnomon.errors import ConfigError

    given = {"passages": passages, "sentences": sentences, "synthetic": synthetic}
    asked = [name for name, value in given.items() if value is not None]
    if len(asked) > 1:
        raise ConfigError(
            f"at most one of `--passages`, `--sentences` and `--synthetic` must be given, got {' and '.join(asked)}; choose one."
        )
    source: str | tuple[str, ...] | None = None if not text else (text[0] if len(text) == 1 else tuple(text))
    common: dict[str, Any] = {"text": source, "sequences": sequences, "length": length, "bos": str(bos), "seed": seed}
    for kind, spelled in (("passages", passages), ("sentences", sentences)):
        if spelled is not None:
            shortest, longest = token_range(spelled, f"--{kind}")
            return CorpusSpec(kind=kind, shortest=shortest, longest=longest, **common)  # type: ignore[arg-type]
    return CorpusSpec(kind=str(synthetic) if synthetic else "windows", **common)  # type: ignore[arg-type]
