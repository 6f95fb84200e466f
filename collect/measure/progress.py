"""Shows the progress of a study: one line on a terminal, elsewhere a line for each block."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

from collect.readable_numbers import clock_text


class Progress:
    """Counts runs, and tells of them on standard error."""

    def __init__(self, total: int, done_before: int) -> None:
        self.total = total
        self.done_before = done_before
        self.done = 0
        self.begin = time.monotonic()
        self.terminal = sys.stderr.isatty()

    @property
    def count(self) -> int:
        return self.done_before + self.done

    def _left(self) -> str:
        if not self.done:
            return ""
        passed = time.monotonic() - self.begin
        return f", {clock_text(passed * (self.total - self.count) / self.done)} to go"

    def run(self, row: Mapping[str, str]) -> None:
        """Tells of the run that begins, in a line that does not wrap: it would scroll, and not be
        written over."""
        self._write(
            f"block {row['block']}: {row['server']}, {row['file']}, "
            f"{row['concurrency']} at once, {row['requests']} requests"
        )

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
        gone = clock_text(time.monotonic() - self.begin)
        sys.stderr.write(
            f"{100 * self.count // self.total:3d}%  block {block} done, {self.count} of "
            f"{self.total} runs, {gone} gone{self._left()}\n"
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
