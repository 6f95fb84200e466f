"""The analysis against the tables of the first edition, which other programs made of the same runs.

Every table of every published study is made again from its runs.tsv and compared with the table of
the first edition (first_edition/) to the printed digit. All differences are named here.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from presenting import published
from scipy import stats

from collect.infer.averages_over_x import average
from collect.infer.cells import Cells
from collect.infer.comparisons import compare
from collect.infer.contrast import contrast_test, mean_of
from collect.infer.judge_claims import judge_study
from collect.infer.read_results import read_cells
from collect.infer.summary import summarise
from collect.infer.threats import weigh
from collect.tables import number, read_frame, whole_lines

FIRST = Path(__file__).parent / "first_edition"
STUDIES = sorted(path.name for path in FIRST.iterdir())

# Verdicts that differ from those of the first edition, and why. Claims whose parts were `holds`,
# `does not hold` and `cannot tell` are now `reproduced`, `not reproduced` and `cannot tell`.
VERDICTS = {
    ("designs", "CF.1", "all"): "most is over half, not three quarters",
    ("designs", "E07.1", "all"): "not testable with 1 KB at 30 connections",
}

# Studies whose average over all cells was one of unlike cells.
UNLIKE_CELLS = {"https"}

OF_FAMILY = ["p_holm", "all_low", "all_high", "difference"]

# Parts that the first edition tested in another way.
PARTS_GONE = {
    "epoll+accept=shared: the busiest worker’s share": "the plain share now",
    "epoll / thread, requests/s, mean over all cells": "the client limits most cells",
    "thread: requests/s by HTTPS, P-256, 100,000 / 10,000": "no power: 0.1 to 11",
}


@cache
def cells(study: str) -> Cells:
    return read_cells(published(study))


@cache
def claims(study: str) -> pd.DataFrame:
    return judge_study(cells(study))


def first(study: str, table: str) -> pd.DataFrame:
    return read_frame(FIRST / study / f"{table}.tsv")


# Columns that the first edition does not have.
NEW_COLUMNS = ["ceiling", "unit", "sd_within", "sd_between", "drift", "drift_low", "drift_high"]
NEW_COLUMNS += ["drift_p", "each_kib"]
NEW_COLUMNS += [f"p{n}_ms_{what}" for n in (50, 95, 99) for what in ("estimate", "low", "high")]
NEW_MEASURES = ["p50_ms", "p99_ms"]

# Where a server that does nothing was measured, it shows which cells are client-bound.
FLOORS = {"designs"}


def differences(
    new: pd.DataFrame, old: pd.DataFrame, study: str = ""
) -> list[tuple[int, str, str, str]]:
    new = new.drop(columns=[name for name in NEW_COLUMNS if name in new])
    assert list(new.columns) == list(old.columns)
    if "measure" in new and "p50_ms" in set(new["measure"]):
        mine = new["measure"].isin(NEW_MEASURES) & ~new["measure"].isin(set(old["measure"]))
        new = new[~mine].reset_index(drop=True)
    if study in FLOORS:
        new, old = (frame.drop(columns="client_bound", errors="ignore") for frame in (new, old))
    assert len(new) == len(old)
    found = []
    for name in old.columns:
        for i in (new[name].to_numpy() != old[name].to_numpy()).nonzero()[0]:
            found.append((int(i), name, str(new[name].iloc[i]), str(old[name].iloc[i])))
    return found


def is_tie(data: Cells, cell: int, column: str, new: str, old: str) -> bool:
    """Returns true if the exact mean lies in the middle between the two printed numbers."""
    runs = data.valid_runs[data.valid_runs["cell"] == cell]
    name = column.removesuffix("_mean").removesuffix("_median")
    values = sorted(Fraction(v) for v in runs[name] if v != "-")
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    exact = middle if column.endswith("_median") else sum(values) / len(values)
    if exact == 0:  # the first edition printed a rest of rounding
        return new == "0" and abs(float(old)) < 1e-12
    return exact == (Fraction(new) + Fraction(old)) / 2


@pytest.mark.parametrize("study", STUDIES)
def test_summary(study: str) -> None:
    data = cells(study)
    found = differences(summarise(data), first(study, "summary"), study)
    # The first edition kept httperf's median, which is the middle of a millisecond.
    found = [
        d for d in found
        if (d[1].startswith("p50_ms"), data.value(d[0], "load"), d[2]) != (True, "httperf", "-")
    ]  # fmt: skip
    assert [d for d in found if not is_tie(data, d[0], d[1], d[2], d[3])] == []


@pytest.mark.parametrize("study", STUDIES)
def test_comparisons(study: str) -> None:
    new, old = compare(cells(study)), first(study, "comparisons")
    if study in UNLIKE_CELLS:
        assert "all" not in set(new["scope"]) and "all" in set(old["scope"])
        old = old[old["scope"] != "all"].reset_index(drop=True)
    untested = (new["scope"] == "cell") & new["blocks"].isin(["2", "3"])
    if untested.any():
        # Single cells of so few blocks have no test now, and do not count where others are adjusted.
        assert (new.loc[untested.to_numpy(), ["p", "p_holm"]] == "-").all().all()
        new, old = (table.drop(columns=OF_FAMILY, errors="ignore") for table in (new, old))
        tests = ["t", "p"]
        new, old = (t.assign(**{n: t[n].where(~untested, "-") for n in tests}) for t in (new, old))
    assert differences(new, old, study) == []


@pytest.mark.parametrize("study", STUDIES)
def test_averages(study: str) -> None:
    assert differences(average(cells(study)), first(study, "averages"), study) == []


@pytest.mark.parametrize("study", STUDIES)
def test_threats(study: str) -> None:
    folder = published(study)
    planned = len(whole_lines(folder / "plan.tsv")) - 1
    # The published table is still that of the first edition.
    new, old = (
        weigh(cells(study), planned, folder / "machine.tsv"),
        read_frame(folder / "threats.tsv"),
    )
    if study in FLOORS:
        new, old = (t[t["name"] != "client_bound"].reset_index(drop=True) for t in (new, old))
    assert differences(new, old) == []


def test_geometric_means_of_fork_vs_thread() -> None:
    """The first edition printed geometric means of arithmetic means: 21,507 and 9,595."""
    data = cells("fork-vs-thread")
    for server, mean, first_edition in (("thread", 21067, 21507), ("fork", 9500, 9595)):
        mine = data.pick(server=server)
        result = contrast_test(data, mean_of(mine), "rps")
        assert result
        assert round(result.ratio) == mean
        arithmetic = np.nanmean(data.measured("rps")[mine], axis=1)
        assert round(float(np.exp(np.log(arithmetic).mean()))) == first_edition


# --- claims ---


def subject(tested: str) -> str:
    """Returns what a part tests, without its rule and how many of its cells the client limits; with
    the first edition's words for server CPU."""
    plain = re.sub(r": (ratio )?(above|below|within) [^:]*$", "", tested)
    plain = plain.replace("server CPU per connection of one request", "server CPU per request")
    return re.sub(r" \([^()]*limited by the load generator\)$", "", plain)


