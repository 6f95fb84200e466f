"""Reads a results folder: the study file and the runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from collect.design.factors import EVERYWHERE, NAMES
from collect.design.study import load_study
from collect.histogram import Histogram, Histograms
from collect.infer.cells import Cells
from collect.infer.round_floors import read_calibration
from collect.measure.loads import P95_REQUESTS_LEAST, P99_REQUESTS_LEAST
from collect.project import (
    CAPACITY_FILE,
    HISTOGRAMS_FILE,
    MACHINE_FILE,
    RUNS_FILE,
    STUDY_FILE,
    fail,
)
from collect.tables import ABSENT, read_frame, read_pairs, read_table


def read_cells(folder: Path) -> Cells:
    """Reads the runs of a results folder as cells."""
    study_file, runs_file = folder / STUDY_FILE, folder / RUNS_FILE
    if not study_file.is_file() or not runs_file.is_file():
        fail(f"{folder} holds no {STUDY_FILE} and {RUNS_FILE}: not the folder of a run", 1)
    runs = read_frame(runs_file, key="run")
    if runs.empty:
        fail(f"{runs_file} holds no run", 1)
    _leave_out_coarse_times(runs)
    factors = list(NAMES)
    while factors[-1] not in EVERYWHERE and factors[-1] not in runs:
        factors.pop()
    missing = [name for name in [*factors, "block", "rps", "valid"] if name not in runs]
    if missing:
        fail(f"{runs_file} has no column {missing[0]}", 1)
    disbelieved = read_table(runs_file, key="run").disbelieved
    machine = read_pairs(folder / MACHINE_FILE)
    calibration = read_calibration(folder)
    study = load_study(study_file)
    capacity = _capacity(folder)
    histograms = _histograms(folder)
    return Cells(study, factors, runs, disbelieved, machine, calibration, capacity, histograms)


def _leave_out_coarse_times(runs: pd.DataFrame) -> None:
    """Takes out what is not the percentile that it is called: httperf's median, in runs from before
    28 November 2026, is the middle of a millisecond; the 95th and the 99th percentile of few
    requests are the longest time."""
    if "load" in runs and "p50_ms" in runs:
        runs.loc[runs["load"] == "httperf", "p50_ms"] = ABSENT
    for name, least in (("p95_ms", P95_REQUESTS_LEAST), ("p99_ms", P99_REQUESTS_LEAST)):
        if "complete" in runs and name in runs:
            complete = pd.to_numeric(runs["complete"], errors="coerce")
            runs.loc[complete < least, name] = ABSENT


def _capacity(folder: Path) -> pd.DataFrame | None:
    """Reads the valid closed loops that found the capacities; None where there are none."""
    path = folder / CAPACITY_FILE
    if not path.is_file():
        return None
    found = read_frame(path)
    return found[found["valid"] == "yes"]


def _histograms(folder: Path) -> Mapping[str, Histogram]:
    """Reads the times of requests of each run; none where the file is missing."""
    path = folder / HISTOGRAMS_FILE
    if not path.is_file():
        return {}
    return Histograms({row["run"]: row["histogram"] for row in read_table(path).rows})
