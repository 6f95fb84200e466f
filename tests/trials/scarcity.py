"""The trial of scarcity: descriptors, processes, memory and disk used up on purpose."""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from trials import process_tree, servers
from trials.clients import Counts, Crowd, Load, Plan, make_documents
from trials.memory_groups import memory_group, memory_in_use
from trials.trial import Context, Row, Trial, describe, has_option, makes_processes, skipped

DESCRIPTORS = 40
PROCESSES = 20
USERS = itertools.count()
# Peers that make nothing for a client.
EVENT_LOOPS = ("nginx", "lighttpd")
MEMORY = 4 << 20
DISK_KIB = 512
CLIENTS = 200
# So long it may take them, beside other work, to use up what is scarce.
PATIENCE = 60
# A process of a proxy keeps so many files of locks open, for the next fetches.
LOCK_FILES = 64
# A file cache keeps the documents open that were asked for.
DOCUMENTS = 2
PEERS_SPARE = 64
# A folder, and how many documents it has.
MANY, LISTED = "many", 2000


@dataclass(frozen=True)
class Resource:
    """What a server is to use up.

    size     how much there is
    used     how much of it the server uses now
    squeeze  takes all that the server has not, until the clients have left
    ran_out  finds out whether the server wanted more than there was, from what the clients saw so
             far, and from the most that was in use; a server may take care not to
    path     the document that those ask for who ask as fast as they can
    crowd    how many clients hold connections
    """

    size: int
    unit: str
    used: Callable[[servers.Server], int]
    squeeze: Callable[[servers.Server], AbstractContextManager[None]] = lambda _: nullcontext()
    ran_out: Callable[[Counts, int], bool] = lambda seen, most: True
    path: str = "/small.txt"
    crowd: int = CLIENTS


def _start(
    context: Context, name: str, documents: Path, *options: str,
    through: list[str] | None = None, user: int | None = None,
) -> servers.Server:  # fmt: skip
    """Starts a server. One of ours waits only a second for idle clients: the trial takes less. The
    log of a peer goes to its folder: another user may not open ours."""
    if name not in servers.RECIPES:
        options = ("--idle-timeout", "1", *options)
    return servers.start(
        context, name, documents, *options, through=through, user=user,
        change=lambda text: text.replace("ErrorLog /dev/stderr", "ErrorLog errors"),
    )  # fmt: skip


def _press(context: Context, server: servers.Server, scarce: Resource) -> tuple[Counts, int]:
    """Uses up what there is: many clients that hold connections, and others that ask. Returns what
    these saw, and how much was in use at most."""
    idle = ("/small.txt", "--again", "--patience", "1")
    crowd = Crowd("idle", scarce.crowd, server.port, *idle) if scarce.crowd else None
    load = Load(Plan(server.port, fresh=8, kept=8, path=scarce.path, patience=30))
    begin, most = time.monotonic(), 0
    least = 0.5 if context.quick else 2
    while (passed := time.monotonic() - begin) < least or (
        passed < PATIENCE and not scarce.ran_out(load.so_far(), most)
    ):
        most = max(most, scarce.used(server))
        time.sleep(0.05)
    seen = load.end()
    if crowd:
        crowd.end()
    return seen, most


def _rows(
    context: Context, server: servers.Server, case: str, scarce: Resource, kept: int = 0
) -> Iterator[Row]:
    """Presses a server, waits until it is at rest, and looks whether it is as before."""
    first = server.pid
    servers.answers(server)
    before = process_tree.held(server.pid)
    with scarce.squeeze(server):
        seen, most = _press(context, server, scarce)
        ran_out = scarce.ran_out(seen, most)
    # All connections that the clients left have an end: at the latest when they time out.
    rested = process_tree.wait_until(
        lambda: not server.runs() or _is_at_rest(server, before, kept), 60, 0.2
    )
    after = process_tree.held(server.pid)
    alive = server.runs() and server.pid == first
    served = alive and servers.answers(server)
    ended = server.end()
    faults = {
        "it ended": not alive,
        "it does not serve afterwards": not served,
        "it holds more descriptors or processes than before": not rested,
        "it does not stop": not ended,
    }
    told = ", ".join(name for name, happened in faults.items() if happened)
    tried = context.case(server.name, case)
    yield tried.fact("most in use", f"{most:,} of {scarce.size:,} {scarce.unit}")
    yield tried.fact("descriptors", f"{before.descriptors} to {after.descriptors}")
    yield tried.fact("processes", f"{before.processes} to {after.processes}")
    yield from tried.premise("there was enough", ran_out)
    yield tried.judge("faults", sum(faults.values()), 0)
    yield tried.fact("which", told or "none")


def _is_at_rest(server: servers.Server, before: process_tree.Held, kept: int) -> bool:
    now = process_tree.held(server.pid)
    # Peers start and end workers as they like.
    spare = 0 if server.name not in servers.RECIPES else PEERS_SPARE
    return (
        now.descriptors <= before.descriptors + DOCUMENTS + spare + kept
        and now.processes <= before.processes + spare
        and not now.zombies
    )


