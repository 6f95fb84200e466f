"""The cost of a request in each server, against its floor (the same model with no handler) and
peers: `make bench`.

Each round starts every subject once, in shuffled order, puts `ab -n 4000 -c 10` on small.txt with
one connection per request, and takes the CPU time of the server from outside (launch.c). Ratios are
taken within rounds, so that a machine that changes its speed does not matter. The tables show the
median, the smallest and the largest ratio.

Then the same with big.txt, and with a document of 1 MiB and a tenth of the requests.
Then, on one connection, `ab -k -c 1 -n 1000`; on 32 and 256 kept connections, wrk; and httperf with
1,000 connections of 5 calls each.
Then HTTPS, with a key of P-256 and of RSA-2048, sessions new and resumed: the witness with 1,000
connections (or --requests, if that is less), ten at once (--concurrency), on ours and on nginx.

Where a server is a subject with options, as in `--subjects fork+no-sandbox`, a line below the table
says how much more it costs without them, by paired_bursts.py. `--before DIR` instead compares, in
the same way, each server of this source tree with that of another tree, which has been built. A
part whose number of rounds is 0 is left out.

Then how cost grows: the same CPU time at concurrency 1, 10, 100 and 1,000, and the memory of an
idle keep-alive connection where 100 and 1,000 of them are held (10,000 for event loops): the
proportional set size of the server's processes, without pages of files, beyond that of the same
server without a client, divided by the connections. A server that serves one connection a worker
gets as many workers as it needs, whose memory then counts as that of their connections; one that
cannot hold that many has a dash.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from collect.infer.paired_bursts import percent_more, ratio_of_start
from collect.measure import control_groups, held_connections, loads
from collect.measure.loads import Load
from collect.measure.machine import processors_allowed
from collect.measure.scratch import scratch
from collect.measure.server_commands import (
    Setting,
    document_recipes,
    is_floor,
    is_installed,
    is_known,
    is_peer,
    lacks_of,
    need_of,
    our_servers,
    recipe_name,
)
from collect.measure.servers import Server, ServerProblem, Servers, count_of_workers
from collect.measure.study_lock import study_lock
from collect.project import CLIENTS, DATA, fail, say

FLOOR_OF = {"fork": "floor-fork", "thread": "floor-thread", "iterative": "floor-one"}
# From this many idle connections on, event loops alone are measured.
MANY = 5000
LOOPS = ("epoll", "uring")
IDLE_SECONDS = 600
# Pairs of bursts where a burst takes two seconds, not milliseconds.
LONG_PAIRS = 2


@dataclass
class Measured:
    """One measurement of a subject: CPU time per request in µs, requests/s and seconds; or KiB."""

    kind: str
    round: int
    subject: str
    value: float
    rps: float = 0.0
    seconds: float = 0.0


@dataclass
class Bench:
    """The servers, the load, and what was measured so far."""

    work: Path
    servers: Servers
    setting: Setting
    load: Load
    starts: int
    pairs: int
    results: list[Measured] = field(default_factory=list)

    def of(self, kind: str) -> list[Measured]:
        return [result for result in self.results if result.kind == kind]

    def start(self, subject: str) -> Server:
        return self.servers.start("it", replace(self.setting, label=subject))

    def measure(self, kind: str, number: int, subject: str) -> None:
        """Starts a subject and runs one load on it."""
        result = self._run(self.start(subject), self.load)
        self.servers.stop("it")
        self.results.append(replace(result, kind=kind, round=number))

    def _run(self, server: Server, load: Load) -> Measured:
        load = replace(load, url=server.url)
        percentiles, result = self.work / "percentiles", self.work / "result"
        percentiles.unlink(missing_ok=True)
        command = [str(CLIENTS / "launch"), "load", "--server", str(server.pid)]
        command += [*server.group.read, "--timeout", "60", "--result", str(result), "--"]
        command += loads.command_of(load, percentiles)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        watched = loads.read_watched(result)
        text = percentiles.read_text() if percentiles.exists() else ""
        said = loads.read_said(load, done.stdout + done.stderr, text)
        verdict = loads.verdict(load, said, watched, self.setting.bytes)
        if verdict != "yes" or watched.cpu_us is None or not said.complete:
            raise ServerProblem(f"{server.label}: {verdict}")
        each = watched.cpu_us / said.complete
        seconds = said.seconds or watched.seconds
        return Measured("", 0, server.label, each, said.rps or 0.0, seconds)

    def compare(self, first: Setting, second: Setting) -> tuple[float, float, float]:
        """How much more the first server costs than the second, in percent, and the interval."""
        load, pairs = self.load, LONG_PAIRS
        if load.requests:
            load = replace(load, requests=max(load.requests // 4, load.concurrency))
            pairs = self.pairs
        ratios = []
        for start in range(self.starts):
            show_progress(f"start {start + 1} of {self.starts}: {first.label}, {second.label}")
            settings = {True: first, False: second}
            order = (True, False) if start % 2 else (False, True)
            servers: dict[bool, Server] = {}

            def burst(is_first: bool, servers: dict[bool, Server] = servers) -> float:
                return self._run(servers[is_first], load).value

            try:
                for key in order:
                    servers[key] = self.servers.start(str(key), settings[key])
                ratios.append(ratio_of_start(burst, pairs, is_first_late=not order[0]))
            finally:
                self.servers.stop_all()
        return percent_more(ratios)

    def measure_idle(self, kind: str, number: int, subject: str) -> None:
        """Measures the memory of an idle connection."""
        count = int(kind.removeprefix("idle"))
        server = self.start(subject)
        base = memory_of(server)
        each = self._hold(server, count, base)
        if each is None and count_of_workers(server, 0):
            self.servers.stop("it")
            server = self.start(f"{subject}+workers={count + 1}")
            each = self._hold(server, count, base)
        self.servers.stop("it")
        if each is not None:
            self.results.append(Measured(kind, number, subject, each))

    def _hold(self, server: Server, count: int, base: int) -> float | None:
        """Holds idle connections; returns the memory of each beyond `base` KiB, or None where the
        server cannot."""
        held = held_connections.begin(
            held_connections.Held("idle", count), server.url, self.setting.path, group=server.group,
            work=self.work, timeout=60, stopped=lambda: False,
        )  # fmt: skip
        memory = memory_of(server) if not held.problem else 0
        held.end()
        return None if held.problem else (memory - base) / count

    def rounds(
        self, kind: str, count: int, subjects: Sequence[str], one: Callable[[str, int, str], None]
    ) -> None:
        for number in range(1, count + 1):
            for subject in random.sample(list(subjects), len(subjects)):
                show_progress(f"round {number} of {count}: {kind} {subject}")
                try:
                    one(kind, number, subject)
                except ServerProblem as problem:
                    say(f"bench: {problem}")
                finally:
                    self.servers.stop("it")
        show_progress("")


def show_progress(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


def memory_of(server: Server) -> int:
    """The memory of a server's processes in KiB, without pages of files."""
    command = [str(CLIENTS / "launch"), "memory", "--server", str(server.pid)]
    return int(subprocess.run(command, capture_output=True, check=False).stdout or 0)


