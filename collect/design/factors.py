"""The table of factors: a new factor needs a row here, and code that acts on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from collect.readable_numbers import plural, thousands


@dataclass(frozen=True)
class Context:
    """The loads, schemes and documents of a value's cells: its wording depends on them."""

    loads: frozenset[str] = frozenset()
    schemes: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    def counts_connections(self) -> bool:
        """httperf counts connections where the others count requests."""
        return self.loads == {"httperf"}


Say = Callable[[str, Context], str]


@dataclass(frozen=True)
class Factor:
    """A factor of a study.

    name     the column of plan.tsv and runs.tsv
    key      the key of a study file, and the option of the command
    default  the values of a study that does not name the factor, as --KEY has them
    example  what --help shows
    help     what --help says
    choices  the only values there are; () for any
    least    the smallest value of a number; None for a factor that is no number
    words    values of a number that are words
    quiet    whether a value `-`, which the factor has where it does not apply, is left unsaid
    averaged whether a mean over its values says something
    splits   its turn when a report is split into parts, those of the same turn in the order of this
             table; None: a report is never split by it
    say      a value in words
    axis     the title of an axis; None for a factor that is never one
    """

    name: str
    key: str
    default: str
    example: str
    help: str
    choices: tuple[str, ...] = ()
    least: int | None = None
    words: tuple[str, ...] = ()
    quiet: bool = False
    averaged: bool = False
    splits: int | None = 9
    say: Say = lambda value, _: value
    axis: Callable[[Context], str] | None = None

    @property
    def is_number(self) -> bool:
        return self.least is not None


# The loads that last for a time, and have any number of requests.
FOR_A_TIME = frozenset({"wrk", "open"})
# The documents of the service `work`: the kinds of work that common/files/work_service.c does.
WORK_KINDS = ("cpu", "sleep", "block", "touch")
# Their words in the title of a figure: "Requests per second, where each request computes (cpu)".
WORK_WORDS = {
    "cpu": "computes",
    "sleep": "waits for a timer",
    "block": "blocks its thread",
    "touch": "writes to memory",
}


def file_text(value: str) -> str:
    """A document that has a number for its name is one of that size: /150."""
    return f"/{value}" if value.isdigit() else value


def work_title(kind: str) -> str:
    """A kind of work in the title of a figure."""
    return f"where each request {WORK_WORDS[kind]} ({kind})"


def _requests(value: str, context: Context) -> str:
    if value == "-":
        if context.loads <= FOR_A_TIME:
            return "for a time"
        return "all at once" if context.loads == {"httperf"} else "any number of requests"
    noun = "connection" if context.counts_connections() else "request"
    return f"{thousands(float(value))} {noun}{'' if value == '1' else 's'}"


def _processors(value: str, _: Context) -> str:
    return "all processors" if value == "all" else plural(float(value), "processor", "processors")


def _scheme(value: str, context: Context) -> str:
    plain = "TCP" if "udp" in context.schemes else "HTTP"
    return {"udp": "UDP", "https": "HTTPS"}.get(value, plain)


def _count(none: str, one: str, many: str) -> Say:
    return lambda value, _: none if value == "0" else plural(float(value), one, many)


def _memory(value: str, _: Context) -> str:
    size = int(value)
    if size >= 1024 and size % 1024 == 0:
        return f"{thousands(size // 1024)} GiB of ballast"
    return f"{thousands(size)} MiB of ballast" if size else "no ballast"


def _unit_of_work(context: Context) -> str:
    """The unit of an amount; "" where the documents have several."""
    units = {"KiB" if file == "touch" else "µs" for file in context.files}
    return units.pop() if len(units) == 1 else ""


def _deadline(value: str, _: Context) -> str:
    return f"a deadline of {int(value) / 1000:g} s" if value != "0" else "no deadline"


def _amount(value: str, context: Context) -> str:
    number, unit = thousands(float(value)), _unit_of_work(context)
    return f"{number} {unit} of work" if unit else f"work {number}"


