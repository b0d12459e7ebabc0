"""Position 0 through the layers: a closed system, and a fingerprint of its token.

**Closed system (A5).** Under a causal mask position 0 attends to itself alone, so what happens there depends on its
token and on nothing else. The first token is run alone and in front of its text; per level of the residual stream,
and for the keys and values of every layer, the largest ``|x_alone - x_context| / |x_context|`` over sequences is
reported. 0 in exact arithmetic; a few units of rounding in practice, since matrix products of other shapes add in
another order. In a bidirectional model, and in a decoder that attends to an
encoder too, it is large, and is reported as what it is: not a closed system.

**Fingerprint (A9).** A set of tokens is put, each in turn, in front of the same contexts. Per level and per site
(hidden state, key and value at position 0; ``later``, the mean hidden state over the second half of the context, less
its mean over tokens): the spread over contexts of one token (``within``), over tokens (``between``), both relative to
the root mean square norm, and the accuracy of naming the token by the nearest centroid of the other contexts
(``accuracy``; chance is one over the number of tokens). In a causal model ``within`` at position 0 is 0 by A5; what
is to be learnt there is how far apart tokens stay, and at ``later`` whether positions that only read the anchor know
which it was.

Beside these: the cosine of each level to the last (``cosine_to_final``), the two leading principal coordinates of the
tokens, and the largest activations at position 0 against the median, which is where massive activations sit.

What it cannot show: that the fingerprint is used; see ``gnomon intervene``. Claims A5, A9.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture import AttentionView, StateView, capture_pass
from gnomon.corpus import Windows
from gnomon.dims import LAYER, LEVEL, RANK, TOKEN
from gnomon.kernels import Needs
from gnomon.model import PositionModel
from gnomon.statistics import Estimate
from gnomon.study.experiment import Arrays, Context, Experiment
from gnomon.study.fingerprint import SITES, fingerprint

NUM_SEQUENCES = 8
NUM_TOKENS = 12
NUM_CONTEXTS = 6
CONTEXT_LENGTH = 64
NUM_LARGEST = 3


class Trajectory(Experiment):
    """Position 0 alone, in context, and with other tokens."""

    name: ClassVar[str] = "trajectory"
    title: ClassVar[str] = "Trajectory of position 0"
    claims: ClassVar[tuple[str, ...]] = ("A5", "A9")

    def run(self, model: PositionModel, windows: Windows, context: Context) -> xr.Dataset:
        """The closed system, then the fingerprint."""
        some = windows.take(np.arange(min(NUM_SEQUENCES, len(windows)))).trimmed()
        closed = context.stage("closed", lambda: closed_system(model, some))
        context.progress(1, 2)
        tokens, contexts = choose_tokens(windows), choose_contexts(windows)
        sites = context.stage("fingerprint", lambda: tokens_in_contexts(model, tokens, contexts, context.batch_size))
        context.progress(2, 2)
        dataset = _closed_dataset(closed).merge(fingerprint(sites, seed=context.seed), combine_attrs="no_conflicts")
        texts = [str(token) if model.tokenizer is None else model.tokenizer.decode([int(token)]) for token in tokens]
        dataset = dataset.assign_coords({TOKEN: tokens, "token_text": (TOKEN, texts)})
        dataset.attrs.update(causal=int(model.anatomy.causal), dtype=str(model.dtype), num_sequences=len(some))
        dataset.attrs["tolerance"] = tolerance(model.dtype)
        dataset.attrs["missing"] = "accuracy needs two contexts and two tokens"
        return dataset

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Largest deviation over levels, keys and values; accuracy of naming the token, at the anchor and from later positions."""
        number = int(dataset.attrs["num_sequences"])
        largest = max(float(dataset[f"{site}_deviation"].max()) for site in ("hidden", "key", "value"))
        out = {"deviation": Estimate(largest, n=number)}
        for name, variable in {"accuracy_anchor": "value_accuracy", "accuracy_later": "later_accuracy"}.items():
            at = dataset.isel({str(dataset[variable].dims[0]): -1})
            value, low, high = (float(at[variable + suffix]) for suffix in ("", "_low", "_high"))
            contexts = int(dataset.attrs["num_contexts"])
            known = np.isfinite(value)
            out[name] = (
                Estimate(value, low, high, contexts) if known else Estimate.missing("too few contexts or tokens", contexts)
            )
        return out

    def labels(self, dataset: xr.Dataset) -> dict[str, str]:
        """Whether position 0 is a closed system."""
        deviation = self.headline(dataset)["deviation"].value
        return {"position_0": "closed system" if deviation <= float(dataset.attrs["tolerance"]) else "not a closed system"}


def tolerance(dtype: torch.dtype) -> float:
    """The largest relative deviation that still counts as rounding: ``2 * eps^(2/3)``, 5e-5 in float32, 0.08 in bfloat16."""
    return float(2 * torch.finfo(dtype).eps ** (2 / 3))


class FirstPosition(NamedTuple):
    """What a pass shows of position 0, and of later positions.

    Attributes:
        hidden: ``[B, level, E]``.
        key: ``[B, layer, G D]``.
        value: ``[B, layer, G Dv]``.
        later: mean hidden state over the second half, ``[B, level, E]``.
        largest: largest magnitudes of the hidden state at position 0, ``[B, level, 3]``.
        median: median magnitude at position 0, ``[B, level]``.
        elsewhere: median over other positions of their largest magnitude, ``[B, level]``.
    """

    hidden: Tensor
    key: Tensor
    value: Tensor
    later: Tensor
    largest: Tensor
    median: Tensor
    elsewhere: Tensor


