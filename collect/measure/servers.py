"""Starts servers, waits until they answer, and stops them."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from resource import struct_rusage
from typing import Any, NamedTuple

from collect.measure.caching_proxies import PROXIES
from collect.measure.control_groups import Accounting, Group
from collect.measure.server_commands import (
    Setting,
    command_of,
    is_floor,
    is_peer,
    is_proxy,
    is_set_up_as_proxy,
    is_set_up_to_work,
)
from collect.project import CLIENTS, COLLECT
from collect.readable_numbers import one_line

PATIENCE_SECONDS = 10.0
# A host that has to find the memory for a ballast first may take seconds for each GiB.
PATIENCE_PER_GIB = 15.0
STOP_SECONDS = 8.0
ASK_SECONDS = 5.0
TRIES = 5
# Each server has this in its environment, with its folder as the value.
MARK = "FORK_VS_THREAD_SERVER"


class ServerProblem(Exception):
    """The reason why a server does not start, and a run is invalid."""


class WorkerCounts(NamedTuple):
    """What a worker of a server has counted. Only event loops count waits and events."""

    requests: int
    waits: int
    events: int


@dataclass
class Server:
    """A server that runs."""

    label: str
    process: subprocess.Popen[bytes]
    group: Group
    folder: Path
    url: str = ""
    # The requests that it has certainly had; some may not be counted yet.
    least_requests: int = 0
    warm: int = 0
    runs_made: int = 0
    has_workers: bool = True
    counts_of_workers: list[WorkerCounts] | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stats(self) -> Path:
        return self.folder / "stats"

    @property
    def address(self) -> tuple[str, int]:
        return split_address(self.url)

    def runs(self) -> bool:
        return self.process.poll() is None

    def lost_its_port(self) -> bool:
        """Returns true if it says that its port was taken, maybe in many more lines."""
        said = (self.folder / "stderr").read_text(errors="replace")
        return "ddress already in use" in said

    def last_words(self) -> str:
        """The last lines of its standard error, in one line."""
        lines = (self.folder / "stderr").read_text(errors="replace").splitlines()
        return one_line(" ".join(lines[-3:]))[:200]


def split_address(url: str) -> tuple[str, int]:
    address = url.split("//", 1)[1].split("/", 1)[0]
    host, _, port = address.rpartition(":")
    return host, int(port)


def ask(url: str, target: str) -> list[str]:
    """Returns the head of the response to a request for a path or, from a proxy, for a whole URL;
    nothing when nobody responds."""
    host = "localhost"
    if target.startswith("http://"):
        host = target.split("/")[2]
    else:
        target = f"/{target}"
    request = f"GET {target} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
    try:
        address = ("127.0.0.1", split_address(url)[1])
        with socket.create_connection(address, ASK_SECONDS) as client:
            client.sendall(request)
            return _head(client)
    except OSError:
        return []


def _head(client: socket.socket) -> list[str]:
    data = b""
    while b"\r\n\r\n" not in data and len(data) < 65536:
        part = client.recv(8192)
        if not part:
            break
        data += part
    return data.split(b"\r\n\r\n", 1)[0].decode("latin-1").split("\r\n")


def free_port() -> int:
    """A port that nobody listens on, below those that the kernel gives to clients."""
    for _ in range(50):
        port = random.randrange(12000, 30000)
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise ServerProblem("no port is free")


class Servers:
    """The servers of a study, by a key that says what they were started for."""

    def __init__(self, work: Path, accounting: Accounting) -> None:
        self.work = work
        self.accounting = accounting
        self.running: dict[str, Server] = {}
        self.number = 0

    def start(self, key: str, setting: Setting) -> Server:
        """Starts a server under a key; raises ServerProblem when it does not answer."""
        _check(setting)
        self._certify(setting)
        problem = ""
        for _ in range(TRIES):
            server = self._launch(setting)
            self.running[key] = server
            try:
                if self._wait(server, setting):
                    return server
                problem = f"{setting.label} does not start: {_failure(server, setting)}"
            except BaseException:
                self.stop(key)
                raise
            self.stop(key)
            # Another process may have taken the port since it was found free; no other
            # failure is worth a second try.
            if not setting.is_given_port or not server.lost_its_port():
                break
        raise ServerProblem(problem)

    def _launch(self, setting: Setting) -> Server:
        self.number += 1
        folder = self.work / f"server.{self.number}"
        folder.mkdir()
        port = free_port() if setting.is_given_port else 0
        if setting.memory_limit and not self.accounting.memory:
            raise ServerProblem("no control group limits the memory of a server here")
        group = self.accounting.group(str(self.number), setting.memory_limit)
        hold = ["--processors", setting.processors] if setting.processors else []
        command = [str(CLIENTS / "launch"), "server", *group.join, *hold, "--"]
        command += command_of(setting, folder, port)
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                cwd=setting.directory or None, env={**os.environ, MARK: str(folder)},
            )  # fmt: skip
        server = Server(setting.label, process, group, folder)
        if port:
            scheme = "https" if setting.scheme == "https" else "http"
            server.url = f"{scheme}://127.0.0.1:{port}/"
        return server

    def _wait(self, server: Server, setting: Setting) -> bool:
        """Waits for the server to name its URL (ours, floors) and to answer there. It is asked
        without TLS: a server of TLS answers that, too, by an error."""
        deadline = time.monotonic() + _patience(setting)
        while time.monotonic() < deadline:
            if not server.url:
                match = re.search(r"https?://\S*", _first_line(server.folder / "stdout"))
                server.url = match[0] if match else ""
            if server.url and (ask(server.url, setting.path) or [""])[0].startswith("HTTP/"):
                return True
            if not server.runs():
                return False
            time.sleep(0.002)
        return False

    def _certify(self, setting: Setting) -> None:
        """Makes the certificate of a setting, where there is none yet: in the work folder, so that
        nobody's own is touched."""
        folder = setting.certificates / setting.certificate
        if setting.scheme != "https" or (folder / "cert.pem").exists():
            return
        setting.certificates.mkdir(exist_ok=True)
        bits = [setting.certificate.removeprefix("rsa")] if setting.certificate != "p256" else []
        command = [str(COLLECT / "certificate.sh"), str(folder), *bits]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServerProblem(f"no certificate: {one_line(done.stderr)[-200:]}")

    def stop(self, key: str) -> struct_rusage | None:
        """Stops a server by SIGTERM and waits for it; what does not end in time, or was left
        behind, is killed. Returns what the kernel counted of it and of all its children."""
        server = self.running.pop(key, None)
        if server is None:
            return None
        with suppress(OSError):
            server.process.send_signal(signal.SIGTERM)
        return self._reap(server)

    def _reap(self, server: Server) -> struct_rusage | None:
        usage = _wait(server.process, STOP_SECONDS)
        with suppress(OSError):
            # Its process group, which outlives it where it left a process behind.
            os.killpg(server.pid, signal.SIGKILL)
        server.process.wait()
        self.accounting.end_group(server.group)
        _end_marked(server.folder)
        return usage

    def stop_all(self) -> None:
        servers = list(self.running.values())
        self.running.clear()
        for server in servers:
            with suppress(OSError):
                server.process.send_signal(signal.SIGTERM)
        for server in servers:
            self._reap(server)


