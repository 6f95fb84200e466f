"""Stops the run stage at SIGINT, SIGTERM or SIGHUP."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from contextlib import suppress
from types import FrameType

PR_SET_PDEATHSIG = 1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """The run at hand is given up."""


class Stop:
    """Notes that a stop was requested, and tells the load that runs to end."""

    def __init__(self) -> None:
        self.asked = False
        self.load: subprocess.Popen[bytes] | None = None
        for number in SIGNALS:
            signal.signal(number, self._hear)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        if self.load:
            with suppress(OSError):
                self.load.terminate()

    def check(self) -> None:
        """Raises Interrupted if a stop was requested."""
        if self.asked:
            raise Interrupted

    def wait_for(self, load: subprocess.Popen[bytes]) -> None:
        """Waits for a load, and ends it when a stop is requested."""
        self.load = load
        if self.asked:
            with suppress(OSError):
                load.terminate()
        load.wait()
        self.load = None
        self.check()


def end_with_parent() -> None:
    """Has the kernel send this process SIGTERM when its parent ends."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)
