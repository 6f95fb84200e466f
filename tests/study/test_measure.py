"""Small studies on real servers: rows against ab's own output, interruptions, runs that do not
count, proxies, a slow link."""

from __future__ import annotations

import fcntl
import math
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from mark_long_cases import takes_long
from study_runs import (
    TOP,
    Bench,
    assert_follows_plan,
    column,
    raw,
    row_count,
    rows_of,
    runs,
)

from collect.measure import proxy_origin
from collect.measure.control_groups import sweep
from collect.measure.nginx_work_service import MODULE
from collect.measure.one_run import calibration_cells
from collect.measure.run_plan import DATE
from collect.measure.server_commands import is_installed
from collect.tables import read_pairs, read_table, write_table

SMALL = ("--servers", "fork,thread", "--files", "small.txt", "--concurrency", "1,3",
         "--requests", 60, "--seed", 7)  # fmt: skip

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("ab", "make", "gcc"))), reason="ab, make or gcc is not installed"
)


# --- rows against ab's own output ---


def number_after(label: str, text: str) -> float | None:
    match = re.search(rf"^{label}: +([\d.]+)", text, re.MULTILINE)
    return float(match[1]) if match else None


class Flaws:
    """The differences between a row and what ab printed for it."""

    def __init__(self, row: dict[str, str]) -> None:
        self.row = row
        self.found: list[str] = []

    def agree(self, name: str, expected: float | None, within: float = 0.0) -> None:
        value = self.row[name]
        near = expected is not None and value != "-" and abs(float(value) - expected) <= within
        if not near:
            self.found.append(f"run {self.row['run']}: {name} is {value}, not {expected}")


def disagreements(row: dict[str, str], text: str) -> list[str]:
    flaws = Flaws(row)
    taken = number_after("Time taken for tests", text) or math.nan
    flaws.agree("complete", number_after("Complete requests", text))
    flaws.agree("complete", float(row["requests"]))
    flaws.agree("failed", number_after("Failed requests", text))
    flaws.agree("non2xx", number_after("Non-2xx responses", text) or 0)
    flaws.agree("length", number_after("Document Length", text))
    flaws.agree("length", (TOP / "data" / row["file"]).stat().st_size)
    flaws.agree("rps", number_after("Requests per second", text))
    flaws.agree("kbytes_s", number_after("Transfer rate", text))
    # It is computed from the requests per second, which have two decimal places.
    flaws.agree("seconds", taken, 0.00051 + taken**2 * 0.005 / 60)
    if number_after("Concurrency Level", text) != float(row["concurrency"]):
        flaws.found.append(f"run {row['run']}: ab was told another concurrency")
    if not re.search(rf"^Document Path: +/{re.escape(row['file'])}$", text, re.MULTILINE):
        flaws.found.append(f"run {row['run']}: ab was told another document")
    compare_times(flaws, text)
    compare_cost(flaws, text)
    return flaws.found


def compare_times(flaws: Flaws, text: str) -> None:
    """Compares the times with those of the -e file, and with those that ab prints, rounded."""
    row = flaws.row
    at = {int(p): float(v) for p, v in re.findall(r"^(\d+),([\d.]+)$", text, re.MULTILINE)}
    printed = {int(p): float(v) for p, v in re.findall(r"^ +(\d+)% +(\d+)", text, re.MULTILINE)}
    for percent in (50, 90, 95):
        flaws.agree(f"p{percent}_ms", at[percent], 0.00051)
    for percent in (50, 90, 95, 99):
        flaws.agree(f"p{percent}_ms", printed[percent], 0.51)
    flaws.agree("min_ms", at[0], 0.00051)
    flaws.agree("max_ms", at[100], 0.00051)
    total = re.search(r"^Total: +(.*)$", text, re.MULTILINE)
    assert total
    least, mean, sd, _, most = map(float, total[1].split())
    flaws.agree("min_ms", least, 0.51)
    flaws.agree("max_ms", most, 0.51)
    flaws.agree("mean_ms", mean, 0.51)
    flaws.agree("sd_ms", sd, 0.051)
    share = re.search(r"^Time per request: +([\d.]+) \[ms\] \(mean\)$", text, re.MULTILINE)
    assert share
    if float(row["mean_ms"]) > float(share[1]) + 0.0015:
        flaws.found.append(f"run {row['run']}: a mean above {share[1]}, what connections had")
    pairs = [(at[i], at[i + 1]) for i in range(100) if i in at and i + 1 in at]
    average = sum(a + b for a, b in pairs) / 200
    squares = sum(a * a + a * b + b * b for a, b in pairs) / 300
    spread = math.sqrt(max(squares - average**2, 0))
    if len(pairs) == 100 and abs(average - mean) < 0.49 and average <= float(share[1]):
        flaws.agree("mean_ms", average, 0.0015)
    if len(pairs) == 100 and abs(spread - sd) < 0.049:
        flaws.agree("sd_ms", spread, 0.0015)


