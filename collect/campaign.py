"""A campaign: studies in turn, round by round, until a number of rounds or hours; resumable.

A round is a fresh start: all servers are started again, the cells are shuffled, and the floors are
measured at its beginning and at its end. The folder of a campaign holds campaign.toml and a results
folder for each study, whose plan grows by a round at a time.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import monotonic

from collect.design.plan import Cells, plan_round
from collect.design.study import Study, load_study, study_names, study_path, toml_value
from collect.expected_time import expected_seconds
from collect.measure.machine import cells_here
from collect.measure.run_plan import DONE, INTERRUPTED, INVALID, run_plan
from collect.new_results_folder import command_text, draft, is_unfinished, prepare, write_folder
from collect.options import Line
from collect.project import (
    PLAN_FILE,
    STUDY_FILE,
    command_from_here,
    fail,
    results_folder,
    say,
)
from collect.readable_numbers import about_time, plural
from collect.schema import PLAN
from collect.tables import read_table, write_table, write_text

CAMPAIGN_FILE = "campaign.toml"
ROUNDS = 8


@dataclass
class Campaign:
    """A campaign: its folder, its studies, and when it ends: after so many rounds (0: any), or
    after so many hours (0: any)."""

    folder: Path
    studies: tuple[str, ...]
    rounds: int = ROUNDS
    hours: float = 0.0

    def results(self, name: str) -> Path:
        return self.folder / name

    def write(self) -> None:
        fields = {"studies": list(self.studies), "rounds": self.rounds, "hours": self.hours}
        lines = [f"{key} = {toml_value(value)}" for key, value in fields.items()]
        write_text(self.folder / CAMPAIGN_FILE, "\n".join(lines) + "\n")


def is_campaign(folder: Path) -> bool:
    return (folder / CAMPAIGN_FILE).is_file()


def read_campaign(folder: Path) -> Campaign:
    if not is_campaign(folder):
        fail(f"{folder} holds no {CAMPAIGN_FILE}: not a campaign", 2)
    data = tomllib.loads((folder / CAMPAIGN_FILE).read_text())
    return Campaign(folder, tuple(data["studies"]), data["rounds"], float(data["hours"]))


def _limits(line: Line, campaign: Campaign) -> None:
    """Takes the end of a campaign from the command line."""
    if "rounds" in line.values:
        campaign.rounds, campaign.hours = int(line.values["rounds"]), 0.0
        if not campaign.rounds:
            fail("--rounds takes a number above 0", 2)
    if "hours" in line.values:
        try:
            campaign.hours = float(line.values["hours"])
        except ValueError:
            campaign.hours = 0.0
        if not 0 < campaign.hours < 10_000:
            fail(f"--hours takes a number above 0, not '{line.values['hours']}'", 2)
        if "rounds" not in line.values:
            campaign.rounds = 0


def begin(line: Line) -> Campaign:
    """Makes the folder of a new campaign."""
    if "live" in line.flags:
        fail("--live shows one study, no campaign", 2)
    names = line.words or study_names()
    if len(set(names)) < len(names):
        fail("each study can be named once", 2)
    output = line.values.get("output")
    paths = [study_path(name).resolve() for name in names]
    drafts = [(path, *draft(path, line)) for path in paths]
    moment = f"{datetime.now():%Y%m%d-%H%M%S}"
    folder = Path(output) if output else results_folder() / "campaign" / moment
    if folder.exists() and any(folder.iterdir()):
        fail(f"{folder} is not empty; go on with --resume {folder}", 2)
    campaign = Campaign(folder, tuple(study.name for _, study, _, _ in drafts))
    _limits(line, campaign)
    if campaign.rounds:
        _tell_time(campaign, [(study, cells) for _, study, cells, _ in drafts])
    for path, study, _, given in drafts:
        prepare(study)
        text = command_text(line, study, study.name, "campaign")
        pairs = {"study": study.name, "command": text}
        write_folder(campaign.results(study.name), path, study, given, pairs, [])
    campaign.write()
    return campaign


def _tell_time(campaign: Campaign, studies: list[tuple[Study, Cells]]) -> None:
    """Says about how long a campaign will take."""
    seconds = campaign.rounds * sum(
        expected_seconds(study, cells) * study.round_blocks / study.repetitions
        for study, cells in studies
    )
    if seconds:
        rounds = plural(campaign.rounds, "round", "rounds")
        names = plural(len(studies), "study", "studies")
        say(f"Campaign: {rounds} of {names}, about {about_time(seconds)}, into {campaign.folder}")


def resume(line: Line) -> Campaign:
    """Reads an interrupted campaign, or one that is to have more rounds."""
    other = set(line.values) - {"rounds", "hours"}
    if line.overrides or line.flags or other or line.words:
        fail("--resume of a campaign takes --rounds or --hours, and no other option", 2)
    if line.resume:
        folder = Path(line.resume)
    else:
        known = (results_folder() / "campaign").glob(f"*/{CAMPAIGN_FILE}")
        found = [path.parent for path in known]
        if not found:
            fail("there is no campaign here", 2)
        folder = max(found, key=lambda path: (path / CAMPAIGN_FILE).stat().st_mtime)
    campaign = read_campaign(folder)
    _limits(line, campaign)
    campaign.write()
    for name in campaign.studies:
        prepare(load_study(campaign.results(name) / STUDY_FILE))
    say(f"Going on with {folder}")
    return campaign


def rounds_of(folder: Path) -> int:
    """Returns the number of rounds in the plan of a results folder."""
    return max((int(row["round"]) for row in read_table(folder / PLAN_FILE).rows), default=0)


def add_round(folder: Path) -> int:
    """Adds a round to the plan of a results folder; returns its number."""
    study: Study = load_study(folder / STUDY_FILE)
    cells = cells_here(study)
    rows = read_table(folder / PLAN_FILE).rows
    number = rounds_of(folder) + 1
    rows += plan_round(study, cells, number, len(rows) + 1)
    write_table(folder / PLAN_FILE, PLAN.names, rows)
    return number


def _next(campaign: Campaign) -> list[tuple[str, int]]:
    """The studies that lack the next round, or have not finished it, in the order of running."""
    last = {name: rounds_of(campaign.results(name)) for name in campaign.studies}
    unfinished = [(n, last[n]) for n in campaign.studies if is_unfinished(campaign.results(n))]
    number = min(last.values()) + 1
    if unfinished:
        number = min(number, unfinished[0][1])
    behind = [(name, number) for name in campaign.studies if last[name] < number]
    random.Random(number).shuffle(behind)
    return unfinished + behind


def go(campaign: Campaign, report: Callable[[Path], None]) -> int:
    """Measures round after round; writes the reports at the end; returns the exit status."""
    # This import needs packages that `prepare` has installed.
    from collect.infer.power import advice

    begin_time, worst = monotonic(), DONE
    for text in filter(None, map(advice, campaign.studies)):
        say(text)
    while True:
        for name, number in _next(campaign):
            over = campaign.rounds and number > campaign.rounds
            late = campaign.hours and monotonic() - begin_time > 3600 * campaign.hours
            if over or late:
                return _conclude(campaign, report, worst)
            folder = campaign.results(name)
            if not is_unfinished(folder):
                add_round(folder)
            say(f"Round {number}, {name}: into {folder}")
            status = run_plan(folder)
            if status == INTERRUPTED:
                again = f"{command_from_here()} campaign --resume {campaign.folder}"
                say(f"The campaign goes on with: {again}")
            if status not in (DONE, INVALID):
                return status
            worst = max(worst, status)


def _conclude(campaign: Campaign, report: Callable[[Path], None], status: int) -> int:
    folders = [campaign.results(name) for name in campaign.studies]
    measured: Sequence[Path] = [folder for folder in folders if rounds_of(folder)]
    for folder in measured:
        report(folder)
        print(f"{folder}/report.md")
    return status
