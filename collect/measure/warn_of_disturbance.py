"""Warns, while a study runs and at its end, of what spoils it: other programs, and a machine that
is faster or slower than before."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from collect.design.factors import NAMES
from collect.measure.foreign_load import SHARED, STOLEN, Ticks, read_ticks, shares
from collect.project import command_name, say
from collect.readable_numbers import plural

# Shorter times tell little of a share: the kernel counts in hundredths of a second.
LEAST_SECONDS = 2.0
CHANGED = 1.10  # a block whose requests/s are this many times more or fewer than in the first one
SURE = 3.0  # and by so many standard errors of their mean
LEAST_CELLS = 4  # so many must have changed together: one alone may be the server


@dataclass
class Disturbance:
    """What was seen so far."""

    begin: Ticks = field(default_factory=read_ticks)
    first: dict[tuple[str, ...], float] = field(default_factory=dict)
    changes: list[float] = field(default_factory=list)
    blocks: int = 0
    shared: list[float] = field(default_factory=list)
    stolen: list[float] = field(default_factory=list)
    changed: list[float] = field(default_factory=list)

    def run(self, row: Mapping[str, str], columns: Mapping[str, object]) -> None:
        """Takes a run: its requests/s, beside those of the first run that was like it."""
        try:
            rate = math.log(float(str(columns.get("rps"))))
        except ValueError:
            return
        key = tuple(row[name] for name in NAMES)
        if key in self.first:
            self.changes.append(rate - self.first[key])
        else:
            self.first[key] = rate

    def block(self, name: str) -> None:
        """Looks back at a block, whose servers have ended: the kernel counts them as ours now."""
        self.blocks += 1
        self._look_at_others(name)
        self._look_at_changes(name)

    def _look_at_others(self, name: str) -> None:
        now = read_ticks()
        if now.when - self.begin.when < LEAST_SECONDS:
            return
        found = shares(self.begin, now)
        others, stolen = (float(str(found.get(f"{w}_percent", 0))) for w in ("others", "stolen"))
        self.begin = now
        if others > SHARED:
            if not self.shared:
                say(
                    f"warning: other programs had {others:.0f}% of the processors up to the end of "
                    f"block {name}. The servers get less time, and not all alike. See `top`: end "
                    "these programs, or measure again later"
                )
            self.shared.append(others)
        if stolen >= STOLEN:
            if not self.stolen:
                say(
                    f"warning: the host of this virtual machine gave {stolen:.0f}% of the "
                    f"processors to others up to the end of block {name}. The servers get less "
                    "time, and not all alike. Measure again at another time, or on another machine"
                )
            self.stolen.append(stolen)

    def _look_at_changes(self, name: str) -> None:
        if len(self.changes) >= LEAST_CELLS:
            change = statistics.fmean(self.changes)
            error = statistics.stdev(self.changes) / math.sqrt(len(self.changes))
            if abs(change) > max(math.log(CHANGED), SURE * error):
                ratio = math.exp(change)
                if not self.changed:
                    say(
                        f"warning: in block {name} the servers answer {ratio:.2f} times as many "
                        "requests/s as in the first block: this machine is faster or slower than "
                        "before (heat, other guests of its host). Comparisons within a block "
                        "hold; requests/s do not"
                    )
                self.changed.append(ratio)
        self.changes.clear()

    def end(self) -> None:
        """Says at the end how often that was seen."""
        if self.shared:
            say(
                f"warning: in {len(self.shared)} of {plural(self.blocks, 'block', 'blocks')} other "
                f"programs had over {SHARED:.0f}% of the processors, at most "
                f"{max(self.shared):.1f}%: measure again on a machine with nothing else to do"
            )
        if self.stolen:
            say(
                f"warning: in {len(self.stolen)} of {plural(self.blocks, 'block', 'blocks')} the "
                f"host gave over {STOLEN:.0f}% of the processors to other virtual machines, at "
                f"most {max(self.stolen):.1f}%: measure again at another time"
            )
        if self.changed:
            low, high = (f"{bound(self.changed):.2f}" for bound in (min, max))
            say(
                f"warning: in {len(self.changed)} of {plural(self.blocks, 'block', 'blocks')} the "
                "requests/s of all servers differed from the first block by over "
                f"{100 * (CHANGED - 1):.0f}%, {low if low == high else f'{low} to {high}'} "
                f"times as many: a campaign ({command_name()} campaign) averages over such times"
            )
