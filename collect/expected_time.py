"""How long a study will take, from the times of earlier runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from collect.design.factors import FOR_A_TIME, HOLDING, NAMES
from collect.design.plan import Cells
from collect.design.study import Study, load_study
from collect.project import PUBLISHED, RUNS_FILE, STUDY_FILE, results_folder
from collect.tables import read_table

Cell = Mapping[str, str]
Key = tuple[str, ...]
# A study that was never measured is taken to cost what this one does.
USUAL = "fork-vs-thread"
# An interrupted study has gaps between its runs, which cost nothing.
GAP_SECONDS = 120.0
# The seconds of a look into a server, by instrument; each cell has one look a round.
LOOK_SECONDS = {"strace": 1.5, "perf": 4.0}
HOSTS_SECONDS = 4.0
LINK_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
# Earlier runs are looked up by these factors in turn, from the most alike to any.
ALIKE = (
    tuple(name for name in NAMES if name != "requests"),
    ("server", "file", "load", "scheme", "service", *HOLDING),
    ("server", "load", "scheme"),
    ("load", "scheme"),
    ("load",),
    (),
)


@dataclass
class _Cost:
    """The cost of runs: the seconds beside their loads, those of the loads, and the requests."""

    runs: int = 0
    aside: float = 0.0
    load: float = 0.0
    requests: float = 0.0

    def add(self, other: _Cost) -> None:
        self.runs += other.runs
        self.aside += other.aside
        self.load += other.load
        self.requests += other.requests

    def of(self, requests: float, most: float) -> float:
        """Returns the seconds of a run with this number of requests (0: unknown), whose load takes
        `most` seconds at most."""
        known = requests and self.requests
        load = self.load * (requests / self.requests if known else 1 / self.runs)
        return self.aside / self.runs + min(load, most)


def _requests(cell: Cell) -> float:
    """Returns how many requests a run of a cell has; 0 if nobody knows."""
    count = cell["requests"]
    return float(count) * float(cell.get("calls", "1")) if count.isdigit() else 0.0


def _more_seconds(study: Study, cell: Cell) -> float:
    """Returns the seconds that its duration, or the work of its requests, adds to a run."""
    if cell["load"] in FOR_A_TIME:
        return float((study.duration or 2) + study.seconds_before)
    if not cell["amount"].isdigit() or cell["file"] == "touch":
        return 0.0
    at_once = 1 if cell["server"].startswith("iterative") else min(int(cell["concurrency"]), 2)
    return _requests(cell) * float(cell["amount"]) / 1e6 / at_once


def _last_runs(folder: Path) -> list[Path]:
    """Returns the runs in the results folders of a study that were measured last; none, if there
    are none."""
    found = [path for path in folder.glob(f"*/{RUNS_FILE}") if path.stat().st_size > 1000]
    return [max(found, key=lambda path: path.stat().st_mtime)] if found else []


Costs = dict[tuple[str, ...], dict[Key, _Cost]]


@cache
def _costs(path: Path) -> Costs:
    """Returns what the valid runs of a results folder cost, by the factors that they share."""
    # By all factors first: the runs of a cell are many, the cells few.
    cells: dict[Key, _Cost] = {}
    for row, after in itertools.pairwise(read_table(path, key="run").rows):
        try:
            load = float(row["seconds"])
            aside = float(after["started"]) - float(row["started"]) - load
        except ValueError:
            continue
        if 0 <= aside < GAP_SECONDS and row.get("valid", "yes") == "yes":
            cost = _Cost(1, aside, load, _requests(row))
            cells.setdefault(_key(row, NAMES), _Cost()).add(cost)
    costs: Costs = {names: {} for names in ALIKE}
    for key, cost in cells.items():
        cell = dict(zip(NAMES, key, strict=True))
        for names in ALIKE:
            costs[names].setdefault(_key(cell, names), _Cost()).add(cost)
    return costs


class _Past:
    """The cost of earlier runs. Over a slower link runs take longer."""

    def __init__(self, path: Path, study: Study) -> None:
        self.study = load_study(path.parent / STUDY_FILE)
        link = self.study.link
        self.scale = _bits(link) / _bits(study.link) if link and study.link else 1.0
        self.costs = _costs(path)
        self.most = float(study.duration or math.inf)

    def seconds(self, cell: Cell, names: tuple[str, ...]) -> float | None:
        """Returns the seconds of the runs that are like a cell in these factors."""
        cost = self.costs[names].get(_key(cell, names))
        most = self.most if cell["load"] == "witness" else math.inf
        return cost.of(_requests(cell), most) * self.scale if cost else None

    def servers(self) -> set[str]:
        return {key[0] for key in self.costs[("server", "load", "scheme")]}


def _key(cell: Cell, names: Iterable[str]) -> Key:
    return tuple(cell.get(name, "") for name in names)


def _bits(link: str) -> float:
    """Returns the bits a second of a link such as 20mbit."""
    return float(link[:-4]) * LINK_UNITS[link[-4:]]


def _seconds(study: Study, pasts: Sequence[_Past], cell: Cell) -> float:
    """Returns the seconds of a run of a cell: those of the runs that are most like it, the last
    ones first. The server `all` stands for every one."""
    if cell["server"] == "all":
        names = set().union(*(past.servers() for past in pasts))
        return sum(_seconds(study, pasts, {**cell, "server": name}) for name in names)
    for alike in ALIKE:
        for past in pasts:
            seconds = past.seconds(cell, alike)
            if seconds is not None:
                return max(0.0, seconds + _longer(study, past.study, cell, alike))
    return 0.0


def _longer(study: Study, past: Study, cell: Cell, alike: tuple[str, ...]) -> float:
    """Returns how much longer a run of a cell takes than runs of an earlier study that are alike
    in these factors."""
    if cell["load"] in FOR_A_TIME and "load" in alike:
        return _more_seconds(study, cell) - _more_seconds(past, cell)
    return _more_seconds(study, cell) if alike != ALIKE[0] else 0.0


def expected_seconds(study: Study, cells: Cells) -> float:
    """Returns the seconds that the runs of a study will take, by those that were made here last
    and by those that are published; 0 if nothing is known."""
    folders = (results_folder() / study.name, PUBLISHED / study.name, PUBLISHED / USUAL)
    pasts = [_Past(path, study) for folder in folders for path in _last_runs(folder)]
    runs = sum(
        blocks * _seconds(study, pasts, dict(zip(NAMES, key, strict=True)))
        for key, blocks in cells.blocks.items()
    )
    looks = len(cells.blocks) * sum(LOOK_SECONDS[name] for name in study.instruments)
    # Loads on other machines begin at an agreed moment, some seconds later.
    leads = HOSTS_SECONDS * sum(cells.blocks.values()) if study.load_hosts else 0.0
    return runs + looks + leads if runs else 0.0
