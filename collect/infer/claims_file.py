"""Reads claims.toml: the claims, their authors, and the rules that a result must meet."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collect.readable_numbers import human

CLAIMS = Path(__file__).with_name("claims.toml")


# The prefix of the unit of a scale whose results are logarithms, as those of a ratio are.
LOG = "log "


WRITTEN_AFTER_DATA = (
    "the claim, written after a first sitting of the study, and judged from the next one on"
)


@dataclass(frozen=True)
class Rule:
    """The range of an estimate in which a part of a claim is reproduced, and the reason."""

    rule: str  # ahead, behind, above, below, within
    reason: str
    low: float = 0.0
    high: float = 0.0
    strict: bool = False  # one exception refutes it
    changed: str = ""  # after which results the rule was changed, and why

    def text(self, scale: str) -> str:
        """The rule in words; `scale` is "ratio", "share" or a unit, maybe with LOG before it."""
        if scale == "share":
            return f"below {self.high:.0%}" if self.rule == "below" else f"above {self.low:.0%}"
        unit = "" if scale in ("ratio", "") else f" {scale.removeprefix(LOG)}"
        ratio = "ratio " if scale == "ratio" else ""
        match self.rule:
            case "ahead":
                return "ratio above 1"
            case "behind":
                return "ratio below 1"
            case "above":
                return f"{ratio}above {human(self.low)}{unit}"
            case "below":
                return f"{ratio}below {human(self.high)}{unit}"
        return f"{ratio}within {human(self.low)} and {human(self.high)}{unit}"


@dataclass(frozen=True)
class Claim:
    """A claim: who made it, in which words, with which figures."""

    name: str
    source: str = "the design of a study"
    quote: str = "Its words stand in the study that tests it."
    figures: str = ""
    cause: str = ""
    cause_needs_effect: bool = False
    answer: str = ""
    written_after_data: bool = False  # of a first sitting, which does not judge it
    changed: str = ""  # after which results its words were changed, and why
    why: str = ""  # why their result may differ from ours: no test shows that
    any: bool = False
    needs: Mapping[str, float] = field(default_factory=dict)
    needs_reason: str = ""
    rules: Mapping[str, Rule] = field(default_factory=dict)

    @property
    def changes(self) -> list[str]:
        """The parts of the claim that were written, or changed, once there were results."""
        words = [WRITTEN_AFTER_DATA] if self.written_after_data else []
        words += [f"the words, {self.changed}"] if self.changed else []
        rules = dict.fromkeys(rule.changed for rule in self.rules.values() if rule.changed)
        return words + [f"the rule, {changed}" for changed in rules]

    @property
    def said(self) -> str:
        """The quote with the supposed cause behind it."""
        if not self.cause:
            return self.quote
        return f"{self.quote} Reading: {self.cause[0].lower()}{self.cause[1:]}"


@dataclass(frozen=True)
class Report:
    """A report whose claims begin with its name."""

    name: str
    title: str
    setup: str


@dataclass(frozen=True)
class Wording:
    """All reports and claims, in order."""

    reports: tuple[Report, ...]
    claims: Mapping[str, Claim]

    def report_of(self, claim: str) -> str:
        """Returns the name of the report that a claim is of, or an empty string."""
        names = (report.name for report in self.reports)
        return next((name for name in names if claim.startswith(f"{name}.")), "")


def read_wording(path: Path = CLAIMS) -> Wording:
    """Reads claims.toml."""
    with path.open("rb") as file:
        data = tomllib.load(file)
    reports = tuple(Report(**report) for report in data["report"])
    claims = [_claim(claim) for claim in data["claim"]]
    return Wording(reports, {claim.name: claim for claim in claims})


def _claim(data: dict[str, Any]) -> Claim:
    rules = {name: Rule(**rule) for name, rule in data.pop("rules", {}).items()}
    return Claim(rules=rules, **{key.replace("-", "_"): value for key, value in data.items()})
