"""Invents traces for the tests of the replay, in the format of --trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from collect.measure.load_for_replay import Play, Visit
from collect.present.replay_scene import Scene, scene_of

START_NS = 5_000_000_000
# The load begins so long after the trace.
LATER_US = 1000.0
MAIN = 100


@dataclass
class Trace:
    """A trace in the making. Times are microseconds after the load began."""

    model: str
    events: list[dict[str, Any]] = field(default_factory=list)
    lost: int = 0

    def thread(self, pid: int, tid: int, name: str, born: float | None = None) -> None:
        self._add("M", "thread_name", pid, tid, args={"name": name})
        if born is not None:
            self.instant("start", pid, tid, born)

    def instant(self, name: str, pid: int, tid: int, at: float) -> None:
        self._add("i", name, pid, tid, ts=at + LATER_US, s="t", args={"cpu": 0})

    def span(
        self, pid: int, tid: int, name: str, start: float, end: float, connection: int = 0,
        **more: int,
    ) -> None:  # fmt: skip
        arguments = {"connection": connection, "cpu": tid % 2, **more}
        self._add("X", name, pid, tid, ts=start + LATER_US, dur=end - start, args=arguments)

    def _add(self, ph: str, name: str, pid: int, tid: int, **more: Any) -> None:
        self.events.append({"ph": ph, "name": name, "pid": pid, "tid": tid, **more})

    def whole(self) -> dict[str, Any]:
        about = {
            "server": f"{self.model}_server", "model": self.model, "version": "9.9",
            "command": [f"./{self.model}_server", "0"], "processors": 2, "lost": self.lost,
            "start_ns": START_NS,
        }  # fmt: skip
        events = sorted(self.events, key=lambda event: event.get("ts", 0.0))
        return {"displayTimeUnit": "ns", "otherData": about, "traceEvents": events}


def visits_of(load: Play, every: float = 100.0) -> list[Visit]:
    """Clients that connect one after the other; their ends are those of the server."""
    visits = load.visits()
    for index, visit in enumerate(visits):
        visit.connecting = _ns(index * every)
        visit.connected = visit.connecting + 20_000
        visit.port = 40_000 + index
        visit.status, visit.bytes = 200, 1000
    return visits


def _ns(time: float) -> int:
    return START_NS + round((time + LATER_US) * 1000)


SLOW_US = 40_000.0


def _serve(trace: Trace, pid: int, tid: int, visit: Visit, begin: float) -> float:
    """Serves a connection in one go; returns when it is closed."""
    number = visit.number + 50
    trace.span(pid, tid, "begin", begin, begin + 10, number)
    trace.span(pid, tid, "read", begin + 10, begin + 30, number, bytes=60)
    at = begin + 30
    if visit.slow:
        trace.span(pid, tid, "wait", at, at + SLOW_US, number)
        at += SLOW_US
    trace.span(pid, tid, "respond", at, at + 40, number, status=200)
    trace.span(pid, tid, "write", at + 40, at + 60, number, bytes=1000)
    trace.span(pid, tid, "close", at + 60, at + 70, number)
    visit.first_byte, visit.ended = _ns(at + 55), _ns(at + 65)
    return at + 70


def _accept(trace: Trace, visit: Visit, begin: float) -> float:
    trace.span(MAIN, MAIN, "accept", begin, begin + 10, visit.number + 50, port=visit.port)
    return begin + 10


def _arrival(visit: Visit) -> float:
    return (visit.connecting - _ns(0)) / 1000 + 30


def iterative(load: Play) -> tuple[Trace, list[Visit]]:
    trace, visits = Trace("iterative"), visits_of(load)
    trace.thread(MAIN, MAIN, "iterative_server")
    at = 0.0
    for visit in visits:
        at = max(at, _arrival(visit))
        at = _serve(trace, MAIN, MAIN, visit, _accept(trace, visit, at))
    return trace, visits


def fork(load: Play) -> tuple[Trace, list[Visit]]:
    return _each(load, "fork", 90.0)


def thread(load: Play) -> tuple[Trace, list[Visit]]:
    return _each(load, "thread", 30.0)


def _each(load: Play, model: str, cost: float) -> tuple[Trace, list[Visit]]:
    """A process or thread for each connection."""
    trace, visits = Trace(model), visits_of(load)
    trace.thread(MAIN, MAIN, f"{model}_server")
    at = 0.0
    for visit in visits:
        at = max(at, _arrival(visit))
        at = _accept(trace, visit, at)
        trace.span(MAIN, MAIN, "hand over", at, at + cost, visit.number + 50)
        at += cost
        tid = MAIN + visit.number
        pid = tid if model == "fork" else MAIN
        trace.thread(pid, tid, "child" if model == "fork" else "thread", born=at)
        trace.instant("end", pid, tid, _serve(trace, pid, tid, visit, at + 5) + 5)
        trace.span(MAIN, MAIN, "wait", at, at + 1)
    return trace, visits


def epoll(load: Play) -> tuple[Trace, list[Visit]]:
    """One loop: it holds the slow client's connection while it serves the others."""
    trace, visits = Trace("epoll"), visits_of(load)
    trace.thread(MAIN, MAIN, "worker 1")
    at = 0.0
    for visit in visits:
        at = _accept(trace, visit, max(at, _arrival(visit)))
        if visit.slow:
            trace.span(MAIN, MAIN, "begin", at, at + 5, visit.number + 50)
            at += 5
        else:
            at = _serve(trace, MAIN, MAIN, visit, at)
    for visit in visits[: load.slow]:
        trace.span(MAIN, MAIN, "wait", at, SLOW_US)
        trace.span(MAIN, MAIN, "close", SLOW_US, SLOW_US + 9, visit.number + 50)
        visit.first_byte = visit.ended = _ns(SLOW_US)
    return trace, visits


INVENTED = {"iterative": iterative, "fork": fork, "thread": thread, "epoll": epoll}
LOAD = Play(clients=4, slow=1, requests=8)


def scene(label: str, load: Play = LOAD) -> Scene:
    trace, visits = INVENTED[label](load)
    return scene_of(label, f"{label}, invented", trace.whole(), visits)
