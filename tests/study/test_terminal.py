"""What the terminal tells of a study: how long it will take, and what spoils it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from study_runs import PATIENCE_SECONDS, Bench, column, row_count, runs, until

from collect import expected_time, install_and_build
from collect.design.factors import FACTORS, NAMES
from collect.design.plan import cells_of
from collect.design.study import load_study, study_names, study_path
from collect.expected_time import expected_seconds
from collect.measure import progress, study_lock, warn_of_disturbance
from collect.measure.foreign_load import Ticks, read_ticks
from collect.measure.stop import Interrupted
from collect.measure.warn_of_disturbance import Disturbance
from collect.readable_numbers import about_time
from collect.tables import write_table

USUAL = {factor.name: factor.default for factor in FACTORS} | {"certificate": "-", "sessions": "-"}


def row(number: int, **values: object) -> dict[str, str]:
    return {
        **USUAL,
        "run": str(number),
        "valid": "yes",
        **{name: str(value) for name, value in values.items()},
    }


# --- how long it will take ---


def earlier(folder: Path, rows: list[dict[str, str]], text: str = "") -> None:
    """Puts a results folder of the study `own` where results are looked for."""
    results = folder / "own" / "20260101-000000"
    results.mkdir(parents=True)
    (results / "study.toml").write_text(text or 'servers = "fork"\n')
    columns = ["run", *NAMES, "started", "seconds", "valid"]
    write_table(results / "runs.tsv", columns, rows)


def study_file(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text)
    return path


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(expected_time, "results_folder", lambda: tmp_path / "results")
    monkeypatch.setattr(expected_time, "PUBLISHED", tmp_path / "published")
    return tmp_path / "results"


def seconds_of(path: Path) -> float:
    study = load_study(path)
    return expected_seconds(study, cells_of(study, 2))


def test_nothing_is_expected_where_nothing_is_known(past: Path, tmp_path: Path) -> None:
    assert seconds_of(study_file(tmp_path, 'servers = "fork"\n')) == 0


def test_a_study_is_expected_to_take_what_its_runs_took(past: Path, tmp_path: Path) -> None:
    """A run of fork takes 2 s for 1,000 requests, one of thread 1 s, each 0.5 s more, and once
    nothing was measured for an hour."""
    gaps = {30: 3600.0}
    rows, now = [], 0.0
    for number in range(60):
        server, load = (("fork", 2.0), ("thread", 1.0))[number % 2]
        rows.append(row(number, server=server, requests=1000, started=now, seconds=load))
        now += load + 0.5 + gaps.get(number, 0.0)
    earlier(past, rows)
    base = 'concurrency = 1\nfiles = "small.txt"\nrepetitions = 10\n'
    own = study_file(tmp_path, f'servers = ["fork", "thread"]\nrequests = 2000\n{base}')
    assert seconds_of(own) == pytest.approx(10 * (4.5 + 2.5))
    # A server that never ran is expected to take the mean of the others.
    own = study_file(tmp_path, f'servers = "epoll"\nrequests = 1000\n{base}')
    assert seconds_of(own) == pytest.approx(10 * 2.0, rel=0.05)


def test_a_slow_server_of_somebody_tells_nothing_of_the_others(past: Path, tmp_path: Path) -> None:
    """Slow runs of a server that the study does not have, and invalid ones of fork, do not count:
    the published runs tell what fork costs."""
    slow = [row(n, server="mine", requests=10, started=60 * n, seconds=59) for n in range(40)]
    bad = {"valid": "server died"}
    slow += [
        row(n, server="fork", requests=10, started=60 * n, seconds=59, **bad) for n in (40, 41)
    ]
    earlier(past, slow)
    usual = [row(n, server="fork", requests=10, started=n, seconds=0.5) for n in range(60)]
    earlier(tmp_path / "published", usual)
    base = 'servers = "fork"\nconcurrency = 1\nfiles = "small.txt"\n'
    own = study_file(tmp_path, f"{base}requests = 10\nrepetitions = 10\n")
    assert seconds_of(own) == pytest.approx(10)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ('load = "open"\nrate = 5\nduration = 7\n', 7.5),
        ('load = "witness"\nrequests = 100000\nduration = 3\n', 0.5 + 3.0),
        ("requests = 100\ncalls = 20\nload = 'httperf'\n", 0.5 + 2.0),
        ("requests = 1000\nservice = 'work'\nfiles = 'cpu'\namount = 3000\n", 0.5 + 1.0 + 3.0),
    ],
)
def test_a_duration_calls_and_work_are_counted(
    past: Path, tmp_path: Path, text: str, seconds: float
) -> None:
    """A run of 1,000 requests took 1 s, and half a second more."""
    kinds = [
        {"load": "ab"},
        {"load": "httperf", "concurrency": 1},
        {"load": "open", "requests": "-"},
        {"load": "witness"},
    ]
    rows = [
        row(n, **{"server": "fork", "requests": 1000, "started": 1.5 * n, "seconds": 1, **kind})
        for n, kind in enumerate(kind for kind in kinds for _ in range(20))
    ]
    for one in rows:
        if one["load"] == "open":
            one["seconds"] = "2"  # the duration of a study that names none
            one["started"] = str(2.5 * int(one["run"]) - 40)
    earlier(past, rows)
    base = 'servers = "fork"\nconcurrency = 1\nrepetitions = 1\n'
    own = study_file(tmp_path, base + ("" if "files" in text else 'files = "small.txt"\n') + text)
    assert seconds_of(own) == pytest.approx(seconds, rel=0.1)


def test_a_link_of_ten_times_the_rate_takes_a_tenth(past: Path, tmp_path: Path) -> None:
    rows = [row(n, server="thread", requests=10, started=22 * n, seconds=21) for n in range(20)]
    text = 'servers = "thread"\nrequests = 10\nconcurrency = 1\nfiles = "small.txt"\nlink = '
    earlier(past, rows, f'{text}"20mbit"\n')
    own = study_file(tmp_path, f'{text}"200mbit"\nrepetitions = 5\n')
    assert seconds_of(own) == pytest.approx(5 * 2.2)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "10 s"), (34, "30 s"), (94, "90 s"), (96, "2 min"), (5390, "90 min"), (9000, "2.5 h")],
)
def test_a_duration_is_told_no_more_exactly_than_it_is_known(seconds: float, text: str) -> None:
    assert about_time(seconds) == text


def test_the_list_tells_how_long_each_study_takes(bench: Bench) -> None:
    done = bench.dcollect("--list")
    assert done.returncode == 0, done.stderr
    head, *lines, _, whence = done.stdout.splitlines()
    assert head.split() == ["Study", "Time", "Quick", "Question"]
    assert "published" in whence
    assert [line.split()[0] for line in lines] == study_names()
    for line in lines:
        name, whole, whole_unit, quick, quick_unit, question = line.split(maxsplit=5)
        assert question == load_study(study_path(name)).question
        assert {whole_unit, quick_unit} <= {"s", "min", "h"}
        assert float(whole) > 0 and float(quick) > 0


# --- what spoils it ---


class Machine:
    """A machine on which a hundredth of the time is a tick, and which others use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = Ticks(used=0, stolen=0, own=0, when=0.0)
        monkeypatch.setattr(warn_of_disturbance, "read_ticks", lambda: self.now)
        monkeypatch.setattr("os.sysconf", lambda name: 100 if name == "SC_CLK_TCK" else 2)

    def pass_time(self, seconds: float, others: float, host: float = 0.0) -> None:
        """Lets time pass in which others have a share of the processors, in percent."""
        used, stolen = (round(2 * seconds * share) for share in (others, host))
        self.now = Ticks(self.now.used + used, self.now.stolen + stolen, 0, self.now.when + seconds)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def block(watch: Disturbance, name: str, speed: float, uneven: float = 1.0) -> None:
    """A block of eight runs; every other one is `uneven` times as fast."""
    for cell in range(8):
        rate = 1000 * (cell + 1) * speed * (uneven if cell % 2 else 1)
        watch.run(row(cell, concurrency=cell), {"rps": f"{rate:.2f}"})
    watch.block(name)


