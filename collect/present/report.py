"""The report of a study: results folder -> report.md."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from collect.design.factors import HOLDING
from collect.design.study import Limit
from collect.infer.cells import FAULT, HELD, ORDINARY, SURGE, Part
from collect.infer.claim_verdicts import (
    CLAIM_ASIDE,
    MOST_UNITS,
    READING,
    READING_ASIDE,
    READING_CONTROL,
)
from collect.infer.claims_file import read_wording
from collect.present import anatomy_figures, facts, report_tables
from collect.present.busiest_worker import busiest_text, worker_rows
from collect.present.knees import TIMES, knees_of
from collect.present.results_view import Row, View
from collect.present.server_groups import group_servers
from collect.present.step_costs import steps_of
from collect.present.templating import render_markdown
from collect.project import CAPACITY_FILE, ROUNDS_FILE, command_name
from collect.readable_numbers import join_text, plural
from collect.tables import read_table

ASIDE = ("mitigation", "sysctl", "version")
FIGURE_ORDER = (
    "anatomy", "bars", "ways", "cpu", "requests", "ratio", "time", "memory", "busiest", "batch",
    "idle",
)  # fmt: skip
USUAL_FIGURES = ("bars", "cpu", "requests")
RUN_FIGURES = ("order", "spread", "latency", "calibration", "rounds")


@dataclass(frozen=True)
class Picture:
    """A figure as figures/list.tsv has it."""

    name: str
    kind: str
    file: str
    text: str
    part: int

    @property
    def markdown(self) -> str:
        return f"![{self.text}](figures/{self.name}.svg)"


def read_pictures(folder: Path) -> list[Picture]:
    table = read_table(folder / "figures" / "list.tsv")
    return [
        Picture(row["name"], row["kind"], row["file"], row["text"], int(row["part"]))
        for row in table.rows
    ]


def main_picture(pictures: list[Picture], wanted: Sequence[str]) -> Picture | None:
    """The figure that a study shows first."""
    for kind in (*wanted, *USUAL_FIGURES):
        for picture in pictures:
            if picture.kind == kind:
                return picture
    return pictures[0] if pictures else None


def _wanted_figures(view: View) -> tuple[str, ...]:
    """The kinds of figures that a study names, else those of the measure that answers it."""
    answer = facts.answer(view)
    kinds = {facts.RPS: ("requests",), "p50_ms": ("time",), "p99_ms": ("time",)}
    return facts.figures_named(view) or (kinds.get(answer.measure, ()) if answer else ())


def write_report(view: View) -> str:
    """Returns the report as Markdown."""
    pictures = read_pictures(view.folder)
    return render_markdown(
        "report.md.j2",
        view=view,
        study=view.study,
        name=view.study.name,
        machine=defaultdict(str, view.machine),
        facts=facts,
        anatomy=anatomy_figures,
        unit=view.data.unit,
        has_rounds=(view.folder / ROUNDS_FILE).exists(),
        has_capacity=(view.folder / CAPACITY_FILE).exists(),
        tables=report_tables,
        parts=view.parts,
        kind=facts.kind_of(view),
        HELD=HELD,
        FAULT=FAULT,
        SURGE=SURGE,
        ORDINARY=ORDINARY,
        answer=facts.answer(view),
        alarms=facts.alarms(view),
        steps=steps_of(view),
        worker_rows=worker_rows,
        busiest_text=busiest_text(view),
        knees_of=knees_of,
        KNEE_TIMES=TIMES,
        main=main_picture(pictures, _wanted_figures(view)),
        pictures=pictures,
        pictures_of=pictures_of,
        run_pictures=[p for p in pictures if p.kind in RUN_FIGURES],
        claims=claims_of(view.claims),
        wording=read_wording(),
        method=_method(view),
        machine_rows=_machine_rows(view.machine, aside=False),
        aside_rows=_machine_rows(view.machine, aside=True),
        command=_command(view),
        is_grouped=lambda part: len(group_servers(part.subjects)) > 1,
    )


def pictures_of(
    pictures: list[Picture], part: Part, file: str, skip: Picture | None
) -> list[Picture]:
    """The figures of a file in a part, in their order, without the one that is shown above."""
    mine = [p for p in pictures if p.part == part.number and p.file == file and p != skip]
    return sorted(
        (p for p in mine if p.kind in FIGURE_ORDER), key=lambda p: FIGURE_ORDER.index(p.kind)
    )


# --- claims ---


# The role of a part of each kind, in words.
ROLES = {
    CLAIM_ASIDE: "aside",
    READING: "cause",
    READING_ASIDE: "aside of the cause",
    READING_CONTROL: "control of the cause",
}


@dataclass(frozen=True)
class ClaimPart:
    """A tested part of a claim, and what was found."""

    tested: str
    found: str
    blocks: str
    verdict: str
    is_cause: bool
    reason: str
    role: str = ""  # that of a part which decides nothing by itself, or of the supposed cause
    is_aside: bool = False  # shown, and decides nothing
    telling: str = ""  # how many rounds or blocks would tell, in words


@dataclass(frozen=True)
class ClaimResult:
    """The result of a study on a claim."""

    name: str
    source: str
    quote: str
    how: str
    found: str
    verdict: str
    is_cause: bool
    cause_verdict: str
    parts: tuple[ClaimPart, ...]

    @property
    def is_tested(self) -> bool:
        return self.how != "nothing"


def _telling(row: Row) -> str:
    """Says how many rounds or blocks would tell, where a part of a claim cannot."""
    needed = row.get("needed", "-")
    if not needed.isdigit():
        return ""
    units = f"{float(f'{float(needed):.2g}'):,.0f} {row['unit']}s"
    return f"not even {units} would" if int(needed) == MOST_UNITS else f"about {units} would"


def claims_of(rows: list[Row]) -> list[ClaimResult]:
    """The claims of claims.tsv, with their parts."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row["claim"], []).append(row)
    found = []
    for name, mine in by_name.items():
        whole = next((row for row in mine if row["part"] == "all"), mine[0])
        cause = next((row["verdict"] for row in mine if row["part"] == "cause"), "")
        parts = tuple(
            ClaimPart(
                row["tested"], row["found"], row["blocks"] if row["blocks"].isdigit() else "",
                row["verdict"], row["kind"].startswith("reading"), row.get("reason", "-"),
                ROLES.get(row["kind"], ""), row["kind"] in (CLAIM_ASIDE, READING_ASIDE),
                _telling(row),
            )
            for row in mine
            if row["part"].isdigit()
        )  # fmt: skip
        found.append(
            ClaimResult(
                name,
                whole["source"],
                whole["quote"],
                whole["tested"],
                whole["found"],
                whole["verdict"],
                whole["kind"] != "claim",
                cause,
                parts,
            )
        )
    return found


