"""Several studies of one thing, pooled by random effects and not counted as votes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from collect.infer.claim_verdicts import NOT_TESTABLE, Finding, Judged, judge_claim
from collect.infer.claims_file import Wording
from collect.infer.contrast import BOTH, Result
from collect.infer.statistics import Test, Values, t_test

LIMITED = re.compile(r" \([^()]*limited by the load generator\)$")


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
    Two studies cannot tell their own spread: their interval has the degrees of freedom of their
    errors (Welch and Satterthwaite), or is normal if these are not given.
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
    """The degrees of freedom of a mean that is weighted by errors with these."""
    if len(freedoms) == 0:
        return math.inf
    weights = 1 / (variances + tau2)
    shares = (weights / np.sum(weights)) ** 2 * (variances + tau2)
    return float(np.sum(shares) ** 2 / np.sum(shares**2 / np.array(freedoms)))


@dataclass(frozen=True)
class PooledClaim:
    """A claim over all studies that test it."""

    judged: Judged
    studies: tuple[str, ...]
    pooled: Mapping[str, Pooled]  # by what a part tests; those of several studies alone


def pool_claims(tables: Mapping[str, pd.DataFrame], wording: Wording) -> dict[str, PooledClaim]:
    """Returns the verdicts on all claims over several studies, from their claims.tsv.

    Parts that test the same thing in several studies are pooled; all others are taken as they are.
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
    subjects = parts["tested"].map(lambda text: LIMITED.sub("", _without_rule(text)))
    findings, pooled = [], {}
    for subject, group in parts.groupby([parts["kind"], parts["rule"], subjects], sort=False):
        finding, several = _pool_part(str(subject[2]), group)
        findings.append(finding)
        if several:
            pooled[str(subject[2])] = several
    judged = judge_claim(wording.claims[name], findings, unmet)
    return PooledClaim(judged, tuple(dict.fromkeys(rows["study"])), pooled)


def _without_rule(tested: str) -> str:
    return re.sub(r": (ratio )?(above|below|within) [^:]*$", "", tested)


def _pool_part(subject: str, rows: pd.DataFrame) -> tuple[Finding, Pooled | None]:
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
    return Finding(kind, subject, rule, scale, result, untestable=untestable), pooled


def _limited(rows: pd.DataFrame) -> str:
    """Returns the side that the client limits in any of these studies."""
    found = {str(side) for side in rows.get("limited", [])} - {"-"}
    return found.pop() if len(found) == 1 else BOTH if found else ""
