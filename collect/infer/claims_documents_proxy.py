"""Tests of the claims about sized documents, the caching proxy and downloads."""

from __future__ import annotations

import numpy as np

from collect.infer.cells import Cells
from collect.infer.claim_building_blocks import (
    against,
    by_block,
    found,
    highest,
    lowest,
    said,
    trend,
    varies,
    without_mistake,
)
from collect.infer.claim_verdicts import CLAIM, READING, READING_ASIDE, READING_CONTROL, Finding
from collect.infer.contrast import Result
from collect.infer.statistics import line_fit
from collect.readable_numbers import thousands

REPORTED_TOOL = "ab"


def collapse(data: Cells, server: str, load: str, **more: str) -> Result | None:
    """Tests requests/s above concurrency 6 against up to 5."""
    few = data.pick(server=server, load=load, concurrency_max=5, **more)
    many = data.pick(server=server, load=load, concurrency_min=7, **more)
    return against(data, many, few, "rps")


def r2_1(data: Cells) -> list[Finding]:
    """A study with servers of a short queue tests the cause; any other tests the claim."""
    short = [server for server in data.subjects if "+backlog" in server]
    if short:
        return [f for server in short for f in _short_queue(data, server)]
    findings = []
    for service in data.levels["service"]:
        for server in data.subjects:
            result = collapse(data, server, REPORTED_TOOL, service=service)
            tested = (
                f"{_with_service(data, server, service)}: requests/s above concurrency 6 / up to 5"
            )
            findings += found(CLAIM, "collapse", tested, result)
    return findings


def _short_queue(data: Cells, server: str) -> list[Finding]:
    findings = []
    plain = without_mistake(data, server)
    for load in data.levels["load"]:
        by = f": requests/s above concurrency 6 / up to 5, load by {load}"
        result, control = collapse(data, server, load), collapse(data, plain, load)
        reported = load == REPORTED_TOOL
        findings += found(READING if reported else READING_ASIDE, "collapse", server + by, result)
        if reported:
            findings += found(READING, "size", f"{server + by}, size", result)
        findings += found(READING_CONTROL, "control", plain + by, control)
    return findings


def _with_service(data: Cells, server: str, service: str) -> str:
    return f"{server}, {said(data, 'service', service)}" if varies(data, "service") else server


def r2_2(data: Cells) -> list[Finding]:
    findings = []
    low, high = lowest(data, "requests"), highest(data, "requests")
    of_all = [(server, service) for server in data.subjects for service in data.levels["service"]]
    if len(data.levels["requests"]) > 2:
        counts = f"{thousands(float(high))} / {thousands(float(low))} requests"
        for server, service in of_all:
            cells = data.pick(server=server, service=service)
            growth = trend(data, cells, "rps", "requests", low, high, logarithmic=True)
            named = _with_service(data, server, service)
            findings += found(
                CLAIM, "growth", f"{named}: requests/s with {counts}, fitted line", growth
            )
    for server, service in of_all:
        named = _with_service(data, server, service)
        tested = f"{named}: seconds that 0 requests would take, line through 1 to 10"
        findings += found(READING, "start-up", tested, _fixed_cost(data, server, service), "s")
    return findings


def _fixed_cost(data: Cells, server: str, service: str) -> Result | None:
    """Tests the seconds of a run of no requests, by a line through runs of at most ten."""
    cells = data.pick(server=server, service=service, requests_max=10)
    seconds = data.measured("seconds")[cells]
    requests = np.array([float(data.value(c, "requests")) for c in cells])

    def intercept(block: int) -> float:
        known = ~np.isnan(seconds[:, block])
        if known.sum() < 4:
            return np.nan
        return line_fit(requests[known], seconds[known, block]).intercept

    return by_block(data, intercept)


def r2_3(data: Cells) -> list[Finding]:
    """Tests it as the report did: at concurrency 1, with the greatest number of requests."""
    top = highest(data, "requests")
    at = {"concurrency": "1", "requests": top}
    text = f" at concurrency 1, {said(data, 'requests', top)}"
    stored = "requests/s of the proxy that has the document / "
    behind = f"{stored}of the server behind it asked directly,{text}"
    fetching = f"{stored}that has to ask for it,{text}"
    findings = []
    for kind, rule, other, tested in (
        (CLAIM, "lead", "sized", behind),
        (READING, "cached", "proxy-miss", fetching),
    ):
        for server in data.subjects:
            above = data.pick(server=server, service="proxy-hit", **at)
            below = data.pick(server=server, service=other, **at)
            findings += found(kind, rule, f"{server}: {tested}", against(data, above, below, "rps"))
    return findings


def r2_4(data: Cells) -> list[Finding]:
    """Tests each server at one concurrency against itself at another, without keep-alive."""
    findings = []
    for server in data.subjects:
        for high, low, measure, rule in (
            (5, 1, "seconds", "shorter"),
            (10, 5, "seconds", "little"),
            (5, 1, "mean_ms", "longer"),
            (10, 5, "mean_ms", "longer"),
        ):
            above = data.pick(server=server, keepalive="off", concurrency=high)
            below = data.pick(server=server, keepalive="off", concurrency=low)
            what = "time of the whole test" if measure == "seconds" else "mean time of a request"
            tested = f"{server}: {what}, concurrency {high} / {low}"
            findings += found(CLAIM, rule, tested, against(data, above, below, measure))
    return findings


def r2_5(data: Cells) -> list[Finding]:
    findings = []
    for server in data.subjects:
        for concurrency in (1, 5):
            kept = data.pick(server=server, concurrency=concurrency, keepalive="on")
            closed = data.pick(server=server, concurrency=concurrency, keepalive="off")
            tested = (
                f"{server}: time of the whole test with keep-alive / without, "
                f"concurrency {concurrency}"
            )
            findings += found(CLAIM, "slower", tested, against(data, kept, closed, "seconds"))
    return findings


TESTS = {"R2.1": r2_1, "R2.2": r2_2, "R2.3": r2_3, "R2.4": r2_4, "R2.5": r2_5}
