"""Starts our servers and the peers, and ends them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from collect.measure.server_commands import Setting, command_of
from collect.measure.servers import free_port
from trials import process_tree
from trials.clients import fetch, is_whole
from trials.patience import patience
from trials.trial import PROJECT, Context

START_SECONDS = 15.0
END_SECONDS = 8.0
# The recipe of each peer in the study, its program, its package, and the signal of its graceful stop.
RECIPES = {"nginx": "nginx", "lighttpd": "lighttpd", "apache": "apache-event"}
PROGRAMS = {"nginx": "nginx", "lighttpd": "lighttpd", "apache": "apache2"}
PACKAGES = {"nginx": "nginx-light", "lighttpd": "lighttpd", "apache": "apache2-bin"}
GRACEFUL = {"nginx": signal.SIGQUIT, "lighttpd": signal.SIGINT, "apache": signal.SIGWINCH}
Change = Callable[[str], str]


class Problem(Exception):
    """Why a server does not start."""


@dataclass
class Server:
    """A server that runs: `pid` is its first process, which an upgrade replaces."""

    name: str
    pid: int
    port: int
    folder: Path
    group: int
    tls: bool = False

    def runs(self) -> bool:
        process_tree.reap()
        return bool(process_tree.name_of(self.pid)) and self.pid in process_tree.tree(os.getpid())

    def send(self, number: signal.Signals) -> None:
        with suppress(OSError):
            os.kill(self.pid, number)

    def end(self, number: signal.Signals = signal.SIGTERM, seconds: float = END_SECONDS) -> bool:
        """Stops the server, and kills what is left. Returns true if it ended in time."""
        self.send(number)
        ended = process_tree.wait_until(lambda: not self.runs(), seconds)
        process_tree.wait_until(lambda: not self._kill_rest(), 5)
        return ended

    def _kill_rest(self) -> bool:
        """Kills the processes of this server, also those that an upgrade left. Returns true if
        there were some."""
        process_tree.reap()
        left = self.roots()
        for root in left:
            for pid in process_tree.tree(root):
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        return bool(left)

    def roots(self) -> list[int]:
        """The first processes: one, or during an upgrade two."""
        below = process_tree.children().get(os.getpid(), [])
        return [
            pid for pid in below if process_tree.group_of(pid) == self.group or self._names(pid)
        ]

    def _names(self, pid: int) -> bool:
        """Returns true if a process has the folder of this server in its command or environment."""
        mark = f"{self.folder}/".encode()
        for file in ("cmdline", "environ"):
            with suppress(OSError):
                if mark in Path(f"/proc/{pid}/{file}").read_bytes():
                    return True
        return False

    def follow(self) -> bool:
        """Takes the newest of the first processes for the server. Returns false if none is left."""
        process_tree.reap()
        roots = self.roots()
        self.pid = max(roots, default=self.pid)
        return bool(roots)

    def errors(self) -> str:
        return (self.folder / "stderr").read_text(errors="replace")


def start(
    context: Context, name: str, documents: Path, *options: str, folder: Path | None = None,
    through: list[str] | None = None, user: int | None = None, build: Path = PROJECT,
    change: Change | None = None, workers: int | None = None,
) -> Server:  # fmt: skip
    """Starts one of our servers with these options, or a peer.

    through  a command that becomes the server
    user     the number of the user that it is started by
    change   changes the configuration of a peer
    """
    folder = folder or context.folder()
    own = folder / "server"
    own.mkdir(exist_ok=True)
    if user is not None:
        os.chown(own, user, user)
    port = 0
    if name in RECIPES:
        port = free_port()
        setting = Setting(RECIPES[name], documents, own, workers or os.cpu_count() or 1)
        command = command_of(setting, own, port)
        # nginx starts its next program by the name that it was started by, without looking in PATH.
        command[0] = shutil.which(command[0], path=_path()) or command[0]
        _configure(name, own, change)
    else:
        program = build / f"{name}_server"
        if user is not None:  # who may not enter the folder of the project
            program = Path(shutil.copy(program, folder))
        command = [str(program), "--root", str(documents), *options, "0"]
    process = _launch([*(through or []), *command], folder, user)
    server = Server(name, process, port, folder, process, "--tls" in options)
    _wait(server)
    return server


def _path() -> str:
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def _configure(name: str, folder: Path, change: Change | None) -> None:
    """Changes the configuration of a peer as a trial asks."""
    files = {"nginx": "nginx.conf", "lighttpd": "lighttpd.conf", "apache": "apache.conf"}
    path = folder / files[name]
    if change:
        path.write_text(change(path.read_text()))


def _launch(command: list[str], folder: Path, user: int | None) -> int:
    """Starts a command in a process group of its own. The name of its folder in its environment
    tells which server a process belongs to, whatever its parent is."""
    environment = {**os.environ, "PATH": _path(), "TRIAL_FOLDER": f"{folder}/"}
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, process_group=0,
            env=environment, cwd=folder, user=user, group=user,
            extra_groups=None if user is None else [],
        )  # fmt: skip
    # From now on this module waits for it: an upgrade makes other processes take its place.
    process.returncode = 0
    return process.pid


def _wait(server: Server) -> None:
    """Waits until the server answers."""
    deadline = time.monotonic() + patience(START_SECONDS)
    while time.monotonic() < deadline:
        if not server.port:
            text = (server.folder / "stdout").read_text(errors="replace")
            found = re.search(r"https?://\S*?:(\d+)/", text)
            server.port = int(found[1]) if found and "\n" in text else 0
        if server.port and fetch(server.port, seconds=2, tls=server.tls):
            return
        if not server.runs() and not server.follow():
            break
        time.sleep(0.01)
    said = " ".join(server.errors().split()[-40:])
    server.end(signal.SIGKILL)
    raise Problem(f"{server.name} does not start" + (f": {said}" if said else ""))


def wait_for_signal(server: Server) -> None:
    """Waits until no signal to the server's first process is pending."""

    def seen() -> bool:
        try:
            status = Path(f"/proc/{server.pid}/status").read_text()
        except OSError:
            return True
        return not any(int(bits, 16) for bits in re.findall(r"^S[hi]gPnd:\s+(\w+)", status, re.M))

    process_tree.wait_until(seen, 5)


def wait_for_end(server: Server, seconds: float = END_SECONDS) -> bool:
    return process_tree.wait_until(lambda: not server.runs(), seconds)


def answers(server: Server, times: int = 20) -> bool:
    """Returns true if a server answers so many requests, one after the other."""
    return all(is_whole(fetch(server.port, tls=server.tls)) for _ in range(times))
