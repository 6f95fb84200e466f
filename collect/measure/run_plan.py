"""Carries out the plan of a results folder, run by run; the only stage that measures anything.

Runs that runs.tsv holds already are not made again: an interrupted plan goes on where it was. A row
is one write, its raw output is stored before it, and a last line without its line end is taken away
before the first row. Servers are started when a block first needs them and stopped at
its end. One that dies is reported with its standard error, the run is invalid, and the next run of
that server gets a fresh one.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from collect import gzip_members, histogram
from collect.design.study import Study, load_study
from collect.histogram import Histogram
from collect.measure import control_groups, foreign_load, held_connections, machine, study_network
from collect.measure.clock_steps import StudyClock
from collect.measure.documents import prepare_documents, prepare_sets
from collect.measure.load_hosts import LoadHosts, address_of
from collect.measure.look_inside import look_inside
from collect.measure.one_run import Result, Runner, calibration_cells
from collect.measure.progress import Progress
from collect.measure.scratch import scratch
from collect.measure.stop import SIGNALS, Interrupted, Stop, end_with_parent
from collect.measure.study_lock import study_lock
from collect.measure.study_network import Link
from collect.measure.warn_of_disturbance import Disturbance
from collect.measure.warn_of_drift import RatioDrift, tell_moved_floors
from collect.project import (
    CALIBRATION_FILE,
    HISTOGRAMS_FILE,
    MACHINE_FILE,
    PLAN_FILE,
    ROUNDS_FILE,
    RUNS_FILE,
    STACKS_FILE,
    STUDY_FILE,
    StudyError,
    command_from_here,
    fail,
    say,
)
from collect.readable_numbers import plural
from collect.schema import CALIBRATION, HISTOGRAMS, MEASURED, PLAN, ROUNDS
from collect.tables import (
    Table,
    append_line,
    append_pairs,
    read_pairs,
    read_table,
    row_text,
    write_table,
)

RAW_FILE = "raw.gz"
LOCK_FILE = ".lock"
LOCK_SECONDS = 5.0
# Beside those of connections.
SPARE_DESCRIPTORS = 1000
DATE = "%Y-%m-%d %H:%M:%S UTC"
DONE, INVALID, INTERRUPTED = 0, 3, 130
AfterBlock = Callable[[int, int], None]
COLUMNS = [*PLAN.names, *(column.name for column in MEASURED)]


def run_plan(folder: Path, after_block: AfterBlock | None = None) -> int:
    """Runs the plan in a process of its own, which may enter another network; returns the exit
    status: 0 all runs are valid, 3 some are not, 130 interrupted, 1 anything else.

    after_block  is called between blocks, with the number of runs that are made and of all
    """
    # A signal waits until its handler is there, here and in the child.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    child = os.fork()
    if child == 0:
        end_with_parent()
        os._exit(_child(folder, after_block))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda heard, _: os.kill(child, heard))
    # On a terminal the child gets the signal, too.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    _, status = os.waitpid(child, 0)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1


def _child(folder: Path, after_block: AfterBlock | None) -> int:
    status = 1
    try:
        stop = Stop()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        with _locked(folder), study_lock(stop.check):
            status = _run(folder, stop, after_block)
    except Interrupted:
        say(f"Interrupted before the first run. Go on with: {_resume(folder)}")
        status = INTERRUPTED
    except StudyError as error:
        say(f"dcollect: {error}")
        status = error.status
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Locks the results folder; a killed holder may take a moment to end."""
    path = folder / LOCK_FILE
    with path.open("w") as file:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    fail(f"{folder} is being worked on already")
                time.sleep(0.05)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _run(folder: Path, stop: Stop, after_block: AfterBlock | None) -> int:
    study = load_study(folder / STUDY_FILE)
    plan = read_table(folder / PLAN_FILE).rows
    network = _enter_network(study)
    _allow_descriptors(max(int(row["concurrency"]) for row in plan))
    with scratch() as work:
        read = [held_connections.READ_FILE for row in plan if row["readers"] != "0"]
        documents = prepare_documents(work, [study.other, *read, *(row["file"] for row in plan)])
        prepare_sets(documents, study, plan)
        accounting = control_groups.begin()
        runner = Runner(study, folder, work, accounting, stop)
        try:
            done = _believed(folder)
            _tell_changes(folder)
            epoch = _begin_record(folder, study, accounting.method)
            runner.link = _begin_network(folder, study, network, work)
            least = max((float(row["started"]) for row in done.rows), default=0.0)
            clock = StudyClock(epoch, least)
            drift = RatioDrift(study.baseline or study.levels["server"][0])
            return _Sitting(folder, runner, plan, done, clock, drift, after_block).go()
        finally:
            runner.end_block()
            if runner.link.hosts:
                runner.link.hosts.end()
            accounting.end()


