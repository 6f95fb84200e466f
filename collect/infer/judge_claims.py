"""claims.tsv: the verdict of this machine on each claim that a study tests."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pandas as pd

from collect.infer import (
    claims_documents_proxy,
    claims_idle_slow_crash,
    claims_models,
    claims_protocols,
)
from collect.infer.cells import Cells
from collect.infer.claim_verdicts import (
    CLAIM,
    NOT_TESTABLE,
    READING,
    Finding,
    Judged,
    Part,
    judge_claim,
)
from collect.infer.claims_file import Claim, Wording, read_wording
from collect.tables import number

COLUMNS = [
    "claim", "source", "quote", "part", "kind", "tested", "found", "low", "high", "verdict",
    "blocks", "unit", "rule", "reason", "scale", "estimate", "error", "df", "count", "of",
    "dispersion", "limited", "needed",
]  # fmt: skip
Test = Callable[[Cells], list[Finding]]

TESTS: dict[str, Test] = {
    **claims_models.TESTS,
    **claims_documents_proxy.TESTS,
    **claims_protocols.TESTS,
    **claims_idle_slow_crash.TESTS,
}


def judge_study(data: Cells, wording: Wording | None = None) -> pd.DataFrame:
    """Returns the verdicts on all claims of a study, each with its parts."""
    wording = wording or read_wording()
    rows: list[dict[str, str]] = []
    for name in wanted(data):
        claim = wording.claims.get(name, Claim(name))
        if name not in TESTS:
            rows.append(
                _verdict_row(claim, CLAIM, NOT_TESTABLE, "no test of this claim is written")
            )
            continue
        judged = judge_claim(claim, TESTS[name](data), _unmet(data, claim))
        rows += _rows(judged, data.unit)
    return pd.DataFrame(rows, columns=COLUMNS)


def wanted(data: Cells) -> list[str]:
    """Returns the claims of a study; one that names a server twice also answers for A/A."""
    named = [name for name in data.study.claims if name not in ("none", "-")]
    twice = any(re.search(r"~[0-9]+$", server) for server in data.levels["server"])
    return [*named, "A/A"] if twice and "A/A" not in named else named


def _unmet(data: Cells, claim: Claim) -> str:
    """Says why a study cannot test a claim, if it lacks what the claim needs."""
    met = all(_offered(data, name) >= least for name, least in claim.needs.items())
    return "" if met else claim.needs_reason


def _offered(data: Cells, name: str) -> float:
    """Returns the most that a study has of a factor; of `delay`, milliseconds of its link."""
    if name == "delay":
        delay = re.search(r"delay ([0-9.]+) ?ms", data.machine.get("link", ""))
        return float(delay[1]) if delay else 0.0
    return max(float(value) for value in data.levels[name])


def _rows(judged: Judged, unit: str) -> list[dict[str, str]]:
    claim = judged.claim
    if not judged.verdict and not judged.cause:
        note = judged.note or "this study has no data for it"
        return [_verdict_row(claim, CLAIM, NOT_TESTABLE, note, "nothing")]
    needed = "one of the parts is enough" if claim.any else "all parts are needed"
    if judged.verdict:
        rows = [_verdict_row(claim, CLAIM, judged.verdict, judged.note, needed)]
        if judged.cause:
            rows.append(
                _verdict_row(claim, READING, judged.cause, "", "the supposed cause", "cause")
            )
    else:
        rows = [_verdict_row(claim, READING, judged.cause, judged.note, needed)]
    return rows + [_part_row(claim, str(i), part, unit) for i, part in enumerate(judged.parts, 1)]


def _verdict_row(
    claim: Claim, kind: str, verdict: str, note: str, tested: str = "nothing", part: str = "all"
) -> dict[str, str]:
    row = dict.fromkeys(COLUMNS, "-")
    head = {"claim": claim.name, "source": claim.source, "quote": claim.said, "part": part}
    return row | head | {"kind": kind, "tested": tested, "found": note, "verdict": verdict}


def _part_row(claim: Claim, place: str, part: Part, unit: str) -> dict[str, str]:
    finding = part.finding
    test = finding.result.test if finding.result else None
    scale = finding.scale or "-"
    figures = (test.estimate, test.error, test.df) if test else (math.nan,) * 3
    return {
        "claim": claim.name,
        "source": claim.source,
        "quote": claim.said,
        "part": place,
        "kind": finding.kind,
        "tested": f"{finding.tested}: {part.rule.text(finding.scale)}",
        "found": part.found() + (f"; {finding.untestable}" if finding.untestable else ""),
        "low": number(part.low),
        "high": number(part.high),
        "verdict": part.verdict,
        "blocks": str(finding.result.blocks) if finding.result else "-",
        "unit": unit if finding.result else "-",
        "rule": finding.rule,
        "reason": part.rule.reason,
        "scale": scale,
        **dict(zip(("estimate", "error", "df"), map(_precise, figures), strict=True)),
        "count": "-" if test else str(finding.count),
        "of": "-" if test else str(finding.of),
        "dispersion": "-" if test or finding.scale == "share" else number(finding.dispersion),
        "limited": finding.limited or "-",
        "needed": str(part.needed) if part.needed else "-",
    }


def _precise(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.12g}"
