"""The processes of a server, from outside: which there are, what they hold, and how they end."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trials.patience import patience

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Makes this process the parent of all orphans below it, so that no server gets lost when the
    process that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _stat(pid: int) -> tuple[str, int] | None:
    """The state of a process and its parent."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return words[0], int(words[1])


def children() -> dict[int, list[int]]:
    """All processes by their parents."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(int(name))):
            found.setdefault(stat[1], []).append(int(name))
    return found


def tree(root: int) -> list[int]:
    """A process and all below it; the process itself comes first."""
    by_parent = children()
    found = [root]
    for pid in found:
        found += by_parent.get(pid, [])
    return [pid for pid in found if Path(f"/proc/{pid}").exists()]


def group_of(pid: int) -> int:
    """The process group of a process; 0 where there is no such process."""
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def wait_until(condition: Callable[[], bool], seconds: float, pause: float = 0.01) -> bool:
    """Waits until a condition holds; returns false if it does not in that time."""
    deadline = time.monotonic() + patience(seconds)
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def reap() -> None:
    """Collects all adopted processes that have ended. Not for those that Popen objects wait for."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end_all() -> None:
    """Kills all processes below this one, and those that these leave behind, until none is left."""
    for _ in range(200):
        below = [pid for pid in tree(os.getpid()) if pid != os.getpid()]
        if not below:
            return
        for pid in below:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        reap()
        time.sleep(0.01)


def descriptors_of(pid: int) -> int:
    """How many descriptors a process has; 0 where there is no such process."""
    return _entries(f"/proc/{pid}/fd")


def address_space_of(pid: int) -> int:
    """Returns how many bytes of address space a process uses; 0 if it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    return 0


def threads_of(pid: int) -> int:
    return _entries(f"/proc/{pid}/task")


def _entries(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


@dataclass(frozen=True)
class Held:
    """The resources that the processes of a server hold at one moment."""

    kib: int  # the proportional share of memory, without pages of files
    descriptors: int
    processes: int
    zombies: int


def held(root: int) -> Held:
    kib = descriptors = processes = zombies = 0
    for pid in tree(root):
        stat = _stat(pid)
        if stat is None:
            continue
        processes += 1
        zombies += stat[0] == "Z"
        descriptors += descriptors_of(pid)
        with suppress(OSError, ValueError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss_Anon:"):
                    kib += int(line.split()[1])
    return Held(kib, descriptors, processes, zombies)


def held_at_rest(root: int, still: float = 0.2) -> Held:
    """What a server holds once it has held the same for so many seconds, or ten seconds more have
    passed. While processes begin or end, the shares of memory do not add up: one that was looked at
    before others ended had to share with them."""
    since = time.monotonic()
    end = since + still + patience(10)
    last = held(root)
    while time.monotonic() < min(since + still, end):
        time.sleep(0.2)
        now = held(root)
        if now != last:
            last, since = now, time.monotonic()
    return last