def _allow_descriptors(connections: int) -> None:
    """Lets servers and loads have so many connections, where this process may allow it."""
    wanted = connections + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))


# --- the network ---


def _enter_network(study: Study) -> bool:
    """Enters a network namespace where the study needs one; returns whether it did."""
    if study.link:
        if words := study_network.problem():
            fail(words)
        study_network.enter_namespace()
        return True
    if study.client_ports:
        if study_network.may_have_ports():
            study_network.enter_namespace()
            return True
        first, last = study.client_ports
        say(
            f"run: clients cannot have the ports {first}-{last} here, and take those of the machine"
        )
    return False


def _begin_network(folder: Path, study: Study, entered: bool, work: Path) -> Link:
    made = Link()
    if study.link:
        made = study_network.begin(study.link)
        append_pairs(folder / MACHINE_FILE, {"link": made.text})
    elif study.load_hosts:
        made = Link(near=address_of(study.server_host))
        made.hosts = LoadHosts(study.load_hosts, work)
        described = made.hosts.begin(study.levels["load"])
        pairs = {f"load_host.{name}": text for name, text in described.items()}
        append_pairs(folder / MACHINE_FILE, pairs)
    elif study.client_ports and entered:
        study_network.begin_ports(*study.client_ports)
    append_pairs(folder / MACHINE_FILE, {"client_ports": study_network.ports_text(made)})
    return made


# --- what is there already ---


def _tell_changes(folder: Path) -> None:
    """Warns of differences to the round before, or to its first part: another machine is welcome,
    another commit is another edition."""
    path = folder / ROUNDS_FILE
    rows = read_table(path).rows if path.exists() else []
    for name, value in machine.identity().items() if rows else ():
        before = rows[-1].get(name, value)
        if before != value:
            noun = name.replace("_", " ")
            say(f"{folder}: the last round had the {noun} {before}, this one has {value}")


def _believed(folder: Path) -> Table:
    """Reads runs.tsv, and writes it without what is not believed, so that rows can follow."""
    path = folder / RUNS_FILE
    table = read_table(path, key="run") if path.exists() else Table([], [])
    if not table.columns:
        table = Table(COLUMNS, [])
    try:
        write_table(path, table.columns, table.rows)
    except OSError as error:
        fail(f"cannot write to {folder}: {error}")
    for name in (RAW_FILE, STACKS_FILE, HISTOGRAMS_FILE):
        gzip_members.mend(folder / name)
    return table


def _now() -> str:
    return datetime.now(UTC).strftime(DATE)


def _begin_record(folder: Path, study: Study, method: str) -> float:
    """Writes down how things are measured; returns when the study began."""
    path = folder / MACHINE_FILE
    known = read_pairs(path).get("started_epoch")
    epoch = float(known) if known else time.time()
    started = {"started": _now(), "started_epoch": f"{epoch:.6f}"}
    append_pairs(path, {"resumed": _now()} if known else dict(started))
    pairs = {"cost_method": method}
    if study.fresh:
        pairs["memory_method"] = "PSS without pages of files"
    append_pairs(path, pairs)
    return epoch


