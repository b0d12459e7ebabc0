"""``gnomon zoo``: the little models that differ in their positional scheme only, and their training."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.failures import guarded
from gnomon.errors import ConfigError

if TYPE_CHECKING:
    from gnomon.zoo.recipes import Recipe

ZOO = Path("zoo")

zoo = typer.Typer(
    help="List the zoo: little models that differ in their positional scheme only. `zoo train` trains them.",
    invoke_without_command=True,
    no_args_is_help=False,
    rich_markup_mode=None,
)


@zoo.callback()
@guarded
def list_zoo(context: typer.Context) -> None:
    """List the zoo: little models that differ in their positional scheme only. `zoo train` trains them."""
    if context.invoked_subcommand is not None:
        return
    from gnomon.report.terminal.page import show
    from gnomon.report.terminal.tables import number, table
    from gnomon.zoo.catalog import members

    rows, problems = [], []
    for one in members():
        size = f"{one.size / 1e6:.1f} MB" if one.size else ""
        loss = "" if math.isnan(one.held_out_loss) else number(one.held_out_loss, 4)
        steps = "" if one.steps is None else str(one.steps)
        rows.append((one.name, one.summary, steps, loss, size, str(len(one.checkpoints) or ""), str(one.folder or "")))
        problems += [f"{one.name}: {one.problem}"] if one.problem else []
    columns = ("name", "scheme", "steps", "held-out loss", "size", "checkpoints", "folder")
    show(table(columns, rows, left=2), sys.stdout)
    for problem in problems:
        typer.echo(f"! {problem}")
    typer.echo(
        "\nOpen one as zoo:NAME or zoo:NAME@STEP; train with `gnomon zoo train NAME --text DIR`; set GNOMON_ZOO to a zoo elsewhere."
    )


@zoo.command("train")
@guarded
def train(
    recipes: Annotated[list[str], typer.Argument(help="Names of recipes, or `all`.", metavar="RECIPE...")],
    text: Annotated[Path, typer.Option(help="Folder with .txt files.")],
    out: Annotated[Path, typer.Option(help="Folder of the zoo; members become DIR/NAME. The same command resumes.")] = ZOO,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimizer steps; the recipe's otherwise.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Windows per step; the recipe's otherwise.")] = None,
    context: Annotated[int | None, typer.Option(min=8, help="Tokens per window; the recipe's otherwise.")] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Of the first weights; the recipe's otherwise. Another seed is another member, NAME-sSEED."),
    ] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="tokenizer.json to use; one is trained on the text otherwise.")] = None,
    sources: Annotated[str, typer.Option(help="What the text is and under which licences, for the model card.")] = "",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1; the fastest there is otherwise.")] = None,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the model: faster steps after a slow first one.")] = False,
    keep_every: Annotated[int, typer.Option(min=1, help="Steps between states to resume from.")] = 500,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only where the members are.")] = False,
) -> None:
    """Train members of the zoo on a folder of text; the same command goes on where it stopped."""
    from gnomon.cli.progress import ProgressReport
    from gnomon.zoo.recipes import RECIPES, recipe_named

    names = list(RECIPES) if recipes == ["all"] else recipes
    chosen = [adapted(recipe_named(name), steps, batch, context, seed) for name in names]
    if not text.is_dir():
        raise ConfigError(f"`text` must be a folder with .txt files, got {str(text)!r}, which is no folder.")

    import torch

    from gnomon.zoo.text import prepared
    from gnomon.zoo.training import train as train_member

    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    with ProgressReport("train", quiet=quiet) as progress:
        progress.say(f"reading {text}")
        corpus = prepared(text, out, tokenizer=tokenizer, sources=sources)
        progress.say(
            f"{len(corpus.train)} tokens to train on, {len(corpus.held_out)} held out, {corpus.tokenizer.get_vocab_size()} in the vocabulary"
        )
        for recipe in chosen:
            folder = train_member(
                recipe,
                corpus,
                out,
                device=where,
                keep_every=keep_every,
                log_every=10 if where == "cpu" else 50,
                compiled=compiled,
                progress=lambda step, last, loss, name=recipe.name: progress(f"{name} (loss {loss:.3f})", step, last),  # type: ignore[misc]
            )
            typer.echo(str(folder))


def adapted(recipe: Recipe, steps: int | None, batch: int | None, context: int | None, seed: int | None) -> Recipe:
    """The recipe with the options given; warm-up and checkpoints shrink with the steps."""
    from dataclasses import replace

    changes: dict[str, Any] = {
        key: value for key, value in {"steps": steps, "batch": batch, "context": context}.items() if value is not None
    }
    last = changes.get("steps", recipe.schedule.steps)
    if steps is not None:
        changes["warmup"] = min(recipe.schedule.warmup, max(1, steps // 20))
    out = replace(recipe.scaled(**changes), checkpoints=tuple(step for step in recipe.checkpoints if step < last))
    if seed is None or seed == recipe.seed:
        return out
    return replace(out, seed=seed, name=f"{recipe.name}-s{seed}")
