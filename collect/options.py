"""The options of ./dcollect.sh: one table, for the command line and for --help."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collect.design.factors import FACTORS
from collect.project import command_name, fail

INDENT = 35
WIDTH = 100


@dataclass(frozen=True)
class Option:
    """An option. `value` names what follows it; "" for none; [DIR] may be left out."""

    name: str
    value: str
    help: str

    @property
    def text(self) -> str:
        return f"--{self.name} {self.value}".rstrip()


GENERAL = (
    Option("quick", "", "about a minute: fewer levels and repetitions"),
    Option("list", "", "the studies: how long each takes, and what it asks"),
    Option("live", "", "write a page that fills while the study runs, and say where it is"),
    Option("resume", "[DIR]", "finish an interrupted study or campaign (the latest, without DIR)"),
    Option("output", "DIR", "put the results there (results/STUDY/DATE-TIME)"),
    Option("seed", "N", "the seed of the order of the runs"),
    Option("help", "", "print this"),
    Option("version", "", "print the version"),
)
SERVERS_HELP = (
    "ours, and floor-fork floor-thread floor-one nginx lighttpd apache-prefork apache-worker "
    "apache-event, and the proxies squid trafficserver; all: every one that is not named, without "
    "the proxies, ours with all their ways; "
    "'NAME=cmd:./my_server {port} {root}': any other program that speaks HTTP"
)
EVERY_RUN = (
    Option("baseline", "SERVER", "what the others are compared with (the first)"),
    Option("link", "RATE", "a link of that rate between server and load, such as 20mbit"),
    Option(
        "load-hosts", "HOSTS", "the load comes from these machines, by ssh: [USER@]HOST, and commas"
    ),
    Option("server-host", "HOST", "the name or address by which the load hosts reach this machine"),
    Option("rate", "N", "connections a second (httperf, at concurrency 1), or requests (open)"),
    Option("duration", "S", "seconds a run (wrk, open)"),
    Option("timeout", "S", "a run that takes longer than S seconds is invalid (60)"),
)
REPETITIONS = Option("repetitions", "32", "how often everything is measured")
CAMPAIGN = (
    Option("rounds", "N", "stop when each study has so many rounds (8)"),
    Option("hours", "H", "stop when so many hours have passed"),
)
REPLAY = (
    Option("clients", "N", "fast clients at once (8)"),
    Option("crash", "", "one of the requests crashes the process that serves it"),
    Option("output", "FILE", "the page, NAME.html; the traces are put beside it"),
)
RESULTS = (Option("yes", "", "results clean removes without asking"),)
FORMATS = ("csv", "json", "benchstat")
EXPORT = (Option("to", "FORMAT", "csv, json or benchstat"),)
FLAGS = frozenset({"quick", "list", "help", "version", "crash", "yes", "live"})


def _factors() -> list[Option]:
    options = []
    for factor in FACTORS:
        words = SERVERS_HELP if factor.name == "server" else factor.help
        options.append(Option(factor.key, factor.example, words))
        if factor.name == "requests":
            options.append(REPETITIONS)
    return options


FACTOR_OPTIONS = tuple(_factors())
OVERRIDES = frozenset(option.name for option in (*FACTOR_OPTIONS, *EVERY_RUN))
OF_COMMANDS = (*CAMPAIGN, *REPLAY, *RESULTS, *EXPORT)
NAMES = OVERRIDES | FLAGS | {option.name for option in (*GENERAL, *OF_COMMANDS)}

USAGE = """\
Usage: ./dcollect.sh [OPTION]... [STUDY]
       ./dcollect.sh campaign [OPTION]... [STUDY]...
       ./dcollect.sh replay [OPTION]...
       ./dcollect.sh results [list | open [DIR] | clean [--yes] [DIR]...]
       ./dcollect.sh report DIR
       ./dcollect.sh compare DIR DIR...
       ./dcollect.sh export DIR --to FORMAT
       ./dcollect.sh pack DIR
       ./dcollect.sh overview
       ./dcollect.sh paper [FILE.pdf]
       ./dcollect.sh completion

