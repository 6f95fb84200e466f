"""A scene of a replay: what one server did with the load, from its trace and its clients' times.

All times of a scene are microseconds since the first client began to connect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from collect.measure.load_for_replay import Visit
from collect.project import fail

# The activities of a thread, as servers record them. IDLE is their "wait" for no connection.
IDLE = "idle"
ACTIVITIES = ("accept", "hand over", "begin", "wait", "read", "respond", "write", "close", IDLE)
# The time that is shown after the last event, as a share of the scene.
TAIL = 0.01


@dataclass(frozen=True)
class Span:
    """A thread does something, for a connection (0: for none)."""

    start: float
    end: float
    what: str
    connection: int
    processor: int
    bytes: int = 0


@dataclass
class Thread:
    """A process or a thread of the server, and what it did one after the other."""

    pid: int
    tid: int
    name: str
    spans: list[Span] = field(default_factory=list)
    born: float | None = None  # within the scene
    died: float | None = None
    crashed: bool = False
    is_worker: bool = False
    # Threads that never lived at the same time may share a place on the page.
    place: int = 0

    @property
    def is_process(self) -> bool:
        return self.pid == self.tid

    @property
    def is_made_for_load(self) -> bool:
        """Returns true unless it was there before, or is a worker that was only slow to start."""
        return self.born is not None and not self.is_worker


@dataclass
class Connection:
    """A connection: its client's times, and those of the server."""

    number: int
    slow: bool
    document: str
    bytes: int
    status: int
    connecting: float
    first_byte: float | None
    ended: float
    accepted: float | None = None
    # The beginning of the first activity after it was accepted and handed over.
    begun: float | None = None
    closed: float | None = None


@dataclass
class Scene:
    """The threads of one server, and the connections that it had."""

    label: str
    model: str
    summary: str
    version: str
    command: str
    lost: int
    end: float
    threads: list[Thread]
    connections: list[Connection]
    # When the last fast client had its response, in each play of this server.
    plays: tuple[float, ...] = ()

    @property
    def fast_end(self) -> float:
        """When the last of the fast clients had its response."""
        return max((one.ended for one in self.connections if not one.slow), default=0.0)

    @property
    def failures(self) -> int:
        return sum(one.status != 200 for one in self.connections)

    @property
    def makes_threads(self) -> bool:
        return any(not thread.is_process for thread in self.threads)

    @property
    def processors(self) -> list[int]:
        """The processors on which it did something."""
        used = {span.processor for _, span in self.spans() if span.what != IDLE}
        return sorted(used)

    @property
    def places(self) -> int:
        return max((thread.place for thread in self.threads), default=-1) + 1

    def spans(self) -> Iterable[tuple[Thread, Span]]:
        for thread in self.threads:
            for span in thread.spans:
                yield thread, span

    @property
    def events(self) -> int:
        """How many events the scene shows: of the server and of its clients."""
        ends = sum((thread.born is not None) + (thread.died is not None) for thread in self.threads)
        return sum(len(thread.spans) for thread in self.threads) + ends + 3 * len(self.connections)


def quickest(scenes: Sequence[Scene]) -> Scene:
    """Returns the play of a server that others disturbed least."""
    best = min(scenes, key=lambda scene: (scene.failures, scene.fast_end))
    return replace(best, plays=tuple(sorted(scene.fast_end for scene in scenes)))


