"""One run: a server, a load on it, and the row of the table."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from collect.design.factors import FACTORS, HOLDING
from collect.design.study import Study
from collect.histogram import Histogram
from collect.measure import capacity, documents, instruments, loads, proxy_origin
from collect.measure import held_connections as crowds
from collect.measure.clock_steps import step_since, wall_offset
from collect.measure.control_groups import Accounting
from collect.measure.loads import Load, Said, Watched
from collect.measure.machine import processors_allowed
from collect.measure.server_commands import (
    FLOORS,
    Setting,
    configuration_files,
    is_floor,
    is_peer,
    recipe_name,
)
from collect.measure.servers import (
    Server,
    ServerProblem,
    Servers,
    WorkerCounts,
    count_of_workers,
)
from collect.measure.stop import Stop
from collect.measure.study_network import Link
from collect.project import CLIENTS, CRASH_FOLDER, PROJECT, say, server_folder

# A server that fails this often in a block is not tried again in it.
FAILURES_MOST = 3
GIVEN_UP = "server does not start"
WARM_REQUESTS_MOST = 1000
CALIBRATION_RUNS = 2
CALIBRATION_REQUESTS = 4000
# A response of the service `work` has so many bytes.
WORK_BYTES = 37
# Other work of its processor makes the client of an open loop late, too: the run is tried again.
LATE_TRIES = 3
# Of fewer requests launch cannot tell whether a process was made for each of them.
SWITCHES_LEAST = 10
# Behind the key of a server for a single run.
APART = " apart"
NO_STUDY = Study("calibration", "", "", "", {})
Cell = Mapping[str, str]


@dataclass
class Result:
    """The result of a run: the measured columns, and the output that is kept."""

    columns: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    told: bool = False
    command: str = ""
    watched: Watched = field(default_factory=Watched)
    output: str = ""
    percentiles: str = ""
    started: float = 0.0  # by the monotonic clock
    stepped: float = 0.0  # seconds by which somebody set the wall clock in the run
    late: bool = False  # the client of an open loop could not keep its times
    histogram: Histogram = field(default_factory=dict)

    @property
    def is_invalid(self) -> bool:
        """A server that cannot hold its connections is a result, not an invalid run."""
        return self.reason != "yes" and not self.reason.startswith("cannot hold: ")


def calibration_cells() -> list[dict[str, str]]:
    """The floors, by turns: `ab -n 4000 -c 10` on small.txt."""
    usual = {factor.name: factor.default for factor in FACTORS}
    usual |= {"file": "small.txt", "concurrency": "10", "requests": str(CALIBRATION_REQUESTS)}
    usual |= {
        "certificate": "-",
        "sessions": "-",
        "amount": "-",
        "offered": "-",
        "surge": "0",
        "mixed": "0",
        "worker_count": "auto",
        "data_share": "0",
        "round_trip": "-",
        "readers": "0",
        "deadline": "-",
    }
    return [{**usual, "server": floor} for _ in range(CALIBRATION_RUNS) for floor in FLOORS]


@dataclass
class Place:
    """The processors of server and load (`launch --processors`), and the number of the server's."""

    server: str = ""
    load: str = ""
    workers: int = 1


