"""The load generators: the command of each, and the meaning of its output.

ab       Requests, concurrency and keep-alive as they are named. Its own report rounds times to
         whole milliseconds, and so does its -g file; the -e file has the quantiles from 0 to 100%
         in microseconds, so times come from there. A proxy is asked for what its origin has.
httperf  `requests` connections with `calls` requests each: one after the other at concurrency 1,
         or `rate` of them a second where the study sets one. At a higher concurrency that many
         connections come at once, and no more follow: where ab opens the next one in place of the
         first that is answered, here everybody waits for his own turn. Not with --hog, which binds
         each connection to a port before it connects, and spins for up to a minute when ports wait
         out their time. httperf never sleeps, so its own CPU time says nothing and is not
         recorded, and it wants a processor for itself. It resumes no TLS session.
witness  Our own (witness.c): as ab, but it ends after `duration` seconds, and survives refusals,
         resets and silence. With a `fault` it asks for /crash after so many responses. What it
         could not get is a result, not an invalid run. It resumes sessions and speaks UDP, as
         `open` does and no other.
open     Our own (open_loop.c): `rate` requests a second on average for `duration` seconds, as a
         Poisson process, whatever the server does; `concurrency` connections at most. Times count
         from when a request was due. Requests that failed, also by not being answered within
         `deadline` milliseconds, are a result; a run in which the client itself was late is not
         valid. Within a block all servers get the same arrivals, faster or slower. Without a rate,
         it offers a share of what the server can answer to a closed loop.
         After a surge it tells when the last request was due that failed.
wrk      `concurrency` connections for `duration` seconds, keep-alive or not; `requests` does not
         apply. It speaks HTTP/1.1 where ab speaks 1.0: a forward proxy keeps its connections.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from collect.design.factors import FOR_A_TIME
from collect.histogram import Histogram, add, from_text, of_microseconds, of_quantiles, quantile
from collect.measure.server_commands import Need
from collect.project import CLIENTS
from collect.readable_numbers import one_line
from collect.schema import BY_WORKER

NEEDS = {
    "ab": Need("ab", "apache2-utils"),
    "httperf": Need("httperf", "httperf"),
    "wrk": Need("wrk", "wrk"),
}
# A share of CPU time of a shorter run says nothing.
SHARE_SECONDS = 0.02
# The last share of a run in which a server that has recovered loses nothing.
CALM_SHARE = 0.1
# No load generator takes longer to start (ab: 6 ms).
START_SECONDS_MOST = 0.01
REASON_BYTES = 300
# What launch counts in a run, for each request.
EVENTS = ("voluntary", "involuntary", "faults", "disk_kib")
# Fewer requests have no 95th, and no 99th percentile.
P95_REQUESTS_LEAST = 20
P99_REQUESTS_LEAST = 100
TIMES = ("mean_ms", "sd_ms", "min_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "max_ms")


@dataclass(frozen=True)
class Load:
    """The task of a load generator."""

    generator: str
    url: str
    file: str
    concurrency: int
    requests: int | None
    calls: int = 1
    keep_alive: bool = False
    scheme: str = "http"
    sessions: str = "-"
    proxied: str = ""
    timeout: int = 60
    duration: int = 2
    rate: int | None = None
    deadline: int | None = None
    late_after: int = 100  # microseconds
    seed: int = 1
    other: str = ""
    mixed: int = 0  # percent of the requests that are for `other`
    by_thread: bool = False  # the open loop tells the threads of the server apart
    documents: int = 0  # the size of the set of which a request is for one; 0: all are for `file`
    warm_up: int = 0  # seconds before the run, whose requests do not count
    surge: int | None = None  # percent of the rate, in that time
    fault: int | None = None
    across: tuple[str, ...] = ()
    near: str = ""  # the address of the server, where the load is not on its machine

    @property
    def wanted(self) -> int:
        """The number of responses that it is to get."""
        return (self.requests or 0) * self.calls

    @property
    def for_a_time(self) -> bool:
        """Returns true if it ends after `duration` seconds, after any number of requests."""
        return self.generator in FOR_A_TIME

    @property
    def holds(self) -> bool:
        """Returns true if it opens all its connections first, which then take turns."""
        return self.generator == "open" and self.keep_alive

    @property
    def in_turn(self) -> bool:
        """Returns true if httperf opens its connections one after the other."""
        return self.concurrency == 1 and not self.rate


# The closed loop that finds out what a server can answer.
CLOSED_CONNECTIONS = 20
CLOSED_REQUESTS = 1_000_000


def closed_loop(load: Load, seconds: int, requests: int = CLOSED_REQUESTS) -> Load:
    """A load as this one, whose clients wait for each response: it keeps the server busy for so
    long, or, on new connections, for so many requests."""
    generator = "wrk" if load.keep_alive else "witness"
    connections = min(load.concurrency, CLOSED_CONNECTIONS)
    return replace(
        load,
        generator=generator,
        concurrency=connections,
        duration=seconds,
        warm_up=0,
        requests=requests,
    )


def command_of(load: Load, percentiles: Path) -> list[str]:
    """The command of a load; ab writes its quantiles to `percentiles`."""
    make = {"ab": _ab, "httperf": _httperf, "open": _open, "witness": _witness, "wrk": _wrk}
    return [*load.across, *make[load.generator](load, percentiles)]


def _address(load: Load) -> str:
    return load.url.split("//", 1)[1].split("/", 1)[0]


def _ab(load: Load, percentiles: Path) -> list[str]:
    command = ["ab", "-q", "-n", str(load.requests), "-c", str(load.concurrency)]
    command += ["-e", str(percentiles)]
    if load.keep_alive:
        command += ["-k"]
    if load.proxied:
        return [*command, "-X", _address(load), load.proxied + load.file]
    return [*command, load.url + load.file]


def _httperf(load: Load, _: Path) -> list[str]:
    host, port = _address(load).rsplit(":", 1)
    command = ["httperf", "--server", host, "--port", port, "--uri", f"/{load.file}"]
    command += ["--num-conns", str(load.requests), "--num-calls", str(load.calls)]
    command += ["--timeout", str(load.timeout)]
    if load.concurrency > 1:
        command += ["--rate", "10000"]
    elif load.rate:
        command += ["--rate", str(load.rate)]
    return [*command, "--ssl"] if load.scheme == "https" else command


def _open(load: Load, _: Path) -> list[str]:
    command = [str(CLIENTS / "open_loop"), "--rate", str(load.rate), "--seed", str(load.seed)]
    command += ["--seconds", str(load.duration), "--connections", str(load.concurrency)]
    command += ["--late", str(load.late_after)]
    if load.mixed:
        command += ["--other", f"/{load.other}", "--other-share", str(load.mixed)]
    if load.by_thread:
        command += ["--by-thread"]
    if load.warm_up:
        command += ["--warm-up", str(load.warm_up)]
    if load.surge:
        command += ["--surge", str(load.surge)]
    if load.deadline:
        command += ["--timeout", str(load.deadline)]
    if load.holds:
        command += ["--keep-alive", "--hold", "--tell-parent"]
    if load.scheme == "https":
        command += ["--tls", load.sessions]
    if load.scheme == "udp":
        command += ["--udp"]
    return [*command, _address(load), f"/{load.file}"]


def _witness(load: Load, _: Path) -> list[str]:
    command = [str(CLIENTS / "witness"), "--requests", str(load.requests)]
    command += ["--concurrency", str(load.concurrency), "--seconds", str(load.duration)]
    if load.scheme == "https":
        command += ["--tls", load.sessions]
    if load.scheme == "udp":
        command += ["--udp"]
    if load.fault:
        command += ["--fault", "/crash", "--after", str(load.fault)]
    return [*command, _address(load), f"/{load.file}"]


def _wrk(load: Load, _: Path) -> list[str]:
    command = ["wrk", "-t", str(min(load.concurrency, 2)), "-c", str(load.concurrency)]
    command += ["-d", f"{load.duration}s", "-s", str(CLIENTS / "wrk.lua")]
    if not load.keep_alive:
        command += ["-H", "Connection: close"]
    if load.proxied:
        return [*command, load.url, "--", load.proxied + load.file]
    command += [load.url + load.file.removesuffix("0" if load.documents else "")]
    return [*command, "--", str(load.documents), str(load.seed)] if load.documents else command


@dataclass
class Said:
    """The output of a load generator, by its parts; None where it did not say."""

    seconds: float | None = None
    complete: int | None = None
    failed: int | None = None
    non2xx: int | None = None
    length: int | None = None
    rps: float | None = None
    mean_ms: float | None = None
    sd_ms: float | None = None
    min_ms: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    kbytes_s: float | None = None
    lost: int | None = None
    unanswered: int | None = None
    again_ms: str | None = None
    wrong: int | None = None
    other_p50_ms: float | None = None
    other_p99_ms: float | None = None
    busiest_p50_ms: float | None = None
    busiest_p99_ms: float | None = None
    rest_p50_ms: float | None = None
    rest_p99_ms: float | None = None
    asked: float | None = None
    late: float | None = None
    resumed: int | None = None
    words: str = ""
    histogram: Histogram = field(default_factory=dict)
    # Of several clients on other machines: the CPU time of all, the share of the run for which the
    # busiest was busy, how far apart they began, and why the run does not count.
    load_cpu: float | None = None
    load_busy: float | None = None
    skew_ms: float | None = None
    problem: str = ""


@dataclass
class Watched:
    """The output of `launch load` about a run."""

    seconds: float = 0.0
    load_cpu: float = 0.0
    ending: str = "none"
    cpu_us: float | None = None
    voluntary: float | None = None
    involuntary: float | None = None
    faults: float | None = None
    peak_kib: int | None = None
    first_tenth: str = "-"
    alive: bool = True
    user_us: float | None = None
    system_us: float | None = None
    grown_user_kib: float | None = None
    grown_kib: float | None = None
    disk_kib: float | None = None
    line: str = "0 0 none - - - - - - yes - - - - -"

    @property
    def done(self) -> bool:
        return self.ending == "0"


def read_watched(path: Path) -> Watched:
    """Reads the line that `launch load` wrote."""
    try:
        line = path.read_text().strip()
    except OSError:
        return Watched()
    words = line.split()
    if len(words) < len(Watched.line.split()):
        return Watched()
    numbers = [_measured(word) for word in (*["-"] * 3, *words[3:7])]
    return Watched(
        seconds=float(words[0]),
        load_cpu=float(words[1]),
        ending=words[2],
        cpu_us=numbers[3],
        voluntary=numbers[4],
        involuntary=numbers[5],
        faults=numbers[6],
        peak_kib=None if words[7] == "-" else int(words[7]),
        first_tenth=words[8],
        alive=words[9] == "yes",
        user_us=_measured(words[10]),
        system_us=_measured(words[11]),
        grown_user_kib=_measured(words[12]),
        grown_kib=_measured(words[13]),
        disk_kib=_measured(words[14]),
        line=line,
    )


def _measured(word: str) -> float | None:
    return None if word == "-" else float(word)


def read_said(load: Load, output: str, percentiles: str) -> Said:
    """Reads the output of a load generator."""
    said = Said()
    lines = output.splitlines()
    if load.generator == "ab":
        _read_ab(said, lines, percentiles)
    elif load.generator == "httperf":
        _read_httperf(said, lines, load)
    elif load.generator == "open":
        _read_open(said, lines, load)
    elif load.generator == "witness":
        _read_witness(said, lines)
    else:
        _read_wrk(said, lines)
    return said


def _after(line: str, label: str) -> float | None:
    """The number behind a label."""
    _, found, rest = line.partition(label)
    word = rest.split()[0].rstrip(",") if found and rest.split() else ""
    try:
        return float(word)
    except ValueError:
        return None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


class _Labels:
    """The numbers behind labels at the beginning of lines."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = list(lines)

    def of(self, start: str, label: str = ":", ends: str = "") -> float | None:
        line = next((x for x in self.lines if x.startswith(start) and x.endswith(ends)), "")
        return _after(line, label)


