"""The command compare: the ratios of several results folders side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from collect.design.factors import factor_value
from collect.infer.pooling import Pooled, pool
from collect.infer.statistics import log_error
from collect.project import COMPARISONS_FILE, MACHINE_FILE, command_from_here, fail
from collect.readable_numbers import (
    estimate_text,
    interval_text,
    join_text,
    machine_text,
    percent_text,
)
from collect.tables import read_frame, read_pairs

WHAT = ["scope", "measure", "server", "baseline"]
RESULTS = {"cells", "client_bound", "blocks", "ratio", "low", "high", "t", "p", "p_holm"}
RESULTS |= {"all_low", "all_high", "difference", "unit", "sd_within", "sd_between"}
RESULTS |= {"drift", "drift_low", "drift_high", "drift_p"}
MEASURES = {"rps": "requests/s", "server_cpu_us": "server CPU per request"}


@dataclass(frozen=True)
class Same:
    """One comparison in several folders: its ratio in each, and over all."""

    what: tuple[str, ...]  # scope, measure, server, baseline, and the factors that are the same
    ratios: tuple[str, ...]  # a folder's ratio with its interval; a dash where it has none
    units: tuple[str, ...]
    pooled: Pooled


@dataclass(frozen=True)
class Together:
    """All comparisons that two or more folders have."""

    folders: tuple[Path, ...]
    factors: tuple[str, ...]
    comparisons: tuple[Same, ...]


def compare_folders(folders: Sequence[Path]) -> Together:
    """Finds the comparisons that two or more folders share, each averaged as widely as it is."""
    tables = [_table(folder) for folder in folders]
    factors = [name for name in tables[0].columns if name not in {*WHAT, *RESULTS}]
    factors = [name for name in factors if all(name in table for table in tables)]
    keys = [*WHAT, *factors]
    rows = [dict(_by_key(table, keys)) for table in tables]
    shared = [key for key in dict.fromkeys(k for of in rows for k in of) if _count(rows, key) > 1]
    if not shared:
        fail(f"{join_text([str(folder) for folder in folders])} compare nothing in common")
    same = [_same(key, [of.get(key) for of in rows]) for key in shared]
    return Together(tuple(folders), tuple(factors), tuple(same))


def _table(folder: Path) -> pd.DataFrame:
    """Returns the widest averages of a folder."""
    path = folder / COMPARISONS_FILE
    if not path.is_file():
        fail(
            f"{folder} holds no {COMPARISONS_FILE}: {command_from_here()} report {folder} makes it"
        )
    table = read_frame(path)
    for scope in ("all", "x", "cell"):
        if scope in set(table["scope"]):
            return table[table["scope"] == scope]
    return table


def _by_key(table: pd.DataFrame, keys: list[str]) -> list[tuple[tuple[str, ...], pd.Series[str]]]:
    return [(tuple(row[keys]), row) for _, row in table.iterrows()]


def _count(rows: Sequence[dict[tuple[str, ...], pd.Series[str]]], key: tuple[str, ...]) -> int:
    return sum(key in of for of in rows)


def _same(key: tuple[str, ...], rows: list[pd.Series[str] | None]) -> Same:
    ratios, units, estimates, errors, freedoms = [], [], [], [], []
    for row in rows:
        if row is None:
            ratios.append("–")
            units.append("–")
            continue
        ratio, low, high = (float(row[name]) for name in ("ratio", "low", "high"))
        ratios.append(estimate_text(ratio, low, high))
        units.append(f"{row['blocks']} {row.get('unit', 'block')}s")
        estimates.append(math.log(ratio))
        freedoms.append(int(row["blocks"]) - 1)
        errors.append(log_error(low, high, freedoms[-1]))
    return Same(key, tuple(ratios), tuple(units), pool(estimates, errors, freedoms))


# --- as text ---


def compare_text(folders: Sequence[Path]) -> str:
    """Returns the ratios of several folders side by side, with what they say together."""
    found = compare_folders(folders)
    names = [_folder_text(folder) for folder in folders]
    width = max(map(len, [*names, "together", "another run"]))
    blocks = [_same_text(found, same, names, width) for same in found.comparisons]
    return "\n\n".join([*blocks, *_notes(found)]) + "\n"


def _folder_text(folder: Path) -> str:
    machine = machine_text(read_pairs(folder / MACHINE_FILE))
    return f"{folder} ({machine})" if machine else str(folder)


def _same_text(found: Together, same: Same, names: Sequence[str], width: int) -> str:
    _, measure, server, baseline, *values = same.what
    told = [value for value in _telling(found, values) if value]
    title = ", ".join([f"{server} / {baseline}, {MEASURES.get(measure, measure)}", *told])
    results = zip(names, same.ratios, same.units, strict=True)
    lines = [f"  {name:<{width}}  {ratio}, {unit}" for name, ratio, unit in results if unit != "–"]
    pooled = same.pooled
    ratio, low, high = (math.exp(v) for v in (pooled.test.estimate, *pooled.test.interval()))
    spread = f"spread from one to another {percent_text(math.expm1(pooled.tau))}"
    lines.append(
        f"  {'together':<{width}}  {estimate_text(ratio, low, high)}; {spread}, "
        f"I² {percent_text(pooled.heterogeneity)}, p {_p_said(pooled.q_p)} if they are alike"
    )
    if pooled.studies > 2:
        least, most = (math.exp(v) for v in pooled.prediction())
        expected = interval_text(least, most, ratio)
        lines.append(f"  {'another run':<{width}}  {expected} is expected")
    return "\n".join([title, *lines])


def _p_said(p: float) -> str:
    return "below 0.0001" if p < 0.0001 else f"= {p:.4f}"


def _telling(found: Together, values: Sequence[str]) -> list[str]:
    """Returns the factors that are averaged over or vary among the comparisons, in words."""
    first = len(WHAT)
    telling = []
    for i, (factor, value) in enumerate(zip(found.factors, values, strict=True)):
        if value == "*":
            telling.append(f"mean over {factor}")
        elif len({same.what[first + i] for same in found.comparisons}) > 1:
            telling.append(factor_value(factor, value))
    return telling


def _notes(found: Together) -> list[str]:
    units = {unit for same in found.comparisons for unit in same.units if unit != "–"}
    notes = []
    commits = {read_pairs(folder / MACHINE_FILE).get("project_commit") for folder in found.folders}
    if len(commits - {None}) > 1:
        notes.append(
            "The runs are of different commits of this project: what differs between them may be "
            "the programs."
        )
    if any(unit.endswith("blocks") for unit in units):
        notes.append(
            "A run of blocks is one sitting: its interval holds within it, and says nothing of the "
            "next hour."
        )
    if len(found.folders) < 3:
        notes.append("Two runs do not tell what to expect of another one; three or more do.")
    return notes
