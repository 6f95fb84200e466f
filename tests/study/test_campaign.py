"""Campaigns: rounds of several studies, interrupted, resumed, and extended."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from study_runs import SHORT_CALIBRATION, TOP, Bench, column, row_count, rows_of, runs

from collect.campaign import read_campaign
from collect.tables import read_table, write_table

CAMPAIGN = f"""{SHORT_CALIBRATION}
import sys
from collect.campaign import begin, go, resume
from collect.options import parse
from collect.project import StudyError
try:
    line = parse(sys.argv[1:])
    sys.exit(go(begin(line) if line.resume is None else resume(line), lambda folder: None))
except StudyError as error:
    print(f"dcollect: {{error}}", file=sys.stderr)
    sys.exit(error.status)
"""
SMALL = "servers = ['fork', 'thread']\nfiles = 'small.txt'\nrequests = 30\nround-blocks = 2\n"


class CampaignBench(Bench):
    """Measures campaigns without reports."""

    def measuring(self, *words: object) -> list[str]:
        return [sys.executable, "-c", CAMPAIGN, *map(str, words)]


@pytest.fixture
def campaigns(bench: Bench) -> CampaignBench:
    made = CampaignBench(bench.folder / "campaigns", bench.mark, bench.environment, bench.python)
    made.folder.mkdir(exist_ok=True)
    made.spit("one.toml", SMALL + "concurrency = [1, 2]\n")
    made.spit("two.toml", SMALL + "concurrency = 1\n")
    return made


def studies(bench: Bench) -> list[Path]:
    return [bench.folder / "one.toml", bench.folder / "two.toml"]


def test_rounds_go_through_all_studies(campaigns: CampaignBench) -> None:
    folder = campaigns.folder / "rounds"
    done = campaigns.measure("--output", folder, "--rounds", 2, "--seed", 3, *studies(campaigns))
    assert done.returncode == 0, done.stderr
    for name, count in (("one", 16), ("two", 8)):
        results = folder / name
        rows = runs(results)
        assert column(rows, "valid") == ["yes"] * count
        assert [row["round"] for row in rows] == ["1"] * (count // 2) + ["2"] * (count // 2)
        assert {row["block"] for row in rows} == {"1", "2", "3", "4"}
        assert column(rows_of(results / "rounds.tsv"), "round") == ["1", "2"]
        floors = rows_of(results / "calibration.tsv")
        assert {(r["round"], r["when"]) for r in floors} == {
            (number, when) for number in "12" for when in ("begin", "end")
        }
        assert {row["server"] for row in floors} == {"floor-fork", "floor-thread", "floor-one"}
        assert set(column(floors, "valid")) == {"yes"}
    told = [line for line in done.stderr.splitlines() if line.startswith("Round ")]
    assert re.search(r"^Campaign: 2 rounds of 2 studies, about \d+ s, into ", done.stderr, re.M)
    assert [line[:7] for line in told] == ["Round 1", "Round 1", "Round 2", "Round 2"]

    rounds = folder / "one" / "rounds.tsv"
    table = read_table(rounds)
    table.rows[-1]["commit"] = "0123456789ab"
    write_table(rounds, table.columns, table.rows)
    more = campaigns.measure("--resume", folder, "--rounds", 3)
    assert more.returncode == 0, more.stderr
    assert "one: the last round had the commit 0123456789ab, this one has " in more.stderr
    assert more.stderr.count("the last round had") == 1
    assert [row_count(folder / name) for name in ("one", "two")] == [24, 12]
    again = campaigns.measure("--resume", folder)
    assert again.returncode == 0 and row_count(folder / "one") == 24, "it has all its rounds"


def test_an_interrupted_campaign_goes_on(campaigns: CampaignBench) -> None:
    folder = campaigns.folder / "broken"
    begun = campaigns.begin("--output", folder, "--rounds", 3, *studies(campaigns))
    first = folder / "one"
    status, output = campaigns.interrupt(begun, first, 6, signal.SIGINT)
    assert status == 130, output
    assert f"campaign --resume {folder}" in output
    kept = (first / "runs.tsv").read_text()
    done = campaigns.measure("--resume", folder)
    assert done.returncode == 0, done.stderr
    assert (first / "runs.tsv").read_text().startswith(kept)
    assert [row_count(folder / name) for name in ("one", "two")] == [24, 12]
    numbers = column(runs(first), "run")
    assert numbers == [str(i + 1) for i in range(24)]


def test_hours_end_a_campaign(campaigns: CampaignBench) -> None:
    folder = campaigns.folder / "hours"
    done = campaigns.measure("--output", folder, "--hours", 0.0001, *studies(campaigns))
    assert done.returncode == 0, done.stderr
    made = read_campaign(folder)
    assert (made.rounds, made.hours) == (0, 0.0001)
    assert sum(max(row_count(folder / name), 0) for name in ("one", "two")) > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--rounds 0 two.toml", "--rounds takes a number above 0"),
        ("--hours x two.toml", "--hours takes a number above 0"),
        ("nosuch", "there is no study 'nosuch'"),
        ("two.toml two.toml", "each study can be named once"),
        ("--resume /nonexistent/folder --seed 1", "takes --rounds or --hours"),
        ("--resume /nonexistent/folder", "not a campaign"),
    ],
)
def test_wrong_usage(campaigns: CampaignBench, words: str, message: str) -> None:
    places = words.replace("two.toml", str(campaigns.folder / "two.toml")).split()
    command = [str(TOP / "dcollect.sh"), "campaign", *places]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert message in done.stderr
