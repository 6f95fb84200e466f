"""The paper: its words stand in a template, its numbers come from the published runs."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from collect.infer.contrast import Result, contrast_test, mean_of, mean_of_pairs, share_of_cost
from collect.install_and_build import install
from collect.measure.run_plan import DATE
from collect.measure.server_commands import Need
from collect.present import facts
from collect.present.anatomy_figures import Spent, rows_of, spent
from collect.present.knees import Knee, knees_of
from collect.present.published_runs import Published
from collect.present.repeated import repeated_ratios
from collect.present.report import read_pictures
from collect.present.results_view import View, load_view
from collect.present.step_costs import Steps, steps_of
from collect.present.templating import TEMPLATES, number_word, render_markdown
from collect.project import fail
from collect.readable_numbers import about_time, estimate_text, human, join_text, plural, thousands

TEMPLATE = "paper.md.j2"
PAPER = "paper"
TITLE = "What a process costs, and why"
CPU = "server_cpu_us"
THOUSAND = 1000
TYPESETTING = (
    Need("pandoc", "pandoc"),
    Need("xelatex", "texlive-xetex"),
    Need("/usr/share/texmf/fonts/opentype/public/lm", "lmodern"),
    Need("/usr/share/texlive/texmf-dist/fonts/tfm/adobe/zapfding", "texlive-fonts-recommended"),
    Need("rsvg-convert", "librsvg2-bin"),
)
LAYOUT = (
    "--variable=documentclass:article", "--variable=papersize:a4", "--variable=fontsize:10pt",
    "--variable=geometry:margin=22mm", "--variable=colorlinks:true",
    r"--variable=header-includes:\usepackage{float}\floatplacement{figure}{H}",
)  # fmt: skip

Side = str | Mapping[str, str]


@dataclass(frozen=True)
class Number:
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float
    without: str = ""  # the same without a block that is far from the others, and moves it
    units: tuple[float, ...] = ()  # the value in each round, or in each block of one sitting

    def __str__(self) -> str:
        if self.value < THOUSAND:
            return estimate_text(self.value, self.low, self.high)
        return f"{thousands(self.value)} ({thousands(self.low)} to {thousands(self.high)})"

    def times(self, factor: float) -> Number:
        return replace(
            self, value=factor * self.value, low=factor * self.low, high=factor * self.high
        )

    @property
    def plain(self) -> str:
        return human(self.value)

    @property
    def each(self) -> str:
        """Its value in each unit, the least first."""
        return join_text([human(value) for value in sorted(self.units)])


def _range(numbers: Sequence[Number]) -> str:
    """The least and the greatest of several estimates."""
    values = [number.value for number in numbers]
    return f"{min(values):.2f} to {max(values):.2f}"


@dataclass(frozen=True)
class Bound:
    """Where a ratio comes to a bound, in words."""

    at: str
    interval: str

    def __str__(self) -> str:
        return f"{self.at} ({self.interval})"


class Cited:
    """A study as the paper cites it: by its newest run. Runs are not pooled here: between them the
    programs changed, and two sittings do not tell how far sittings differ."""

    def __init__(self, study: str, runs: Sequence[Published]) -> None:
        mine = [run for run in runs if run.study == study]
        if not mine:
            fail(f"the paper cites the study {study}, of which no run is published")
        self.study = study
        self._run, *self._others = sorted(mine, key=_started, reverse=True)

    @cached_property
    def _view(self) -> View:
        return load_view(self._run.folder)

    @cached_property
    def earlier(self) -> Cited:
        """The study by the run before the newest one."""
        return Cited(self.study, self._others)

    @cached_property
    def runs(self) -> list[Cited]:
        """The study by each of its runs, the newest first."""
        return [Cited(self.study, [run]) for run in (self._run, *self._others)]

    def has(self, *servers: str) -> bool:
        """Returns true if the newest run has these servers."""
        return set(servers) <= set(self._view.data.levels["server"])

    # --- numbers ---

    def ratio(self, of: Side, to: Side, measure: str = CPU, **when: str) -> Number:
        """The ratio of two sides: in the cells with the values of `of`, and in those that have the
        values of `to` and are like them otherwise."""
        data = self._view.data
        cells = data.pick(**when, **_values(of))
        bases = [data.like(cell, **_values(to)) for cell in cells]
        pairs = zip(cells, bases, strict=True)
        known = [(cell, base) for cell, base in pairs if base is not None]
        result = contrast_test(data, mean_of_pairs(known), measure)
        if result is None:
            fail(f"the paper asks {self.study} for {of} / {to}, which was not measured")
        return _number(result, facts.without_outlier(result))

    def mean(self, of: Side, measure: str = CPU, **when: str) -> Number:
        """The geometric mean of cells."""
        data = self._view.data
        result = contrast_test(data, mean_of(data.pick(**when, **_values(of))), measure)
        if result is None:
            fail(f"the paper asks {self.study} for {measure} of {of}, which was not measured")
        return _number(result)

    def share(self, part: tuple[str, str], whole: tuple[str, str], **when: str) -> Number:
        """What the first server of a pair takes more than the second, as a share of what the first
        of another pair takes more."""
        result = share_of_cost(self._view.data, part, whole, **when)
        if result is None:
            fail(f"the paper asks {self.study} for a share of {part}, which was not measured")
        return Number(result.test.estimate, *result.test.interval())

    def purposes(self, server: str, **when: str) -> dict[str, float]:
        """The microseconds that a request spends on each purpose."""
        cells = self._view.data.pick(server=server, **when)
        rows = rows_of(self._view, cells[0], "purpose") if len(cells) == 1 else []
        if not rows:
            fail(f"the paper asks {self.study} for the purposes of {server}, seen in one cell")
        return {row["name"]: float(row["each"]) for row in rows}

    # --- what a report says, too ---

    @property
    def steps(self) -> Steps:
        found = steps_of(self._view)
        if found is None:
            fail(f"the paper cites the steps of {self.study}, which were not measured")
        return found

    @property
    def bound(self) -> Bound:
        """Where the ratio of the study comes to its first bound."""
        found = facts.fall(self._view)
        if found is None or not found.crossings[0][2]:
            fail(f"the paper says where the ratio of {self.study} comes to its bound: nowhere")
        at, _, interval = found.crossings[0][2].partition(" (95% interval ")
        return Bound(at, interval.removesuffix(")"))

    @property
    def earlier_bounds(self) -> str:
        """Where the ratio came to that bound in the runs before the newest one."""
        falls = [facts.fall(one._view) for one in self.runs[1:]]
        known = [fall.crossings[0][2].partition(" (")[0] for fall in falls if fall]
        return join_text([at or "nowhere" for at in known])

    @property
    def spent(self) -> list[Spent]:
        return spent(self._view)

    def knee(self, server: str) -> Knee:
        found = knees_of(self._view, self._view.parts[0])
        known = [knee for knee in found.each if knee.server == server] if found else []
        if not known:
            fail(f"the paper cites the knee of {server} in {self.study}, which was not measured")
        return known[0]

    def verdict(self, claim: str) -> str:
        """The verdict on a claim."""
        return self._run.claims[claim].verdict

    def found(self, claim: str, tested: str = "") -> str:
        """The finding on the first part of a claim that tests this."""
        parts = self._run.claims[claim].parts
        known = [part.found for part in parts if part.tested.startswith(tested)]
        if not known:
            fail(f"the paper cites what {claim} found on {tested}, which was not tested")
        return known[0].partition(";")[0]

    # --- where it stands ---

    @property
    def others_percent(self) -> float:
        """The percentage of the processors that other programs had; 100 where it is not known."""
        known = self._run.others_percent
        return 100 if known is None else known

    @property
    def machine(self) -> str:
        return self._run.machine_text

    @property
    def day(self) -> str:
        return _started(self._run)[:10]

    @property
    def begin(self) -> str:
        """The day and the minute."""
        return _started(self._run)[:16]

    @property
    def commit(self) -> str:
        return self._run.machine["project_commit"][:10]

    @property
    def kernel(self) -> str:
        """Its name and version, without the names of a build."""
        return self._run.machine["kernel"].partition("-")[0]

    @property
    def load(self) -> str:
        """The load generators, the most connections, and whether one processor serves."""
        levels = self._view.data.levels
        names, counts = levels["load"], [int(value) for value in levels["concurrency"]]
        most = (
            "one connection" if max(counts) == 1 else f"up to {thousands(max(counts))} connections"
        )
        own = {value for value in levels.get("processors", ["-"]) if value != "-"}
        return f"{join_text(names)}, {most}{', one processor' if own == {'1'} else ''}"

    @property
    def units(self) -> int:
        """How many rounds or blocks the newest run has."""
        return self._view.data.units

    @property
    def deadline(self) -> str:
        """Within which time an answer counts."""
        return f"{int(facts.deadlines(self._view.study.levels)[0]) / THOUSAND:g} s"

    @property
    def sitting(self) -> str:
        """How many rounds or blocks the newest run has, and how long they took."""
        machine, data = self._run.machine, self._view.data
        seconds = (_moment(machine["ended"]) - _moment(machine["started"])).total_seconds()
        return f"{plural(data.units, data.unit, data.unit + 's')}, {about_time(seconds)}"

    @property
    def link(self) -> str:
        return f"[`{self.study}`]({self._run.path}/report.md)"

    def figure(self, name: str, words: str) -> str:
        run = self._run
        if name not in [picture.name for picture in read_pictures(run.folder)]:
            fail(f"the paper shows the figure {name} of {run.path}, which is not there")
        data = self._view.data
        counts = {int(row["n"]) for row in self._view.summary if int(row["n"])}
        most = data.units if data.unit == "round" else max(counts)
        least = most if data.unit == "round" else min(counts)
        units = f"{least} to {most}" if least < most else f"{most}"
        return f"![{words} From {units} {data.unit}s.]({run.path}/figures/{name}.svg)"


def _number(result: Result, without: str = "") -> Number:
    values = tuple(math.exp(result.test.estimate + effect) for effect in result.effects)
    return Number(result.ratio, *result.ratio_interval(), without, values)


def _moment(text: str) -> datetime:
    return datetime.strptime(text, DATE)


def _started(run: Published) -> str:
    return run.machine["started"]


def _values(side: Side) -> Mapping[str, str]:
    return {"server": side} if isinstance(side, str) else side


def require(condition: bool, what: str) -> str:
    """Fails where a sentence of the paper is no longer true."""
    if not condition:
        fail(f"the paper says what the runs no longer show: {what}")
    return ""


def studies_cited() -> set[str]:
    """The studies whose runs the paper needs."""
    return set(re.findall(r'cite\("([^"]+)"\)', _template()))


def _template() -> str:
    return (TEMPLATES / TEMPLATE).read_text(encoding="utf-8")


def paper(runs: Sequence[Published]) -> str:
    """Returns the paper as Markdown."""
    cited = studies_cited()
    return render_markdown(
        TEMPLATE, title=TITLE, cite=lambda study: Cited(study, runs), require=require,
        range=_range, ratios=repeated_ratios([run for run in runs if run.study in cited]),
        requirements=number_word(_template().count("{% do require(")),
    )  # fmt: skip


# A link to another page; links to figures have a ! before them.
LINK = re.compile(r"(?<!!)\[([^]]+)\]\((?!https?:)[^)]+\)")
FIGURE = re.compile(r"^!\[.*\]\(.*\)$", re.MULTILINE)


def typeset(text: str, reports: Path, target: Path) -> Path:
    """Makes a PDF of the paper; returns its path. Links to other pages are their words alone."""
    install(TYPESETTING)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"cannot make {target.parent}: {error.strerror}")
    text = FIGURE.sub(r"\g<0>{width=66%}", LINK.sub(r"\1", text))
    command = ["pandoc", "--from=markdown", "--pdf-engine=xelatex", "--shift-heading-level-by=-1"]
    command += [f"--resource-path={reports.resolve()}", f"--output={target.resolve()}", *LAYOUT]
    with TemporaryDirectory() as folder:  # TeX leaves files where it runs
        done = subprocess.run(
            command, cwd=folder, input=text, capture_output=True, text=True, check=False
        )
    if done.returncode:
        fail(f"pandoc cannot make {target}: {done.stderr.strip()}")
    return target
