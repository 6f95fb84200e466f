"""What is inside a request: the instruments, what follows from them, and how it is shown."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from presenting import written
from study_runs import Bench

from collect import gzip_members, schema
from collect.design.factors import FACTORS
from collect.design.study import Study, source_of, study_of
from collect.infer import anatomy_table
from collect.infer.analyse_results import analyse
from collect.measure import instruments
from collect.present.chart import DrawnFigure, RowFigure
from collect.present.figures import figures_of
from collect.present.flame_graph import flame_graph
from collect.present.results_view import load_view
from collect.project import StudyError
from collect.tables import read_table, row_text, write_table

NEEDS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="instruments look into a server only as root"
)
K = anatomy_table.KERNEL


def study(**keys: object) -> Study:
    return study_of(dict(keys), "mine", source_of(keys, "mine.toml"))


# --- the study file ---


def test_a_study_names_its_instruments() -> None:
    assert study(instruments=["strace", "perf"]).instruments == ("strace", "perf")
    with pytest.raises(StudyError, match="`gdb` is none of strace, perf"):
        study(instruments="gdb")


# --- strace ---


def test_the_table_of_strace() -> None:
    table = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000120           3        40         4 accept4
 40.00    0.000080           2        40           close
------ ----------- ----------- --------- --------- ----------------
100.00    0.000200           2        80         4 total
"""
    assert list(instruments.read_calls(table)) == [("accept4", 40), ("close", 40)]


def test_the_processes_of_a_server_are_its_tree_and_its_group() -> None:
    script = "(sleep 600 & echo $!); sleep 600 & echo $!; wait"
    with subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as leader:
        try:
            assert leader.stdout
            orphan, child = (int(leader.stdout.readline()) for _ in range(2))
            assert instruments.processes_of(leader.pid) == {leader.pid, orphan, child}
            assert instruments.processes_of(child) == {child}
            assert {leader.pid, child} < instruments.processes_of(os.getpid())
        finally:
            os.killpg(leader.pid, signal.SIGKILL)


# --- perf ---

SCRIPT = """\
swapper     0/0     PERF_RECORD_FORK(7:7):(1:1)
fork_server     7/7
\tffffffff81000001 dup_mmap
\tffffffff81000002 kernel_clone
\tffffffff81000003 do_syscall_64
\tffffffff81000004 entry_SYSCALL_64_after_hwframe
\t           7a6f3 _Fork

fork_server     7/7     PERF_RECORD_FORK(8:8):(7:7)
ab     9/9
\tffffffff81000005 tcp_sendmsg

fork server     8/8
\t           7a6f4 main; again
\t               0 [unknown]
"""


def test_stacks_are_those_of_the_server_and_of_its_children() -> None:
    stacks = list(instruments.read_stacks(SCRIPT.splitlines(), {7}))
    assert stacks == [
        f"fork_server;_Fork;kernel_clone{K};dup_mmap{K}",
        "fork server;[unknown];main_again",
    ]


def test_no_sample_is_lost_where_stacks_are_cut() -> None:
    stacks = Counter({"a;b;c": 1, "a;b;d": 1, "a;e": 5000, "x;y": 1})
    cut = instruments.pruned(stacks)
    assert cut.total() == stacks.total()
    assert cut == Counter({"a": 2, "a;e": 5000, "x": 1})


