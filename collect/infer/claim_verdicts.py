"""The findings of a study on the parts of a claim, and the verdicts on it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from collect.infer import contrast
from collect.infer.claims_file import LOG, Claim, Rule
from collect.infer.contrast import Result
from collect.infer.statistics import clumped_interval, share_interval, t_test
from collect.readable_numbers import estimate_text, human, percent_text

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
CANNOT_TELL = "cannot tell"
NOT_TESTABLE = "not testable here"

# Of a supposed cause.
CONFIRMED = "confirmed"
POSSIBLE = "a possible cause"
NOT_CONFIRMED = "not confirmed"

# The kinds of parts. Those of the supposed cause begin with `reading`. Asides are shown and cannot
# confirm anything: another tool, or a step on the way to the effect. Controls must hold as well.
CLAIM, CLAIM_ASIDE = "claim", "claim aside"
READING, READING_ASIDE, READING_CONTROL = "reading", "reading aside", "reading control"

# Nobody measures more rounds or blocks, and the spread of fewer is not known.
FEW_UNITS, MOST_UNITS = 6, 1000
FOUR_IN_FIVE = 0.84  # standard errors below which an estimate is in four of five studies
# The side of a ratio that the client limits, in words.
LIMITED_SIDES = {
    contrast.NUMERATOR: "the first",
    contrast.DENOMINATOR: "the second",
    contrast.BOTH: "both",
}
WIDEST = 4.0  # an interval of a ratio that spans more than this factor has no power


@dataclass(frozen=True)
class Finding:
    """The result of one part of a claim, before it is judged."""

    kind: str
    tested: str
    rule: str  # its name in claims.toml
    scale: str = "ratio"  # ratio, share, or a unit; LOG before a unit
    result: Result | None = None
    count: int = 0  # without a result: the number of events
    of: int = 0  # the number of runs that they are from
    dispersion: float = 1.0  # their variance from run to run by their mean
    untestable: str = ""
    pooled: bool = False  # over several studies
    limited_share: str = ""  # how many of several cells the client limits, in words

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Returns the interval of the estimate on the scale of the rule."""
        if self.result is None:
            if self.scale == "share":
                return share_interval(self.count, self.of, confidence)
            return clumped_interval(self.count, self.of, self.dispersion, confidence)
        if self._is_log:
            return self.result.ratio_interval(confidence)
        return self.result.test.interval(confidence)

    def estimate(self) -> float:
        if self.result is None:
            return self.count / self.of
        return self.result.ratio if self._is_log else self.result.test.estimate

    @property
    def _is_log(self) -> bool:
        return self.scale == "ratio" or self.scale.startswith(LOG)

    @property
    def limited(self) -> str:
        """Returns the side of the ratio that the client limits; empty for none."""
        return self.result.limited if self.result else ""

    @property
    def has_power(self) -> bool:
        """Returns false for a ratio whose interval spans more than a factor of four."""
        if self.result is None or self.scale != "ratio":
            return True
        low, high = self.result.test.interval()
        return high - low <= math.log(WIDEST)


@dataclass(frozen=True)
class Part:
    """A part of a claim with its verdict."""

    finding: Finding
    rule: Rule
    low: float
    high: float
    verdict: str
    widened: float = 0.0  # the confidence on which it rests, where that of 95% would tell
    needed: int = 0  # if it cannot tell: the units that would, if the estimate stays; 0: unknown

    def found(self) -> str:
        """The estimate with its interval, in words."""
        finding = self.finding
        if finding.result is None:
            interval = f"{percent_text(self.low)} to {percent_text(self.high)}"
            if finding.scale == "share":
                return f"{finding.count} of {finding.of} ({interval})"
        value = finding.estimate()
        if finding.scale == "ratio":
            text = estimate_text(value, self.low, self.high)
        else:
            unit = f" {finding.scale.removeprefix(LOG)}" if finding.scale else ""
            text = f"{human(value)}{unit} ({human(self.low)} to {human(self.high)})"
        return text + self._deciding() + self._limited()

    def _limited(self) -> str:
        """Which sides of the ratio the client limits, if any, and in how many cells."""
        if not self.finding.limited:
            return ""
        share = self.finding.limited_share
        sides = LIMITED_SIDES[self.finding.limited]
        return f"; the load generator limits {sides}" + (f" in {share}" if share else "")

    def _deciding(self) -> str:
        """The interval on which the verdict rests, where it is not that of 95%."""
        confidence = self.widened or (_of_two_tests(0.95) if self.rule.rule == "within" else 0)
        if not confidence:
            return ""
        low, high = self.finding.interval(confidence)
        span = f"{low:.3f} to {high:.3f}"
        if self.finding.scale != "ratio":
            span = f"{human(low)} to {human(high)}"
        return f"; {100 * confidence:.3g}% interval {span}"


