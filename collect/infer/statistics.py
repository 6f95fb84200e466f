"""The estimates and tests of the study: a thin layer over scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Values = NDArray[np.float64]

NOTHING = math.nan


@dataclass(frozen=True)
class Description:
    """One sample. What cannot be computed (the spread of one value) is NaN."""

    n: int
    mean: float
    sd: float
    median: float
    low: float  # 95% t-interval of the mean
    high: float
    min: float
    max: float


@cache
def _t_quantile(p: float, df: float) -> float:
    return float(stats.t.ppf(p, df))


@dataclass(frozen=True)
class Test:
    """An estimate with its standard error, and the two-sided t-test that it is 0."""

    estimate: float
    error: float
    df: float
    t: float  # NaN if all differences are the same
    p: float

    def half_width(self, confidence: float = 0.95) -> float:
        """Returns half the width of the confidence interval."""
        if math.isnan(self.t):
            return 0.0
        return _t_quantile((1 + confidence) / 2, self.df) * self.error

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        half = self.half_width(confidence)
        return self.estimate - half, self.estimate + half

    @property
    def low(self) -> float:
        return self.interval()[0]

    @property
    def high(self) -> float:
        return self.interval()[1]


def log_error(low: float, high: float, df: float) -> float:
    """Returns the standard error of the logarithm of a ratio, from its 95% interval."""
    return math.log(high / low) / 2 / _t_quantile(0.975, df)


@dataclass(frozen=True)
class Line:
    """A least squares line."""

    slope: float
    intercept: float
    slope_error: float
    intercept_error: float
    df: int


def mean(values: Values) -> float:
    """Returns the mean of a sample; NaN of none."""
    return float(np.mean(np.sort(values))) if len(values) else NOTHING


def describe(values: Sequence[float] | Values) -> Description:
    """Describes a sample; the order of the values does not matter."""
    sample = np.sort(np.asarray(values, dtype=float))
    n = len(sample)
    if n == 0:
        return Description(0, *[NOTHING] * 7)
    median = float(sample[(n - 1) // 2] + sample[n // 2]) / 2
    extremes = float(sample[0]), float(sample[-1])
    if n == 1:
        mean = median
        return Description(1, mean, NOTHING, median, NOTHING, NOTHING, *extremes)
    test = mean_test(sample)
    sd = test.error * math.sqrt(n)
    return Description(n, test.estimate, sd, median, test.low, test.high, *extremes)


def t_test(estimate: float, error: float, df: float) -> Test:
    """Tests an estimate against 0.

    A standard error of nothing but rounding means that all differences were the same: p is then 1
    for an estimate of 0, else 0.
    """
    negligible = 1e-13 * (1 + abs(estimate))
    if error <= negligible:
        return Test(estimate, error, df, NOTHING, 1.0 if abs(estimate) <= negligible else 0.0)
    t = estimate / error
    # As stats.t.sf, without its checks, which take most of its time.
    return Test(estimate, error, df, t, float(2 * special.stdtr(df, -abs(t))))


def mean_test(values: Sequence[float] | Values) -> Test:
    """Tests the mean of two or more values against 0: of differences, the paired t-test."""
    sample = np.asarray(values, dtype=float)
    n = len(sample)
    # As np.mean and np.std, without their checks, which take most of the time of small samples.
    estimate = float(np.add.reduce(sample)) / n
    apart = sample - estimate
    sd = math.sqrt(float(np.add.reduce(apart * apart)) / (n - 1))
    return t_test(estimate, sd / math.sqrt(n), n - 1)


def line_fit(x: Sequence[float] | Values, y: Sequence[float] | Values) -> Line:
    """Fits a line through at least three points."""
    fit = stats.linregress(x, y)
    return Line(
        float(fit.slope),
        float(fit.intercept),
        float(fit.stderr),
        float(fit.intercept_stderr),
        len(x) - 2,
    )


def holm(p: Sequence[float]) -> Values:
    """Returns p-values adjusted for their number by Holm's method.

    statsmodels has it, too, but collects garbage in each call: 16 ms.
    """
    if len(p) == 0:
        return np.empty(0)
    values = np.asarray(p, dtype=float)
    order = np.argsort(values)
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def share_interval(count: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Returns the exact (Clopper and Pearson) interval of a share."""
    interval = stats.binomtest(count, of).proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def count_interval(count: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Returns the exact (Garwood) interval of the mean number of events in a run."""
    tail = (1 - confidence) / 2
    low = float(stats.chi2.ppf(tail, 2 * count)) / 2 if count else 0.0
    return low / of, float(stats.chi2.isf(tail, 2 * (count + 1))) / 2 / of


def dispersion_of(counts: Sequence[float] | Values) -> float:
    """Returns how much more counts vary than independent events would (Pearson); at least 1."""
    values = np.asarray(counts, dtype=float)
    if len(values) < 2 or not values.any():
        return 1.0
    return max(1.0, float(np.var(values, ddof=1) / np.mean(values)))


def clumped_interval(
    count: int, of: int, dispersion: float, confidence: float = 0.95
) -> tuple[float, float]:
    """Returns the interval of the mean number of events in a run, where events come in clumps.

    That is the quasi-Poisson interval of its logarithm; for independent events the exact one.
    """
    if dispersion <= 1 or not count:
        return count_interval(count, of, confidence)
    half = _t_quantile((1 + confidence) / 2, of - 1) * math.sqrt(dispersion / count)
    return count / of * math.exp(-half), count / of * math.exp(half)
