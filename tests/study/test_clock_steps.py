"""Clock steps: they change no duration, and a run in which one happens does not count."""

from __future__ import annotations

import shutil
import time
from itertools import pairwise

import pytest
from study_runs import Bench, column, rows_of, runs

from collect.measure.clock_steps import STEP_SECONDS, StudyClock, step_since, wall_offset


class Wall:
    """A wall clock that can be set."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._real = time.time

    def __call__(self) -> float:
        return self._real() + self.ahead


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    clock = Wall()
    monkeypatch.setattr(time, "time", clock)
    return clock


def test_a_step_of_the_wall_clock_is_no_time(wall: Wall) -> None:
    clock = StudyClock(time.time() - 100)
    assert 100 <= clock.now() < 200
    for step in (-3600.0, 7200.0):
        before = clock.now()
        wall.ahead += step
        assert 0 <= clock.now() - before < 100


@pytest.mark.parametrize(("ago", "least"), [(-50, 40), (10, 40), (60, 0)])
def test_a_study_goes_on_behind_what_it_has(ago: float, least: float) -> None:
    now = StudyClock(time.time() - ago, least).now()
    assert max(ago, least) <= now < max(ago, least) + 100


@pytest.mark.parametrize("step", [-2.5, 0.1, 3600])
def test_a_step_is_seen(wall: Wall, step: float) -> None:
    offset = wall_offset()
    assert step_since(offset) == 0
    wall.ahead = step
    assert abs(step_since(offset) - step) < STEP_SECONDS


STEPPED = """
import time
real, begin = time.time, time.monotonic()
# Set back by an hour in the middle of some run.
time.time = lambda: real() - (3600 if time.monotonic() - begin > 1 else 0)
"""


@pytest.mark.skipif(not shutil.which("ab"), reason="ab is not installed")
def test_a_run_in_which_the_clock_is_set_does_not_count(bench: Bench) -> None:
    folder = bench.folder / "stepped"
    words = ("--output", folder, "--servers", "fork,thread", "--files", "small.txt",
             "--concurrency", "1", "--requests", 1000, "--repetitions", 8, "--seed", 2)  # fmt: skip
    command = bench.measuring(*words)
    command[command.index("-c") + 1] = STEPPED + command[command.index("-c") + 1]
    done = bench.run_in(None, command)
    assert done.returncode in (0, 3), done.stderr
    rows = runs(folder)
    wrong = [row["valid"] for row in rows if row["valid"] != "yes"]
    assert all(valid.startswith("the clock of the machine was set by -3") for valid in wrong)
    assert len(wrong) <= 1, "one step, and at most one run"
    started = [float(value) for value in column(rows, "started")]
    assert all(a < b < a + 600 for a, b in pairwise(started))
    (sitting,) = rows_of(folder / "rounds.tsv")
    assert float(sitting["started"]) < started[0] and started[-1] < float(sitting["ended"]) < 600
