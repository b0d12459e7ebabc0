"""Attention and the likelihood of words: claims D1 and D2."""

from gnomon.study.likelihood.experiment import Likelihood

__all__ = ["Likelihood"]
