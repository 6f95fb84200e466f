"""A load from several machines at once, where one client cannot fill the server.

The same load generator runs on each of them, by GNU parallel over ssh; nothing of ours is installed
there, and nothing stays. Each gets its share of the connections, requests and rate, and all begin
at an agreed moment of this machine's clock (clients/begin_at.c). The clocks are compared over ssh
before each run; their difference is known to half of the shortest round trip.

Counts and histograms of times are added. Percentiles are those of the sum, never means of
percentiles: where a generator tells no histogram there are none. A run does not count if one of
the clients was too busy to be as fast as the server, or if they did not begin together.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import shlex
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from collect.histogram import add, quantile
from collect.measure.loads import SHARE_SECONDS, Load, Said, command_of, read_said
from collect.measure.server_commands import Need
from collect.project import CLIENTS, fail
from collect.readable_numbers import one_line

NEEDS = (Need("parallel", "parallel"), Need("rsync", "rsync"), Need("ssh", "openssh-client"))
OURS = {"open": "open_loop", "witness": "witness", "wrk": "wrk.lua"}
CONNECT_SECONDS = 10
CLOCK_EXCHANGES = 8
CLOCK = 'while read -r _; do echo "$EPOCHREALTIME"; done'
# A client that is busy for a larger share of the run may be what limits it.
BUSY_MOST = 0.9
# Clients that begin further apart, as a share of the run, are not one load.
APART_MOST = 0.05
# How long before its beginning the hosts are told of a run: LEAD_TIMES as long as a first command
# took, and LEAD_SECONDS more.
LEAD_TIMES, LEAD_SECONDS = 2.0, 0.5
BEHIND = "--- the percentiles ---"


@dataclass(frozen=True)
class Clock:
    """What is known of another machine's clock, in seconds."""

    ahead: float  # of ours
    unsure: float  # by how much that may be wrong, at most


@dataclass
class Part:
    """What one of the clients did."""

    host: str
    load: Load
    said: Said
    began: float = math.nan  # after the agreed moment, by our clock
    seconds: float = 0.0
    cpu: float = 0.0
    ending: str = "none"

    @property
    def busy(self) -> float:
        """The share of the run for which a processor of the client was busy."""
        seconds = self.said.seconds or self.seconds
        threads = min(self.load.concurrency, 2) if self.load.generator == "wrk" else 1
        return self.cpu / seconds / threads if seconds >= SHARE_SECONDS else 0.0

    def problem(self) -> str:
        """Returns why the part does not count; "" if it does."""
        if self.ending == "late":
            return f"{self.host} heard of the run {self.began:.2f} s after it had begun"
        if self.ending == "timeout":
            return f"{self.host}: not done within {self.load.timeout} s"
        if self.ending != "0":
            words = f": {self.said.words}" if self.said.words else ""
            return f"{self.host}: {self.load.generator} ended with status {self.ending}{words}"
        if self.load.generator != "open" and self.busy > BUSY_MOST:
            return (
                f"the client on {self.host} was busy for {self.busy:.0%} of the run, and may have "
                "been its limit"
            )
        return ""


def share_out(load: Load, hosts: Sequence[str]) -> dict[str, Load]:
    """The loads of the hosts, which are one load together. Where there are fewer connections than
    hosts, the others rest."""
    busy = hosts[: load.concurrency]

    def part(total: int, index: int) -> int:
        return total // len(busy) + (index < total % len(busy))

    return {
        host: replace(
            load,
            concurrency=part(load.concurrency, index),
            requests=None if load.requests is None else part(load.requests, index),
            rate=None if load.rate is None else part(load.rate, index),
            seed=load.seed * 1000 + index,
        )
        for index, host in enumerate(busy)
    }