@dataclass(frozen=True)
class Judged:
    """A claim with its parts; the verdict is empty where no part tests the claim itself."""

    claim: Claim
    parts: tuple[Part, ...]
    verdict: str
    cause: str  # the verdict on the supposed cause, empty without a test
    note: str


def judge(rule: Rule, finding: Finding, holds: float = 0.95, fails: float = 0.95) -> str:
    """Returns the verdict on one part, by the confidence that it holds and that it fails.

    A margin on both sides is an equivalence test: two one-sided tests at 5% each, so that the 90%
    interval must lie within the margins. Where the client limits one side of a ratio, the ratio is
    known as an upper or a lower bound alone; where it limits both, nothing is known.
    """
    if finding.untestable:
        return NOT_TESTABLE
    if rule.strict:
        refuted = finding.count > 0 if rule.rule == "below" else finding.count < finding.of
        if refuted:
            return NOT_REPRODUCED
    low, high = finding.interval(fails)
    if _meets(rule, finding, holds):
        return REPRODUCED if _is_known(finding, *ENDS[rule.rule]) else CANNOT_TELL
    if not _misses(rule, low, high):
        return CANNOT_TELL
    is_above = rule.rule in ("behind", "below") or (rule.rule == "within" and low > rule.high)
    return NOT_REPRODUCED if _is_known(finding, is_above, not is_above) else CANNOT_TELL


def units_needed(rule: Rule, finding: Finding, holds: float = 0.95, fails: float = 0.95) -> int:
    """Returns how many rounds or blocks would tell in four of five studies, if the truth is what
    was estimated: MOST_UNITS if these would not; 0 where more of them do not help, or nobody
    knows. The spread between studies does not shrink with their rounds."""
    if (
        finding.result is None
        or finding.limited
        or finding.pooled
        or finding.result.test.error <= 0
    ):
        return 0
    known = finding.result

    def verdict(units: int, off: float) -> str:
        error = known.test.error * math.sqrt(known.blocks / units)
        test = t_test(known.test.estimate + off * error, error, units - 1)
        narrower = replace(finding, result=replace(known, test=test, blocks=units))
        return judge(rule, narrower, holds, fails)

    def tells(units: int) -> bool:
        found = {verdict(units, off) for off in (-FOUR_IN_FIVE, FOUR_IN_FIVE)}
        return len(found) == 1 and CANNOT_TELL not in found

    if not tells(MOST_UNITS):
        return MOST_UNITS
    least = min(max(known.blocks, FEW_UNITS), MOST_UNITS)
    return bisect_left(range(MOST_UNITS), True, lo=least, key=tells)


# Does a rule that is met bound the lower end of the interval? Does it bound the upper end?
ENDS = {
    "ahead": (True, False),
    "above": (True, False),
    "behind": (False, True),
    "below": (False, True),
    "within": (True, True),
}


def _is_known(finding: Finding, of_low: bool, of_high: bool) -> bool:
    """Returns true if the limits of the client leave the ends known on which a verdict rests."""
    match finding.limited:
        case "":
            return True
        case contrast.NUMERATOR:
            return not of_high
        case contrast.DENOMINATOR:
            return not of_low
    return False


def _of_two_tests(confidence: float) -> float:
    """Returns the confidence of the interval that two one-sided tests make."""
    return 2 * confidence - 1