# --- the runs ---


@dataclass
class _Sitting:
    """The runs of a plan that are still to be made."""

    folder: Path
    runner: Runner
    plan: list[dict[str, str]]
    believed: Table
    clock: StudyClock
    drift: RatioDrift
    after_block: AfterBlock | None = None
    own_seconds: float = 0.0
    invalid: int = 0
    disturbance: Disturbance = field(default_factory=Disturbance)

    def go(self) -> int:
        finished = {row["run"] for row in self.believed.rows}
        self.invalid = sum(_is_invalid(row["valid"]) for row in self.believed.rows)
        progress = Progress(len(self.plan), len(finished))
        begun = {row["round"] for row in self.believed.rows if "round" in row}
        begin = foreign_load.read_ticks()
        interrupted = False
        try:
            for planned in _pieces(self.plan, "round"):
                todo = [row for row in planned if row["run"] not in finished]
                number = planned[0].get("round", "1")
                if todo:
                    self._round(number, planned, todo, progress, resumed=number in begun)
                else:
                    look_inside(self.folder, self.runner, number, planned, progress)
        except Interrupted:
            interrupted = True
        self.runner.end_block()
        progress.end()
        self.disturbance.end()
        self.drift.end()
        self._end_record(progress.done, begin, interrupted)
        return self._told(progress, interrupted)

    def _told(self, progress: Progress, interrupted: bool) -> int:
        """Says how it ended; returns the exit status."""
        if interrupted:
            say(
                f"Interrupted: {progress.count} of {plural(progress.total, 'run', 'runs')} "
                f"{'is' if progress.count == 1 else 'are'} kept. "
                f"Go on with: {_resume(self.folder)}"
            )
            return INTERRUPTED
        if self.invalid:
            say(
                f"{self.invalid} of {plural(progress.total, 'run', 'runs')} "
                f"{'is' if self.invalid == 1 else 'are'} invalid; {self.folder}/{RUNS_FILE} tells "
                "why in its last column"
            )
            return INVALID
        return DONE

    def _round(
        self, number: str, planned: list[dict[str, str]], todo: list[dict[str, str]],
        progress: Progress, resumed: bool,
    ) -> None:  # fmt: skip
        """Makes what is left of the runs of a round, between two looks at the floors."""
        before, begin = progress.done, foreign_load.read_ticks()
        started = self.clock.now()
        try:
            progress.floors(number)
            rates = self._calibrate(number, "resume" if resumed else "begin")
            for index, block in enumerate(_pieces(todo, "block")):
                for row in block:
                    progress.run(row)
                    self.invalid += self._one(row, switches=index == 0)
                    progress.done += 1
                self.runner.end_block()
                self.disturbance.block(block[0]["block"])
                self.drift.block(block[0]["block"])
                progress.block(block[0]["block"])
                if self.after_block:
                    self.after_block(progress.count, progress.total)
            look_inside(self.folder, self.runner, number, planned, progress)
            progress.floors(number)
            tell_moved_floors(number, rates | self._calibrate(number, "end"))
        finally:
            self.runner.end_block()
            if progress.done > before:
                self._record_round(number, started, progress.done - before, begin)

    def _calibrate(self, number: str, when: str) -> dict[tuple[str, str], list[float]]:
        """Measures the floors: what this machine can do now. Returns their requests/s."""
        rates: dict[tuple[str, str], list[float]] = {}
        path = self.folder / CALIBRATION_FILE
        columns = CALIBRATION.names
        if not path.exists():
            write_table(path, columns, [])
        for cell in calibration_cells():
            result = self.runner.calibrate(cell)
            started = {"started": f"{self.clock.since_begin(result.started):.3f}"}
            place = {"round": number, "when": when, "server": cell["server"]}
            append_line(path, row_text(columns, place | result.columns | started))
            if result.reason == "yes":
                rates.setdefault((when, cell["server"]), []).append(float(result.columns["rps"]))
        self.runner.end_block()
        return rates

    def _record_round(
        self, number: str, started: float, count: int, begin: foreign_load.Ticks
    ) -> None:
        """Writes down when and where a round was measured."""
        path = self.folder / ROUNDS_FILE
        if not path.exists():
            write_table(path, ROUNDS.names, [])
        row = {
            "round": number,
            "started": f"{started:.3f}",
            "ended": f"{self.clock.now():.3f}",
            "date": datetime.fromtimestamp(self.clock.epoch + started, UTC).strftime(DATE),
            "runs": count,
            **machine.identity(),
            **foreign_load.shares(begin, foreign_load.read_ticks()),
        }
        append_line(path, row_text(ROUNDS.names, row))

    def _one(self, row: dict[str, str], switches: bool) -> bool:
        """Makes a run and keeps it; returns whether it is invalid."""
        begin = time.monotonic()
        aside = self.runner.aside
        result = self.runner.run(row["run"], row, switches)
        started = {"started": f"{self.clock.since_begin(result.started):.3f}"}
        line = row_text(self.believed.columns, row | started | result.columns)
        self.disturbance.run(row, result.columns)
        self.drift.run(row, result.columns)
        path = self.folder / RUNS_FILE
        try:
            _keep_raw(self.folder / RAW_FILE, row, result)
            keep_histogram(self.folder, row["run"], result.histogram)
            append_line(path, line)
        except OSError as error:
            fail(
                f"run {row['run']} could not be recorded: {error}; every run before is kept; "
                f"go on with {_resume(self.folder)}"
            )
        if result.is_invalid and not result.told:
            say(
                f"run {row['run']}: {row['server']}, {row['file']}, {row['concurrency']} at "
                f"once: invalid: {result.reason}"
            )
        load = result.watched.seconds + self.runner.aside - aside
        self.own_seconds += time.monotonic() - begin - load
        return result.is_invalid

    def _end_record(self, done: int, begin: foreign_load.Ticks, interrupted: bool) -> None:
        if not done:
            return
        pairs = foreign_load.shares(begin, foreign_load.read_ticks())
        if not interrupted:
            pairs["own_ms_per_run"] = int(1000 * self.own_seconds / done)
            pairs["ended"] = _now()
            for name in (STACKS_FILE, HISTOGRAMS_FILE):
                gzip_members.pack(self.folder / name)
        append_pairs(self.folder / MACHINE_FILE, pairs)


