"""Control groups that count what a server costs.

A group counts everything that ever ran in it, reaped children included, exactly and without
touching the server. It must not change how the machine is shared between server and load
generator, so no group gets the `cpu` controller of its own: with it, a fork server with 30
processes would weigh as much as the one process of ab, instead of 30 times as much.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MARK = "fork-vs-thread."
# A process that was killed ends at once, unless it waits for a device.
KILL_SECONDS = 5.0


@dataclass(frozen=True)
class Group:
    """The control group of a server: options of `launch server` and `launch load`."""

    name: str = ""
    join: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    memory: Path | None = None

    def memory_bytes(self) -> int | None:
        """The memory of the group now; None where nothing counts it."""
        if not self.memory:
            return None
        for name in ("memory.usage_in_bytes", "memory.current"):
            try:
                return int((self.memory / name).read_text())
            except (OSError, ValueError):
                continue
        return None


@dataclass
class Accounting:
    """The way in which CPU time and memory are counted here, and the folders made for it."""

    method: str = "process clocks"
    cpu: Path | None = None
    memory: Path | None = None
    load_join: tuple[str, ...] = ()
    made: list[Path] = field(default_factory=list)

    def group(self, name: str, memory_limit: int | None = None) -> Group:
        """Makes a group, which may have so many MiB of memory."""
        join: list[str] = []
        read = list(self.load_join)
        if self.cpu:
            cpu = self.cpu / name
            cpu.mkdir(exist_ok=True)
            join += ["--join", str(cpu / "cgroup.procs")]
            usage = cpu / "cpuacct.usage"
            read += ["--cpu", str(usage if usage.exists() else cpu / "cpu.stat")]
        memory = self.memory / name if self.memory else None
        if memory:
            memory.mkdir(exist_ok=True)
            if memory_limit:
                _limit_memory(memory, memory_limit * 2**20)
            if self.memory != self.cpu:
                join += ["--join", str(memory / "cgroup.procs")]
            read += _memory_options(memory)
        return Group(name, tuple(join), tuple(read), memory)

    def end_group(self, group: Group) -> None:
        """Kills what is left in a group, and removes it. No process leaves a group by itself, as it
        may leave a session."""
        for folder in self.made:
            _kill_all(folder / group.name)
            _remove(folder / group.name)

    def end(self) -> None:
        for folder in self.made:
            if folder.is_dir():
                for group in [path for path in folder.iterdir() if path.is_dir()]:
                    _remove(group)
            _remove(folder)
        self.made.clear()


def _limit_memory(folder: Path, count: int) -> None:
    for name in ("memory.limit_in_bytes", "memory.max"):
        if (folder / name).exists():
            (folder / name).write_text(str(count))


def _memory_options(folder: Path) -> list[str]:
    if (folder / "memory.max_usage_in_bytes").exists():
        usage = folder / "memory.usage_in_bytes"
        return ["--current", str(usage), "--peak", str(folder / "memory.max_usage_in_bytes")]
    options = ["--current", str(folder / "memory.current")]
    if (folder / "memory.peak").exists():
        options += ["--peak", str(folder / "memory.peak")]
    return options


def _kill_all(folder: Path) -> None:
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        try:
            left = (folder / "cgroup.procs").read_text().split()
        except OSError:
            return
        if not left:
            return
        # A process of another name space has the number 0, which would be this process group.
        for pid in filter(None, map(int, left)):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return


def sweep(folder: Path) -> None:
    """Removes the groups that a killed study left behind; not those of one that runs."""
    for base in sorted(folder.glob(f"{MARK}*")):
        if not base.is_dir() or Path("/proc", base.name[len(MARK) :]).is_dir():
            continue
        for group in [path for path in base.iterdir() if path.is_dir()]:
            _remove(group)
        _remove(base)


def _make(mount: Path, own: str) -> Path | None:
    """Makes a folder for groups under the group of this process, or else at the top."""
    for parent in (mount / own.strip("/"), mount):
        folder = parent / f"{MARK}{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        return folder
    return None


def _own_groups(process: Path) -> dict[str, str]:
    """The group of this process by controller; that of cgroup v2 by an empty name."""
    own: dict[str, str] = {}
    for line in (process / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own.update(dict.fromkeys(controllers.split(","), path))
    return own


def _mounts(process: Path) -> dict[str, Path]:
    """Returns the mount points of cpuacct, memory (both of cgroup v1) and cgroup2."""
    mounts: dict[str, Path] = {}
    for line in (process / "mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            mounts["cgroup2"] = Path(mount)
        elif kind == "cgroup":
            for name in {"cpuacct", "memory"} & set(options.split(",")):
                mounts[name] = Path(mount)
    return mounts


def begin(process: Path = Path("/proc/self")) -> Accounting:
    """Finds out how this machine counts, and makes the folders."""
    accounting = Accounting()
    mounts = _mounts(process)
    own = _own_groups(process)
    if mount := mounts.get("cpuacct"):
        sweep(mount)
        accounting.cpu = _make(mount, own.get("cpuacct", ""))
    if mount := mounts.get("memory"):
        sweep(mount / own.get("memory", "").strip("/"))
        accounting.memory = _make(mount, own.get("memory", ""))
    if accounting.cpu:
        accounting.method = "cgroup v1 cpuacct" + (" and memory" if accounting.memory else "")
    elif mount := mounts.get("cgroup2"):
        _begin_two(accounting, mount, own.get("", ""))
    folders = {accounting.cpu, accounting.memory} - {None}
    accounting.made = sorted(folder for folder in folders if folder)
    return accounting


def _begin_two(accounting: Accounting, mount: Path, own: str) -> None:
    """Makes the groups of cgroup v2: at the top, with the memory controller alone, server and load
    generator side by side in one group; where that is not allowed, a group without any controller,
    which counts CPU time all the same."""
    sweep(mount)
    if _begin_with_memory(accounting, mount):
        return
    folder = _make(mount, own)
    if folder is None:
        return
    try:
        counts = "usage_usec" in (folder / "cpu.stat").read_text()
        if counts and _may_join(folder):
            accounting.cpu = folder
            accounting.method = "cgroup v2 cpu.stat, sampled PSS without pages of files"
            return
    except OSError:
        pass
    _remove(folder)


def _begin_with_memory(accounting: Accounting, mount: Path) -> bool:
    folder = mount / f"{MARK}{os.getpid()}"
    try:
        if "memory" not in (mount / "cgroup.controllers").read_text().split():
            return False
        folder.mkdir()
    except OSError:
        return False
    try:
        (mount / "cgroup.subtree_control").write_text("+memory")
        (folder / "cgroup.subtree_control").write_text("+memory")
        (folder / "load").mkdir()
    except OSError:
        _remove(folder)
        return False
    accounting.cpu = accounting.memory = folder
    accounting.load_join = ("--join", str(folder / "load" / "cgroup.procs"))
    accounting.method = "cgroup v2 cpu.stat and memory"
    return True


def _may_join(folder: Path) -> bool:
    """Returns true if a process may enter the group: a child tries."""
    child = os.fork()
    if child == 0:
        try:
            (folder / "cgroup.procs").write_text("0")
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
