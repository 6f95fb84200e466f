"""Clients in closed loops, in a process beside the trial, that count what a server loses.

A request is `lost` when the server took its connection and all of its bytes, and then gave no whole
response: a connection that ends, or is reset. `refused`: nobody took the connection. `late`: no
whole response within the patience. The client tries a request that failed again, and its wait
counts from the first try.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import random
import re
import select
import signal
import socket
import ssl
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path

from trials.patience import patience
from trials.trial import CLIENTS

RETRY_SECONDS = 0.002
# Clients that did nothing for so long do not ask as fast as they can.
STILL_SECONDS = 10.0
LENGTH = re.compile(rb"^Content-Length: *(\d+)", re.IGNORECASE | re.MULTILINE)
CLOSE = re.compile(rb"^Connection: *close", re.IGNORECASE | re.MULTILINE)


@dataclass
class Counts:
    """The record of what the clients saw.

    unserved the clients that never got a response
    longest  the longest wait for a response, in seconds, with that of requests still open
    still    the longest time in which no client was looked at
    losses   for each lost request: when its connection was begun
    """

    answered: int = 0
    refused: int = 0
    late: int = 0
    wrong: int = 0
    unserved: int = 0
    longest: float = 0.0
    still: float = 0.0
    losses: list[float] = field(default_factory=list)

    @property
    def lost(self) -> int:
        return len(self.losses)

    @property
    def failed(self) -> int:
        return self.lost + self.refused + self.late + self.wrong


@dataclass
class Plan:
    """Which clients there are, and what they ask for.

    fresh  clients with a connection for each request
    kept   clients that keep their connection
    pause  seconds between a response and the next request
    """

    port: int
    fresh: int = 16
    kept: int = 16
    path: str = "/small.txt"
    pause: float = 0.0
    patience: float = 10.0


class Client:
    """One client: a connection and a request at a time."""

    def __init__(self, plan: Plan, keeps: bool, number: int, counts: Counts) -> None:
        self.plan, self.keeps, self.counts = plan, keeps, counts
        head = f"GET {plan.path}?{number} HTTP/1.1\r\nHost: localhost\r\n"
        self.request = (head + ("" if keeps else "Connection: close\r\n") + "\r\n").encode()
        self.socket: socket.socket | None = None
        self.asked = self.connecting = self.served = False
        self.received = b""
        self.began = self.first = 0.0
        self.due = time.monotonic() + random.random() * plan.pause

    def start(self, poll: select.epoll, sockets: dict[int, Client], now: float) -> None:
        """Begins a request, on a new connection where there is none."""
        self.first = self.first or now
        self.received, self.asked = b"", False
        if self._is_kept():
            self._ask()
            return
        made = socket.socket()
        made.setblocking(False)
        self.socket, self.began, self.connecting = made, now, True
        sockets[made.fileno()] = self
        with suppress(BlockingIOError):
            made.connect(("127.0.0.1", self.plan.port))
        poll.register(made, select.EPOLLOUT)

    def _is_kept(self) -> bool:
        """Returns true if the client has a connection that the server has not closed. A server may
        close one between two requests, and a client that gets no processor sees that late."""
        if self.socket is None:
            return False
        try:
            closed = not self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            closed = False
        except OSError:
            closed = True
        if closed:
            self.leave()
        return not closed

    def _ask(self) -> None:
        assert self.socket is not None
        try:
            self.asked = self.socket.send(self.request) == len(self.request)
        except OSError:
            self._fail("reset")

    def handle(self, poll: select.epoll) -> None:
        assert self.socket is not None
        if self.connecting:
            if self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self._fail("refused")
                return
            self.connecting = False
            poll.modify(self.socket, select.EPOLLIN)
            self._ask()
            return
        try:
            part = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self._fail("end")
            return
        self.received += part
        self._look()

    def _look(self) -> None:
        """Looks whether the response is whole."""
        head, end, body = self.received.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if not end or (length and len(body) < int(length[1])):
            return
        now = time.monotonic()
        if not head.startswith(b"HTTP/1.1 200 ") or not length or len(body) > int(length[1]):
            self.counts.wrong += 1
        else:
            self.counts.answered += 1
            self.served = True
        self.counts.longest = max(self.counts.longest, now - self.first)
        self.first, self.asked = 0.0, False
        self.due = now + self.plan.pause
        if not self.keeps or CLOSE.search(head):
            self.leave()

    def _fail(self, how: str) -> None:
        """The connection has ended. A kept one may end between two requests."""
        if how == "refused" or (how == "reset" and not self.asked):
            self.counts.refused += 1
        elif self.asked:
            self.counts.losses.append(self.began)
        self.leave()
        self.due = max(self.due, time.monotonic() + RETRY_SECONDS)

    def expire(self, now: float) -> None:
        self.counts.late += 1
        self.counts.longest = max(self.counts.longest, now - self.first)
        self.first = 0.0
        self.leave()

    def leave(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.socket, self.asked, self.connecting = None, False, False


def _turn(clients: list[Client], sockets: dict[int, Client], poll: select.epoll) -> None:
    """Lets each client that is due begin, and waits for events of a few milliseconds."""
    now = time.monotonic()
    for client in clients:
        if client.first and client.first + patience(client.plan.patience) < now:
            client.expire(now)
        idle = client.socket is None or not (client.first or client.connecting)
        if idle and client.due <= now:
            client.start(poll, sockets, now)
    for descriptor, _ in poll.poll(0.002):
        client = sockets[descriptor]
        if client.socket is not None and client.socket.fileno() == descriptor:
            client.handle(poll)


def _run(plan: Plan, pipe: Connection, so_far: ctypes.Array[ctypes.c_int64]) -> None:
    """The process of the clients: works until the pipe has a word, and sends what was counted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    counts = Counts()
    every = plan.fresh + plan.kept
    clients = [Client(plan, number >= plan.fresh, number, counts) for number in range(every)]
    sockets: dict[int, Client] = {}
    poll = select.epoll()
    now = asked = time.monotonic()
    while now - asked < 0.02 or not pipe.poll():
        if now - asked >= 0.02:
            asked = now
        _turn(clients, sockets, poll)
        so_far[:] = [counts.answered, counts.wrong]
        counts.still = max(counts.still, time.monotonic() - now)
        now = time.monotonic()
    counts.unserved = sum(not one.served for one in clients)
    counts.longest = max([counts.longest, *(now - one.first for one in clients if one.first)])
    pipe.send(counts)
    for client in clients:
        client.leave()


