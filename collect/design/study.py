"""Reads study files (TOML). A mistake is one line: the file, the key, and what is right."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from collect.design.factors import BY_NAME, BY_WORD, FACTORS, NAMES, Factor
from collect.design.study_mistakes import Source
from collect.project import STUDIES, fail

REPETITIONS = 32
RANGE_MOST = 100_000
# The prefix of the command of a server that is not of this project: NAME=cmd:COMMAND.
COMMAND = "cmd:"


@dataclass(frozen=True)
class Condition:
    """Values of factors: a cell matches where each factor has one of its values."""

    values: Mapping[str, tuple[str, ...]]

    def matches(self, cell: Mapping[str, str]) -> bool:
        return all(cell[name] in values for name, values in self.values.items())

    def where_is(self, name: str, value: str) -> Condition:
        """The same with one value of a factor."""
        return Condition({**self.values, name: (value,)})


@dataclass(frozen=True)
class Where:
    """Cells that match `when` exist only where they match `only`."""

    when: Condition
    only: Condition


@dataclass(frozen=True)
class Limit:
    """Cells that match `when`, which take long, are in the first blocks alone."""

    when: Condition
    first: int


@dataclass(frozen=True)
class Answer:
    """The comparison that answers a study's question: cells with the values `of` against those
    that have the values `to` and are like them otherwise; all of them match `when`. With `falls_to`
    the question is from which x on the ratio is at most that."""

    measure: str
    of: Mapping[str, str]
    to: Mapping[str, str]
    when: Condition
    falls_to: tuple[float, ...] = ()


@dataclass(frozen=True)
class Theirs:
    """Numbers of the checked report: one per measure for each value of the factor `by`."""

    measures: tuple[str, ...]
    by: str
    when: Condition
    values: Mapping[str, tuple[float, ...]]

    def value(self, cell: Mapping[str, str], measure: str) -> float | None:
        """The number of that report for a measure of a cell; None where it has none."""
        if measure not in self.measures or not self.when.matches(cell):
            return None
        numbers = self.values.get(cell[self.by])
        return numbers[self.measures.index(measure)] if numbers else None


@dataclass(frozen=True)
class Study:
    """A study: what is asked, the values of each factor, and how the runs are made."""

    name: str
    title: str
    question: str
    source: str
    levels: Mapping[str, tuple[str, ...]]
    repetitions: int = REPETITIONS
    round_blocks: int = 4
    baseline: str = ""
    claims: tuple[str, ...] = ()
    see: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    figure: str = ""
    parts: tuple[str, ...] = ()
    one_part: bool = False
    where: tuple[Where, ...] = ()
    limits: tuple[Limit, ...] = ()
    theirs: tuple[Theirs, ...] = ()
    contrast: Answer | None = None
    also: tuple[Answer, ...] = ()
    remarks: tuple[str, ...] = ()
    rate: int | None = None
    duration: int | None = None
    warm_up: int | None = None
    late: int = 100
    timeout: int | None = None
    idle_timeout: int | None = None
    request_timeout: int | None = None
    fault: int | None = None
    fresh: bool = False
    link: str = ""
    load_hosts: tuple[str, ...] = ()
    server_host: str = ""
    client_ports: tuple[int, int] | None = None
    commands: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""
    other: str = ""
    instruments: tuple[str, ...] = ()
    memory_limit: int | None = None
    seed: int = 1
    quick: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds_before(self) -> int:
        """How long a load lasts before its requests count; a surge takes so long."""
        surges = self.levels.get("surge", ("0",)) != ("0",)
        return self.warm_up if self.warm_up is not None else SURGE_SECONDS if surges else 0

    @property
    def first_figures(self) -> tuple[str, ...]:
        """The kinds of figures that the report shows first, the one that is wanted most first."""
        falls = self.contrast is not None and bool(self.contrast.falls_to)
        return (*(["falls-to"] if falls else []), *([self.figure] if self.figure else []))

    def server_texts(self, labels: Iterable[str]) -> list[str]:
        """Servers as a study file names them, with the commands of those that have one."""
        given = self.commands
        return [f"{name}={COMMAND}{given[name]}" if name in given else name for name in labels]

    def theirs_of(self, cell: Mapping[str, str], measure: str) -> float | None:
        """Returns the number of the checked report for a measure in a cell."""
        numbers = (row.value(cell, measure) for row in self.theirs)
        return next((number for number in numbers if number is not None), None)


class _Reader:
    """Takes values out of a study file, and fails with its name and the key."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def fail(self, key: str, what: str) -> NoReturn:
        self.source.fail(key, what)

    def text(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value or "\t" in value or "\n" in value:
            self.fail(key, f"{value!r} is no text of one line")
        return str(value)

    def texts(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.fail(key, f"{value!r} is no list of texts")
        return tuple(self.text(key, text) for text in value)

    def number(self, key: str, value: Any, least: int = 1) -> int:
        number = value
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
            number = int(value)
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            self.fail(key, f"{value} is no number{' above 0' if least else ''}")
        return int(number)

    def words(self, key: str, value: Any) -> list[str]:
        """A list: of TOML, or of words with blanks or commas between them."""
        if isinstance(value, bool) or not isinstance(value, str | int | list):
            self.fail(key, f"{value!r} is no list")
        items = value if isinstance(value, list) else re.split(r"[\s,]+", str(value).strip())
        if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in items):
            self.fail(key, f"{value!r} is no list of words and numbers")
        words = [str(item) for item in items if str(item)]
        if any(re.search(r"\s", word) for word in words):
            self.fail(key, f"{value!r} holds a blank")
        return words

    def servers(self, value: Any) -> tuple[list[str], dict[str, str]]:
        """The names of servers, and the commands of those that have one. In a text a command ends
        at a comma."""
        items = value if isinstance(value, list) else None
        if isinstance(value, str):
            items = re.findall(rf"[^\s,=]+={COMMAND}[^,]*|[^\s,]+", value)
        names: list[str] = []
        commands: dict[str, str] = {}
        for item in items if items is not None else self.words("servers", value):
            name, mark, command = str(item).partition(f"={COMMAND}")
            if mark:
                self.command(name, command.strip(), commands)
            names += [name] if mark else self.words("servers", [item])
        return names, commands

    def command(self, name: str, command: str, commands: dict[str, str]) -> None:
        """Takes the command of a server."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}", name):
            self.fail("servers", f"`{name}` is no name: letters, digits, dots, `_` and `-`")
        if commands.get(name, command) != command:
            self.fail("servers", f"`{name}` has two commands")
        try:
            words = shlex.split(command)
        except ValueError as error:
            self.fail("servers", f"the command of `{name}`: {error}")
        if not any("{port}" in word for word in words):
            self.fail("servers", f"the command of `{name}` has no {{port}}, where it is to listen")
        commands[name] = command

    def levels(self, factor: Factor, value: Any) -> tuple[str, ...]:
        """The values of a factor; ranges a-b are counted out."""
        values: list[str] = []
        for word in self.words(factor.key, value):
            values += self.level(factor, word)
        if not values:
            self.fail(factor.key, "names nothing")
        if factor.name == "server":
            return _told_apart(values)
        return tuple(dict.fromkeys(values))

    def level(self, factor: Factor, word: str, key: str = "") -> list[str]:
        key = key or factor.key
        if factor.choices and word not in factor.choices:
            self.fail(key, f"`{word}` is none of {', '.join(factor.choices)}")
        if factor.least is None or word in factor.words:
            return [word]
        if match := re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", word):
            first, last = int(match[1]), int(match[2])
            if not factor.least <= first <= last <= first + RANGE_MOST:
                self.fail(key, f"{word} is no range")
            return [str(number) for number in range(first, last + 1)]
        if not re.fullmatch(r"[0-9]{1,9}", word) or int(word) < factor.least:
            above = " above 0" if factor.least else ""
            words = "".join(f", nor {known}" for known in factor.words)
            self.fail(key, f"{word} is no number{above}{words}")
        return [str(int(word))]

    def condition(self, key: str, value: Any) -> Condition:
        if not isinstance(value, dict):
            self.fail(key, f"{value!r} is no table such as {{ load = 'ab' }}")
        for name in value:
            if name not in BY_WORD:
                self.fail(key, f"`{name}` is no factor; there are: {' '.join(NAMES)}")
        named = [(BY_WORD[name], found) for name, found in value.items()]
        return Condition({factor.name: self.values(key, factor, found) for factor, found in named})

    def values(self, key: str, factor: Factor, value: Any) -> tuple[str, ...]:
        """Values of a factor in a condition; `-` is that of a cell to which it does not apply."""
        found: list[str] = []
        for word in self.words(key, value):
            found += [word] if word == "-" else self.level(factor, word, f"{key}.{factor.name}")
        return tuple(found)

    def tables(self, key: str, value: Any, keys: set[str], needed: set[str]) -> list[Any]:
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            self.fail(key, f"is a list of tables: [[{key}]]")
        for row in value:
            for name in row:
                if name not in keys:
                    self.fail(key, f"there is no `{name}`; there are: {' '.join(sorted(keys))}")
            for name in sorted(needed):
                if name not in row:
                    self.fail(key, f"`{name}` is missing")
        return list(value)

    def where(self, value: Any) -> tuple[Where, ...]:
        rows = self.tables("where", value, {"when", "only"}, {"only"})
        return tuple(
            Where(
                self.condition("where.when", row.get("when", {})),
                self.condition("where.only", row["only"]),
            )
            for row in rows
        )

    def limits(self, value: Any) -> tuple[Limit, ...]:
        rows = self.tables("blocks", value, {"when", "first"}, {"when", "first"})
        return tuple(
            Limit(
                self.condition("blocks.when", row["when"]),
                self.number("blocks.first", row["first"]),
            )
            for row in rows
        )

    def theirs(self, value: Any) -> tuple[Theirs, ...]:
        keys = {"measures", "by", "when", "values"}
        return tuple(
            self.theirs_row(row)
            for row in self.tables("theirs", value, keys, {"measures", "by", "values"})
        )

    def theirs_row(self, row: dict[str, Any]) -> Theirs:
        measures = tuple(self.words("theirs.measures", row["measures"]))
        if row["by"] not in BY_NAME:
            self.fail("theirs.by", f"`{row['by']}` is no factor; there are: {' '.join(NAMES)}")
        if not isinstance(row["values"], dict):
            self.fail("theirs.values", "is a table of a value and its number")
        values: dict[str, tuple[float, ...]] = {}
        for name, number in row["values"].items():
            numbers = number if isinstance(number, list) else [number]
            known = all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
            if not known or len(numbers) != len(measures):
                self.fail(
                    "theirs.values", f"{name} = {number} is no number for each of {len(measures)}"
                )
            values[name] = tuple(float(n) for n in numbers)
        return Theirs(
            measures, row["by"], self.condition("theirs.when", row.get("when", {})), values
        )

    def contrast(self, value: Any) -> Answer:
        if not isinstance(value, dict):
            self.fail("contrast", f"{value!r} is no table such as {{ of = ..., to = ... }}")
        row = self.tables("contrast", [value], COMPARISON, {"of", "to"})[0]
        return self.comparison("contrast", row)

    def also(self, value: Any) -> tuple[Answer, ...]:
        rows = self.tables("also", value, {*COMPARISON, "each"}, {"of", "to"})
        return tuple(one for row in rows for one in self.each("also", row))

    def each(self, key: str, row: dict[str, Any]) -> Iterator[Answer]:
        """The comparison of a row, or with `each` one for each value of that factor in `when`."""
        whole = self.comparison(key, row)
        if "each" not in row:
            yield whole
        elif str(row["each"]) not in row.get("when", {}):
            self.fail(f"{key}.each", f"`{row['each']}` is no factor that `when` names")
        else:
            name = BY_WORD[row["each"]].name
            for value in whole.when.values[name]:
                yield replace(whole, when=whole.when.where_is(name, value))

    def comparison(self, key: str, row: dict[str, Any]) -> Answer:
        measure = row.get("measure", "cpu")
        if measure not in MEASURES:
            self.fail(f"{key}.measure", f"`{measure}` is none of {', '.join(MEASURES)}")
        sides = [self.condition(f"{key}.{side}", row[side]).values for side in ("of", "to")]
        of, to = ({name: values[0] for name, values in side.items()} for side in sides)
        if set(of) != set(to) or any(len(v) != 1 for side in sides for v in side.values()):
            self.fail(key, "`of` and `to` have one value each of the same factors")
        when = self.condition(f"{key}.when", row.get("when", {}))
        bounds = row.get("falls-to", [])
        if not isinstance(bounds, list) or not all(isinstance(b, float) and b > 1 for b in bounds):
            self.fail(f"{key}.falls-to", f"{bounds!r} is no list of ratios above 1, such as [1.1]")
        return Answer(MEASURES[measure], of, to, when, tuple(sorted(bounds, reverse=True)))

    def link(self, value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"[1-9][0-9]*(kbit|mbit|gbit)", value):
            self.fail("link", f"`{value}` is no rate such as 20mbit")
        return str(value)

    def ports(self, value: Any) -> tuple[int, int]:
        match = re.fullmatch(r"([0-9]{1,5})-([0-9]{1,5})", str(value))
        if not match or not 1024 <= int(match[1]) < int(match[2]) <= 65535:
            self.fail("client-ports", f"`{value}` is no range within 1024-65535")
        assert match
        return int(match[1]), int(match[2])


def _told_apart(values: list[str]) -> tuple[str, ...]:
    """A server that is named again gets ~2, ~3 as its label."""
    seen: dict[str, int] = {}
    labels = []
    for value in values:
        seen[value] = seen.get(value, 0) + 1
        labels.append(value if seen[value] == 1 else f"{value}~{seen[value]}")
    return tuple(labels)


# A machine that the load comes from, as ssh knows it.
HOST = r"([A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*"
# The load generators that tell how busy they were, or that they were too slow.
GENERATORS_ELSEWHERE = ("ab", "open", "witness", "wrk")
# The keys of a comparison.
COMPARISON = {"measure", "of", "to", "when", "falls-to"}
# The measures that a contrast can compare, each with its column.
MEASURES = {
    "cpu": "server_cpu_us",
    "requests": "rps",
    "p50": "p50_ms",
    "p99": "p99_ms",
    "busiest": "busiest",
    "memory": "each_kib",
    "recovery": "again_ms",
}
TEXTS = (
    "name", "title", "question", "source", "baseline", "figure", "directory", "other",
    "server-host",
)  # fmt: skip
NUMBERS = (
    "repetitions",
    "round-blocks",
    "rate",
    "duration",
    "warm-up",
    "late",
    "timeout",
    "idle-timeout",
    "request-timeout",
    "fault",
    "memory-limit",
    "seed",
)
LISTS = ("claims", "see", "steps", "instruments", "load-hosts")
# How long a surge lasts, if the study does not say.
SURGE_SECONDS = 2
# The instruments that may watch a server in runs of their own.
INSTRUMENTS = ("strace", "perf")
# The kinds of figures, one of which a study may show first.
FIGURES = (
    "cpu", "requests", "time", "ratio", "memory", "idle", "busiest", "batch", "bars", "ways",
    "anatomy", "flame", "alone", "order", "spread", "latency", "calibration", "rounds", "falls-to",
)  # fmt: skip
OTHERS = (
    "parts", "fresh", "link", "client-ports", "where", "blocks", "theirs", "contrast", "also",
    "remarks", "quick", "given",
)  # fmt: skip
KEYS = (*(factor.key for factor in FACTORS), *TEXTS, *NUMBERS, *LISTS, *OTHERS)


def _merged(reader: _Reader, data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a study, with those of --quick and of the command line in place of its own."""
    given = data.pop("given", {})
    quick = data.pop("quick", {})
    for key, table in (("quick", quick), ("given", given)):
        if not isinstance(table, dict):
            reader.fail(key, f"is a table: [{key}]")
    merged = dict(data)
    if given.get("quick"):
        usual: dict[str, Any] = {"repetitions": 4, "concurrency": [1, 2, 5, 10, 20, 30]}
        merged.update(quick or usual)
    merged.update({key: value for key, value in given.items() if key != "quick"})
    for key in merged:
        if key not in KEYS:
            reader.fail(key, f"there is no such key; there are: {' '.join(KEYS)}")
    for key in quick:
        if key not in KEYS:
            reader.fail(f"quick.{key}", f"there is no such key; there are: {' '.join(KEYS)}")
    return merged, given


def source_of(data: Mapping[str, Any], path: str, text: str = "") -> Source:
    """The source of a study; messages call it `path`."""
    given, quick = data.get("given", {}), data.get("quick")
    of_quick = frozenset(quick) if "quick" in given and isinstance(quick, dict) else frozenset()
    return Source(path, text, frozenset(given), of_quick)


def study_of(data: dict[str, Any], name: str, source: Source) -> Study:
    """Makes a study of the contents of a study file."""
    reader = _Reader(source)
    merged, given = _merged(reader, dict(data))
    fields: dict[str, Any] = {}
    for key in TEXTS:
        if key in merged:
            fields[key.replace("-", "_")] = reader.text(key, merged[key])
    for key in NUMBERS:
        if key in merged:
            least = 0 if key == "seed" else 1
            fields[key.replace("-", "_")] = reader.number(key, merged[key], least)
    for key in LISTS:
        if key in merged:
            fields[key.replace("-", "_")] = tuple(reader.words(key, merged[key]))
    if "servers" in merged:
        merged["servers"], fields["commands"] = reader.servers(merged["servers"])
    levels = {
        factor.name: reader.levels(factor, merged.get(factor.key, factor.default))
        for factor in FACTORS
    }
    _take_others(reader, merged, fields)
    for key in ("title", "question", "source"):
        fields.setdefault(key, "")
    fields.setdefault("name", name)
    study = Study(
        levels=levels,
        quick=bool(given.get("quick")),
        given=given,
        **fields,
    )
    _check(reader, study, "offered" in merged)
    return study


def _take_others(reader: _Reader, merged: dict[str, Any], fields: dict[str, Any]) -> None:
    if "where" in merged:
        fields["where"] = reader.where(merged["where"])
    if "blocks" in merged:
        fields["limits"] = reader.limits(merged["blocks"])
    if "theirs" in merged:
        fields["theirs"] = reader.theirs(merged["theirs"])
    if "contrast" in merged:
        fields["contrast"] = reader.contrast(merged["contrast"])
    if "also" in merged:
        fields["also"] = reader.also(merged["also"])
    if "remarks" in merged:
        fields["remarks"] = reader.texts("remarks", merged["remarks"])
    if "link" in merged:
        fields["link"] = reader.link(merged["link"])
    if "client-ports" in merged:
        fields["client_ports"] = reader.ports(merged["client-ports"])
    if "fresh" in merged:
        if not isinstance(merged["fresh"], bool):
            reader.fail("fresh", f"{merged['fresh']!r} is neither true nor false")
        fields["fresh"] = merged["fresh"]
    if "parts" in merged:
        words = reader.words("parts", merged["parts"])
        fields["one_part"] = words == ["one"]
        if not fields["one_part"]:
            for word in words:
                if word not in BY_NAME:
                    reader.fail("parts", f"`{word}` is not one, and no factor")
            fields["parts"] = tuple(words)


def _check(reader: _Reader, study: Study, has_offered: bool) -> None:
    """Checks combinations of keys."""
    if study.fault and study.levels["load"] != ("witness",):
        reader.fail("fault", "only the witness survives a server that dies")
    if "open" in study.levels["load"] and not study.rate and not has_offered:
        reader.fail(
            "rate",
            "the open loop needs the number of requests per second, or `offered`, percents of "
            "what each server can answer",
        )
    if has_offered and study.rate:
        reader.fail("rate", "the study has `offered`, from which its rates follow")
    if study.figure and study.figure not in FIGURES:
        reader.fail("figure", f"`{study.figure}` is none of {', '.join(FIGURES)}")
    whole = not study.quick and "servers" not in study.given
    for name in study.steps:
        if whole and name not in study.levels["server"]:
            reader.fail("steps", f"`{name}` is none of the servers of the study")
    if len(study.steps) == 1:
        reader.fail("steps", "a step leads from one server to another: there is one alone")
    for name in study.instruments:
        if name not in INSTRUMENTS:
            reader.fail("instruments", f"`{name}` is none of {', '.join(INSTRUMENTS)}")
    if study.levels["mixed"] != ("0",) and not study.other:
        reader.fail("mixed", "the study has no `other` document")
    if study.levels["data_share"] != ("0",):
        _check_sets(reader, study)
    if study.load_hosts or study.server_host:
        _check_hosts(reader, study)
    if study.rate and study.levels["surge"] != ("0",):
        reader.fail("surge", "it is a share of the capacity, and so needs `offered`, not a rate")
    if study.warm_up and study.levels["load"] != ("open",):
        reader.fail("warm-up", "only the load `open` has requests that do not count")
    if has_offered and "open" not in study.levels["load"]:
        reader.fail("offered", "only the load `open` offers requests")
    witness_alone = not study.where and "witness" in study.levels["load"]
    if witness_alone and study.levels["load"] == ("witness",):
        if study.levels["keepalive"] == ("on",):
            reader.fail("keepalive", "the witness has a connection for each request")
        if "1" not in study.levels["calls"]:
            reader.fail("calls", "the witness has one call per connection; take httperf")


def _check_hosts(reader: _Reader, study: Study) -> None:
    """Checks a study whose load comes from other machines."""
    if not study.load_hosts:
        reader.fail("server-host", "it is for `load-hosts`, of which there are none")
    if not study.server_host:
        reader.fail("load-hosts", "they need `server-host`: the name of this machine for them")
    for name in study.load_hosts:
        if not re.fullmatch(HOST, name) or study.load_hosts.count(name) > 1:
            reader.fail("load-hosts", f"`{name}` is no [USER@]HOST, or stands there twice")
    if study.link or study.client_ports:
        reader.fail("load-hosts", "`link` and `client-ports` are for a load on this machine")
    if study.fault:
        reader.fail("load-hosts", "a study with a `fault` wants a single client, on this machine")
    for name in study.levels["load"]:
        if name not in GENERATORS_ELSEWHERE:
            reader.fail("load-hosts", f"{name} does not tell how busy it was; take another load")
    if "open" in study.levels["load"] and "on" in study.levels["keepalive"]:
        reader.fail("load-hosts", "the open loop on kept connections wants to be on this machine")
    if any(service.startswith("proxy-") for service in study.levels["service"]):
        reader.fail("load-hosts", "a proxy's origin would have to be on another machine, too")


def _check_sets(reader: _Reader, study: Study) -> None:
    """Checks a study of sets of documents."""
    if not study.memory_limit:
        reader.fail("data-share", "it is a share of the `memory-limit`, which the study lacks")
    if study.levels["load"] != ("wrk",):
        reader.fail("data-share", "only the load wrk asks for a set of documents")
    if not all(re.fullmatch(r"[1-9][0-9]*\.bin", name) for name in study.levels["file"]):
        reader.fail("files", "a set is of documents that are made, such as 65536.bin")


def study_path(word: str) -> Path:
    """The file of a study by its name, or by its path where that holds a slash."""
    path = Path(word) if "/" in word else STUDIES / f"{word}.toml"
    if not path.is_file():
        fail(f"there is no study '{word}'; there are: {' '.join(study_names())}", 2)
    return path


def study_names() -> list[str]:
    return sorted(path.stem for path in STUDIES.glob("*.toml"))


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fail(f"{path}: {error}", 2)


def load_study(path: Path, name: str | None = None, quick: bool = False) -> Study:
    """Reads a study file; `quick` as the command line has it."""
    data = read_toml(path)
    if quick:
        data["given"] = {"quick": True}
    text = path.read_text(encoding="utf-8")
    return study_of(data, name or path.stem, source_of(data, str(path), text))


def given_toml(given: Mapping[str, Any]) -> str:
    """The table [given] of a study file: what the command line and this machine add to it."""
    lines = ["", "# Added by the command line and this machine.", "[given]"]
    lines += [f"{key} = {toml_value(value)}" for key, value in given.items()]
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