def _resume(folder: Path) -> str:
    """Returns what people type to go on with a study."""
    return f"{command_from_here()} --resume {folder}"


def _is_invalid(reason: str) -> bool:
    return Result(reason=reason).is_invalid


def _pieces(rows: list[dict[str, str]], name: str) -> Iterator[list[dict[str, str]]]:
    """The rows of a plan, block by block or round by round."""
    for _, piece in itertools.groupby(rows, key=lambda row: row.get(name, "1")):
        yield list(piece)


def _keep_raw(path: Path, row: Mapping[str, str], result: Result) -> None:
    """Keeps what the load generator and launch printed."""
    names = ("run", "server", "file", "concurrency", "requests")
    head = "# run " + " ".join(row[name] for name in names) + f": {result.command}\n"
    text = f"{head}# launch: {result.watched.line}\n{result.output}{result.percentiles}"
    gzip_members.append(path, text)


def keep_histogram(folder: Path, number: str, times: Histogram) -> None:
    """Keeps the times of the requests. Of a run that is told twice the last line counts."""
    path = folder / HISTOGRAMS_FILE
    head = "" if path.exists() else "\t".join(HISTOGRAMS.names) + "\n"
    line = {"run": number, "histogram": histogram.to_text(times)}
    gzip_members.append(path, head + row_text(HISTOGRAMS.names, line))
