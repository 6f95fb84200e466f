"""Warns, while a study runs and at its end, when a ratio of two servers changes, and when a floor
is not at the end of a round what it was at its beginning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance

from collect.design.factors import NAMES
from collect.project import command_name, say
from collect.readable_numbers import factor_text, join_text

# Chance alone makes a drift of few blocks too often.
LEAST_BLOCKS = 8
CHANGED = 1.10  # the later half of the blocks against the earlier one
SURE = 5.0  # and by so many standard errors: it is looked for after each block, for each server
MOVED = 1.10  # a floor that is this much faster or slower at the end of its round has moved
# The logarithms of CPU per request, by server and by the other factors.
Costs = dict[tuple[str, str], float]
# The requests/s of the floors, by the place in the round and by the floor.
Rates = Mapping[tuple[str, str], Sequence[float]]


@dataclass
class RatioDrift:
    """The server CPU per request of each block so far, and the servers that were warned of."""

    baseline: str
    blocks: list[Costs] = field(default_factory=list)
    costs: Costs = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def run(self, row: Mapping[str, str], columns: Mapping[str, str]) -> None:
        """Takes a run."""
        value = columns.get("server_cpu_us", "-")
        if columns.get("valid") == "yes" and value != "-" and float(value) > 0:
            cell = "\t".join(row[name] for name in NAMES if name != "server")
            self.costs[row["server"], cell] = math.log(float(value))

    def block(self, name: str) -> None:
        """Looks back at a block, and warns of each server once."""
        self.blocks.append(self.costs)
        self.costs = {}
        changes = self.changes()
        if new := [server for server in changes if server not in self.told]:
            self.told.update(new)
            say(
                f"warning: up to block {name} {self._words(changes, new)}. Something in this "
                "machine is not as it was (heat, clock, other programs), and the mean is that of "
                f"no single state. Find the cause, or measure in rounds: {command_name()} campaign"
            )

    def end(self) -> None:
        """Says once more which ratios changed."""
        if changes := self.changes():
            say(f"warning: in this study {self._words(changes, list(changes))}")

    def _words(self, changes: Mapping[str, float], servers: Sequence[str]) -> str:
        texts = [
            f"the ratio {server} / {self.baseline} of server CPU changed by a factor of "
            f"{factor_text(changes[server])}"
            for server in servers
        ]
        return join_text(texts)

    def changes(self) -> dict[str, float]:
        """Returns the servers whose ratio to the baseline changed, and the factor."""
        if len(self.blocks) < LEAST_BLOCKS:
            return {}
        known = set.intersection(*(set(block) for block in self.blocks))
        found = {}
        for server in dict.fromkeys(server for server, _ in self.blocks[0]):
            cells = [c for s, c in known if s == server and (self.baseline, c) in known]
            if server == self.baseline or not cells:
                continue
            ratios = [
                fmean(block[server, cell] - block[self.baseline, cell] for cell in cells)
                for block in self.blocks
            ]
            if change := _certain_change(ratios):
                found[server] = math.exp(change)
        return found


def _certain_change(values: list[float]) -> float:
    """Returns by how much the later half of these values is above the earlier one; 0 if that is
    little or uncertain."""
    half = len(values) // 2
    earlier, later = values[:half], values[-half:]
    change = fmean(later) - fmean(earlier)
    error = math.sqrt((variance(earlier) + variance(later)) / half)
    return change if abs(change) > max(math.log(CHANGED), SURE * error) else 0.0


def moved_floors(rates: Rates) -> dict[str, float]:
    """Returns the floors that moved within a round, and the factor."""
    found = {}
    for when, floor in rates:
        if when == "begin" and ("end", floor) in rates:
            begin, end = (fmean(map(math.log, rates[at, floor])) for at in ("begin", "end"))
            if abs(end - begin) >= math.log(MOVED):
                found[floor] = math.exp(end - begin)
    return found


def tell_moved_floors(round_name: str, rates: Rates) -> None:
    """Warns of the floors that moved within a round."""
    if moved := moved_floors(rates):
        texts = [f"{floor} {factor_text(factor)}" for floor, factor in moved.items()]
        say(
            f"warning: this machine changed during round {round_name}: at its end, servers that do "
            f"nothing answered {join_text(texts)} times the requests/s of its beginning (heat, "
            "clock, other guests of its host). Ratios suffer less than requests/s. Measure again "
            "when the machine is idle and cool"
        )
