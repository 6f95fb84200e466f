"""Servers of others, which a study starts by a command: NAME=cmd:COMMAND."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mark_long_cases import takes_long
from study_runs import TOP, Bench, column, rows_of, runs
from test_study_files import study

from collect.design.factors import NAMES
from collect.design.plan import cells_of, plan_sitting
from collect.design.study import Study, given_toml, load_study
from collect.infer.cells import Cells
from collect.measure.server_commands import own_command
from collect.present.server_groups import fits, group_servers
from collect.project import PROJECT, StudyError, command_from_here, results_folder
from collect.tables import read_pairs

# --- what a study says ---

OWN = "mine=cmd:./mine --port {port} {root}"


def servers(value: Any) -> Study:
    return study("", servers=value)


def test_a_command_ends_at_a_comma_or_with_an_item_of_a_list() -> None:
    made = servers(f"fork, {OWN} ,thread+accept=lock")
    assert made.levels["server"] == ("fork", "mine", "thread+accept=lock")
    assert made.commands == {"mine": "./mine --port {port} {root}"}
    made = servers(["fork", "mine=cmd:sh -c 'a {port}, b'"])
    assert made.commands == {"mine": "sh -c 'a {port}, b'"}


def test_a_server_with_a_command_can_be_named_again() -> None:
    made = servers(f"{OWN},mine")
    assert made.levels["server"] == ("mine", "mine~2")
    assert servers(made.server_texts(made.levels["server"])).levels == made.levels


def test_a_command_is_kept_with_the_study(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(given_toml({"servers": ["fork", OWN], "directory": "/there"}))
    made = load_study(path)
    assert (made.commands["mine"], made.directory) == ("./mine --port {port} {root}", "/there")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("mine=cmd:./mine {root}", "the command of `mine` has no {port}"),
        ("mine=cmd:./mine '{port}", "the command of `mine`: No closing quotation"),
        ("a+b=cmd:./mine {port}", "`a+b` is no name"),
        (f"{OWN},mine=cmd:./other {{port}}", "`mine` has two commands"),
    ],
)
def test_a_wrong_command_is_refused(value: str, words: str) -> None:
    with pytest.raises(StudyError, match="^--servers: ") as error:
        servers(value)
    assert words in str(error.value)


def test_port_and_root_are_replaced_in_any_word() -> None:
    command = "app -l '127.0.0.1:{port}' --files={root}/x 'two words'"
    assert own_command(command, 80, Path("/data")) == [
        "app", "-l", "127.0.0.1:80", "--files=/data/x", "two words",
    ]  # fmt: skip


# --- measured ---

needs_ab = pytest.mark.skipif(not shutil.which("ab"), reason="ab is not installed")
SERVER = """\
import functools, http.server, sys
{first}
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[2])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()
"""
SMALL = ("--files", "small.txt", "--concurrency", "1,2", "--requests", 20, "--repetitions", 2,
         "--seed", 3)  # fmt: skip


def command(bench: Bench, name: str, first: str = "") -> str:
    path = bench.spit(f"{name}.py", SERVER.replace("{first}", first))
    return f"{name}=cmd:/usr/bin/python3 {path} {{port}} {{root}}"


def example(language: str) -> str:
    """A server of docs/your-own-server.md."""
    page = (PROJECT / "docs/your-own-server.md").read_text()
    found = re.search(rf"```{language}\n(.*?)```", page, re.S)
    assert found
    return found[1]


@pytest.mark.parametrize(("language", "start"), [("python", ["python3"]), ("go", ["go", "run"])])
def test_an_example_without_arguments_says_what_it_takes(
    tmp_path: Path, language: str, start: list[str]
) -> None:
    if not shutil.which(start[0]):
        pytest.skip(f"{start[0]} is not installed")
    if language == "go":
        state = [start[0], "list", "-f", "{{.Stale}}", "net/http"]
        if subprocess.run(state, capture_output=True, text=True, check=True).stdout != "false\n":
            pytest.skip("go build net/http has not been run: its first run takes 40 s of CPU time")
    program = tmp_path / f"my_server.{language}"
    program.write_text(example(language))
    done = subprocess.run([*start, program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"usage: \S+ PORT FOLDER\n", done.stderr)
    assert "panic" not in done.stderr and "Traceback" not in done.stderr


@needs_ab
def test_a_server_with_a_command_takes_part(bench: Bench) -> None:
    folder = bench.folder / "taking-part"
    path = bench.spit("python.py", example("python"))
    own = f"python=cmd:/usr/bin/python3 {path} {{port}} {{root}}"
    done = bench.dcollect("--output", folder, "--servers", f"fork,thread,{own}", *SMALL)
    assert done.returncode == 0, done.stderr
    rows = runs(folder)
    assert set(column(rows, "valid")) == {"yes"}
    assert column(rows, "server").count("python") == 4
    assert all(float(row["server_cpu_us"]) > 0 for row in rows)
    compared = rows_of(folder / "comparisons.tsv")
    assert {row["baseline"] for row in compared} == {"fork"}
    assert {row["server"] for row in compared} == {"thread", "python"}
    text = (folder / "report.md").read_text()
    assert "python.py {port} {root}" in text, "the report says how it was started"
    assert read_pairs(folder / "machine.tsv")["command"].count("=cmd:") == 1
    bench.assert_nothing_left()


@needs_ab
@pytest.mark.parametrize(
    ("name", "first", "words"),
    [
        ("ends", "sys.exit('no such thing')", "ended with status 1; it printed: no such thing"),
        ("elsewhere", "sys.argv[2] = '/nowhere'", "answers GET /small.txt with `HTTP/1.0 404"),
    ],
)
def test_a_server_that_does_not_answer_is_told_before_anything_runs(
    bench: Bench, name: str, first: str, words: str
) -> None:
    folder = bench.folder / name
    own = command(bench, name, first)
    done = bench.measure("--output", folder, "--servers", f"fork,{own}", *SMALL)
    assert done.returncode == 1 and not folder.exists()
    assert words in done.stderr and done.stderr.endswith("; nothing was measured\n")
    bench.assert_nothing_left()


@pytest.mark.parametrize("scheme", ["https", "udp"])
def test_a_server_with_a_command_is_asked_by_http_alone(bench: Bench, scheme: str) -> None:
    own = "other=cmd:/usr/bin/false {port}"  # docs/your-own-model.md makes a model called mine
    options = ("--servers", f"fork,{own}", "--scheme", scheme, "--load", "witness", *SMALL)
    done = bench.measure("--output", bench.folder / scheme, *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    words = (
        f"`other` has a command, and such a server is measured over http alone, not over {scheme}"
    )
    assert words in done.stderr
    assert not (bench.folder / scheme).exists()


# The process that listens leaves session and process group, and the one that was started waits.
DAEMON = """
import os
if os.fork():
    os.wait()
    sys.exit()