@pytest.mark.parametrize(
    ("stack", "purpose"),
    [
        ("s;main", anatomy_table.OWN),
        ("s", anatomy_table.OWN),
        (f"s;_Fork;__do_sys_clone{K};kernel_clone{K};dup_mmap{K}", anatomy_table.MAKE),
        (f"s;ret_from_fork_asm{K};schedule_tail{K}", anatomy_table.MAKE),
        (f"s;__x64_sys_exit_group{K};do_group_exit{K};do_exit{K};exit_mmap{K}", anatomy_table.END),
        # A connection that is closed because its process ends is a part of the end.
        (f"s;__x64_sys_exit_group{K};do_exit{K};tcp_close{K}", anatomy_table.END),
        (f"s;kernel_wait4{K};do_wait{K}", anatomy_table.END),
        (f"s;main;exc_page_fault{K};handle_mm_fault{K}", anatomy_table.MEMORY),
        (f"s;mmap;ksys_mmap_pgoff{K}", anatomy_table.MEMORY),
        (f"s;__x64_sys_accept4{K}", anatomy_table.CONNECTION),
        (f"s;close;__x64_sys_close{K};__fput{K};inet_release{K}", anatomy_table.CONNECTION),
        (f"s;close;__x64_sys_close{K};__fput{K}", anatomy_table.FILES),
        (f"s;read;ksys_read{K};eventfd_read{K}", anatomy_table.WAIT),
        (f"s;read;ksys_read{K};vfs_read{K}", anatomy_table.FILES),
        (f"s;epoll_wait;__x64_sys_epoll_wait{K}", anatomy_table.WAIT),
        (f"s;x;__x64_sys_uname{K}", anatomy_table.OTHER),
        (f"s;asm_sysvec_apic_timer_interrupt{K}", anatomy_table.OTHER),
    ],
)
def test_the_purpose_of_a_stack(stack: str, purpose: str) -> None:
    assert anatomy_table.purpose_of(stack) == purpose


def test_a_call_has_one_purpose() -> None:
    calls = [call for calls in anatomy_table.CALLS_OF.values() for call in calls.split()]
    assert len(calls) == len(set(calls))


# --- files that a killed study leaves ---


def test_a_torn_end_takes_nothing_else_with_it(tmp_path: Path) -> None:
    path = tmp_path / "stacks.tsv.gz"
    gzip_members.append(path, "head\n")
    gzip_members.append(path, "one\n")
    whole = path.read_bytes()
    path.write_bytes(whole + gzip.compress(b"two\n")[:-5])
    assert gzip_members.read(path).startswith("head\none\n")
    gzip_members.mend(path)
    gzip_members.append(path, "three\n")
    assert gzip_members.read(path).endswith("three\n")
    gzip.decompress(path.read_bytes())


def test_what_is_whole_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "raw.gz"
    gzip_members.mend(path)
    assert not path.exists() and gzip_members.read(path) == ""
    gzip_members.append(path, "one\n")
    before = path.read_bytes()
    gzip_members.mend(path)
    assert path.read_bytes() == before


def test_packing_makes_one_member_of_many_and_keeps_every_line(tmp_path: Path) -> None:
    path = tmp_path / "histograms.tsv.gz"
    gzip_members.pack(path)
    assert not path.exists()
    lines = [f"{n}\t{n * n:0{n % 90}}\n" for n in range(1000)]
    for line in lines:
        gzip_members.append(path, line)
    many = path.stat().st_size
    gzip_members.append(path, "".join(lines))  # one member of several pieces
    assert gzip_members.read(path) == "".join(lines) * 2
    gzip_members.pack(path)
    assert gzip_members.read(path) == "".join(lines) * 2
    assert path.stat().st_size < many / 2
    member = zlib.decompressobj(wbits=31)
    member.decompress(path.read_bytes())
    assert member.eof and not member.unused_data


# --- the tables and the report ---

CELL = {factor.name: factor.default for factor in FACTORS} | {
    "file": "small.txt", "concurrency": "10", "certificate": "-", "sessions": "-", "amount": "-",
    "offered": "-",
}  # fmt: skip
COSTS = {"fork": 200.0, "thread": 100.0}
# The stacks of a hundred samples, by server and round.
SEEN = {
    ("fork", "1"): {f"s;f;__do_sys_clone{K}": 50, "s;main": 20, f"s;r;__x64_sys_recvfrom{K}": 30},
    ("fork", "2"): {f"s;f;__do_sys_clone{K}": 60, "s;main": 10, f"s;r;__x64_sys_recvfrom{K}": 30},
    ("thread", "1"): {"s;main": 40, f"s;r;__x64_sys_recvfrom{K}": 60},
    ("thread", "2"): {"s;main": 40, f"s;r;__x64_sys_recvfrom{K}": 60},
}
CALLS = {"fork": {"recvfrom": 1.0, "clone": 1.0, "epoll_wait": 0.01}, "thread": {"recvfrom": 1.0}}


