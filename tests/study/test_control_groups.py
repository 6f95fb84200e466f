"""Control groups of a kernel that is played: version 1, version 2 with and without memory, none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from collect.measure import control_groups
from collect.project import CLIENTS

OURS = f"fork-vs-thread.{os.getpid()}"
# The files that a kernel puts into each new folder below a mount, by the name of the mount.
FILES = {
    "cpuacct": {"cgroup.procs": "", "cpuacct.usage": "0"},
    "memory": {
        "cgroup.procs": "", "memory.usage_in_bytes": "4096", "memory.max_usage_in_bytes": "8192",
        "memory.limit_in_bytes": "none",
    },
    "unified": {
        "cgroup.procs": "", "cgroup.controllers": "cpu memory", "cgroup.subtree_control": "",
        "cpu.stat": "usage_usec 0\n", "memory.current": "4096", "memory.peak": "8192",
        "memory.max": "max",
    },
}  # fmt: skip


class Kernel:
    """A folder with /proc/self and the control groups of a kernel."""

    def __init__(self, top: Path, *mounts: str) -> None:
        self.top, self.process = top, top / "self"
        self.process.mkdir()
        lines, own = [], []
        for i, name in enumerate(mounts):
            two = name == "unified"
            kind, options = ("cgroup2", "rw") if two else ("cgroup", f"rw,{name}")
            lines.append(f"cgroup {top / name} {kind} {options} 0 0\n")
            own.append(f"{i}:{'' if two else name}:/mine\n")
            for folder in (top / name, top / name / "mine"):
                folder.mkdir()
        (self.process / "mounts").write_text("proc /proc proc rw 0 0\n" + "".join(lines))
        (self.process / "cgroup").write_text("".join(own))

    def begin(self) -> control_groups.Accounting:
        return control_groups.begin(self.process)

    def folders(self) -> list[str]:
        """The folders that a study made, from the top."""
        found = [path for path in self.top.rglob("*") if path.is_dir() and OURS in path.parts]
        return sorted(str(path.relative_to(self.top)) for path in found)

    def options(self, words: tuple[str, ...]) -> list[str]:
        """Options of `launch`, with paths from the top."""
        return [word.removeprefix(f"{self.top}/") for word in words]


Boot = Callable[..., Kernel]


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boot:
    """Makes kernels whose folders come with their files, and go with them."""
    make, remove = Path.mkdir, Path.rmdir

    def files_of(folder: Path) -> dict[str, str]:
        inside = tmp_path in folder.parents
        return FILES.get(folder.relative_to(tmp_path).parts[0], {}) if inside else {}

    def mkdir(folder: Path, *args: int, **options: bool) -> None:
        make(folder, *args, **options)
        for name, text in files_of(folder).items():
            (folder / name).write_text(text)

    def rmdir(folder: Path) -> None:
        for name in files_of(folder):
            (folder / name).unlink(missing_ok=True)
        remove(folder)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    return lambda *mounts: Kernel(tmp_path, *mounts)


@pytest.mark.parametrize(
    ("mounts", "name"),
    [(("cpuacct", "memory"), "memory.limit_in_bytes"), (("unified",), "memory.max")],
)
def test_a_group_may_have_less_memory(boot: Boot, mounts: tuple[str, ...], name: str) -> None:
    accounting = boot(*mounts).begin()
    groups = accounting.group("usual"), accounting.group("small", 8)
    texts = [(group.memory / name).read_text() for group in groups if group.memory]
    assert len(texts) == 2 and texts[0] in ("none", "max") and texts[1] == str(8 * 2**20)


def test_version_1(boot: Boot) -> None:
    kernel = boot("cpuacct", "memory")
    accounting = kernel.begin()
    assert accounting.method == "cgroup v1 cpuacct and memory"
    group = accounting.group("fork")
    cpu, memory = f"cpuacct/mine/{OURS}/fork", f"memory/mine/{OURS}/fork"
    assert kernel.options(group.join) == [
        "--join", f"{cpu}/cgroup.procs", "--join", f"{memory}/cgroup.procs",
    ]  # fmt: skip
    assert kernel.options(group.read) == [
        "--cpu", f"{cpu}/cpuacct.usage", "--current", f"{memory}/memory.usage_in_bytes",
        "--peak", f"{memory}/memory.max_usage_in_bytes",
    ]  # fmt: skip
    assert group.memory_bytes() == 4096
    accounting.end_group(group)
    assert kernel.folders() == [f"cpuacct/mine/{OURS}", f"memory/mine/{OURS}"]
    accounting.group("thread")
    accounting.end()
    assert kernel.folders() == []


def test_version_1_without_memory(boot: Boot) -> None:
    accounting = boot("cpuacct").begin()
    assert (accounting.method, accounting.memory) == ("cgroup v1 cpuacct", None)
    assert accounting.group("fork").memory_bytes() is None


def test_version_2(boot: Boot) -> None:
    """Server and load side by side, with the memory controller alone: no weights are changed."""
    kernel = boot("unified")
    accounting = kernel.begin()
    assert accounting.method == "cgroup v2 cpu.stat and memory"
    for folder in (kernel.top / "unified", kernel.top / "unified" / OURS):
        assert (folder / "cgroup.subtree_control").read_text() == "+memory"
    group = accounting.group("fork")
    mine = f"unified/{OURS}/fork"
    assert kernel.options(group.join) == ["--join", f"{mine}/cgroup.procs"]
    assert kernel.options(group.read) == [
        "--join", f"unified/{OURS}/load/cgroup.procs", "--cpu", f"{mine}/cpu.stat",
        "--current", f"{mine}/memory.current", "--peak", f"{mine}/memory.peak",
    ]  # fmt: skip
    assert group.memory_bytes() == 4096
    accounting.end_group(group)
    assert kernel.folders() == [f"unified/{OURS}", f"unified/{OURS}/load"]
    accounting.end()
    assert kernel.folders() == []


def test_version_2_without_the_peak_of_memory(boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels before 5.19 do not count it: `launch` samples what is used now."""
    older = {name: text for name, text in FILES["unified"].items() if name != "memory.peak"}
    monkeypatch.setitem(FILES, "unified", older)
    kernel = boot("unified")
    group = kernel.begin().group("fork")
    assert "--peak" not in group.read
    assert kernel.options(group.read)[-2:] == [
        "--current", f"unified/{OURS}/fork/memory.current",
    ]  # fmt: skip