def typical(scenes: Sequence[Scene]) -> Scene:
    """Returns the play with the median number of failed connections."""
    ranked = sorted(scenes, key=lambda scene: scene.failures)
    return replace(ranked[len(ranked) // 2], plays=tuple(sorted(s.fast_end for s in scenes)))


def scene_of_clients(label: str, version: str, summary: str, visits: Sequence[Visit]) -> Scene:
    """A scene without a trace, since the server crashed: what its clients saw."""
    origin = min(visit.connecting for visit in visits)
    connections = [_connection(visit, origin) for visit in visits]
    end = max(one.ended for one in connections) * (1 + TAIL)
    return Scene(label, label, summary, version, "", 0, end, [], connections)


def scene_of(label: str, summary: str, trace: Mapping[str, Any], visits: Sequence[Visit]) -> Scene:
    """Puts the trace of a server and the times of its clients together."""
    about = trace["otherData"]
    if "start_ns" not in about:
        fail(f"the trace of {label} does not say when it began")
    origin = min(visit.connecting for visit in visits)
    shift = (about["start_ns"] - origin) / 1000
    connections = [_connection(visit, origin) for visit in visits]
    numbers = _numbers(trace["traceEvents"], visits, shift)
    threads = _threads(trace["traceEvents"], numbers, shift)
    for connection in connections:
        _follow(connection, threads)
    for thread in threads:
        if thread.crashed and thread.spans:
            _end_with_client(thread, connections)
    last = max(max(one.ended, one.closed or 0.0) for one in connections)
    end = last * (1 + TAIL)
    threads = [seen for thread in threads if (seen := _within(thread, end))]
    _place(threads)
    return Scene(
        label, about["model"], summary, str(about["version"]), " ".join(about["command"]),
        int(about["lost"]), end, threads, connections,
    )  # fmt: skip


def _connection(visit: Visit, origin: int) -> Connection:
    def since(moment: int) -> float:
        return (moment - origin) / 1000

    return Connection(
        visit.number, visit.slow, visit.document, visit.bytes, visit.status,
        since(visit.connecting), since(visit.first_byte) if visit.first_byte else None,
        since(visit.ended),
    )  # fmt: skip


def _numbers(
    events: Iterable[Mapping[str, Any]], visits: Sequence[Visit], shift: float
) -> dict[int, int]:
    """The number of each connection of the load, by the number that the server gave it."""
    ports = {visit.port: visit.number for visit in visits if visit.port}
    numbers = {}
    for event in events:
        arguments = event.get("args", {})
        if event["name"] != "accept" or arguments.get("port") not in ports:
            continue
        # The check that the server answers came before, and may have had the same port.
        if event["ts"] + event.get("dur", 0) + shift >= 0:
            numbers[int(arguments["connection"])] = ports[arguments["port"]]
    return numbers


def _threads(
    events: Iterable[Mapping[str, Any]], numbers: Mapping[int, int], shift: float
) -> list[Thread]:
    threads: dict[int, Thread] = {}
    for event in events:
        tid = int(event["tid"])
        if event["ph"] not in "XMi":
            continue
        thread = threads.setdefault(tid, Thread(int(event["pid"]), tid, ""))
        if event["name"] == "thread_name":
            thread.name = str(event["args"]["name"])
        elif event["ph"] == "i" and event["name"] == "start":
            thread.born = event["ts"] + shift
            thread.is_worker = "worker" in event["args"]
        elif event["ph"] == "i" and event["name"] == "end":
            thread.died = event["ts"] + shift
            thread.crashed = "died" in event["args"]
        elif event["ph"] == "X":
            thread.spans.append(_span(event, numbers, shift))
    for thread in threads.values():
        thread.spans.sort(key=lambda span: span.start)
    return list(threads.values())


def _span(event: Mapping[str, Any], numbers: Mapping[int, int], shift: float) -> Span:
    arguments = event.get("args", {})
    known = int(arguments.get("connection", 0))
    start = event["ts"] + shift
    what = IDLE if event["name"] == "wait" and not known else str(event["name"])
    return Span(
        start, start + event.get("dur", 0.0), what, numbers.get(known, 0),
        int(arguments.get("cpu", 0)), int(arguments.get("bytes", 0)),
    )  # fmt: skip


def _follow(connection: Connection, threads: Iterable[Thread]) -> None:
    """Finds when the server accepted a connection, began with it and closed it."""
    own = [
        span for thread in threads for span in thread.spans if span.connection == connection.number
    ]
    own.sort(key=lambda span: span.start)
    for span in own:
        if span.what == "accept" and connection.accepted is None:
            connection.accepted = span.start
        elif span.what == "close":
            connection.closed = span.end
        elif span.what not in ("accept", "hand over") and connection.begun is None:
            connection.begun = span.start


def _end_with_client(thread: Thread, connections: Iterable[Connection]) -> None:
    """A parent may notice late that a child has crashed: its client saw it at once."""
    last = thread.spans[-1]
    ends = [one.ended for one in connections if one.number == last.connection]
    end = min((moment for moment in ends if moment > last.start), default=last.end)
    if end < last.end:
        thread.spans[-1] = replace(last, end=end)
        thread.died = end


def _within(thread: Thread, end: float) -> Thread | None:
    """Returns the part of a thread that lies between the beginning and the end of the load."""
    spans = [
        Span(max(s.start, 0.0), min(s.end, end), s.what, s.connection, s.processor, s.bytes)
        for s in thread.spans
        if s.end > 0 and s.start < end
    ]
    born = thread.born if thread.born is not None and thread.born >= 0 else None
    died = thread.died if thread.died is not None and thread.died <= end else None
    if not spans or (died is not None and died <= 0):
        return None
    return replace(thread, spans=spans, born=born, died=died)


def _place(threads: list[Thread]) -> None:
    """Gives each thread the first place that nobody has while it lives."""
    threads.sort(key=lambda thread: (_begin(thread), thread.tid))
    free_from: list[float] = []
    for thread in threads:
        begin = _begin(thread)
        last = thread.died if thread.died is not None else float("inf")
        last = max(last, thread.spans[-1].end)
        place = next((n for n, free in enumerate(free_from) if free <= begin), len(free_from))
        if place == len(free_from):
            free_from.append(last)
        free_from[place] = last
        thread.place = place


def _begin(thread: Thread) -> float:
    first = thread.spans[0].start
    return first if thread.born is None else min(thread.born, first)


def most_held(thread: Thread, connections: Sequence[Connection]) -> tuple[int, float] | None:
    """The most connections that a thread held at once, each from its beginning on, and when."""
    begun = {
        span.connection
        for span in thread.spans
        if span.connection and span.what not in ("accept", "hand over")
    }
    changes = []
    for one in connections:
        if one.number in begun and one.begun is not None:
            changes.append((one.begun, 1))
            changes.append((one.closed if one.closed is not None else one.ended, -1))
    most, now, when = 0, 0, 0.0
    for moment, change in sorted(changes):
        now += change
        if now > most:
            most, when = now, moment
    return (most, when) if most else None
