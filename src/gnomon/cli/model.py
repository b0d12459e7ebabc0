"""``gnomon model``: what a model is, before anything is measured."""

from __future__ import annotations

from typing import Annotated

import typer

from gnomon.cli.choices import DEFAULT_MODEL, Device, DeviceMap, Dtype, Model, Revision, Trust


def model(
    name: Model = DEFAULT_MODEL,
    json: Annotated[bool, typer.Option("--json", help="Print everything that is known, as strict JSON.")] = False,
    revision: Revision = None,
    device: Device = None,
    device_map: DeviceMap = None,
    dtype: Dtype = None,
    trust_remote_code: Trust = False,
) -> None:
    """Describe a model's anatomy and positional scheme, and prove that gnomon sees its attention."""
    import sys

    from gnomon.cli.choices import loading_options

    chosen = loading_options(revision, device, device_map, dtype, trust_remote_code)

    from gnomon.model import describe_model
    from gnomon.report.terminal.page import show
    from gnomon.report.terminal.tables import facts
    from gnomon.result.strict_json import dumps
    from gnomon.study.opening import open_model

    opened = open_model(name, **chosen)
    if json:
        typer.echo(dumps({**describe_model(opened), "proof": opened.proof}), nl=False)
        return
    rows = [("model", opened.name), ("anatomy", opened.anatomy.describe()), ("scheme", opened.scheme.describe())]
    if (proof := opened.proof) is not None:
        rows += [
            ("proved", f"hidden states within {proof.deviation:.2g} of those under {proof.reference} attention"),
            ("", f"rows add up to one within {proof.row_sum_error:.2g}; attention is {'' if proof.causal else 'not '}causal"),
        ]
    show(facts(rows), sys.stdout)
