"""Tests of the claims about protocols, TLS and UDP."""

from __future__ import annotations

import re

import numpy as np

from collect.infer.cells import Cells, is_floor
from collect.infer.claim_building_blocks import (
    by_block,
    found,
    has_level,
    highest,
    of_pairs,
    of_servers,
    said,
    server_named,
    varies,
    without_mistake,
)
from collect.infer.claim_verdicts import CLAIM, READING, Finding
from collect.infer.contrast import Result
from collect.readable_numbers import plural, thousands

Words = dict[str, str]
PROTOCOLS = ("simple", "persistent", "pipelined")


def speaking(data: Cells, model: str, protocol: str) -> Words | None:
    """Returns how a study names a model that speaks a protocol: by an option, or by a factor."""
    if has_level(data, "server", f"{model}+protocol={protocol}"):
        return {"server": f"{model}+protocol={protocol}"}
    if has_level(data, "server", model) and has_level(data, "protocol", protocol):
        return {"server": model, "protocol": protocol}
    return None


def speakers(data: Cells) -> list[str]:
    """Returns our models without their protocols; iterative alone, where it is there."""
    models = [re.sub(r"\+protocol=[a-z]+$", "", s) for s in data.subjects]
    ours = dict.fromkeys(m for m in models if not data.is_other(m) and not is_floor(m))
    return ["iterative"] if "iterative" in ours else list(ours)


def each_number(
    data: Cells, kind: str, rule: str, words: Words, changes: Words, tested: str
) -> list[Finding]:
    """A part for each number of connections, since few and many may differ."""
    findings = []
    for requests in data.levels["requests"]:
        connections = plural(float(requests), "connection", "connections")
        text = f"{tested}, {connections}" if varies(data, "requests") else tested
        cells = data.pick(requests=requests, **words)
        findings += of_pairs(data, rule, text, "rps", cells, changes, kind)
    return findings


def against_apache(data: Cells, calls: str, protocols: tuple[str, ...], rule: str) -> list[Finding]:
    """Our servers against Apache: a part for each, by the first of these protocols it speaks."""
    apache = server_named(data, "apache-prefork")
    if not apache or not has_level(data, "calls", calls):
        return []
    findings = []
    for model in speakers(data):
        spoken = next((p for p in protocols if speaking(data, model, p)), None)
        if spoken is None:
            continue
        words = speaking(data, model, spoken) or {}
        tested = (
            f"{model} / {apache}, requests/s, {said(data, 'calls', calls)}, "
            f"{said(data, 'protocol', spoken)}"
        )
        changes = {"server": apache}
        findings += each_number(data, CLAIM, rule, words | {"calls": calls}, changes, tested)
    return findings


def r3_1(data: Cells) -> list[Finding]:
    return against_apache(data, "1", PROTOCOLS, "lead")


def r3_2(data: Cells) -> list[Finding]:
    findings = []
    for model in speakers(data):
        simple, persistent = (speaking(data, model, p) for p in ("simple", "persistent"))
        if simple and persistent:
            tested = f"{model}: requests/s, persistent / simple, 1 call per connection"
            words = persistent | {"calls": "1"}
            findings += each_number(data, CLAIM, "no-faster", words, simple, tested)
    return findings


def r3_3(data: Cells) -> list[Finding]:
    return against_apache(data, "2", PROTOCOLS[1:], "well-ahead")


def r3_4(data: Cells) -> list[Finding]:
    findings = against_apache(data, "5", PROTOCOLS[1:], "far-behind")
    calls = highest(data, "calls")
    at = f", {said(data, 'calls', calls)}" if varies(data, "calls") else ""
    for server in data.subjects:
        if "+split" not in server:
            continue
        plain = without_mistake(data, server)
        cells = data.pick(calls=calls)
        servers = server, plain
        waits = ", so that it waits and does not work"
        pause = _longer(data, server, plain, calls)
        tested = f"{server} - {plain}, mean time of a request{at}"
        findings += of_servers(data, READING, "slower", servers, "rps", cells, at)
        findings += found(READING, "pause", tested, pause, "ms")
        findings += of_servers(data, READING, "no-work", servers, "server_cpu_us", cells, waits)
    return findings


def _longer(data: Cells, a: str, b: str, calls: str) -> Result | None:
    """Tests how much longer a request to server a takes than one to b, in milliseconds."""
    times = data.measured("mean_ms")
    pairs = [(c, data.like(c, server=b)) for c in data.pick(server=a, calls=calls)]
    rows = np.array([times[c] - times[other] for c, other in pairs if other is not None])

    def of_block(block: int) -> float:
        known = rows[:, block][~np.isnan(rows[:, block])] if len(rows) else np.empty(0)
        return float(known.mean()) if len(known) else np.nan

    return by_block(data, of_block)


