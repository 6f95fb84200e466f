"""The other kinds of study, measured: HTTPS, protocols, UDP, idle and slow clients, crashes, workers,
memory, and `make bench`."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mark_long_cases import takes_long
from study_runs import TOP, Bench, column, rows_of, runs

from collect.measure.caching_proxies import PROXIES
from collect.measure.server_commands import all_recipes, describe, expand, our_servers

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("ab", "httperf"))), reason="ab or httperf is not installed"
)
FLOORS_AND_PEERS = ["floor-fork", "floor-thread", "floor-one", "nginx", "lighttpd",
                    "apache-prefork", "apache-worker", "apache-event"]  # fmt: skip


def study(bench: Bench, name: str, *words: object, repetitions: int = 2) -> Path:
    """Measures a study and writes its report."""
    folder = bench.folder / Path(name).stem
    done = bench.dcollect(
        "--output", folder, "--seed", 3, "--repetitions", repetitions, *words, name
    )
    assert done.returncode == 0, done.stderr
    return folder


def cells(rows: list[dict[str, str]], *names: str) -> set[str]:
    return {" ".join(row[name] for name in names) for row in rows}


# --- all servers ---


def test_all_is_every_model_with_each_way_to_accept_each_floor_and_each_peer() -> None:
    expected = list(FLOORS_AND_PEERS)
    for name in our_servers():
        command = [str(TOP / f"{name}_server"), "--help"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        text = " ".join(shown.split())
        expected.append(name)
        for option in ("accept HOW", "share WHAT"):
            if match := re.search(rf" --{option} .*?: (.*?) \(([\w-]+)\)", text):
                ways = re.findall(r"(?:^|; )([\w-]+):", match[1])
                option = option.split()[0]
                expected += [f"{name}+{option}={way}" for way in ways if way != match[2]]
        if " --template " in text:
            expected.append(f"{name}+template")
    # Proxies alone are not among them: they serve no documents.
    assert sorted(expand(["iterative", "fork", "thread", "all"])) == sorted(expected)


def test_what_is_named_before_all_comes_first_and_nobody_comes_twice() -> None:
    every = expand(["iterative", "fork", "thread", "all"])
    assert every[:3] == ["iterative", "fork", "thread"]
    assert len(set(every)) == len(every)
    assert expand(["fork", "nginx"]) == ["fork", "nginx"]


def test_servers_describe_themselves() -> None:
    assert describe("fork")["name"] == "fork_server"
    assert {*FLOORS_AND_PEERS, *PROXIES} < set(all_recipes())


# --- protocols ---


@takes_long
def test_https(bench: Bench) -> None:
    own = TOP / "certificate" / "key.pem"
    before = own.read_text() if own.exists() else ""
    text = (TOP / "studies/https.toml").read_text()
    few = bench.spit("https.toml", text.replace("requests = [10000, 500]", "requests = 40"))
    folder = study(bench, str(few), "--servers", "thread", "--requests", "20,40")
    rows = runs(folder)
    assert set(column(rows, "valid")) == {"yes"}
    names = ("load", "requests", "scheme", "certificate", "sessions")
    expected = {"httperf 20 http - -", "httperf 40 http - -", "witness 40 http - -"}
    for key in ("p256", "rsa2048"):
        expected |= {f"httperf {n} https {key} new" for n in (20, 40)}
        expected |= {f"witness 40 https {key} {kind}" for kind in ("new", "resumed")}
    assert cells(rows, *names) == expected
    assert (own.read_text() if own.exists() else "") == before, "the user's own is not touched"
    assert "TLS.3" in column(rows_of(folder / "claims.tsv"), "claim")


@takes_long
def test_protocols(bench: Bench) -> None:
    labels = "iterative+protocol=simple,iterative+protocol=persistent,thread+protocol=pipelined"
    folder = study(bench, "protocols", "--servers", labels, "--requests", 100, "--calls", "1,2",
                   "--baseline", "iterative+protocol=persistent")  # fmt: skip
    rows = runs(folder)
    assert set(column(rows, "valid")) == {"yes"}
    assert cells(rows, "server", "calls") == {
        "iterative+protocol=simple 1",
        *(f"{server} {calls}" for calls in (1, 2)
          for server in ("iterative+protocol=persistent", "thread+protocol=pipelined")),
    }  # fmt: skip
    assert all(int(row["complete"]) == 100 * int(row["calls"]) for row in rows)
    averaged = column(rows_of(folder / "averages.tsv"), "server")
    assert "iterative+protocol=simple" not in averaged, "it was not asked everything"


def test_udp(bench: Bench) -> None:
    folder = study(bench, "udp", "--servers", "thread", "--concurrency", "1,4", "--requests", 60)
    rows = runs(folder)
    seen = sorted((row["scheme"], row["complete"], row["length"], row["valid"]) for row in rows)
    assert seen == [(scheme, "60", "1000", "yes") for scheme in ("http", "udp") for _ in range(4)]
    assert {"U1", "U2"} <= set(column(rows_of(folder / "claims.tsv"), "claim"))


def test_work(bench: Bench) -> None:
    folder = study(bench, "work", "--servers", "fork,epoll,floor-one", "--amount", "1,3000",
                   "--concurrency", 4, "--requests", 40)  # fmt: skip
    rows = runs(folder)
    assert set(column(rows, "valid")) == {"yes"}
    kinds = {f"{file} {amount}" for file in ("cpu", "sleep", "block") for amount in (1, 3000)}
    assert cells(rows, "file", "amount") == kinds
    assert set(column(rows, "length")) == {"37"}
    for row in rows:
        if row["server"] != "floor-one" and row["amount"] == "3000":
            # Without a control group, each process of a server can lose two ticks of 10 ms.
            waited, computed = float(row["min_ms"]) >= 3, float(row["server_cpu_us"]) >= 1500
            assert waited and computed == (row["file"] == "cpu")


# --- effects on other clients ---


def test_idle_connections(bench: Bench) -> None:
    folder = study(
        bench, "idle", "--servers", "epoll,iterative", "--idle", "0,20", "--requests", 60
    )
    for row in runs(folder):
        cannot = row["server"] == "iterative" and row["idle"] == "20"
        assert row["valid"] == ("cannot hold: 1 of 20" if cannot else "yes")
        if row["idle"] == "20":
            assert row["held"] == ("1" if cannot else "20")
    compared = rows_of(folder / "comparisons.tsv")
    assert all(row["baseline"] == row["server"] for row in compared)


@takes_long
def test_slow_clients(bench: Bench) -> None:
    folder = study(bench, "slow-clients", "--servers", "epoll,iterative,thread", "--slow", "0,2",
                   "--requests", 60, "--duration", 2)  # fmt: skip
    for row in runs(folder):
        assert row["valid"] == "yes"
        if row["slow"] == "2":
            starved = row["server"] == "iterative"
            expected = ("0", "10") if starved else ("60", "0")
            assert (row["complete"], row["unanswered"]) == expected
    assert "R1.6" in column(rows_of(folder / "claims.tsv"), "claim")


@takes_long
def test_crashes(bench: Bench) -> None:
    folder = study(bench, "crash", "--servers", "fork,thread", "--concurrency", 3, "--requests", 40)
    rows = runs(folder)
    assert set(column(rows, "valid")) == {"yes"}
    assert sorted(r["server"] for r in rows if r["again_ms"] == "never") == ["thread", "thread"]
    names = ["summary.tsv", "comparisons.tsv", "claims.tsv", "report.md", "index.html"]
    before = [(folder / name).read_bytes() for name in names]
    assert bench.dcollect("report", folder).returncode == 0
    assert [(folder / name).read_bytes() for name in names] == before, "built again: same bytes"


# --- workers and memory ---


def test_requests_of_each_worker_are_counted(bench: Bench) -> None:
    folder = bench.folder / "counted"
    loops = [f"{name}+workers=3" for name in ("epoll", "uring") if describe(name)["available"]]
    done = bench.measure(
        "--output", folder, "--servers", ",".join(["fork", *loops, "prefork+workers=1"]), "--files",
        "small.txt", "--concurrency", "1,4", "--requests", 60, "--repetitions", 2, "--seed", 4,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for row in runs(folder):
        told = (row["workers"], row["busiest"])
        if row["server"] == "fork":
            assert told == ("-", "-")
        elif row["server"].startswith("prefork"):
            assert told == ("1", "1.0000")
        else:
            assert told[0] == "3" and re.fullmatch(r"\d\.\d{4}", told[1])
            assert 0.3333 <= float(told[1]) <= 1
        assert (row["batch"] != "-") == (row["server"] in loops), "a loop counts its waits"
        if row["batch"] != "-":
            assert 0 < float(row["batch"]) <= 64


@takes_long
def test_memory_of_an_idle_connection(bench: Bench) -> None:
    folder = study(bench, "growth-memory", "--servers", "thread,epoll", "--idle", "20,60",
                   "--requests", 20)  # fmt: skip
    each = column(runs(folder), "idle_kib")
    assert len(each) == 8 and all(re.fullmatch(r"-?\d+\.\d{3}", value) for value in each)
    of_thread = [row for row in rows_of(folder / "summary.tsv") if row["server"] == "thread"]
    assert len(of_thread) == 2
    assert all(4 < float(row["idle_kib"]) < 200 for row in of_thread), "a thread takes some pages"


@pytest.fixture
def same_servers() -> Iterator[list[subprocess.Popen[str]]]:
    servers: list[subprocess.Popen[str]] = []
    yield servers
    for server in servers:
        server.send_signal(signal.SIGKILL)
        server.communicate()


def begin(servers: list[subprocess.Popen[str]], process_group: int | None = None) -> int:
    """Starts a server; returns its process."""
    command = [str(TOP / "iterative_server"), "--bind", "127.0.0.1", "0"]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, process_group=process_group
    )
    servers.append(server)
    assert server.stdout and server.stdout.readline()
    return server.pid


def memory(process: int) -> int:
    command = [str(TOP / "collect/clients/launch"), "memory", "--server", str(process)]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


def test_memory_is_no_less_where_others_run_the_same_program(
    same_servers: list[subprocess.Popen[str]],
) -> None:
    """Processes share the pages of the file of the program."""
    first = begin(same_servers)
    alone = memory(first)
    assert alone > 0
    for _ in range(3):
        begin(same_servers)
    assert memory(first) >= alone


def test_the_processes_beside_a_server_belong_to_it(
    same_servers: list[subprocess.Popen[str]],
) -> None:
    """They are no children of the server, but in the group that it leads. In another group than
    its own, only the server itself is found."""
    whole, part = begin(same_servers, process_group=0), begin(same_servers)
    assert memory(whole) > memory(part)


def test_bench(bench: Bench) -> None:
    command = ["/usr/bin/python3", "-m", "collect", "bench", "--subjects", "epoll,pool,floor-one"]
    command += ["--growth", "1,5", "--rounds", "1", "--requests", "50", "--keep-rounds", "0"]
    command += ["--tls-rounds", "1", "--growth-rounds", "1", "--size-rounds", "1", "--idle", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TOP)
    assert done.returncode == 0, done.stderr
    names, number = r"(?:epoll|pool|floor-one)", r"-?[\d.]+ \(-?[\d.]+ to -?[\d.]+\)"
    assert re.search(
        rf"How cost grows: CPU.*\n +1 +5\n(?:{names} +{number} +{number}\n){{3}}", done.stdout
    )
    for size, requests in (("10,000", 50), ("1,048,576", 10)):
        head = rf"{size} bytes, one connection per request: ab -n {requests} -c 10, 1 rounds\n"
        assert re.search(rf"{head}[^\n]*\n(?:{names} +[\d.]+ .*\n){{3}}", done.stdout), done.stdout
    speakers = r"[^\n]*\n(?:epoll|pool) +[\d. ]+\n(?:epoll|pool) +[\d. ]+\n"
    for kind in ("p256, new", "p256, resumed", "rsa2048, new", "rsa2048, resumed"):
        head = f"HTTPS, {kind} sessions: witness, 50 connections"
        assert re.search(rf"{head}[^\n]*\n{speakers}", done.stdout), done.stdout
    idle = rf"How cost grows: KiB.*\n +20\nepoll +{number}\npool +{number}\n\Z"
    assert re.search(idle, done.stdout), done.stdout
