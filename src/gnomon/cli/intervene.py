"""``gnomon intervene``: change the first token, its readers or the positions, on the same text, and see what goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gnomon.cli.choices import DEFAULT_MODEL, Bos, Device, DeviceMap, Dtype, Model, Revision, Threads, Trust


def intervene(
    model: Model = DEFAULT_MODEL,
    bos: Annotated[
        str | None,
        typer.Option(
            "--bos",
            help="What replaces the embedding at position 0: mean, mean_rescaled, zero, noise, random, token:ID, joined by commas.",
        ),
    ] = None,
    ablate_sink_reads: Annotated[
        str | None,
        typer.Option(metavar="HEADS", help="Heads that may not read position 0: top:K, carriers:K, or 3.1,4.5 (layer.head)."),
    ] = None,
    shift: Annotated[int | None, typer.Option(min=0, help="Add this to every position id.")] = None,
    rope_base: Annotated[float | None, typer.Option(help="Another base of the rotary frequencies.")] = None,
    window: Annotated[int | None, typer.Option(min=1, help="Let every layer see only so many positions.")] = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", help="Text file, JSONL, Parquet or hf:DATASET; may be repeated. Built-in prose otherwise."),
    ] = None,
    sequences: Annotated[int, typer.Option(min=1, help="Number of windows: the sample that every interval is over.")] = 32,
    length: Annotated[int, typer.Option(min=2, help="Tokens per window.")] = 256,
    first_token: Annotated[
        Bos | None,
        typer.Option(
            help="Whether a BOS or CLS token is put at position 0; with --bos always where the tokenizer has one, else auto.",
        ),
    ] = None,
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
    threads: Threads = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
) -> None:
    """Change a model or its input reversibly, on the same text, beside matched controls."""
    from gnomon.cli.choices import run_name, set_threads
    from gnomon.cli.progress import ProgressReport
    from gnomon.cli.survey import corpus_of
    from gnomon.report.terminal import print_survey
    from gnomon.study.intervene import Intervention
    from gnomon.study.opening import open_model
    from gnomon.study.survey import survey

    asked: dict[str, Any] = {
        "bos": bos,
        "ablate_sink_reads": ablate_sink_reads,
        "shift": shift,
        "rope_base": rope_base,
        "window": window,
    }
    chosen = {key: value for key, value in asked.items() if value is not None}
    loading = {
        "revision": revision,
        "device": device,
        "device_map": device_map,
        "dtype": dtype and dtype.value,
        "trust_remote_code": trust_remote_code,
    }
    Intervention(**chosen)
    set_threads(threads)
    opened = open_model(model, **{key: value for key, value in loading.items() if value})
    placed = first_token or (Bos.always if bos and has_first_token(opened.tokenizer) else Bos.auto)
    corpus = corpus_of(text, sequences, length, None, None, None, placed, seed)
    arguments = {"model": model, "corpus": corpus.to_json(), "intervention": chosen, "seed": seed, **loading}
    folder = out if out is not None else run_name(model, arguments)
    with ProgressReport("intervene", quiet=quiet) as progress:
        result = survey(
            opened,
            corpus=corpus,
            measures=["intervention"],
            options={"intervention": {**chosen, "seed": seed}},
            out=folder,
            batch_size=batch_size,
            seed=seed,
            progress=progress,
            arguments={**arguments, "batch_size": batch_size, "out": str(folder), "threads": threads},
        )
    print_survey(result)


def has_first_token(tokenizer: Any) -> bool:
    """Whether the tokenizer knows a token that opens a text."""
    return any(getattr(tokenizer, name, None) is not None for name in ("bos_token_id", "cls_token_id"))
