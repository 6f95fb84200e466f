"""The parts that every trial is made of: its description, what it is given, and the rows that it makes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
CLIENTS = PROJECT / "collect/clients"
CRASH_BUILD = PROJECT / "build/crash"


@dataclass(frozen=True)
class Row:
    """One measured value. The rows of a case are a table: a line for each server, a column for each
    measure.

    times   how often it was tried: stops, upgrades, requests
    limit   what passes; empty where nothing is judged, as with peers
    verdict pass, FAIL or skip; empty without a limit
    """

    server: str
    case: str
    times: str
    measure: str
    value: str
    limit: str = ""
    verdict: str = ""


@dataclass
class Context:
    """The settings of a trial.

    quick     the short form: few clients, few repetitions, no peers, and no time is judged
    models    our servers
    peers     nginx, lighttpd, apache, as far as they are wanted
    work      a folder for its files, which is removed at the end
    """

    quick: bool
    models: list[str]
    peers: list[str]
    work: Path
    soak: float
    say: Callable[[str], None]
    number: int = 0

    def folder(self, mode: int = 0o755) -> Path:
        """Makes an empty folder that the users of the servers may read."""
        self.number += 1
        path = self.work / str(self.number)
        path.mkdir()
        path.chmod(mode)
        return path

    def case(self, server: str, name: str, times: int = 1) -> Case:
        return Case(self, server, name, times)


@dataclass(frozen=True)
class Case:
    """What is tried with one server, and how often; makes the rows of what happened."""

    context: Context
    server: str
    name: str
    times: int

    def fact(self, measure: str, value: object) -> Row:
        """A row without a limit."""
        return Row(self.server, self.name, str(self.times), measure, str(value))

    def judge(
        self, measure: str, value: float, most: float, unit: str = "", *, is_time: bool = False
    ) -> Row:
        """A row of a server of ours with a limit, or of a peer, which has none. The short form
        judges no times: other programs share the machine with it."""
        told = f"{value}{unit}"
        if self.server in self.context.peers or (self.context.quick and is_time):
            return self.fact(measure, told)
        verdict = "pass" if value <= most else "FAIL"
        limit = f"at most {most:g}{unit}"
        return Row(self.server, self.name, str(self.times), measure, told, limit, verdict)

    def premise(self, missing: str, holds: bool) -> Iterator[Row]:
        """Yields a row if the trial lacked what it rests on: the other rows then say nothing."""
        if not holds:
            yield self.judge(f"not tried: {missing}", 1, 0)

    def served(self, answers: bool) -> Row:
        """A row of whether the server serves when all is over."""
        return self.judge("does not serve afterwards", int(not answers), 0)


@dataclass(frozen=True)
class Trial:
    """A trial: `tried` says what is done, `counted` what is counted and what passes."""

    name: str
    title: str
    tried: str
    counted: str
    run: Callable[[Context], Iterator[Row]]
    needs: dict[str, str] = field(default_factory=dict)
    peers: str = ""
    again: str = ""  # options that the published figures were made with
    whole: bool = True  # false: it is too long for a run of all trials, and is run by its name


@cache
def describe(model: str) -> dict[str, Any]:
    """Returns what one of our servers says of itself, by --describe."""
    command = [str(PROJECT / f"{model}_server"), "--describe"]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))


def makes_processes(model: str) -> bool:
    return bool(describe(model)["makes"] == "processes")


def has_option(model: str, name: str) -> bool:
    return any(option["name"] == name for option in describe(model)["options"])


def default_of(model: str, setting: str) -> int:
    return int(describe(model)["defaults"][setting] or 0)


def default_connections(model: str) -> int:
    return default_of(model, "max_connections")


def serves_one(model: str) -> bool:
    """Returns true for a model of one connection at a time."""
    return default_connections(model) == 1


def skipped(server: str, case: str, why: str) -> Row:
    return Row(server, case, "0", "not tried", why, "", "skip")
