"""The floors at the start and the end of each round: servers that do nothing.

Figures relative to the floor of their round can be compared between machines. A round whose floors
moved is marked: the machine was not the same at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from collect.infer.statistics import Values
from collect.measure.warn_of_drift import MOVED
from collect.project import CALIBRATION_FILE
from collect.tables import read_frame

FLOOR = "floor-one"
# The load on the floors.
ASKED = {
    "load": "ab", "file": "small.txt", "calls": "1", "keepalive": "off", "scheme": "http",
    "service": "files", "processors": "all",
}  # fmt: skip
CONNECTIONS = 10


@dataclass(frozen=True)
class Moved:
    """The change of a floor's requests/s from the beginning of a round to its end."""

    round: int
    floor: str
    ratio: float

    @property
    def is_marked(self) -> bool:
        return not 1 / MOVED < self.ratio < MOVED


def read_calibration(folder: Path) -> pd.DataFrame:
    """Returns the valid calibration runs of a results folder; no rows if there are none."""
    path = folder / CALIBRATION_FILE
    if not path.is_file():
        return pd.DataFrame(columns=["round", "when", "server", "rps", "server_cpu_us"])
    frame = read_frame(path)
    return frame[frame["valid"] == "yes"]


def floor_by_round(calibration: pd.DataFrame, rounds: list[int], measure: str) -> Values:
    """Returns the mean logarithm of the floor's measure in each of these rounds; NaN for none."""
    mine = calibration[calibration["server"] == FLOOR]
    values = pd.to_numeric(mine[measure], errors="coerce")
    logs = np.log(values[values > 0])
    means = logs.groupby(mine["round"].astype(int)).mean()
    return np.array([means.get(number, np.nan) for number in rounds])


def moves(calibration: pd.DataFrame) -> list[Moved]:
    """Returns how each floor changed within each round that has both of its ends."""
    found = []
    rates = pd.to_numeric(calibration["rps"], errors="coerce")
    keys = [calibration["round"].astype(int), calibration["server"], calibration["when"]]
    means = np.exp(np.log(rates[rates > 0]).groupby(keys, sort=False).mean())
    for (number, floor), of_round in means.groupby(level=[0, 1], sort=False):
        ends = of_round.droplevel([0, 1])
        if "begin" in ends and "end" in ends:
            found.append(Moved(int(number), str(floor), float(ends["end"] / ends["begin"])))
    return found
