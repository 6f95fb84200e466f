"""summary.tsv: one row a cell."""

from __future__ import annotations

import numpy as np
import pandas as pd

from collect.infer.cells import ORDINARY, PERCENTILES, Cells, cannot_hold, held_at_most
from collect.infer.contrast import contrast_test, mean_of
from collect.infer.statistics import NOTHING, describe, mean
from collect.schema import BY_WORKER
from collect.tables import number

FULL = ("rps", "server_cpu_us")
FULL_PARTS = ("mean", "sd", "median", "low", "high", "min", "max")
MEANS = [
    "mean_ms",
    "sd_ms",
    "min_ms",
    "p50_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "seconds",
    "kbytes_s",
    "voluntary",
    "involuntary",
    "peak_kib",
    "load_cpu",
]
NEWER = (
    "client_cpu_us", "server_user_us", "server_system_us", "faults", "disk_kib", "first_tenth",
)  # fmt: skip
OUTCOMES = [
    "rps",
    "p99_ms",
    "max_ms",
    "peak_kib",
    "held",
    "each_kib",
    "cut",
    "lost",
    "unanswered",
    "again_ms",
]


def summarise(data: Cells) -> pd.DataFrame:
    """Returns a row for each cell."""
    runs_of = dict(iter(data.runs.groupby("cell")))
    return pd.DataFrame([_row(data, cell, runs_of[cell]) for cell in range(data.count)])


def _row(data: Cells, cell: int, runs: pd.DataFrame) -> dict[str, str]:
    valid = runs[runs["valid"] == "yes"]
    cannot = runs["valid"].map(cannot_hold)
    row = dict(zip(data.factors, data.keys[cell], strict=True))
    row["n"] = str(len(valid))
    row["n_invalid"] = str(len(runs) - len(valid) - int(cannot.sum()))
    for name in FULL:
        row |= {f"{name}_{part}": text for part, text in _described(data, cell, name).items()}
    for name in _means(data):
        row[name] = number(mean(data.sample(cell, name)))
    row["peak_kib_max"] = number(max(data.sample(cell, "peak_kib"), default=NOTHING))
    for name in PERCENTILES:
        result = contrast_test(data, mean_of([cell]), name)
        low, high = result.ratio_interval() if result else (NOTHING, NOTHING)
        estimate = result.ratio if result else NOTHING
        row |= {f"{name}_estimate": number(estimate)}
        row |= {f"{name}_low": number(low), f"{name}_high": number(high)}
    row["client_bound"] = "yes" if data.client_bound(cell) else "no"
    row["ceiling"] = number(data.ceiling(cell))
    if data.kind != ORDINARY:
        row |= _outcomes(data, cell, runs, cannot)
    return row


def _described(data: Cells, cell: int, name: str) -> dict[str, str]:
    """Describes the runs of a cell; the mean and its interval are of the rounds."""
    runs, units = describe(data.sample(cell, name)), describe(data.unit_sample(cell, name))
    of = {part: units if part in ("mean", "low", "high") else runs for part in FULL_PARTS}
    return {part: number(getattr(described, part)) for part, described in of.items()}


def _means(data: Cells) -> list[str]:
    lost = ["lost"] if "udp" in data.levels["scheme"] else []
    workers = ["workers", "busiest"] if "busiest" in data.runs else []
    workers += ["batch"] if "batch" in data.runs else []
    idle = [name for name in ("idle_kib", "each_kib") if "idle_kib" in data.runs]
    # Runs of the first edition have none of these.
    newer = [name for name in NEWER if name in data.runs]
    other = ["other_p50_ms", "other_p99_ms"] if "other_p99_ms" in data.runs else []
    by_worker = [name for name in BY_WORKER if name in data.runs]
    return [*MEANS, *newer, *lost, *workers, *idle, *other, *by_worker]


def _outcomes(
    data: Cells, cell: int, runs: pd.DataFrame, cannot: pd.Series[bool]
) -> dict[str, str]:
    """Returns least, middle and greatest of each outcome, and how often servers failed."""
    row: dict[str, str] = {}
    for name in OUTCOMES:
        values = data.sample(cell, name)
        described = describe(values[values >= 0])
        row |= {
            f"{name}_least": number(described.min),
            f"{name}_middle": number(described.median),
            f"{name}_most": number(described.max),
        }
    row["n_cannot"] = str(int(cannot.sum()))
    row["held_of_cannot"] = number(describe(held_at_most(runs)).median)
    never = runs["again_ms"] == "never" if "again_ms" in runs else np.zeros(0)
    row["n_never"] = str(int(never.sum()))
    return row
