"""Where a ratio falls to a bound: a fixed cost that more and more work shares has a known answer."""

from __future__ import annotations

import math

import pytest

from collect.infer.where_ratio_crosses_bound import Ratio, crossing, rise

XS = (1, 3, 10, 30, 100, 300, 1000)


def shared(cost: float, xs: tuple[int, ...] = XS, spread: float = 1.0) -> list[Ratio]:
    """Returns the ratios of two servers, one of which has a further cost that x requests share."""
    ratios = [(x, 1 + cost / x) for x in xs]
    return [Ratio(x, r, 1 + (r - 1) / spread, 1 + (r - 1) * spread) for x, r in ratios]


@pytest.mark.parametrize("bound", [1.02, 1.06, 1.09, 1.1, 1.5, 2.0])
def test_a_shared_cost_crosses_where_it_must(bound: float) -> None:
    found = crossing(shared(10.0), bound)
    assert found.at == pytest.approx(10 / (bound - 1), rel=0.1)
    assert found.low == found.at == found.high


def test_at_a_measured_value_it_is_exact() -> None:
    assert crossing(shared(10.0), 1.1).at == pytest.approx(100)


def test_the_interval_is_where_the_ends_cross() -> None:
    found = crossing(shared(10.0, spread=1.5), 1.1)
    assert found.low == pytest.approx(100 / 1.5, rel=0.1)
    assert found.high == pytest.approx(100 * 1.5, rel=0.1)


def test_a_ratio_that_stays_above_never_crosses() -> None:
    found = crossing(shared(10.0, spread=1.5), 1.01)
    assert (found.at, found.high) == (pytest.approx(1000), math.inf)
    assert crossing(shared(20.0), 1.01).at == math.inf


def test_a_ratio_that_is_small_at_once_has_crossed() -> None:
    assert crossing(shared(0.01), 1.1).at == 0


def test_the_last_time_counts() -> None:
    ratios = [Ratio(x, r, r, r) for x, r in ((1, 3.0), (10, 1.05), (100, 1.3), (1000, 1.02))]
    assert 100 < crossing(ratios, 1.1).at < 1000


def test_below_one_the_ratio_itself_is_followed() -> None:
    ratios = [Ratio(x, r, r, r) for x, r in ((1, 1.2), (100, 0.9))]
    assert 1 < crossing(ratios, 1.1).at < 100


def test_a_rise_is_where_the_ratio_comes_over_the_bound_first() -> None:
    rows = ((10, 1.0, 1.0), (50, 2.0, 1.1), (70, 4.0, 1.1), (90, 16.0, 1.1), (100, 12.0, 1.1))
    ratios = [Ratio(x, r, r / spread, r * spread) for x, r, spread in rows]
    found = rise(ratios, 8.0)
    assert 70 < found.low < found.at < found.high < 90
    assert rise(ratios, 2.0).at == pytest.approx(50)
    assert rise(ratios, 20.0).at == math.inf
    assert rise(ratios[1:], 1.5).at == 0
    assert (rise(ratios, 17.0).low, rise(ratios, 17.0).high) == (pytest.approx(90, abs=3), math.inf)
