"""The cost of each step, where a study names servers that each do less than the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from collect.infer.contrast import Result, blocks_test, control_cost
from collect.infer.statistics import Values, holm
from collect.present.facts import steps_named
from collect.present.results_view import View
from collect.readable_numbers import join_text

SHOWN = 0.05


@dataclass(frozen=True)
class Step:
    """How much less CPU per request a server takes than another one, in microseconds."""

    of: str
    to: str
    less: str  # with its 95% interval
    percent: float  # of the way from the first server to the last
    shown: bool  # that it is not 0

    @property
    def share(self) -> str:
        return f"{self.percent:.0f}%".replace("-", "−")


@dataclass(frozen=True)
class Steps:
    whole: Step
    each: tuple[Step, ...]
    rest: str  # what those that are not shown save together, with its 95% interval

    @property
    def shown(self) -> str:
        """The steps that are shown to cost something: "**b** saves 63.2 (62.0 to 64.4)"."""
        return join_text([f"**{one.to}** saves {one.less}" for one in self.each if one.shown])

    @property
    def not_shown(self) -> str:
        return join_text([f"**{one.to}**" for one in self.each if not one.shown])


def steps_of(view: View) -> Steps | None:
    """Returns the steps that a study names; None where a server of them was not measured."""
    names = steps_named(view)
    if len(names) < 2 or not all(name in view.data.levels["server"] for name in names):
        return None
    ways = [(names[0], names[-1]), *pairwise(names)]
    results = [_less(view, *way) for way in ways]
    known = [result for result in results if result]
    if len(known) < len(ways) or known[0].test.estimate <= 0:
        return None
    distance = known[0].test.estimate
    adjusted = [known[0].test.p, *holm([result.test.p for result in known[1:]])]
    whole, *each = (
        Step(*way, _text(result), 100 * result.test.estimate / distance, p < SHOWN)
        for way, result, p in zip(ways, known, adjusted, strict=True)
    )
    rest = [_costs(view, one.of, one.to) for one in each if not one.shown]
    together = _tested(view, rest) if len(rest) > 1 else None
    return Steps(whole, tuple(each), _text(together) if together else "")


def _less(view: View, of: str, to: str) -> Result | None:
    return _tested(view, [_costs(view, of, to)])


def _costs(view: View, of: str, to: str) -> Values:
    """Returns how much more CPU per request a server takes than another one, by block."""
    return control_cost(view.data, of, view.data.pick(server=of), to)


def _tested(view: View, costs: Sequence[Values]) -> Result | None:
    """Tests the sum of costs by block; None where there are none."""
    total = np.sum(costs, axis=0)
    return None if np.isnan(total).all() else blocks_test(view.data, total)


def _text(result: Result) -> str:
    values = (result.test.estimate, result.test.low, result.test.high)
    less, low, high = (f"{value:.1f}".replace("-", "−") for value in values)
    return f"{less} ({low} to {high})"