def _end_marked(folder: Path) -> None:
    """Kills the processes of a server that left its process group where there is no control group
    to find them by."""
    mark = f"{MARK}={folder}".encode()
    for _ in range(TRIES):
        found = [int(path.name) for path in Path("/proc").glob("[0-9]*")
                 if mark in _read(path / "environ").split(b"\0")]  # fmt: skip
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _read(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""


def _wait(process: subprocess.Popen[bytes], seconds: float) -> struct_rusage | None:
    """Waits for the end of a process; None where it has been waited for, or does not end."""
    deadline = time.monotonic() + seconds
    while process.returncode is None and time.monotonic() < deadline:
        usage: struct_rusage
        try:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage
        time.sleep(0.001)
    return None


def _patience(setting: Setting) -> float:
    """How long a server may take until it answers, in seconds."""
    return PATIENCE_SECONDS + PATIENCE_PER_GIB * setting.ballast / 1024


def _failure(server: Server, setting: Setting) -> str:
    """Says why a server does not answer."""
    words = server.last_words()
    if not setting.command:
        return words or f"it is not ready after {_patience(setting):.0f} s"
    said = f"; it printed: {words}" if words else ""
    place = f"127.0.0.1:{server.address[1]}"
    if not server.runs():
        return f"`{setting.command}` ended with status {server.process.returncode}{said}"
    if not _listens(server):
        return f"nothing listens at {place} after {PATIENCE_SECONDS:.0f} s{said}"
    return f"it listens at {place}, but does not answer GET /{setting.path} by HTTP{said}"


def _listens(server: Server) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(server.address) == 0


def _first_line(path: Path) -> str:
    text = path.read_text(errors="replace")
    return text.split("\n", 1)[0] if "\n" in text else ""


def _check(setting: Setting) -> None:
    """Raises for what a peer or a floor is not set up for."""
    name = setting.name
    tls = name == "nginx" and setting.scheme == "https"
    if setting.is_given_port and setting.scheme != "http" and not tls:
        raise ServerProblem(f"{name} is not set up for {setting.scheme}")
    theirs = setting.is_given_port or is_floor(name)
    if theirs and is_proxy(setting) and not is_set_up_as_proxy(setting):
        what = "one that validates each time" if name == "nginx" else "a proxy"
        raise ServerProblem(f"{name} is not set up as {what}")
    if is_peer(name) and setting.service == "work" and not is_set_up_to_work(setting):
        raise ServerProblem(f"{name} is not set up for the work of /{setting.path}")
    if name in PROXIES and not is_proxy(setting):
        raise ServerProblem(f"{name} is a proxy, and serves no documents")
    if (setting.command or is_floor(name)) and setting.near:
        raise ServerProblem(f"{name} listens on the loopback alone, and the load is elsewhere")


def told_stats(server: Server) -> dict[str, Any] | None:
    """Asks a server of ours for its counters; None when it does not tell. Only one that
    understands --stats has made the file, and may be sent the signal."""
    if not server.stats.exists():
        return None
    # The counters that it wrote the last time must not be read again.
    server.stats.write_text("")
    try:
        server.process.send_signal(signal.SIGUSR1)
    except OSError:
        return None
    deadline = time.monotonic() + ASK_SECONDS
    while time.monotonic() < deadline and server.runs():
        time.sleep(0.002)
        with suppress(ValueError):
            return dict(json.loads(server.stats.read_text()))
    return None


def count_requests(server: Server, least: int) -> int | None:
    """Returns how many requests a server has answered, waiting until they are `least`: a
    connection is counted when it has ended, and its client may know that sooner."""
    count = None
    for _ in range(60):
        told = told_stats(server)
        if not told or "requests" not in told:
            return None
        count = int(told["requests"])
        if count >= least:
            break
    return count


def count_of_workers(server: Server, least: int) -> list[WorkerCounts] | None:
    """Returns what each worker of a server has counted, waiting until it has answered `least`
    requests in all; None where a server has no workers or does not tell."""
    for _ in range(60):
        told = told_stats(server)
        if not told or not told.get("workers"):
            return None
        counts = [
            WorkerCounts(*(int(worker.get(name, 0)) for name in WorkerCounts._fields))
            for worker in told["workers"]
        ]
        if sum(count.requests for count in counts) >= least:
            return counts
    return None
