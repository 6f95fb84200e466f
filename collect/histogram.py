"""Times of requests as histograms, which can be added up: percentiles of many runs together.

Bucket i holds the times from 0.001 ms * 1.02^i up to the next one. In a table a histogram is the
text `i:count i:count ...`; counts may be fractions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

LEAST_MS = 0.001
GROWTH = 1.02
Histogram = dict[int, float]


def bucket_of(milliseconds: float) -> int:
    """The bucket of a time."""
    return math.floor(math.log(max(milliseconds, LEAST_MS) / LEAST_MS, GROWTH) + 1e-9)


def edge_of(bucket: int) -> float:
    """The lower edge of a bucket in milliseconds."""
    return LEAST_MS * math.pow(GROWTH, bucket)


def of_quantiles(quantiles: Sequence[float], count: int) -> Histogram:
    """Makes a histogram of quantiles from 0 to 100%: between two of them the times are spread
    evenly, on a logarithmic scale."""
    histogram: Histogram = {}
    each = count / (len(quantiles) - 1)
    for low, high in itertools.pairwise(quantiles):
        first, last = bucket_of(low), max(bucket_of(high), bucket_of(low))
        for bucket in range(first, last + 1):
            histogram[bucket] = histogram.get(bucket, 0.0) + each / (last - first + 1)
    return histogram


def of_microseconds(text: str) -> Histogram:
    """Reads the histogram of the open loop (histogram.h): its buckets are a microsecond wide below
    2,048, and there are 1,024 in each doubling above. The counts go to where their middles are."""
    histogram: Histogram = {}
    for fine, count in from_text(text).items():
        shift = max(fine // 1024 - 1, 0)
        middle = (((fine - shift * 1024) << shift) + (1 << shift) / 2) / 1000
        bucket = bucket_of(middle)
        histogram[bucket] = histogram.get(bucket, 0.0) + count
    return histogram


def add(histograms: Iterable[Mapping[int, float]]) -> Histogram:
    """The sum of histograms."""
    total: Histogram = {}
    for histogram in histograms:
        for bucket, count in histogram.items():
            total[bucket] = total.get(bucket, 0.0) + count
    return total


def quantile(histogram: Mapping[int, float], share: float) -> float:
    """The time in milliseconds below which this share of the requests is."""
    wanted = share * sum(histogram.values())
    below = 0.0
    for bucket in sorted(histogram):
        count = histogram[bucket]
        if below + count >= wanted and count:
            return edge_of(bucket) * math.pow(GROWTH, (wanted - below) / count)
        below += count
    return math.nan


def to_text(histogram: Mapping[int, float]) -> str:
    """A histogram as a table has it."""
    return " ".join(f"{bucket}:{histogram[bucket]:.4g}" for bucket in sorted(histogram)) or "-"


def from_text(text: str) -> Histogram:
    """Reads a histogram of a table."""
    if text == "-":
        return {}
    words = text.replace(":", " ").split()
    return dict(zip(map(int, words[::2]), map(float, words[1::2]), strict=True))


class Histograms(Mapping[str, Histogram]):
    """The histograms of many runs, each read when it is first asked for: there may be thousands."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {run: text for run, text in texts.items() if text != "-"}
        self._read: dict[str, Histogram] = {}

    def __getitem__(self, run: str) -> Histogram:
        if run not in self._read:
            self._read[run] = from_text(self._texts[run])
        return self._read[run]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