def together(parts: Sequence[Part], clocks: Mapping[str, Clock]) -> Said:
    """Adds what the clients said."""
    said = [part.said for part in parts]
    whole = Said()
    for name in ("complete", "failed", "non2xx", "lost", "unanswered", "wrong", "resumed", "asked"):
        setattr(whole, name, _sum(getattr(one, name) for one in said))
    begin = min(part.began for part in parts)
    whole.seconds = max(part.began + (part.said.seconds or part.seconds) for part in parts) - begin
    whole.late = max((one.late for one in said if one.late is not None), default=None)
    whole.words = next((f"{p.host}: {p.said.words}" for p in parts if p.said.words), "")
    lengths = {one.length for one in said if one.complete}
    whole.length = lengths.pop() if len(lengths) == 1 else None
    if whole.complete and whole.seconds:
        whole.rps = whole.complete / whole.seconds
        kbytes = _sum(one.kbytes_s and one.kbytes_s * (one.seconds or 0) for one in said)
        whole.kbytes_s = None if kbytes is None else kbytes / whole.seconds
        _add_times(whole, said)
    whole.load_busy = max(part.busy for part in parts)
    whole.load_cpu = sum(part.cpu for part in parts)
    apart = max(part.began for part in parts) - begin
    unsure = sorted((clocks[part.host].unsure for part in parts), reverse=True)
    whole.skew_ms = 1000 * (apart + sum(unsure[:2]))
    whole.problem = next((words for part in parts if (words := part.problem())), "")
    if not whole.problem and whole.skew_ms > 1000 * APART_MOST * whole.seconds:
        whole.problem = (
            f"the clients may have begun {whole.skew_ms:.1f} ms apart, in a run of "
            f"{whole.seconds:.3f} s"
        )
    if not whole.problem and len(lengths) > 1:
        whole.problem = "the clients got documents of different lengths"
    return whole


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _add_times(whole: Said, said: Sequence[Said]) -> None:
    """The times of all requests: their mean and standard deviation are exact, their percentiles are
    those of the histograms' sum."""
    timed = [(one.complete, one.mean_ms, one.sd_ms, one) for one in said if one.complete]
    if any(mean is None or sd is None for _, mean, sd, _ in timed):
        return
    count = sum(n for n, *_ in timed)
    mean = sum(n * (m or 0) for n, m, *_ in timed) / count
    squares = sum(n * ((m or 0) ** 2 + (sd or 0) ** 2) for n, m, sd, _ in timed) / count
    whole.mean_ms, whole.sd_ms = mean, math.sqrt(max(squares - mean * mean, 0))
    whole.min_ms = min((one.min_ms for *_, one in timed if one.min_ms is not None), default=None)
    whole.max_ms = max((one.max_ms for *_, one in timed if one.max_ms is not None), default=None)
    if all(one.histogram for *_, one in timed):
        whole.histogram = add(one.histogram for *_, one in timed)
        # A bucket reaches beyond the longest time in it.
        most = whole.max_ms if whole.max_ms is not None else math.inf
        whole.p50_ms, whole.p90_ms, whole.p95_ms, whole.p99_ms = (
            min(quantile(whole.histogram, share), most) for share in (0.5, 0.9, 0.95, 0.99)
        )


def address_of(host: str) -> str:
    """The IPv4 address of this machine by the name that the load hosts know it by."""
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        fail(f"server host {host}: {error.strerror}")
    address = str(found[0][4][0])
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            fail(f"server host {host}: {address} is no address of this machine")
    return address