# A new factor comes last: older results lack the last columns.
FACTORS: tuple[Factor, ...] = (
    Factor(
        "server", "servers", "fork,thread", "fork,thread,nginx", "the servers",
        averaged=True, splits=None,
    ),
    Factor(
        "file", "files", "small.txt,big.txt", "small.txt,big.txt", "the documents",
        averaged=True, splits=None,
        say=lambda value, _: file_text(value),
    ),
    Factor(
        "concurrency", "concurrency", "1-30", "1-30", "connections at once", least=1,
        averaged=True, splits=None,
        say=lambda value, _: f"concurrency {value}",
        axis=lambda context: "concurrency (clients at once)" if "udp" in context.schemes
        else "concurrency (connections at once)",
    ),
    Factor(
        "requests", "requests", "1000", "1000", "requests a run (httperf: connections a run)",
        least=1, averaged=True, splits=8, say=_requests,
        axis=lambda context: "connections in all" if context.counts_connections()
        else "requests in all",
    ),
    Factor(
        "calls", "calls", "1", "1,2,5", "requests per connection (httperf)", least=1, splits=7,
        say=lambda value, _: f"{value} call{'' if value == '1' else 's'} per connection",
        axis=lambda _: "calls per connection",
    ),
    Factor(
        "keepalive", "keepalive", "off", "off,on", "many requests on a connection",
        choices=("off", "on"), splits=5, say=lambda value, _: f"keep-alive {value}",
    ),
    Factor(
        "scheme", "scheme", "http", "http,https,udp", "how requests travel",
        choices=("http", "https", "udp"), splits=4, say=_scheme,
    ),
    Factor(
        "protocol", "protocol", "pipelined", "simple,persistent",
        "what our servers speak", choices=("simple", "persistent", "pipelined"),
        splits=2, say=lambda value, _: f"{value} protocol",
    ),
    Factor(
        "service", "service", "files", "files,sized",
        "what is answered; work: cpu, sleep, block or touch, with an amount; proxy-hit "
        "proxy-revalidation proxy-miss: a caching proxy, by what it is to find",
        choices=("files", "sized", "work", "proxy-hit", "proxy-revalidation", "proxy-miss"),
        splits=3,
        say=lambda value, _: f"proxy {value[6:]}" if value.startswith("proxy-")
        else f"service {value}",
    ),
    Factor(
        "processors", "processors", "all", "all,1,2",
        "what the server is held to; the load gets the rest",
        least=1, words=("all",), splits=6, say=_processors,
        axis=lambda _: "processors of the server",
    ),
    Factor(
        "load", "load", "ab", "ab,httperf,wrk,witness,open",
        "the load generator (open: requests start when they are due)",
        choices=("ab", "httperf", "wrk", "witness", "open"),
        splits=1, say=lambda value, _: f"load by {value}",
    ),
    Factor(
        "idle", "idle", "0", "0,100", "clients that hold a connection and send nothing",
        least=0, say=_count("no idle connections", "idle connection", "idle connections"),
        axis=lambda _: "idle connections held",
    ),
    Factor(
        "slow", "slow", "0", "0,10", "clients that send a byte a second",
        least=0, say=_count("no slow clients", "slow client", "slow clients"),
        axis=lambda _: "slow clients",
    ),
    Factor(
        "certificate", "certificate", "p256", "p256,rsa2048", "the key of HTTPS",
        choices=("p256", "rsa2048"), quiet=True, splits=None,
        say=lambda value, _: {"p256": "P-256", "rsa2048": "RSA-2048"}.get(value, value),
    ),
    Factor(
        "sessions", "sessions", "new", "new,resumed",
        "the sessions of HTTPS (resumed: witness, open)",
        choices=("new", "resumed"), quiet=True, splits=None,
        say=lambda value, _: f"{value} sessions",
    ),
    Factor(
        "ballast", "ballast", "0", "1,1024", "MiB of memory that our servers hold", least=0,
        say=_memory, axis=lambda _: "memory held (MiB)",
    ),
    Factor(
        "amount", "amount", "1000", "0,1000",
        "the work of a request (service work): microseconds, or KiB for touch", least=0,
        quiet=True, averaged=True, splits=None, say=_amount,
        axis=lambda context:
        f"work of a request ({_unit_of_work(context) or 'microseconds; touch: KiB'})",
    ),
    Factor(
        "offered", "offered", "100", "50,100",
        "requests of the load `open`: percent of the server's capacity, which each round measures",
        least=1, quiet=True, say=lambda value, _: f"{value}% of its capacity offered",
        axis=lambda _: "offered load, % of capacity",
    ),
    Factor(
        "surge", "surge", "0", "0,300",
        "requests that are due for two seconds before the run, in the same percent; 0: none",
        least=0, say=lambda value, _: f"after a surge of {value}%" if value != "0" else "no surge",
        axis=lambda _: "surge, % of capacity",
    ),
    Factor(
        "worker_count", "workers", "auto", "auto,2,16",
        "workers of the servers that have some (auto: as each server has them by default)",
        least=1, words=("auto",),
        say=lambda value, _: "workers by default" if value == "auto"
        else plural(float(value), "worker", "workers"),
        axis=lambda _: "workers",
    ),
    Factor(
        "mixed", "mixed", "0", "0,5",
        "percent of the requests that are for the study's `other` document (open)", least=0,
        say=lambda value, _: f"{value}% of the requests for the other file" if value != "0"
        else "none for the other file",
        axis=lambda _: "other requests, %",
    ),
    Factor(
        "data_share", "data-share", "0", "50,400",
        "size of a set of documents, percent of the study's `memory-limit`; each request is for "
        "one of them (wrk); 0: no set",
        least=0,
        say=lambda value, _: f"documents of {value}% of the memory" if value != "0"
        else "no set of documents",
        axis=lambda _: "data, % of memory",
    ),
    Factor(
        "round_trip", "round-trip", "60", "1,10,60",
        "milliseconds for a way to the server and back, over a study's `link`", least=0,
        quiet=True, say=lambda value, _: f"{value} ms of round trip",
        axis=lambda _: "round trip, milliseconds",
    ),
    Factor(
        "readers", "readers", "0", "0,20",
        "clients that read a byte a second of a document of 16 MiB",
        least=0, say=_count("no slow readers", "slow reader", "slow readers"),
        axis=lambda _: "slow readers",
    ),
    Factor(
        "deadline", "deadline", "0", "1000,3000",
        "a request that is not answered within so many milliseconds has failed (open); 0: none",
        least=0, quiet=True, say=_deadline, axis=lambda _: "deadline, milliseconds",
    ),
)  # fmt: skip

