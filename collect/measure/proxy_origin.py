"""The origin behind a proxy, and the proof that a hit was a hit.

The origin is `thread_server --service sized`, in a control group of its own, so that what it costs
is not put to the proxy. It runs where the load does. The service of a run says what the proxy is to
find:

proxy-hit           an odd size, which the origin lets it keep for an hour: the origin is not asked
proxy-revalidation  the same, but to be kept for no time: the origin is asked each time, and
                    answers 304; one answer may serve all requests that wait for it
proxy-miss          an even size, a new document each time: the origin is asked each time

Before the load and after it the proxy must say so itself, by Cache-Status; and the origin must have
been asked as many times as that means.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from collect.measure.server_commands import Setting
from collect.measure.servers import Server, ServerProblem, Servers, ask, count_requests

MODEL = "thread"
MAX_AGE = 3600

# The text in Cache-Status (RFC 9211) of a response of each service.
EXPECTED = {
    "proxy-hit": r".*; hit",
    "proxy-revalidation": r".*; fwd=stale; fwd-status=304",
    "proxy-miss": r".*; fwd=.*; fwd-status=200",
}


@dataclass
class Origin:
    """An origin, what the run asks of it, and how often it was asked before."""

    server: Server
    service: str
    file: str
    asked: int = 0

    @property
    def kind(self) -> str:
        return self.service.removeprefix("proxy-")


def _see(proxy: Server, origin: Origin) -> str:
    """Asks the proxy once; returns the problem when its response is not what the service says.
    Only a hit does not come to the origin."""
    head = ask(proxy.url, origin.server.url + origin.file)
    fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
    status = next((x[14:] for x in head if x.lower().startswith("cache-status: ")), "")
    good = head[:1] and re.match(r"HTTP/1\.. 200 ", head[0])
    told = fields.get("cache-status", "")
    if "; fwd=" in told:
        origin.server.least_requests += 1
    if good and re.match(EXPECTED[origin.service], told):
        return ""
    first = head[0] if head else ""
    return f"no {origin.kind}: the proxy says {first}, {status or 'no Cache-Status'}"


def begin(servers: Servers, proxy: Server, setting: Setting, service: str, file: str) -> Origin:
    """Starts the origin unless it runs, and has the proxy store the document."""
    max_age = 0 if service == "proxy-revalidation" else MAX_AGE
    key = f"origin {max_age}"
    server = servers.running.get(key)
    if server and not server.runs():
        servers.stop(key)
        server = None
    if server is None:
        try:
            wanted = replace(setting, label=MODEL, service="sized", max_age=max_age)
            server = servers.start(key, wanted)
            # It answered once.
            server.least_requests = 1
        except ServerProblem as error:
            raise ServerProblem(f"the origin: {error}") from error
    origin = Origin(server, service, file)
    # The first answer to a new proxy comes from the origin.
    words = _see(proxy, origin) and _see(proxy, origin)
    if words:
        raise ServerProblem(words)
    asked = count_requests(server, server.least_requests)
    if asked is None:
        raise ServerProblem("the origin does not say how often it was asked")
    origin.asked = server.least_requests = asked
    return origin


def bounds(service: str, requests: int, at_once: int) -> tuple[int, int]:
    """Returns how often the origin is asked at least and at most, by requests of so many clients at
    once."""
    if service == "proxy-hit":
        return 0, 0
    return math.ceil(requests / at_once) if service == "proxy-revalidation" else requests, requests


def check(origin: Origin, proxy: Server, requests: int, at_once: int, cut: int = 0) -> str:
    """Returns the problem when the origin was not asked as often as these requests mean. It may
    have been asked up to `cut` times more, for requests that the load did not wait for."""
    least, most = bounds(origin.service, requests, at_once)
    most += cut
    asked = count_requests(origin.server, origin.asked + least)
    if asked is None:
        return "the origin does not say how often it was asked"
    times = asked - origin.asked
    if not least <= times <= most:
        return f"no {origin.kind}: of {requests} requests the origin was asked for {times}"
    origin.server.least_requests = asked
    return _see(proxy, origin)