def _read_ab(said: Said, lines: list[str], percentiles: str) -> None:
    labels = _Labels(lines)
    said.complete = _whole(labels.of("Complete requests:"))
    said.failed = _whole(labels.of("Failed requests:"))
    said.non2xx = _whole(labels.of("Non-2xx responses:"))
    said.length = _whole(labels.of("Document Length:"))
    said.rps = labels.of("Requests per second:")
    said.kbytes_s = labels.of("Transfer rate:")
    words = [line for line in lines if line.startswith(("apr_", "ab: "))]
    said.words = words[-1] if words else ""
    if not said.complete:
        return
    said.non2xx = said.non2xx or 0
    _ab_times(said, lines, percentiles)
    taken = labels.of("Time taken for tests:")
    # The time has three places, requests/s have two: the one with more digits is taken.
    if taken and said.rps is not None and said.rps < 10 * taken:
        said.rps = said.complete / taken
    if said.rps:
        said.seconds = said.complete / said.rps


def ab_quantiles(percentiles: str, complete: int) -> list[float] | None:
    """The quantiles from 0 to 100% in milliseconds, from ab's -e file; None where it has none.

    For few requests ab reads the highest ones behind the end of its table, so those are taken
    from the 100% line.
    """
    known: dict[int, float] = {}
    for line in percentiles.splitlines():
        name, comma, value = line.partition(",")
        if comma and name.isdigit():
            known[int(name)] = float(value)
    if 0 not in known or 100 not in known:
        return None
    quantiles = [known.get(percent, math.nan) for percent in range(101)]
    for percent in range(1, 100):
        if int(complete * percent / 100 + 0.5) >= complete:
            quantiles[percent] = quantiles[100]
    return quantiles


