"""Tools that the programs of hostile input share: servers of their own, and responses read from raw bytes."""

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
PATIENCE = 30.0  # seconds; only for what would hang for ever


@dataclass
class Response:
    """One response, as a strict client reads it."""

    status: int
    fields: dict[str, str]
    body: bytes
    whole: bool
    end: str = ""  # how its body ends: length, chunked, close or none


def connections_to(port: int) -> set[str]:
    """Returns the TCP connections to a port, as /proc names them among descriptors."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if row[2].endswith(f":{port:04X}")}


@dataclass
class Server:
    """A running server of this project."""

    process: subprocess.Popen[str]
    port: int
    name: str
    errors: Path
    group: int = field(init=False)

    def __post_init__(self) -> None:
        self.group = self.process.pid

    def pids(self) -> list[int]:
        """Returns the server and the processes that it has made, but neither zombies nor helpers beside it."""
        family = {self.process.pid}
        members = group_members(self.group)
        while found := {pid for pid, parent, _ in members if parent in family} - family:
            family |= found
        return [pid for pid, _, state in members if pid in family and state != "Z"]

    def zombies(self) -> list[int]:
        """Returns the children that the server has not reaped."""
        return [pid for pid, parent, state in group_members(self.group) if state == "Z" and parent == self.process.pid]

    def descriptors(self, origin: int = 0) -> int:
        """Returns how many descriptors the processes of the server have open together, without
        those that a worker of a proxy opens when it first needs them, and keeps: the locks of the
        cache, and connections to the origin at this port."""
        kept = connections_to(origin) if origin else set()
        count = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                for name in os.listdir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(FileNotFoundError):
                        link = os.readlink(f"/proc/{pid}/fd/{name}")
                        count += link not in kept and not link.endswith("/cache/locks")
        return count

    def stop(self) -> int | None:
        """Stops the server; returns its status, or None if it had to be killed."""
        status: int | None = None
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.process.wait(PATIENCE)
        self.kill()
        return status

    def kill(self) -> None:
        """Ends all that is left of the group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGKILL)
        self.process.wait()


def group_members(group: int) -> list[tuple[int, int, str]]:
    """Returns the processes of a group, their parents and their states."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            text = Path("/proc", entry, "stat").read_text(errors="replace")
        except OSError:
            continue
        state, parent, its_group = text.rpartition(")")[2].split()[:3]
        if int(its_group) == group:
            found.append((int(entry), int(parent), state))
    return found


def end_orderly() -> None:
    """Makes signals that end this program end it as an exception does, so that its servers end, too."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def start_server(program: Path, place: Path, options: list[str]) -> Server:
    """Starts a server at a free port, and waits for its ready line."""
    errors = place / f"{program.name}.err"
    with errors.open("w") as output:
        process = subprocess.Popen(
            [str(program), *options, "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=output,
            text=True, start_new_session=True, cwd=place,
        )  # fmt: skip
    assert process.stdout is not None
    select.select([process.stdout], [], [], PATIENCE)
    found = re.search(r"https?://\S+?:(\d+)/", process.stdout.readline())
    if not found:
        process.kill()
        raise SystemExit(f"{program.name} does not start: {errors.read_text()}")
    return Server(process, int(found[1]), program.name, errors)


class Reader:
    """Reads responses from a socket, one after the other."""

    def __init__(self, connection: socket.socket, patience: float = PATIENCE) -> None:
        self.connection = connection
        self.patience = patience
        self.buffered = b""
        self.closed = False
        self.hung = False

    def fill(self) -> bool:
        """Receives more; returns false at the end of the connection, or of all patience."""
        if self.closed or self.hung:
            return False
        self.connection.settimeout(self.patience)
        try:
            data = self.connection.recv(65536)
        except TimeoutError:
            self.hung = True
            return False
        except OSError:
            data = b""
        self.closed = not data
        self.buffered += data
        return not self.closed

    def take(self, size: int) -> bytes:
        """Takes so many bytes, or those that there are."""
        while len(self.buffered) < size and self.fill():
            pass
        taken, self.buffered = self.buffered[:size], self.buffered[size:]
        return taken

    def take_line(self) -> bytes | None:
        """Takes a line without its end; None if there is no whole one."""
        while b"\n" not in self.buffered:
            if not self.fill():
                return None
        line, _, self.buffered = self.buffered.partition(b"\n")
        return line.rstrip(b"\r")

    def response(self, method: str = "GET") -> Response | None:
        """Reads a response; None if there is none. Interim ones are skipped."""
        while True:
            head = self.head()
            if head is None or head.status >= 200 or head.status == 101:
                break
        if head is None:
            return None
        if head.status in (204, 304) or method == "HEAD" or head.status < 200:
            head.end = "none"
        elif "chunked" in head.fields.get("transfer-encoding", "").lower():
            head.end = "chunked"
            head.whole = self.chunks(head)
        elif "content-length" in head.fields:
            head.end = "length"
            size = int(head.fields["content-length"])
            head.body = self.take(size)
            head.whole = len(head.body) == size
        else:
            head.end = "close"
            while self.fill():
                pass
            head.body, self.buffered = self.buffered, b""
        return head

    def head(self) -> Response | None:
        """Reads the head of a response; one that is none has status 0."""
        line = self.take_line()
        if line is None and self.buffered:
            line, self.buffered = self.buffered, b""
        if line is None:
            return None
        found = re.fullmatch(rb"HTTP/1\.[01] (\d\d\d)(?: .*)?", line)
        response = Response(int(found[1]) if found else 0, {}, line, bool(found))
        if not found:
            return response
        response.body = b""
        while (line := self.take_line()) != b"":
            if line is None:
                response.whole = False
                break
            name, _, value = line.decode("latin-1").partition(":")
            response.fields[name.lower()] = value.strip()
        return response

    def chunks(self, response: Response) -> bool:
        """Reads a chunked body; returns false if it is not whole."""
        while (line := self.take_line()) is not None:
            try:
                size = int(line.split(b";")[0], 16)
            except ValueError:
                return False
            response.body += self.take(size)
            end = self.take_line()
            if size == 0:
                while end:
                    end = self.take_line()
                return end is not None
        return False


def until(condition: Callable[[], bool], patience: float = PATIENCE) -> bool:
    """Asks until the condition holds; returns false when patience ends."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
