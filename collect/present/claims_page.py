"""The pages of all claims, with what the published studies found: claims.md and claims.html."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field

from markupsafe import Markup

from collect.infer.claims_file import Claim, Wording, read_wording
from collect.infer.pooling import PooledClaim, pool_claims
from collect.present import verdicts
from collect.present.published_runs import Published
from collect.present.report import ClaimPart, ClaimResult
from collect.present.templating import code, render_html, render_markdown
from collect.project import CLAIMS_FILE
from collect.tables import read_frame

NOT_MEASURED = "not measured yet"
ANSWERED = "answered by tests"
SHOWN, ALL_SHOWN = 3, 6  # parts that are not folded away
CLAIM_NAME = re.compile(r"\b[A-Z][A-Z0-9]*\.[0-9]+\b")


@dataclass(frozen=True)
class StudyResult:
    """The finding of one study on a claim or on its supposed cause."""

    run: Published
    verdict: str
    how: str
    note: str
    parts: tuple[ClaimPart, ...]

    def shown(self) -> list[ClaimPart]:
        """The parts that decide; all where they are few."""
        if len(self.parts) <= ALL_SHOWN:
            return list(self.parts)
        deciding = [p for p in self.parts if p.verdict == self.verdict and not p.is_aside]
        return (deciding or list(self.parts))[:SHOWN]

    def folded(self) -> list[ClaimPart]:
        shown = self.shown()
        return [part for part in self.parts if part not in shown]

    def tally(self) -> list[tuple[str, int]]:
        return list(Counter(p.verdict for p in self.parts if not p.is_aside).items())


@dataclass(frozen=True)
class PooledPart:
    """A part that several studies tested, pooled by random effects."""

    tested: str
    studies: int
    found: str
    heterogeneity: str


@dataclass
class Entry:
    """A claim with everything that is known of it."""

    claim: Claim
    report: str
    verdict: str = NOT_MEASURED
    cause_verdict: str = NOT_MEASURED
    results: list[StudyResult] = field(default_factory=list)
    cause_results: list[StudyResult] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    pooled: list[PooledPart] = field(default_factory=list)
    each_alone: bool = False

    @property
    def has_cause(self) -> bool:
        return bool(self.claim.cause or self.cause_results)


@dataclass
class Page:
    """All that the two pages of claims say."""

    wording: Wording
    entries: list[Entry]
    runs: list[Published]  # those that a finding is from

    def linked(self, words: str, entry: Entry) -> str:
        """Markdown in which the names of other claims lead to them."""
        return self._link(words, entry, "[{0}](#{0})")

    def linked_html(self, words: str, entry: Entry) -> Markup:
        return Markup(self._link(code(words), entry, '<a href="#{0}">{0}</a>'))

    def _link(self, words: str, entry: Entry, link: str) -> str:
        others = {other.claim.name for other in self.entries} - {entry.claim.name}
        return CLAIM_NAME.sub(
            lambda name: link.format(name[0]) if name[0] in others else name[0], words
        )

    def of_report(self, report: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.report == report]

    @property
    def counted(self) -> list[Entry]:
        """The claims of the reports."""
        return [entry for entry in self.entries if entry.report]

    def counts(self) -> dict[str, int]:
        return Counter(entry.verdict for entry in self.counted)

    def cause_counts(self) -> dict[str, int]:
        return Counter(entry.cause_verdict for entry in self.counted if entry.has_cause)

    @property
    def machines(self) -> list[str]:
        return list(dict.fromkeys(run.machine_text for run in self.runs if run.machine_text))

    @property
    def busy(self) -> list[Published]:
        return [run for run in self.runs if run.is_busy]


def claims_page(published: list[Published], tests: dict[str, list[str]]) -> Page:
    """Gathers all claims; `tests` has the studies that test each claim, published or not."""
    wording = read_wording()
    names = list(wording.claims)
    for run in published:
        names += [name for name in run.claims if name not in names]
    names += [name for name in tests if name not in names]
    tables = {run.path: read_frame(run.folder / CLAIMS_FILE) for run in published}
    together = pool_claims(tables, wording)
    entries = [
        _entry(name, wording, published, tests.get(name, []), together.get(name)) for name in names
    ]
    rests_on = {
        result.run for entry in entries for result in (*entry.results, *entry.cause_results)
    }
    return Page(wording, entries, [run for run in published if run in rests_on])


def _entry(
    name: str,
    wording: Wording,
    published: list[Published],
    studies: list[str],
    together: PooledClaim | None,
) -> Entry:
    known = [(run, run.claims[name]) for run in published if name in run.claims]
    claim = wording.claims.get(name) or _unknown_claim(name, known)
    entry = Entry(claim, wording.report_of(name))
    for run, result in known:
        if not result.is_cause:
            entry.results.append(_result(run, result, result.verdict, cause=False))
        cause = result.verdict if result.is_cause else result.cause_verdict
        if cause:
            entry.cause_results.append(_result(run, result, cause, cause=True))
    several = together if len(known) > 1 else None
    if entry.results:
        pooled = several.judged.verdict if several and len(entry.results) > 1 else ""
        entry.verdict = pooled or entry.results[0].verdict
    elif claim.answer:
        entry.verdict = ANSWERED
    if entry.cause_results:
        entry.cause_verdict = (several and several.judged.cause) or entry.cause_results[0].verdict
    if several:
        entry.pooled = [_pooled_part(several, tested) for tested in several.pooled]
        entry.each_alone = several.each_alone
    tested_by = {run.study for run, _ in known}
    entry.missing = [study for study in studies if study not in tested_by]
    return entry


def _pooled_part(several: PooledClaim, tested: str) -> PooledPart:
    pooled = several.pooled[tested]
    found = [part.found() for part in several.judged.parts if part.finding.tested == tested]
    share = f"{pooled.heterogeneity:.0%}"
    return PooledPart(tested, pooled.studies, found[0] if found else "too wide to tell", share)


def _unknown_claim(name: str, known: list[tuple[Published, ClaimResult]]) -> Claim:
    """A claim that claims.toml does not have: its words stand in a study."""
    if known:
        return Claim(name=name, source=known[0][1].source, quote=known[0][1].quote)
    return Claim(name=name)


def _result(run: Published, result: ClaimResult, verdict: str, cause: bool) -> StudyResult:
    parts = tuple(part for part in result.parts if part.is_cause == cause)
    return StudyResult(run, verdict, result.how, result.found, parts)


# --- an interval as a drawing ---

NUMBER = re.compile(r"-?[\d.,]+(?:e[+-]?\d+)?")


def _number(text: str) -> float:
    return float(text.replace(",", "").rstrip("."))


def rule_of(part: ClaimPart) -> tuple[str, str]:
    """Returns the tested part, and the rule it must meet."""
    if match := re.search(r": ((?:ratio )?(?:above|below|within) [^:]*)$", part.tested):
        return part.tested[: match.start()], match[1]
    return part.tested, ""


def drawing(part: ClaimPart) -> Markup:
    """The interval of a part beside the range where the claim would hold."""
    _, rule = rule_of(part)
    bounds = [_number(word) for word in NUMBER.findall(rule)]
    interval = re.search(r"\((-?[\d.,e+-]+)%? to (-?[\d.,e+-]+)%?\)", part.found)
    middle = NUMBER.match(part.found)
    if not bounds or not interval or not middle:
        return Markup("")
    low, high = _number(interval[1]), _number(interval[2])
    value = _number(middle[0])
    if not low <= value <= high:
        value = (low + high) / 2
    log = low > 0 and bounds[0] > 0

    def scaled(number: float) -> float:
        return math.log(number) if log else number

    first, last = scaled(min(low, bounds[0])), scaled(max(high, bounds[-1]))
    pad = (last - first) / 6 or 1.0

    def place(number: float) -> float:
        return 1 + (scaled(number) - first + pad) * 148 / (last - first + 2 * pad)

    left = 1.0 if "below" in rule else place(bounds[0])
    right = 149.0 if "above" in rule else place(bounds[-1])
    return Markup(
        '<svg class="strip" viewBox="0 0 150 18" width="150" height="18" aria-hidden="true">'
        f'<path class="axis" d="M1 9h148"/><rect class="band" x="{left:.1f}" y="1" '
        f'width="{right - left:.1f}" height="16"/><path class="bar" d="M{place(low) - 0.5:.1f} '
        f'9H{place(high) + 0.5:.1f}"/><circle cx="{place(value):.1f}" cy="9" r="4"/></svg>'
    )


# --- the pages ---


def markdown_page(page: Page) -> str:
    return render_markdown("claims.md.j2", page=page, v=verdicts, rule_of=rule_of)


def html_body(page: Page) -> str:
    return render_html("claims.html.j2", page=page, v=verdicts, rule_of=rule_of, drawing=drawing)