# --- tables ---


def _range(values: Sequence[float]) -> str:
    return f"({min(values):.2f} to {max(values):.2f})"


def _ratios(rows: Sequence[Measured], subject: str, other: str, name: str) -> str:
    """Median, smallest and largest ratio of a subject to another, within rounds."""
    below = {row.round: getattr(row, name) for row in rows if row.subject == other}
    values = [
        getattr(row, name) / below[row.round]
        for row in rows
        if row.subject == subject and below.get(row.round)
    ]
    if not values or subject == other:
        return ""
    return f"{statistics.median(values):8.2f} {_range(values)}"


def differences(bench: Bench, pairs: Iterable[tuple[Setting, Setting]]) -> None:
    """Prints a line for each pair of servers."""
    for first, second in pairs:
        try:
            more, low, high = bench.compare(first, second)
        except ServerProblem as problem:
            say(f"bench: {problem}")
            continue
        show_progress("")
        amount = f"{more:+7.2f}% ({low:+.2f} to {high:+.2f})"
        other = f"{second.label} of {second.folder}" if second.folder else second.label
        print(f"{first.label} costs {amount} more than {other}", flush=True)


def with_options(bench: Bench, chosen: Iterable[str]) -> list[tuple[Setting, Setting]]:
    """Returns each subject that has options, as a pair: without them, and with them."""
    return [
        (replace(bench.setting, label=recipe_name(label)), replace(bench.setting, label=label))
        for label in chosen
        if recipe_name(label) != label
    ]