@pytest.fixture
def looked_into(tmp_path: Path) -> Path:
    """A results folder of two rounds whose servers were looked into."""
    (tmp_path / "study.toml").write_text(
        'servers = ["fork", "thread"]\nfiles = "small.txt"\nconcurrency = 10\nbaseline = "thread"\n'
        'instruments = ["strace", "perf"]\nfigure = "anatomy"\n'
        '[contrast]\nof = { server = "fork" }\nto = { server = "thread" }\n'
    )
    rows = [
        dict.fromkeys(schema.RUNS.names, "-") | CELL
        | {"server": server, "run": str(4 * block + 2 * again + at), "block": str(2 * block + again),
           "round": str(block + 1), "order": str(at + 1), "rps": "900", "complete": "1000",
           "server_cpu_us": str(cost), "server_user_us": "7", "server_system_us": "9",
           "valid": "yes"}
        for block in range(2) for again in range(2) for at, (server, cost) in enumerate(COSTS.items())
    ]  # fmt: skip
    write_table(tmp_path / "runs.tsv", schema.RUNS.names, rows)
    calls = [
        {**CELL, "server": server, "round": number, "call": call, "each": str(each)}
        for server, number in SEEN
        for call, each in CALLS[server].items()
    ]
    write_table(tmp_path / "system_calls.tsv", schema.SYSTEM_CALLS.names, calls)
    stacks = [
        {**CELL, "server": server, "round": number, "stack": stack, "samples": str(count)}
        for (server, number), seen in SEEN.items()
        for stack, count in seen.items()
    ]
    names = schema.STACKS.names
    gzip_members.append(tmp_path / "stacks.tsv.gz", "\t".join(names) + "\n")
    for row in stacks:
        gzip_members.append(tmp_path / "stacks.tsv.gz", row_text(names, row))
    return tmp_path


def test_parts_are_shares_of_what_a_request_costs(looked_into: Path) -> None:
    analyse(looked_into)
    rows = read_table(looked_into / "anatomy.tsv").rows
    parts = {(r["server"], r["name"]): r for r in rows if r["kind"] == "purpose"}
    made = parts["fork", anatomy_table.MAKE]
    assert float(made["each"]) == pytest.approx(110)  # 55% of 200 us
    assert float(made["share"]) == pytest.approx(0.55)
    assert float(made["low"]) < 100 < 120 < float(made["high"])  # a t-interval of two rounds
    assert made["rounds"] == "2" and made["samples"] == "200"
    for server, cost in COSTS.items():
        mine = [float(row["each"]) for (name, _), row in parts.items() if name == server]
        assert sum(mine) == pytest.approx(cost) and len(mine) == len(anatomy_table.PURPOSES)
    calls = [(r["server"], r["name"], float(r["each"])) for r in rows if r["kind"] == "call"]
    assert calls == [
        ("fork", "clone", 1), ("fork", "recvfrom", 1), ("fork", "epoll_wait", 0.01),
        ("thread", "recvfrom", 1),
    ]  # fmt: skip


