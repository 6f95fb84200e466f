"""The page trust.md: what was tried, how often, what happened, and how to run it again."""

from __future__ import annotations

from trials.trial import PROJECT, Row, Trial
from trials.trust_table import Kept

FUZZED = PROJECT / "tests/corpora/figures.tsv"
PEERS = {"nginx", "lighttpd", "apache"}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _told(value: str) -> str:
    return f"{int(value):,}" if value.isdigit() else _cell(value)


def _limits(rows: list[Row]) -> dict[str, str]:
    """The limit of each measure; none where servers have different ones."""
    limits: dict[str, str] = {}
    for row in rows:
        if row.limit:
            limits[row.measure] = (
                row.limit if limits.get(row.measure, row.limit) == row.limit else ""
            )
    return limits


def _happened(row: Row | None, limits: dict[str, str]) -> str:
    """What stands in the table for a row: its value, and its own limit where the column has none."""
    if row is None:
        return ""
    told = _told(row.value)
    if row.limit and not limits[row.measure]:
        told += f" ({row.limit})"
    return f"**{told}: exceeded**" if row.verdict == "FAIL" else told


def _table(case: str, rows: list[Row]) -> list[str]:
    """A line for each server, a column for each measure."""
    measures = list(dict.fromkeys(row.measure for row in rows))
    values = {(row.server, row.measure): row for row in rows}
    times = {row.server: row.times for row in rows}
    alike = len(set(times.values())) == 1
    limits = _limits(rows)
    heads = ["server", *([] if alike else ["times"])]
    heads += [f"{one} ({limits[one]})" if limits.get(one) else one for one in measures]
    often = f", {_told(rows[0].times)} times" if alike and rows[0].times != "1" else ""
    lines = [f"**{case[:1].upper()}{case[1:]}**{often}:", ""]
    lines += ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for server, tries in times.items():
        words = [server, *([] if alike else [_told(tries)])]
        words += [_happened(values.get((server, one)), limits) for one in measures]
        lines.append("| " + " | ".join(words) + " |")
    return [*lines, ""]


def _tables(rows: list[Row]) -> list[str]:
    """A table for each case, and a line for each reason why something was not tried."""
    lines = []
    tried = [row for row in rows if row.verdict != "skip"]
    for case in dict.fromkeys(row.case for row in tried):
        lines += _table(case, [row for row in tried if row.case == case])
    left_out: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.verdict == "skip":
            left_out.setdefault((row.case, row.value), []).append(row.server)
    for (case, why), names in left_out.items():
        lines += [f"Not tried, {case}: {', '.join(names)}: {_cell(why)}.", ""]
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
    *rows, whole = rows
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
    lines += ["", f"In all {int(whole[2]) / 3600:.1f} h of CPU time.", ""]
    again = "`make fuzz TIME=60` runs each for a minute. `tests/fuzz --hours H` goes on until H hours of CPU time "
    again += "are used, and `tests/fuzz --record` adds them to this table."
    return [*lines, f"Again: {again}", ""]


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
        lines += _tables([one.row for one in rows])
        lines += [
            f"Again: `{' '.join(filter(None, ['tests/trust --only', trial.name, trial.again]))}`",
            "",
        ]
    lines += _fuzzing()
    return "\n".join(lines)