def test_a_quiet_study_warns_of_nothing(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Disturbance(machine.now)
    for name in "1234":
        machine.pass_time(10, 4.0)
        block(watch, name, 1.05 if name == "3" else 1.0)
    watch.end()
    assert capsys.readouterr().err == ""


def test_other_programs_are_warned_about_when_they_are_seen_and_at_the_end(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Disturbance(machine.now)
    told = []
    for name, others in zip("1234", (1.0, 20.0, 30.0, 2.0), strict=True):
        machine.pass_time(10, others)
        block(watch, name, 1.0)
        told.append(capsys.readouterr().err)
    assert [bool(text) for text in told] == [False, True, False, False]
    assert "other programs had 20% of the processors up to the end of block 2" in told[1]
    watch.end()
    end = capsys.readouterr().err
    assert "in 2 of 4 blocks other programs had over 5%" in end and "at most 30.0%" in end


def test_a_busy_host_is_warned_about_when_it_is_seen_and_at_the_end(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Disturbance(machine.now)
    for name, host in zip("123", (1.0, 6.0, 8.0), strict=True):
        machine.pass_time(10, 1.0, host)
        block(watch, name, 1.0)
    (line,) = capsys.readouterr().err.splitlines()
    assert "the host of this virtual machine gave 6% of the processors to others" in line
    watch.end()
    (line,) = capsys.readouterr().err.splitlines()
    assert "in 2 of 3 blocks the host gave over 2%" in line and "at most 8.0%" in line


def test_short_blocks_are_judged_together(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Disturbance(machine.now)
    for number in range(1, 20):
        machine.pass_time(0.5, 50.0)
        watch.block(str(number))
        if capsys.readouterr().err:
            break
    assert number == 4


def test_a_machine_that_became_slower_is_told_from_servers_that_vary(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Disturbance(machine.now)
    block(watch, "1", 1.0)
    # A block in which half of the runs are twice as fast and half as before shows no common change.
    block(watch, "2", 0.8, uneven=1.8)
    assert capsys.readouterr().err == ""
    block(watch, "3", 0.8)
    assert "in block 3 the servers answer 0.80 times as many requests/s" in capsys.readouterr().err
    block(watch, "4", 0.7)
    assert capsys.readouterr().err == ""
    watch.end()
    assert "in 2 of 4 blocks the requests/s" in capsys.readouterr().err


def test_runs_without_a_rate_tell_nothing(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Disturbance(machine.now)
    for name in "12":
        for cell in range(8):
            watch.run(row(cell, concurrency=cell), {"rps": "-"})
        watch.block(name)
    watch.end()
    assert capsys.readouterr().err == ""


# --- how far it is ---


@pytest.mark.parametrize("lacks", [False, True])
def test_a_build_is_told_of_where_there_is_something_to_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lacks: bool
) -> None:
    asked: list[tuple[str, ...]] = []

    def make(*words: str) -> subprocess.CompletedProcess[str]:
        asked.append(words)
        return subprocess.CompletedProcess(words, int(lacks and "--question" in words), "", "")

    monkeypatch.setattr(install_and_build, "_make", make)
    monkeypatch.setattr(install_and_build, "install", lambda needs: None)
    install_and_build.build()
    assert ("Building the servers" in capsys.readouterr().err) == lacks
    assert asked == [("--question", "all"), ("all",)]


def test_two_studies_do_not_build_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    free: list[bool] = []

    def make(*words: str) -> subprocess.CompletedProcess[str]:
        locking = ["flock", "--nonblock", str(install_and_build.PROJECT / "Makefile"), "true"]
        free.append(subprocess.run(locking, check=False).returncode == 0)
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(install_and_build, "_make", make)
    monkeypatch.setattr(install_and_build, "install", lambda needs: None)
    install_and_build.build()
    assert free == [False, False]


def test_without_a_terminal_the_first_block_tells_of_itself_early(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: False)
    shown = progress.Progress(60, 0)
    shown.floors("1")
    now = 3.0
    for number in range(40):
        shown.run(row(number, block=number // 20 + 1))
        now += 1.0
        shown.done += 1
        if number % 20 == 19:
            shown.block(str(number // 20 + 1))
    assert capsys.readouterr().err.splitlines() == [
        "  0%  round 1 begins, 0 of 60 runs, 0:00 gone",
        "  8%  block 1, 5 of 60 runs, 0:08 gone, 0:55 to go",
        " 33%  block 1 done, 20 of 60 runs, 0:23 gone, 0:40 to go",
        " 66%  block 2 done, 40 of 60 runs, 0:43 gone, 0:20 to go",
    ]


# --- one at a time ---


def test_a_study_waits_for_a_report_that_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study_lock, "_address", lambda: f"\0a test, {os.getpid()}")
    monkeypatch.setattr(study_lock, "LOOK_SECONDS", 0)
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise Interrupted

    reporting, waiting = study_lock.study_lock_if_free(), study_lock.study_lock(look)
    with reporting, pytest.raises(Interrupted), waiting:
        raise AssertionError("it did not wait")
    assert (
        f"Another study measures on this machine (process {os.getpid()})" in capsys.readouterr().err
    )
    # A report waits for no study.
    with study_lock.study_lock(lambda: None), study_lock.study_lock_if_free():
        pass
    assert capsys.readouterr().err == ""


def test_a_second_study_waits_for_the_first_and_can_be_given_up(bench: Bench) -> None:
    words = ["--servers", "floor-one", "--files", "small.txt", "--concurrency", 1]
    long = ["--requests", 2000, "--repetitions", 100_000]
    short = ["--requests", 20, "--repetitions", 1]
    first, second, third = (bench.folder / name for name in ("first", "second", "third"))
    with ExitStack() as ends:

        def begin(folder: Path, *more: object) -> subprocess.Popen[str]:
            process = bench.begin("--output", folder, *words, *more)
            ends.callback(process.communicate, timeout=PATIENCE_SECONDS)
            ends.callback(process.terminate)
            return process

        measuring = begin(first, *long)
        assert until(lambda: row_count(first) > 0), "the first study does not begin"
        waiting, given_up = begin(second, *short), begin(third, *short)
        for process in (waiting, given_up):
            assert process.stdout
            told = [process.stdout.readline() for _ in range(3)]
            assert told[0].startswith("Study fork-vs-thread: 1 run of floor-one"), told
            assert told[1].startswith("Results: "), told
            holder = re.search(r"^Another study measures .*\(process (\d+)\)", told[2])
            assert holder and int(holder[1]) in family(measuring.pid), told
        given_up.terminate()
        output, _ = given_up.communicate(timeout=PATIENCE_SECONDS)
        assert given_up.returncode == 130
        assert output.startswith("Interrupted before the first run. Go on with: "), output
        assert row_count(second) < 1
        # A turn ends with its process, however that ends.
        measuring.kill()
        waiting.communicate(timeout=PATIENCE_SECONDS)
        assert waiting.returncode == 0
    assert column(runs(second), "valid") == ["yes"]


def family(parent: int) -> set[int]:
    """A process and its children."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {parent, *map(int, children)}


def test_a_descendant_that_lives_is_none_of_the_others() -> None:
    """The program that delays packets lives as long as its study, and works all the time."""

    def of_descendants() -> float:
        own = sum(os.times()[:4])  # and of children that have ended
        return read_ticks().own / os.sysconf("SC_CLK_TCK") - own

    before, busy = of_descendants(), "while :; do :; done"
    with subprocess.Popen(["sh", "-c", f"sh -c '{busy}' & wait"], start_new_session=True) as shell:
        try:
            assert until(lambda: of_descendants() >= before + 0.3)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
