"""``gnomon compare``: runs and models side by side."""

from __future__ import annotations

import sys
from typing import Annotated

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


def compare(
    sources: Annotated[
        list[str], typer.Argument(help="Run folders or models, two or more; models are surveyed.", metavar="RUN|MODEL...")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as strict JSON.")] = False,
    measure: Annotated[list[str] | None, typer.Option("--measure", help="Compare this measure only; may be repeated.")] = None,
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
    quiet: Quiet = False,
) -> None:
    """Compare runs, or models that are surveyed first: every headline number and its difference from the first, with intervals."""
    from gnomon.cli.choices import loading_options, run_name, set_threads
    from gnomon.cli.progress import ProgressReport
    from gnomon.cli.survey import corpus_of
    from gnomon.cli.sweep_options import cap_bytes
    from gnomon.study.registry import choose

    names = choose(measures)
    corpus = corpus_of(text, sequences, length, None, None, None, bos, seed)
    loading = loading_options(None, device, device_map, dtype, trust_remote_code)
    arguments = {"corpus": corpus.to_json(), "measures": measures, "seed": seed, **loading}
    folder = out if out is not None else run_name("compare", arguments)
    set_threads(threads)

    from gnomon.study.compare import compare as run_compare

    with ProgressReport("compare", quiet=quiet) as progress:
        comparison, failures = run_compare(
            sources,
            out=folder,
            corpus=corpus,
            measures=names,
            only=measure,
            batch_size=batch_size,
            seed=seed,
            workers=workers,
            ray_address=ray_address,
            disk_cap=cap_bytes(disk_cap),
            progress=progress,
            arguments=arguments,
            **loading,
        )
    for name, why in failures.items():
        typer.echo(f"gnomon: {name}: {why}", err=True)
    if json:
        from gnomon.result.strict_json import dumps

        typer.echo(dumps(comparison.to_json()), nl=False)
        return
    from gnomon.report.terminal.comparison import comparison_page
    from gnomon.report.terminal.page import show

    show(comparison_page(comparison), sys.stdout)
