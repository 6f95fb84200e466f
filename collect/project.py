"""The paths of the project's folders, and of the files of a results folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

PROJECT = Path(__file__).resolve().parent.parent
COLLECT = PROJECT / "collect"
CLIENTS = COLLECT / "clients"
STUDIES = PROJECT / "studies"
DATA = PROJECT / "data"
PUBLISHED = PROJECT / "report"
# Servers that one request crashes, by `make crash`.
CRASH_FOLDER = PROJECT / "build" / "crash"

# The files of a results folder, in the order in which the stages write them.
STUDY_FILE = "study.toml"
PLAN_FILE = "plan.tsv"
RUNS_FILE = "runs.tsv"
MACHINE_FILE = "machine.tsv"
REPLAY_PAGE = "replay.html"
CALIBRATION_FILE = "calibration.tsv"
CAPACITY_FILE = "capacity.tsv"
ROUNDS_FILE = "rounds.tsv"
HISTOGRAMS_FILE = "histograms.tsv.gz"
SUMMARY_FILE = "summary.tsv"
COMPARISONS_FILE = "comparisons.tsv"
AVERAGES_FILE = "averages.tsv"
SYSTEM_CALLS_FILE = "system_calls.tsv"
STACKS_FILE = "stacks.tsv.gz"
ANATOMY_FILE = "anatomy.tsv"
CLAIMS_FILE = "claims.tsv"
THREATS_FILE = "threats.tsv"


class StudyError(Exception):
    """A problem that the user can solve; the message is one line."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def is_source_tree() -> bool:
    """Tells a source tree, which is built and holds results, from an installed copy."""
    return (PROJECT / "Makefile").is_file()


def _is_elsewhere() -> bool:
    """Returns true if the source tree is used from another folder."""
    return is_source_tree() and Path.cwd() != PROJECT


def results_folder() -> Path:
    """Returns the folder of all results: in the source tree; of an installed copy in the working
    folder."""
    return PROJECT / "results" if _is_elsewhere() else Path("results")


def command_name() -> str:
    """Returns the name of this command, as people type it in its folder."""
    return "./dcollect.sh" if is_source_tree() else "dcollect"


def command_from_here() -> str:
    """Returns what people type to run this command where they are."""
    return str(PROJECT / "dcollect.sh") if _is_elsewhere() else command_name()


def server_folder() -> Path:
    """Returns the folder of our servers: that of the project, or SERVER_FOLDER."""
    return Path(os.environ.get("SERVER_FOLDER") or PROJECT)


def fail(message: str, status: int = 1) -> NoReturn:
    """Ends the command with one line on standard error."""
    raise StudyError(message, status)


def say(message: str) -> None:
    """Prints a line on standard error, over a line of progress where there is one."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    sys.stderr.write(message + "\n")
    sys.stderr.flush()
