"""The share of this machine's processors that other programs had while a study ran."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SHARED = 5.0  # percent of the processors that others may have while a study runs
STOLEN = 2.0  # percent of them that the host may give to other virtual machines


@dataclass(frozen=True)
class Ticks:
    """Time of all processors, in ticks: what programs used, what the host of a virtual machine
    gave to others, and what this process and its descendants used; and when it was read."""

    used: int
    stolen: int
    own: int
    when: float


def read_ticks() -> Ticks:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system = (int(field) for field in fields[:3])
    stolen = int(fields[7]) if len(fields) > 7 else 0
    return Ticks(user + nice + system, stolen, _own(), time.monotonic())


def _own() -> int:
    """Returns the ticks of this process, of its descendants that live (the program that delays
    packets lives as long as the study), and of the ended children of all of these."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            number = int(path.name)
            parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))
    own = {os.getpid()}
    found = own
    while found:
        found = {number for number, parent in parents.items() if parent in found}
        own |= found
    return sum(ticks.get(number, 0) for number in own)


def shares(begin: Ticks, end: Ticks) -> dict[str, object]:
    """Returns the share of others between two readings, for machine.tsv. Servers that have become
    daemons, which are no descendants any more, must have ended."""
    rate = os.sysconf("SC_CLK_TCK") * os.sysconf("SC_NPROCESSORS_ONLN")
    everything = (end.when - begin.when) * rate
    if everything < os.sysconf("SC_CLK_TCK"):
        return {}
    others = max(end.used - begin.used - (end.own - begin.own), 0)
    return {
        "others_percent": f"{100 * others / everything:.1f}",
        "stolen_percent": f"{100 * (end.stolen - begin.stolen) / everything:.1f}",
    }