def _ab_times(said: Said, lines: list[str], percentiles: str) -> None:
    """Mean and standard deviation are those of the quantile function, straight between its
    points, within what ab says of them: that function knows one point for the last percent and
    makes too much of a long tail. ab prints the mean in whole milliseconds, the standard deviation
    in tenths; and the times of all requests cannot be more than all connections had, which is ab's
    time per request."""
    quantiles = ab_quantiles(percentiles, said.complete or 0)
    if quantiles is None:
        return
    said.histogram = of_quantiles(quantiles, said.complete or 0)
    pairs = list(itertools.pairwise(quantiles))
    mean = sum((a + b) / 200 for a, b in pairs)
    squares = sum((a * a + a * b + b * b) / 300 for a, b in pairs)
    sd = math.sqrt(max(squares - mean * mean, 0))
    total = next((line for line in lines if line.startswith("Total:")), "").split()
    if len(total) == 6:
        mean = _within(mean, float(total[2]), 0.5)
        sd = _within(sd, float(total[3]), 0.05)
    most = _Labels(lines).of("Time per request:", ends="(mean)")
    said.mean_ms = min(mean, most) if most is not None else mean
    said.sd_ms = sd
    said.min_ms, said.p50_ms, said.p90_ms = quantiles[0], quantiles[50], quantiles[90]
    said.p95_ms, said.p99_ms, said.max_ms = quantiles[95], quantiles[99], quantiles[100]