def test_version_2_of_a_container(boot: Boot) -> None:
    """Without the memory controller: a group below the own one, which counts CPU time alone."""
    kernel = boot("unified")
    (kernel.top / "unified/cgroup.controllers").write_text("cpu")
    accounting = kernel.begin()
    assert accounting.method == "cgroup v2 cpu.stat, sampled PSS without pages of files"
    assert kernel.folders() == [f"unified/mine/{OURS}"]
    group = accounting.group("fork")
    assert group.memory_bytes() is None
    assert kernel.options(group.read) == ["--cpu", f"unified/mine/{OURS}/fork/cpu.stat"]
    accounting.end()
    assert kernel.folders() == []


@pytest.mark.parametrize("refused", ["cgroup.procs", "cpu.stat"])
def test_version_2_that_counts_nothing_of_ours(
    boot: Boot, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    kernel = boot("unified")
    (kernel.top / "unified/cgroup.controllers").write_text("cpu")
    if refused == "cgroup.procs":
        monkeypatch.setattr(control_groups, "_may_join", lambda folder: False)
    else:
        monkeypatch.setitem(FILES, "unified", {"cgroup.procs": ""})
    accounting = kernel.begin()
    assert (accounting.method, accounting.cpu) == ("process clocks", None)
    assert kernel.folders() == []


def test_none(boot: Boot) -> None:
    accounting = boot().begin()
    assert (accounting.method, accounting.made) == ("process clocks", [])
    group = accounting.group("fork")
    assert (group.join, group.read, group.memory_bytes()) == ((), (), None)
    accounting.end()


def test_the_groups_of_this_machine_are_removed() -> None:
    accounting = control_groups.begin()
    made = list(accounting.made)
    accounting.end()
    assert accounting.method.split()[0] in ("cgroup", "process")
    assert not any(folder.exists() for folder in made)


# --- what reads them ---


@pytest.mark.skipif(not (CLIENTS / "launch").is_file(), reason="launch is not built")
@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("cpuacct.usage", "1000000000", "1250000000"),
        ("cpu.stat", "usage_usec 1000000\nuser_usec 0", "usage_usec 1250000\nuser_usec 9"),
    ],
)
def test_both_counters_of_cpu_time(
    tmp_path: Path, name: str, before: str, after: str, resets: bool
) -> None:
    """Nanoseconds of version 1 and microseconds of version 2: a quarter of a second.

    A peak of memory that cannot be reset is that of earlier runs: what is used now is sampled.
    """
    counter, peak, current = tmp_path / name, tmp_path / "peak", tmp_path / "current"
    counter.write_text(before)
    current.write_text("1048576\n")
    load = f"printf '{after}' >'{counter}'"
    if resets:
        peak.write_text("9999999\n")
        load += f"; echo 5242880 >'{peak}'"
    command = [
        CLIENTS / "launch", "load", "--server", str(os.getpid()), "--cpu", counter,
        "--peak", peak, "--current", current, "--result", tmp_path / "result",
        "--", "sh", "-c", load,
    ]  # fmt: skip
    subprocess.run(command, check=True)
    words = (tmp_path / "result").read_text().split()
    assert words[2] == "0"
    assert float(words[3]) == pytest.approx(250000, abs=1)
    assert int(words[7]) == (5120 if resets else 1024)
