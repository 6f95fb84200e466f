"""A page that fills while a study runs: the report of the runs so far, made between blocks."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from collect.project import COLLECT, PROJECT, say
from collect.tables import write_text

FRAME = COLLECT / "present" / "templates" / "live.html"
PAGE = "live.html"
STATE = "live.js"
# A report is made when it takes no more than this share of the time since the last one.
SHARE = 0.1


class LivePage:
    """The page of a results folder. Nothing is written while a run is measured."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reports = 0
        self.cost = 0.0
        self.last = time.monotonic()

    def begin(self) -> None:
        """Writes the page, and says where it is."""
        write_text(self.folder / PAGE, FRAME.read_text(encoding="utf-8"))
        self._state(0, 0, "begins")
        say(f"Live:    {(self.folder / PAGE).resolve().as_uri()}")

    def after_block(self, done: int, total: int) -> None:
        """Makes the report again, if that is cheap enough."""
        if self.cost <= SHARE * (time.monotonic() - self.last) or not self.reports:
            self._report()
        self._state(done, total, "runs")

    def end(self, finished: bool) -> None:
        """Leads to the report of all runs; of a study that was stopped, says so."""
        self._state(0, 0, "ended" if finished else "stopped")

    def _report(self) -> None:
        begin = time.monotonic()
        command = [str(PROJECT / "dcollect.sh"), "report", str(self.folder)]
        made = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        self.reports += made.returncode == 0
        self.last = time.monotonic()
        self.cost = self.last - begin

    def _state(self, done: int, total: int, state: str) -> None:
        told = {"state": state, "done": done, "total": total, "reports": self.reports}
        write_text(self.folder / STATE, f"tell({json.dumps(told)});\n")
