"""The command tests/trust: reads its options, runs the trials, and keeps their rows."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from collect.install_and_build import build, install
from collect.measure.server_commands import Need
from collect.project import StudyError
from trials import (
    crash,
    faults,
    hostile,
    kill,
    memory,
    overload,
    process_tree,
    protection,
    scarcity,
    servers,
    slow,
    soak,
    stop,
    symlinks,
    trust_page,
    upgrade,
)
from trials.patience import be_patient
from trials.trial import PROJECT, Context, Row, Trial
from trials.trust_table import Kept, read_rows, write_rows

TRIALS: list[Trial] = [
    stop.TRIAL, upgrade.TRIAL, crash.TRIAL, kill.TRIAL, slow.TRIAL, symlinks.TRIAL, overload.TRIAL,
    scarcity.TRIAL, memory.TRIAL, soak.TRIAL, protection.TRIAL, hostile.TRIAL, faults.TRIAL,
]  # fmt: skip
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PEERS = ("nginx", "lighttpd", "apache")


def _options(words: list[str], text: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "tests/trust", description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    models = sorted(path.name.removesuffix("_server.c") for path in PROJECT.glob("*_server.c"))
    names = [trial.name for trial in TRIALS]
    parser.add_argument("--quick", action="store_true", help="the short form, without peers")
    parser.add_argument("--only", metavar="NAME,...", help=f"these trials: {', '.join(names)}")
    parser.add_argument("--servers", metavar="NAME,...", help="these servers of ours")
    parser.add_argument("--peers", metavar="NAME,...", help="these peers, or none")
    parser.add_argument("--soak", metavar="S", type=float, help="seconds of the soak in all (150)")
    parser.add_argument("--output", metavar="FOLDER", help="where the results go (results)")
    parser.add_argument(
        "--page", action="store_true", help="only make the page again, of the table"
    )
    options = parser.parse_args(words)
    whole = [trial.name for trial in TRIALS if trial.whole]
    options.only = whole if options.only is None else _listed(parser, options.only, names, "trial")
    options.servers = _listed(parser, options.servers, models, "server")
    peers = "" if options.quick and options.peers is None else options.peers
    options.folder = Path(options.output or PROJECT / "results")
    options.peers = [] if peers in ("", "none") else _listed(parser, peers, list(PEERS), "peer")
    return options


def _listed(
    parser: argparse.ArgumentParser, words: str | None, known: list[str], what: str
) -> list[str]:
    """The words of a list; all that are known where there is no list."""
    named = known if words is None else words.split(",")
    for word in named:
        if word not in known:
            parser.error(f"there is no {what} '{word}'; there are: {', '.join(known)}")
    return named


def _needs(chosen: list[Trial], peers: list[str]) -> list[Need]:
    needs = {servers.PROGRAMS[peer]: servers.PACKAGES[peer] for peer in peers}
    for trial in chosen:
        needs |= trial.needs
    return [Need(program, package) for program, package in needs.items()]


def _ignore_signals() -> None:
    """From now on: a second signal must not keep what was started from being ended."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _workplace() -> Iterator[Path]:
    """A folder for all files. At the end no process and no mount is left."""
    work = Path(tempfile.mkdtemp(prefix="trust."))
    work.chmod(0o755)
    try:
        yield work
    finally:
        _ignore_signals()
        process_tree.end_all()
        for mount in Path("/proc/self/mounts").read_text().splitlines():
            if mount.split()[1].startswith(f"{work}/"):
                subprocess.run(["umount", mount.split()[1]], check=False)
        shutil.rmtree(work, ignore_errors=True)


def _say(text: str) -> None:
    print(text, flush=True)


def _tell(row: Row) -> None:
    limit = f" ({row.limit})" if row.limit else ""
    _say(f"  {row.verdict or '-':4} {row.server:10} {row.case}: {row.measure}: {row.value}{limit}")


def _run(trial: Trial, context: Context) -> Iterator[Row]:
    """The rows of a trial. A fault of the trial itself is a row that fails."""
    begin = time.monotonic()
    _say(f"== {trial.name}: {trial.title}")
    try:
        for row in trial.run(context):
            _tell(row)
            yield row
    except Exception as error:
        traceback.print_exc()
        process_tree.end_all()  # so that the next trial has the machine to itself
        yield Row(
            "-", "the trial itself", "1", "fault", f"{type(error).__name__}: {error}", "", "FAIL"
        )
    _say(f"   {time.monotonic() - begin:.0f} s")


def _machine() -> str:
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    kib = int(Path("/proc/meminfo").read_text().split()[1])
    return (
        f"{os.cpu_count()} processors ({model}), {kib / (1 << 20):.0f} GiB of memory, "
        f"{platform.system()} {platform.release()}"
    )


def _commit() -> str:
    def git(*words: str) -> str:
        command = ["git", "-C", str(PROJECT), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    # The results of the trials before are no change of what is tried.
    code = ("--", ".", ":(exclude)report")
    changed = "+" if git("status", "--porcelain", "--untracked-files=no", *code) else ""
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + changed


def _write_page(folder: Path, kept: list[Kept], options: argparse.Namespace) -> None:
    (folder / "trust.md").write_text(trust_page.make(TRIALS, kept, quick=options.quick))


def _page(folder: Path, options: argparse.Namespace) -> int:
    """Makes the page of a table that is there."""
    kept = read_rows(folder / "trust.tsv")
    if not kept:
        print(f"trust: there is no table {folder / 'trust.tsv'}", file=sys.stderr)
        return 2
    _write_page(folder, kept, options)
    return 0


def _all(options: argparse.Namespace, work: Path) -> int:
    """Runs the trials. After each one the table and the page are written, so that an interrupt
    loses one trial at most."""
    context = Context(
        options.quick, options.servers, options.peers, work,
        options.soak or (5 if options.quick else 150), _say,
    )  # fmt: skip
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    kept = read_rows(folder / "trust.tsv")
    today, commit, machine = date.today().isoformat(), _commit(), _machine()
    failed = 0
    begin = time.monotonic()
    for trial in TRIALS:
        if trial.name not in options.only:
            continue
        start = time.monotonic()
        rows = list(_run(trial, context))
        failed += sum(row.verdict == "FAIL" for row in rows)
        seconds = f"{time.monotonic() - start:.0f}"
        made = [Kept(trial.name, row, today, commit, seconds, machine) for row in rows]
        kept = [one for one in kept if one.trial != trial.name] + made
        write_rows(folder / "trust.tsv", kept)
        _write_page(folder, kept, options)
    _say(f"{failed} limits exceeded; {time.monotonic() - begin:.0f} s; see {folder / 'trust.md'}")
    return 1 if failed else 0


def _stop(_number: int, _frame: object) -> None:
    _ignore_signals()
    raise KeyboardInterrupt


def main(words: list[str], text: str) -> int:
    options = _options(words, text)
    if options.page:
        return _page(options.folder, options)
    if options.quick:
        be_patient()
    scarcity.raise_limits()
    for number in SIGNALS:
        signal.signal(number, _stop)
    chosen = [trial for trial in TRIALS if trial.name in options.only]
    try:
        install(_needs(chosen, options.peers))
        build(crash=any(trial.name == "crash" for trial in chosen))
        os.environ["LC_ALL"] = "C"
        process_tree.adopt_orphans()
        with _workplace() as work:
            return _all(options, work)
    except StudyError as error:
        print(error, file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("trust: interrupted; run it again with --only for what is not done", file=sys.stderr)
        return 130
