"""Makes a results folder with a plan from a study and the command line."""

from __future__ import annotations

import os
import random
import shlex
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from collect.check_study_names import check_names
from collect.design.plan import (
    Cells,
    check_ballast,
    check_baseline,
    check_commands,
    check_servers,
    check_workers,
    plan_sitting,
)
from collect.design.study import (
    Study,
    given_toml,
    load_study,
    read_toml,
    source_of,
    study_of,
    study_path,
)
from collect.expected_time import expected_seconds
from collect.install_and_build import ANALYSIS, build, install
from collect.measure import instruments, load_hosts, loads, machine, study_network
from collect.measure.check_user_servers import try_commands
from collect.measure.server_commands import (
    Need,
    expand,
    has_workers,
    is_installed,
    is_peer,
    lacks_of,
    module_of,
    need_of,
)
from collect.options import Line
from collect.project import (
    MACHINE_FILE,
    PLAN_FILE,
    PROJECT,
    RUNS_FILE,
    STUDY_FILE,
    command_name,
    fail,
    results_folder,
    say,
)
from collect.readable_numbers import about_time, join_text, plural
from collect.schema import PLAN
from collect.tables import read_table, write_table, write_text

# More servers are counted, not named, when a study begins.
MOST_NAMED = 8


def draft(path: Path, line: Line) -> tuple[Study, Cells, dict[str, Any]]:
    """Reads a study with what the command line adds; returns it, its cells and what was added."""
    given: dict[str, Any] = {"name": path.stem}
    if "quick" in line.flags:
        given["quick"] = True
    given |= line.overrides
    given["seed"] = int(line.values.get("seed") or random.randrange(1 << 30))
    data = read_toml(path)
    text = path.read_text(encoding="utf-8")

    def read() -> Study:
        whole = {**data, "given": given}
        return study_of(whole, path.stem, source_of(whole, _told(path), text))

    study = read()
    baseline_matters = "servers" not in given or "baseline" in given
    if "all" in study.levels["server"]:
        build()
        given["servers"] = study.server_texts(expand(study.levels["server"]))
        study = read()
    source = source_of({**data, "given": given}, _told(path), text)
    check_names(study, replace(source, options=frozenset(line.overrides)))
    if study.commands:
        given["directory"] = str(Path(study.directory).absolute())
        study = read()
    cells = machine.cells_here(study)
    check_commands(study, cells)
    check_servers(study, cells)
    check_ballast(study, lambda label: not is_peer(label))
    check_workers(study, has_workers)
    if baseline_matters:
        check_baseline(study)
    present = present_servers(study)
    if present != list(study.levels["server"]):
        given["servers"] = study.server_texts(present)
        study = read()
        cells = machine.cells_here(study)
    for why, count in cells.left_out.items():
        say(f"study: {why}: {count} cells are left out")
    return study, cells, given


def _told(path: Path) -> str:
    """Returns the name of a study file in messages."""
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else str(path)


def present_servers(study: Study) -> list[str]:
    """Leaves servers out that this machine does not have, with the command that installs them."""
    kept = []
    for label in study.levels["server"]:
        needs = (need_of(label), module_of(label, study.levels["service"]))
        missing = [need.package for need in needs if need and not is_installed(need.program)]
        lacks = lacks_of(label)
        if missing:
            packages = " ".join(missing)
            say(f"dcollect: {label} is not installed, and left out: apt-get install {packages}")
        elif lacks:
            say(f"dcollect: {label} cannot run on this machine, and is left out: it needs {lacks}")
        else:
            kept.append(label)
    if not kept:
        fail("none of the servers is installed")
    return kept


def needs_of(study: Study) -> list[Need]:
    """The programs that the runs of a study need."""
    # The floors are always asked by ab.
    names = dict.fromkeys(("ab", *study.levels["load"]))
    if "open" in names and not study.rate and "on" in study.levels["keepalive"]:
        names["wrk"] = None  # it finds the capacity for kept connections
    needs = [loads.NEEDS[name] for name in names if name in loads.NEEDS]
    needs += [instruments.NEEDS[name] for name in study.instruments]
    if study.link:
        if problem := study_network.problem():
            fail(problem)
        needs += study_network.NEEDS
    elif study.load_hosts:
        needs += load_hosts.NEEDS
    elif study.client_ports and os.geteuid() == 0:
        needs.append(Need("ip", "iproute2"))
    if "https" in study.levels["scheme"]:
        needs.append(Need("openssl", "openssl"))
    return needs