def r3_5(data: Cells) -> list[Finding]:
    """That report's pipelined server made threads; its persistent one served one connection."""
    alone = speaking(data, "iterative", "persistent")
    pipelined = speaking(data, "thread", "pipelined")
    threaded = speaking(data, "thread", "persistent")
    one = ", requests/s, 1 call per connection"
    findings = []
    if alone and pipelined:
        tested = f"thread, pipelined / iterative, persistent{one}"
        findings += each_number(data, CLAIM, "slower", pipelined | {"calls": "1"}, alone, tested)
    if alone and threaded:
        tested = f"thread / iterative, both persistent{one}"
        findings += each_number(data, READING, "threaded", threaded | {"calls": "1"}, alone, tested)
    if pipelined and threaded:
        tested = f"pipelined / persistent, a thread for each connection both{one}"
        findings += each_number(data, READING, "same", pipelined | {"calls": "1"}, threaded, tested)
    return findings


# --- TLS ---

PLAIN = {"scheme": "http", "certificate": "-", "sessions": "-"}


def r4_1(data: Cells) -> list[Finding]:
    findings = []
    for server in data.subjects:
        if data.is_other(server) or server.startswith("epoll"):
            continue
        words = {
            "server": server,
            "scheme": "https",
            "certificate": "rsa2048",
            "sessions": "new",
            "load": "httperf",
        }
        tested = f"{server}: requests/s by HTTPS, a new session each, RSA-2048 / by HTTP"
        findings += each_number(data, CLAIM, "tenth", words, PLAIN, tested)
    return findings


def r4_2(data: Cells) -> list[Finding]:
    last = highest(data, "requests")
    first = next(
        (n for n in data.levels["requests"] if data.pick(load="httperf", requests=n)), last
    )
    if first == last:
        return []
    counts = f"{thousands(float(last))} / {thousands(float(first))} connections"
    findings = []
    for server in data.subjects:
        for name, words in (
            ("HTTP", {"scheme": "http"}),
            ("HTTPS, P-256", {"scheme": "https", "certificate": "p256"}),
            ("HTTPS, RSA-2048", {"scheme": "https", "certificate": "rsa2048"}),
        ):
            cells = data.pick(server=server, load="httperf", requests=last, **words)
            tested = f"{server}: requests/s by {name}, {counts}"
            findings += of_pairs(data, "same", tested, "rps", cells, {"requests": first})
    return findings


def against_nginx(data: Cells, server: str, rule: str) -> list[Finding]:
    """Server CPU per connection against nginx, for each kind of key and of session."""
    findings = []
    for certificate in _set_levels(data, "certificate"):
        for sessions in _set_levels(data, "sessions"):
            words = {"server": server, "load": "witness"}
            cells = data.pick(certificate=certificate, sessions=sessions, **words)
            tested = (
                f"{server} / nginx, server CPU per connection, "
                f"{said(data, 'certificate', certificate)}, {said(data, 'sessions', sessions)}"
            )
            findings += of_pairs(data, rule, tested, "server_cpu_us", cells, {"server": "nginx"})
    return findings


def _set_levels(data: Cells, factor: str) -> list[str]:
    return [value for value in data.levels.get(factor, []) if value != "-"]


def tls_1(data: Cells) -> list[Finding]:
    return against_nginx(data, "epoll", "cheaper")


def tls_2(data: Cells) -> list[Finding]:
    return against_nginx(data, "thread", "at-most")


def tls_3(data: Cells) -> list[Finding]:
    findings = []
    for server in data.subjects:
        what = f"{server}: server CPU per connection, "
        of_server = {"server": server, "load": "witness"}
        for certificate in _set_levels(data, "certificate"):
            cells = data.pick(certificate=certificate, sessions="resumed", **of_server)
            tested = f"{what}resumed / new, {said(data, 'certificate', certificate)}"
            findings += of_pairs(
                data, "cheaper", tested, "server_cpu_us", cells, {"sessions": "new"}
            )
        cells = data.pick(certificate="p256", sessions="new", **of_server)
        tested = f"{what}P-256 / RSA-2048, new sessions"
        changes = {"certificate": "rsa2048"}
        findings += of_pairs(data, "cheaper", tested, "server_cpu_us", cells, changes)
    return findings


# --- UDP ---


def u1(data: Cells) -> list[Finding]:
    findings = []
    for server in data.subjects:
        cells = data.pick(server=server, scheme="udp")
        for rule, measure, name in (
            ("cheaper", "server_cpu_us", "server CPU per request"),
            ("more", "rps", "requests/s"),
        ):
            tested = f"{server}: {name}, UDP / TCP, mean over all cells"
            findings += of_pairs(data, rule, tested, measure, cells, {"scheme": "http"})
    return findings


def u2(data: Cells) -> list[Finding]:
    """A request that was not answered in time at its first try counts as lost."""
    findings = []
    runs = data.valid_runs[data.valid_runs["scheme"] == "udp"]
    for server in data.subjects:
        lost = data.column("lost", runs[runs["server"] == server]).fillna(0)
        if len(lost):
            tested = f"{server}: runs by UDP in which a request was lost"
            count = int((lost > 0).sum())
            findings.append(Finding(CLAIM, tested, "none", "share", count=count, of=len(lost)))
    return findings


TESTS = {
    "R3.1": r3_1,
    "R3.2": r3_2,
    "R3.3": r3_3,
    "R3.4": r3_4,
    "R3.5": r3_5,
    "R4.1": r4_1,
    "R4.2": r4_2,
    "TLS.1": tls_1,
    "TLS.2": tls_2,
    "TLS.3": tls_3,
    "U1": u1,
    "U2": u2,
}
