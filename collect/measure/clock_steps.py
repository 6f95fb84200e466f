"""Time that a step of the wall clock does not change, and the steps themselves."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

# A smaller difference is the time between two readings of clocks, no step.
STEP_SECONDS = 0.005
READINGS = 5


@dataclass
class StudyClock:
    """Seconds since the study began, by the monotonic clock. The wall clock is read once, when this
    process begins: it says how long ago the study began, which is at least `least` seconds."""

    epoch: float
    least: float = 0.0
    _offset: float = field(init=False)

    def __post_init__(self) -> None:
        self._offset = max(time.time() - self.epoch, self.least) - time.monotonic()

    def since_begin(self, monotonic: float) -> float:
        """Returns the second of the study in which the monotonic clock had this value."""
        return self._offset + monotonic

    def now(self) -> float:
        return self.since_begin(time.monotonic())


def wall_offset() -> float:
    """Returns how far the wall clock is from the monotonic one, by the quickest of a few readings.

    Both follow the same corrections of the rate, so that this changes only when somebody sets the
    wall clock.
    """
    readings = []
    for _ in range(READINGS):
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        readings.append((after - before, wall - (before + after) / 2))
    return min(readings)[1]


def step_since(offset: float) -> float:
    """Returns by how many seconds the wall clock was set since it had this offset; 0 if not."""
    step = wall_offset() - offset
    return step if abs(step) > STEP_SECONDS else 0.0
