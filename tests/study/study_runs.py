"""Runs studies for tests, reads their tables, and finds what they leave behind."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from preloaded_python import PreparedPython

from collect.tables import read_table, whole_lines

TOP = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 240.0
# Tests ask the floors, and a server for its capacity, with few requests: most of the CPU time of a
# test would go there. perf needs few samples, since it reads the symbols of the kernel again for
# each load that it watches. The servers were built when the Bench was made.
SHORT_CALIBRATION = """
from collect import check_study_names, new_results_folder
from collect.measure import instruments, loads, one_run
check_study_names.build = lambda: None
build = new_results_folder.build
new_results_folder.build = lambda crash=False: build(crash) if crash else None
instruments.PERF_SAMPLES = 60
one_run.CALIBRATION_REQUESTS, one_run.CALIBRATION_RUNS = 100, 1
closed_loop = loads.closed_loop
loads.closed_loop = lambda load, seconds, most=2000: closed_loop(load, seconds, most)
"""
# Where tests are interrupted, their studies stop.
WITH_TESTS = """
from collect.measure.stop import end_with_parent
end_with_parent()
"""
# The whole command, without PNG, which take longer than all SVG, and without figures for narrow
# screens: test_report.py and the tests that go through dcollect.sh draw both.
COMMAND = f"""{WITH_TESTS}{SHORT_CALIBRATION}
import sys
from collect import cli
write = cli._write_report
def write_without_pictures(folder):
    from collect.present import present_results
    present_results.PICTURES = ()
    present_results.narrow_figures = lambda figures: {{}}
    write(folder)
cli._write_report = write_without_pictures
sys.exit(cli.main(sys.argv[1:]))
"""
# Measures without a report, which takes long.
MEASURE = f"""{WITH_TESTS}{SHORT_CALIBRATION}
import os, sys
os.environ["LC_ALL"] = "C"  # as the command does
from collect.cli import main
from collect.measure.run_plan import run_plan
from collect.options import parse
from collect.project import StudyError
from collect.new_results_folder import start, unfinished
try:
    line = parse(sys.argv[1:])
    sys.exit(run_plan(start(line) if line.resume is None else unfinished(line)))
except StudyError as error:
    print(f"dcollect: {{error}}", file=sys.stderr)
    sys.exit(error.status)
"""


def until(condition: Callable[[], bool], patience: float = PATIENCE_SECONDS) -> bool:
    """Waits until a condition holds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@dataclass
class Bench:
    """A place for results, with an environment that marks the processes of a test."""

    folder: Path
    mark: str
    environment: dict[str, str] = field(default_factory=dict)
    python: PreparedPython = field(default_factory=PreparedPython)

    def variables(self) -> dict[str, str]:
        return {**os.environ, **self.environment, "STUDY_TEST": self.mark}

    def dcollect(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Runs the whole command, with short calibrations."""
        return self._run(self.commanding(*words))

    def door(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Runs dcollect.sh itself, as a user does."""
        return self.run_in(None, [str(TOP / "dcollect.sh"), *map(str, words)])

    @contextmanager
    def short_calibrations(self) -> Iterator[None]:
        """Shortens calibrations in whatever Python starts meanwhile, also behind dcollect.sh."""
        user = self.folder / "user"
        place = sysconfig.get_path("purelib", "posix_user", {"userbase": str(user)})
        self.spit(f"{place}/usercustomize.py", SHORT_CALIBRATION)
        self.environment["PYTHONUSERBASE"] = str(user)
        yield
        del self.environment["PYTHONUSERBASE"]

    def measure(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Measures without a report."""
        return self._run(self.measuring(*words))

    def commanding(self, *words: object) -> list[str]:
        return [sys.executable, "-c", COMMAND, *map(str, words)]

    def measuring(self, *words: object) -> list[str]:
        return [sys.executable, "-c", MEASURE, *map(str, words)]

    def run_in(
        self, folder: Path | None, command: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command in a folder; None for the folder of the test."""
        environment = {**self.variables(), "PYTHONPATH": str(TOP)}
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False,
            stdin=subprocess.DEVNULL, cwd=folder,
        )  # fmt: skip

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs what commanding() or measuring() returned."""
        _, _, code, *words = command
        return self.python.run(code, words, {**self.variables(), "PYTHONPATH": str(TOP)})

    def begin(self, *words: object) -> subprocess.Popen[str]:
        """Starts measuring, without a report."""
        return self.spawn(self.measuring(*words))

    def begin_whole(self, *words: object) -> subprocess.Popen[str]:
        """Starts the whole command."""
        return self.spawn(self.commanding(*words))

    def spawn(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Starts a command in another process group, as a terminal does."""
        environment = {**self.variables(), "PYTHONPATH": str(TOP)}
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=environment, process_group=0,
        )  # fmt: skip

    def interrupt(
        self, process: subprocess.Popen[str], folder: Path, rows: int, number: signal.Signals
    ) -> tuple[int, str]:
        """Waits for a number of rows, sends a signal to the whole group, as a terminal does
        (SIGTERM: to the one process, as `kill` does), and waits for the end."""
        assert until(lambda: row_count(folder) >= rows or process.poll() is not None)
        if process.poll() is not None:
            output, _ = process.communicate()
            raise AssertionError(f"it ended by itself with {process.returncode}: {output}")
        if number == signal.SIGTERM:
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, output

    def left_behind(self) -> list[str]:
        """Returns the processes that a study of this test left behind."""
        left = []
        prepared = self.python.process
        for path in Path("/proc").glob("[0-9]*"):
            if prepared and path.name == str(prepared.pid):
                continue
            try:
                known = f"STUDY_TEST={self.mark}".encode() in (path / "environ").read_bytes().split(b"\0")
                line = (path / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if known:
                left.append(f"{path.name} {line}")
        return left

    def assert_nothing_left(self) -> None:
        assert until(lambda: not self.left_behind(), 15), self.left_behind()

    def spit(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path


def rows_of(path: Path) -> list[dict[str, str]]:
    return read_table(path).rows


def runs(folder: Path) -> list[dict[str, str]]:
    return rows_of(folder / "runs.tsv")


def row_count(folder: Path) -> int:
    path = folder / "runs.tsv"
    return len(whole_lines(path)) - 1 if path.exists() else -1


def raw(folder: Path) -> dict[str, str]:
    """Returns the raw output of each run. The last part of a run counts, as its last row does."""
    text = gzip.decompress((folder / "raw.gz").read_bytes()).decode()
    parts = re.split(r"^# run (\d+) ", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def column(rows: Sequence[Mapping[str, str]], name: str) -> list[str]:
    return [row[name] for row in rows]


def assert_follows_plan(folder: Path) -> None:
    """Asserts that the rows are those of the plan, in its order, each once, and whole."""
    plan, table = read_table(folder / "plan.tsv"), read_table(folder / "runs.tsv")
    assert [{name: row[name] for name in plan.columns} for row in table.rows] == plan.rows
    assert table.disbelieved == 0
