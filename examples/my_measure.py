"""A measure of your own: how much each head looks at the token just before, beside uniform attention over the keys it sees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import xarray as xr
from torch import Tensor

from gnomon.capture import AttentionView
from gnomon.dims import HEAD, LAYER
from gnomon.kernels import Needs
from gnomon.kernels.quantities import DEFAULT_OFFSET_EDGES
from gnomon.measure.averaged import Averages
from gnomon.measure.overall import add_overall, read_overall
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate


@dataclass(frozen=True, kw_only=True)
class PreviousToken(Measure):
    """Mean weight at offset 1, for decoders."""

    name: ClassVar[str] = "previous_token"
    title: ClassVar[str] = "Attention to the previous token"

    def needs(self, subject: Subject) -> Needs:
        """Weight by band of offset; the band from 1 to below 2 is the previous token."""
        return Needs(offset_edges=DEFAULT_OFFSET_EDGES)

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Means over the queries from 1 on, per sequence and head; queries beyond a sequence's end are NaN and do not count."""
        mass = view.offset_mass[:, :, 1:, DEFAULT_OFFSET_EDGES.index(1)]
        uniform = (1 / view.mask.counts(view.problem.length)[:, None, 1:]).where(mass.isfinite(), float("nan"))
        return {"mass": mass.nanmean(-1), "uniform": uniform.nanmean(-1)}

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means over sequences with intervals."""
        out = Averages(observed.subject.seed)
        out.mean("mass", observed.layers["mass"], (LAYER, HEAD), "mean weight on the previous token")
        out.mean("uniform", observed.layers["uniform"], (LAYER, HEAD), "the same under uniform attention")
        add_overall(out, "mass", observed.layers["mass"], "mean weight on the previous token, over layers and heads")
        return out.dataset(attrs={"title": self.title, "missing": "no sequence has two tokens"})

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """One number."""
        return {"mass": read_overall(dataset, "mass", "no sequence has two tokens")}