class Load:
    """Clients that work until they are ended."""

    def __init__(self, plan: Plan) -> None:
        self.pipe, other = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        # It is no word on the pipe: a pipe that nobody reads is full after some seconds, and stops
        # the clients.
        self._so_far = context.RawArray(ctypes.c_int64, 2)
        self.process = context.Process(target=_run, args=(plan, other, self._so_far), daemon=True)
        self.process.start()
        other.close()

    def wait_for(self, answered: int, seconds: float = 20.0) -> bool:
        """Waits until so many requests were answered."""
        deadline = time.monotonic() + seconds
        while (
            self.progress() < answered and time.monotonic() < deadline and self.process.is_alive()
        ):
            time.sleep(0.01)
        return self.progress() >= answered

    def progress(self) -> int:
        """Returns how many requests were answered so far."""
        return self._so_far[0]

    def so_far(self) -> Counts:
        """Returns how many requests were answered so far, and how many got another response."""
        answered, wrong = self._so_far
        return Counts(answered=answered, wrong=wrong)

    def end(self) -> Counts:
        self.pipe.send("end")
        told = self.pipe.recv()
        assert isinstance(told, Counts)
        self.process.join()
        assert told.still < patience(STILL_SECONDS), f"clients stood still for {told.still:.1f} s"
        return told