class Runner:
    """Carries out runs of a study, one after the other."""

    def __init__(
        self, study: Study, folder: Path, work: Path, accounting: Accounting, stop: Stop
    ) -> None:
        self.study = study
        self.folder = folder
        self.work = work
        self.documents = work / "data"
        self.accounting = accounting
        self.servers = Servers(work, accounting)
        self.stop = stop
        self.link = Link()
        self.failures: dict[str, int] = {}
        self.processors = processors_allowed()
        self.patience = study.timeout or 60
        # A study with a fault alone uses the servers that die of one request.
        own = server_folder() != PROJECT
        self.binaries = CRASH_FOLDER if study.fault and not own else None
        # The seconds of loads that are no part of a run.
        self.aside = 0.0
        self.capacities = capacity.Capacities(folder)

    def end_block(self) -> None:
        """Stops all servers."""
        self.servers.stop_all()
        self.failures.clear()

    def run(self, number: str, cell: Cell, switches: bool = False) -> Result:
        """Makes a run; where its client was late by itself, makes it again. With `switches` the
        context switches are counted, too, of processes and threads that come and go."""
        result, tries = self._run(number, cell), 1
        while result.late and tries < LATE_TRIES:
            self.aside += result.watched.seconds
            if _holds(cell):  # the server keeps memory of the connections that it held
                self.servers.stop(_key(cell, self._setting(cell)[0]))
            result, tries = self._run(number, cell), tries + 1
        result.columns["tries"] = str(tries) if cell["load"] == "open" else "-"
        if switches and not result.is_invalid and result.columns["voluntary"] == "-":
            self._count_switches(number, cell, result)
        return result

    def _count_switches(self, number: str, cell: Cell, result: Result) -> None:
        """Counts the context switches of processes and threads that come and go. They are known
        when their server has ended, as the sum of all that it did: so the run is made once more, on
        a server of its own. The other one goes on, as in the blocks whose switches nobody counts.
        """
        if self._ends_servers or crowds.asked(cell):
            return
        counted = self._run(number, cell, apart=True)
        if counted.reason == "yes":
            result.columns |= {name: counted.columns[name] for name in ("voluntary", "involuntary")}
        self.aside += counted.watched.seconds

    @property
    def _ends_servers(self) -> bool:
        """A worker's second death may delay its replacement, so each run has a new server."""
        return bool(self.study.fresh or self.study.fault)

    def _run(self, number: str, cell: Cell, apart: bool = False) -> Result:
        """Makes a run; raises Interrupted when somebody asks to stop.

        apart  on a server for this run alone
        """
        result = Result(started=time.monotonic())
        setting, place = self._setting(cell)
        key = _key(cell, setting) + (APART if apart else "")
        load = self._load(cell)
        try:
            server = self._server(number, key, setting, load, result)
            self.stop.check()
            load = self._offered(cell, server, setting, place, load)
            self._measure(cell, server, setting, place, load, result)
        except ServerProblem as problem:
            result.reason, result.told = str(problem), True
            if result.reason != GIVEN_UP:
                say(f"run {number}: {problem}")
        self._judge(number, key, cell, load, setting, result)
        if self._ends_servers or apart:
            self._end_server(key, cell, result)
        self.stop.check()
        return result

    def calibrate(self, cell: Cell) -> Result:
        """Makes a run of a floor: on the loopback, also where the study has a link."""
        link, self.link = self.link, Link()
        study, self.study = self.study, NO_STUDY
        try:
            return self.run("calibration", cell)
        finally:
            self.link, self.study = link, study

    def count_calls(self, cell: Cell) -> dict[str, float]:
        """Returns the system calls of a request in a cell, by strace; raises ServerProblem."""
        load, server, make = self._watched_load(cell)
        few = min(load.requests or 0, instruments.STRACE_REQUESTS)
        return instruments.count_calls(server, self.work, make(replace(load, requests=few or None)))

    def sample_stacks(self, cell: Cell) -> Counter[str]:
        """Returns where a server spends its time in a cell, by perf; raises ServerProblem."""
        load, server, make = self._watched_load(cell)
        return instruments.sample_stacks(server, self.work, make(load))

    def _watched_load(
        self, cell: Cell
    ) -> tuple[Load, Server, Callable[[Load], instruments.MakeLoad]]:
        """The load of a cell, its server, and a function that makes such loads while an instrument
        watches."""
        setting, place = self._setting(cell)
        load = self._load(cell)
        server = self._server("instrument", _key(cell, setting), setting, load, Result())

        def make(load: Load) -> instruments.MakeLoad:
            def once(watch: list[str]) -> int:
                result = Result()
                self._apply(server, place, _at(load, server.url), result, watch)
                said = self._said(load, result)
                verdict = loads.verdict(load, said, result.watched, setting.bytes)
                if verdict != "yes":
                    raise ServerProblem(f"{cell['server']}: {verdict}")
                return said.complete or 0

            return once

        return load, server, make

    # --- before the load ---

    def _bytes(self, cell: Cell) -> int | None:
        """The size that the document of a cell must have."""
        if cell["service"] == "files":
            path = self.documents / cell["file"]
            return path.stat().st_size if path.is_file() else None
        if cell["service"] == "work":
            return WORK_BYTES
        name = cell["file"].rpartition("/")[2]
        return int(name) if name.isdigit() else None

    def _place(self, cell: Cell) -> Place:
        """Returns the processors of server and load. The load gets those that the server leaves,
        if it leaves any."""
        if cell["processors"] == "all":
            return Place(workers=len(self.processors))
        count = int(cell["processors"])
        first, rest = self.processors[:count], self.processors[count:]
        return Place(",".join(map(str, first)), ",".join(map(str, rest)), count)

    def _setting(self, cell: Cell) -> tuple[Setting, Place]:
        place = self._place(cell)
        told = None if cell["worker_count"] == "auto" else int(cell["worker_count"])
        setting = Setting(
            label=cell["server"],
            documents=self.documents,
            certificates=self.work / "certificates",
            workers=told or place.workers,
            is_told_workers=told is not None,
            scheme=cell["scheme"],
            certificate=cell["certificate"],
            protocol=cell["protocol"],
            service=cell["service"],
            keep_alive=cell["keepalive"] == "on" or cell["calls"] != "1",
            held=int(cell["concurrency"]) if _holds(cell) else 0,
            bytes=self._bytes(cell),
            path=_path(cell),
            processors=place.server,
            near=self.link.near,
            idle_timeout=self.study.idle_timeout,
            request_timeout=self.study.request_timeout,
            ballast=int(cell["ballast"]),
            folder=self.binaries,
            command=self.study.commands.get(recipe_name(cell["server"]), ""),
            directory=self.study.directory,
            memory_limit=self.study.memory_limit if cell["data_share"] != "0" else None,
        )
        return setting, place

    def _load(self, cell: Cell) -> Load:
        requests = int(cell["requests"]) if cell["requests"] != "-" else None
        if cell["load"] == "httperf" and requests is None:
            # All connections come at once, and no more follow.
            requests = int(cell["concurrency"])
        return Load(
            generator=cell["load"],
            url="",
            file=_path(cell),
            concurrency=int(cell["concurrency"]),
            requests=requests,
            calls=int(cell["calls"]),
            keep_alive=cell["keepalive"] == "on",
            scheme=cell["scheme"],
            sessions=cell["sessions"],
            timeout=self.patience,
            duration=self.study.duration or 2,
            warm_up=self.study.seconds_before if cell["load"] == "open" else 0,
            rate=self.study.rate,
            deadline=int(cell["deadline"]) if cell["deadline"] not in ("0", "-") else None,
            late_after=self.study.late,
            seed=seed_of_block(self.study.seed, int(cell.get("block", "1"))),
            other=self.study.other,
            mixed=int(cell["mixed"]),
            by_thread=cell["worker_count"] != "auto" and cell["service"] == "work",
            documents=documents.count_of_set(cell, self.study),
            fault=self.study.fault,
            across=self.link.across,
            near=self.link.near,
        )

    def _server(
        self, number: str, key: str, setting: Setting, load: Load, result: Result
    ) -> Server:
        """The server of a key, started and warm."""
        if server := self.servers.running.get(key):
            return server
        if is_floor(setting.label) and setting.bytes is None:
            raise ServerProblem(f"there is no document {setting.path}")
        if self.failures.get(key, 0) >= FAILURES_MOST:
            raise ServerProblem(GIVEN_UP)
        try:
            server = self.servers.start(key, setting)
        except ServerProblem:
            self.failures[key] = self.failures.get(key, 0) + 1
            raise
        if is_peer(setting.label):
            self._publish(server)
        self._warm(server, setting, load)
        return server

    def _publish(self, server: Server) -> None:
        """Keeps the configuration that a peer was started with, once."""
        folder, name = self.folder / "configurations", recipe_name(server.label)
        for path in configuration_files(server.folder):
            target = folder / (f"{name}.conf" if path.suffix == ".conf" else f"{name}-{path.name}")
            if not target.exists():
                target.parent.mkdir(exist_ok=True)
                target.write_text(path.read_text().replace(str(self.work), "WORK"))

    def _warm(self, server: Server, setting: Setting, load: Load) -> None:
        """Has a new server answer some requests that nobody counts: a tenth of a run's."""
        study = self.study
        if load.documents:
            self._fill(server, load)
            return
        slow = study.fresh or study.fault or study.link or study.load_hosts
        if slow or load.generator == "wrk" or setting.service.startswith("proxy-"):
            return
        begin = time.monotonic()
        if load.generator == "open":
            warm = loads.closed_loop(replace(load, keep_alive=False), 1, WARM_REQUESTS_MOST)
            warm = _at(warm, server.url)
        else:
            requests = min((load.requests or 0) // 10, WARM_REQUESTS_MOST)
            few = max(requests, load.concurrency)
            warm = _at(load, server.url, requests=min(few, load.requests or few))
        self._put_aside(server, warm)
        self.aside += time.monotonic() - begin

    def _fill(self, server: Server, load: Load) -> None:
        """Has a server read as many documents into memory as it can, from the disk alone. It is
        asked in another order than in the run: a short run in the same order would ask for no
        others."""
        begin = time.monotonic()
        documents.forget(self.documents / load.file)
        self._put_aside(server, _at(replace(load, seed=load.seed + 1), server.url))
        self.aside += time.monotonic() - begin

    def _put_aside(self, server: Server, warm: Load) -> None:
        """Makes a load that nobody counts."""
        command = loads.command_of(warm, self.work / "warm.percentiles")
        launch = self._launch(server, "warm", "")
        self.stop.wait_for(_start([*launch, "--", *command], self.work / "warm.out"))
        server.warm = warm.wanted
        if warm.for_a_time or warm.generator == "witness":
            output = (self.work / "warm.out").read_text(errors="replace")
            server.warm = loads.read_said(warm, output, "").complete or 0

    # --- the load ---

    def _launch(self, server: Server, name: str, processors: str, grown: bool = False) -> list[str]:
        command = [str(CLIENTS / "launch"), "load", "--server", str(server.pid)]
        lead = self.link.hosts.lead_most if self.link.hosts else 0
        command += [*server.group.read, "--timeout", str(self.patience + lead)]
        if processors:
            command += ["--processors", processors]
        if grown:
            command += ["--grown"]
        return [*command, "--result", str(self.work / f"{name}.result")]

    def _measure(
        self, cell: Cell, server: Server, setting: Setting, place: Place, load: Load,
        result: Result,
    ) -> None:  # fmt: skip
        """Puts the load on the server, with clients that hold connections where the cell has
        them, and an origin where the server is a proxy."""
        behind = None
        if cell["service"].startswith("proxy-"):
            beside = _beside(setting, place)
            behind = proxy_origin.begin(self.servers, server, beside, cell["service"], cell["file"])
        load = _at(load, server.url, proxied=behind.server.url if behind else "")
        held = crowds.asked(cell)
        before = self._memory(server) if int(cell["idle"]) else None
        if cell["round_trip"] != "-":
            self.link.set_round_trip(int(cell["round_trip"]))
        result.started = time.monotonic()
        crowd = self._crowd(held, cell, server) if held else None
        try:
            if crowd is None or not crowd.problem:
                if before is not None:
                    gained = (self._memory(server) - before) / int(cell["idle"])
                    result.columns["idle_kib"] = f"{gained:.3f}"
                workers = self._workers_before(server, cell)
                self._apply(server, place, load, result)
                self._workers_after(server, workers, load, result)
        finally:
            if crowd:
                crowd.end()
                columns = {"held": crowd.held, "each_kib": crowd.each_kib, "cut": crowd.cut}
                result.columns.update(columns)
        if crowd and crowd.problem:
            result.reason, result.told = crowd.problem, True
        elif behind and result.watched.done:
            problem = self._check_origin(behind, server, load, result)
            if problem:
                raise ServerProblem(problem)

    def _check_origin(
        self, behind: proxy_origin.Origin, server: Server, load: Load, result: Result
    ) -> str:
        """Returns the problem when the origin was not asked as often as the load means."""
        at_once = load.concurrency
        if not load.for_a_time:
            return proxy_origin.check(behind, server, load.requests or 0, at_once)
        complete = self._said(load, result).complete or 0
        return proxy_origin.check(behind, server, complete, at_once, cut=at_once)

    def _crowd(self, held: crowds.Held, cell: Cell, server: Server) -> crowds.Crowd:
        return crowds.begin(
            held, server.url, _path(cell), group=server.group,
            work=self.work, timeout=self.patience, stopped=lambda: self.stop.asked,
        )  # fmt: skip

    def _memory(self, server: Server) -> int:
        """The memory of a server in KiB, without pages of files."""
        command = [str(CLIENTS / "launch"), "memory", "--server", str(server.pid)]
        return int(subprocess.run(command, capture_output=True, check=False).stdout or 0)

    def _offered(
        self, cell: Cell, server: Server, setting: Setting, place: Place, load: Load
    ) -> Load:
        """A load whose rate is a share of what the server can answer, where the cell has one."""
        if cell["offered"] == "-":
            return load
        closed = _at(loads.closed_loop(load, capacity.RUN_SECONDS), server.url)

        def measure() -> Iterator[dict[str, str]]:
            begin = time.monotonic()
            for _ in range(capacity.RUNS):
                result = Result()
                self._apply(server, place, closed, result)
                said = self._said(closed, result)
                valid = loads.verdict(closed, said, result.watched, setting.bytes)
                if valid == "yes" and not said.complete:
                    valid = "no request completed"
                yield loads.row_of(closed, said, result.watched) | {"valid": valid}
            server.counts_of_workers = None
            self.aside += time.monotonic() - begin

        known = self.capacities.of(cell, measure)
        if known is None:
            raise ServerProblem("what the server can answer could not be measured")
        offered, surge = int(cell["offered"]), int(cell["surge"])
        rate = max(1, round(known * offered / 100))
        return replace(load, rate=rate, surge=round(100 * surge / offered) or None)

    def _apply(
        self, server: Server, place: Place, load: Load, result: Result, watch: Sequence[str] = ()
    ) -> None:
        """Runs the load, watched from outside; `watch` is put before its command."""
        self.stop.check()
        server.runs_made += 1
        percentiles = self.work / "run.percentiles"
        percentiles.unlink(missing_ok=True)
        (self.work / "run.result").unlink(missing_ok=True)
        hosts = self.link.hosts
        command = hosts.command(load) if hosts else loads.command_of(load, percentiles)
        result.command = " ".join(command)
        result.started = time.monotonic()
        launch = self._launch(server, "run", place.load, load.holds)
        offset = wall_offset()
        self.stop.wait_for(_start([*watch, *launch, "--", *command], self.work / "run.out"))
        result.stepped = step_since(offset)
        result.watched = loads.read_watched(self.work / "run.result")
        if load.wanted < SWITCHES_LEAST:
            result.watched.voluntary = result.watched.involuntary = None
        result.output = (self.work / "run.out").read_text(errors="replace")
        if percentiles.exists():
            result.percentiles = percentiles.read_text()

    def _said(self, load: Load, result: Result) -> Said:
        """What the load generator of a run said, or those of several machines together."""
        if self.link.hosts:
            return self.link.hosts.read(result.output)
        return loads.read_said(load, result.output, result.percentiles)

    def _workers_before(self, server: Server, cell: Cell) -> list[WorkerCounts] | None:
        """Returns the requests that each worker of a server had answered before the run."""
        if self.study.fault or crowds.asked(cell):
            return None
        if server.counts_of_workers is None and server.has_workers:
            server.counts_of_workers = count_of_workers(server, 0)
            server.has_workers = server.counts_of_workers is not None
        return server.counts_of_workers

    def _workers_after(
        self, server: Server, before: list[WorkerCounts] | None, load: Load, result: Result
    ) -> None:
        """Notes the number of workers, the share of the run that the busiest of them had, and how
        many events a wait of an event loop brought."""
        server.counts_of_workers = None
        if before is None or not result.watched.done:
            return
        wanted = load.wanted if not load.for_a_time else 1
        answered = sum(then.requests for then in before)
        after = count_of_workers(server, answered + wanted)
        if after is None or len(after) != len(before):
            return
        server.counts_of_workers = after
        own = [now.requests - then.requests for now, then in zip(after, before, strict=True)]
        result.columns["workers"] = str(len(own))
        result.columns["busiest"] = f"{max(own) / sum(own):.4f}"
        waits = sum(now.waits - then.waits for now, then in zip(after, before, strict=True))
        events = sum(now.events - then.events for now, then in zip(after, before, strict=True))
        if waits > 0:
            result.columns["batch"] = f"{events / waits:.3f}"

    # --- after the load ---

    def _judge(
        self, number: str, key: str, cell: Cell, load: Load, setting: Setting, result: Result
    ) -> None:
        """Says whether the run counts, and fills in the columns."""
        server = self.servers.running.get(key)
        if server and not result.watched.alive and not self.study.fault:
            words = server.last_words()
            result.reason = "server died" + (f": {words}" if words else "")
            result.told = True
            say(f"run {number}: {cell['server']}: {result.reason}")
            self.servers.stop(key)
        said = Said()
        if result.output:
            said = self._said(load, result)
        result.histogram = said.histogram
        if not result.reason and result.stepped:
            # The load generators take their times from the wall clock.
            result.reason = f"the clock of the machine was set by {result.stepped:+.3f} s"
        if not result.reason:
            result.reason = loads.verdict(load, said, result.watched, setting.bytes)
            result.late = load.generator == "open" and result.watched.done and bool(said.words)
        result.columns = loads.row_of(load, said, result.watched) | result.columns
        result.columns["valid"] = result.reason

    def _end_server(self, key: str, cell: Cell, result: Result) -> None:
        """Stops a server. Where it did nothing but this run and what warmed it, the kernel's
        counts of it are those of the run."""
        server = self.servers.running.get(key)
        usage = self.servers.stop(key)
        complete = result.columns.get("complete", "-")
        alone = server and server.runs_made == 1 and complete not in ("-", "0")
        held = crowds.asked(cell) or self.study.fault
        if usage is None or not server or not alone or held or result.watched.voluntary is not None:
            return
        requests = int(complete) + server.warm
        result.columns["voluntary"] = f"{usage.ru_nvcsw / requests:.4f}"
        result.columns["involuntary"] = f"{usage.ru_nivcsw / requests:.4f}"


def _path(cell: Cell) -> str:
    """The path that the clients of a cell ask for."""
    if cell["data_share"] != "0":
        return f"{cell['file']}{documents.SET}/0"
    return f"{cell['file']}/{cell['amount']}" if cell["service"] == "work" else cell["file"]


def seed_of_block(study: int, block: int) -> int:
    """The seed of a block's random times and choices, the same for all of its servers, so that they
    are compared under the same load. Another sitting has others: its load is another sample."""
    return (study * 1009 + block) % (1 << 31)


def _holds(cell: Cell) -> bool:
    """Returns true if the load of a cell opens all its connections first."""
    return cell["load"] == "open" and cell["keepalive"] == "on"


def _key(cell: Cell, setting: Setting) -> str:
    """The key of a started server. A server that held many connections keeps some of the
    memory, so that their number is a part of it. A peer may know some kinds of work alone."""
    names = (
        "server", "scheme", "certificate", "protocol", "service", "processors", *HOLDING,
        "ballast", "worker_count", "data_share",
    )  # fmt: skip
    key = " ".join(cell[name] for name in names) + (f" {setting.held}" if setting.held else "")
    if cell["service"] == "work" and is_peer(cell["server"]):
        key += f" {cell['file']}"
    return f"{key} {setting.bytes} {setting.keep_alive}" if is_floor(cell["server"]) else key


def _at(load: Load, url: str, requests: int | None = None, proxied: str = "") -> Load:
    """The load on the server at a URL."""
    if load.near:
        url = url.replace("127.0.0.1", load.near)
    if requests is not None:
        load = replace(load, requests=requests)
    return replace(load, url=url, proxied=proxied)


def _beside(setting: Setting, place: Place) -> Setting:
    """The setting of an origin, which runs where the load does."""
    return replace(setting, processors=place.load, folder=None)


def _start(command: list[str], out: Path) -> subprocess.Popen[bytes]:
    with out.open("wb") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
