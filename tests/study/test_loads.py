"""Load generators: how their output is read, and which runs count."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from collect.histogram import bucket_of, of_microseconds, quantile
from collect.measure.loads import Load, Watched, command_of, read_said, row_of, verdict
from collect.measure.one_run import seed_of_block

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
OPEN = {
    "asked_rate": 200, "late_share": 0.002, "achieved_rate": 190.0,
    "seconds": 0.5, "due": 100, "answered": 95,
    "refused": 1, "cut_off": 1, "timeouts": 3, "wrong": 0, "non2xx": 0, "length": 1000,
    "bytes": 102400, "mean_ms": 0.5, "sd_ms": 0.1, "min_ms": 0.1, "p50_ms": 0.4, "p90_ms": 0.9,
    "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 2, "max_ms": 2, "resumed": 0, "valid": True,
    "why": "", "histogram": "400:90 2000:5",
}  # fmt: skip
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


def test_httperf_median_is_the_middle_of_a_millisecond_and_left_out() -> None:
    made = row("httperf", HTTPERF, calls=1)
    assert made["p50_ms"] == "-" and made["min_ms"] != "-" and made["max_ms"] != "-"


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


def test_wrk_asks_a_proxy_for_what_its_origin_has() -> None:
    load = Load("wrk", "http://127.0.0.1:80/", "125", 4, None, proxied="http://127.0.0.1:81/")
    assert command_of(load, Path("-"))[-3:] == [
        "http://127.0.0.1:80/",
        "--",
        "http://127.0.0.1:81/125",
    ]


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


def open_row(**more: object) -> dict[str, str]:
    return row("open", json.dumps({**OPEN, **more}) + "\n", rate=500)


def test_open_loop_failures_are_results() -> None:
    made = open_row()
    names = ("complete", "failed", "lost", "unanswered", "rps", "p50_ms", "p99_ms", "asked", "late",
             "valid")  # fmt: skip
    assert [made[name] for name in names] == [
        "95",
        "5",
        "2",
        "3",
        "190.00",
        "0.400",
        "0.990",
        "200.00",
        "0.002000",
        "yes",
    ]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"valid": False, "why": "2% started late"}, "2% started late"),
        ({"non2xx": 3}, "3 non-2xx"),
        ({"wrong": 2}, "2 wrong responses"),
        ({"length": 999}, "length 999 instead of 1000"),
        ({"resumed": 1}, "1 of 95 sessions were resumed"),
    ],
)
def test_open_loop_flaws(more: dict[str, object], reason: str) -> None:
    output = json.dumps({**OPEN, **more}) + "\n"
    sessions = "new" if "resumed" in more else "-"
    assert row("open", output, rate=500, sessions=sessions)["valid"] == reason


def test_an_open_loop_without_a_response_has_no_times() -> None:
    made = open_row(answered=0, timeouts=98, length=-1, histogram="")
    assert (made["complete"], made["p50_ms"], made["unanswered"]) == ("0", "-", "98")


def test_open_loop_command() -> None:
    load = Load("open", "https://127.0.0.1:80/", "small.txt", 50, None, keep_alive=True,
                scheme="https", sessions="resumed", rate=700, duration=3, deadline=900, seed=4,
                by_thread=True)  # fmt: skip
    words = " ".join(command_of(load, Path("unused"))).partition("/open_loop ")[2]
    assert words == (
        "--rate 700 --seed 4 --seconds 3 --connections 50 --late 100 --by-thread --timeout 900 "
        "--keep-alive --hold --tell-parent --tls resumed 127.0.0.1:80 /small.txt"
    )


@pytest.mark.parametrize(
    ("fine", "microseconds"),
    [(1, 1.5), (2047, 2047.5), (2048, 2049), (3071, 4095), (3072, 4098), (16384, 33570816)],
)
def test_fine_buckets_go_to_where_their_middles_are(fine: int, microseconds: float) -> None:
    assert of_microseconds(f"{fine}:7") == {bucket_of(microseconds / 1000): 7}


def test_the_busiest_thread_of_the_open_loop_is_told_from_the_rest() -> None:
    row = open_row(threads=[
        {"thread": 7, "answered": 150, "histogram": "2000:150"},
        {"thread": 8, "answered": 300, "histogram": "400:297 1000:3"},
        {"thread": 9, "answered": 50, "histogram": "1000:50"},
    ])  # fmt: skip
    for name, time in (("busiest_p50", 0.4), ("busiest_p99", 0.4), ("rest_p50", 2.0),
                       ("rest_p99", 2.0)):  # fmt: skip
        assert float(row[f"{name}_ms"]) == pytest.approx(time, rel=0.03)


def test_few_requests_and_single_threads_have_no_times_of_their_own() -> None:
    few = [{"thread": n, "answered": 99, "histogram": "400:99"} for n in (1, 2)]
    row = open_row(threads=few)
    assert float(row["rest_p50_ms"]) > 0 and row["rest_p99_ms"] == "-"
    assert open_row(threads=few[:1])["busiest_p50_ms"] == "-"


def test_fine_histograms_keep_their_counts_and_quantiles() -> None:
    fine = " ".join(f"{bucket}:1" for bucket in range(500, 1500))
    made = of_microseconds(fine)
    assert sum(made.values()) == 1000
    assert quantile(made, 0.5) == pytest.approx(1.0, rel=0.02)


def test_each_block_of_each_sitting_has_a_load_of_its_own() -> None:
    seeds = {seed_of_block(study, block) for study in (1, 2, 1 << 29) for block in range(1, 33)}
    assert len(seeds) == 3 * 32
    assert min(seeds) > 0 and max(seeds) < 1 << 31
