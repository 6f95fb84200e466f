"""The command replay: plays a load against servers that write traces, and makes a page of them."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from collect.install_and_build import build, install
from collect.measure.control_groups import Accounting
from collect.measure.documents import prepare_documents
from collect.measure.load_for_replay import BIG, SMALL, Play, Visit, play
from collect.measure.machine import describe as describe_machine
from collect.measure.machine import processors_allowed
from collect.measure.scratch import scratch
from collect.measure.server_commands import (
    TRACE_FILE,
    Need,
    Setting,
    check_command_of,
    describe,
    options_of,
    our_servers,
    recipe_name,
)
from collect.measure.servers import ServerProblem, Servers
from collect.measure.study_lock import study_lock
from collect.options import Line
from collect.present.replay_page import Told, page_of_replay
from collect.present.replay_scene import Scene, quickest, scene_of, scene_of_clients, typical
from collect.project import CRASH_FOLDER, REPLAY_PAGE, command_name, fail, results_folder, say
from collect.tables import write_text

SERVERS = "iterative,fork,thread,prefork,pool,epoll"
CLIENTS, SLOW, REQUESTS = 8, 1, 24
CLIENTS_MOST, REQUESTS_MOST = 64, 1000
TAKEN = frozenset({"servers", "slow", "requests"})
# A server that answers may still be making its workers.
SETTLE_SECONDS = 0.1
# Other programs disturb some plays.
PLAYS = 5


def replay(line: Line) -> Path:
    """Makes a page; returns its path."""
    _check(line)
    labels = _labels(line)
    load = Play(
        _number(line.values.get("clients"), "clients", CLIENTS, 1, CLIENTS_MOST),
        _number(line.overrides.get("slow"), "slow", SLOW, 0, CLIENTS_MOST),
        _number(line.overrides.get("requests"), "requests", REQUESTS, 1, REQUESTS_MOST),
        "crash" in line.flags,
    )
    build(crash=load.crash)
    _check_options(labels)
    page = _page(line)
    try:
        told = _told(line)
        scenes = _play_all(labels, load, page)
        write_text(page, page_of_replay(scenes, load, told))
    finally:
        if "output" not in line.values:
            _remove_if_empty(page.parent)
    return page


def _remove_if_empty(folder: Path) -> None:
    """Removes the folder of an interrupted replay, if it is empty."""
    with suppress(OSError):
        folder.rmdir()


def _check(line: Line) -> None:
    """Refuses what a replay does not take."""
    others = [*(set(line.overrides) - TAKEN), *(set(line.values) - {"clients", "output"})]
    others += sorted(line.flags - {"crash"})
    if line.words:
        fail(f"replay takes no more words, not '{' '.join(line.words)}'", 2)
    if others or line.resume is not None:
        name = sorted(others)[0] if others else "resume"
        known = ", ".join(
            f"--{word}" for word in ("servers", "clients", "slow", "requests", "crash")
        )
        fail(f"replay takes {known} and --output, not --{name}", 2)


def _number(text: str | None, name: str, usual: int, least: int, most: int) -> int:
    if text is None:
        return usual
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        fail(f"--{name} of a replay takes a number from {least} to {most}, not '{text}'", 2)
    return int(text)


def _labels(line: Line) -> list[str]:
    """The servers. Only those of this project write traces."""
    labels = [word.strip() for word in line.overrides.get("servers", SERVERS).split(",")]
    ours = our_servers()
    for label in labels:
        if recipe_name(label) not in ours:
            fail(f"--servers: `{label}` writes no trace; there are: {' '.join(ours)}", 2)
    if len(set(labels)) < len(labels):
        fail("--servers of a replay takes each server once", 2)
    return labels


def _check_options(labels: list[str]) -> None:
    for label in labels:
        command = check_command_of(label)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if options_of(label) and done.returncode:
            words = done.stderr.strip().splitlines()[:1]
            fail(f"--servers: `{label}`: {words[0] if words else 'refused'}", 2)


def _page(line: Line) -> Path:
    """The file of the page, in a folder that exists, or in a new one of the results. The traces
    are put beside it."""
    moment = f"{datetime.now():%Y%m%d-%H%M%S}"
    page = Path(line.values.get("output") or results_folder() / "replay" / moment / REPLAY_PAGE)
    if page.is_dir() or page.suffix != ".html":
        fail(f"--output of a replay takes a file NAME.html, not '{page}'", 2)
    if "output" in line.values and not page.parent.is_dir():
        fail(f"--output: there is no folder '{page.parent}'", 2)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"cannot make {page.parent}: {error.strerror}")
    return page


def _told(line: Line) -> Told:
    install([Need("/usr/lib/python3/dist-packages/jinja2", "python3-jinja2")])
    machine = describe_machine(())
    changed = machine.get("project_changed", "0 files") != "0 files"
    commit = machine.get("project_commit", "")
    about = {
        "processor_model": machine.get("processor_model", "a processor"),
        "processors": machine["processors"],
        "kernel": machine["kernel"],
        "commit": commit or machine.get("project_version", ""),
        "changed": "yes" if changed and commit else "",
    }
    words = [command_name(), "replay", *(f"--{flag}" for flag in line.flags)]
    for name, value in (*line.overrides.items(), *line.values.items()):
        words += [f"--{name}", shlex.quote(value)] if name != "output" else []
    return Told(f"{datetime.now():%d %B %Y, %H:%M}", " ".join(words), about)


def _play_all(labels: list[str], load: Play, page: Path) -> list[Scene]:
    scenes = []
    with study_lock(lambda: None), scratch() as work:
        documents = prepare_documents(work, (SMALL, BIG))
        servers = Servers(work, Accounting())
        try:
            for label in labels:
                say(f"replay: {label}")
                plays = [_play(servers, documents, label, load) for _ in range(PLAYS)]
                choose = typical if load.crash else quickest
                scene = choose([played for played, _ in plays])
                trace = next(text for played, text in plays if played.threads is scene.threads)
                if trace:
                    write_text(page.with_name(f"{page.stem}-{label}.json"), trace)
                scenes.append(scene)
        except ServerProblem as problem:
            fail(str(problem))
        finally:
            servers.stop_all()
    return scenes


def _play(servers: Servers, documents: Path, label: str, load: Play) -> tuple[Scene, str]:
    """Plays the load against one server. Returns what happened, and its trace."""
    setting = Setting(
        label=label, documents=documents, certificates=documents,
        workers=len(processors_allowed()), path=SMALL, traced=True,
        folder=CRASH_FOLDER if load.crash else None,
    )  # fmt: skip
    server = servers.start(label, setting)
    time.sleep(SETTLE_SECONDS)
    visits = play(server.address, load)
    servers.stop(label)
    trace = (server.folder / TRACE_FILE).read_text(encoding="utf-8")
    if not trace and not load.crash:
        fail(f"{label} left no trace: {server.last_words() or 'it said nothing'}")
    return _scene(label, trace, visits, load), trace


def _scene(label: str, trace: str, visits: list[Visit], load: Play) -> Scene:
    """Makes a scene of a play. A server whose first process crashed has left an empty trace."""
    about = describe(recipe_name(label))
    summary = str(about["summary"])
    for visit in visits:
        if visit.problem and not load.crash:
            say(f"replay: {label}: connection {visit.number}: {visit.problem}")
    if not any(visit.port for visit in visits):
        fail(f"no client could connect to {label}")
    if not trace:
        return scene_of_clients(label, str(about["version"]), summary, visits)
    try:
        read: Mapping[str, Any] = json.loads(trace)
    except ValueError as error:
        fail(f"the trace of {label} is no JSON: {error}")
    return scene_of(label, summary, read, visits)