def _within(value: float, middle: float, around: float) -> float:
    return max(0.0, middle - around, min(value, middle + around))


def _read_httperf(said: Said, lines: list[str], load: Load) -> None:
    labels = _Labels(lines)
    said.complete = _whole(labels.of("Total: connections", "replies "))
    asked = labels.of("Total: connections", "requests ")
    said.seconds = labels.of("Total: connections", "test-duration ")
    asked_rate = labels.of("Request rate:")
    good = labels.of("Reply status:", "2xx=")
    if said.complete is not None and good is not None:
        said.non2xx = said.complete - int(good)
    said.length = _whole(labels.of("Reply size [B]:", "content "))
    said.kbytes_s = labels.of("Net I/O:", "Net I/O: ")
    said.failed = _whole(labels.of("Errors: total", "total "))
    times = "Connection time [ms]: min"
    mean = labels.of(times, "avg ")
    # Of connections, from connect to close: of requests only where a connection has one.
    if mean is not None:
        said.mean_ms = mean / load.calls
        if load.calls == 1:
            # The median that it prints is the middle of a millisecond.
            said.min_ms, said.max_ms = labels.of(times, "min "), labels.of(times, "max ")
            said.sd_ms = labels.of(times, "stddev ")
    words = [line for line in lines if line.startswith("httperf: ") and "warning" not in line]
    said.words = words[-1] if words else ""
    _httperf_rate(said, asked, asked_rate, load)


def _httperf_rate(said: Said, asked: float | None, asked_rate: float | None, load: Load) -> None:
    """The duration is printed in whole milliseconds, the rate of requests to more digits: the
    time follows from that."""
    if not said.complete:
        return
    if asked and asked_rate:
        said.rps = asked_rate * said.complete / asked
        said.seconds = said.complete / said.rps
    elif said.seconds:
        said.rps = said.complete / said.seconds
    # The rate of connections in turn gives their mean to more digits than the one that is printed.
    if load.in_turn and said.rps:
        said.mean_ms = 1000 / said.rps


