"""The page of what another day shows: the answers of several runs of a study, side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from collect.infer.pooling import Pooled, pool
from collect.infer.statistics import log_error
from collect.present import facts
from collect.present.facts import Answered, Fall
from collect.present.published_runs import Published
from collect.present.results_view import View, load_view
from collect.present.templating import render_markdown
from collect.readable_numbers import DASH, estimate_text, interval_text, plural

REPEATED = "repeated"
TITLE = "What another day shows"
TEMPLATE = "repeated.md.j2"
NAMES = {
    "server_cpu_us": "server CPU per request", "rps": "requests per second",
    "p50_ms": "median time of a request", "p99_ms": "99th percentile of the time of a request",
    "each_kib": "memory of a held connection", "busiest": "the busiest worker’s share",
    "again_ms": "time until no request fails any more",
}  # fmt: skip


@dataclass(frozen=True)
class Sitting:
    """An answer of one run."""

    run: Published
    view: View
    answer: Answered

    @property
    def units(self) -> str:
        unit = self.view.data.unit
        return plural(self.answer.blocks, unit, f"{unit}s")

    @property
    def freedom(self) -> int:
        return self.answer.blocks - 1

    @property
    def error(self) -> float:
        """The standard error of the logarithm of the ratio."""
        return log_error(self.answer.low, self.answer.high, self.freedom)

    def holds(self, other: Sitting) -> bool:
        """Returns true if the interval of this one holds the estimate of the other one."""
        return self.answer.low <= other.answer.ratio <= self.answer.high

    def overlaps(self, other: Sitting) -> bool:
        return self.answer.low <= other.answer.high and other.answer.low <= self.answer.high


@dataclass(frozen=True)
class Repeated:
    """An answer of a study that was measured several times."""

    sittings: tuple[Sitting, ...]
    pooled: Pooled

    @property
    def question(self) -> str:
        last = self.sittings[-1].run
        return last.design.question or last.title

    @property
    def _pairs(self) -> list[tuple[Sitting, Sitting]]:
        return [(a, b) for a in self.sittings for b in self.sittings if a is not b]

    @property
    def overlap(self) -> bool:
        return all(a.overlaps(b) for a, b in self._pairs)

    @property
    def cover(self) -> bool:
        """Returns true if each interval holds the estimates of all others."""
        return all(a.holds(b) for a, b in self._pairs)

    @property
    def together(self) -> str:
        ends = (self.pooled.test.estimate, *self.pooled.test.interval())
        return estimate_text(*(math.exp(end) for end in ends))

    @property
    def spread(self) -> float:
        """The standard deviation between sittings, beyond what their intervals explain."""
        return math.expm1(self.pooled.tau)

    @property
    def expected(self) -> str:
        """Where the ratio of another sitting is expected; nothing where two cannot tell."""
        if self.pooled.studies < 3:
            return ""
        low, high = (math.exp(end) for end in self.pooled.prediction())
        return interval_text(low, high, math.exp(self.pooled.test.estimate))


@dataclass(frozen=True)
class Bound:
    """Where a ratio comes to its bound in one run."""

    run: Published
    fall: Fall

    @property
    def text(self) -> str:
        return self.fall.crossings[0][2].replace("95% interval ", "") or DASH

    def overlaps(self, other: Bound) -> bool:
        mine, its = self.fall.crossings[0][1], other.fall.crossings[0][1]
        return mine.low <= its.high and its.low <= mine.high


@dataclass(frozen=True)
class RepeatedBound:
    """A study that asks where a ratio comes to a bound, and was measured several times."""

    bounds: tuple[Bound, ...]

    @property
    def question(self) -> str:
        return self.bounds[-1].run.design.question

    @property
    def fall(self) -> Fall:
        return self.bounds[-1].fall

    @property
    def overlap(self) -> bool:
        return all(a.overlaps(b) for a in self.bounds for b in self.bounds)


Views = Sequence[tuple[Published, View]]


def repeated_ratios(runs: Sequence[Published]) -> list[Repeated]:
    """Returns the ratios of studies that were measured several times."""
    return _ratios(_views(runs))


def _views(runs: Sequence[Published]) -> Views:
    return [(run, load_view(run.folder)) for run in _several(runs)]


def _ratios(views: Views) -> list[Repeated]:
    sittings: dict[tuple[str, ...], list[Sitting]] = {}
    for run, view in views:
        for answer in facts.answers(view):
            if answer.blocks > 1 and answer.low < answer.high:
                key = (run.study, *answer.compares, answer.where)
                sittings.setdefault(key, []).append(Sitting(run, view, answer))
    return [_repeated(known) for known in sittings.values() if len(known) > 1]


def _bounds(views: Views) -> list[RepeatedBound]:
    bounds: dict[tuple[str, ...], list[Bound]] = {}
    for run, view in views:
        for fall in facts.falls(view):
            key = (run.study, fall.measure, fall.of, fall.to, fall.where)
            bounds.setdefault(key, []).append(Bound(run, fall))
    return [RepeatedBound(tuple(known)) for known in bounds.values() if len(known) > 1]


def repeated_page(runs: Sequence[Published]) -> str:
    """Returns the page as Markdown; nothing if no study was measured several times."""
    views = _views(runs)
    ratios, falls = _ratios(views), _bounds(views)
    if not ratios and not falls:
        return ""
    questions = dict.fromkeys([one.question for one in ratios] + [one.question for one in falls])
    sections = [
        (
            question,
            [one for one in ratios if one.question == question],
            [one for one in falls if one.question == question],
        )
        for question in questions
    ]
    shown = {sitting.run.path for one in ratios for sitting in one.sittings}
    shown |= {bound.run.path for one in falls for bound in one.bounds}
    alone = [run for run in _several(runs) if run.path not in shown]
    return render_markdown(
        TEMPLATE, title=TITLE, ratios=ratios, falls=falls, sections=sections, alone=alone,
        names=NAMES,
    )  # fmt: skip


def _several(runs: Sequence[Published]) -> list[Published]:
    """The runs of studies that have several, the oldest first."""
    counts = Counter(run.study for run in runs)
    found = [run for run in runs if counts[run.study] > 1]
    return sorted(found, key=lambda run: run.machine["started"])


def _repeated(sittings: Sequence[Sitting]) -> Repeated:
    logs = [math.log(one.answer.ratio) for one in sittings]
    pooled = pool(logs, [one.error for one in sittings], [one.freedom for one in sittings])
    return Repeated(tuple(sittings), pooled)
