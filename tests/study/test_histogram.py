"""Histograms of times: their sum has the quantiles of all requests together."""

from __future__ import annotations

import numpy as np
import pytest

from collect.histogram import (
    add,
    bucket_of,
    edge_of,
    from_text,
    of_quantiles,
    quantile,
    to_text,
)


def histogram(times: np.ndarray) -> dict[int, float]:
    buckets, counts = np.unique([bucket_of(time) for time in times], return_counts=True)
    return {int(b): float(c) for b, c in zip(buckets, counts, strict=True)}


def invented(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(0.0, 0.7, count)


def test_a_time_is_in_its_bucket() -> None:
    for time in (0.0011, 0.06, 1.0, 3.3, 250.0, 60_000.0):
        bucket = bucket_of(time)
        assert edge_of(bucket) <= time < edge_of(bucket + 1)
    assert bucket_of(0.0) == bucket_of(0.001) == 0


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_percentiles_of_many_runs_together(share: float) -> None:
    runs = [invented(seed, 2000) for seed in range(10)]
    together = quantile(add(histogram(run) for run in runs), share)
    assert together == pytest.approx(float(np.quantile(np.concatenate(runs), share)), rel=0.02)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_of_the_quantiles_that_ab_tells(share: float) -> None:
    runs = [invented(seed, 2000) for seed in range(10)]
    told = [of_quantiles([float(q) for q in np.quantile(run, np.linspace(0, 1, 101))], 2000)
            for run in runs]  # fmt: skip
    assert sum(add(told).values()) == pytest.approx(20000)
    expected = float(np.quantile(np.concatenate(runs), share))
    assert quantile(add(told), share) == pytest.approx(expected, rel=0.04)


def test_text_and_back() -> None:
    made = histogram(invented(1, 500))
    assert from_text(to_text(made)) == made
    assert to_text({}) == "-" and from_text("-") == {}
    assert np.isnan(quantile({}, 0.5))