def _read_wrk(said: Said, lines: list[str]) -> None:
    for line in lines:
        if not line.startswith("dcollect "):
            if any(word in line for word in ("unable", "error", "invalid")):
                said.words = line
            continue
        n = [float(word) for word in line.split()[1:]]
        said.complete, said.seconds = int(n[0]), n[1] / 1e6
        said.kbytes_s = n[2] / 1024 / said.seconds
        said.failed, said.non2xx = int(n[3] + n[4] + n[5] + n[7]), int(n[6])
        said.rps = said.complete / said.seconds
        said.mean_ms, said.sd_ms, said.min_ms, said.p50_ms = (v / 1000 for v in n[8:12])
        said.p90_ms, said.p95_ms, said.p99_ms, said.max_ms = (v / 1000 for v in n[12:16])


def _read_threads(said: Said, threads: Sequence[Mapping[str, Any]]) -> None:
    """Reads the times of what the busiest thread of the server answered, and of the rest."""
    if len(threads) < 2:
        return
    times = [of_microseconds(one["histogram"])
             for one in sorted(threads, key=lambda one: -int(one["answered"]))]  # fmt: skip
    for whose, histogram in (("busiest", times[0]), ("rest", add(times[1:]))):
        setattr(said, f"{whose}_p50_ms", quantile(histogram, 0.5))
        if sum(histogram.values()) >= P99_REQUESTS_LEAST:
            setattr(said, f"{whose}_p99_ms", quantile(histogram, 0.99))


def _read_open(said: Said, lines: list[str], load: Load) -> None:
    for line in lines:
        if line.startswith("open_loop: "):
            said.words = line
        if not line.startswith("{"):
            continue
        made = json.loads(line)
        said.seconds, said.complete = made["seconds"], made["answered"]
        lost, timeouts = made["refused"] + made["cut_off"], made["timeouts"]
        said.lost, said.unanswered, said.wrong = lost, timeouts, made["wrong"]
        said.non2xx, said.resumed = made["non2xx"], made["resumed"]
        said.asked, said.late = made["asked_rate"], made["late_share"]
        other = made.get("other", {})
        if other.get("answered"):
            said.other_p50_ms, said.other_p99_ms = other["p50_ms"], other["p99_ms"]
        _read_threads(said, made.get("threads", []))
        if load.surge:
            calm = 1000 * load.duration * (1 - CALM_SHARE)
            said.again_ms = (
                f"{made['recovered_ms']:.3f}" if made["recovered_ms"] < calm else "never"
            )
        said.failed = lost + timeouts
        said.rps, said.words = made["achieved_rate"], made["why"]
        said.histogram = of_microseconds(made["histogram"])
        if not said.complete:
            continue
        said.length = made["length"]
        said.kbytes_s = made["bytes"] / 1024 / made["seconds"]
        for name in TIMES:
            setattr(said, name, made[name])


def _read_witness(said: Said, lines: list[str]) -> None:
    for line in lines:
        if line.startswith("witness: "):
            said.words = line
        if line.startswith("histogram "):
            said.histogram = from_text(line.removeprefix("histogram "))
        if not line.startswith("witness "):
            continue
        f = line.split()
        said.seconds, said.complete = float(f[1]), int(f[2])
        said.lost, said.unanswered, said.non2xx = int(f[3]), int(f[5]), int(f[6])
        said.failed = said.lost + said.unanswered
        said.length = int(f[7]) if said.complete else None
        said.again_ms = f[8]
        said.rps = said.complete / said.seconds
        said.mean_ms, said.sd_ms, said.min_ms, said.p50_ms = (float(v) for v in f[9:13])
        said.p90_ms, said.p95_ms, said.p99_ms, said.max_ms = (float(v) for v in f[13:17])
        said.kbytes_s = float(f[17]) / 1024 / said.seconds
        said.wrong, said.resumed = int(f[18]), int(f[19])


def verdict(load: Load, said: Said, watched: Watched, length: int | None) -> str:
    """Returns "yes" if a run counts, or the reason why it does not. `length` is what the document
    must have."""
    if said.problem and watched.alive:
        return one_line(said.problem)[:REASON_BYTES]
    if load.generator in ("open", "witness") and said.complete is not None and watched.done:
        return _verdict_of_ours(load, said, length)
    because = f": {said.words}" if said.words else ""
    rules: list[tuple[bool, Callable[[], str]]] = [
        (not watched.alive, lambda: "server died"),
        (watched.ending == "timeout", lambda: f"not done within {load.timeout} s"),
        (not watched.done, lambda: f"{load.generator} ended with status {watched.ending}{because}"),
        (not said.complete, lambda: f"no request completed{because}"),
        (
            not load.for_a_time and said.complete != load.wanted,
            lambda: f"{said.complete} of {load.wanted} requests completed",
        ),
        (bool(said.failed), lambda: f"{said.failed} failed"),
        (bool(said.non2xx), lambda: f"{said.non2xx} non-2xx"),
    ]
    for applies, reason in rules:
        if applies:
            return one_line(reason())[:REASON_BYTES]
    return _verdict_of_length(said, length)


