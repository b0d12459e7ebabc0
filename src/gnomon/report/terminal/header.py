"""The header: which model, which scheme, which text, what sits at position 0 and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from gnomon.report.terminal.tables import facts, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gnomon.result import Survey

REPORT = "report.html"


def header(survey: Survey) -> RenderableType:
    """Model, scheme, corpus, position 0, and every warning of the run."""
    warnings = [Text(f"! {plain(warning)}", "yellow") for warning in _warnings(survey.info)]
    return Group(Text(plain(survey.model_name), "bold"), facts(header_facts(survey.info)), *warnings)


def header_facts(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Label and text of each line; what the record does not say is left out."""
    model, anatomy = _mapping(info, "model"), _mapping(info, "anatomy")
    shape = ", ".join(f"{anatomy[key]} {word}" for key, word in _SHAPE.items() if anatomy.get(key))
    name = anatomy.get("architecture") or anatomy.get("family") or model.get("architecture") or model.get("model_type")
    if shape or name:
        yield "model", " · ".join(filter(None, [str(name or ""), shape]))
    weights = model.get("weight_hash") or model.get("weights")
    if weights:
        yield "weights", f"{str(weights)[:16]}" + (f", revision {model['revision']}" if model.get("revision") else "")
    scheme = info.get("scheme")
    if scheme:
        yield "scheme", _described(scheme)
    corpus = _mapping(info, "corpus")
    if corpus:
        yield "text", _corpus_line(corpus)
    first = _mapping(corpus, "first_token") or _mapping(info, "first_token")
    if first:
        yield "position 0", _first_token_line(first)
    how = [str(info[key]).removeprefix("torch.") for key in ("dtype", "backend", "device") if info.get(key)]
    if how:
        yield "computed", ", ".join(how) + (f", seed {info['seed']}" if info.get("seed") is not None else "")
    seconds = _mapping(info, "times").get("seconds")
    if seconds:
        yield "took", f"{seconds:.1f} s"


def paths(survey: Survey) -> RenderableType:
    """Where the run lies and how to go on from it."""
    if survey.path is None:
        return Text("not written to disk; survey.save(path) keeps it", "dim")
    rows = [("folder", str(survey.path)), ("numbers", f"gnomon show {survey.path} --json")]
    if (survey.path / REPORT).is_file():
        rows.insert(1, ("report", str(survey.path / REPORT)))
    return facts([*rows, ("in Python", f"gnomon.open({str(survey.path)!r})")])


_SHAPE = {
    "num_layers": "layers",
    "num_heads": "heads",
    "num_kv_heads": "key/value heads",
    "head_dim": "features per head",
    "hidden_size": "wide",
}


def _warnings(info: Mapping[str, Any]) -> list[str]:
    found = info.get("warnings") or []
    listed = [str(warning) for warning in (found if isinstance(found, list) else [found])]
    first = _mapping(_mapping(info, "corpus"), "first_token").get("warning")
    return list(dict.fromkeys([*listed, *([str(first)] if first else [])]))


def _described(scheme: Any) -> str:
    if not isinstance(scheme, Mapping):
        return str(scheme)
    if scheme.get("description"):
        return str(scheme["description"])
    return ", ".join(f"{key} {value}" for key, value in scheme.items() if value not in (None, False, [], {}))


def _corpus_line(corpus: Mapping[str, Any]) -> str:
    line = str(corpus.get("source", "unknown text"))
    count, length = corpus.get("sequences") or corpus.get("num_sequences"), corpus.get("length")
    if count and length:
        line += f", {count} windows of {length} tokens"
    digest = corpus.get("digest")
    return line + (f" ({str(digest)[:12]})" if digest else "")


def _first_token_line(first: Mapping[str, Any]) -> str:
    why = str(first.get("why", "")).rstrip(".")
    if not first.get("placed"):
        return why or "the first token of the text"
    token = f"{first.get('text')!r} (id {first.get('id')})"
    return f"{token}: {why}" if why else token


def _mapping(tree: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = tree.get(key)
    return found if isinstance(found, Mapping) else {}