def test_a_report_says_where_the_time_goes(looked_into: Path) -> None:
    report = written(looked_into)
    abstract = report.partition("## Abstract")[2].partition("\n## ")[0]
    parts = re.sub(r" \(\S+ to \S+\)", " (low to high)", abstract)
    assert (
        "Of the 200 µs of **fork**, 110 (low to high) µs go into making a process or thread, 60.0 "
        "into the connection and 30.0 (low to high) into the server's own code; of the 100 µs of "
        "**thread**, 60.0 µs go into the connection and 40.0 into the server's own code."
    ) in parts
    assert "no intervals" not in abstract
    assert re.search(r"^\| fork \| 200 [^|]*\| 7.00 \| 9.00 \| 2.01 \|", report, re.MULTILINE)
    assert re.search(r"^\| clone \| 1.00 \|  \|", report, re.MULTILINE)
    assert "| epoll_wait |" not in report  # once in a hundred requests


def test_a_figure_stacks_the_parts(looked_into: Path) -> None:
    analyse(looked_into)
    figures = {figure.name: figure for figure in figures_of(load_view(looked_into))}
    stack = figures["small-anatomy"]
    assert isinstance(stack, RowFigure)
    lines = {line.name: line.marks for _, lines in stack.groups for line in lines}
    assert list(lines) == ["thread", "fork"]
    for server, marks in lines.items():
        assert marks[0].low == 0 and marks[-1].value == pytest.approx(COSTS[server])
        assert all(one.value == pytest.approx(next.low) for one, next in pairwise(marks))
        assert len({mark.look.colour for mark in marks}) == len(marks)
    flames = [figure for figure in figures.values() if isinstance(figure, DrawnFigure)]
    assert [figure.name for figure in flames] == ["small-flame-fork", "small-flame-thread"]


def test_a_flame_graph_is_as_wide_as_its_samples() -> None:
    svg = flame_graph("a & b", "said", {f"s;f;<g>{K}": 75, "s;h": 25, "t": 0})
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    wide = {
        group.find(f"{space}title").text: float(group.find(f"{space}rect").get("width"))
        for group in root.iter(f"{space}g")
        if group.get("class") == "value"
    }
    assert set(wide) == {"all: 100%", "s: 100%", "f: 75%", "<g>: 75%", "h: 25%"}
    assert wide["f: 75%"] == pytest.approx(0.75 * wide["s: 100%"], rel=0.01)


# --- a look ---


@NEEDS_ROOT
def test_servers_are_looked_into_once_a_round(bench: Bench) -> None:
    kinds = [name for name in instruments.NEEDS if not instruments.problem(name)]
    assert "strace" in kinds
    folder = bench.folder / "looked"
    toml = bench.spit(
        "mine.toml",
        'servers = ["fork", "epoll"]\nfiles = "small.txt"\nconcurrency = 2\nrequests = 160\n'
        f'repetitions = 1\nload = "ab"\ninstruments = {json.dumps(kinds)}\n',
    )
    done = bench.measure(toml, "--output", folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "system_calls.tsv").exists(), done.stderr
    calls = read_table(folder / "system_calls.tsv").rows
    each = {(row["server"], row["call"]): float(row["each"]) for row in calls}
    assert each["fork", "clone"] == pytest.approx(1, abs=0.3)
    assert each["epoll", "sendto"] == pytest.approx(1, abs=0.3)
    assert each["epoll", "recvfrom"] > 0.7  # and once more where the request comes after the connection
    assert ("epoll", "clone") not in each
    # A resumed run looks into those servers alone that it has not looked into yet.
    write_table(
        folder / "system_calls.tsv",
        schema.SYSTEM_CALLS.names,
        [row for row in calls if row["server"] == "fork"],
    )
    assert bench.measure("--resume", folder).returncode == 0
    again = read_table(folder / "system_calls.tsv").rows
    assert [row for row in again if row["server"] == "fork"] == [
        row for row in calls if row["server"] == "fork"
    ]
    assert any(row["server"] == "epoll" for row in again)
    if "perf" in kinds:
        stacks = read_table(folder / "stacks.tsv.gz").rows
        assert {row["server"] for row in stacks} == {"fork", "epoll"}
        assert any("clone" in row["stack"] for row in stacks if row["server"] == "fork")
    bench.assert_nothing_left()
