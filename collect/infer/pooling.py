"""Several studies of one thing, pooled by random effects and not counted as votes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from collect.infer.claim_verdicts import (
    CANNOT_TELL,
    NOT_TESTABLE,
    Finding,
    Judged,
    judge_claim,
)
from collect.infer.claims_file import Wording
from collect.infer.contrast import BOTH, Result
from collect.infer.statistics import Test, Values, t_test


@dataclass(frozen=True)
class Pooled:
    """The mean of several estimates, with how far apart these are."""

    studies: int
    test: Test
    heterogeneity: float  # I2: the share of the variation that is not within the studies
    tau: float  # standard deviation between the studies
    q_p: float  # the p-value of the test for no heterogeneity (Cochran's Q)

    def prediction(self, confidence: float = 0.95) -> tuple[float, float]:
        """Returns where the effect of another study is expected (Higgins and others, 2009)."""
        freedom = max(self.studies - 2, 1)
        spread = math.hypot(self.tau, self.test.error)
        half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * spread
        return self.test.estimate - half, self.test.estimate + half


def pool(
    estimates: Sequence[float], errors: Sequence[float], freedoms: Sequence[float] = ()
) -> Pooled:
    """Pools two or more estimates with their standard errors by random effects.

    The spread between studies is that of Paule and Mandel. From three studies on, the interval is
    that of Hartung, Knapp, Sidik and Jonkman, but never narrower than without their correction.
    For two studies, the spread between them has one degree of freedom, and their errors have their
    own; those of the mean follow from what each adds to its variance (Satterthwaite).
    """
    variances: Values = np.square(np.maximum(np.array(errors), 1e-12))
    with np.errstate(divide="ignore"):  # its I2, where the estimates are all the same
        found = combine_effects(np.array(estimates), variances, method_re="iterated")
    tau2 = max(0.0, float(found.tau2))
    studies = len(estimates)
    homogeneity = found.test_homogeneity()
    q = float(homogeneity.statistic)
    error = math.sqrt(1 / float(np.sum(1 / (variances + tau2))))
    if studies > 2:
        error = max(error, math.sqrt(float(found.var_hksj_re)))
    df = studies - 1 if studies > 2 else _freedom(variances, tau2, freedoms)
    return Pooled(
        studies,
        t_test(float(found.mean_effect_re), error, df),
        max(0.0, 1 - (studies - 1) / q) if q > 0 else 0.0,
        math.sqrt(tau2),
        float(homogeneity.pvalue),
    )


def _freedom(variances: Values, tau2: float, freedoms: Sequence[float]) -> float:
    """The degrees of freedom of the mean of two studies whose errors have these; without them the
    errors are known."""
    weights = 1 / (variances + tau2)
    squares = (weights / np.sum(weights)) ** 2
    within, between = squares * variances, float(np.sum(squares)) * tau2
    known = np.array(freedoms) if len(freedoms) > 0 else np.full(len(variances), math.inf)
    lost = float(np.sum(within**2 / known)) + between**2
    return (float(np.sum(within)) + between) ** 2 / lost if lost > 0 else math.inf


@dataclass(frozen=True)
class PooledClaim:
    """A claim over all studies that test it."""

    judged: Judged
    studies: tuple[str, ...]
    pooled: Mapping[str, Pooled]  # by what a part tests; those of several studies alone
    each_alone: bool = False  # the verdict is that of each of two studies


def pool_claims(tables: Mapping[str, pd.DataFrame], wording: Wording) -> dict[str, PooledClaim]:
    """Returns the verdicts on all claims over several studies, from their claims.tsv.

    Parts that test the same thing in several studies are pooled; all others are taken as they are.
    Two studies can hardly tell the spread between studies: where that leaves a claim open, and each
    of the two comes to the same verdict by itself, that is the verdict.
    """
    rows = [table.assign(study=name) for name, table in tables.items() if len(table)]
    if not rows:
        return {}
    whole = pd.concat(rows, ignore_index=True)
    claims = [name for name in wording.claims if name in set(whole["claim"])]
    return {name: _pool_claim(name, whole[whole["claim"] == name], wording) for name in claims}


def _pool_claim(name: str, rows: pd.DataFrame, wording: Wording) -> PooledClaim:
    verdicts = rows[rows["part"] == "all"]
    testable = set(verdicts.loc[verdicts["verdict"] != NOT_TESTABLE, "study"])
    unmet = "" if testable else str(verdicts["found"].iloc[0])
    parts = rows[rows["part"].str.isdigit()]
    if testable:
        parts = parts[parts["study"].isin(testable)]
    subjects = parts["tested"].map(_without_rule)
    findings, pooled = [], {}
    for subject, group in parts.groupby([parts["kind"], parts["rule"], subjects], sort=False):
        finding, several = _pool_part(str(subject[2]), group)
        findings.append(finding)
        if several:
            pooled[str(subject[2])] = several
    judged = judge_claim(wording.claims[name], findings, unmet)
    own = set(verdicts.loc[verdicts["study"].isin(testable), "verdict"])
    each_alone = judged.verdict == CANNOT_TELL and len(testable) == 2 and len(own - {""}) == 1
    if each_alone:
        judged = replace(judged, verdict=str(own.pop()))
    each_alone = each_alone and judged.verdict != CANNOT_TELL
    return PooledClaim(judged, tuple(dict.fromkeys(rows["study"])), pooled, each_alone)


def _without_rule(tested: str) -> str:
    return re.sub(r": (ratio )?(above|below|within) [^:]*$", "", tested)


def _pool_part(subject: str, rows: pd.DataFrame) -> tuple[Finding, Pooled | None]:
    if (rows["verdict"] != NOT_TESTABLE).any():
        rows = rows[rows["verdict"] != NOT_TESTABLE]
    first = rows.iloc[0]
    scale = "" if first["scale"] == "-" else str(first["scale"])
    untestable = str(first["found"]) if (rows["verdict"] == NOT_TESTABLE).all() else ""
    kind, rule = str(first["kind"]), str(first["rule"])
    if first["estimate"] == "-":
        count, of = (int(pd.to_numeric(rows[column]).sum()) for column in ("count", "of"))
        clumped = pd.to_numeric(rows.get("dispersion", pd.Series("-", rows.index)), errors="coerce")
        dispersion = float(clumped.fillna(1.0).max())
        return Finding(kind, subject, rule, scale, None, count, of, dispersion, untestable), None
    numbers = rows[["estimate", "error", "df"]].apply(pd.to_numeric)
    units = int(pd.to_numeric(rows["blocks"]).sum())
    if len(rows) == 1:
        test = t_test(*(float(value) for value in numbers.iloc[0]))
        result = Result(test, units, np.zeros(0), limited=_limited(rows))
        return Finding(kind, subject, rule, scale, result, untestable=untestable), None
    pooled = pool(*(list(numbers[name]) for name in ("estimate", "error", "df")))
    result = Result(pooled.test, units, np.zeros(0), limited=_limited(rows))
    several = Finding(kind, subject, rule, scale, result, untestable=untestable, pooled=True)
    return several, pooled


def _limited(rows: pd.DataFrame) -> str:
    """Returns the side that the client limits in any of these studies."""
    found = {str(side) for side in rows.get("limited", [])} - {"-"}
    return found.pop() if len(found) == 1 else BOTH if found else ""
