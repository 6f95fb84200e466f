"""Prints the results in the Test Anything Protocol with --tap, so that tests/run counts each case."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from study_runs import Bench

from collect.install_and_build import build


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tap", action="store_true", help="print TAP and nothing else")


class Tap:
    """Prints a line for each case."""

    def __init__(self) -> None:
        self.count = 0

    def _say(self, text: str) -> None:
        sys.__stdout__.write(text + "\n")
        sys.__stdout__.flush()

    def _case(self, report: pytest.TestReport | pytest.CollectReport, what: str = "") -> None:
        self.count += 1
        word = "not ok" if report.failed else "ok"
        name = report.nodeid.rpartition("/")[2].replace("#", " ")
        self._say(f"{word} {self.count} - {name}{what}")
        if report.failed:
            # What differs comes first: tests/run shows the first lines alone.
            lines = str(report.longrepr).splitlines()
            for line in sorted(lines, key=lambda line: not line.startswith("E ")):
                self._say(f"# {line}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._case(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._case(report, f" # SKIP {reason}")
        elif report.when == "call" or report.failed:
            self._case(report)

    def pytest_sessionfinish(self) -> None:
        self._say(f"1..{self.count}")


def pytest_configure(config: pytest.Config) -> None:
    # An interrupted tests/run ends pytest by SIGTERM: then, too, what a test has made is removed.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    if config.getoption("--tap"):
        config.pluginmanager.register(Tap(), "tap")
        # Without the terminal plugin pytest lacks this option, which it reads to explain a failure.
        config.option.verbose = getattr(config.option, "verbose", 0)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Makes a place to measure in, in which nothing may be left behind."""
    folder = tmp_path_factory.mktemp("bench")
    temporary = folder / "tmp"
    temporary.mkdir()
    build()
    bench = Bench(folder, f"{os.getpid()}-{folder.name}", {"TMPDIR": str(temporary)})
    yield bench
    bench.python.end()
    bench.assert_nothing_left()
    assert list(temporary.iterdir()) == []
