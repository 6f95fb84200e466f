"""Requests that are offered as a share of what each server can answer."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from mark_long_cases import takes_long
from presenting import written
from study_runs import Bench, raw, runs

from collect import schema
from collect.design.factors import FACTORS, NAMES, factor_value
from collect.design.plan import cells_of
from collect.design.study import Study, load_study, source_of, study_of
from collect.infer.cells import Cells
from collect.infer.threats import weigh
from collect.measure.capacity import RUNS, Capacities
from collect.measure.loads import (
    TIMES,
    Load,
    Watched,
    closed_loop,
    command_of,
    read_said,
    row_of,
)
from collect.measure.one_run import Result, Runner
from collect.project import StudyError
from collect.tables import read_table, write_table

CELL = {factor.name: factor.default for factor in FACTORS} | {"server": "fork", "round": "1"}


def study(**keys: object) -> Study:
    return study_of(dict(keys), "mine", source_of(keys, "mine.toml"))


# --- the plan ---


def test_percents_are_of_the_open_loop_without_a_rate() -> None:
    made = study(load=["ab", "open"], offered=[50, 100], concurrency=10)
    cells = cells_of(made, 2)
    at = (NAMES.index("load"), NAMES.index("offered"))
    assert {(key[at[0]], key[at[1]]) for key in cells.blocks} == {
        ("ab", "-"), ("open", "50"), ("open", "100"),
    }  # fmt: skip


def test_an_open_loop_with_a_rate_has_no_percents() -> None:
    cells = cells_of(study(load="open", rate=50), 2)
    assert {key[NAMES.index("offered")] for key in cells.blocks} == {"-"}


def test_deadlines_are_of_the_open_loop() -> None:
    made = study(load=["ab", "open"], offered=50, deadline=[0, 1000])
    at = (NAMES.index("load"), NAMES.index("deadline"))
    assert {(key[at[0]], key[at[1]]) for key in cells_of(made, 2).blocks} == {
        ("ab", "-"), ("open", "0"), ("open", "1000"),
    }  # fmt: skip
    assert factor_value("deadline", "1500") == "a deadline of 1.5 s"
    assert factor_value("deadline", "0") == "no deadline"


def test_percents_in_words() -> None:
    assert factor_value("offered", "90") == "90% of its capacity offered"
    assert factor_value("offered", "-") == ""


# --- the capacity ---


class Measuring:
    """Stands for closed loops of known rates, and counts how often somebody asked for them."""

    def __init__(self, *rates: float) -> None:
        self.rates = rates
        self.asked = 0

    def __call__(self) -> Iterator[Mapping[str, str]]:
        self.asked += 1
        for rate in self.rates:
            yield {"rps": str(rate), "valid": "yes" if rate > 0 else "no request completed"}


def test_a_capacity_is_the_median_and_is_measured_once_in_a_round(tmp_path: Path) -> None:
    known, measuring = Capacities(tmp_path), Measuring(100, 300, 200)
    assert known.of({**CELL, "offered": "50"}, measuring) == 200
    assert known.of({**CELL, "offered": "90"}, measuring) == 200
    assert measuring.asked == 1
    assert known.of({**CELL, "server": "thread"}, measuring) == 200
    assert known.of({**CELL, "round": "2"}, measuring) == 200
    assert measuring.asked == 3
    assert len(read_table(known.path).rows) == 3 * RUNS


def test_a_round_that_goes_on_has_the_capacity_that_it_had(tmp_path: Path) -> None:
    Capacities(tmp_path).of(CELL, Measuring(100, 300, 200))
    measuring = Measuring(1, 1, 1)
    assert Capacities(tmp_path).of(CELL, measuring) == 200
    assert measuring.asked == 0


def test_a_capacity_that_was_cut_off_is_measured_to_its_end(tmp_path: Path) -> None:
    Capacities(tmp_path).of(CELL, Measuring(100))
    assert Capacities(tmp_path).of(CELL, Measuring(300, 300, 300)) == 300


def test_a_server_that_answers_nothing_has_no_capacity(tmp_path: Path) -> None:
    assert Capacities(tmp_path).of(CELL, Measuring(0, 0, 0)) is None


@pytest.mark.parametrize(("keep_alive", "generator"), [(False, "witness"), (True, "wrk")])
def test_a_closed_loop_asks_as_the_open_one_does(keep_alive: bool, generator: str) -> None:
    load = Load("open", "http://127.0.0.1:80/", "small.txt", 1000, None, keep_alive=keep_alive,
                rate=5)  # fmt: skip
    closed = closed_loop(load, 3)
    assert (closed.generator, closed.concurrency, closed.duration) == (generator, 20, 3)
    words = command_of(closed, Path("unused"))
    assert words[0].endswith(generator) and any("small.txt" in word for word in words)


# --- two documents ---


def test_the_times_of_two_documents_are_kept_apart(bench: Bench) -> None:
    study_file = bench.folder / "two.toml"
    study_file.write_text(
        'servers = "epoll"\nfiles = "small.txt"\nother = "500000.bin"\nmixed = [0, 40]\n'
        'load = "open"\nrate = 50\nduration = 1\nconcurrency = 50\nrepetitions = 1\n'
    )
    folder = bench.folder / "two"
    done = bench.measure("--output", folder, study_file)
    assert done.returncode in (0, 3), done.stderr
    rows = {row["mixed"]: row for row in runs(folder)}
    assert set(rows) == {"0", "40"}
    assert rows["0"]["other_p99_ms"] == "-" and float(rows["40"]["other_p99_ms"]) > 0
    assert float(rows["40"]["kbytes_s"]) > 10 * float(rows["0"]["kbytes_s"])
    assert rows["40"]["length"] == rows["0"]["length"]


# --- the workers of a server ---


def test_the_times_at_the_busiest_worker_are_kept_apart(bench: Bench) -> None:
    study_file = bench.folder / "workers.toml"
    study_file.write_text(
        'servers = "epoll+accept=reuseport"\nservice = "work"\nfiles = "cpu"\namount = 10\n'
        'workers = [2, 3]\nload = "open"\nrate = 1000\nduration = 1\nconcurrency = 50\n'
        'repetitions = 2\nlate = 1000000\n'
    )
    folder = bench.folder / "workers"
    done = bench.measure("--output", folder, study_file)
    assert done.returncode in (0, 3), done.stderr
    for row in runs(folder):
        for name in ("busiest_p50_ms", "busiest_p99_ms", "rest_p50_ms", "rest_p99_ms"):
            assert float(row[name]) > 0
    done = bench.dcollect("report", folder)
    assert done.returncode == 0, done.stderr
    report = (folder / "report.md").read_text()
    for workers in ("2", "3"):
        assert re.search(rf"^\| epoll.accept=reuseport \| {workers} \| [0-9.]+%", report, re.M)


# --- a client that was late ---


@pytest.mark.parametrize(
    ("late", "made"), [([False], 1), ([True, False], 2), ([True, True, True, False], 3)]
)
def test_a_run_whose_client_was_late_is_made_again(
    monkeypatch: pytest.MonkeyPatch, late: list[bool], made: int
) -> None:
    results = [Result(reason=str(number), late=one) for number, one in enumerate(late)]
    runner = Runner.__new__(Runner)
    runner.aside = 0.0
    asked = iter(results)
    monkeypatch.setattr(runner, "_run", lambda *_: next(asked))
    result = runner.run("1", CELL | {"load": "open"})
    assert (result.reason, result.columns["tries"]) == (str(made - 1), str(made))


# --- the analysis ---


def cells_with_capacity(load_cpu: str, servers: tuple[str, ...] = ("fork", "thread")) -> Cells:
    rows = [
        {**CELL, "server": server, "load": "open", "offered": offered, "requests": "-",
         "certificate": "-", "sessions": "-", "amount": "-", "round": "1", "block": str(block),
         "run": "1", "rps": "100", "load_cpu": "0.99", "valid": "yes"}
        for server in servers for offered in ("50", "90") for block in (1, 2)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    capacity = table.drop(columns=["requests", "offered", "block", "run"]).drop_duplicates()
    capacity["load_cpu"] = [load_cpu if server == "fork" else "0.50"
                            for server in capacity["server"]]  # fmt: skip
    made = study(load="open", offered=[50, 90], files="small.txt,big.txt")
    return Cells(made, list(NAMES), table, 0, capacity=capacity)


def test_how_many_runs_were_made_again_is_a_threat() -> None:
    data = cells_with_capacity("0.50")
    data.runs["late"] = "0.002"
    data.runs["tries"] = ["1", "3", "2", *["1"] * (len(data.runs) - 3)]
    threats = weigh(data, len(data.runs), Path("/nonexistent")).set_index("name")
    assert tuple(threats.loc["again", ["value", "of"]]) == ("2", str(len(data.runs)))


def test_a_client_that_was_busy_limits_the_capacity_that_it_measured() -> None:
    data = cells_with_capacity("0.95")
    bound = {data.value(cell, "server") for cell in range(data.count) if data.client_bound(cell)}
    assert bound == {"fork"}


def test_an_open_loop_that_is_awake_is_no_limit() -> None:
    data = cells_with_capacity("0.60", ("fork", "thread", "floor-one"))
    assert not any(data.client_bound(cell) for cell in range(data.count))


# --- a surge ---


def surged(recovered: float, **more: object) -> dict[str, str]:
    """A row of a run of 4 s after a surge, of which it took so many milliseconds to recover."""
    load = Load("open", "http://127.0.0.1:80/", "small.txt", 50, None,
                **{"rate": 100, "duration": 4, "surge": 300, **more})  # fmt: skip
    told = {
        "asked_rate": 100, "late_share": 0, "achieved_rate": 90, "seconds": 4, "due": 400,
        "answered": 360, "refused": 0, "cut_off": 0, "timeouts": 40, "wrong": 0, "non2xx": 0,
        "length": 6, "bytes": 400, "resumed": 0, "why": "", "histogram": "400:360",
        "recovered_ms": recovered, **dict.fromkeys(TIMES, 0.5),
    }  # fmt: skip
    watched = Watched(6, 1, "0", cpu_us=600_000, first_tenth="0.1")
    return row_of(load, read_said(load, json.dumps(told) + "\n", ""), watched)


def test_a_run_after_a_surge_tells_when_the_server_had_recovered() -> None:
    assert surged(0)["again_ms"] == "0.000"
    assert surged(1234.5)["again_ms"] == "1234.500"


def test_a_server_that_fails_to_the_end_has_not_recovered() -> None:
    assert surged(3599)["again_ms"] == "3599.000"
    assert surged(3601)["again_ms"] == "never"


def test_the_cost_of_a_surge_is_not_that_of_the_run() -> None:
    made = surged(0, warm_up=2)
    assert (made["server_cpu_us"], made["client_cpu_us"], made["rps"]) == ("-", "-", "90.00")
    assert (made["load_cpu"], made["first_tenth"]) == ("-", "-")
    assert surged(0)["first_tenth"] != "-"


def test_the_client_is_as_busy_in_a_warm_up_as_in_the_run() -> None:
    made = surged(0, warm_up=2, surge=0)
    assert (made["server_cpu_us"], made["client_cpu_us"]) == ("-", "-")
    assert made["load_cpu"] == "0.167"


@pytest.mark.parametrize(
    ("keys", "seconds"),
    [("", 0), ("surge = [0, 200]", 2), ("surge = 200\nwarm-up = 4", 4), ("warm-up = 3", 3)],
)
def test_a_load_begins_before_its_requests_count(tmp_path: Path, keys: str, seconds: int) -> None:
    path = tmp_path / "some.toml"
    path.write_text(f'servers = "epoll"\nload = "open"\noffered = 50\n{keys}\n')
    assert load_study(path).seconds_before == seconds
    path.write_text(f'servers = "epoll"\nload = "ab"\n{keys}\n')
    if "warm-up" in keys:
        with pytest.raises(StudyError, match="only the load `open`"):
            load_study(path)


def test_a_surge_is_a_share_of_the_rate_of_the_run() -> None:
    load = Load("open", "http://127.0.0.1:80/", "small.txt", 50, None, rate=100, surge=500, warm_up=3)
    words = " ".join(command_of(load, Path("unused")))
    assert "--rate 100" in words and "--warm-up 3 --surge 500" in words


def test_a_report_of_a_surge_tells_who_recovers(tmp_path: Path) -> None:
    """fork loses requests for half a second, thread none, and epoll loses them to the end."""
    folder = tmp_path / "surge"
    folder.mkdir()
    servers = {"fork": "500.000", "pool": "250.000", "thread": "0.000", "epoll": "never"}
    (folder / "study.toml").write_text(
        'servers = ["fork", "pool", "thread", "epoll"]\nload = "open"\noffered = 50\nsurge = 200\n'
        'contrast = { measure = "recovery", of = { server = "fork" }, to = { server = "pool" } }\n'
        'files = "small.txt"\nconcurrency = 10\nduration = 4\n'
    )
    rows = [
        {**CELL, "server": server, "load": "open", "offered": "50", "surge": "200",
         "file": "small.txt", "concurrency": "10", "requests": "-", "certificate": "-",
         "sessions": "-", "amount": "-", "run": str(4 * block + at), "block": str(block + 1),
         "round": "1", "order": str(at + 1), "rps": "90", "complete": "360", "again_ms": again,
         "unanswered": "0" if again == "0.000" else "40", "valid": "yes"}
        for block in range(3) for at, (server, again) in enumerate(servers.items())
    ]  # fmt: skip
    write_table(
        folder / "runs.tsv",
        schema.RUNS.names,
        [dict.fromkeys(schema.RUNS.names, "-") | r for r in rows],
    )
    report = written(folder)
    abstract = report.partition("## Abstract")[2].partition("\n## ")[0]
    assert (
        "After a surge of 200% **thread** answers every request that is due from then on"
        in abstract
    )
    assert "**pool** (250 ms) and **fork** (500 ms) lose requests for a while" in abstract
    longer = "The time until no request fails any more is longer with **fork** than with pool."
    assert f"{longer} The ratio is 2.00 (500 ms against 250 ms; " in abstract
    assert "**epoll** still fails requests 4 s later" in abstract
    assert re.search(r"^\| fork \| 40 \| 500 \| . \|", report, re.MULTILINE)
    assert re.search(r"^\| epoll \| 40 \| . \| 3 of 3 runs \|", report, re.MULTILINE)


# --- connections that are held ---


def test_a_kept_open_loop_holds_its_connections() -> None:
    usual = Load("open", "http://127.0.0.1:80/", "small.txt", 30, None, rate=10)
    assert "--hold" not in command_of(usual, Path("-"))
    kept = replace(usual, keep_alive=True)
    assert {"--keep-alive", "--hold", "--tell-parent"} <= set(command_of(kept, Path("-")))
    watched = Watched(grown_user_kib=60, grown_kib=90)
    assert row_of(usual, read_said(usual, "", ""), watched).get("idle_kib") is None
    row = row_of(kept, read_said(kept, "", ""), watched)
    assert (row["idle_kib"], row["each_kib"]) == ("2.000", "3.000")
    # All connections are accepted before the measured time begins.
    watched.first_tenth = "7.0"
    assert row_of(kept, read_said(kept, "", ""), watched)["first_tenth"] == "-"


def test_what_held_connections_need_is_measured(bench: Bench) -> None:
    folder = bench.folder / "held"
    toml = bench.spit(
        "held.toml",
        'servers = ["epoll", "thread"]\nfiles = "small.txt"\nload = "open"\nkeepalive = "on"\n'
        "concurrency = 200\nrate = 200\nduration = 1\nrepetitions = 1\n",
    )
    done = bench.measure(toml, "--output", folder)
    assert done.returncode in (0, 3), done.stderr
    for row in runs(folder):
        assert row["valid"] == "yes" or "late" in row["valid"] or "Little" in row["valid"]
        # A thread has a stack of its own, of which it has touched some pages.
        is_thread = row["server"] == "thread"
        assert (4 if is_thread else 0.01) < float(row["idle_kib"]) < 200
        # What the kernel charges to a group may hide a few KiB: where memory is scarce, it takes
        # pages of files from the group meanwhile.
        assert row["each_kib"] == "-" or float(row["each_kib"]) >= (4 if is_thread else 0)
        # The requests that opened the connections are not among those that count.
        assert int(row["complete"]) < 200 + 150


# --- a run ---


@takes_long
def test_runs_have_the_share_of_the_capacity_that_they_were_offered(bench: Bench) -> None:
    folder = bench.folder / "offered"
    done = bench.measure(
        "--output", folder, "--servers", "fork,epoll", "--files", "small.txt", "--load", "open",
        "--offered", "2,8", "--surge", "0,12", "--concurrency", 50, "--duration", 1, "--repetitions", 1,
        "--deadline", 30000, "--timeout", 200,
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    rates: dict[str, list[float]] = {}
    for row in read_table(folder / "capacity.tsv").rows:
        assert row["valid"] == "yes" and "offered" not in row
        rates.setdefault(row["server"], []).append(float(row["rps"]))
    assert {name: len(found) for name, found in rates.items()} == {"fork": RUNS, "epoll": RUNS}
    rows = runs(folder)
    assert len(rows) == 8
    for row in rows:
        offered = statistics.median(rates[row["server"]]) * int(row["offered"]) / 100
        assert float(row["asked"]) == pytest.approx(offered, abs=0.51 + offered * 1e-4)
        assert (row["again_ms"] == "-") == (row["surge"] == "0")
        # A machine with other work may make the client late, and it says so.
        assert row["valid"] == "yes" or "late" in row["valid"] or "Little" in row["valid"]
        assert 0 <= float(row["late"]) <= 1
    assert all("--timeout 30000" in text for text in raw(folder).values())
