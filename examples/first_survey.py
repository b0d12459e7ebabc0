# %% [markdown]
# # A first survey
#
# A gnomon is the upright of a sundial: the fixed thing whose shadow tells where you are. In a transformer the token at position 0 plays that part. This notebook
# surveys a small real model, SmolLM2-135M-Instruct, and looks at what was found. It needs no model hub: `smollm2-135m` comes from the Python package index.
#
# Eight windows of 64 tokens keep it short; the defaults, 32 windows of 256, give narrower intervals and the later bands that are missing here.

# %% parameters
MODEL = "smollm2-135m"
SEQUENCES = 8
LENGTH = 64

# %%
import gnomon
from gnomon.corpus import CorpusSpec

survey = gnomon.survey(MODEL, corpus=CorpusSpec(sequences=SEQUENCES, length=LENGTH, bos="always"))
survey

# %% [markdown]
# Every headline number has its 95 % interval over sequences, or says why it is missing. Each measure is an xarray dataset whose dimensions are whole words.

# %%
survey["sinks"]["position_0_mass"]

# %% [markdown]
# ## Figures
#
# `survey.plot.figures` lists them; `survey.plot.sinks()` is the main one of a measure. Here: which heads put their weight on position 0, by layer and head.

# %%
survey.plot.figures

# %%
survey.plot.sinks()

# %% [markdown]
# How much absolute position attention shows, by band of query positions, parted into the causal mask's share and that of the residual stream. With eight short texts the intervals
# are wide, and include 0: that is the answer, not a fault.

# %%
survey.plot.leakage()

# %% [markdown]
# ## Tables
#
# All headline numbers, or one measure with a row per layer and head.

# %%
survey.to_dataframe().query("measure == 'frames'")[["quantity", "value", "low", "high", "n", "reason"]]

# %%
survey.to_dataframe("sinks", "position_0_mass", "position_0_mass_low", "position_0_mass_high").nlargest(5, "position_0_mass")

# %% [markdown]
# Everything in one tree, to be saved or merged with xarray.

# %%
tree = survey.to_xarray()
print(tree.attrs["model"], *sorted(tree.children))

# %% [markdown]
# ## A measure of your own
#
# A measure says what it needs, keeps one value per sequence for each layer, and names a few headline numbers. Intervals, resuming and storage come with it.

# %%
from collections.abc import Mapping

from gnomon.kernels import Needs
from gnomon.measure.averaged import Averages
from gnomon.measure.overall import add_overall, read_overall
from gnomon.measure.protocol import Measure


class Peak(Measure):
    """The largest weight of a query's row."""

    name, title = "peak", "Largest weight"

    def needs(self, subject):
        return Needs(moments=frozenset({"peak"}))

    def observe(self, view) -> Mapping:
        return {"peak": view.moment("peak").nanmean(-1)}

    def finish(self, observed):
        out = Averages(observed.subject.seed)
        out.mean("peak", observed.layers["peak"], ("layer", "head"), "mean largest weight of a row")
        add_overall(out, "peak", observed.layers["peak"], "mean largest weight of a row, over layers and heads")
        return out.dataset(attrs={"title": self.title})

    def headline(self, dataset):
        return {"peak": read_overall(dataset, "peak", "no sequence")}


mine = gnomon.survey(MODEL, corpus=CorpusSpec(sequences=SEQUENCES, length=LENGTH, bos="always"), measures=[Peak()])
mine.headline["peak"]["peak"]
