"""The number of rounds that shows a difference, from the spread of an earlier study."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from statsmodels.stats.power import TTestPower

from collect.project import COMPARISONS_FILE, PUBLISHED
from collect.readable_numbers import percent_text
from collect.tables import read_frame

DIFFERENCE = 1.10
POWER = 0.80
MOST = 1000
MEASURES = {"rps": "requests/s", "server_cpu_us": "server CPU per request"}


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
        least = "at least " if self.unit == "block" else ""  # rounds differ more than blocks
        who = self.server if self.server == self.baseline else f"{self.server} / {self.baseline}"
        tells = f"{least}{self.rounds} rounds" if self.rounds < MOST else f"over {MOST} rounds"
        return (
            f"{tells} tell a difference of {percent_text(difference - 1)} ({who}, "
            f"{MEASURES.get(self.measure, self.measure)}: spread "
            f"{percent_text(math.expm1(self.spread))} from {self.unit} to {self.unit})"
        )


def rounds_needed(spread: float, difference: float = DIFFERENCE, power: float = POWER) -> int:
    """Returns the rounds in which a t-test at 5% shows the ratio with this power; at least 3."""
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
    """Returns the smallest ratio above 1 that this number of rounds shows."""
    effect = TTestPower().solve_power(nobs=rounds, alpha=0.05, power=power)
    return math.exp(float(effect) * spread)


def power_of(folder: Path, difference: float = DIFFERENCE) -> list[Power]:
    """Returns the rounds that each average comparison of an earlier study would need."""
    table = read_frame(folder / COMPARISONS_FILE)
    widest = (
        "all" if "all" in set(table["scope"]) else "x" if "x" in set(table["scope"]) else "cell"
    )
    chosen = table[(table["scope"] == widest) & table["measure"].isin(list(MEASURES))]
    told = pd.to_numeric(chosen["t"], errors="coerce").abs() > 0  # else no spread follows from it
    return [_power(row, difference) for _, row in chosen[told].iterrows()]


def _power(row: pd.Series[str], difference: float) -> Power:
    """Takes the spread between units from the estimate and its t."""
    ratio = math.log(float(row["ratio"]))
    spread = abs(ratio / float(row["t"])) * math.sqrt(int(row["blocks"]))
    unit = row.get("unit", "block")
    rounds = rounds_needed(spread, difference)
    return Power(row["measure"], row["server"], row["baseline"], spread, unit, rounds)


def advice(study: str, published: Path = PUBLISHED) -> str:
    """Says how many rounds of a study tell a difference, from its published runs; may be empty.

    The comparison that needs the most rounds is named, of the run with the most spread.
    """
    folders = [path.parent for path in sorted((published / study).glob(f"*/{COMPARISONS_FILE}"))]
    found = [power for folder in folders for power in power_of(folder)]
    if not found:
        return ""
    return f"{study}: {max(found, key=lambda power: power.rounds).text()}"
