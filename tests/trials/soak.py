"""The soak: a mixed load for long, by which nothing of a server may grow."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trials import process_tree, servers
from trials.clients import Counts, Crowd, Load, Plan, make_documents
from trials.patience import patience
from trials.trial import CLIENTS, PROJECT, Context, Row, Trial, default_connections

SAMPLES = 48
MEMORY_MARGIN = 10
# Each model answers over a million requests in an hour's soak: a byte lost in each would be ten times this.
SPARE_KIB = 96
# Three servers keep documents, entries and locks of the cache, and connections to the origin open.
SPARE_DESCRIPTORS = 12
# Clients that send a byte a second.
SLOW = 4
# A request is late after so many seconds.
LATE = 30
# The least share of the sessions that are resumed, and the largest of the datagrams that are lost.
LEAST_RESUMED, MOST_LOST = 0.9, 0.1


@dataclass
class House:
    """One model as three servers: of documents (and datagrams), by TLS, and a proxy of the first."""

    plain: servers.Server
    tls: servers.Server
    proxy: servers.Server

    def all(self) -> list[servers.Server]:
        return [self.plain, self.tls, self.proxy]

    def held(self) -> process_tree.Held:
        parts = [process_tree.held(server.pid) for server in self.all()]
        return process_tree.Held(
            *(
                sum(getattr(part, name) for part in parts)
                for name in process_tree.Held.__annotations__
            )
        )


def _open(context: Context, name: str, documents: Path, certificate: Path) -> House:
    cert = ["--cert", str(certificate / "cert.pem"), "--key", str(certificate / "key.pem")]
    plain = servers.start(context, name, documents, "--udp")
    tls = servers.start(context, name, documents, "--tls", *cert)
    cache = context.folder() / "cache"
    origin = ["--origin", f"http://127.0.0.1:{plain.port}", "--cache", str(cache)]
    proxy = servers.start(context, name, documents, "--service", "proxy", *origin)
    return House(plain, tls, proxy)


@dataclass
class Told:
    """What a witness told at its end."""

    answered: int = 0
    lost: int = 0
    wrong: int = 0
    resumed: int = 0
    longest: float = 0.0  # seconds, with that of a request which still waited

    @property
    def failed(self) -> int:
        """How many failed, but for those that were lost."""
        return self.wrong + (self.longest > patience(LATE)) + (self.answered == 0)


class Witness:
    """collect/clients/witness by TLS or UDP."""

    def __init__(self, port: int, seconds: float, *how: str) -> None:
        command = [str(CLIENTS / "witness"), *how, "--requests", "10000000", "--concurrency", "1"]
        command += ["--seconds", f"{max(seconds, 1):.0f}", str(port), "/small.txt"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)

    def end(self) -> Told:
        words = self.process.communicate()[0].split()
        if words[:1] != ["witness"]:
            return Told()
        return Told(
            answered=int(words[2]),
            lost=int(words[3]),
            wrong=int(words[6]) + int(words[18]),
            resumed=int(words[19]),
            longest=float(words[16]) / 1000,
        )


def _failed(by_new: Told, by_resumed: Told, by_udp: Told) -> int:
    """Returns how many requests of the witnesses failed. A datagram may be lost, and is asked for
    again; not more than one of ten."""
    not_resumed = by_resumed.resumed < by_resumed.answered * LEAST_RESUMED - 1  # the first is new
    too_many_lost = by_udp.lost > by_udp.answered * MOST_LOST
    failed = by_new.failed + by_resumed.failed + by_udp.failed
    return failed + by_new.lost + by_resumed.lost + not_resumed + too_many_lost


def _mixed(
    context: Context, house: House, seconds: float, one_at_a_time: bool
) -> tuple[int, int, list[process_tree.Held]]:
    """Loads all three servers. Returns how many requests were answered and how many failed, and
    what the servers held at even distances. A server of one connection at a time gets no clients
    that stay, since nobody else would be served."""
    few = 1 if one_at_a_time else 2
    kept = 0 if one_at_a_time else 2
    pause = 0.002
    loads = [
        Load(Plan(server.port, fresh=few, kept=kept, pause=pause, patience=LATE))
        for server in (house.plain, house.proxy)
    ]
    witnesses = [
        Witness(house.tls.port, seconds, "--tls", "new"),
        Witness(house.tls.port, seconds, "--tls", "resumed"),
        Witness(house.plain.port, seconds, "--udp"),
    ]
    crowds = [] if one_at_a_time else [
        Crowd("slow", SLOW, house.plain.port, "/small.txt", "--patience", "1", "--seconds", "86400")
    ]  # fmt: skip
    samples = []
    begin = time.monotonic()
    for number in range(1, SAMPLES + 1):
        time.sleep(max(begin + number * seconds / SAMPLES - time.monotonic(), 0))
        samples.append(house.held())
    for crowd in crowds:
        crowd.end()
    counts: list[Counts] = [load.end() for load in loads]
    told = [witness.end() for witness in witnesses]
    answered = sum(one.answered for one in counts) + sum(one.answered for one in told)
    failed = sum(one.failed for one in counts) + _failed(*told)
    failed += sum(SLOW - crowd.connected for crowd in crowds)
    if failed:
        context.say(f"   failed: {counts} by TCP, {told[:2]} by TLS, {told[2]} by UDP")
    return answered, failed, samples


def _slope(values: list[int]) -> float:
    """How much the values grow from one to the next: the median of all pairs, which a few samples
    that met a busy moment do not move."""
    pairs = itertools.combinations(enumerate(values), 2)
    return statistics.median((b - a) / (j - i) for (i, a), (j, b) in pairs)


def _rows(
    context: Context, name: str, documents: Path, certificate: Path, seconds: float
) -> Iterator[Row]:
    house = _open(context, name, documents, certificate)
    for server in house.all():
        servers.answers(server)
    before = house.held()
    answered, failed, samples = _mixed(context, house, seconds, default_connections(name) == 1)

    def rested() -> bool:
        now = house.held()
        return (
            now.descriptors <= before.descriptors + SPARE_DESCRIPTORS
            and now.processes <= before.processes
            and not now.zombies
        )

    is_rested = process_tree.wait_until(rested, 40, 0.2)
    after = house.held()
    ended = [server.end() for server in house.all()]
    case = context.case(name, f"{seconds:.0f} s for each model")
    settled = [one.kib for one in samples[SAMPLES // 4 :]]
    middle = statistics.median(settled)
    margin = max(SPARE_KIB, middle * MEMORY_MARGIN / 100)
    growth = _slope(settled) * len(settled)
    yield case.fact("requests answered", answered)
    yield case.judge("lost, refused, late or wrong", failed, 0)
    yield case.fact("memory", f"{middle:,.0f} KiB")
    yield case.judge("growth", round(growth), round(margin), " KiB", is_time=True)
    requests = answered * len(settled) / len(samples)
    yield case.fact("growth a request", f"{1024 * growth / max(requests, 1):.2f} bytes")
    yield case.fact("descriptors", f"{before.descriptors} to {after.descriptors}")
    yield case.fact("processes", f"{before.processes} to {after.processes}")
    yield case.fact("zombies", after.zombies)
    yield case.judge("holds more at the end", int(not is_rested), 0)
    yield case.judge("stops that did not end", ended.count(False), 0)


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    certificate = context.folder() / "certificate"
    command = [str(PROJECT / "collect/certificate.sh"), str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    for name in context.models:
        yield from _rows(context, name, documents, certificate, context.soak / len(context.models))


TRIAL = Trial(
    "soak",
    "Soak",
    "Three servers of each model, one for documents and datagrams, one for TLS, and a proxy of the "
    "first, under a mixed load: a connection for each request, persistent and slow connections, new "
    "and resumed TLS sessions, datagrams, and requests through the proxy's cache. `--soak S` is how "
    "long, for all models together: 3600 is 450 s for each of eight.",
    f"Memory may grow by {MEMORY_MARGIN}% (or {SPARE_KIB} KiB) in the last three quarters: the median slope of all "
    f"pairs of {SAMPLES - SAMPLES // 4} samples. When the load has "
    f"ended, no process and no zombie more than before may be left, and at most {SPARE_DESCRIPTORS} descriptors more, "
    "of documents, entries and locks of the cache, and connections to the origin. No request may fail (a datagram may be "
    "lost, one of ten), and nine of ten sessions that a client wants to resume must be resumed.",
    run,
    peers="No peer beside: what is measured is growth.",
    again="--soak 3600",
)
