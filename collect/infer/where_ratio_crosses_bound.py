"""Finds where a ratio falls to a bound: from how much work, or how many calls, servers are alike;
and where a ratio first rises over a bound: at which load requests begin to wait.

The ratio is known at some values of x. Between two of them its distance from 1 is taken to be a
power of x, as where a fixed cost is shared by more and more work; between x = 0 and the next value,
an exponential function of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Ratio:
    """A ratio with its 95% interval at a value of x."""

    x: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Crossing:
    """The x from which on a ratio is at most `bound`, or above it, and the interval of that x:
    where the ends of the intervals of the ratio come to it. 0: the ratio is there at the first x
    already; inf: it is not there at the last one."""

    bound: float
    at: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Returns true if the ends of the intervals come there where the ratio does, or never."""
        return self.low == self.at == self.high


def crossing(ratios: Sequence[Ratio], bound: float) -> Crossing:
    """Finds where ratios, in the order of x, fall to a bound for good."""
    ends: list[Callable[[Ratio], float]] = [lambda r: r.ratio, lambda r: r.low, lambda r: r.high]
    return Crossing(bound, *(_falls([(r.x, end(r)) for r in ratios], bound) for end in ends))


def rise(ratios: Sequence[Ratio], bound: float) -> Crossing:
    """Finds where ratios, in the order of x, rise over a bound for the first time."""
    # Backwards a rise is a fall; inf: it is above at the first x; 0: it is above at none.
    ends: list[Callable[[Ratio], float]] = [lambda r: r.ratio, lambda r: r.high, lambda r: r.low]
    found = [_falls([(r.x, end(r)) for r in reversed(ratios)], bound) for end in ends]
    return Crossing(bound, *({math.inf: 0.0, 0.0: math.inf}.get(x, x) for x in found))


def _falls(points: Sequence[tuple[float, float]], bound: float) -> float:
    if points[-1][1] > bound:
        return math.inf
    for (x, value), (next_x, next_value) in reversed(list(pairwise(points))):
        if value > bound:
            return _between(x, value, next_x, next_value, bound)
    return 0.0


def _between(x: float, value: float, next_x: float, next_value: float, bound: float) -> float:
    """Returns the x between two at which the value is the bound."""
    ys = [math.log(v) for v in (value, next_value, bound)]
    if min(ys) > 0:
        ys = [math.log(y) for y in ys]
    share = (ys[0] - ys[2]) / (ys[0] - ys[1])
    if x == 0:
        return share * next_x
    return math.exp(math.log(x) + share * (math.log(next_x) - math.log(x)))
