"""Every column of every table of a results folder: name, unit, meaning.

usage:  /usr/bin/python3 -m collect schema >collect/SCHEMA.md
"""

from __future__ import annotations

from dataclasses import dataclass

from collect.design.factors import FACTORS


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Schema:
    """A table: the stage that writes it, what a row is, and its columns."""

    file: str
    stage: str
    row: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


PLAN = Schema(
    "plan.tsv", "plan", "a planned run, in the order of running",
    (
        Column("run", "", "the number of the run"),
        Column("round", "", "the round: a fresh start of everything; 1 in a single sitting"),
        Column("block", "", "the block: all cells once, in an order of its own"),
        Column("order", "", "the place within the block"),
        *(Column(factor.name, "", f"factor: {factor.help}") for factor in FACTORS),
    ),
)  # fmt: skip

MEASURED = (
    Column("started", "s", "when the load began, since the study began"),
    Column("seconds", "s", "how long the load lasted, as the load generator says it"),
    Column("complete", "", "requests that were answered"),
    Column("failed", "", "requests that failed, as the load generator says it"),
    Column("non2xx", "", "responses with another status than 2xx"),
    Column("length", "bytes", "the body of a response"),
    Column("rps", "1/s", "requests answered per second"),
    Column("mean_ms", "ms", "time of a request, mean"),
    Column("sd_ms", "ms", "time of a request, standard deviation"),
    Column("min_ms", "ms", "time of a request, least"),
    Column("p50_ms", "ms", "time of a request, median"),
    Column("p90_ms", "ms", "time of a request, 90th percentile"),
    Column("p95_ms", "ms", "time of a request, 95th percentile"),
    Column("p99_ms", "ms", "time of a request, 99th percentile"),
    Column("max_ms", "ms", "time of a request, greatest"),
    Column("kbytes_s", "KiB/s", "what the client received, heads included"),
    Column("load_cpu", "processors", "CPU time of the load generator by elapsed time"),
    Column("client_cpu_us", "µs", "CPU time of the load generator per answered request"),
    Column("server_cpu_us", "µs", "CPU time of the server per answered request"),
    Column("voluntary", "", "voluntary context switches of the server per answered request"),
    Column("involuntary", "", "involuntary context switches of the server per answered request"),
    Column("faults", "", "minor page faults of the server per answered request"),
    Column("peak_kib", "KiB", "the most memory that the server had during the run"),
    Column("held", "", "idle or slow connections held at the end"),
    Column("each_kib", "KiB", "memory of the control group per idle connection, kernel included"),
    Column("cut", "", "how often a slow client was cut off"),
    Column("lost", "", "requests whose first try was refused, cut off or not answered in time"),
    Column("unanswered", "", "requests that waited for a response when the run ended"),
    Column("again_ms", "ms", "from the fatal request until every client was served; or never"),
    Column("workers", "", "worker processes or threads of the server"),
    Column("busiest", "", "the share of the requests that the busiest worker answered"),
    Column("idle_kib", "KiB", "memory per idle connection, user (PSS without pages of files)"),
    Column("first_tenth", "", "rate in the first tenth of the measured time by that of the rest"),
    Column("valid", "", "yes; or the reason why the run does not count"),
)

CALIBRATED = (
    "started", "seconds", "complete", "rps", "p50_ms", "p99_ms", "load_cpu", "client_cpu_us",
    "server_cpu_us", "valid",
)  # fmt: skip

RUNS = Schema("runs.tsv", "run", "a run", (*PLAN.columns, *MEASURED))

CALIBRATION = Schema(
    "calibration.tsv", "run",
    "a run of a floor, a server that does nothing: `ab -n 1000 -c 10`, at the begin and the end of "
    "a round",
    (
        Column("round", "", "the round"),
        Column("when", "", "begin or end of the round; resume where an interrupted round goes on"),
        Column("server", "", "the floor"),
        *(column for column in MEASURED if column.name in CALIBRATED),
    ),
)  # fmt: skip

ROUNDS = Schema(
    "rounds.tsv", "run", "a round, or a part of one that was interrupted",
    (
        Column("round", "", "the round"),
        Column("started", "s", "when it began, since the study began"),
        Column("ended", "s", "when it ended"),
        Column("date", "", "when it began, UTC"),
        Column("runs", "", "the runs that were made"),
        Column("commit", "", "the commit of this project"),
        Column("processor_model", "", "the processor"),
        Column("processors", "", "how many processors were there"),
        Column("kernel", "", "the kernel"),
        Column("others_percent", "%", "what other programs had of the processors"),
        Column("stolen_percent", "%", "what the host of a virtual machine gave to others"),
    ),
)  # fmt: skip

TABLES: list[Schema] = [PLAN, RUNS, CALIBRATION, ROUNDS]


def markdown() -> str:
    """The page of all tables."""
    lines = [
        "# The tables of a results folder",
        "",
        "Each stage of a study writes tables that the next one reads: tab-separated values with a "
        "header line.",
        "A dash is a value that was not measured, or does not apply.",
    ]
    for table in TABLES:
        lines += ["", f"## {table.file}", "", f"Written by the stage `{table.stage}`. "
                  f"A row is {table.row}.", "", "| column | unit | meaning |",
                  "| --- | --- | --- |"]  # fmt: skip
        lines += [f"| `{column.name}` | {column.unit} | {column.meaning} |"
                  for column in table.columns]  # fmt: skip
    return "\n".join(lines) + "\n"
