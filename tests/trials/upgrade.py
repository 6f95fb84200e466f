"""The trial of upgrades: a new program takes over the port, again and again, under load."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGQUIT, SIGUSR1, SIGUSR2

from trials import process_tree, servers
from trials.clients import Counts, Download, Load, Plan, fetch, make_documents
from trials.patience import patience
from trials.trial import Context, Row, Trial, serves_one

LONGEST_WAIT = 0.05
DOWNLOAD_BYTES = 8 << 20
PAUSE = 0.02


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text()
    return ""


def _taken_over(server: servers.Server) -> list[int]:
    """The processes that have taken over from ours, in order."""
    return [int(pid) for pid in re.findall(r"process (\d+) has taken over", server.errors())]


def _upgrade_ours(server: servers.Server) -> bool:
    before = len(_taken_over(server))
    server.send(SIGUSR2)
    done = process_tree.wait_until(lambda: len(_taken_over(server)) > before, 20)
    if done:
        server.pid = _taken_over(server)[-1]
    return done


def _upgrade_nginx(server: servers.Server) -> bool:
    """As its manual says: SIGUSR2 starts a new program, SIGQUIT ends the old one."""
    file = server.folder / "server/nginx.pid"
    # Where the upgrade before did not happen, there may be no file.
    if (known := _read(file).strip()).isdigit():
        server.pid = int(known)
    server.send(SIGUSR2)
    old = Path(f"{file}.oldbin")
    if not process_tree.wait_until(lambda: old.exists() and _read(file).strip().isdigit(), 10):
        return False
    new = int(_read(file))
    # It serves once it has workers.
    process_tree.wait_until(lambda: len(process_tree.tree(new)) > 1, 10)
    server.send(SIGQUIT)
    server.pid = new
    return process_tree.wait_until(lambda: not old.exists(), 20)


def _restart_gracefully(server: servers.Server) -> bool:
    """lighttpd and Apache read their configuration again, and replace their workers."""
    before = set(process_tree.tree(server.pid))
    server.send(SIGUSR1)
    servers.wait_for_signal(server)
    process_tree.wait_until(lambda: set(process_tree.tree(server.pid)) != before, 2)
    return bool(fetch(server.port))


def _upgrade(server: servers.Server) -> bool:
    if server.name not in servers.RECIPES:
        return _upgrade_ours(server)
    return _upgrade_nginx(server) if server.name == "nginx" else _restart_gracefully(server)


@dataclass
class Told:
    """What ab and wrk say: how many requests they made, how many failed, and the longest waits."""

    made: int
    failed: int
    longest: dict[str, float]


class Tools:
    """ab and wrk, which run until they are ended; and what they say of failures."""

    def __init__(self, folder: Path, port: int) -> None:
        url = f"http://127.0.0.1:{port}/small.txt"

        def longest(seconds: float) -> str:
            return f"{patience(seconds):.0f}"

        # -r: ab goes on after an error.
        commands = {
            "ab": ["ab", "-q", "-r", "-s", longest(30), "-c", "4", "-t", "600", "-n", "50000000"],
            "wrk": ["wrk", "--timeout", longest(2) + "s", "-t", "1", "-c", "8", "-d", "600"],
        }
        self.running = {}
        self.files = {name: folder / name for name in commands}
        for name, command in commands.items():
            with self.files[name].open("wb") as out:
                self.running[name] = subprocess.Popen(
                    [*command, url], stdout=out, stderr=out, process_group=0
                )

    def end(self) -> Told:
        """Ends both. Returns what they say."""
        for process in self.running.values():
            process.send_signal(2)
        for process in self.running.values():
            try:
                process.wait(patience(15))
            except subprocess.TimeoutExpired:
                process.kill()
        ab, wrk = (self.files[name].read_text() for name in ("ab", "wrk"))
        made = [_number(r"Complete requests:\s+(\d+)", ab), _number(r"(\d+) requests in", wrk)]
        errors = re.search(
            r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", wrk
        )
        failed = _number(r"Failed requests:\s+(\d+)", ab) + _number(r"Non-2xx.*: (\d+)", wrk)
        # A program that made no request was stuck, which counts as a failure.
        failed += sum(map(int, errors.groups() if errors else ())) + made.count(0)
        longest = {"ab": _number(r"100%\s+(\d+) \(longest", ab) / 1000, "wrk": _longest_of_wrk(wrk)}
        return Told(sum(made), failed, longest)


def _longest_of_wrk(told: str) -> float:
    """Seconds; wrk gives its mean, deviation and maximum, each with a unit of its own."""
    found = re.search(r"Latency\s+\S+\s+\S+\s+([\d.]+)(us|ms|s|m)\b", told)
    return float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[found[2]] if found else 0.0


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def _try(context: Context, name: str, documents: Path) -> Iterator[Row]:
    times = 3 if context.quick else 100 if name not in servers.RECIPES else 30
    change = (lambda text: text.replace("daemon off;", "daemon on;")) if name == "nginx" else None
    single = name not in servers.RECIPES and serves_one(name)
    options = [] if name in servers.RECIPES else ["--stop-timeout", "30"]
    server = servers.start(context, name, documents, *options, change=change)
    seen = _under_load(context, server, times, alone=single)
    served = servers.answers(server)
    server.end(SIGKILL)
    case = context.case(name, "upgrades under load", times)
    yield case.judge("did not happen", seen.missed, 0)
    yield case.fact("requests of paced clients", seen.paced.answered)
    yield case.judge("of these failed", seen.paced.failed, 0)
    waits = {"longest wait": seen.paced.longest}
    if seen.told:
        waits |= {f"that of {tool}": longest for tool, longest in seen.told.longest.items()}
    for wait, longest in waits.items():
        yield case.judge(wait, round(longest, 4), LONGEST_WAIT, " s", is_time=True)
    if seen.told:
        yield case.fact("requests of ab and wrk", seen.told.made)
        yield case.judge("of those failed", seen.told.failed, 0)
        yield case.fact("downloads", seen.downloads)
        yield case.judge("cut off", seen.cut_off, 0)
    yield case.served(served)


@dataclass
class Seen:
    """What happened in the upgrades of one server: how many were missed, what the paced clients
    saw, and what ab and wrk and the downloads did."""

    missed: int
    paced: Counts
    told: Told | None
    downloads: int
    cut_off: int


def _under_load(context: Context, server: servers.Server, times: int, *, alone: bool) -> Seen:
    """Upgrades a server so many times."""
    rate = DOWNLOAD_BYTES // (1 if context.quick else 8)
    tools = None if alone else Tools(context.folder(), server.port)
    # A server of one connection at a time would serve the download alone.
    downloads = [] if alone else [Download(server.port, "/big.bin", rate)]
    load = Load(Plan(server.port, fresh=4, kept=0, pause=0.003))
    load.wait_for(20)
    for download in downloads:
        download.start()
        download.begun.wait(10)
    missed = 0
    for _ in range(times):
        missed += not _upgrade(server)
        time.sleep(PAUSE)
        if downloads and downloads[-1].ended:
            downloads.append(Download(server.port, "/big.bin", rate))
            downloads[-1].start()
            downloads[-1].begun.wait(10)
    counts = load.end()
    for download in downloads:
        download.join(patience(30))
    told = tools.end() if tools else None
    broken = sum(not one.whole for one in downloads)
    return Seen(missed, counts, told, len(downloads), broken)


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    for name in [*context.models, *context.peers]:
        yield from _try(context, name, documents)


TRIAL = Trial(
    "upgrade",
    "Upgrades",
    "`SIGUSR2`: a new program takes over the listening sockets. 100 times one after the other, under "
    "`ab -c 4` (a connection for each request), `wrk -c 8` (persistent connections), one download of "
    "8 MiB in 8 s after the other, and four clients that make a request every 3 ms on a connection "
    "each, whose waits are measured. The old program has 30 s to finish (`--stop-timeout 30`). A server of one connection at a time has these four alone. prefork and pool "
    "have as many workers as wrk has connections: there a connection ends when others wait.",
    "A request fails that is refused, cut off, late or wrong. The longest wait is from the first "
    "try of a request to its whole response; ab and wrk tell theirs.",
    run,
    needs={"ab": "apache2-utils", "wrk": "wrk"},
    peers="nginx: `SIGUSR2`, then `SIGQUIT` to the old program. lighttpd and Apache: `SIGUSR1`, a graceful "
    "restart of the same program. 30 times each.",
)