Measures web servers on this machine, and writes a report with figures. Without a study:
fork-vs-thread, requests/s against concurrency, one process or one thread per connection.
"""
COMMANDS = (
    (
        "campaign [STUDY]...",
        "measure studies (all, without STUDY) round by round: each round starts the servers "
        "again, and intervals come from the rounds. --resume goes on, also on another day",
    ),
    (
        "replay",
        "play the same load against our servers (--servers, --clients, --slow, --requests), and "
        "make one page that shows what each of their processes and threads did",
    ),
    (
        "results",
        "list the results folders and replays (also: results list); `results open` opens the "
        "latest report, or that of DIR; `results clean` removes all results, or DIR, and asks "
        "before",
    ),
    ("report DIR", "build figures and report of a results folder again, from its tables alone"),
    ("compare DIR DIR...", "show the ratios of several results folders of a study side by side"),
    ("export DIR", "print the tables of a results folder in another format"),
    ("pack DIR", "make one file of a results folder, to send to others"),
    (
        "overview",
        "build the pages that lead to the published studies (report/index.html), to the verdicts "
        "on all claims (report/claims.html), to the paper (report/paper.html) and to what another "
        "day shows (report/repeated.html), and what the README shows of them",
    ),
    (
        "paper [FILE.pdf]",
        "make a PDF (results/paper.pdf) of the paper that puts the published studies together",
    ),
    ("completion", "print what completes these commands and options in bash"),
)
STATUSES = (
    ("0", "done"),
    ("1", "anything else"),
    ("2", "wrong usage"),
    ("3", "done, but some runs are invalid; their rows say why"),
    ("130", "interrupted"),
)


def _lines(title: str, entries: Iterable[tuple[str, str]], indent: int = 23) -> str:
    """A part of the help: a title, and entries with their texts in a column."""
    lines = [f"{title}:"]
    for head, text in entries:
        words = textwrap.wrap(text, WIDTH - indent)
        lines += [f"  {head}".ljust(indent - 2) + "  " + words[0]]
        lines += [" " * indent + line for line in words[1:]]
    return "\n".join(lines) + "\n"


def _options(title: str, options: Iterable[Option], indent: int = 23) -> str:
    return _lines(title, ((option.text, option.help) for option in options), indent)


def help_text() -> str:
    """Returns the text of --help."""
    parts = (
        USAGE.replace("./dcollect.sh", command_name()),
        _lines("Commands", COMMANDS),
        _options("Options", GENERAL),
        _options(
            "Factors: each takes a list, or ranges of numbers, in place of what the study says",
            FACTOR_OPTIONS,
            INDENT,
        ),
        _options("Options of all runs", EVERY_RUN),
        _options("Options of a campaign", CAMPAIGN),
        _options("Options of a replay", REPLAY),
        _options("Options of results", RESULTS),
        _options("Options of an export", EXPORT),
        _lines("Exit status", STATUSES, 8),
    )
    return "\n".join(parts).rstrip("\n")


@dataclass
class Line:
    """A parsed command line."""

    flags: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    resume: str | None = None


def parse(arguments: Sequence[str]) -> Line:
    """Parses a command line."""
    line = Line()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "-h":
            argument = "--help"
        if not argument.startswith("-") or argument == "-":
            line.words.append(argument)
            continue
        name, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or name not in NAMES:
            fail(f"there is no option '{argument}'; see --help", 2)
        if name == "resume":
            line.resume = value if equals else _resumed(rest)
        elif name in FLAGS:
            line.flags.add(name)
        else:
            _take_value(line, name, value if equals else (rest.pop(0) if rest else ""))
    return line


def _resumed(rest: list[str]) -> str:
    """The folder behind --resume; a word without a slash that is no folder is a study."""
    if rest and ("/" in rest[0] or Path(rest[0]).is_dir()):
        return rest.pop(0)
    return ""


def _take_value(line: Line, name: str, value: str) -> None:
    value = re.sub(r"\s*\n\s*", " ", value.strip())
    if not value or "\t" in value:
        fail(f"--{name} needs a value; see --help", 2)
    numbers = {"seed", "rate", "duration", "timeout", "rounds"}
    if name in numbers and not (value.isascii() and value.isdigit() and len(value) < 10):
        fail(f"--{name} takes a number, not '{value}'", 2)
    if name in OVERRIDES:
        line.overrides[name] = value
    else:
        line.values[name] = value