# --- method ---


@dataclass(frozen=True)
class Cut:
    """The valid runs whose time was up before all requests were answered."""

    runs: int
    least: int  # the fewest requests that one of them answered
    excess: float  # the most requests that were open at the end, per answered one


def _cut(view: View) -> Cut | None:
    """Finds the runs that were cut, where they have a number of requests and fail by time alone."""
    data = view.data
    runs = data.valid_runs
    if view.parts[0].kind != ORDINARY or not {"complete", "failed"} <= set(runs):
        return None
    closed = [data.value(cell, "load") == "witness" and data.value(cell, "scheme") != "udp"
              for cell in range(data.count)]  # fmt: skip
    done, failed = (data.column(name, runs) for name in ("complete", "failed"))
    cut = (failed > 0) & (done > 0) & runs["cell"].map(lambda cell: closed[cell])
    if not cut.any():
        return None
    return Cut(int(cut.sum()), int(done[cut].min()), float((failed[cut] / done[cut]).max()))


@dataclass(frozen=True)
class Method:
    """The facts about how the runs were made."""

    factors: tuple[tuple[str, str], ...]
    all_combinations: bool
    cells: int
    most: int
    limits: str
    runs: int
    tests: int
    proxied: bool
    udp: bool
    opened: bool
    offered: bool
    tls: bool
    httperf: bool
    ports: str
    ports_asked: str
    ports_given: bool
    cut: Cut | None


