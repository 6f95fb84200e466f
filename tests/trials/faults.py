"""The trial of failing system calls, with every error: too long for the whole run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trials.programs import last_line, run_program
from trials.trial import Context, Row, Trial, skipped

# The scenarios of tests/inject, and what they are.
SCENARIOS = {
    "files": "documents, listings and the log",
    "ways": "documents, by each way to accept, to share and to fork that is not the default",
    "tls": "documents by TLS",
    "udp": "datagrams",
    "work": "requests that compute, wait, block and take memory",
    "proxy": "the proxy and its cache",
}


def _try(context: Context, name: str, scenario: str) -> Iterator[Row]:
    case = f"failing system calls: {SCENARIOS[scenario]}"
    status, text, seconds = run_program(
        "tests/inject",
        "--server",
        name,
        "--scenario",
        scenario,
        *(["--quick"] if context.quick else []),
    )
    context.say(f"   tests/inject: {seconds:.0f} s")
    if status == 77:
        yield skipped(name, case, last_line(text))
        return
    told = re.search(r"^(\d+) failures injected, (\d+) of them not survived", text, re.M)
    injected, flaws = (int(told[1]), int(told[2])) if told else (0, 1)
    if status == 0 and not injected:
        yield skipped(name, case, "it has none")
        return
    tried = context.case(name, case)
    yield tried.fact("failures", injected)
    yield tried.judge("not survived as they should be", flaws or int(status != 0), 0)
    if status:
        context.say(text)


def run(context: Context) -> Iterator[Row]:
    for scenario in SCENARIOS:
        for name in context.models:
            yield from _try(context, name, scenario)


TRIAL = Trial(
    "faults",
    "Failing system calls",
    "Each system call on the path of a request fails once, in turn, in each process and thread of the "
    "server, with each error that its manual names: the first six calls of each kind.",
    "The client must get the right response, an error response or a closed connection; the server must "
    "live, hold as many descriptors and processes as before, serve the next requests, and stop in order.",
    run,
    needs={"strace": "strace"},
    peers="No peer beside: tests/inject knows the calls that ours make.",
    whole=False,
)