def table(rows: Sequence[Measured], chosen: Sequence[str], name: str) -> None:
    """Prints a table of CPU time (`value`) or of `seconds`."""
    of_cpu = name == "value"
    unit, places = ("CPU us/request", 1) if of_cpu else ("seconds", 4)
    columns = f"{'median':>9} {'mean':>9} {'sd':>8} {'min':>9} {'req/s':>9}"
    heads = f"{'  x its floor' if of_cpu else '':<24}{'  x nginx':<24}{'  x lighttpd':<24}"
    print(f"{unit:<16} {columns}   {heads}".rstrip())
    for subject in chosen:
        own = [row for row in rows if row.subject == subject]
        if not own:
            continue
        values = [getattr(row, name) for row in own]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        floor = FLOOR_OF.get(subject, subject if is_floor(subject) else "")
        others = (_ratios(rows, subject, floor, name) if of_cpu else "",
                  _ratios(rows, subject, "nginx", name),
                  _ratios(rows, subject, "lighttpd", name))  # fmt: skip
        print(
            f"{subject:<16} {statistics.median(values):9.{places}f} "
            f"{statistics.fmean(values):9.{places}f} {spread:8.{places}f} "
            f"{min(values):9.{places}f} {statistics.fmean(row.rps for row in own):9.0f}   "
            f"{others[0]:<24}{others[1]:<24}{others[2]:<24}".rstrip()
        )


def growth_table(bench: Bench, kind: str, chosen: Sequence[str], numbers: Sequence[int]) -> None:
    """Prints a column for each number: the median, and smallest and largest."""
    print((" " * 16 + "".join(f" {number:>9} {'':<18}" for number in numbers)).rstrip())
    for subject in chosen:
        line, known = f"{subject:<16}", False
        for number in numbers:
            values = [row.value for row in bench.of(f"{kind}{number}") if row.subject == subject]
            known = known or bool(values)
            middle = f"{statistics.median(values):.2f}" if values else "-"
            line += f" {middle:>9} {_range(values) if values else '':<18}"
        if known:
            print(line.rstrip())


# --- the parts ---


def close_part(bench: Bench, options: argparse.Namespace, chosen: Sequence[str]) -> None:
    if not options.rounds:
        return
    bench.rounds("close", options.rounds, chosen, bench.measure)
    print(
        f"One connection per request: ab -n {options.requests} -c {options.concurrency}, "
        f"small.txt, {options.rounds} rounds; {bench.servers.accounting.method}"
    )
    table(bench.of("close"), chosen, "value")
    differences(bench, with_options(bench, chosen))


