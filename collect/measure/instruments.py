"""Instruments that watch a server: strace counts its system calls, perf samples its stacks.

Both slow it down, so that they have runs of their own, once a round.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from collect.design.study import INSTRUMENTS
from collect.measure.server_commands import Need, is_installed
from collect.measure.servers import Server, ServerProblem
from collect.project import CLIENTS
from collect.readable_numbers import one_line

STRACE, PERF = INSTRUMENTS
NEEDS = {STRACE: Need("strace", "strace"), PERF: Need("perf", "linux-perf")}
# Under strace a request takes many times as long.
STRACE_REQUESTS = 1000
# perf looks so often a second, until it has seen so many stacks, but at most at so many loads.
PERF_HERTZ = 3989
PERF_SAMPLES = 1500
PERF_LOADS = 10
PATIENCE_SECONDS = 60.0
# A rarer stack is cut behind its last frame that is not so rare.
LEAST_SHARE = 0.001
LEAST_SAMPLES = 2
# Frames of the kernel's entry, which all its stacks have.
ENTRY = re.compile(r"^(entry_SYSCALL|do_syscall_|x64_sys_call|asm_exc_)")
KERNEL_FROM = 1 << 63
KERNEL_MARK = "_[k]"
UNKNOWN = "[unknown]"

# Makes a load, started by a command if one is given; returns how many requests were answered.
MakeLoad = Callable[[list[str]], int]


def problem(kind: str) -> str:
    """Says why an instrument cannot be had here; nothing if it can."""
    need = NEEDS[kind]
    if not is_installed(need.program):
        return f"{need.program} is missing: apt-get install {need.package}"
    if os.geteuid() != 0:
        return f"{need.program} may look into a server only as root"
    return ""


def processes_of(server: int) -> set[int]:
    """The processes of a server: its tree, and the other processes of the group that it leads."""
    parents: dict[int, int] = {}
    found = set()
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        with suppress(OSError, IndexError, ValueError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            parents[int(path.name)] = int(fields[1])
            if int(fields[2]) == server:
                found.add(int(path.name))
    grown = found | {server}
    while grown:
        found |= grown
        grown = {pid for pid, parent in parents.items() if parent in found} - found
    return found


# --- strace ---


def count_calls(server: Server, work: Path, load: MakeLoad) -> dict[str, float]:
    """Returns how often a server makes each system call for a request."""
    table = work / "strace.table"
    table.unlink(missing_ok=True)
    pids = processes_of(server.pid)
    command = ["strace", "-f", "-c", "-qq", "-o", str(table)]
    for pid in sorted(pids):
        command += ["-p", str(pid)]
    tracer = _start(command, work / "strace.said")
    try:
        _wait_until(lambda: all(_is_traced(pid) for pid in pids), tracer, work / "strace.said")
        requests = load([])
    finally:
        _end(tracer)
    calls = dict(read_calls(table.read_text() if table.exists() else ""))
    if not calls or not requests:
        raise ServerProblem("strace counted nothing")
    return {name: count / requests for name, count in calls.items()}


def read_calls(table: str) -> Iterator[tuple[str, int]]:
    """Reads what strace -c writes: % time, seconds, usecs/call, calls, errors if any, syscall."""
    for line in table.splitlines():
        words = line.split()
        if len(words) >= 5 and re.fullmatch(r"[0-9.]+", words[0]) and words[-1] != "total":
            yield words[-1], int(words[3])


def _is_traced(pid: int) -> bool:
    """Returns true if every thread of a process has a tracer, or has ended."""
    for path in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            if "\nTracerPid:\t0\n" in (path / "status").read_text():
                return False
    return True


# --- perf ---


def sample_stacks(server: Server, work: Path, load: MakeLoad) -> Counter[str]:
    """Returns how often each stack of a server was seen."""
    stacks: Counter[str] = Counter()
    for _ in range(PERF_LOADS):
        data = work / "perf.data"
        data.unlink(missing_ok=True)
        pids = processes_of(server.pid)
        watch = ["perf", "record", "-q", "-a", "-F", str(PERF_HERTZ), "-e", "cpu-clock", "-g"]
        load([*watch, "-o", str(data), "--"])
        stacks.update(_read_perf(data, pids))
        data.unlink(missing_ok=True)
        if stacks.total() >= PERF_SAMPLES:
            break
    if not stacks:
        raise ServerProblem("perf saw nothing of the server")
    return pruned(stacks)


def _read_perf(data: Path, pids: set[int]) -> Counter[str]:
    command = ["perf", "script", "-i", str(data), "--show-task-events", "-F", "comm,pid,tid,ip,sym"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise ServerProblem(f"perf: {one_line(done.stderr)[-200:]}")
    return Counter(read_stacks(done.stdout.splitlines(), pids))


def read_stacks(lines: Iterable[str], pids: set[int]) -> Iterator[str]:
    """Reads what perf script prints; yields the stacks of these processes and of those that they
    make, as `program;outermost;...;innermost`, frames of the kernel with a mark."""
    known = set(pids)
    head, frames = "", []
    for line in [*lines, ""]:
        if fork := re.search(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):\d+\)", line):
            if int(fork[2]) in known:
                known.add(int(fork[1]))
        elif line[:1] in ("\t", " ") and line.strip() and head:
            frames.append(line)
        elif line.strip():
            match = re.match(r"(.*?)\s+(\d+)/\d+\s*$", line)
            head = match[1].strip() if match and int(match[2]) in known else ""
            frames = []
        elif head:
            yield ";".join([head, *_frames(frames)])
            head = ""


def _frames(lines: list[str]) -> list[str]:
    """The frames of a stack, the outermost first."""
    names = []
    for line in reversed(lines):
        address, _, symbol = line.strip().partition(" ")
        name = re.sub(r"[;\s]+", "_", symbol.strip()) or UNKNOWN
        if ENTRY.match(name):
            continue
        in_kernel = int(address, 16) >= KERNEL_FROM
        names.append(name + (KERNEL_MARK if in_kernel else ""))
    return names


def pruned(stacks: Counter[str]) -> Counter[str]:
    """Cuts stacks where so few samples went on that nobody sees them."""
    inclusive: Counter[str] = Counter()
    for stack, count in stacks.items():
        frames = stack.split(";")
        for depth in range(1, len(frames) + 1):
            inclusive[";".join(frames[:depth])] += count
    least = max(LEAST_SAMPLES, LEAST_SHARE * stacks.total())
    kept: Counter[str] = Counter()
    for stack, count in stacks.items():
        while inclusive[stack] < least and ";" in stack:
            stack = stack.rpartition(";")[0]
        kept[stack] += count
    return kept


# --- processes of the instruments ---


def _start(command: list[str], said: Path) -> subprocess.Popen[bytes]:
    """Starts an instrument in a process group of its own, which ends with this process."""
    with said.open("wb") as output:
        return subprocess.Popen(
            [str(CLIENTS / "launch"), "server", "--", *command],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip


def _wait_until(ready: Callable[[], bool], tracer: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ready():
        if tracer.poll() is not None or time.monotonic() > deadline:
            words = one_line(said.read_text(errors="replace"))[-200:]
            raise ServerProblem(f"strace does not watch the server: {words}")
        time.sleep(0.005)


def _end(tracer: subprocess.Popen[bytes]) -> None:
    """Ends an instrument, which writes down what it has seen."""
    with suppress(OSError):
        tracer.send_signal(signal.SIGINT)
    try:
        tracer.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait()
