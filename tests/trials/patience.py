"""How long a trial waits before it takes a server for hung."""

from __future__ import annotations

# The short form judges no times: its waits only end what hangs, however slow the machine is.
SLACK = 30.0
_slack = 1.0


def be_patient() -> None:
    """From now on, in this process and those that it makes, waits may take much longer."""
    global _slack
    _slack = SLACK


def patience(seconds: float) -> float:
    """A wait that is so long in the full form."""
    return seconds * _slack