def _descriptors(context: Context, name: str, documents: Path) -> Iterator[Row]:
    limit = max(DESCRIPTORS, _needed(name))
    through = ["prlimit", f"--nofile={limit}:{limit}"]
    server = _start(context, name, documents, through=through)
    scarce = Resource(limit, "descriptors", lambda server: _most_descriptors(server.pid))
    yield from _rows(context, server, f"{DESCRIPTORS} descriptors a process", scarce)
    if name not in servers.RECIPES:
        yield from _no_descriptors(context, name, documents)


def _no_descriptors(context: Context, name: str, documents: Path) -> Iterator[Row]:
    """A server takes no more connections than it has descriptors for: so they are taken away."""
    server = _start(context, name, documents, *_as_root())
    held = _most_descriptors(server.pid)
    scarce = Resource(
        held, "descriptors", lambda server: _most_descriptors(server.pid),
        lambda server: _limited(server, resource.RLIMIT_NOFILE, _lowest_free),
        lambda seen, _: seen.answered == 0,
    )  # fmt: skip
    yield from _rows(context, server, "no descriptor left", scarce)


def _as_root() -> list[str]:
    """Only a process of the same user may change the limits of another one."""
    return ["--user", "root"] if os.geteuid() == 0 else []


@contextmanager
def _limited(server: servers.Server, what: int, held: Callable[[int], int]) -> Iterator[None]:
    """Lets no process of the server have more than it holds. New ones inherit the limit."""
    for pid in process_tree.tree(server.pid):
        _limit(pid, what, held(pid))
    try:
        yield
    finally:
        for pid in process_tree.tree(server.pid):
            _limit(pid, what, None)


def _limit(pid: int, what: int, number: int | None) -> None:
    """Sets the soft limit of a process, which may have ended; None: to its hard limit."""
    with suppress(ProcessLookupError):
        hard = resource.prlimit(pid, what)[1]
        resource.prlimit(pid, what, (hard if number is None else number, hard))


def _lowest_free(pid: int) -> int:
    with suppress(OSError):
        used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        return next(number for number in itertools.count() if number not in used)
    return 0


def _most_descriptors(root: int) -> int:
    """Returns the greatest number of descriptors that one process of the server has."""
    return max((process_tree.descriptors_of(pid) for pid in process_tree.tree(root)), default=0)


def _needed(name: str) -> int:
    """Returns how many descriptors a server needs to start: Apache has some for each module."""
    return 64 if name == "apache" else 0


def _processes(context: Context, name: str, documents: Path) -> Iterator[Row]:
    case = f"{PROCESSES} processes and threads of the user"
    if os.geteuid() != 0:
        yield skipped(name, case, "only root can change the user")
        return
    if name in EVENT_LOOPS or (name not in servers.RECIPES and not _makes_for_each(name)):
        yield skipped(name, case, "it makes none for its clients")
        return
    through = ["prlimit", f"--nproc={PROCESSES}:{PROCESSES}"]
    # A user that owns no other processes: the limit counts all of a user's, also in other tests.
    user = 50_000 + (os.getpid() * 16 + next(USERS)) % 10_000
    server = _start(context, name, documents, through=through, user=user)
    scarce = Resource(
        PROCESSES, "processes and threads", lambda server: _tasks(server.pid),
        ran_out=lambda _, most: most >= PROCESSES - 1,  # one may be between two looks
    )  # fmt: skip
    yield from _rows(context, server, case, scarce)


def _tasks(root: int) -> int:
    return sum(process_tree.threads_of(pid) for pid in process_tree.tree(root))


def _memory(context: Context, name: str, documents: Path) -> Iterator[Row]:
    """By default a server takes only the connections that its memory is enough for. A server with a
    process for each connection is also tried with more: the kernel then kills some processes."""
    case = f"a control group of {MEMORY >> 20} MiB"
    yield from _in_group(context, name, documents, case)
    if name not in servers.RECIPES and makes_processes(name) and _makes_for_each(name):
        case = f"{case}, more connections than fit"
        yield from _in_group(context, name, documents, case, "--max-connections", "2000")
    if name not in servers.RECIPES:
        yield from _no_memory(context, name, documents)


def _no_memory(context: Context, name: str, documents: Path) -> Iterator[Row]:
    """No process gets another page of address space: what asks for memory is refused. A listing of
    many documents does, and a thread."""
    server = _start(context, name, documents, "--list", *_as_root())
    servers.answers(server)
    held = _most_address_space(server)
    scarce = Resource(
        held, "KiB of address space", _most_address_space,
        lambda server: _limited(server, resource.RLIMIT_AS, process_tree.address_space_of),
        lambda seen, _: seen.wrong > 0 or seen.answered == 0, path=f"/{MANY}/", crowd=0,
    )  # fmt: skip
    yield from _rows(context, server, "no memory left", scarce)


