"""The page trust.md: what was tried, how often, what happened, and how to run it again."""

from __future__ import annotations

from trials.table import Kept
from trials.trial import PROJECT, Trial

FUZZED = PROJECT / "tests/corpora/figures.tsv"
PEERS = {"nginx", "lighttpd", "apache"}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(rows: list[Kept]) -> list[str]:
    """A line for each server and case; the measures of one case side by side."""
    lines = [
        "| server | tried | times | what happened | limit | |",
        "| --- | --- | ---: | --- | --- | --- |",
    ]
    for one in rows:
        row = one.row
        verdict = {"pass": "passed", "FAIL": "**exceeded**", "skip": "not tried", "": ""}[
            row.verdict
        ]
        happened = row.value if row.verdict == "skip" else f"{row.value} {row.measure}"
        words = [row.server, row.case, row.times, happened, row.limit, verdict]
        lines.append("| " + " | ".join(map(_cell, words)) + " |")
    return lines


def _summary(trials: list[Trial], kept: list[Kept], machines: list[str]) -> list[str]:
    lines = [
        "| trial | limits kept | exceeded | peers | date, commit, seconds, where |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    for trial in trials:
        rows = [one for one in kept if one.trial == trial.name]
        if not rows:
            continue
        count = {word: sum(one.row.verdict == word for one in rows) for word in ("pass", "FAIL")}
        peers = dict.fromkeys(one.row.server for one in rows if one.row.server in PEERS)
        one = rows[-1]
        lines.append(
            f"| [{trial.title}](#{trial.title.lower().replace(' ', '-')}) | {count['pass']} | "
            f"{count['FAIL']} | {', '.join(peers)} | {one.date}, `{one.commit}`, {one.seconds} s, "
            f"machine {machines.index(one.machine) + 1} |"
        )
    return lines


def _fuzzing() -> list[str]:
    """What the fuzzers did in all, on machines of any time."""
    rows = [line.split("\t") for line in FUZZED.read_text().splitlines()[1:]]
    lines = [
        "## Fuzzing", "",
        "What the fuzzers (`tests/fuzz_*.c`) have done in all, with AddressSanitizer and "
        "UndefinedBehaviorSanitizer. An edge is a branch of the compiled code.", "",
        "| target | engine | CPU time | executions | edges covered | inputs kept | findings |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for target, engine, seconds, executions, edges, inputs, findings in rows:
        words = [target, engine, f"{int(seconds) / 3600:.2f} h", f"{int(executions):,}"]
        lines.append("| " + " | ".join([*words, edges, inputs, findings]) + " |")
    return [*lines, "", "Again: `make fuzz TIME=60`", ""]


def make(trials: list[Trial], kept: list[Kept], *, quick: bool) -> str:
    """Makes the page from the rows that there are."""
    lines = ["# Trust: what the servers were put through", ""]
    machines = list(dict.fromkeys(one.machine for one in kept))
    lines += ["Made by `tests/trust` from its table `trust.tsv`.", ""]
    lines += [f"- machine {number}: {machine}" for number, machine in enumerate(machines, 1)]
    lines += [""]
    if quick:
        lines += ["**The short form: few repetitions, and no times are judged.**", ""]
    lines += [*_summary(trials, kept, machines), ""]
    for trial in trials:
        rows = [one for one in kept if one.trial == trial.name]
        if not rows:
            continue
        lines += [f"## {trial.title}", "", trial.tried, "", trial.counted, ""]
        lines += [trial.peers, ""] if trial.peers else []
        lines += [*_table(rows), "", f"Again: `tests/trust --only {trial.name}`", ""]
    lines += _fuzzing()
    return "\n".join(lines)