@pytest.mark.parametrize("study", STUDIES)
def test_claim_parts(study: str) -> None:
    """Every part has the estimate and the widened interval of the first edition."""
    old, new = first(study, "claims"), claims(study)
    parts = {(row.claim, subject(row.tested)): row for row in new.itertuples() if row.df != "-"}
    for claim, rows in old[old["low"] != "-"].groupby("claim"):
        for row in rows.itertuples():
            name = subject(row.tested)
            if any(name.startswith(gone) for gone in PARTS_GONE):
                continue
            part = parts[claim, name]
            test = float(part.estimate), float(part.error), float(part.df)
            low, high = widened(*test, len(rows), part.scale)
            assert (number(low), number(high), part.blocks) == (row.low, row.high, row.blocks), name


def widened(
    estimate: float, error: float, df: float, parts: int, scale: str
) -> tuple[float, float]:
    """The interval of the first edition: Bonferroni for all parts of a claim."""
    half = float(stats.t.ppf(1 - 0.025 / parts, df)) * error
    ends = estimate - half, estimate + half
    return (math.exp(ends[0]), math.exp(ends[1])) if scale == "ratio" else ends


@pytest.mark.parametrize("study", STUDIES)
def test_verdicts(study: str) -> None:
    words = {"holds": "reproduced", "does not hold": "not reproduced", "cannot tell": "cannot tell"}
    causes = {"holds": "confirmed", "does not hold": "not confirmed", "cannot tell": "cannot tell"}
    new = {(row.claim, row.part): row for row in claims(study).itertuples()}
    for row in first(study, "claims").itertuples():
        if row.part not in ("all", "cause"):
            continue
        expected = (causes if row.kind == "reading" else words)[row.verdict]
        found = new.get((row.claim, row.part))
        if (study, row.claim, row.part) in VERDICTS:
            assert found is None or found.verdict != expected, f"{row.claim}: no longer different"
        else:
            assert found is not None and found.verdict == expected, f"{row.claim} {row.part}"
