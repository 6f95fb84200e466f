"""The statistics of the study against known answers.

Where an answer comes from R, the expression that gives it stands beside it (R 4.2).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.genmod.families import Poisson
from statsmodels.genmod.generalized_linear_model import GLM

from collect.infer.contrast import Result
from collect.infer.statistics import (
    clumped_interval,
    count_interval,
    describe,
    dispersion_of,
    holm,
    line_fit,
    mean_test,
    share_interval,
    t_test,
)

# Student's sleep data, the worked example of R's help page of t.test:
# t.test(extra ~ group, data = sleep, paired = TRUE)
# t = -4.0621, df = 9, p-value = 0.002833, 95 percent confidence interval -2.4598858 -0.7001142
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

# F. J. Anscombe, "Graphs in Statistical Analysis", 1973, the first data set.
ANSCOMBE_X = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
ANSCOMBE_Y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]


def near(expected: float, within: float = 1e-9) -> object:
    return pytest.approx(expected, rel=within, abs=1e-300 if expected else within)


@pytest.mark.parametrize(
    ("confidence", "df", "quantile"),
    [
        # qt(c(.975, .995, .9999, .6), 9)
        (0.95, 9, 2.2621571628),
        (0.99, 9, 3.2498355416),
        (0.9998, 9, 6.0101321291),
        (0.2, 9, 0.2609553365),
        # qt(.975, c(1, 2, 31, 1000)); qt(1 - 0.025/120, 31)
        (0.95, 1, 12.706204736),
        (0.95, 2, 4.302652730),
        (0.95, 31, 2.039513446),
        (0.95, 1000, 1.962339081),
        (1 - 0.05 / 120, 31, 3.952609768),
    ],
)
def test_quantiles_of_t(confidence: float, df: float, quantile: float) -> None:
    assert t_test(1, 1, df).half_width(confidence) == near(quantile)


def test_interval_is_symmetric() -> None:
    low, high = t_test(0, 1, 9).interval()
    assert (low, high) == (near(-2.2621571628), near(2.2621571628))


@pytest.mark.parametrize(
    ("t", "df", "p"),
    # 2 * pt(-10, 31); pt(-1, 1) is 1/4 exactly (Cauchy)
    [(-10, 31, 3.204795492e-11), (-1, 1, 0.5), (1, 1, 0.5), (0, 5, 1)],
)
def test_distribution_of_t(t: float, df: float, p: float) -> None:
    assert t_test(t, 1, df).p == near(p)


def test_paired_t_test() -> None:
    test = mean_test(np.subtract(SLEEP_1, SLEEP_2))
    assert (test.low, test.high) == (near(-2.4598858, 1e-7), near(-0.7001142, 1e-7))
    assert (test.estimate, test.df) == (near(-1.58), 9)
    assert (test.t, test.p) == (near(-4.0621, 2e-4), near(0.002833, 2e-4))


def test_differences_that_are_all_the_same() -> None:
    same = mean_test([0.5] * 4)
    assert math.isnan(same.t)
    assert (same.p, same.low, same.high) == (0, 0.5, 0.5)
    assert mean_test([0.0] * 4).p == 1


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        # p.adjust(c(0.01,0.02,0.03,0.04,0.05), "holm")
        ([0.01, 0.02, 0.03, 0.04, 0.05], [0.05, 0.08, 0.09, 0.09, 0.09]),
        # p.adjust(c(0.001,0.04,0.03,0.9,0.005), "holm")
        ([0.001, 0.04, 0.03, 0.9, 0.005], [0.005, 0.09, 0.09, 0.9, 0.02]),
        ([], []),
    ],
)
def test_holm(p: list[float], adjusted: list[float]) -> None:
    assert list(holm(p)) == pytest.approx(adjusted, rel=1e-12)


def test_line() -> None:
    # coef(summary(lm(y1 ~ x1, anscombe)))
    line = line_fit(ANSCOMBE_X, ANSCOMBE_Y)
    found = (line.slope, line.intercept, line.slope_error, line.intercept_error)
    assert found == pytest.approx((0.5001, 3.0001, 0.1179, 1.1247), rel=3e-4)
    assert line.df == 9


def test_interval_of_a_share() -> None:
    # binom.test(7, 60)$conf.int; binom.test(0, 60)$conf.int
    assert share_interval(7, 60) == (near(0.04821484187), near(0.22571615315))
    assert share_interval(0, 60) == (0, near(0.05962949229))


def test_interval_of_a_count() -> None:
    # poisson.test(10)$conf.int; poisson.test(0)$conf.int; poisson.test(10, 4)$conf.int
    assert count_interval(10, 1) == (near(4.795389, 1e-6), near(18.39036, 1e-6))
    assert count_interval(0, 1) == (0, near(3.688879, 1e-6))
    assert count_interval(10, 4) == (near(4.795389 / 4, 1e-6), near(18.39036 / 4, 1e-6))


def test_interval_of_events_that_come_in_clumps() -> None:
    """As a quasi-Poisson regression of a mean has it, with t quantiles."""
    counts = [0, 3, 25, 11, 9, 2, 30, 8]
    model = GLM(counts, np.ones(len(counts)), family=Poisson()).fit(scale="X2")
    half = float(t.ppf(0.975, 7)) * float(model.bse[0])
    expected = [math.exp(model.params[0] + end) for end in (-half, half)]
    dispersion = dispersion_of(counts)
    assert dispersion == near(float(model.scale), 1e-9)
    found = clumped_interval(sum(counts), len(counts), dispersion)
    assert list(found) == pytest.approx(expected, rel=1e-6)
    # Events that are spread more evenly than chance would spread them have the exact interval.
    assert dispersion_of([5, 5, 5, 5]) == dispersion_of([3]) == dispersion_of([0, 0]) == 1
    assert clumped_interval(20, 4, 1.0) == count_interval(20, 4)
    assert clumped_interval(0, 4, 3.0) == count_interval(0, 4)


def test_description() -> None:
    # Eight numbers of mean 5 whose squares sum to 32
    found = describe([9, 2, 4, 4, 7, 4, 5, 5])
    sd = math.sqrt(32 / 7)
    assert (found.mean, found.sd, found.median) == (5, near(sd), 4.5)
    assert (found.min, found.max) == (2, 9)
    assert found.low == near(5 - 2.364624252 * sd / math.sqrt(8))


def test_one_value_has_no_spread_and_none_has_nothing() -> None:
    one = describe([3])
    assert one.mean == 3
    assert all(map(math.isnan, (one.sd, one.low, one.high)))
    assert math.isnan(describe([]).mean)


# --- one block that is far from the others ---


def contrast_of(values: list[float]) -> Result:
    test = mean_test(values)
    return Result(test, len(values), np.array(values) - test.estimate)


def test_one_value_far_from_the_others_is_named_and_the_mean_without_it() -> None:
    others = [0.40, 0.44, 0.38, 0.42, 0.41, 0.43, 0.39]
    without = contrast_of([*others, 2.2]).without_outlier()
    assert without is not None
    assert without.estimate == pytest.approx(np.mean(others))
    assert without.interval() == pytest.approx(mean_test(others).interval())


@pytest.mark.parametrize(
    "values",
    [
        [0.40, 0.44, 0.38, 0.42, 0.41, 0.43, 0.39, 0.45],
        [0.40, 0.44, 0.38, 2.2],  # of so few nobody knows
        [0.40, 0.44, 0.38, 0.42, 0.41, 2.2, 2.3, 2.1],  # three are no outlier
        [0.4] * 8,
    ],
)
def test_no_value_is_far_from_the_others(values: list[float]) -> None:
    assert contrast_of(values).without_outlier() is None


def test_few_samples_of_one_normal_distribution_have_an_outlier() -> None:
    source = np.random.default_rng(5)
    found = sum(
        contrast_of(list(source.normal(0, 1, 8))).without_outlier() is not None
        for _ in range(1000)
    )
    assert found <= 25  # 10 are expected
