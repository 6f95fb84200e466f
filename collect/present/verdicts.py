"""The words of a verdict, their signs, and how a page colours them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """A verdict: its sign, its class in a page, and what it says of a supposed cause."""

    sign: str
    css: str
    of_cause: str = ""


VERDICTS = {
    "reproduced": Verdict("✓", "holds"),
    "not reproduced": Verdict("✗", "fails"),
    "cannot tell": Verdict("?", "open"),
    "not testable here": Verdict("–", "open"),
    "confirmed": Verdict("✓", "holds"),
    "a possible cause": Verdict("?", "open"),
    "not confirmed": Verdict("✗", "fails"),
    "answered by tests": Verdict("§", "open"),
    "not measured yet": Verdict("–", "open", "not tested yet"),
}
UNKNOWN = Verdict("–", "open")


def words() -> list[str]:
    """The verdicts, the longer ones first."""
    return sorted(VERDICTS, key=len, reverse=True)


def class_of(verdict: str) -> str:
    return VERDICTS.get(verdict, UNKNOWN).css


def sign_of(verdict: str) -> str:
    return VERDICTS.get(verdict, UNKNOWN).sign


def cause_word(verdict: str) -> str:
    """Returns the word for a verdict on a supposed cause."""
    return VERDICTS.get(verdict, UNKNOWN).of_cause or verdict
