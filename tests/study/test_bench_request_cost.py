"""`make bench`: what one server costs more than another one."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from study_runs import TOP

from collect.infer.paired_bursts import percent_more, ratio_of_start

SHORT = ("--starts", "2", "--pairs", "2", "--requests", "80", "--concurrency", "2")
NO_TABLES = ("--size-rounds", "0", "--keep-rounds", "0", "--tls-rounds", "0", "--growth-rounds", "0")


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "collect", "bench", *arguments]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)


def lines_of_costs(text: str) -> list[tuple[str, str]]:
    cost = r"^(\S+) costs +[-+.0-9]+% \([-+.0-9]+ to [-+.0-9]+\) more than (.+)$"
    return re.findall(cost, text, re.M)


# --- bursts in turn ---


def test_the_order_changes_with_each_pair_and_with_each_start() -> None:
    for is_first_late, expected in ((False, "12 12 21 12"), (True, "21 21 12 21")):
        said: list[str] = []

        def burst(is_first: bool, said: list[str] = said) -> float:
            said.append("1" if is_first else "2")
            return 1.0

        ratio_of_start(burst, 3, is_first_late=is_first_late)
        assert "".join(said) == expected.replace(" ", "")


def test_a_machine_that_changes_its_speed_changes_no_ratio() -> None:
    speed = 1.0

    def burst(is_first: bool) -> float:
        nonlocal speed
        speed *= 1.02  # with each burst
        return speed * (1.05 if is_first else 1.0)

    starts = [ratio_of_start(burst, 20, is_first_late=bool(n % 2)) for n in range(4)]
    assert percent_more(starts)[0] == pytest.approx(5.0, abs=0.05)


def test_bursts_beside_others_do_not_count() -> None:
    numbers = iter(range(1000))
    costs = lambda is_first: 50.0 if next(numbers) % 7 == 0 else 1.02 if is_first else 1.0  # noqa: E731
    assert ratio_of_start(costs, 25, is_first_late=False) == pytest.approx(1.02)


def test_the_interval_is_over_the_starts() -> None:
    draw = random.Random(5)
    covered = 0
    for _ in range(400):
        _more, low, high = percent_more([1.03 * draw.lognormvariate(0, 0.01) for _ in range(8)])
        covered += low <= 3.0 <= high
    assert 360 <= covered <= 396


# --- the command ---


def test_each_server_is_compared_with_that_of_another_tree() -> None:
    done = bench("--before", str(TOP), "--subjects", "thread,epoll", *SHORT)
    assert done.returncode == 0, done.stderr
    pairs = [("thread", f"thread of {TOP}"), ("epoll", f"epoll of {TOP}")]
    assert lines_of_costs(done.stdout) == pairs * 2  # one connection per request, and one that is kept


def test_a_server_with_options_is_compared_with_itself_without() -> None:
    done = bench("--subjects", "thread+no-file-cache", "--rounds", "1", *SHORT, *NO_TABLES)
    assert done.returncode == 0, done.stderr
    assert lines_of_costs(done.stdout) == [("thread", "thread+no-file-cache")]


def test_a_server_that_the_other_tree_lacks_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "epoll_server").symlink_to(TOP / "epoll_server")
    done = bench("--before", str(tmp_path), "--subjects", "thread,epoll", *SHORT)
    assert f"bench: thread is left out: there is none in {tmp_path}" in done.stderr
    assert {first for first, _ in lines_of_costs(done.stdout)} == {"epoll"}


def test_a_server_that_does_not_start_is_named(tmp_path: Path) -> None:
    (tmp_path / "thread_server").symlink_to("/bin/false")
    done = bench("--before", str(tmp_path), "--subjects", "thread", *SHORT)
    assert "bench: thread does not start" in done.stderr
    assert not lines_of_costs(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--before", "/dev"), "no servers in '/dev': run make there"),
        (("--before", str(TOP), "--subjects", "nginx"), "'nginx' is none"),
        (("--starts", "1"), "'1' is no number from 2"),
        (("--pairs", "many"), "'many' is no number from 2"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments: tuple[str, ...], words: str) -> None:
    done = bench(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