def first_position(model: PositionModel, tokens: Tensor, lengths: Tensor) -> FirstPosition:
    """One pass over ``tokens [B, T]``, watched at position 0."""
    kept: dict[str, list[Tensor]] = {name: [] for name in FirstPosition._fields}

    def on_view(view: AttentionView) -> None:
        kept["key"].append(view.problem.key[:, :, 0].flatten(1))
        kept["value"].append(view.problem.value[:, :, 0].flatten(1))

    def on_states(view: StateView) -> None:
        hidden = view.hidden.float()
        positions = torch.arange(hidden.shape[1], device=hidden.device)[None]
        length = view.lengths.to(hidden.device)[:, None]
        later = ((positions >= length // 2) & (positions < length)).to(hidden.dtype)
        magnitude = hidden.abs()
        others = magnitude.amax(-1).masked_fill((positions == 0) | (positions >= length), torch.nan)
        kept["hidden"].append(view.hidden[:, 0])
        kept["later"].append(torch.einsum("bt,bte->be", later, hidden) / later.sum(1, keepdim=True))
        kept["largest"].append(magnitude[:, 0].topk(min(NUM_LARGEST, hidden.shape[-1])).values)
        kept["median"].append(magnitude[:, 0].median(-1).values)
        kept["elsewhere"].append(others.nanmedian(-1).values)

    capture_pass(model, tokens, lengths, needs=Needs(states=True), on_view=on_view, on_states=on_states)
    return FirstPosition(**{name: torch.stack([value.float().cpu() for value in values], 1) for name, values in kept.items()})


def closed_system(model: PositionModel, windows: Windows) -> Arrays:
    """Deviations of position 0 alone from position 0 in context, its direction and its largest activations."""
    tokens, lengths = torch.from_numpy(windows.tokens.copy()), torch.from_numpy(windows.lengths.copy())
    inside = first_position(model, tokens, lengths)
    alone = first_position(model, tokens[:, :1].contiguous(), torch.ones_like(lengths))
    out = {f"{site}_deviation": _deviation(getattr(alone, site), getattr(inside, site)) for site in ("hidden", "key", "value")}
    final = inside.hidden[:, -1:]
    out["cosine_to_final"] = torch.nn.functional.cosine_similarity(inside.hidden.double(), final.double(), dim=-1).mean(0)
    for name in ("largest", "median", "elsewhere"):
        out[name] = getattr(inside, name).mean(0)
    return {name: values.numpy() for name, values in out.items()}


def tokens_in_contexts(model: PositionModel, tokens: NDArray[np.int64], contexts: NDArray[np.int64], batch_size: int) -> Arrays:
    """Every site for every token before every context, ``[token, context, level, feature]``."""
    inputs = np.broadcast_to(contexts[None], (len(tokens), *contexts.shape)).copy()
    inputs[:, :, 0] = tokens[:, None]
    flat = torch.from_numpy(inputs.reshape(-1, contexts.shape[1]))
    size = max(batch_size, 1)
    passes = [first_position(model, chunk, torch.full((len(chunk),), chunk.shape[1])) for chunk in torch.split(flat, size)]
    shape = (len(tokens), len(contexts))
    whole = {site: torch.cat([getattr(one, site) for one in passes]).numpy() for site in SITES}
    return {site: values.reshape(*shape, *values.shape[1:]) for site, values in whole.items()}


def choose_tokens(windows: Windows) -> NDArray[np.int64]:
    """The token that stands at position 0 most often, then the most frequent ordinary tokens of the text."""
    first = np.bincount(windows.tokens[:, 0]).argmax()
    counts = np.bincount(windows.tokens[windows.real & ~windows.special])
    frequent = [token for token in np.argsort(-counts, kind="stable") if token != first and counts[token]]
    return np.asarray([first, *frequent[: NUM_TOKENS - 1]], dtype=np.int64)


def choose_contexts(windows: Windows) -> NDArray[np.int64]:
    """The first sequences that are long enough, cut to one length, ``[context, position]``."""
    length = min(CONTEXT_LENGTH, int(np.sort(windows.lengths)[::-1][min(NUM_CONTEXTS, len(windows)) - 1]))
    return windows.tokens[windows.lengths >= length][:NUM_CONTEXTS, :length]


def _deviation(alone: Tensor, inside: Tensor) -> Tensor:
    """Largest relative deviation over sequences, per level or layer."""
    difference = (alone.double() - inside.double()).norm(dim=-1)
    relative: Tensor = difference / inside.double().norm(dim=-1).clamp_min(torch.finfo(torch.float32).tiny)
    return relative.amax(0)


def _closed_dataset(closed: Arrays) -> xr.Dataset:
    meaning = {
        "hidden_deviation": ((LEVEL,), "largest relative deviation of the hidden state at position 0, alone against in context"),
        "key_deviation": ((LAYER,), "largest relative deviation of the keys at position 0"),
        "value_deviation": ((LAYER,), "largest relative deviation of the values at position 0"),
        "cosine_to_final": ((LEVEL,), "cosine of the hidden state at position 0 to that of the last level"),
        "largest": ((LEVEL, RANK), "largest magnitudes of the hidden state at position 0"),
        "median": ((LEVEL,), "median magnitude of the hidden state at position 0"),
        "elsewhere": ((LEVEL,), "median over other positions of their largest magnitude"),
    }
    variables = {name: (dims, closed[name], {"long_name": text, "units": "1"}) for name, (dims, text) in meaning.items()}
    levels, layers = len(closed["hidden_deviation"]), len(closed["key_deviation"])
    return xr.Dataset(variables, coords={LEVEL: np.arange(levels), LAYER: np.arange(layers)})