def prepare(study: Study) -> None:
    """Installs and builds what a study needs."""
    if study.server_host:
        load_hosts.address_of(study.server_host)
    install([*ANALYSIS, *needs_of(study)])
    build(crash=study.fault is not None)
    try_commands(study)


def command_text(line: Line, study: Study, word: str, command: str = "") -> str:
    """The command that reproduces a study."""
    parts = [command_name(), *([command] if command else [])]
    parts += ["--quick"] if study.quick else []
    for name, value in line.overrides.items():
        parts += [f"--{name}", shlex.quote(value)]
    return " ".join([*parts, "--seed", str(study.seed), word])


def write_folder(
    folder: Path, path: Path, study: Study, given: dict[str, Any], pairs: dict[str, str],
    rows: list[dict[str, str]],
) -> None:  # fmt: skip
    """Writes study, machine and plan. The plan comes last: where it is, there is a study to go on
    with."""
    folder.mkdir(parents=True, exist_ok=True)
    peers = [need.program for label in study.levels["server"] if (need := need_of(label))]
    programs = [*(need.program for need in needs_of(study)), *peers]
    described = machine.describe(sorted(set(programs)))
    lines = {**pairs, "seed": str(study.seed), **described}
    text = "".join(f"{key}\t{value}\n" for key, value in lines.items())
    write_text(folder / MACHINE_FILE, text)
    text = path.read_text(encoding="utf-8")
    write_text(folder / STUDY_FILE, text + given_toml(given))
    write_table(folder / PLAN_FILE, PLAN.names, rows)


def new_folder(line: Line, name: str) -> Path:
    """The folder of a new study. Without --output it is below `results`."""
    output = line.values.get("output")
    moment = f"{datetime.now():%Y%m%d-%H%M%S}"
    folder = Path(output) if output else results_folder() / name / moment
    if (folder / PLAN_FILE).exists():
        fail(f"{folder} holds a study already; go on with --resume {folder}", 2)
    return folder


def start(line: Line) -> Path:
    """Makes a results folder of a new study."""
    word = line.words[0] if line.words else "fork-vs-thread"
    path = study_path(word)
    study, cells, given = draft(path, line)
    prepare(study)
    folder = new_folder(line, study.name)
    rows = plan_sitting(study, cells)
    pairs = {"study": study.name, "command": command_text(line, study, word)}
    try:
        write_folder(folder, path, study, given, pairs, rows)
    except OSError as error:
        fail(f"cannot make {folder}: {error}")
    seconds = expected_seconds(study, cells)
    time = f", about {about_time(seconds)}" if seconds else ""
    say(f"Study {study.name}: {plural(len(rows), 'run', 'runs')} of {_servers_text(study)}{time}")
    say(f"Results: {folder}; at the end report.md and index.html are there")
    return folder


def _servers_text(study: Study) -> str:
    """The servers of a study, where they are few enough to be read."""
    labels = study.levels["server"]
    return join_text(labels) if len(labels) <= MOST_NAMED else f"{len(labels)} servers"


def is_unfinished(folder: Path) -> bool:
    plan, runs = folder / PLAN_FILE, folder / RUNS_FILE
    if not plan.is_file() or not (folder / STUDY_FILE).is_file():
        return False
    made = len(read_table(runs, key="run").rows) if runs.is_file() else 0
    return made < len(read_table(plan).rows)


def unfinished(line: Line) -> Path:
    """The results folder of an interrupted study."""
    if line.overrides or line.flags - {"live"} or line.values:
        fail("--resume goes on with the plan as it is, and takes no other option but --live", 2)
    if line.resume:
        folder = Path(line.resume)
        if not (folder / PLAN_FILE).is_file() or not (folder / STUDY_FILE).is_file():
            fail(f"{folder} holds no plan to go on with", 2)
    else:
        name = line.words[0] if line.words else "*"
        found = [path for path in results_folder().glob(f"{name}/*") if is_unfinished(path)]
        if not found:
            fail("no study was interrupted here", 2)
        folder = max(found, key=lambda path: (path / PLAN_FILE).stat().st_mtime)
    prepare(load_study(folder / STUDY_FILE))
    say(f"Going on with {folder}")
    return folder