class LoadHosts:
    """The machines that the load comes from."""

    def __init__(self, names: Sequence[str], work: Path) -> None:
        self.names = tuple(names)
        self.ssh = [
            *shlex.split(os.environ.get("PARALLEL_SSH") or "ssh"),
            "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}",
        ]  # fmt: skip
        self.folder = f".fork-vs-thread.{secrets.token_hex(8)}"  # in the login folder of each
        self.work = work
        self.lead = 0.0
        self.clocks: dict[str, Clock] = {}
        self.shares: dict[str, Load] = {}

    @property
    def lead_most(self) -> int:
        """The seconds by which a run may take longer than its load."""
        return math.ceil(2 * self.lead) + CONNECT_SECONDS

    # --- begin and end ---

    def begin(self, generators: Sequence[str]) -> dict[str, str]:
        """Brings the clients to the hosts. Returns a description of each."""
        try:
            # The witness makes the closed loop that finds the capacity of a server.
            more = ("witness",) if "open" in generators else ()
            return self._begin((*generators, *more))
        except BaseException:
            self.end()
            raise

    def _begin(self, generators: Sequence[str]) -> dict[str, str]:
        started = time.monotonic()
        facts = self._facts(generators)
        self.lead = LEAD_TIMES * (time.monotonic() - started) + LEAD_SECONDS
        machine = os.uname().machine
        for host, fact in facts.items():
            if fact.get("machine") != machine:
                fail(f"load host {host}: our clients are for {machine}, not {fact.get('machine')}")
            for name in generators:
                if name not in OURS and f"lacks_{name}" in fact:
                    fail(f"load host {host} has no {name}")
        files = ["begin_at", *{OURS[name] for name in generators if name in OURS}]
        self._parallel(
            "--onall", "--transferfile", "{}", "--workdir", self.folder, "test -e {/}",
            ":::", *(f"{CLIENTS}/./{name}" for name in files),
        )  # fmt: skip
        self.compare_clocks()
        return {
            host: f"{fact.get('model', '')}, {fact.get('processors', '?')} processors, "
            f"{fact.get('kernel', '')}; its clock is {1000 * self.clocks[host].ahead:+.3f} ms "
            f"from ours, known to {1000 * self.clocks[host].unsure:.3f} ms"
            for host, fact in facts.items()
        }

    def end(self) -> None:
        """Ends the clients of an interrupted run, and leaves nothing on the hosts."""
        clients = (
            f"for file in {self.folder}/process.*; do test ! -e $file || kill $(cat $file); done"
        )
        with suppress(OSError):
            self._run("--nonall", f"{clients}; rm -rf {self.folder}")

    def _facts(self, generators: Sequence[str]) -> dict[str, dict[str, str]]:
        """Makes the folder on each host, and returns what the hosts say of themselves."""
        lacks = "".join(
            f"command -v {name} >/dev/null || echo lacks_{name} 1; "
            for name in generators
            if name in ("ab", "wrk")
        )
        # Two names may be those of one machine, so that the folder may be there.
        done = self._parallel(
            "--nonall",
            f"mkdir -p -m 700 {self.folder} || exit; "
            "echo machine $(uname -m); echo kernel $(uname -sr); echo processors $(nproc); "
            f"{lacks}grep -m1 'model name' /proc/cpuinfo | sed 's/.*: /model /'; true",
        )
        facts: dict[str, dict[str, str]] = {name: {} for name in self.names}
        for host, line in _tagged(done.stdout):
            key, _, value = line.partition(" ")
            if host in facts and key:
                facts[host][key] = one_line(value)
        return facts

    def compare_clocks(self) -> None:
        """Finds out how far the clocks of the hosts are ahead of this one."""
        for host in self.names:
            self.clocks[host] = self._clock_of(host)

    def _clock_of(self, host: str) -> Clock:
        command = [*self.ssh, host, f"LC_ALL=C exec bash -c {shlex.quote(CLOCK)}"]
        best = Clock(0.0, math.inf)
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, bufsize=1,
        ) as process:  # fmt: skip
            assert process.stdin and process.stdout and process.stderr
            for _ in range(CLOCK_EXCHANGES):
                began = time.time()
                with suppress(BrokenPipeError):
                    process.stdin.write("?\n")
                answer = process.stdout.readline()
                ended = time.time()
                if not re.fullmatch(r"[0-9]+\.[0-9]+\n", answer):
                    words = one_line(process.stderr.read())[-200:]
                    fail(f"load host {host} does not tell the time: {words or 'it needs bash'}")
                unsure = (ended - began) / 2
                if unsure < best.unsure:
                    best = Clock(float(answer) - (began + ended) / 2, unsure)
            process.stdin.close()
        return best

    # --- a run ---

    def command(self, load: Load) -> list[str]:
        """The command that makes a load from all hosts, `lead` seconds from now."""
        self.compare_clocks()
        self.shares = share_out(load, self.names)
        moment = time.time() + self.lead
        cases = "".join(
            f"{shlex.quote(host)}) {self._script(share, moment + self.clocks[host].ahead)} ;; "
            for host, share in self.shares.items()
        )
        script = f'case "$PARALLEL_SSHLOGIN" in {cases}esac'
        return self._command("--nonall", "--workdir", self.folder, script)

    def _script(self, load: Load, moment: float) -> str:
        """Returns the commands of a host in a run, for its shell."""
        percentiles = f"percentiles.{load.seed}"
        words = [
            f"./{word.removeprefix(f'{CLIENTS}/')}" if word.startswith(f"{CLIENTS}/") else word
            for word in command_of(load, Path(percentiles))
        ]
        begin = shlex.join(["./begin_at", f"{moment:.6f}", str(load.timeout), *words])
        number = f"process.{load.seed}"
        begin = f"sh -c {shlex.quote(f'echo $$ >{number}; exec {begin}')}"
        return (
            f"rm -f {percentiles}; {begin}; rm -f {number}; echo; echo {shlex.quote(BEHIND)}; "
            f"test ! -e {percentiles} || cat {percentiles}"
        )

    def read(self, output: str) -> Said:
        """Reads what the clients of the last run said."""
        lines: dict[str, list[str]] = {host: [] for host in self.shares}
        strange = []
        for host, line in _tagged(output):
            if host in lines:
                lines[host].append(line)
            elif line.strip():
                strange.append(line)
        parts = [self._part(host, lines[host]) for host in self.shares]
        silent = [part.host for part in parts if part.ending == "none"]
        if silent:
            words = one_line(" ".join(strange[-3:]))[:200]
            return Said(problem=f"nothing came back from {', '.join(silent)}: {words}")
        return together(parts, self.clocks)

    def _part(self, host: str, lines: Sequence[str]) -> Part:
        text, _, percentiles = "\n".join(lines).partition(f"\n{BEHIND}\n")
        load = self.shares[host]
        part = Part(host, load, read_said(load, text, percentiles))
        words = [line.split() for line in text.splitlines() if line.startswith("begin_at ")]
        if words and len(words[-1]) == 5:
            _, began, seconds, cpu, part.ending = words[-1]
            part.began, part.seconds, part.cpu = float(began), float(seconds), float(cpu)
        return part

    # --- GNU parallel ---

    def _command(self, *words: str) -> list[str]:
        # Without PARALLEL_HOME it makes a folder in the home of the user.
        return [
            "env", f"PARALLEL_HOME={self.work}", "parallel", "--will-cite", "--tag",
            "--jobs", str(len(self.names)), "--tmpdir", str(self.work),
            "--ssh", shlex.join(self.ssh), "--sshlogin", ",".join(self.names),
            "--joblog", str(self.work / "hosts.joblog"), *words,
        ]  # fmt: skip

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    def _parallel(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command on all hosts, or ends the study."""
        done = self._run(*words)
        if done.returncode:
            said = [f"{host}: {line}" if host else line for host, line in _tagged(done.stderr)]
            fail(f"load hosts: {one_line(' '.join(said))[-300:] or 'a command failed'}")
        return done


def _tagged(text: str) -> list[tuple[str, str]]:
    """Lines with the host that `parallel --tag` puts before each, and a tab."""
    pairs = []
    for line in text.splitlines():
        host, tab, rest = line.partition("\t")
        pairs.append((host, rest) if tab else ("", line))
    return pairs