os.setsid()
"""


@needs_ab
def test_a_process_that_leaves_its_session_ends_with_its_server(bench: Bench) -> None:
    folder = bench.folder / "daemon"
    done = bench.measure("--output", folder, "--servers", command(bench, "daemon", DAEMON), *SMALL)
    assert done.returncode == 0, done.stderr
    assert set(column(runs(folder), "valid")) == {"yes"}
    bench.assert_nothing_left()


@needs_ab
@pytest.mark.parametrize(
    ("servers", "words"),
    [
        ("fork=cmd:./x {port}", "`fork` has a command, but is the name of another server"),
        ("nginx=cmd:./x {port}", "`nginx` has a command, but is the name of another server"),
    ],
)
def test_a_name_of_another_server_is_refused(bench: Bench, servers: str, words: str) -> None:
    done = bench.measure("--output", bench.folder / "named", "--servers", servers, *SMALL)
    assert done.returncode == 2 and words in done.stderr


@needs_ab
@takes_long
def test_the_command_is_run_where_the_study_was_started(bench: Bench) -> None:
    command(bench, "here")
    words = ("--output", "there", "--servers", "here=cmd:/usr/bin/python3 here.py {port} {root}")
    whole = bench.commanding(*words, *SMALL)
    done = bench.run_in(bench.folder, whole)
    assert done.returncode == 0, done.stderr
    assert set(column(runs(bench.folder / "there"), "valid")) == {"yes"}


# --- compared ---


def cells(*labels: str) -> Cells:
    """Cells of a study of these servers, with runs that nobody made."""
    made = servers(list(labels))
    rows = [
        {**row, "valid": "yes", "rps": "9"}
        for row in plan_sitting(made, cells_of(made, 2))
    ]  # fmt: skip
    return Cells(made, list(NAMES), pd.DataFrame(rows), 0)


@pytest.mark.parametrize(
    ("labels", "baselines"),
    [
        ("fork thread thread+no-file-cache", "fork fork fork"),
        ("fork thread thread+no-file-cache floor-one", "fork fork fork fork"),
        ("fork nginx thread thread~2", "fork fork fork fork"),
        ("fork fork~2 thread thread~2 floor-one", "fork fork thread thread fork"),
        ("fork fork+a fork+a+b", "fork fork fork"),
    ],
)
def test_a_server_beside_its_own_variant_is_compared_with_all_others(
    labels: str, baselines: str
) -> None:
    data = cells(*labels.split())
    found = {
        data.value(cell, "server"): part.baseline for part in data.parts for cell in part.cells
    }
    assert found == dict(zip(labels.split(), baselines.split(), strict=True))


def test_own_servers_are_none_of_ours() -> None:
    data = cells("fork", OWN, "mine", "nginx~2")
    assert [data.is_other(name) for name in data.levels["server"]] == [False, True, True, True]


@pytest.mark.parametrize("count", [2, 5, 9])
def test_no_two_own_servers_of_a_panel_look_alike(count: int) -> None:
    names = ["fork", "thread", *(f"server{i}" for i in range(count))]
    groups = group_servers(names)
    assert sorted(name for group in groups for name in group.servers) == sorted(names)
    assert all(fits(group.servers) for group in groups)


def test_an_own_server_is_with_the_other_servers() -> None:
    groups = group_servers(["fork", "thread", "epoll", "nginx", "lighttpd", "go", "mine"])
    assert {"nginx", "lighttpd", "go", "mine"} in [set(group.servers) for group in groups]


# --- started from anywhere ---


def test_the_command_is_found_from_anywhere(bench: Bench) -> None:
    listed = bench.run_in(Path("/"), [str(TOP / "dcollect.sh"), "--list"])
    assert listed.returncode == 0 and "\ncrash " in listed.stdout


@needs_ab
def test_a_study_is_started_from_anywhere_by_a_symlink(bench: Bench) -> None:
    program = bench.folder / "a link"
    program.symlink_to(TOP / "dcollect.sh")
    folder = bench.folder / "from-anywhere"
    words = ("--servers", "thread", "--output", folder, *SMALL)
    with bench.short_calibrations():
        done = bench.run_in(Path("/"), [str(program), *map(str, words)])
    assert done.returncode == 0, done.stderr
    assert f"{folder}/report.md" in done.stdout
    again = bench.run_in(Path("/"), [str(program), "report", str(folder)])
    assert again.returncode == 0 and f"{folder}/report.md\n" in again.stdout


def test_results_are_found_from_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(PROJECT)
    assert (results_folder(), command_from_here()) == (Path("results"), "./dcollect.sh")
    monkeypatch.chdir(tmp_path)
    assert results_folder() == PROJECT / "results"
    assert command_from_here() == f"{PROJECT}/dcollect.sh"