def _meets(rule: Rule, finding: Finding, confidence: float) -> bool:
    low, high = finding.interval(confidence)
    match rule.rule:
        case "ahead":
            return low > 1
        case "behind":
            return high < 1
        case "above":
            return low > rule.low
        case "below":
            return high < rule.high
    low, high = finding.interval(_of_two_tests(confidence))
    return low >= rule.low and high <= rule.high


def _misses(rule: Rule, low: float, high: float) -> bool:
    match rule.rule:
        case "ahead":
            return high < 1.01
        case "behind":
            return low > 1 / 1.01
        case "above":
            return high < rule.low
        case "below":
            return low > rule.high
    return high < rule.low or low > rule.high


def judge_claim(claim: Claim, findings: Iterable[Finding], unmet: str = "") -> Judged:
    """Judges a claim. `unmet` says what the study lacks to test it, if anything.

    Where all parts must hold, each is tested at the full level to hold (intersection-union), and
    at a level divided by their number to fail, since one failure is enough. Where one part is
    enough, it is the other way round. A part without power is not shown, and cannot tell.
    """
    findings = list(findings)
    tests = {kind: sum(f.kind == kind and f.result is not None for f in findings) for kind in KINDS}
    parts = []
    verdicts: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for finding in findings:
        levels = [0.95, 1 - 0.05 / max(tests[finding.kind], 1)]
        rule = claim.rules[finding.rule]
        levels = levels[::-1] if claim.any else levels
        verdict = judge(rule, finding, *levels)
        if unmet:
            verdict = NOT_TESTABLE
        verdicts[finding.kind].append(verdict)
        if finding.has_power or verdict != CANNOT_TELL:
            open_part = verdict == CANNOT_TELL
            needed = units_needed(rule, finding, *levels) if open_part else 0
            would_tell = open_part and judge(rule, finding) != CANNOT_TELL
            widened = max(levels) if would_tell else 0.0
            parts.append(Part(finding, rule, *finding.interval(), verdict, widened, needed))
    left_out = len(findings) - len(parts)
    verdict = combine(verdicts[CLAIM], claim.any)
    cause = judge_cause(claim, verdicts, verdict)
    note = unmet
    if left_out:
        parts_text = "1 part is" if left_out == 1 else f"{left_out} parts are"
        note = f"{parts_text} left out: the interval spans more than a factor of {WIDEST:g}"
    return Judged(claim, tuple(parts), verdict, cause, note)


KINDS = (CLAIM, CLAIM_ASIDE, READING, READING_ASIDE, READING_CONTROL)


def combine(verdicts: Sequence[str], one_is_enough: bool) -> str:
    """Returns the verdict on a claim from those on its parts, empty without parts."""
    if not verdicts:
        return ""
    if all(verdict == NOT_TESTABLE for verdict in verdicts):
        return NOT_TESTABLE
    if one_is_enough:
        if REPRODUCED in verdicts:
            return REPRODUCED
        return NOT_REPRODUCED if set(verdicts) == {NOT_REPRODUCED} else CANNOT_TELL
    if NOT_REPRODUCED in verdicts:
        return NOT_REPRODUCED
    return REPRODUCED if set(verdicts) == {REPRODUCED} else CANNOT_TELL


def judge_cause(claim: Claim, of_kind: Mapping[str, Sequence[str]], effect: str) -> str:
    """Returns the verdict on the supposed cause of a claim, empty without a test.

    It is confirmed only if it moves the effect itself, by the reported size, with the tool that was
    used, and nothing happens without it.
    """
    readings, asides = of_kind[READING], of_kind[READING_ASIDE]
    if not readings and not asides:
        return ""
    if claim.cause_needs_effect and effect != REPRODUCED:
        return CANNOT_TELL if effect == CANNOT_TELL else NOT_TESTABLE
    controlled = set(of_kind[READING_CONTROL]) <= {REPRODUCED}
    if combine(readings, claim.any) == REPRODUCED and controlled:
        return CONFIRMED
    if REPRODUCED in readings or REPRODUCED in asides:
        return POSSIBLE
    return NOT_CONFIRMED if NOT_REPRODUCED in readings else CANNOT_TELL
