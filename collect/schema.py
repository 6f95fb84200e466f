"""Every column of every table of a results folder: name, unit, meaning.

usage:  ./dcollect.sh schema >collect/SCHEMA.md
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
    Column("server_user_us", "µs", "of it, in user mode, as the clock's ticks show"),
    Column("server_system_us", "µs", "of it, in the kernel, likewise"),
    Column(
        "voluntary",
        "",
        "voluntary context switches of the server per answered request; where its processes and "
        "threads come and go, only in the first block of a round, by a run on a server of its own",
    ),
    Column("involuntary", "", "involuntary context switches of the server per answered request"),
    Column("faults", "", "minor page faults of the server per answered request"),
    Column("disk_kib", "KiB", "read from the disks of the machine, per answered request"),
    Column("peak_kib", "KiB", "the most memory that the server had during the run"),
    Column("held", "", "idle or slow connections held at the end"),
    Column("each_kib", "KiB", "memory of the control group per held connection, kernel included"),
    Column("cut", "", "how often a slow client was cut off"),
    Column("lost", "", "requests whose first try was refused, cut off or not answered in time"),
    Column("unanswered", "", "requests that waited for a response when the run ended"),
    Column(
        "again_ms",
        "ms",
        "from the fatal request, or the end of a surge, until every client was served; or never",
    ),
    Column("workers", "", "worker processes or threads of the server"),
    Column("busiest", "", "the share of the requests that the busiest worker answered"),
    Column("batch", "", "events that a wait of an event loop brought, on average"),
    Column("idle_kib", "KiB", "memory per held connection, user (PSS without pages of files)"),
    Column("first_tenth", "", "rate in the first tenth of the measured time by that of the rest"),
    Column("other_p50_ms", "ms", "time of a request for the other document, median (open)"),
    Column("other_p99_ms", "ms", "the same, 99th percentile (open)"),
    Column(
        "busiest_p50_ms",
        "ms",
        "time of a request that the busiest worker answered, median "
        "(open, service work, workers given)",
    ),
    Column("busiest_p99_ms", "ms", "the same, 99th percentile"),
    Column("rest_p50_ms", "ms", "time of a request that another worker answered, median"),
    Column("rest_p99_ms", "ms", "the same, 99th percentile"),
    Column("asked", "1/s", "requests per second that were due (open)"),
    Column("late", "", "share of them that the client itself started late (open)"),
    Column("tries", "", "how often the run was made: again where the client was late (open)"),
    Column("skew_ms", "ms", "between the starts of clients on several machines, at most"),
    Column("valid", "", "yes; or the reason why the run does not count"),
)

CALIBRATED = (
    "started", "seconds", "complete", "rps", "p50_ms", "p99_ms", "load_cpu", "client_cpu_us",
    "server_cpu_us", "valid",
)  # fmt: skip

RUNS = Schema("runs.tsv", "run", "a run", (*PLAN.columns, *MEASURED))

CALIBRATION = Schema(
    "calibration.tsv", "run",
    "a run of a floor, a server that does nothing: `ab -n 4000 -c 10`, at the start and the end of "
    "a round",
    (
        Column("round", "", "the round"),
        Column("when", "", "begin or end of the round; resume where an interrupted round goes on"),
        Column("server", "", "the floor"),
        *(column for column in MEASURED if column.name in CALIBRATED),
    ),
)  # fmt: skip

CAPACITY = Schema(
    "capacity.tsv", "run",
    "a closed loop that keeps a server busy: the median of these is its capacity in this round, of "
    "which the load `open` offers a share",
    (
        Column("round", "", "the round"),
        *(Column(factor.name, "", f"factor: {factor.help}")
          for factor in FACTORS if factor.name not in ("requests", "offered", "surge")),
        *(column for column in MEASURED
          if column.name in CALIBRATED and column.name != "started"),
    ),
)  # fmt: skip

CELL = tuple(Column(factor.name, "", f"factor: {factor.help}") for factor in FACTORS)

SYSTEM_CALLS = Schema(
    "system_calls.tsv", "run",
    "a system call of a server, counted by strace once a round in a run of its own",
    (
        Column("round", "", "the round"),
        *CELL,
        Column("call", "", "the name of the call"),
        Column("each", "", "how often it is made for a request"),
    ),
)  # fmt: skip

STACKS = Schema(
    "stacks.tsv.gz", "run",
    "a stack of a server, sampled by perf once a round in runs of their own; rare frames are cut",
    (
        Column("round", "", "the round"),
        *CELL,
        Column("stack", "", "program;outermost;...;innermost; frames of the kernel end in _[k]"),
        Column("samples", "", "how often it was seen"),
    ),
)  # fmt: skip

HISTOGRAMS = Schema(
    "histograms.tsv.gz", "run",
    "the times of the requests of a run; of several rows of a run the last one counts",
    (
        Column("run", "", "the number of the run"),
        Column("histogram", "ms", "`i:count ...`: requests that took from 0.001 ms * 1.02^i up to "
               "1.02 times that; of ab from the 101 quantiles that it tells, so that the last "
               "percent is coarse; - where the load generator tells none"),
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

BY_NAME = {column.name: column for column in MEASURED}
# The times of requests at the busiest worker, and at the others.
BY_WORKER = ("busiest_p50_ms", "busiest_p99_ms", "rest_p50_ms", "rest_p99_ms")
SLICE = tuple(
    Column(factor.name, "", f"factor: {factor.help}; * where it is averaged over")
    for factor in FACTORS[1:]
)
SAMPLE = (
    ("mean", "mean of the rounds (of one sitting: of the runs)"),
    ("sd", "standard deviation of the runs"), ("median", "median of the runs"),
    ("low", "95% t-interval of the mean, lower end"), ("high", "upper end"), ("min", "least run"),
    ("max", "greatest run"),
)  # fmt: skip
BLOCKS = Column("blocks", "", "how many rounds (or blocks of one sitting) the interval rests on")
UNIT = Column("unit", "", "what the interval is of: round, or block: one sitting")

SUMMARY = Schema(
    "summary.tsv", "summary", "a cell: a combination of all factors",
    (
        *CELL,
        Column("n", "", "runs that count"),
        Column("n_invalid", "", "runs that do not"),
        *(Column(f"rps_{name}", "1/s", f"requests/s: {words}") for name, words in SAMPLE),
        *(Column(f"server_cpu_us_{name}", "µs", f"server CPU per request: {words}")
          for name, words in SAMPLE),
        *(Column(name, BY_NAME[name].unit, f"{BY_NAME[name].meaning}; mean of the runs")
          for name in (
              "mean_ms", "sd_ms", "min_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "max_ms",
              "seconds", "kbytes_s", "voluntary", "involuntary", "peak_kib", "load_cpu",
              "client_cpu_us", "server_user_us", "server_system_us", "faults", "disk_kib",
              "first_tenth",
              "lost",
              "workers", "busiest", "batch", "idle_kib", "each_kib",
              "other_p50_ms", "other_p99_ms", *BY_WORKER)),
        Column("peak_kib_max", "KiB", "the most memory of all runs"),
        *(Column(f"{name}_{end}", "ms", f"{name}: {words}")
          for name in ("p50_ms", "p95_ms", "p99_ms")
          for end, words in (
              ("estimate", "geometric mean of the runs; of rounds, where the times are known, of "
               "the percentiles of all requests of a round"),
              ("low", "its 95% interval, lower end"), ("high", "upper end"))),
        Column("client_bound", "", "yes: the client limits the cell (a server that does nothing is "
               "not 10% faster in the same block, or in the round where the floors are asked like "
               "the cell; where neither was measured: the client is busy for 90% of the time)"),
        Column("ceiling", "", "requests/s of a server that does nothing, by those of the cell"),
        *(Column(f"{name}_{which}", "", f"studies of others: {words} value of {name}")
          for name in ("rps", "p99_ms", "max_ms", "peak_kib", "held", "each_kib", "cut", "lost",
                       "unanswered", "again_ms")
          for which, words in (("least", "least"), ("middle", "middle"), ("most", "greatest"))),
        Column("n_cannot", "", "studies of others: runs in which the server could not hold all"),
        Column("held_of_cannot", "", "how many it held there, median"),
        Column("n_never", "", "runs in which it was never served again"),
    ),
)  # fmt: skip

COMPARISONS = Schema(
    "comparisons.tsv", "compare", "a server against its baseline, within blocks",
    (
        Column("scope", "", "cell; x: averaged over the x axis; all: over everything, where the "
               "cells are alike"),
        Column("measure", "", "rps, server_cpu_us, p50_ms, p99_ms (studies of others: peak_kib)"),
        Column("server", "", "the server"),
        Column("baseline", "", "what it is compared with"),
        *SLICE,
        Column("cells", "", "how many cells are averaged"),
        Column("client_bound", "", "how many of them the client limits"),
        BLOCKS,
        Column("ratio", "", "server / baseline: ratio of geometric means"),
        Column("low", "", "its 95% interval, lower end"),
        Column("high", "", "upper end"),
        Column("t", "", "of the paired t-test that the ratio is 1"),
        Column("p", "", "its p-value"),
        Column("p_holm", "", "the same, adjusted for all of the scope (Holm)"),
        Column("all_low", "", "interval that holds together with all of the scope (Bonferroni)"),
        Column("all_high", "", "upper end"),
        Column("difference", "", "higher or lower where p_holm is below 0.05, else `not shown`"),
        UNIT,
        Column("sd_within", "", "spread of the log-ratio from block to block of a round"),
        Column("sd_between", "", "spread from round to round beyond that"),
        Column("drift", "", "the ratio in the last round (or block) / in the first, fitted line"),
        Column("drift_low", "", "its 95% interval, lower end"),
        Column("drift_high", "", "upper end"),
        Column("drift_p", "", "p-value of no drift"),
    ),
)  # fmt: skip

AVERAGES = Schema(
    "averages.tsv", "compare", "what a server has alone, averaged over the x axis",
    (
        Column("part", "", "the part of the study"),
        Column("measure", "", "rps, server_cpu_us, client_cpu_us, p50_ms, p99_ms; with "
               "_to_floor: by the floor of its round; control_us: server CPU less that of "
               "iterative"),
        Column("server", "", "the server"),
        *SLICE,
        Column("cells", "", "how many cells are averaged"),
        Column("client_bound", "", "how many of them the client limits"),
        BLOCKS,
        Column("mean", "1/s, µs", "geometric mean (control_us: arithmetic)"),
        Column("low", "", "its 95% interval, lower end"),
        Column("high", "", "upper end"),
        UNIT,
    ),
)  # fmt: skip

ANATOMY = Schema(
    "anatomy.tsv", "compare", "a part of what a server does for a request",
    (
        *CELL,
        Column("kind", "", "purpose: what its CPU time is for, from the stacks; call: a system "
               "call"),
        Column("name", "", "the purpose or the call"),
        Column("each", "µs", "of a purpose: CPU time a request, its share of the samples times the "
               "CPU time of the runs; of a call: how often a request makes it"),
        Column("low", "µs", "its 95% interval over the rounds, lower end"),
        Column("high", "µs", "upper end"),
        Column("share", "", "of a purpose: its share of the samples"),
        Column("rounds", "", "how many rounds the interval rests on"),
        Column("samples", "", "of a purpose: the samples of the cell"),
    ),
)  # fmt: skip

CLAIMS = Schema(
    "claims.tsv", "claims", "a claim, its supposed cause, or a part of either",
    (
        Column("claim", "", "the claim; its words stand in collect/infer/claims.toml"),
        Column("source", "", "who made it"),
        Column("quote", "", "in which words"),
        Column("part", "", "all: the claim (with kind reading: its cause, where that alone is "
               "tested); cause: its supposed cause; else a number"),
        Column("kind", "", "claim; claim aside: shown, decides nothing; reading: of the cause; "
               "reading aside: another tool or a step on the way; reading control: without it"),
        Column("tested", "", "what was tested, and the rule"),
        Column("found", "", "estimate and 95% interval in words; of `all`, what is to be noted"),
        Column("low", "", "95% interval, lower end"),
        Column("high", "", "upper end"),
        Column("verdict", "", "reproduced, not reproduced, cannot tell, not testable here; of a "
               "cause: confirmed, a possible cause, not confirmed"),
        BLOCKS,
        UNIT,
        Column("rule", "", "the name of the rule in claims.toml"),
        Column("reason", "", "the reason for its margins"),
        Column("scale", "", "ratio, or log and a unit: estimate and error are logarithms; "
               "share; or a unit"),
        Column("estimate", "", "the estimate"),
        Column("error", "", "its standard error"),
        Column("df", "", "its degrees of freedom"),
        Column("count", "", "of counts: the number of events"),
        Column("of", "", "of counts: the number of runs"),
        Column("dispersion", "", "of counts that come in clumps: their variance from run to run by "
               "their mean, at least 1"),
        Column("limited", "", "of requests/s: the side of the ratio that the client limits: "
               "numerator, denominator or both"),
        Column("needed", "", "if it cannot tell: the rounds or blocks that would in four of five "
               "studies (1000: not even these); -: more do not help, or it is a count"),
    ),
)  # fmt: skip

THREATS = Schema(
    "threats.tsv", "threats", "something that could be wrong with the study",
    (
        Column("name", "", "planned, disbelieved, client_bound, late (the largest share of a run "
               "that the open loop started late), again (runs that were made again for that), "
               "invalid, reason, others, stolen, "
               "moved (floors that are a tenth faster or slower at the end of their round), "
               "moved_floor (its end / its begin), unsteady (servers whose first tenth of a run "
               "is a tenth faster or slower than the rest), unsteady_unknown (runs that are too "
               "short to tell), unsteady_server (the ratio), drift (of a server, last block / "
               "first), self "
               "(cells that differ between odd and even blocks)"),
        Column("subject", "", "of what"),
        Column("value", "", "how much"),
        Column("low", "", "its 95% interval, lower end"),
        Column("high", "", "upper end"),
        Column("of", "", "of how many"),
    ),
)  # fmt: skip

TABLES: list[Schema] = [
    PLAN, RUNS, CALIBRATION, CAPACITY, SYSTEM_CALLS, STACKS, HISTOGRAMS, ROUNDS, SUMMARY,
    COMPARISONS, AVERAGES, ANATOMY, CLAIMS, THREATS,
]  # fmt: skip


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