def size_part(bench: Bench, options: argparse.Namespace, chosen: Sequence[str]) -> None:
    """Larger documents; the bodies of the floors are as large."""
    if not options.size_rounds:
        return
    plain = bench.setting
    (plain.documents / "mebibyte.bin").write_bytes(bytes(1 << 20))
    for path, requests in (("big.txt", options.requests), ("mebibyte.bin", options.requests // 10)):
        size = (plain.documents / path).stat().st_size
        bench.setting = replace(plain, path=path, bytes=size)
        bench.load = replace(bench.load, file=path, requests=max(requests, options.concurrency))
        bench.rounds(path, options.size_rounds, chosen, bench.measure)
        print(
            f"\n{size:,} bytes, one connection per request: ab -n {bench.load.requests} "
            f"-c {options.concurrency}, {options.size_rounds} rounds"
        )
        table(bench.of(path), chosen, "value")
        differences(bench, with_options(bench, chosen))
    bench.setting = plain
    bench.load = replace(bench.load, file=plain.path, requests=options.requests)


def keep_part(bench: Bench, options: argparse.Namespace, chosen: Sequence[str]) -> None:
    count = options.keep_rounds
    if not count:
        return
    bench.setting = replace(bench.setting, keep_alive=True)
    few = replace(bench.load, requests=1000, concurrency=1, keep_alive=True)
    parts = (
        ("keep", few, "seconds", "Keep-alive, one connection: ab -k -n 1000 -c 1, seconds"),
        *(
            (f"wrk{number}", replace(few, generator="wrk", concurrency=number, requests=None),
             "value", f"Keep-alive, {number} connections: wrk -t 2 -c {number} for 2 s")
            for number in (32, 256)
        ),
        ("calls", replace(few, generator="httperf", calls=5, keep_alive=False), "seconds",
         "Five calls a connection: httperf, 1000 connections, seconds"),
    )  # fmt: skip
    for kind, load, name, title in parts:
        if not is_installed(load.generator):
            continue
        bench.load = load
        bench.rounds(kind, count, chosen, bench.measure)
        print(f"\n{title}, {count} rounds")
        table(bench.of(kind), chosen, name)
        differences(bench, with_options(bench, chosen))
    bench.setting = replace(bench.setting, keep_alive=False)


def tls_part(bench: Bench, options: argparse.Namespace, chosen: Sequence[str]) -> None:
    count = options.tls_rounds
    speakers = [x for x in chosen if not is_floor(x) and (not is_peer(x) or x == "nginx")]
    if not count or not speakers:
        return
    if not is_installed("openssl"):
        say("bench: openssl is missing, so https is left out: apt-get install openssl")
        return
    requests = min(options.requests, 1000)
    plain = bench.setting
    for certificate in ("p256", "rsa2048"):
        bench.setting = replace(plain, scheme="https", certificate=certificate)
        for sessions in ("new", "resumed"):
            bench.load = Load("witness", "", plain.path, options.concurrency, requests,
                              scheme="https", sessions=sessions, duration=60)  # fmt: skip
            kind = f"{certificate}-{sessions}"
            bench.rounds(kind, count, speakers, bench.measure)
            print(
                f"\nHTTPS, {certificate}, {sessions} sessions: witness, {requests} connections, "
                f"{options.concurrency} at once, {count} rounds"
            )
            table(bench.of(kind), speakers, "value")
            differences(bench, with_options(bench, speakers))
    bench.setting = plain


def growth_part(bench: Bench, options: argparse.Namespace, chosen: Sequence[str]) -> None:
    count = options.growth_rounds
    if not count:
        return
    for concurrency in options.growth:
        requests = options.requests // 2 if concurrency < 1000 else options.requests
        load = Load("ab", "", bench.setting.path, concurrency, max(requests, concurrency))
        bench.load = load
        bench.rounds(f"grow{concurrency}", count, chosen, bench.measure)
    title = "How cost grows: CPU us/request by concurrency, one connection per request"
    print(f"\n{title}, {count} rounds")
    growth_table(bench, "grow", chosen, options.growth)
    # The floors keep no connection. The others must keep the first one until the last one has come.
    bench.setting = replace(bench.setting, idle_timeout=IDLE_SECONDS)
    holders = [subject for subject in chosen if not is_floor(subject)]
    loops = [subject for subject in holders if recipe_name(subject) in LOOPS]
    for number in options.idle if holders else []:
        subjects = holders if number < MANY else loops
        bench.rounds(f"idle{number}", count, subjects, bench.measure_idle)
    if holders:
        title = "How cost grows: KiB of memory (PSS without files) an idle connection"
        print(f"\n{title}, where so many are held, {count} rounds")
        growth_table(bench, "idle", chosen, options.idle)


def before_part(bench: Bench, options: argparse.Namespace, chosen: Sequence[str]) -> None:
    """Each server of this source tree beside that of another one."""
    for title, load in (
        ("One connection per request, ab", bench.load),
        ("Keep-alive, one connection, ab -k", replace(bench.load, keep_alive=True, concurrency=1)),
    ):
        bench.load = load
        bench.setting = replace(bench.setting, keep_alive=load.keep_alive)
        print(
            f"{title}: CPU per request; {bench.starts} starts, {bench.pairs} pairs of bursts of "
            f"{options.requests // 4} requests"
        )
        settings = [replace(bench.setting, label=label) for label in chosen]
        differences(bench, [(now, replace(now, folder=options.before)) for now in settings])


# --- the command ---


def _numbers(text: str) -> list[int]:
    numbers = [int(word) for word in text.split(",")]
    if not all(0 < number < 100_000 for number in numbers):
        raise ValueError
    return numbers


def _from_two(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) < 2:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 2")
    return int(text)


def _tree(text: str) -> Path:
    folder = Path(text).resolve()
    if not any(folder.glob("*_server")):
        raise argparse.ArgumentTypeError(f"no servers in '{text}': run make there")
    return folder


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", add_help=True)
    parser.add_argument("--subjects", default="", help="servers, with commas between them")
    for name, usual in (("rounds", 7), ("requests", 4000), ("concurrency", 10), ("size-rounds", 5),
                        ("keep-rounds", 5), ("growth-rounds", 3), ("tls-rounds", 3)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=usual, help=f"a number ({usual})")
    parser.add_argument(
        "--before", type=_tree, metavar="DIR", help="compare with the servers of a tree, built"
    )
    parser.add_argument("--starts", type=_from_two, default=16, help="of each server (16)")
    parser.add_argument("--pairs", type=_from_two, default=24, help="of bursts in a start (24)")
    parser.add_argument("--growth", type=_numbers, default=[1, 10, 100, 1000])
    parser.add_argument("--idle", type=_numbers, default=[100, 1000, 10000])
    return parser.parse_args(arguments)


def _chosen(words: str) -> list[str]:
    chosen = []
    for subject in words.replace(",", " ").split() or document_recipes():
        if not is_known(subject):
            fail(f"there is no server '{subject}'; there are: {' '.join(document_recipes())}", 2)
        need = need_of(subject)
        if need and not is_installed(need.program):
            say(f"bench: {subject} is not installed, and left out: apt-get install {need.package}")
        elif lacks := lacks_of(subject):
            say(f"bench: {subject} cannot run on this machine, and is left out: it needs {lacks}")
        else:
            chosen.append(subject)
    return chosen


def _of_both(before: Path, words: str) -> list[str]:
    """Of the named servers, those that both this source tree and another one have."""
    chosen = []
    for label in words.replace(",", " ").split() or our_servers():
        if recipe_name(label) not in our_servers():
            fail(f"--before compares our own servers; '{label}' is none", 2)
        elif os.access(before / f"{recipe_name(label)}_server", os.X_OK):
            chosen.append(label)
        else:
            say(f"bench: {label} is left out: there is none in {before}")
    return chosen


@contextmanager
def opened(requests: int, concurrency: int, starts: int, pairs: int) -> Iterator[Bench]:
    """A bench whose load is small.txt with a connection for each request. No study measures
    meanwhile."""
    with study_lock(lambda: None), scratch() as work:
        documents = work / "data"
        documents.mkdir()
        for path in DATA.glob("*.txt"):
            shutil.copy(path, documents)
        accounting = control_groups.begin()
        servers = Servers(work, accounting)
        setting = Setting(
            "", documents, work / "certificates", len(processors_allowed()),
            bytes=(documents / "small.txt").stat().st_size, path="small.txt",
        )  # fmt: skip
        load = Load("ab", "", setting.path, concurrency, requests)
        try:
            yield Bench(work, servers, setting, load, starts, pairs)
        finally:
            servers.stop_all()
            accounting.end()


def bench_main(arguments: Sequence[str]) -> int:
    """Measures and prints; returns the exit status."""
    options = _parse(arguments)
    if options.before:
        options.subjects = ",".join(_of_both(options.before, options.subjects))
    chosen = _chosen(options.subjects)
    if not is_installed("ab"):
        fail("ab is missing: apt-get install apache2-utils")
    with opened(options.requests, options.concurrency, options.starts, options.pairs) as bench:
        if options.before:
            before_part(bench, options, chosen)
            return 0
        for part in (close_part, size_part, keep_part, tls_part, growth_part):
            part(bench, options, chosen)
    return 0
