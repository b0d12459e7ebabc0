"""Intervals, nulls and corrections: numpy alone, shared by every stage that reports a number."""

from gnomon.statistics.bootstrap import Interval, bootstrap, bootstrap_mean, estimate_mean, resample_counts
from gnomon.statistics.estimate import Estimate
from gnomon.statistics.multiple import benjamini_hochberg, holm, max_statistic_p, permutation_p

__all__ = [
    "Estimate",
    "Interval",
    "benjamini_hochberg",
    "bootstrap",
    "bootstrap_mean",
    "estimate_mean",
    "holm",
    "max_statistic_p",
    "permutation_p",
    "resample_counts",
]