def compare_cost(flaws: Flaws, text: str) -> None:
    """Compares the CPU time and page faults of the server with the line that launch wrote."""
    launch = re.search(r"^# launch: (.*)$", text, re.MULTILINE)
    assert launch
    words = launch[1].split()
    row = flaws.row
    if row["server_cpu_us"] != "-":
        flaws.agree("server_cpu_us", float(words[3]) / float(row["complete"]), 0.00051)
        if not float(row["server_cpu_us"]) > 0:
            flaws.found.append(f"run {row['run']}: the server cost nothing")
    flaws.agree("faults", float(words[6]) / float(row["complete"]), 0.000051)


def assert_rows_are_what_ab_said(folder: Path) -> None:
    said = raw(folder)
    rows = runs(folder)
    assert sorted(map(int, said)) == [i + 1 for i in range(len(rows))]
    assert [flaw for row in rows for flaw in disagreements(row, said[row["run"]])] == []


# --- from start to report ---


@pytest.fixture(scope="module")
def main(bench: Bench) -> Path:
    """Runs a small study from start to report. Another test goes through dcollect.sh."""
    folder = bench.folder / "main"
    done = bench.dcollect("--output", folder, *SMALL, "--repetitions", 2)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^Report: +{re.escape(str(folder))}/report\.md$", done.stdout, re.M)
    assert done.stderr.startswith("Study fork-vs-thread: 8 runs")
    words = " ".join(done.stdout.split())
    assert "Does a process or a thread per connection answer more requests per second?" in words
    assert re.search(r" as much server CPU|less server CPU|more server CPU|data do not show", words)
    bench.assert_nothing_left()
    return folder


def test_the_plan_has_every_cell_once_in_each_block(main: Path) -> None:
    names = ("block", "server", "file", "concurrency", "requests")
    cells = sorted(tuple(row[name] for name in names) for row in rows_of(main / "plan.tsv"))
    assert cells == [
        (block, server, "small.txt", at_once, "60")
        for block in "12" for server in ("fork", "thread") for at_once in "13"
    ]  # fmt: skip
    assert_follows_plan(main)


def test_every_column_is_what_ab_said(main: Path) -> None:
    assert_rows_are_what_ab_said(main)


def test_all_runs_are_valid_and_were_measured(main: Path) -> None:
    rows = runs(main)
    assert column(rows, "valid") == ["yes"] * 8
    assert any(cost != "-" for cost in column(rows, "server_cpu_us"))
    assert any(peak.isdigit() and int(peak) > 0 for peak in column(rows, "peak_kib"))


def test_there_is_a_report(main: Path) -> None:
    for name in ("report.md", "index.html"):
        assert (main / name).stat().st_size > 1000
    assert re.search(r"--seed 7\b", (main / "report.md").read_text())


def test_a_folder_that_holds_a_study_is_not_written_over(bench: Bench, main: Path) -> None:
    done = bench.measure("--output", main, *SMALL)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_the_floors_are_asked_4000_times_in_two_turns() -> None:
    """Calibrations of tests are shorter: see study_runs.py."""
    assert set(column(calibration_cells(), "requests")) == {"4000"}
    assert column(calibration_cells(), "server") == ["floor-fork", "floor-thread", "floor-one"] * 2


def test_it_says_what_a_run_costs_the_study_itself(main: Path) -> None:
    machine = read_pairs(main / "machine.tsv")
    times = (datetime.strptime(machine[name], DATE) for name in ("started", "ended"))
    started, ended = (time.timestamp() for time in times)
    assert 0 < int(machine["own_ms_per_run"]) <= 1000 * (ended - started + 1) / row_count(main)


# --- interrupted by Ctrl-C, then killed, then finished ---


def assert_interrupted(bench: Bench, folder: Path, status: int, output: str) -> None:
    assert status == 130, output
    words = rf"^Interrupted: \d+ of 48 runs (is|are) kept\. Go on with: \./dcollect\.sh --resume {folder}$"
    assert re.search(words, output, re.MULTILINE), output
    bench.assert_nothing_left()


