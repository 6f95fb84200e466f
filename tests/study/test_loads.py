"""Load generators: how their output is read, and which runs count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collect.measure.loads import Load, Watched, read_said, row_of, verdict

HTTPERF = """\
Total: connections 10 requests 50 replies 50 test-duration 0.009 s
Connection time [ms]: min 1.5 avg 6.1 max 8.6 median 6.5 stddev 2.0
Request rate: 5357.9 req/s (0.2 ms/req)
Reply size [B]: header 249.0 content 1000.0 footer 0.0 (total 1249.0)
Reply status: 1xx=0 2xx=50 3xx=0 4xx=0 5xx=0
Net I/O: 6906.9 KB/s (56.6*10^6 bps)
Errors: total 0 client-timo 0 socket-timo 0 connrefused 0 connreset 0
"""
AB = """\
Time taken for tests:   21.924 seconds
Complete requests:      10
Failed requests:        0
Document Length:        1000 bytes
Requests per second:    0.46 [#/sec] (mean)
"""
WRK = "dcollect 8000 1000000 1024000 0 {} 0 0 0 500 50 100 400 900 950 990 2000\n"
WITNESS = "witness 0.5 100 3 1 2 0 1000 - 1 0.5 0.1 1 2 3 4 5 102400 0 {} TLSv1.3\n"
WATCHED = Watched(0.5, 0.1, "0", 50000, peak_kib=700)


def row(generator: str, output: str, watched: Watched = WATCHED, **more: object) -> dict[str, str]:
    """Returns the measured columns of a run."""
    requests = {"httperf": 10, "ab": 10}.get(generator, 1)
    load = Load(generator, "http://127.0.0.1:80/", "small.txt", 1, requests)
    load = replace(load, **more)  # type: ignore[arg-type]
    said = read_said(load, output, "")
    return {**row_of(load, said, watched), "valid": verdict(load, said, watched, 1000)}


def test_httperf_row_has_its_time_not_cut_to_milliseconds() -> None:
    made = row("httperf", HTTPERF, calls=5)
    assert made["complete"] == "50" and made["failed"] == "0" and made["non2xx"] == "0"
    assert made["length"] == "1000" and made["rps"] == "5357.90"
    assert made["seconds"] == "0.009332" and made["mean_ms"] == "0.187"
    assert made["server_cpu_us"] == "1000.000" and made["valid"] == "yes"


def test_httperf_mean_of_calls_at_a_rate() -> None:
    assert row("httperf", HTTPERF, calls=5, rate=10)["mean_ms"] == "1.220"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("replies 50", "replies 48", "48 of 50 requests completed"),
        ("2xx=50", "2xx=49", "1 non-2xx"),
        ("total 0 client", "total 2 client", "2 failed"),
        ("content 1000.0", "content 999.0", "length 999 instead of 1000"),
    ],
)
def test_httperf_flaws(old: str, new: str, reason: str) -> None:
    assert row("httperf", HTTPERF.replace(old, new), calls=5)["valid"] == reason


def test_ab_slow_run_is_not_cut_to_two_places() -> None:
    made = row("ab", AB)
    assert (made["complete"], made["rps"]) == ("10", "0.456121")
    assert (made["seconds"], made["valid"]) == ("21.924000", "yes")


def test_wrk_row() -> None:
    made = row("wrk", WRK.format(0))
    names = ("complete", "rps", "mean_ms", "p50_ms", "p99_ms", "max_ms", "valid")
    expected = ["8000", "8000.00", "0.500", "0.400", "0.990", "2.000", "yes"]
    assert [made[name] for name in names] == expected
    assert row("wrk", WRK.format(3))["valid"] == "3 failed"


def test_witness_losses_are_results() -> None:
    made = row("witness", WITNESS.format(0))
    assert (made["lost"], made["unanswered"], made["valid"]) == ("3", "2", "yes")


@pytest.mark.parametrize(
    ("sessions", "resumed", "reason"),
    [
        ("new", 0, "yes"),
        ("new", 1, "1 of 100 sessions were resumed"),
        ("resumed", 99, "yes"),
        ("resumed", 98, "98 of 100 sessions were resumed"),
    ],
)
def test_sessions_are_what_they_are_called(sessions: str, resumed: int, reason: str) -> None:
    made = row("witness", WITNESS.format(resumed), scheme="https", sessions=sessions)
    assert made["valid"] == reason


@pytest.mark.parametrize(
    ("watched", "reason"),
    [
        (Watched(1, 0, "timeout"), "not done within 60 s"),
        (Watched(1, 0, "22"), "ab ended with status 22: apr_socket_recv: reset"),
        (Watched(1, 0, "0", alive=False), "server died"),
    ],
)
def test_runs_that_do_not_end_well(watched: Watched, reason: str) -> None:
    assert row("ab", AB + "apr_socket_recv: reset\n", watched)["valid"] == reason


def test_what_the_client_needs_to_start_is_no_load() -> None:
    made = row("ab", AB.replace("21.924", "1.000").replace("0.46", "10.00"),
               Watched(1.008, 0.508, "0"))  # fmt: skip
    assert made["load_cpu"] == "0.500" and made["client_cpu_us"] == "50000.000"


def test_a_client_that_waits_for_a_processor_is_not_taken_for_idle() -> None:
    made = row("ab", AB.replace("21.924", "1.000").replace("0.46", "10.00"),
               Watched(3.0, 0.51, "0"))  # fmt: skip
    assert made["load_cpu"] == "0.500"
