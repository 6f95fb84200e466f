"""The results of a study in the formats of other tools."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from collect.infer.cells import Cells
from collect.infer.read_results import read_cells
from collect.options import FORMATS
from collect.project import fail
from collect.tables import read_pairs, read_table

# The measures for benchstat: a column of runs.tsv, its unit there, and the factor to it.
UNITS = (
    ("server_cpu_us", "server-ns/op", 1000.0),
    ("client_cpu_us", "client-ns/op", 1000.0),
    ("rps", "req/s", 1.0),
    ("p50_ms", "p50-ns", 1e6),
    ("p99_ms", "p99-ns", 1e6),
    ("peak_kib", "peak-B", 1024.0),
)


def export(folder: Path, form: str) -> str:
    """The results of a folder as text.

    csv        the runs, a row each
    json       all tables, the study and the machine as one object
    benchstat  the valid runs as Go benchmarks: `benchstat -col /server` compares the servers
    """
    writers = {"csv": _csv, "json": _json, "benchstat": _benchstat}
    if form not in writers:
        fail(f"there is no format `{form}`; there are: {', '.join(FORMATS)}", 2)
    return writers[form](folder)


def _csv(folder: Path) -> str:
    table = read_table(folder / "runs.tsv", key="run")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow("" if row[name] == "-" else row[name] for name in table.columns)
    return text.getvalue()


def _number(text: str) -> object:
    """A field of a table as JSON has it: a number, a text, or nothing."""
    if text in ("-", ""):
        return None
    try:
        return float(text) if not text.lstrip("-").isdigit() else int(text)
    except ValueError:
        return text


def _json(folder: Path) -> str:
    found: dict[str, object] = {"study": read_cells(folder).study.name}
    for path in sorted(folder.glob("*.tsv")):
        if path.name == "machine.tsv":
            found["machine"] = read_pairs(path)
            continue
        rows = read_table(path).rows
        found[path.stem] = [{name: _number(value) for name, value in row.items()} for row in rows]
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _benchstat(folder: Path) -> str:
    data = read_cells(folder)
    machine = read_pairs(folder / "machine.tsv")
    heads = (
        ("goos", "linux"),
        ("goarch", machine.get("architecture", "")),
        ("cpu", machine.get("processor_model", "")),
        ("study", data.study.name),
        ("commit", machine.get("project_commit", "")),
    )
    lines = [f"{key}: {value}" for key, value in heads if value]
    names = ["server", *(n for n in data.factors[1:] if len(data.levels[n]) > 1)]
    for row in data.valid_runs.to_dict("records"):
        measured = [
            f"{float(row[column]) * factor:.6g} {unit}"
            for column, unit, factor in UNITS
            if row.get(column, "-") not in ("-", "") and float(row[column]) > 0
        ]
        requests = row.get("complete", "1")
        lines.append(f"{_benchmark(data, names, row)} {requests} {' '.join(measured)}")
    return "\n".join(lines) + "\n"


def _benchmark(data: Cells, names: list[str], row: dict[str, str]) -> str:
    """The name of a benchmark: BenchmarkRequest/server=fork/concurrency=10."""
    values = "".join(f"/{name}={row[name]}" for name in names)
    return "BenchmarkRequest" + values.replace(" ", "_")