def test_an_interrupted_study_goes_on(bench: Bench, main: Path) -> None:
    folder = bench.folder / "broken"
    begun = bench.begin("--output", folder, *SMALL, "--repetitions", 12)
    assert_interrupted(bench, folder, *bench.interrupt(begun, folder, 3, signal.SIGINT))
    planned = (folder / "plan.tsv").read_text()
    first = "".join(planned.splitlines(keepends=True)[:9])
    assert first == (main / "plan.tsv").read_text(), "the same seed gives the same plan"
    assert 3 <= row_count(folder) < 48

    # Ctrl-C may come at any time, also at the moment when a load ends.
    for number in (signal.SIGINT, signal.SIGTERM) * 2:
        begun = bench.begin("--resume", folder)
        more = row_count(folder) + 1
        assert_interrupted(bench, folder, *bench.interrupt(begun, folder, more, number))
    kept = (folder / "runs.tsv").read_text()

    rounds = read_table(folder / "rounds.tsv")
    rounds.rows[-1]["commit"] = "0123456789ab"
    write_table(folder / "rounds.tsv", rounds.columns, rounds.rows)
    begun = bench.begin("--resume", folder)
    status, output = bench.interrupt(begun, folder, row_count(folder) + 3, signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert "broken: the last round had the commit 0123456789ab, this one has " in output
    bench.assert_nothing_left()
    tear(folder)
    finish(bench, folder)
    assert (folder / "plan.tsv").read_text() == planned
    assert (folder / "runs.tsv").read_text().startswith(kept)
    assert "987654.32" not in (folder / "runs.tsv").read_text()
    assert_follows_plan(folder)
    assert_rows_are_what_ab_said(folder)


def tear(folder: Path) -> None:
    """Leaves what a full disk would leave: the next row without its line end, and raw output with an
    incomplete end."""
    rows = runs(folder)
    assert len(rows) < 48
    columns = (folder / "runs.tsv").read_text().split("\n", 1)[0].split("\t")
    lie = {**rows[-1], "run": str(len(rows) + 1), "rps": "987654.32"}
    with (folder / "runs.tsv").open("a") as file:
        file.write("\t".join(lie[name] for name in columns))
    with (folder / "raw.gz").open("ab") as raw_file:
        raw_file.write(b"\x1f\x8b\x08\x00\x00")


def finish(bench: Bench, folder: Path) -> None:
    """Resumes the study to its end. A temporary folder of a killed process is removed, one of a
    running process is not."""
    temporary = bench.folder / "tmp"
    left, held = (temporary / f"fork-vs-thread.work.{name}" for name in ("killed", "atwork"))
    left.mkdir()
    held.mkdir()
    owner = os.open(held, os.O_RDONLY)
    fcntl.flock(owner, fcntl.LOCK_EX)
    done = bench.measure("--resume", folder)
    assert done.returncode == 0, done.stderr
    assert held.exists() and not left.exists()
    os.close(owner)
    held.rmdir()


def test_what_takes_long_is_in_the_first_blocks_also_after_an_interruption(bench: Bench) -> None:
    path = bench.spit(
        "longer.toml",
        "servers = ['fork', 'thread']\nfiles = 'small.txt'\nconcurrency = 1\nrequests = [20, 60]\n"
        "repetitions = 5\n[[blocks]]\nwhen = { requests = 60 }\nfirst = 2\n",
    )
    folder = bench.folder / "longer"
    begun = bench.begin("--output", folder, "--seed", 3, path)
    status, output = bench.interrupt(begun, folder, 2, signal.SIGINT)
    assert status == 130, output
    done = bench.dcollect("--resume", folder)
    assert done.returncode == 0, done.stderr
    assert_follows_plan(folder)
    cells = [(r["server"], r["requests"], r["n"]) for r in rows_of(folder / "summary.tsv")]
    assert cells == [(s, r, n) for s in ("fork", "thread") for r, n in (("20", "5"), ("60", "2"))]
    compared = [
        (row["requests"], row["blocks"])
        for row in rows_of(folder / "comparisons.tsv")
        if row["measure"] == "rps"
    ]
    assert compared == [("20", "5"), ("60", "2"), ("*", "2"), ("*", "2")]


def test_a_server_lives_for_a_block_also_where_its_switches_are_counted(bench: Bench) -> None:
    starts = bench.folder / "starts"
    script = f"#!/bin/sh\n[ $1 = --describe ] || echo >>{starts}\nexec {TOP}/fork_server \"$@\"\n"
    bench.spit("counted/fork_server", script, 0o755)
    bench.environment["SERVER_FOLDER"] = str(bench.folder / "counted")
    try:
        path = bench.spit(
            "counted.toml",
            "servers = 'fork'\nfiles = 'small.txt'\nconcurrency = [1, 2]\nrequests = 20\n"
            "repetitions = 3\n",
        )
        done = bench.dcollect("--output", bench.folder / "counted.results", path)
    finally:
        del bench.environment["SERVER_FOLDER"]
    assert done.returncode == 0, done.stderr
    made = rows_of(bench.folder / "counted.results/runs.tsv")
    assert {row["block"]: row["voluntary"] == "-" for row in made} == {
        "1": False, "2": True, "3": True,
    }  # fmt: skip
    # One for each block, and one for each of two runs whose switches are counted.
    assert len(starts.read_text().splitlines()) == 3 + 2


# --- runs that do not count ---

FAKE = """#!/usr/bin/perl
use strict;
use IO::Socket::INET;
my ($length, $life) = ({length}, {life});
$SIG{TERM} = sub { exit 0 };
$SIG{PIPE} = 'IGNORE';
$life = 0 if $life && -e "$0.died";
my $listener = IO::Socket::INET->new(Listen => 100, LocalAddr => '127.0.0.1') or die $!;
$| = 1;
print 'listening on http://127.0.0.1:', $listener->sockport, "/\\n";
while (1) {
    my $client = $listener->accept or next;
    my ($head, $part) = ('');
    $head .= $part while $head !~ /\\r\\n\\r\\n/ && sysread $client, $part, 4096;
    my ($status, $body) = $head =~ m{big} ? ('404 Not Found', "none\\n") : ('200 OK', 'x' x $length);
    syswrite $client, "HTTP/1.0 $status\\r\\nContent-Length: " . length($body) . "\\r\\nConnection: close\\r\\n\\r\\n$body";
    close $client;
    if ($life && !--$life) {
        open my $file, '>', "$0.died";
        print STDERR "here it ends\\n";
        kill KILL => $$;
    }
}
"""


def fake_server(length: int, life: int = 0) -> str:
    """Makes a server that responds to every path except big.txt with the same body. With `life`
    its first process is killed after so many responses, in the middle of a run."""
    return FAKE.replace("{length}", str(length)).replace("{life}", str(life))


@pytest.fixture(scope="module")
def fakes(bench: Bench) -> Path:
    for name, text in (("short", fake_server(999)), ("dying", fake_server(1000, 17))):
        bench.spit(f"fakes/{name}_server", text, 0o755)
    folder = bench.folder / "fakes"
    for name in ("fork", "thread"):
        (folder / f"{name}_server").symlink_to(TOP / f"{name}_server")
    return folder


def test_runs_that_do_not_count(bench: Bench, fakes: Path) -> None:
    bench.environment["SERVER_FOLDER"] = str(fakes)
    folder = bench.folder / "spoiled"
    done = bench.dcollect(
        "--output", folder, "--servers", "fork,short,dying", "--files", "small.txt,big.txt",
        "--concurrency", 1, "--requests", 10, "--repetitions", 3, "--seed", 3,
    )  # fmt: skip
    del bench.environment["SERVER_FOLDER"]
    assert done.returncode == 3, done.stderr
    assert_follows_plan(folder)
    rows = runs(folder)
    for row in rows:
        if row["server"] == "dying" and row["file"] == "small.txt":
            continue
        absent = row["file"] == "big.txt" and row["server"] != "fork"
        short = row["server"] == "short"
        reason = "10 non-2xx" if absent else "length 999 instead of 1000" if short else "yes"
        if not (row["server"] == "dying" and "died" in row["valid"]):
            assert row["valid"] == reason, row
    of_dying = [row for row in rows if row["server"] == "dying"]
    dead = [row for row in of_dying if "died" in row["valid"]]
    assert [row["valid"] for row in dead] == ["server died: here it ends"]
    assert f"run {dead[0]['run']}: dying: server died: here it ends\n" in done.stderr
    later = of_dying[of_dying.index(dead[0]) + 1 :]
    assert set(column([row for row in later if row["file"] == "small.txt"], "valid")) == {"yes"}
    bad = sum(row["valid"] != "yes" for row in rows)
    assert re.search(rf"{bad} of 18\b", (folder / "report.md").read_text())
    shorts = [row for row in rows_of(folder / "summary.tsv") if row["server"] == "short"]
    assert set(column(shorts, "n")) == {"0"}


# --- proxies: each hit was a hit ---

LIAR = r"""#!/usr/bin/perl
use strict;
use IO::Socket::INET;
$SIG{TERM} = sub { exit 0 };
$SIG{PIPE} = 'IGNORE';
my $listener = IO::Socket::INET->new(Listen => 100, LocalAddr => '127.0.0.1') or die $!;
$| = 1;
print 'listening on http://127.0.0.1:', $listener->sockport, "/\n";
while (1) {
    my $client = $listener->accept or next;
    my ($head, $reply, $part) = ('', '');
    $head .= $part while $head !~ /\r\n\r\n/ && sysread $client, $part, 4096;
    if (my ($address, $path) = $head =~ m{\AGET http://([^/]+)(/\S*)}) {
        my $origin = IO::Socket::INET->new(PeerAddr => $address) or next;
        syswrite $origin, "GET $path HTTP/1.0\r\n\r\n";
        $reply .= $part while sysread $origin, $part, 4096;
    }
    syswrite $client, $reply =~ s/\r\n/\r\nCache-Status: liar; hit; ttl=9\r\n/r
        || "HTTP/1.0 400 Bad Request\r\n\r\n";
    close $client;
}
"""
PROXIES = """
servers = ["fork", "liar", "forgetful"]
baseline = "fork"
files = ["125", "150"]
service = ["proxy-hit", "proxy-revalidation", "proxy-miss"]
concurrency = [1, 4]
requests = 20
repetitions = 1
parts = "one"
[[where]]
when = { service = "proxy-miss" }
only = { file = "150" }
[[where]]
when = { service = ["proxy-hit", "proxy-revalidation"] }
only = { file = "125" }
[[where]]
when = { server = ["liar", "forgetful"] }
only = { service = "proxy-hit" }
"""


def test_one_revalidation_may_serve_all_clients_that_wait() -> None:
    assert proxy_origin.bounds("proxy-hit", 21, 4) == (0, 0)
    assert proxy_origin.bounds("proxy-miss", 21, 4) == (21, 21)
    assert proxy_origin.bounds("proxy-revalidation", 21, 1) == (21, 21)
    assert proxy_origin.bounds("proxy-revalidation", 21, 4) == (6, 21)


def test_a_hit_was_one(bench: Bench, fakes: Path) -> None:
    bench.spit("fakes/liar_server", LIAR, 0o755)
    forgetful = f'#!/bin/sh\nexec {TOP}/fork_server "$@" --no-cache\n'
    bench.spit("fakes/forgetful_server", forgetful, 0o755)
    bench.environment["SERVER_FOLDER"] = str(fakes)
    # The origin may count requests of the liar late, in the next run: so fork is measured alone.
    rows = {}
    good = PROXIES.replace('"fork", "liar", "forgetful"', '"fork"')
    bad = PROXIES.replace('"fork", "liar", "forgetful"', '"liar", "forgetful"')
    bad = bad.replace('baseline = "fork"', 'baseline = "liar"')
    for name, text, status in ("good", good, 0), ("bad", bad, 3):
        folder = bench.folder / name
        done = bench.measure("--output", folder, bench.spit(f"{name}.toml", text))
        assert done.returncode == status, done.stderr
        rows[name] = runs(folder)
    del bench.environment["SERVER_FOLDER"]
    of_fork = rows["good"]
    seen = sorted((r["service"], r["file"], r["concurrency"], r["valid"]) for r in of_fork)
    assert seen == sorted(
        (f"proxy-{kind}", "150" if kind == "miss" else "125", at_once, "yes")
        for kind in ("hit", "miss", "revalidation") for at_once in "14"
    )  # fmt: skip
    assert all(row["server_cpu_us"] != "-" and float(row["server_cpu_us"]) > 0 for row in of_fork)
    reasons = {
        "liar": "no hit: of 20 requests the origin was asked for 20",
        "forgetful": "no hit: the proxy says HTTP/1.1 200 OK, no Cache-Status",
    }
    assert len(rows["bad"]) == 4
    for row in rows["bad"]:
        # ab with four clients may have begun three more requests when the last one is complete; and
        # the origin may count late what the liar asked before the load, since that says `hit`.
        more = "[0-4]" if row["concurrency"] == "4" else "[01]"
        assert re.sub(f"for 2{more}$", "for 20", row["valid"]) == reasons[row["server"]]


@pytest.mark.skipif(not is_installed("wrk"), reason="wrk is not installed")
@takes_long
def test_wrk_asks_a_proxy_that_revalidates(bench: Bench) -> None:
    study = PROXIES.replace('"fork", "liar", "forgetful"', '"fork"').replace("requests = 20", "")
    study = study.replace('"proxy-hit", "proxy-revalidation", "proxy-miss"', '"proxy-revalidation"')
    study = study[: study.index("[[where]]")].replace('["125", "150"]', '"125"')
    study += 'load = "wrk"\nkeepalive = "on"\nduration = 1\n'
    folder = bench.folder / "proxied-wrk"
    bench.measure("--output", folder, bench.spit("wrk.toml", study))
    measured = [row for row in runs(folder) if row["server"] == "fork"]
    assert [row["valid"] for row in measured] == ["yes", "yes"]


def peer_proxies(bench: Bench, server: str) -> dict[str, set[str]]:
    """Returns, for each service of a proxy, what the runs of the server say: yes, or why not."""
    folder = bench.folder / f"proxied-{server}"
    text = PROXIES.replace('"fork", "liar", "forgetful"', f'"{server}"')
    text = text[: text.rindex("[[where]]")].replace('baseline = "fork"', f'baseline = "{server}"')
    done = bench.measure("--output", folder, bench.spit(f"{server}.toml", text))
    assert done.returncode in (0, 3), done.stderr
    kinds = ("hit", "miss", "revalidation")
    rows = runs(folder)
    return {k: {r["valid"] for r in rows if r["service"] == f"proxy-{k}"} for k in kinds}


@pytest.mark.skipif(not is_installed("nginx"), reason="nginx is not installed")
def test_nginx_is_a_proxy(bench: Bench) -> None:
    never = "nginx is not set up as one that validates each time"
    assert peer_proxies(bench, "nginx") == {"hit": {"yes"}, "miss": {"yes"}, "revalidation": {never}}


@pytest.mark.skipif(
    not is_installed("nginx") or not is_installed(MODULE), reason="nginx has no Perl"
)
def test_nginx_works_but_does_not_sleep(bench: Bench) -> None:
    study = """
    title = "Work"
    servers = ["nginx", "lighttpd"]
    service = "work"
    files = ["cpu", "block", "touch", "sleep"]
    amount = 2000
    concurrency = 2
    requests = 30
    repetitions = 1
    [[where]]
    when = { server = "lighttpd" }
    only = { file = "cpu" }
    """
    folder = bench.folder / "working"
    done = bench.measure("--output", folder, bench.spit("working.toml", study))
    assert done.returncode == 3, done.stderr
    of_nginx = {row["file"]: row for row in runs(folder) if row["server"] == "nginx"}
    valid = {file: row["valid"] for file, row in of_nginx.items()}
    refused = "nginx is not set up for the work of /sleep/2000"
    assert valid == {"cpu": "yes", "block": "yes", "touch": "yes", "sleep": refused}
    # What computes costs at least as much; what blocks costs less.
    assert float(of_nginx["cpu"]["server_cpu_us"]) > 2000 > float(of_nginx["block"]["server_cpu_us"])
    assert float(of_nginx["block"]["p50_ms"]) > 2
    of_lighttpd = [row["valid"] for row in runs(folder) if row["server"] == "lighttpd"]
    told = ["lighttpd is not set up for the work of /cpu/2000"]
    assert of_lighttpd == (told if is_installed("lighttpd") else [])


def test_slow_readers_are_held(bench: Bench) -> None:
    study = """
    title = "Readers"
    servers = ["epoll"]
    files = "small.txt"
    concurrency = 2
    requests = 50
    readers = [0, 3]
    repetitions = 1
    """
    folder = bench.folder / "readers"
    done = bench.measure("--output", folder, bench.spit("readers.toml", study))
    assert done.returncode == 0, done.stderr
    held = {row["readers"]: (row["valid"], row["held"], row["cut"]) for row in runs(folder)}
    assert held == {"0": ("yes", "-", "-"), "3": ("yes", "3", "0")}


@pytest.mark.parametrize(
    ("server", "program"), [("squid", "squid"), ("trafficserver", "traffic_server")]
)
@takes_long
def test_a_caching_proxy_of_others_is_measured(bench: Bench, server: str, program: str) -> None:
    if not is_installed(program):
        pytest.skip(f"{program} is not installed")
    kinds = ("hit", "miss", "revalidation")
    assert peer_proxies(bench, server) == {kind: {"yes"} for kind in kinds}
    described = (bench.folder / f"proxied-{server}" / "machine.tsv").read_text()
    assert re.search(rf"^version\.{program}\t[0-9]+\.[0-9.]+$", described, re.MULTILINE)


def test_a_floor_is_no_proxy(bench: Bench) -> None:
    never = {"floor-one is not set up as a proxy"}
    assert peer_proxies(bench, "floor-one") == {"hit": never, "miss": never, "revalidation": never}


# --- a network namespace ---


def network() -> str:
    """Returns what a namespace can leave behind: devices, and mounts that hold it."""
    devices = sorted(path.name for path in Path("/sys/class/net").iterdir())
    named = sorted(map(str, Path("/run/netns").glob("*")))
    mounts = [x for x in Path("/proc/self/mounts").read_text().splitlines() if " nsfs " in x]
    return " ".join([*devices, *named, *mounts])


def has_namespaces() -> bool:
    if not all(map(shutil.which, ("ip", "tc", "nsenter", "unshare"))):
        return False
    user = ["--map-root-user"] if os.geteuid() else []
    command = ["unshare", *user, "--net", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(
    not has_namespaces(), reason="no network namespace, or no iproute2"
)
LINKED = ("--servers", "thread", "--files", "300000.bin", "--concurrency", "1,2", "--requests", 3,
          "--keepalive", "off,on", "--link", "40mbit")  # fmt: skip


@needs_namespaces
def test_over_a_slow_link(bench: Bench) -> None:
    before = network()
    folder = bench.folder / "link"
    done = bench.dcollect("--output", folder, *LINKED, "--repetitions", 1)
    assert done.returncode == 0, done.stderr
    over = runs(folder)
    assert [(row["valid"], row["length"]) for row in over] == [("yes", "300000")] * 4
    # 40 Mbit/s are 4,883 KiB/s. The bytes in the device's bucket and in the last packets are
    # faster. A busy machine is slower.
    assert all(0 < float(rate) <= 5400 for rate in column(over, "kbytes_s"))
    made = read_pairs(folder / "machine.tsv")["link"]
    assert re.fullmatch(r"40mbit from server to load by tbf, (delay 60 ms|no delay: ).*", made)
    assert "40mbit" in (folder / "report.md").read_text()
    bench.assert_nothing_left()
    assert network() == before


@needs_namespaces
@takes_long
def test_a_round_trip_takes_as_long_as_each_run_asks(bench: Bench) -> None:
    before = network()
    folder = bench.folder / "distance"
    done = bench.measure("--output", folder, "--servers", "thread,epoll", "--files", "small.txt",
                         "--concurrency", 2, "--requests", 20, "--link", "1gbit",
                         "--round-trip", "0,20,40", "--repetitions", 1)  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    if "no delay: " in read_pairs(folder / "machine.tsv")["link"]:
        pytest.skip("no TUN device")
    least: dict[str, list[float]] = {}
    for row in runs(folder):
        assert row["valid"] == "yes"
        # A connection for each request: two round trips. A busy machine is slower.
        assert 2 * int(row["round_trip"]) <= float(row["min_ms"])
        least.setdefault(row["round_trip"], []).append(float(row["min_ms"]))
    assert min(least["0"]) < min(least["20"]) < min(least["40"])
    bench.assert_nothing_left()
    assert network() == before


@needs_namespaces
@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupted_link_leaves_nothing(
    bench: Bench, number: signal.Signals, expected: int
) -> None:
    before = network()
    folder = bench.folder / f"link-{number.name}"
    begun = bench.begin("--output", folder, *LINKED, "--repetitions", 50)
    status, output = bench.interrupt(begun, folder, 2, number)
    assert status == expected, output
    bench.assert_nothing_left()
    assert network() == before


@needs_namespaces
def test_more_ports_for_clients(bench: Bench) -> None:
    before = network()
    path = bench.spit(
        "wide.toml",
        "servers = 'fork'\nfiles = 'small.txt'\nconcurrency = 1\nrequests = 30\nrepetitions = 1\n"
        "client-ports = '20000-60000'\n",
    )
    folder = bench.folder / "ports"
    done = bench.dcollect("--output", folder, path)
    assert done.returncode == 0, done.stderr
    assert column(runs(folder), "valid") == ["yes"]
    told = read_pairs(folder / "machine.tsv")["client_ports"]
    if "clients cannot have the ports 20000-60000 here" in done.stderr:
        usual = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
        assert told == " to ".join(usual)
    else:
        assert told == "20000 to 60000"
    assert told in (folder / "report.md").read_text()
    bench.assert_nothing_left()
    assert network() == before


# --- on a terminal ---


@pytest.mark.skipif(not shutil.which("script"), reason="script is not installed")
def test_progress_on_a_terminal(bench: Bench) -> None:
    command = shlex.join(bench.commanding("--output", bench.folder / "terminal", *SMALL,
                                          "--repetitions", 2))  # fmt: skip
    done = subprocess.run(
        ["script", "-qec", f"stty cols 60; {command}", "/dev/null"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        env={**bench.variables(), "PYTHONPATH": str(TOP)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    parts = [part.removeprefix("\x1b[K") for part in re.split(r"[\r\n]+", done.stdout)]
    drawn = [part for part in parts if re.match(r" +\d+%", part)]
    assert all(len(line) < 60 for line in drawn)
    assert drawn.pop(0) == "  0%  0:00 gone   round 1: servers that do nothing"
    assert len(drawn) == 8
    shape = r" +\d+%  \d+:\d\d gone(?:, \d+:\d\d to go)?   block [12]: (?:fork|thread), small"
    assert all(re.match(shape, line) for line in drawn), drawn


# --- a slow-down is found ---


@takes_long
def test_a_slow_down_is_found(bench: Bench) -> None:
    """A slow-down that is too large for other load to hide."""
    folder = bench.folder / "slowed"
    done = bench.dcollect(
        "--output", folder, "--servers", "floor-thread,floor-thread+work500000", "--files",
        "small.txt", "--concurrency", 1, "--requests", 2, "--repetitions", 8, "--seed", 5,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [
        row
        for row in rows_of(folder / "comparisons.tsv")
        if row["scope"] == "cell" and row["measure"] == "rps"
        and row["server"] == "floor-thread+work500000" and row["baseline"] == "floor-thread"
    ]  # fmt: skip
    assert len(found) == 1
    assert float(found[0]["ratio"]) < 0.9 and float(found[0]["high"]) < 1
    assert float(found[0]["p_holm"]) < 0.05 and found[0]["difference"] == "lower"


# --- wrong usage: one line on standard error, and no folder ---


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("--frobnicate", r"--frobnicate"),
        ("nosuch", r"'nosuch'"),
        ("--servers fork,nosuch", r"--servers: `nosuch` is no server; there are: .*fork.*nginx"),
        ("--servers fork+nosuch", r"--servers: `fork\+nosuch`: fork_server refuses it: .*--nosuch"),
        ("--servers pool+accept=few", r"--servers: `pool\+accept=few`: pool_server refuses it"),
        ("--servers floor-one+nosuch", r"`floor-one\+nosuch`: floor refuses it: .*--nosuch"),
        ("--servers nginx+list", r"`nginx\+list`: nginx takes no option here"),
        ("--files nosuch.txt", r"--files: `nosuch.txt` is no document; data/ has: .*small.txt"),
        ("--files 150", r"--files: `150` is no document"),
        ("--load siege", r"siege"),
        ("--concurrency 9-3", r"--concurrency: 9-3"),
        ("--concurrency 20 --requests 10", r"no cell is left"),
        ("--processors 99999", r"no cell is left"),
        ("--baseline nosuch", r"--baseline: `nosuch` is no server"),
        ("--baseline epoll", r"baseline: epoll is none of the servers"),
        ("--seed x", r"--seed"),
        ("--requests", r"--requests needs a value"),
        ("table1 requests", r"one study"),
        ("--rate fast", r"--rate takes a number"),
        ("--scheme udp", r"only the witness and the open loop speak UDP"),
        ("--resume /nonexistent/folder", r"takes no other option"),
    ],
)
def test_wrong_usage(bench: Bench, words: str, pattern: str) -> None:
    folder = bench.folder / "refused"
    done = bench.dcollect("--output", folder, *words.split())
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, ""), done.stderr
    assert re.search(pattern, done.stderr)
    assert not folder.exists()


STUDY = """\
title = "A study with a mistake"
servers = ["fork", "thread"]
files = "small.txt"
concurrency = 1
repetitions = 2
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[where]]\nonly = { server = ['fork', 'thraed'] }", "7: where.only: `thraed` is no server"),
        ("\n[[blocks]]\nfirst = 1\nwhen.file = 'x'", "9: blocks.when: `x` is no document"),
        ("[contrast]\nof = { server = 'fork+x' }\nto = { server = 'thread' }",
         "7: contrast.of: `fork+x`: fork_server refuses it"),
        ("claims = ['R1.2', 'R9.9']", "6: claims: `R9.9` is no claim; there are: "),
        ("see = [\n    'designs',\n    'nosuch',\n]", "8: see: `nosuch` is no study; there are: "),
        ("[[where]]\nonly = { load = 'ab' }\n[[where]]\nonly = { load = 'ac' }",
         "9: where.only.load: `ac` is none of ab"),
        ("lod = 'ab'", "6: lod: there is no such key"),
        ("requests = 'many'", "6: requests: many is no number above 0"),
        ("round-blocks = 0", "6: round-blocks: 0 is no number above 0"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_study_file_has_its_line(bench: Bench, text: str, words: str) -> None:
    path = bench.spit("mistake.toml", STUDY + text + "\n")
    done = bench.dcollect("--output", bench.folder / "mistaken", path)
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, ""), done.stderr
    assert done.stderr.startswith(f"dcollect: {path}:{words}")
    assert not (bench.folder / "mistaken").exists()


def test_a_mistake_in_the_quick_study_has_its_line(bench: Bench) -> None:
    path = bench.spit("mistake.toml", STUDY + "requests = 10\n[quick]\nrequests = 'many'\n")
    done = bench.dcollect("--quick", "--output", bench.folder / "mistaken", path)
    assert done.stderr == f"dcollect: {path}:8: requests: many is no number above 0\n"


@pytest.mark.parametrize("words", ["--resume /nonexistent/folder", "report /nonexistent/folder"])
def test_folders_that_are_not_there(bench: Bench, words: str) -> None:
    done = bench.dcollect(*words.split())
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")


def test_resume_takes_no_seed(bench: Bench, main: Path) -> None:
    done = bench.dcollect("--resume", main, "--seed", 1)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_the_package_that_is_missing_is_named(bench: Bench) -> None:
    """Makes an environment without ab and without a way to install it."""
    bare = bench.folder / "bare"
    bare.mkdir()
    for folder in reversed(os.environ["PATH"].split(":")):
        if not os.access(folder, os.R_OK | os.X_OK):
            continue
        for path in Path(folder).glob("*"):
            hidden = re.match(r"(?:ab|sudo|apt.*)\Z", path.name)
            if not hidden and not (bare / path.name).is_symlink():
                (bare / path.name).symlink_to(path)
    always = [Path(f, name) for f in ("/usr/sbin", "/sbin") for name in ("ab", "apt-get", "sudo")]
    if any(path.exists() for path in always):
        pytest.skip("ab or apt-get lies where it is always found")
    bench.environment["PATH"] = str(bare)
    done = bench.door("--output", bench.folder / "without")
    del bench.environment["PATH"]
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "apache2-utils" in done.stderr
    assert not (bench.folder / "without").exists()


def test_what_is_installed_later_is_not_needed_to_begin() -> None:
    """A bare machine has neither numpy nor pandas before the first study."""
    code = (
        "import sys, collect.cli, collect.new_results_folder, collect.campaign, collect.measure.run_plan, "
        "collect.pack; print({'numpy', 'scipy', 'pandas', 'jinja2'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TOP
    )
    assert done.stdout == "set()\n"


def test_help_names_every_factor(bench: Bench) -> None:
    from collect.design.factors import FACTORS

    shown = bench.dcollect("--help").stdout
    assert all(f"--{factor.key} " in shown for factor in FACTORS)
    assert max(map(len, shown.splitlines())) <= 100


# --- files that another study left ---


def test_groups_of_a_killed_study_are_removed(tmp_path: Path) -> None:
    """The files of a study that runs are kept. No process has so high a number."""
    for process in (os.getpid(), 4194304):
        (tmp_path / f"fork-vs-thread.{process}" / "1").mkdir(parents=True)
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"fork-vs-thread.{os.getpid()}"]
    assert stat.S_ISDIR((tmp_path / f"fork-vs-thread.{os.getpid()}" / "1").stat().st_mode)
