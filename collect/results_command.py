"""The command results: lists results folders and replays, opens a report, removes results."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from collect.campaign import CAMPAIGN_FILE
from collect.live_page import PAGE as LIVE_PAGE
from collect.live_page import STATE as LIVE_STATE
from collect.measure.run_plan import LOCK_FILE, RAW_FILE
from collect.new_results_folder import is_unfinished
from collect.options import Line
from collect.project import (
    MACHINE_FILE,
    PLAN_FILE,
    REPLAY_PAGE,
    RUNS_FILE,
    STUDY_FILE,
    command_from_here,
    command_name,
    fail,
    results_folder,
)
from collect.readable_numbers import plural
from collect.schema import TABLES
from collect.tables import whole_lines

PAGE = "index.html"
# The files and folders that studies and replays write, and the suffix of a file until it is whole.
FILES = frozenset(
    {table.file for table in TABLES}
    | {STUDY_FILE, MACHINE_FILE, CAMPAIGN_FILE, RAW_FILE, LOCK_FILE, PAGE, "report.md"}
    | {LIVE_PAGE, LIVE_STATE, "raw.part", REPLAY_PAGE}
)
FOLDERS = frozenset({"figures", "configurations"})
REPLAY_TRACE = re.compile(r"replay-.+\.json")
TEMPORARY = re.compile(r"(?<=[a-z])\.[a-z0-9_]{8}$")
FINISHED, INTERRUPTED, RUNNING = "finished", "interrupted", "running"


@dataclass(frozen=True)
class Results:
    """A results folder."""

    folder: Path
    runs: int
    planned: int
    bytes: int
    state: str


def is_results(folder: Path) -> bool:
    return (folder / PLAN_FILE).is_file() and (folder / STUDY_FILE).is_file()


def _parts(folder: Path) -> list[Path]:
    """Returns the results folders of a campaign; of another folder that folder."""
    return [path.parent for path in sorted(folder.glob(f"*/{PLAN_FILE}"))] or [folder]


def _is_ours(folder: Path) -> bool:
    """Returns true for a results folder and for a campaign. A link is neither: what it leads to
    may be anything."""
    return not folder.is_symlink() and (is_results(folder) or (folder / CAMPAIGN_FILE).is_file())


@contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Holds the locks of a folder, so that no study begins to write there; yields false where one
    is writing."""
    files = []
    try:
        for part in _parts(folder):
            path = part / LOCK_FILE
            if path.is_file():
                files.append(path.open("rb"))
                fcntl.flock(files[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        for file in files:
            file.close()


def _lines(path: Path) -> int:
    """Returns the number of rows of a table."""
    return max(len(whole_lines(path)) - 1, 0) if path.is_file() else 0


def _bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def _look(folder: Path) -> Results:
    parts = _parts(folder)
    with _held(folder) as free:
        pass
    unfinished = any(map(is_unfinished, parts))
    return Results(
        folder,
        runs=sum(_lines(part / RUNS_FILE) for part in parts),
        planned=sum(_lines(part / PLAN_FILE) for part in parts),
        bytes=_bytes(folder),
        state=RUNNING if not free else INTERRUPTED if unfinished else FINISHED,
    )


def all_results() -> list[Results]:
    """Returns all results folders and campaigns, the latest last."""
    found = [path for path in results_folder().glob("*/*") if path.is_dir() and _is_ours(path)]
    return [_look(path) for path in sorted(found, key=lambda path: (path.name, path))]


HOW = f"{command_from_here()} --quick measures this machine, in a minute or two"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.0f} kB"


def _replays() -> list[Path]:
    """Returns the pages of replays, the latest last."""
    return sorted((results_folder() / "replay").glob(f"*/{REPLAY_PAGE}"))


def _is_replay(folder: Path) -> bool:
    return (
        not folder.is_symlink()
        and folder.absolute().parent.name == "replay"
        and (folder / REPLAY_PAGE).is_file()
    )


def _list() -> None:
    results, replays = all_results(), _replays()
    if not results and not replays:
        print(f"There are no results yet: {HOW}")
        return
    if results:
        _list_results(results)
    if results and replays:
        print()
    if replays:
        print("Replays")
    for page in replays:
        print(page)


def _list_results(results: list[Results]) -> None:
    width = max(len(str(one.folder)) for one in results)
    print(f"{'Folder':<{width}}  {'Runs':>13}  {'Size':>8}  State")
    for one in results:
        runs = f"{one.runs} of {one.planned}"
        print(f"{one.folder!s:<{width}}  {runs:>13}  {_size(one.bytes):>8}  {one.state}")


def _named(words: list[str]) -> list[Path]:
    """The folders that a command line names."""
    for word in words:
        if not _is_ours(Path(word)):
            fail(f"{word} is not a results folder", 2)
    return [Path(word) for word in words]


def _open(words: list[str]) -> None:
    """Opens a report in the browser, where there is one, and prints its address."""
    if len(words) > 1:
        fail(f"usage: {command_name()} results open [DIR]", 2)
    if words and _is_replay(Path(words[0])):
        pages = [Path(words[0]) / REPLAY_PAGE]
    else:
        folders = _named(words) or [one.folder for one in all_results()]
        pages = [part / PAGE for folder in folders for part in _parts(folder)]
        pages = [page for page in pages if page.is_file()]
    if not pages:
        fail(f"{words[0]} has no report yet" if words else f"there is no report yet: {HOW}")
    page = max(pages, key=lambda path: path.stat().st_mtime)
    print(page.resolve().as_uri())
    has_screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    opener = shutil.which("xdg-open")
    if has_screen and opener:
        subprocess.run(
            [opener, str(page.resolve())], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip


def _remove(folder: Path) -> bool:
    """Removes what studies write into a folder, and the folder if nothing else is in it. Returns
    whether it is gone."""
    for path in folder.iterdir():
        name = TEMPORARY.sub("", path.name)
        if path.is_dir() and not path.is_symlink():
            if name in FOLDERS:
                shutil.rmtree(path)
            elif is_results(path):
                _remove(path)
        elif name in FILES or REPLAY_TRACE.fullmatch(name):
            path.unlink()
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def _clean(words: list[str], is_agreed: bool) -> None:
    """Removes results folders and replays: those that are named, or all. It asks before."""
    replays = [path for path in map(Path, words) if _is_replay(path)]
    named = _named([word for word in words if Path(word) not in replays])
    results = [_look(path) for path in named]
    if not words:
        results, replays = all_results(), [page.parent for page in _replays()]
    running = [one for one in results if one.state == RUNNING]
    if running and named:
        fail(f"a study is being measured into {running[0].folder}: nothing was removed")
    results = [one for one in results if one.state != RUNNING]
    if not results and not replays:
        print("There is nothing to remove")
        return
    for one in results:
        print(f"{one.folder}  {one.runs} of {one.planned} runs, {_size(one.bytes)}, {one.state}")
    for folder in replays:
        print(f"{folder}  a replay, {_size(_bytes(folder))}")
    count = plural(len(results) + len(replays), "folder", "folders")
    size = sum(one.bytes for one in results) + sum(map(_bytes, replays))
    if not is_agreed and not _asked(f"Remove {count} with all runs? [y/N] "):
        print("Nothing was removed")
        return
    for one in results:
        with _held(one.folder) as free:
            if not free:
                fail(f"a study is being measured into {one.folder}: it was not removed")
            _remove_and_tell(one.folder)
    for folder in replays:
        _remove_and_tell(folder)
    print(f"{count} removed, {_size(size)}")


def _remove_and_tell(folder: Path) -> None:
    if not _remove(folder):
        print(f"{folder} holds other things, which were left")


def _asked(question: str) -> bool:
    if not sys.stdin.isatty():
        fail("nothing was removed: there is no terminal to ask at; --yes removes without asking", 2)
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def results_command(line: Line) -> None:
    """Carries out ./dcollect.sh results."""
    what, words = (line.words[0], line.words[1:]) if line.words else ("list", [])
    if what == "list" and not words:
        _list()
    elif what == "open":
        _open(words)
    elif what == "clean":
        _clean(words, "yes" in line.flags)
    else:
        fail(f"usage: {command_name()} results [list | open [DIR] | clean [--yes] [DIR]...]", 2)
