"""The published runs: report/STUDY/MACHINE-DATE/, each a results folder."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from collect.design.study import Study, load_study
from collect.measure.foreign_load import SHARED, STOLEN
from collect.present.report import ClaimResult, claims_of
from collect.project import PROJECT, fail
from collect.readable_numbers import machine_text, thousands
from collect.tables import read_pairs, read_table

# Runs that are kept although they do not meet a condition: run, tab, the condition.
KEPT = "first_edition.tsv"


@dataclass(frozen=True)
class Published:
    """A published run."""

    study: str
    folder: Path
    path: str  # from the folder of all reports
    kept: str = ""  # the condition that it does not meet, where it is kept nevertheless

    @cached_property
    def design(self) -> Study:
        return load_study(self.folder / "study.toml", self.study)

    @cached_property
    def machine(self) -> dict[str, str]:
        return defaultdict(str, read_pairs(self.folder / "machine.tsv"))

    @cached_property
    def threats(self) -> dict[str, dict[str, str]]:
        table = read_table(self.folder / "threats.tsv")
        return {row["name"]: row for row in table.rows}

    @cached_property
    def claims(self) -> dict[str, ClaimResult]:
        rows = read_table(self.folder / "claims.tsv").rows
        return {claim.name: claim for claim in claims_of(rows)}

    @property
    def title(self) -> str:
        return self.design.title or self.study

    @property
    def measured(self) -> str:
        return self.machine["started"][:10]

    @property
    def machine_text(self) -> str:
        return machine_text(self.machine)

    @cached_property
    def abstract(self) -> tuple[str, list[str]]:
        return abstract_of((self.folder / "report.md").read_text(encoding="utf-8"))

    @property
    def answer(self) -> tuple[str, str]:
        """The question, and the first paragraph of the answer."""
        question, paragraphs = self.abstract
        return question, paragraphs[0] if paragraphs else ""

    @cached_property
    def main_figure(self) -> tuple[str, str] | None:
        """The first figure of the report: its path in the folder of all reports, and its words."""
        report = (self.folder / "report.md").read_text(encoding="utf-8")
        match = re.search(r"^!\[(.*)\]\((figures/[^)]+)\)$", report, re.MULTILINE)
        return (f"{self.path}/{match[2]}", match[1]) if match else None

    # --- what makes a run less than it should be ---

    @cached_property
    def others_percent(self) -> float | None:
        value = self.threats.get("others", {}).get("value", "-")
        return None if value == "-" else float(value)

    @cached_property
    def is_busy(self) -> bool:
        """Returns true if others used the machine, or, where unrecorded, had just used it."""
        if self.others_percent is not None:
            return self.others_percent > SHARED
        load = self.machine["load_average"].split()
        return bool(load) and float(load[0]) > float(self.machine["processors"] or 1)

    @property
    def doubts(self) -> list[str]:
        found = []
        planned = self.threats.get("planned", {"value": "0", "of": "0"})
        made, of = float(planned["value"]), float(planned["of"])
        if made < of:
            found.append(f"unfinished, {thousands(made)} of {thousands(of)} planned runs")
        invalid = self.threats.get("invalid", {"value": "0", "of": "0"})
        if float(invalid["value"]):
            bad, all_runs = float(invalid["value"]), float(invalid["of"])
            found.append(
                f"{thousands(bad)} of {thousands(all_runs)} runs were invalid, and are left out"
            )
        if self.others_percent is not None and self.is_busy:
            found.append(f"other programs had {self.others_percent:g}% of the processors")
        if self.others_percent is None:
            found.append(self._unrecorded())
        stolen = self.threats.get("stolen", {}).get("value", "-")
        if stolen != "-" and float(stolen) >= STOLEN:
            found.append(f"other machines of the host had {stolen}% of the processors")
        if " --quick" in self.machine["command"]:
            found.append("a quick run")
        if self.kept.startswith("its commit"):
            found.append(self.kept)
        if self.machine["link"]:
            found.append(f"over a link, {self.machine['link']}")
        return found

    def _unrecorded(self) -> str:
        text = "what else ran was not recorded"
        if self.is_busy:
            load, count = self.machine["load_average"].split()[0], self.machine["processors"]
            noun = "processor" if count == "1" else "processors"
            busy = f"load average {float(load):g} on {count} {noun}"
            text += f", and the machine was busy before ({busy})"
        return text

    def refusal(self) -> str:
        """Returns the condition of publishing that this run does not meet; empty if none."""
        if self.others_percent is None:
            return "what else ran was not recorded"
        if self.others_percent > SHARED:
            return f"other programs had {self.others_percent:g}% of the processors"
        commit = self.machine["project_commit"]
        if not commit:
            return "its commit was not recorded"
        return f"its commit {commit} is not in the history" if in_history(commit) is False else ""


def _git(*words: str) -> bool:
    command = ["git", "-C", str(PROJECT), *words]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@cache
def knows_history() -> bool:
    """Returns true where git knows the history of this project."""
    return _git("rev-parse", "HEAD")


def in_history(commit: str) -> bool | None:
    """Returns true if a commit is an ancestor of the present one; None where git cannot tell."""
    return _git("merge-base", "--is-ancestor", commit, "HEAD") if knows_history() else None


# The beginnings of paragraphs of an abstract that are no part of the answer: the question, a
# figure, the claims, the cells that the client limits, a machine that was not quiet.
ASIDE = ("> ", "![", "[Claims]", "In ", "**Run it again ")


def abstract_of(report: str) -> tuple[str, list[str]]:
    """The question and the paragraphs of the answer in the abstract of a report."""
    section = report.partition("\n## Abstract\n")[2].partition("\n## ")[0]
    paragraphs = [p.strip() for p in section.split("\n\n") if p.strip()]
    question = next((p[2:] for p in paragraphs if p.startswith("> ")), "")
    if any(p.startswith("**Part ") for p in paragraphs):
        return question, []
    return question, [p for p in paragraphs if not p.startswith(ASIDE)]


def find_published(reports: Path) -> list[Published]:
    """Returns all published runs below a folder, by study."""
    kept = kept_runs(reports)
    found = []
    for folder in sorted(path.parent for path in reports.glob("*/*/report.md")):
        path = folder.relative_to(reports).as_posix()
        found.append(Published(folder.parent.name, folder, path, kept.get(path, "")))
    return found


def kept_runs(reports: Path) -> dict[str, str]:
    """Returns the condition that a run does not meet, for each that is kept nevertheless."""
    if not (reports / KEPT).exists():
        return {}
    return {row["run"]: row["why"] for row in read_table(reports / KEPT).rows}


def check_published(reports: Path, runs: list[Published]) -> None:
    """Fails where a run must not be published, and where an exception is not as it is written."""
    for path in sorted(set(kept_runs(reports)) - {run.path for run in runs}):
        fail(f"{reports / KEPT} names {path}, which is not there")
    for run in runs:
        why = run.refusal()
        if why and not run.kept:
            fail(f"report/{run.path} cannot be published: {why}; measure it again")
        if run.kept and why != run.kept and knows_history():
            fail(f"{reports / KEPT} says of {run.path}: {run.kept}; it should say: {why or '-'}")
