"""Shows the progress of a study: one line on a terminal; elsewhere a line for each block, and two
in the first, so that a reader knows soon that it runs and how long it will take."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

from collect.readable_numbers import clock_text

# Without a terminal, the first block tells of itself after so long.
EARLY_SECONDS = 8.0


class Progress:
    """Counts runs, and tells of them on standard error."""

    def __init__(self, total: int, done_before: int) -> None:
        self.total = total
        self.done_before = done_before
        self.done = 0
        self.begin = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.early = 0  # lines of the first block
        self.first_run = self.begin

    @property
    def count(self) -> int:
        return self.done_before + self.done

    def _left(self) -> str:
        if not self.done:
            return ""
        passed = time.monotonic() - self.first_run
        return f", {clock_text(passed * (self.total - self.count) / self.done)} to go"

    def run(self, row: Mapping[str, str]) -> None:
        """Tells of the run that begins, in a line that does not wrap: it would scroll, and not be
        written over."""
        if not self.done:
            self.first_run = time.monotonic()  # the floors before it tell nothing of the runs
        waited = time.monotonic() - self.begin >= EARLY_SECONDS
        if not self.terminal and self.done and waited and self.early == 1:
            self._line(f"block {row['block']}")
            self.early = 2
        self._write(
            f"block {row['block']}: {row['server']}, {row['file']}, "
            f"{row['concurrency']} at once, {row['requests']} requests"
        )

    def floors(self, number: str) -> None:
        """Tells that a round begins or ends with the servers that do nothing."""
        if not self.terminal and not self.early:
            self._line(f"round {number} begins")
            self.early = 1
        self._write(f"round {number}: servers that do nothing")

    def look(self, instrument: str, row: Mapping[str, str]) -> None:
        """Tells of a run under an instrument."""
        self._write(f"{instrument}: {row['server']}, {row['file']}")

    def _write(self, what: str) -> None:
        if not self.terminal:
            return
        gone = clock_text(time.monotonic() - self.begin)
        line = f"{100 * self.count // self.total:3d}%  {gone} gone{self._left()}   {what}"
        sys.stderr.write(f"\r\x1b[K{line[: _width() - 1]}")
        sys.stderr.flush()

    def block(self, block: str) -> None:
        """Tells of a block that has ended, where there is no terminal."""
        if self.terminal:
            return
        self._line(f"block {block} done")
        self.early = 2

    def _line(self, what: str) -> None:
        gone = clock_text(time.monotonic() - self.begin)
        sys.stderr.write(
            f"{100 * self.count // self.total:3d}%  {what}, {self.count} of {self.total} runs, "
            f"{gone} gone{self._left()}\n"
        )
        sys.stderr.flush()

    def end(self) -> None:
        if self.terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80
