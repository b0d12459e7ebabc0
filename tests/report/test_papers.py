"""Only like is laid beside like, and a model is known by any of its usual names."""

import io

import pytest

from gnomon.report.published_sinks import rate_of
from gnomon.report.terminal.page import show
from gnomon.report.terminal.papers import sink_rates
from gnomon.result import Survey
from gnomon.statistics import Estimate


def printed(name: str, length: int) -> str:
    headline = {"sinks": {"sink_rate_03": Estimate(0.9, 0.8, 0.95, 32)}}
    stream = io.StringIO()
    show(sink_rates(Survey({"model": {"name": name}, "corpus": {"length": length}}, headline, {})), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("mistralai/Mistral-7B-v0.1", 0.975),
        ("mistral-7b", 0.975),
        ("meta-llama/Meta-Llama-3-8B", 0.99),
        ("meta-llama/Llama-2-7b-hf", 0.925),
        ("openai-community/gpt2-xl", 0.77),
        ("openai-community/gpt2", None),
        ("meta-llama/Llama-3.1-8B", None),
    ],
)
def test_neighbours_are_not_mistaken_for_each_other(name, rate):
    assert rate_of(name) == rate


def test_rates_compare_at_64_tokens_only():
    page = printed("gpt2-xl", 64)
    assert "0.9 [0.8, 0.95]" in page
    assert "GPT2-XL (published)" in page
    assert "Mistral-7B (published, another model)" in page
    assert "0.77" not in printed("gpt2-xl", 256)
    assert "--length 64" in printed("gpt2-xl", 256)
