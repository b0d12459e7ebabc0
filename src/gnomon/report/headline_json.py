"""The headline numbers as strict JSON, for scripts and CI."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnomon.errors import ConfigError

if TYPE_CHECKING:
    from gnomon.result import Survey


def headline_json(survey: Survey, only: Sequence[str] | None = None) -> str:
    """One tree: measure → quantity → ``value``, ``low``, ``high``, ``n``; a missing number is ``null`` beside its ``reason``."""
    chosen = chosen_measures(survey, only)
    tree = {name: {key: number.to_json() for key, number in survey.headline.get(name, {}).items()} for name in chosen}
    return json.dumps(tree, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def chosen_measures(survey: Survey, only: Sequence[str] | None) -> list[str]:
    """Measures to show, in the order of the survey; all of them when none is named."""
    known = list(dict.fromkeys([*survey.measures, *survey.headline]))
    unknown = [name for name in only or [] if name not in known]
    if unknown:
        raise ConfigError(f"`measure` must be one of {', '.join(known) or 'none'} in this run, got {', '.join(unknown)}.")
    return [name for name in known if name in only] if only else known
