"""``gnomon claims``: what four papers say, judged on models or runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.choices import DEFAULT_MODEL, Bos, Device, DeviceMap, Dtype, Revision, Threads, Trust

if TYPE_CHECKING:
    from gnomon.cli.progress import ProgressReport
    from gnomon.result import Survey
    from gnomon.study.claims import Claim
    from gnomon.study.claims.plan import Sizes


def claims(
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="Models to survey, run folders to read, or folders of runs (a sweep).", metavar="MODEL|RUN..."),
    ] = None,
    only: Annotated[str | None, typer.Option(help="Claims (A1,B2) or papers (A); all otherwise.")] = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", help="Text file, JSONL, Parquet or hf:DATASET; may be repeated. Built-in prose otherwise."),
    ] = None,
    sequences: Annotated[int, typer.Option(min=1, help="Windows, for claims about position and phase.")] = 32,
    length: Annotated[int, typer.Option(min=16, help="Tokens per window.")] = 256,
    sentences: Annotated[int, typer.Option(min=1, help="Sentences of 6 to 50 tokens, for claims about frames.")] = 100,
    passages: Annotated[int, typer.Option(min=1, help="Passages of 16 to 200 tokens, for claims about spectra.")] = 72,
    words: Annotated[int, typer.Option(min=1, help="Sentences with a word each, for claims about likelihood.")] = 1000,
    bos: Annotated[
        Bos, typer.Option(help="Whether a BOS or CLS token is put at position 0; auto does what the tokenizer does.")
    ] = "auto",  # type: ignore[assignment]
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the runs made here and of claims.json; the same command resumes. Named after the models otherwise."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the verdicts as a strict JSON list instead.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Sequences per forward pass; chosen by length otherwise.")] = None,
    revision: Revision = None,
    device: Device = None,
    device_map: DeviceMap = None,
    dtype: Dtype = None,
    trust_remote_code: Trust = False,
    threads: Threads = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
) -> None:
    """Judge every published claim on models or runs, by stated rules against stated nulls."""
    import sys

    from gnomon.cli.choices import loading_options, run_name, set_threads
    from gnomon.cli.progress import ProgressReport
    from gnomon.report.terminal.claims import claims_page
    from gnomon.report.terminal.page import show
    from gnomon.study.claims import choose_claims, judge
    from gnomon.study.claims.plan import Sizes, claims_json, write_claims

    asked = targets or [DEFAULT_MODEL]
    chosen = choose_claims(only)
    source: Any = None if not text else (text[0] if len(text) == 1 else tuple(text))
    sizes = Sizes(
        sequences=sequences,
        length=length,
        sentences=sentences,
        passages=passages,
        words=words,
        bos=str(bos),
        seed=seed,
        text=source,
    )
    loading = loading_options(revision, device, device_map, dtype, trust_remote_code)
    needed = chosen if len(asked) > 1 else tuple(claim for claim in chosen if claim.judge is not None)
    made_here = [target for target in asked if not _is_folder_of_runs(target)]
    folder = out or (run_name(f"claims {' '.join(asked)}", {"targets": asked}) if made_here else _common(asked))
    set_threads(threads)
    with ProgressReport("claims", quiet=quiet) as progress:
        surveys = [
            survey
            for target in asked
            for survey in _surveys(target, needed, folder, sizes, batch_size, progress, loading, several=len(made_here) > 1)
        ]
    verdicts = judge(surveys, chosen)
    if json:
        typer.echo(claims_json(verdicts), nl=False)
    else:
        show(claims_page([verdict.to_json() for verdict in verdicts]), sys.stdout)
    path = write_claims(verdicts, folder, keep=only is not None)
    typer.echo(f"kept in {path}", err=True)


def _surveys(
    target: str,
    chosen: tuple[Claim, ...],
    folder: Path,
    sizes: Sizes,
    batch_size: int | None,
    progress: ProgressReport,
    loading: dict[str, Any],
    *,
    several: bool,
) -> list[Survey]:
    """Runs of one target: read when it is a folder of runs, made when it is a model."""
    from gnomon.cli.choices import run_name
    from gnomon.study.claims.plan import read_runs, survey_for

    if _is_folder_of_runs(target):
        return read_runs(target)
    place = folder / run_name(target, {"target": target}).name if several else folder
    return survey_for(
        target,
        chosen,
        out=place,
        sizes=sizes,
        batch_size=batch_size,
        progress=progress,
        on_failure=progress.say,
        **loading,
    )


def _is_folder_of_runs(target: str) -> bool:
    """Whether a target is a run or holds some; a folder with a model's configuration is a model."""
    path = Path(target)
    if not path.is_dir() or (path / "config.json").is_file():
        return False
    return any(next(path.glob(f"{'*/' * depth}run.json"), None) is not None for depth in range(4))


def _common(runs: list[str]) -> Path:
    """Where verdicts on runs are kept: in the only folder, or beside the first."""
    return Path(runs[0]) if len(runs) == 1 else Path(runs[0]).parent


__all__ = ["claims"]
