"""The run's record as facts for the top of the page, and in full for its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gnomon.report.html.text import visible

GROUPS: Final = {
    "Model": ("model", "anatomy"),
    "Positional scheme": ("scheme",),
    "Text": ("corpus",),
    "Computation": ("arguments", "command", "dtype", "device", "backend", "threads", "seed", "proof", "times"),
    "Software and machine": ("versions", "git", "machine", "schema", "status"),
    "Fingerprint": ("fingerprint",),
}
LONGEST: Final = 160


def facts(info: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Model, text, computation in a few lines."""
    return list(_facts(info))


def provenance(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Everything the record says, in groups of path and value; long lists are cut."""
    groups = []
    for title, keys in GROUPS.items():
        rows = [row for key in keys if key in info for row in _flat(info[key], key)]
        if rows:
            groups.append({"title": title, "rows": rows})
    return groups


def _facts(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    anatomy, model, corpus = (_mapping(info, key) for key in ("anatomy", "model", "corpus"))
    if anatomy:
        words = {"num_layers": "layers", "num_heads": "heads", "num_kv_heads": "key/value heads", "head_dim": "features per head"}
        shape = ", ".join(f"{anatomy[key]} {word}" for key, word in words.items() if anatomy.get(key))
        yield "Model", visible(" · ".join(filter(None, [str(anatomy.get("architecture") or ""), shape])))
    weights = model.get("weights") or model.get("weight_hash")
    if weights:
        revision = f", revision {model['revision']}" if model.get("revision") else ""
        yield "Weights", visible(f"{str(weights)[:16]}{revision}")
    scheme = info.get("scheme")
    if isinstance(scheme, Mapping) and scheme.get("description"):
        yield "Positions", visible(scheme["description"])
    if corpus:
        count, length = corpus.get("sequences"), corpus.get("length")
        size = f", {count} windows of {length} tokens" if count and length else ""
        yield "Text", visible(f"{corpus.get('source', 'unknown')}{size}")
    how = [str(info[key]) for key in ("dtype", "device", "backend") if info.get(key)]
    if how:
        yield "Computed", visible(", ".join(how) + (f", seed {info['seed']}" if info.get("seed") is not None else ""))
    times = _mapping(info, "times")
    if times.get("started"):
        took = f", {times['seconds']:.1f} s" if isinstance(times.get("seconds"), int | float) else ""
        yield "When", visible(f"{times['started']}{took}")


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if not value:
            yield visible(path), "–"
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}")
        return
    text = visible("–" if value is None else value)
    yield visible(path), text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def _mapping(tree: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = tree.get(key)
    return found if isinstance(found, Mapping) else {}
