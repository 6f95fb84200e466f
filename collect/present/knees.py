"""The knee of each server that is offered a load: the load at which requests begin to wait.

A load is a share of what a closed loop of a few connections gets. A server that makes a child for
each connection answers more where many wait, so that the same share is a lighter load for it: the
knee is told as a share of the most that the server answered at any load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from collect.infer.cells import Part
from collect.infer.contrast import contrast_test, mean_of_pairs
from collect.infer.where_ratio_crosses_bound import Crossing, Ratio, rise
from collect.present.results_view import View
from collect.readable_numbers import DASH, crossing_interval, human, join_text

# The knee is where the 99th percentile first comes to so many times that at the lowest load.
TIMES = 5
# Up to this load, in percent of the capacity, hardly a request waits for another one.
CALM_MOST = 30


@dataclass(frozen=True)
class Knee:
    """The load at the knee of a server: in requests/s, and in percent of the most it answered."""

    server: str
    capacity: str
    most: str
    percent: str
    interval: str
    rate: str


@dataclass(frozen=True)
class Knees:
    calm: str  # the lowest load, in percent
    each: tuple[Knee, ...]

    @property
    def text(self) -> str:
        """The knees in a sentence: "62% for **fork** (55% to 70%) and ..."."""
        known = [one for one in self.each if one.percent != DASH]
        return join_text([f"{one.percent} for **{one.server}** ({one.interval})" for one in known])


def knees_of(view: View, part: Part) -> Knees | None:
    """Returns the knees of the servers of a part; None where no low load was offered."""
    levels = part.levels.get("offered", [])
    if part.x_name != "offered" or float(levels[0]) > CALM_MOST or len(levels) < 3:
        return None
    known = ((server, _rise_of(view, part, server)) for server in part.subjects)
    return Knees(levels[0], tuple(_knee(view, part, server, one) for server, one in known if one))


def _rise_of(view: View, part: Part, server: str) -> Crossing | None:
    """Returns where the 99th percentile of a server rises, in percent of its capacity."""
    levels = part.levels["offered"]
    first = view.slices(part)[0].first
    calm = view.at(part, first, server, levels[0])
    points = [Ratio(float(levels[0]), 1.0, 1.0, 1.0)]
    for x in levels[1:]:
        cell = view.at(part, first, server, x)
        if calm is None or cell is None:
            continue
        result = contrast_test(view.data, mean_of_pairs([(cell, calm)]), "p99_ms")
        if result:
            points.append(Ratio(float(x), result.ratio, *result.ratio_interval()))
    return rise(points, TIMES) if len(points) > 2 else None


def _knee(view: View, part: Part, server: str, one: Crossing) -> Knee:
    runs, most = _capacity_of(view, server), _most_of(view, part, server)
    if not runs:
        return Knee(server, DASH, human(most), DASH, "", DASH)
    capacity = median(runs)
    text = f"{human(capacity)} ({human(min(runs))} to {human(max(runs))})"
    if not most:
        return Knee(server, text, DASH, DASH, "", DASH)
    known = 0 < one.at < math.inf
    share = capacity / most
    low, high = (f"{end * share:.0f}%" if 0 < end < math.inf else "" for end in (one.low, one.high))
    return Knee(
        server,
        text,
        human(most),
        f"{one.at * share:.0f}%" if known else DASH,
        crossing_interval(low, high),
        human(capacity * one.at / 100) if known else DASH,
    )


def _most_of(view: View, part: Part, server: str) -> float | None:
    """Returns the most requests/s that a server answered at any load: a mean of rounds or runs."""
    first = view.slices(part)[0].first
    cells = (view.at(part, first, server, x) for x in part.levels["offered"])
    samples = [view.data.unit_sample(cell, "rps") for cell in cells if cell is not None]
    return max((float(sample.mean()) for sample in samples if len(sample)), default=None)


def _capacity_of(view: View, server: str) -> list[float]:
    """Returns the requests/s of each run of the closed loop: the load is a share of the median."""
    table = view.data.capacity
    if table is None:
        return []
    mine = table[(table["server"] == server) & (table["valid"] == "yes")]
    return [float(rps) for rps in mine["rps"]]
