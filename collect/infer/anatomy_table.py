"""anatomy.tsv: what the CPU time of a request is spent on, and its system calls."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from collect.infer.cells import Cells
from collect.infer.statistics import describe
from collect.project import STACKS_FILE, SYSTEM_CALLS_FILE
from collect.schema import ANATOMY
from collect.tables import number, read_table

# The purposes of CPU time, in the order of a request.
MAKE, CONNECTION, OWN, FILES, MEMORY, WAIT, END, OTHER = (
    "making a process or thread",
    "the connection",
    "the server's own code",
    "files and descriptors",
    "page faults and mappings",
    "waiting and waking",
    "ending a process or thread",
    "other work of the kernel",
)
PURPOSES = (MAKE, CONNECTION, OWN, FILES, MEMORY, WAIT, END, OTHER)
CALLS_OF = {
    MAKE: "clone clone3 fork vfork set_robust_list set_tid_address rseq seccomp prctl "
    "landlock_restrict_self setpriority capset",
    END: "exit exit_group group_exit wait4 waitid waitpid",
    CONNECTION: "accept accept4 connect recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg sendfile "
    "sendfile64 shutdown setsockopt getsockopt getsockname getpeername socket writev ioctl",
    FILES: "open openat openat2 read readv pread64 preadv close fstat newfstat newfstatat stat "
    "newstat statx lstat lseek readlink access fcntl getdents64",
    MEMORY: "mmap mmap_pgoff munmap mprotect brk madvise mremap vm_mmap_pgoff",
    WAIT: "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl epoll_create1 poll ppoll select pselect6 "
    "futex nanosleep clock_nanosleep sched_yield semop semtimedop rt_sigaction rt_sigprocmask "
    "rt_sigreturn rt_sigsuspend rt_sigtimedwait kill tgkill pause eventfd2 timerfd_settime "
    "timerfd_create signalfd4 restart_syscall io_uring_enter",
}
PURPOSE_OF = {call: purpose for purpose, calls in CALLS_OF.items() for call in calls.split()}
KERNEL = "_[k]"
SYSTEM_CALL = re.compile(
    r"^(?:__)?(?:x64_|arm64_|ia32_)?(?:(?:do_|se_)?sys_|ksys_|kernel_)(\w+)_\[k\]$"
)
FAULT = re.compile(r"^(exc_page_fault|do_user_addr_fault|handle_mm_fault|do_mem_abort)_\[k\]$")
EXIT = re.compile(r"^(do_exit|do_group_exit|mmput|exit_mmap)_\[k\]$")
BORN = re.compile(r"^(ret_from_fork|schedule_tail|ret_from_fork_asm)_\[k\]$")
SOCKET = re.compile(r"^_*(tcp|inet|inet6|sock|sk|unix|ip|skb|udp|sockfs|lock_sock|release_sock)_")
WAITED = re.compile(r"^(eventfd|pipe|anon_pipe|signalfd|timerfd|schedule|ep|eventpoll)(_|\b)")


def purpose_of(stack: str) -> str:
    """Says what the time of a stack is for."""
    frames = [frame for frame in stack.split(";")[1:] if frame.endswith(KERNEL)]
    if not frames:
        return OWN
    # A process that ends gives its memory and its connection back.
    for pattern, purpose in ((EXIT, END), (FAULT, MEMORY), (BORN, MAKE)):
        if any(pattern.match(frame) for frame in frames):
            return purpose
    call = next((match[1] for frame in frames if (match := SYSTEM_CALL.match(frame))), "")
    purpose = PURPOSE_OF.get(call, OTHER)
    if purpose in (FILES, OTHER):
        if any(SOCKET.match(frame) for frame in frames):
            return CONNECTION
        if any(WAITED.match(frame) for frame in frames):
            return WAIT
    return purpose


def dissect(data: Cells, folder: Path) -> pd.DataFrame:
    """Returns the parts of a request in each cell that an instrument has looked at."""
    rows = [*_purposes(data, folder / STACKS_FILE), *_calls(data, folder / SYSTEM_CALLS_FILE)]
    return pd.DataFrame(rows, columns=list(ANATOMY.names)).fillna("-")


Key = tuple[str, ...]
Row = Mapping[str, str]


def _by_cell(data: Cells, path: Path) -> dict[int, dict[str, list[Row]]]:
    """The rows of a table by cell and round."""
    found: dict[int, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    number_of = {key: cell for cell, key in enumerate(data.keys)}
    for row in read_table(path).rows if path.exists() else []:
        cell = number_of.get(tuple(row[name] for name in data.factors))
        if cell is not None:
            found[cell][row["round"]].append(row)
    return dict(sorted(found.items()))


def _purposes(data: Cells, path: Path) -> Iterable[dict[str, str]]:
    for cell, rounds in _by_cell(data, path).items():
        shares: list[dict[str, float]] = []
        costs: list[float] = []
        samples = 0
        for name, rows in rounds.items():
            counts: Counter[str] = Counter()
            for row in rows:
                counts[purpose_of(row["stack"])] += int(row["samples"])
            samples += counts.total()
            shares.append({name: count / counts.total() for name, count in counts.items()})
            costs.append(_cost(data, cell, name))
        for purpose in PURPOSES:
            mine = [share.get(purpose, 0.0) for share in shares]
            each = [share * cost for share, cost in zip(mine, costs, strict=True)]
            row = _row(data, cell, "purpose", purpose, each)
            yield row | {"share": number(float(np.mean(mine))), "samples": str(samples)}


def _cost(data: Cells, cell: int, round_number: str) -> float:
    """The CPU time of a request in the runs of a round."""
    runs = data.runs[(data.runs["cell"] == cell) & (data.runs["valid"] == "yes")]
    if "round" in runs:
        runs = runs[runs["round"] == round_number]
    values = pd.to_numeric(runs["server_cpu_us"], errors="coerce")
    return float(values.mean())


def _calls(data: Cells, path: Path) -> Iterable[dict[str, str]]:
    for cell, rounds in _by_cell(data, path).items():
        tables = [{row["call"]: float(row["each"]) for row in rows} for rows in rounds.values()]
        names = sorted({name for table in tables for name in table})
        found = [(name, [table.get(name, 0.0) for table in tables]) for name in names]
        for name, each in sorted(found, key=lambda one: -sum(one[1])):
            yield _row(data, cell, "call", name, each)


def _row(data: Cells, cell: int, kind: str, name: str, each: list[float]) -> dict[str, str]:
    described = describe([value for value in each if value == value])
    return {
        **dict(zip(data.factors, data.keys[cell], strict=True)),
        "kind": kind,
        "name": name,
        "each": number(described.mean),
        "low": number(described.low),
        "high": number(described.high),
        "rounds": str(described.n),
    }
