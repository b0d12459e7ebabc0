"""What stands at position 0, and why.

Position 0 is the one place that every causal query sees, and what a model does there depends on whether it was trained with a
special token in front. Tools that prepend one without saying so report sink rates that cannot be compared. So the policy is asked
for by name, its outcome is recorded with every window, and a choice that contradicts the model's own tokenizer carries a warning.

===========  ===============================================================================================
policy       what is put at position 0
===========  ===============================================================================================
``auto``     what the tokenizer itself puts there when it encodes a text
``always``   the tokenizer's BOS (or CLS) token, whether or not the tokenizer adds it by itself
``never``    nothing: the first token of the text
===========  ===============================================================================================

Encoders close a window with SEP where they open it with CLS; both are marked special. The tokenizer is any object that behaves
like one of transformers': it is called on a string and gives ``input_ids``, and it has ``bos_token_id``, ``cls_token_id``,
``all_special_ids`` and ``convert_ids_to_tokens``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from gnomon.errors import ConfigError, CorpusError

BosPolicy = Literal["auto", "always", "never"]
PROBE = "x"


@dataclass(frozen=True, kw_only=True)
class FirstToken:
    """What stands at position 0 of every window.

    Attributes:
        policy: what was asked for.
        placed: whether a token was put in front of the text; if not, position 0 holds the first token of the text.
        id: id of that token, None where nothing was placed.
        text: its text, None where nothing was placed.
        special: whether the tokenizer counts it as special.
        why: one sentence on how this came about.
        warning: one sentence where the choice contradicts the model's tokenizer or is easily misread.
        closing_id: id of the token put after the text (an encoder's SEP), if any.
    """

    policy: BosPolicy
    placed: bool
    id: int | None
    text: str | None
    special: bool
    why: str
    warning: str | None = None
    closing_id: int | None = None

    def __post_init__(self) -> None:
        check_policy(self.policy)
        if self.placed != (self.id is not None):
            raise ConfigError(f"`id` must be given exactly when a token is `placed`, got placed={self.placed} and id={self.id}.")

    @property
    def added(self) -> int:
        """Tokens of a window that are not text."""
        return int(self.placed) + int(self.closing_id is not None)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a result file."""
        return asdict(self)

    @classmethod
    def from_json(cls, tree: dict[str, Any]) -> FirstToken:
        """The inverse of :meth:`to_json`."""
        return cls(**tree)


def check_policy(policy: str) -> None:
    """Raise unless ``policy`` is one of the three."""
    if policy not in get_args(BosPolicy):
        raise ConfigError(f"`bos` must be auto, always or never, got {policy!r}.")


def decide_first_token(tokenizer: Any, policy: BosPolicy = "auto", *, encoder: bool = False) -> FirstToken:
    """Settle what stands at position 0 (and, for an encoder, at the end) by the policy and by what the tokenizer does.

    Args:
        tokenizer: a tokenizer in the manner of transformers.
        policy: ``auto``, ``always`` or ``never``.
        encoder: whether the model is an encoder, whose BOS is CLS and whose windows are closed by SEP.

    Raises:
        CorpusError: ``always`` on a tokenizer that has no such token.
    """
    check_policy(policy)
    first, last = _added_by(tokenizer)
    opening = _opening_id(tokenizer, encoder)
    if policy == "never":
        warning = None
        if first is not None:
            warning = (
                f"the tokenizer puts {_text(tokenizer, first)} first and `never` leaves it out; "
                "the model was probably trained with it, so its sinks may move to the first text token."
            )
        return FirstToken(
            policy=policy,
            placed=False,
            id=None,
            text=None,
            special=False,
            why="`never` was asked for: position 0 is the first token of the text.",
            warning=warning,
        )
    if policy == "auto":
        return _automatic(tokenizer, first, last, opening, encoder)
    chosen = first if first is not None else opening
    if chosen is None:
        raise CorpusError(
            "`bos` must be auto or never for this tokenizer, got 'always'; it defines no BOS or CLS token, "
            "so there is nothing to put at position 0."
        )
    closing = last if encoder and last is not None else (getattr(tokenizer, "sep_token_id", None) if encoder else None)
    contradicts = first is None
    return FirstToken(
        policy=policy,
        placed=True,
        id=chosen,
        text=_text(tokenizer, chosen),
        special=chosen in special_ids(tokenizer),
        why="`always` was asked for"
        + (", although the tokenizer does not add it by itself." if contradicts else ", as the tokenizer also does."),
        warning=_contradiction(tokenizer, chosen) if contradicts else None,
        closing_id=closing,
    )


def _automatic(tokenizer: Any, first: int | None, last: int | None, opening: int | None, encoder: bool) -> FirstToken:
    if first is None:
        named = f" ({_text(tokenizer, opening)} exists but is not put in front)" if opening is not None else ""
        return FirstToken(
            policy="auto",
            placed=False,
            id=None,
            text=None,
            special=False,
            why=f"the tokenizer adds no token in front of a text{named}: position 0 is the first token of the text.",
            closing_id=last if encoder else None,
        )
    return FirstToken(
        policy="auto",
        placed=True,
        id=first,
        text=_text(tokenizer, first),
        special=first in special_ids(tokenizer),
        why=f"the tokenizer puts {_text(tokenizer, first)} in front of every text.",
        closing_id=last if encoder else None,
    )


def _contradiction(tokenizer: Any, chosen: int) -> str:
    text = _text(tokenizer, chosen)
    ends = chosen == getattr(tokenizer, "eos_token_id", None)
    if ends:
        meaning = (
            f"{text} is also this model's end-of-text token, which in training separated documents: "
            "the model has seen it before a text, but not at the start of every window"
        )
    elif "im_start" in text:
        meaning = f"{text} opens a chat message, and in training it was followed by a role, not by running text"
    else:
        meaning = f"the model was probably not trained with {text} at the start of every window"
    return f"the tokenizer does not put {text} first by itself; {meaning}, so compare with `auto` before reading the sinks."


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Ids that count as special: the named ones and added ones marked so, without the token for the unknown."""
    marks = {getattr(tokenizer, f"{name}_token_id", None) for name in ("bos", "eos", "cls", "sep")}
    unknown = getattr(tokenizer, "unk_token_id", None)
    added = getattr(tokenizer, "added_tokens_decoder", {})
    found = set(tokenizer.all_special_ids) | {token for token, entry in added.items() if getattr(entry, "special", False)}
    if unknown not in marks:
        found.discard(unknown)
    return frozenset(int(token) for token in found)


def _added_by(tokenizer: Any) -> tuple[int | None, int | None]:
    """Tokens that the tokenizer itself puts before and after a text, found by encoding one with and without."""
    bare = _ids(tokenizer, add_special_tokens=False)
    full = _ids(tokenizer, add_special_tokens=True)
    if len(full) <= len(bare):
        return None, None
    for before in range(len(full) - len(bare) + 1):
        if full[before : before + len(bare)] == bare:
            after = full[before + len(bare) :]
            return (full[before - 1] if before else None), (after[0] if after else None)
    special = special_ids(tokenizer)
    return (full[0] if full[0] in special else None), (full[-1] if full[-1] in special else None)


def _ids(tokenizer: Any, *, add_special_tokens: bool) -> list[int]:
    return [int(token) for token in tokenizer(PROBE, add_special_tokens=add_special_tokens)["input_ids"]]


def _opening_id(tokenizer: Any, encoder: bool) -> int | None:
    names = ("cls_token_id", "bos_token_id") if encoder else ("bos_token_id",)
    for name in names:
        found = getattr(tokenizer, name, None)
        if found is not None:
            return int(found)
    return None


def _text(tokenizer: Any, token: int) -> str:
    return str(tokenizer.convert_ids_to_tokens(token))