def _most_address_space(server: servers.Server) -> int:
    """Returns how many KiB of address space the process uses that uses most."""
    used = (process_tree.address_space_of(pid) >> 10 for pid in process_tree.tree(server.pid))
    return max(used, default=0)


def _in_group(
    context: Context, name: str, documents: Path, case: str, *options: str
) -> Iterator[Row]:
    with memory_group(MEMORY) as group:
        if group is None:
            yield skipped(name, case, "no control group can be made here")
            return
        through = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(group)]
        server = _start(context, name, documents, *options, through=through)
        yield from _rows(context, server, case, _memory_of(group))


def _memory_of(group: Path) -> Resource:
    return Resource(MEMORY >> 10, "KiB", lambda _: memory_in_use(group) >> 10)


def _makes_for_each(name: str) -> bool:
    """Returns true for a model that makes a process or a thread for each connection."""
    told = describe(name)
    return bool(told["makes"]) and not told["workers_per_processor"]


def _disk(context: Context, name: str, documents: Path) -> Iterator[Row]:
    """A full disk below the access log, and below the cache of the proxy."""
    if name in servers.RECIPES:
        return
    case = f"a disk of {DISK_KIB} KiB for the log"
    folder = context.folder()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_KIB}k,mode=1777", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield skipped(name, case, "no file system can be mounted here")
        return
    server = _start(context, name, documents, "--log", str(folder / "log"))
    yield from _rows(context, server, case, _disk_space(folder))
    if has_option(name, "cache"):
        yield from _full_cache(context, name, documents, folder)
    subprocess.run(["umount", str(folder)], check=False)


def _disk_space(folder: Path) -> Resource:
    """The file system of a folder, which is full while the clients come."""

    @contextmanager
    def fill(_: servers.Server) -> Iterator[None]:
        filling = folder / "filling"
        with suppress(OSError), filling.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        try:
            yield
        finally:
            filling.unlink()

    return Resource(
        DISK_KIB, "KiB", lambda _: shutil.disk_usage(folder).used >> 10, fill,
        lambda _, most: most >= DISK_KIB,
    )  # fmt: skip


def _full_cache(context: Context, name: str, documents: Path, folder: Path) -> Iterator[Row]:
    """The proxy forwards what it cannot store."""
    origin = servers.start(context, "epoll", documents)
    url = f"http://127.0.0.1:{origin.port}"
    options = ["--service", "proxy", "--origin", url, "--cache", str(folder / "cache")]
    server = _start(context, name, documents, *options)
    case = f"a disk of {DISK_KIB} KiB for the cache"
    yield from _rows(
        context, server, case, _disk_space(folder), LOCK_FILES * len(process_tree.tree(server.pid))
    )
    origin.end()


def _make_many(folder: Path) -> None:
    """A folder whose listing takes more memory than a process has at hand."""
    folder.mkdir()
    for number in range(LISTED):
        (folder / f"{number:060}").touch()


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    _make_many(documents / MANY)
    for name in [*context.models, *context.peers]:
        for resources in (_descriptors, _processes, _memory, _disk):
            try:
                yield from resources(context, name, documents)
            except servers.Problem as problem:
                if name not in servers.RECIPES:
                    raise
                yield skipped(name, resources.__name__.strip("_"), str(problem)[:120])


def raise_limits() -> None:
    """Allows this process as many descriptors as it may have: the crowds need them."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


TRIAL = Trial(
    "scarcity",
    "Scarcity",
    f"Each of these is made scarce, and then {CLIENTS} clients hold connections and 16 ask as fast "
    f"as they can: descriptors ({DESCRIPTORS} a process; then no more than each process holds), "
    f"processes and threads of the user (`RLIMIT_NPROC` {PROCESSES}), memory (a control group of "
    f"{MEMORY >> 20} MiB; a model with a process for each connection also with a `--max-connections` that does "
    f"not fit there; then no more address space (`RLIMIT_AS`) than each process uses), disk "
    f"(a file system of {DISK_KIB} KiB, which is filled, for the log, and for the cache of "
    f"the proxy). Where address space is scarce, the 16 ask for a listing of {LISTED:,} documents, and nobody else holds "
    "a connection. *Most in use* says how much of it a server took at most: one that takes no more "
    "connections than it has descriptors or memory for leaves some. Of the others, a row fails if "
    "nothing ran out: if a client was answered without a descriptor, if there were fewer processes, if "
    "all listings were answered, or if the disk was not full.",
    "The server must not end, must serve 20 requests of 20 when the clients have left, must hold no "
    f"more processes than before, and at most {DOCUMENTS} more descriptors, of its file cache (a proxy: "
    f"{LOCK_FILES} more for each process, of its locks), and must stop when it is told to.",
    run,
    peers="Peers have the same limits (Apache 64 descriptors: it does not start with fewer), and may hold "
    f"{PEERS_SPARE} descriptors and processes more; one that does not start with a limit is not tried with it.",
)
