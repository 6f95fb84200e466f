"""The command ./dcollect.sh: parses its command line, and calls the stages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from collect.design.study import load_study, study_names, study_path
from collect.install_and_build import ANALYSIS, install
from collect.measure.machine import cells_here
from collect.options import Line, help_text, parse
from collect.project import (
    PROJECT,
    PUBLISHED,
    RUNS_FILE,
    StudyError,
    command_from_here,
    command_name,
    fail,
    is_source_tree,
    results_folder,
    say,
)
from collect.readable_numbers import DASH, about_time

Command = Callable[[Line], int]


def main(arguments: Sequence[str]) -> int:
    """Runs a command; returns its exit status."""
    os.environ["LC_ALL"] = "C"
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    try:
        if arguments[:1] == ["bench"]:
            return _bench(arguments[1:])
        return _dispatch(parse(arguments))
    except StudyError as error:
        sys.stdout.flush()
        print(f"dcollect: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the output has gone: nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _dispatch(line: Line) -> int:
    if "help" in line.flags:
        print(help_text())
    elif "version" in line.flags:
        print(f"dcollect (fork-vs-thread) {(PROJECT / 'VERSION').read_text().strip()}")
    elif "list" in line.flags:
        _list()
    elif line.words and line.words[0] in COMMANDS:
        name = line.words.pop(0)
        if name in ANALYSES:
            install(ANALYSIS)
        return COMMANDS[name](line)
    else:
        return _measure(line)
    return 0


def _list() -> None:
    """Lists the studies, with about how long each takes: whole, and with --quick."""
    from collect.expected_time import expected_seconds

    print(f"{'Study':<16} {'Time':>6} {'Quick':>6}  Question")
    for name in study_names():
        whole, quick = (load_study(study_path(name), quick=quick) for quick in (False, True))
        times = []
        for study in (whole, quick):
            seconds = expected_seconds(study, cells_here(study))
            times.append(about_time(seconds) if seconds else DASH)
        print(f"{name:<16} {times[0]:>6} {times[1]:>6}  {whole.question}")
    print("\nThe times are those of the last runs here, or else of the published ones.")


def _measure(line: Line) -> int:
    """Measures a study, or finishes one, and writes its report."""
    from collect import new_results_folder
    from collect.campaign import is_campaign
    from collect.live_page import LivePage
    from collect.measure.run_plan import DONE, INVALID, run_plan

    if line.resume and is_campaign(Path(line.resume)):
        return _campaign(line)
    if len(line.words) > 1:
        fail(f"one study at a time, not '{' '.join(line.words)}'", 2)
    folder = (
        new_results_folder.start(line)
        if line.resume is None
        else new_results_folder.unfinished(line)
    )
    live = LivePage(folder) if "live" in line.flags else None
    if live:
        live.begin()
    status = run_plan(folder, live.after_block if live else None)
    finished = status in (DONE, INVALID)
    if finished:
        say("Writing the report")
        _write_report(folder)
    if live:
        live.end(finished)
    if not finished:
        return status
    _conclude(folder)
    return status


def _campaign(line: Line) -> int:
    """Measures studies round by round, or resumes a campaign."""
    from collect import campaign

    chosen = campaign.begin(line) if line.resume is None else campaign.resume(line)
    return campaign.go(chosen, _write_report)


def _write_report(folder: Path) -> None:
    """Writes tables, figures and report from the runs."""
    from collect.infer.analyse_results import analyse
    from collect.measure.study_lock import study_lock_if_free
    from collect.present.present_results import present

    with study_lock_if_free():
        analyse(folder)
        present(folder)


def _conclude(folder: Path) -> None:
    """Ends with the main figure and the answer in the terminal, and the paths of the report."""
    from collect.present.present_results import answer, terminal

    print(f"\n{terminal(folder)}\n\n{answer(folder)}\n")
    _say_pages(folder)
    print(f"Tables:  {command_from_here()} export {folder} --to csv (or json)")


def _say_pages(folder: Path) -> None:
    print(f"Report:  {folder}/report.md\n         {(folder / 'index.html').resolve().as_uri()}")


def _folders(line: Line, least: int, most: int | None, usage: str) -> list[Path]:
    """The results folders that a command names."""
    count = len(line.words)
    if count < least or (most is not None and count > most):
        fail(f"usage: {command_name()} {usage}", 2)
    for word in line.words:
        if not (Path(word) / RUNS_FILE).is_file():
            fail(f"{word} holds no {RUNS_FILE}: not a results folder", 2)
    return [Path(word) for word in line.words]


def _report(line: Line) -> int:
    (folder,) = _folders(line, 1, 1, "report DIR")
    _write_report(folder)
    _say_pages(folder)
    return 0


def _compare(line: Line) -> int:
    from collect.infer.compare import compare_text

    folders = _folders(line, 2, None, "compare DIR DIR...")
    if len({folder.resolve() for folder in folders}) < len(folders):
        fail("compare takes each folder once: the same runs twice would count as two studies", 2)
    print(compare_text(folders), end="")
    return 0


def _export(line: Line) -> int:
    from collect.present.export import export

    (folder,) = _folders(line, 1, 1, "export DIR --to csv|json|benchstat")
    if "to" not in line.values:
        fail("export needs a format: --to csv, --to json or --to benchstat", 2)
    print(export(folder, line.values["to"]), end="")
    return 0


def _overview(line: Line) -> int:
    from collect.present.published_index import overview

    if not is_source_tree():
        fail("overview works in the source tree, which holds the published studies", 2)
    if line.words:
        fail("overview takes no more words: it looks into report/", 2)
    print(overview())
    return 0


def _pack(line: Line) -> int:
    """Makes one file of a results folder or of a campaign."""
    from collect.pack import pack

    if len(line.words) != 1:
        fail(f"usage: {command_name()} pack DIR", 2)
    print(pack(Path(line.words[0])))
    return 0


def _paper(line: Line) -> int:
    """Makes a PDF of the paper from the published studies."""
    from collect.present.paper import PAPER, paper, typeset
    from collect.present.published_runs import find_published

    if not is_source_tree():
        fail("paper works in the source tree, which holds the published studies", 2)
    if len(line.words) > 1:
        fail(f"usage: {command_name()} paper [FILE.pdf]", 2)
    target = Path(line.words[0]) if line.words else results_folder() / f"{PAPER}.pdf"
    if target.suffix != ".pdf":
        fail(f"paper takes a file NAME.pdf, not '{target}'", 2)
    print(typeset(paper(find_published(PUBLISHED)), PUBLISHED, target))
    return 0


def _replay(line: Line) -> int:
    """Plays a load against servers of ours, and makes the page that shows it."""
    from collect.replay_command import replay

    page = replay(line)
    say(f"Replay:  {page.resolve().as_uri()}")
    print(page)
    return 0


def _results(line: Line) -> int:
    """Lists, opens or removes results folders."""
    from collect.results_command import results_command

    results_command(line)
    return 0


def _bench(arguments: Sequence[str]) -> int:
    from collect.bench_request_cost import bench_main

    return bench_main(arguments)


def _schema(_: Line) -> int:
    from collect.schema import markdown

    print(markdown(), end="")
    return 0


def _completion(_: Line) -> int:
    from collect.completion import script

    print(script(), end="")
    return 0


# The commands that need the programs of the analysis at once.
ANALYSES = frozenset({"report", "compare", "export", "overview", "paper"})
COMMANDS: dict[str, Command] = {
    "campaign": _campaign,
    "pack": _pack,
    "replay": _replay,
    "report": _report,
    "results": _results,
    "compare": _compare,
    "export": _export,
    "overview": _overview,
    "paper": _paper,
    "schema": _schema,
    "completion": _completion,
}