class Crowd:
    """Many slow or idle connections, by collect/clients/hold_connections."""

    def __init__(self, kind: str, count: int, port: int, path: str, *options: str) -> None:
        command = [str(CLIENTS / "hold_connections"), kind, str(count), *options, str(port), path]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline().split()

    @property
    def connected(self) -> int:
        return int(self.ready[1]) if self.ready[:1] == ["ready"] else 0

    def end(self) -> dict[str, int]:
        """Ends the crowd. Returns how many connections it held, and how often it was cut off."""
        self.process.terminate()
        told = self.process.communicate()[0].split()
        names = ("held", "lost", "cut", "refused")
        return dict(zip(names, map(int, told[-4:]), strict=False)) if "end" in told else {}


@cache
def trusting() -> ssl.SSLContext:
    """The settings of a TLS client that trusts every certificate."""
    settings = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    settings.check_hostname = False
    settings.verify_mode = ssl.CERT_NONE
    return settings


def fetch(port: int, path: str = "/small.txt", seconds: float = 5.0, *, tls: bool = False) -> bytes:
    """A whole response, or less where the server ends the connection early or takes too long."""
    received = b""
    deadline = time.monotonic() + patience(seconds)
    try:
        with ExitStack() as stack:
            address = ("127.0.0.1", port)
            client = stack.enter_context(socket.create_connection(address, patience(seconds)))
            if tls:
                client = stack.enter_context(trusting().wrap_socket(client))
            client.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            while time.monotonic() < deadline:
                client.settimeout(max(deadline - time.monotonic(), 0.001))
                if not (part := client.recv(65536)):
                    break
                received += part
    except OSError:
        return received
    return received


def is_whole(response: bytes) -> bool:
    """Returns true if this is a whole response of status 200."""
    head, end, body = response.partition(b"\r\n\r\n")
    length = LENGTH.search(head)
    good = bool(re.match(rb"HTTP/1\.[01] 200 ", head)) and bool(end) and length is not None
    return good and length is not None and len(body) == int(length[1])


@dataclass
class Probes:
    """Single requests at a steady pace: how many failed, and the longest wait of a good one."""

    made: int = 0
    failed: int = 0
    longest: float = 0.0


def probe(port: int, count: int, pace: float) -> Probes:
    """Makes so many requests, `pace` seconds apart, each on its own connection. One fails that has
    no whole response in 3 s."""
    seen = Probes(count)
    lock = threading.Lock()

    def one() -> None:
        start = time.monotonic()
        good = is_whole(fetch(port, seconds=3))
        with lock:
            seen.failed += not good
            if good:
                seen.longest = max(seen.longest, time.monotonic() - start)

    threads = []
    begin = time.monotonic()
    for number in range(count):
        time.sleep(max(begin + number * pace - time.monotonic(), 0))
        threads.append(threading.Thread(target=one, daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return seen


class Download(threading.Thread):
    """A client that reads one document slowly, at so many bytes a second."""

    def __init__(self, port: int, path: str, rate: int) -> None:
        super().__init__(daemon=True)
        self.port, self.path, self.rate = port, path, rate
        self.whole = self.ended = False
        self.begun = threading.Event()

    def run(self) -> None:
        with suppress(OSError), socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            client.settimeout(patience(30))
            client.connect(("127.0.0.1", self.port))
            client.sendall(
                f"GET {self.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            )
            self._read(client)
        self.ended = True
        self.begun.set()

    def _read(self, client: socket.socket) -> None:
        start, received, head = time.monotonic(), 0, b""
        while part := client.recv(65536):
            received += len(part)
            if b"\r\n\r\n" not in head:
                head += part
            self.begun.set()
            time.sleep(max(start + received / self.rate - time.monotonic(), 0))
        first, _, _ = head.partition(b"\r\n\r\n")
        length = LENGTH.search(first)
        self.whole = length is not None and received == len(first) + 4 + int(length[1])


def make_documents(folder: Path) -> Path:
    """The documents that all servers serve."""
    (folder / "small.txt").write_bytes(b"s" * 1000)
    (folder / "big.bin").write_bytes(b"b" * (8 << 20))
    for path in folder.iterdir():
        path.chmod(0o644)
    return folder
