"""Two servers that run at the same time and get short loads in turn: how much more one costs.

Besides the code, two things change the cost of a request: where a program and its memory lie, which
each start draws anew, and what else the machine does, which changes within a second. So two bursts
that are compared follow each other at once; the order changes with each pair; both servers start
anew many times, and the interval is over these starts.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from collect.infer.statistics import mean_test

# The CPU time of a request in one burst, of the first server or of the second.
Burst = Callable[[bool], float]


def ratio_of_start(burst: Burst, pairs: int, *, is_first_late: bool) -> float:
    """The median, over pairs of bursts, of the ratio of the first server's cost to the second's. A
    burst of each before them fills caches, and does not count."""
    orders = ((False, True), (True, False)) if is_first_late else ((True, False), (False, True))
    for is_first in orders[0]:
        burst(is_first)
    ratios = []
    for number in range(pairs):
        cost = {is_first: burst(is_first) for is_first in orders[number % 2]}
        ratios.append(cost[True] / cost[False])
    return statistics.median(ratios)


def percent_more(ratios: list[float]) -> tuple[float, float, float]:
    """How much more the first server costs, in percent: the geometric mean over the starts, and its
    95% interval."""
    test = mean_test([math.log(ratio) for ratio in ratios])
    low, high = test.interval()
    more, low, high = (100 * math.expm1(value) for value in (test.estimate, low, high))
    return more, low, high
