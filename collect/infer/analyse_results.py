"""The analysis of a results folder: reads the runs, writes the tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from collect.infer.anatomy_table import dissect
from collect.infer.averages_over_x import average
from collect.infer.comparisons import compare
from collect.infer.judge_claims import judge_study
from collect.infer.read_results import read_cells
from collect.infer.summary import summarise
from collect.infer.threats import weigh
from collect.project import (
    ANATOMY_FILE,
    AVERAGES_FILE,
    CLAIMS_FILE,
    COMPARISONS_FILE,
    MACHINE_FILE,
    PLAN_FILE,
    SUMMARY_FILE,
    THREATS_FILE,
)
from collect.tables import whole_lines, write_table


def analyse(folder: Path) -> None:
    """Writes summary, comparisons, averages, threats and claims of a results folder."""
    data = read_cells(folder)
    plan = folder / PLAN_FILE
    planned = len(whole_lines(plan)) - 1 if plan.is_file() else 0
    _write(folder / SUMMARY_FILE, summarise(data))
    _write(folder / COMPARISONS_FILE, compare(data))
    _write(folder / AVERAGES_FILE, average(data))
    if data.study.instruments:
        _write(folder / ANATOMY_FILE, dissect(data, folder))
    _write(folder / CLAIMS_FILE, judge_study(data))
    _write(folder / THREATS_FILE, weigh(data, planned, folder / MACHINE_FILE))


def _write(path: Path, frame: pd.DataFrame) -> None:
    write_table(path, list(frame.columns), frame.to_dict("records"))
