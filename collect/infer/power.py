"""How many rounds tell a difference, from the spread of an earlier study."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from statsmodels.stats.power import TTestPower

from collect.project import COMPARISONS_FILE
from collect.tables import read_frame
from collect.text import percent_text

DIFFERENCE = 1.10
POWER = 0.80
MOST = 1000


@dataclass(frozen=True)
class Power:
    """The rounds that tell a difference in a comparison."""

    measure: str
    server: str
    baseline: str
    spread: float  # standard deviation of the log-ratio from round to round
    unit: str  # what the spread was taken from: round, or block of one sitting
    rounds: int

    def text(self, difference: float = DIFFERENCE) -> str:
        tells = f"{self.rounds} rounds tell" if self.rounds < MOST else f"{MOST} rounds do not tell"
        return (
            f"{self.server} / {self.baseline}, {self.measure}: {tells} a difference of "
            f"{percent_text(difference - 1)} (spread {percent_text(math.expm1(self.spread))} from "
            f"{self.unit} to {self.unit})"
        )


def rounds_needed(spread: float, difference: float = DIFFERENCE, power: float = POWER) -> int:
    """Returns how many rounds tell a ratio from 1 by a t-test at 5% with this power; at least 3."""
    if spread <= 0:
        return 3
    effect = min(math.log(difference) / spread, 5.0)
    test = TTestPower()
    with np.errstate(all="ignore"):  # the far tail of the distribution is zero
        for rounds in range(3, MOST):
            if float(test.power(effect, rounds, 0.05)) >= power:
                return rounds
    return MOST


def difference_told(spread: float, rounds: int, power: float = POWER) -> float:
    """Returns the smallest ratio above 1 that so many rounds tell."""
    effect = TTestPower().solve_power(nobs=rounds, alpha=0.05, power=power)
    return math.exp(float(effect) * spread)


def power_of(folder: Path, difference: float = DIFFERENCE) -> list[Power]:
    """Returns the rounds that each average comparison of an earlier study would need."""
    table = read_frame(folder / COMPARISONS_FILE)
    widest = (
        "all" if "all" in set(table["scope"]) else "x" if "x" in set(table["scope"]) else "cell"
    )
    return [_power(row, difference) for _, row in table[table["scope"] == widest].iterrows()]


def _power(row: pd.Series[str], difference: float) -> Power:
    """The spread between units follows from the width of the interval."""
    n, t = int(row["blocks"]), row["t"]
    ratio = math.log(float(row["ratio"]))
    spread = 0.0 if t == "-" else abs(ratio / float(t)) * math.sqrt(n)
    unit = row.get("unit", "block")
    rounds = rounds_needed(spread, difference)
    return Power(row["measure"], row["server"], row["baseline"], spread, unit, rounds)
