"""``gnomon evolve``: what emerges when, over the checkpoints of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gnomon.cli.choices import Bos, Device, DeviceMap, Dtype, Threads, Trust
from gnomon.cli.sweep_options import (
    BatchSize,
    DiskCap,
    FirstToken,
    Length,
    Measures,
    Out,
    Quiet,
    RayAddress,
    Seed,
    Sequences,
    Text,
    Workers,
)
from gnomon.errors import ConfigError

if TYPE_CHECKING:
    from gnomon.study.checkpoints import Checkpoint


def evolve(
    model: Annotated[str | None, typer.Argument(help="Hub id (with --revisions) or zoo:NAME.", metavar="[MODEL]")] = None,
    revisions: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Revisions of the hub model, such as step0,step512,main.")
    ] = None,
    checkpoints: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of checkpoint folders, as a trainer leaves them.")
    ] = None,
    text: Text = None,
    sequences: Sequences = 32,
    length: Length = 256,
    measures: Measures = "default",
    bos: FirstToken = Bos.auto,
    out: Out = None,
    seed: Seed = 0,
    batch_size: BatchSize = None,
    workers: Workers = 1,
    ray_address: RayAddress = None,
    disk_cap: DiskCap = None,
    device: Device = None,
    device_map: DeviceMap = None,
    dtype: Dtype = None,
    trust_remote_code: Trust = False,
    threads: Threads = None,
    json: Annotated[bool, typer.Option("--json", help="Print the steps of emergence as strict JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Survey every checkpoint of a model on the same text and tell what emerged at which step, and in which order."""
    from gnomon.cli.choices import loading_options, run_name, set_threads
    from gnomon.cli.progress import ProgressReport
    from gnomon.cli.survey import corpus_of
    from gnomon.cli.sweep_options import cap_bytes
    from gnomon.study.registry import choose

    names = choose(measures)
    corpus = corpus_of(text, sequences, length, None, None, None, bos, seed)
    loading = loading_options(None, device, device_map, dtype, trust_remote_code)
    found = chosen_checkpoints(model, revisions, checkpoints)
    arguments = {
        "model": model,
        "revisions": revisions,
        "checkpoints": checkpoints and str(checkpoints),
        "corpus": corpus.to_json(),
        "measures": measures,
        "seed": seed,
        **loading,
    }
    folder = out if out is not None else run_name(f"evolve-{model or checkpoints}", arguments)
    set_threads(threads)

    from gnomon.study.evolve import evolve as run_evolve

    with ProgressReport("evolve", quiet=quiet) as progress:
        progress.say(f"{len(found)} checkpoints: {', '.join(one.name for one in found)}")
        summary = run_evolve(
            found,
            out=folder,
            corpus=corpus,
            measures=names,
            batch_size=batch_size,
            seed=seed,
            workers=workers,
            ray_address=ray_address,
            disk_cap=cap_bytes(disk_cap),
            progress=progress,
            arguments={**arguments, "out": str(folder)},
            **loading,
        )
    if json:
        from gnomon.report.headline_json import headline_json

        typer.echo(headline_json(summary), nl=False)
        return
    from gnomon.report.terminal import print_survey

    print_survey(summary)


def chosen_checkpoints(model: str | None, revisions: str | None, checkpoints: Path | None) -> list[Checkpoint]:
    """What the three ways of naming checkpoints come to; exactly one of them."""
    from gnomon.study.checkpoints import of_folder, of_revisions, of_zoo

    if checkpoints is not None:
        if model is not None or revisions is not None:
            raise ConfigError("`--checkpoints` must be given alone, got a model or revisions beside it; leave them out.")
        return of_folder(checkpoints)
    if model is None:
        raise ConfigError(
            "`model` must be given, got none; name a hub model with --revisions, zoo:NAME, or a folder with --checkpoints."
        )
    if revisions is not None:
        return of_revisions(model, revisions.split(","))
    if model.startswith("zoo:"):
        return of_zoo(model)
    if Path(model).is_dir():
        return of_folder(model)
    raise ConfigError(f"`revisions` must name the checkpoints of {model}, got none; give --revisions step0,step512,main.")