def _verdict_of_length(said: Said, length: int | None) -> str:
    if said.length is not None and length is not None and said.length != length:
        return f"length {said.length} instead of {length}"
    return "yes"


def _verdict_of_ours(load: Load, said: Said, length: int | None) -> str:
    """Our client came back with a word: whatever it says of the server is a result, unless it says
    that the run is not valid."""
    if load.generator == "open" and said.words:
        return one_line(said.words)[:REASON_BYTES]
    complete, resumed = said.complete or 0, said.resumed or 0
    if said.non2xx:
        return f"{said.non2xx} non-2xx"
    if said.wrong:
        return f"{said.wrong} wrong responses"
    if load.scheme != "http" and not complete:
        return "no request completed"
    too_many = load.sessions == "new" and resumed > 0
    if too_many or (load.sessions == "resumed" and resumed < complete - load.concurrency):
        return f"{resumed} of {complete} sessions were resumed"
    return _verdict_of_length(said, length)


def _show(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def row_of(load: Load, said: Said, watched: Watched) -> dict[str, str]:
    """The columns of runs.tsv that follow from the output and from what was watched."""
    seconds = said.seconds if said.seconds is not None else watched.seconds
    # The costs of a warm-up cannot be told from those of the requests that count.
    complete = 0 if load.warm_up else said.complete or 0
    times = ("cpu_us", "user_us", "system_us")
    each = {name: value for name in (*times, *EVENTS)
            if (value := getattr(watched, name)) is not None and complete}  # fmt: skip
    # The time in which the load generator starts and reports is not load. Nearly all of it is CPU
    # time, unless others have the processors then.
    whole = seconds + load.warm_up  # in a warm-up the client is as busy, in a surge it is busier
    beside = min(max(watched.seconds - whole, 0), START_SECONDS_MOST)
    spent = max(watched.load_cpu - beside, 0) if said.load_cpu is None else said.load_cpu
    busy = said.load_busy if said.load_busy is not None or not whole else spent / whole
    known = load.generator != "httperf" and seconds >= SHARE_SECONDS and not load.surge
    rps_places = 6 if said.rps is not None and said.rps < 10 else 2
    return {
        "seconds": _show(seconds, 6),
        **{name: _text(getattr(said, name))
           for name in ("complete", "failed", "non2xx", "length")},
        "rps": _show(said.rps, rps_places),
        **{name: _show(getattr(said, name), 3) for name in TIMES},
        "kbytes_s": _show(said.kbytes_s, 2),
        "load_cpu": _show(busy, 3) if known else "-",
        "client_cpu_us": _show(spent * 1e6 / complete, 3) if known and complete else "-",
        **{f"server_{name}": _show(each[name] / complete, 3) if name in each else "-"
           for name in times},
        **{name: _show(each[name] / complete, 4) if name in each else "-"
           for name in EVENTS},
        "peak_kib": _text(watched.peak_kib),
        # Held connections are all accepted before the time begins; the first tenth of others may
        # be in the warm-up; other machines begin some seconds after launch.
        "first_tenth": "-" if load.holds or load.warm_up or said.skew_ms is not None
        else watched.first_tenth,
        **{name: _text(getattr(said, name)) for name in ("lost", "unanswered", "again_ms")},
        "other_p50_ms": _show(said.other_p50_ms, 3),
        "other_p99_ms": _show(said.other_p99_ms, 3),
        **{name: _show(getattr(said, name), 3) for name in BY_WORKER},
        "asked": _show(said.asked, 2),
        "late": _show(said.late, 6),
        "skew_ms": _show(said.skew_ms, 3),
        **_memory_each(load, watched),
    }  # fmt: skip


def _memory_each(load: Load, watched: Watched) -> dict[str, str]:
    """The memory of each connection that the load held; nothing where it held none."""
    if not load.holds:
        return {}
    grown = {"idle_kib": watched.grown_user_kib, "each_kib": watched.grown_kib}
    return {name: _show(None if kib is None else kib / load.concurrency, 3)
            for name, kib in grown.items()}  # fmt: skip
