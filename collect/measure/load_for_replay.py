"""The load of a replay: a few clients at once, slow ones among them, each with its own times."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

SMALL, BIG, CRASH = "small.txt", "1000000.bin", "crash"
# One in so many requests is for the big document.
BIG_EVERY = 4
# A slow client sends its request in pieces, with a pause before each but the first.
SLOW_PIECES = 5
SLOW_PAUSE_SECONDS = 0.005
PATIENCE_SECONDS = 20.0


@dataclass
class Visit:
    """A connection as its client saw it. Times are nanoseconds of the monotonic clock; 0: never."""

    number: int
    slow: bool
    document: str
    port: int = 0
    connecting: int = 0
    connected: int = 0
    first_byte: int = 0
    ended: int = 0
    status: int = 0
    bytes: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Play:
    """The load that each server gets: so many clients at once, slow ones, and requests of the
    others. With `crash` one of these ends the process that serves it."""

    clients: int
    slow: int
    requests: int
    crash: bool = False

    def visits(self) -> list[Visit]:
        """The connections of the load. The slow ones come first."""
        slow = [Visit(number, True, SMALL) for number in range(1, self.slow + 1)]
        fast = [
            Visit(self.slow + number, False, SMALL if number % BIG_EVERY else BIG)
            for number in range(1, self.requests + 1)
        ]
        if self.crash:
            fast[len(fast) // 2].document = CRASH
        return slow + fast


@dataclass
class _Queue:
    """The visits that no client has begun yet."""

    waiting: list[Visit]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> Visit | None:
        with self.lock:
            return self.waiting.pop(0) if self.waiting else None


def play(address: tuple[str, int], load: Play) -> list[Visit]:
    """Plays a load against a server. Returns its connections, when all of them have ended."""
    visits = load.visits()
    queue = _Queue([visit for visit in visits if not visit.slow])
    slow = [visit for visit in visits if visit.slow]
    begun = [threading.Event() for _ in slow]
    all_begun = threading.Event()
    threads = [
        threading.Thread(target=_be_slow, args=(address, one, event, all_begun))
        for one, event in zip(slow, begun, strict=True)
    ]
    _start(threads)
    # The slow clients are first in the accept queue.
    for event in begun:
        event.wait()
    all_begun.set()
    others = [threading.Thread(target=_be_fast, args=(address, queue)) for _ in range(load.clients)]
    _start(others)
    for thread in (*threads, *others):
        thread.join()
    return visits


def _start(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.start()


def _request(visit: Visit) -> bytes:
    head = f"GET /{visit.document} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    return head.encode()


def _connect(visit: Visit, address: tuple[str, int]) -> socket.socket:
    visit.connecting = time.monotonic_ns()
    client = socket.create_connection(address, PATIENCE_SECONDS)
    visit.connected = time.monotonic_ns()
    visit.port = client.getsockname()[1]
    return client


def _be_fast(address: tuple[str, int], queue: _Queue) -> None:
    while visit := queue.take():
        try:
            with _connect(visit, address) as client:
                client.sendall(_request(visit))
                _receive(visit, client)
        except OSError as error:
            visit.problem = str(error)
        visit.ended = time.monotonic_ns()


def _be_slow(
    address: tuple[str, int], visit: Visit, begun: threading.Event, all_begun: threading.Event
) -> None:
    """Plays a slow client. One that fails counts as begun, too."""
    request = _request(visit)
    size = -(-len(request) // SLOW_PIECES)
    pieces = [request[at : at + size] for at in range(0, len(request), size)]
    try:
        with _connect(visit, address) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(pieces[0])
            begun.set()
            all_begun.wait()
            for piece in pieces[1:]:
                time.sleep(SLOW_PAUSE_SECONDS)
                client.sendall(piece)
            _receive(visit, client)
    except OSError as error:
        visit.problem = str(error)
    begun.set()
    visit.ended = time.monotonic_ns()


def _receive(visit: Visit, client: socket.socket) -> None:
    """Reads a response to its end, and notes its status and its size with the head."""
    head = b""
    while data := client.recv(65536):
        if not visit.first_byte:
            visit.first_byte = time.monotonic_ns()
        if len(head) < 12:
            head += data[:12]
        visit.bytes += len(data)
    status = head[9:12]
    visit.status = int(status) if head.startswith(b"HTTP/1.1 ") and status.isdigit() else 0