NAMES: tuple[str, ...] = tuple(factor.name for factor in FACTORS)
BY_NAME: Mapping[str, Factor] = {factor.name: factor for factor in FACTORS}
# A study file names a factor by its key in a condition, too.
BY_WORD: Mapping[str, Factor] = {factor.key: factor for factor in FACTORS} | BY_NAME

# Older results have no column of the factors behind these.
EVERYWHERE: tuple[str, ...] = NAMES[: NAMES.index("load") + 1]
# The factors by which a report is split into parts, in this order.
SPLITTING: tuple[str, ...] = tuple(
    name
    for _, name in sorted(
        ((factor.splits, factor.name) for factor in FACTORS if factor.splits is not None),
        key=lambda turn: turn[0],
    )
)

# The numbers of clients that hold connections beside the load.
HOLDING = ("idle", "slow", "readers")


def factor_value(name: str, value: str, context: Context | None = None) -> str:
    """A factor's value in words: requests 1000 -> "1,000 requests"."""
    factor = BY_NAME[name]
    if value == "-" and name != "requests":
        return "" if factor.quiet else f"{name} not set"
    return factor.say(value, context or Context())


def axis_title(name: str, context: Context | None = None) -> str:
    """The title of the axis of a factor."""
    factor = BY_NAME.get(name)
    return factor.axis(context or Context()) if factor and factor.axis else name


def choose_axis(levels: Mapping[str, Collection[str]]) -> str:
    """Returns the factor of the x axis: of those that vary most the first; "" if none does.

    Processors are taken where no other number varies.
    """
    best = ""
    for name in (factor.name for factor in FACTORS if factor.axis and factor.name != "processors"):
        values = levels.get(name, ())
        numeric = all(value.replace(".", "", 1).isdigit() for value in values)
        if numeric and len(values) > max(1, len(levels.get(best, ()))):
            best = name
    processors = levels.get("processors", ())
    if not best and len(processors) > 1 and "all" not in processors:
        return "processors"
    return best