# Factors that are not worth a word where there is nothing of them.
IF_ANY = (*HOLDING, "ballast", "surge", "mixed", "data_share")


def _method(view: View) -> Method:
    data = view.data
    levels = data.levels
    combinations = 1
    for name in data.factors:
        combinations *= len(levels[name])
    shown = []
    for name in data.factors:
        unused = levels[name] == (["0"] if name in IF_ANY else ["-"])
        without_tls = name in ("certificate", "sessions") and "https" not in levels["scheme"]
        if not unused and not without_tls:
            shown.append((name, _levels_text(levels[name])))
    planned = view.threat("planned").get("value", "0")
    ports = view.machine.get("client_ports", "")
    ports = ports or view.machine.get("sysctl.net.ipv4.ip_local_port_range", "").replace(
        " ", " to "
    )
    wanted = view.study.client_ports
    asked = f"{wanted[0]} to {wanted[1]}" if wanted else ""
    return Method(
        tuple(shown),
        data.count >= combinations,
        data.count,
        view.most_runs,
        _limits_text(view),
        int(float(planned)),
        sum(1 for row in view.comparisons if row["scope"] == "cell"),
        any(service.startswith("proxy-") for service in levels["service"]),
        "udp" in levels["scheme"],
        "open" in levels["load"],
        levels.get("offered", ["-"]) != ["-"],
        "https" in levels["scheme"],
        "httperf" in levels["load"],
        ports,
        asked,
        bool(asked) and asked == ports,
        _cut(view),
    )


def _levels_text(values: list[str]) -> str:
    """The values of a factor, neighbours as ranges: "1 to 30"."""
    texts: list[str] = []
    i = 0
    while i < len(values):
        j = i
        while (
            j + 1 < len(values)
            and values[j].isdigit()
            and values[j + 1].isdigit()
            and int(values[j + 1]) == int(values[j]) + 1
        ):
            j += 1
        if j - i >= 2:
            texts.append(f"{values[i]} to {values[j]}")
            i = j + 1
        else:
            texts.append(values[i])
            i += 1
    return ", ".join(texts)


def _limits_text(view: View) -> str:
    """Names the cells that are in the first blocks alone: "those with 100,000 requests 3 times"."""
    texts = []
    for limit in view.study.limits:
        cell = next(
            (c for c in range(view.data.count) if limit.when.matches(view.cell_values(c))), None
        )
        if cell is not None and limit.first < view.most_runs:
            words = _condition_words(view, limit, cell)
            texts.append(f"those with {words} {plural(limit.first, 'time', 'times')}")
    return join_text(texts)


def _condition_words(view: View, limit: Limit, cell: int) -> str:
    return join_text(
        [
            " or ".join(view.say(name, value, cell) for value in values)
            for name, values in limit.when.values.items()
        ]
    )


# --- machine and command ---


def _machine_rows(machine: dict[str, str], aside: bool) -> list[tuple[str, str]]:
    return [
        (key.replace("_", " "), value)
        for key, value in machine.items()
        if key.startswith(ASIDE) == aside and (key, value) != ("key", "value")
    ]


def _command(view: View) -> str:
    """The command that repeats the study."""
    command = view.machine.get("command") or view.machine.get("commands") or ""
    if not command:
        command = f"{command_name()} {view.study.name}"
    seed = view.machine.get("seed", "")
    if seed and "--seed" not in command:
        command = re.sub(r"dcollect\.sh", f"dcollect.sh --seed {seed}", command, count=1)
    return command
