"""The replay: its load, what it makes of traces, its questions, and its command line."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from invented_traces import INVENTED, LOAD, MAIN, SLOW_US, fork, iterative, scene
from study_runs import Bench

from collect.cli import main
from collect.measure.load_for_replay import BIG, CRASH, SLOW_PIECES, Play, Visit, play
from collect.present.replay_page import Told, page_of_replay
from collect.present.replay_questions import Numbers, Question, questions_of, time_text
from collect.present.replay_scene import (
    IDLE,
    Scene,
    most_held,
    quickest,
    scene_of,
    scene_of_clients,
    typical,
)
from collect.project import StudyError

MACHINE = {
    "processor_model": "A <processor>", "processors": "2", "kernel": "Linux", "commit": "0123abc",
    "changed": "",
}  # fmt: skip
TOLD = Told("1 January 2026, 00:00", "./dcollect.sh replay", MACHINE)

# --- the load ---


def serve(answer: Callable[[socket.socket], None], load: Play) -> list[Visit]:
    """Plays a load against a server of the test, which answers one connection after the other."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        threading.Thread(target=_accept, args=(listener, answer, load), daemon=True).start()
        return play(listener.getsockname(), load)


def _accept(listener: socket.socket, answer: Callable[[socket.socket], None], load: Play) -> None:
    for _ in load.visits():
        client, _ = listener.accept()
        with client:
            answer(client)


def _respond(client: socket.socket) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        head += client.recv(4096)
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


def test_a_load_is_played_to_its_end() -> None:
    visits = serve(_respond, Play(clients=3, slow=1, requests=8))
    assert [visit.number for visit in visits] == list(range(1, 10))
    assert [visit.slow for visit in visits] == [True] + [False] * 8
    assert [visit.document == BIG for visit in visits] == [False] + [False, False, False, True] * 2
    for visit in visits:
        assert (visit.status, visit.problem) == (200, "")
        assert visit.bytes == len("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        assert 0 < visit.connecting <= visit.connected < visit.first_byte <= visit.ended
    assert len({visit.port for visit in visits}) == 9


def test_a_slow_client_comes_first_and_sends_its_request_in_pieces() -> None:
    pieces: list[list[bytes]] = []

    def note(client: socket.socket) -> None:
        parts = [client.recv(4096)]
        while b"\r\n\r\n" not in b"".join(parts):
            parts.append(client.recv(4096))
        pieces.append(parts)
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    serve(note, Play(clients=1, slow=1, requests=1))
    assert len(pieces[0]) > 1
    assert len(pieces[0]) <= SLOW_PIECES
    assert b"".join(pieces[0]).startswith(b"GET /small.txt HTTP/1.1\r\n")


@pytest.mark.parametrize("load", [Play(2, 0, 4), Play(1, 1, 2)])
def test_a_connection_without_a_response_has_no_status(load: Play) -> None:
    visits = serve(lambda client: None, load)
    assert {visit.status for visit in visits} == {0}
    assert all(visit.ended for visit in visits)


@pytest.mark.parametrize("load", [Play(2, 0, 4), Play(1, 3, 2)])
def test_clients_of_no_server_say_so(load: Play) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    visits = play(address, load)
    assert all(visit.problem and visit.ended for visit in visits)
    assert {visit.status for visit in visits} == {0}


def test_one_request_crashes_its_process() -> None:
    documents = [visit.document for visit in Play(2, 1, 6, crash=True).visits()]
    assert documents.count(CRASH) == 1 and documents[0] != CRASH
    assert CRASH not in [visit.document for visit in Play(2, 1, 6).visits()]


# --- scenes ---


def test_times_of_server_and_clients_have_one_origin() -> None:
    made = scene("iterative")
    first, second = made.connections[:2]
    assert (first.connecting, first.accepted, first.begun) == (0.0, 30.0, 40.0)
    assert (first.closed, first.ended) == (
        pytest.approx(SLOW_US + 140),
        pytest.approx(SLOW_US + 135),
    )
    assert second.connecting == 100.0
    assert second.accepted == first.closed
    assert made.end > max(one.ended for one in made.connections)
    assert (made.model, made.version, made.command, made.lost) == (
        "iterative", "9.9", "./iterative_server 0", 0,
    )  # fmt: skip


def test_processes_made_for_connections_take_turns_in_places() -> None:
    made = scene("fork")
    children = [thread for thread in made.threads if thread.born is not None]
    assert len(children) == 9
    assert made.places < 9
    for one in children:
        for other in children:
            if one is not other and one.place == other.place:
                assert one.died is not None and other.died is not None
                assert one.died <= (other.born or 0) or other.died <= (one.born or 0)
    assert [span.what for span in children[1].spans] == [
        "begin", "read", "respond", "write", "close",
    ]  # fmt: skip


def test_waiting_for_no_connection_is_idle() -> None:
    what = {span.what: span.connection for _, span in scene("epoll").spans()}
    assert what[IDLE] == 0
    assert "wait" not in what
    assert {span.what for _, span in scene("iterative").spans() if span.connection == 1} >= {"wait"}


def test_what_was_before_and_after_the_load_is_not_shown() -> None:
    trace, visits = fork(LOAD)
    trace.thread(MAIN + 90, MAIN + 90, "child", born=-900)
    trace.span(MAIN, MAIN, "accept", -950, -940, 1, port=visits[0].port)
    trace.span(MAIN + 90, MAIN + 90, "read", -890, -800, 1)
    trace.instant("end", MAIN + 90, MAIN + 90, -700)
    trace.thread(MAIN + 91, MAIN + 91, "child", born=SLOW_US * 3)
    trace.span(MAIN + 91, MAIN + 91, "read", SLOW_US * 3, SLOW_US * 4, 1)
    trace.span(MAIN, MAIN, "wait", -900, 15)
    made = scene_of("fork", "", trace.whole(), visits)
    assert len(made.threads) == 10
    assert min(span.start for _, span in made.spans()) == 0
    assert max(span.end for _, span in made.spans()) <= made.end
    assert made.connections[0].accepted == 30.0


def test_a_connection_that_is_not_of_the_load_has_no_number() -> None:
    trace, visits = iterative(LOAD)
    trace.span(MAIN, MAIN, "accept", 20, 25, 7, port=1)
    made = scene_of("iterative", "", trace.whole(), visits)
    assert {span.connection for _, span in made.spans()} == set(range(10))


def test_a_trace_must_say_when_it_began() -> None:
    trace, visits = iterative(LOAD)
    whole = trace.whole()
    del whole["otherData"]["start_ns"]
    with pytest.raises(StudyError, match="the trace of fork does not say when it began"):
        scene_of("fork", "", whole, visits)


def test_how_many_connections_a_thread_held() -> None:
    made = scene("epoll")
    held = most_held(made.threads[0], made.connections)
    assert held is not None and held[0] == 2
    made = scene("fork")
    assert {(most_held(thread, made.connections) or (0,))[0] for thread in made.threads} == {0, 1}


def test_the_play_that_was_disturbed_least_is_shown() -> None:
    plays = [scene("iterative"), scene("iterative", Play(4, 0, 8)), scene("iterative")]
    best = quickest(plays)
    assert best.threads is plays[1].threads
    assert best.plays == tuple(sorted(play.fast_end for play in plays))
    plays[1].connections[0].status = 0
    assert quickest(plays).threads is plays[0].threads


def test_threads_belong_to_one_process() -> None:
    made = scene("thread")
    assert {thread.pid for thread in made.threads} == {MAIN}
    assert made.makes_threads and not scene("fork").makes_threads
    assert sum(thread.is_made_for_load for thread in made.threads) == 9


def test_a_worker_that_starts_late_is_not_made_for_the_load() -> None:
    trace, visits = fork(LOAD)
    for event in trace.events:
        if event["name"] == "start":
            event["args"]["worker"] = 1
    made = scene_of("fork", "", trace.whole(), visits)
    assert not any(thread.is_made_for_load for thread in made.threads)


def crashed() -> Scene:
    """The process of the connection that crashes dies in its answer, and is reaped much later."""
    load = Play(4, 1, 8, crash=True)
    trace, visits = fork(load)
    (crash,) = [visit for visit in visits if visit.document == CRASH]
    crash.status, tid = 0, MAIN + crash.number
    trace.events = [
        e for e in trace.events if e["tid"] != tid or e["name"] not in ("write", "close", "end")
    ]
    for event in trace.events:
        if event["tid"] == tid and event["name"] == "respond":
            event["dur"] = 30_000.0
    trace.instant("end", tid, tid, 35_000)
    trace.events[-1]["args"]["died"] = True
    return scene_of("fork", "", trace.whole(), visits)


def test_a_process_that_crashes_ends_when_its_client_sees_it() -> None:
    made = crashed()
    (dead,) = [thread for thread in made.threads if thread.crashed]
    (crash,) = [one for one in made.connections if one.document == CRASH]
    assert dead.died == dead.spans[-1].end == crash.ended < 35_000
    assert made.failures == 1


def lone(label: str, failures: int) -> Scene:
    _, visits = iterative(Play(4, 1, 8, crash=True))
    for visit in visits[:failures]:
        visit.status = 0
    return scene_of_clients(label, "9.9", "", visits)


def test_a_server_that_crashed_is_seen_by_its_clients() -> None:
    made = lone("thread", 4)
    assert (made.threads, made.failures, len(made.connections)) == ([], 4, 9)
    assert "The only process crashed" in page_of_replay([made], Play(4, 1, 8, crash=True), TOLD)
    assert typical([lone("a", 1), lone("a", 7), lone("a", 2)]).failures == 2


# --- questions ---


def asked(*labels: str) -> dict[str, Question]:
    return {
        question.name: question for question in questions_of([scene(label) for label in labels])
    }


def test_questions_have_the_answers_of_the_traces() -> None:
    questions = asked("iterative", "fork", "thread", "epoll")
    assert list(questions) == ["made", "waited", "handed", "held", "first"]
    made = questions["made"]
    assert made.text == "How many processes did fork make for 9 connections?"
    assert (made.right, made.unit) == ("9", "processes")
    assert made.answer.startswith(
        "fork made 9 processes. In the same time thread 9 threads. iterative and epoll made none"
    )
    waited = questions["waited"]
    numbers = Numbers(scene("iterative"))
    longest = numbers.longest_wait()
    assert longest is not None
    assert "fast client wait under iterative" in waited.text
    assert waited.right == f"{longest[0] / 1000:.1f}"
    assert waited.answer.startswith(f"{time_text(longest[0])}: connection {longest[1].number} of")
    assert (longest[1].accepted or 0) - longest[0] < waited.moment < (longest[1].accepted or 0)
    handed = questions["handed"]
    assert handed.text.endswith("That takes fork longer than thread: how many times as long?")
    assert handed.right == "3.00"
    assert handed.answer.startswith("3.00 times. The medians: fork 90.0 µs and thread 30.0 µs.")
    assert (questions["held"].right, questions["held"].scenes) == ("2", ("epoll",))
    assert questions["first"].right == "iterative"


def test_questions_that_the_scenes_cannot_answer_are_not_asked() -> None:
    assert list(asked("iterative")) == ["waited"]
    fast = [scene("iterative", Play(4, 0, 8)), scene("epoll", Play(4, 0, 8))]
    assert [question.name for question in questions_of(fast)] == ["first"]


def test_a_crash_is_asked_about_alone() -> None:
    (question,) = questions_of([crashed(), lone("thread", 5)])
    assert question.right == "4"
    assert question.text.endswith("of the other 8 connections got no response under thread?")
    assert question.answer == "4 under thread. The others: fork 0."


@pytest.mark.parametrize(
    ("time", "words"),
    [(0.4, "0.4 µs"), (56.71, "56.7 µs"), (1234.5, "1.23 ms"), (40_100, "40.1 ms")],
)
def test_times_in_words(time: float, words: str) -> None:
    assert time_text(time) == words


# --- the page ---


def page(*labels: str) -> str:
    return page_of_replay([scene(label) for label in labels], LOAD, TOLD)


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    return dict(json.loads(found[1]))


def test_the_page_holds_every_event() -> None:
    made = scene("fork")
    data = data_of(page("iterative", "fork"))
    shown = data["scenes"][1]
    assert sum(len(thread["spans"]) for thread in shown["threads"]) == len(list(made.spans()))
    assert [one["accepted"] for one in shown["connections"]] == [
        one.accepted for one in made.connections
    ]
    assert data["end"] == pytest.approx(max(made.end, scene("iterative").end), abs=0.001)


def test_the_page_says_where_it_comes_from_and_needs_no_network() -> None:
    text = page("iterative", "fork", "epoll")
    for words in (
        "0123abc",
        "A &lt;processor&gt;",
        "1 January 2026, 00:00",
        "<code>./dcollect.sh replay</code>",
        "got the load once",
    ):
        assert words in text
    assert "with changes" not in text
    network = r"""(?:src|srcset|href|action|data)\s*=\s*["']?\s*(?:https?:)?//|url\(\s*["']?https?:|@import"""
    assert not re.search(network, text)


def test_a_trace_that_is_not_whole_is_told() -> None:
    trace, visits = iterative(LOAD)
    trace.lost = 7
    made: list[Scene] = [scene_of("iterative", "", trace.whole(), visits)]
    assert "The trace is not whole: 7 events did not fit." in page_of_replay(made, LOAD, TOLD)
    assert "The trace is not whole" not in page("iterative")


def test_names_are_text() -> None:
    trace, visits = INVENTED["iterative"](LOAD)
    trace.thread(MAIN, MAIN, "</script><b>")
    text = page_of_replay([scene_of("iterative", "<i>", trace.whole(), visits)], LOAD, TOLD)
    assert "<b>" not in text and "<i>" not in text.replace("<i class", "")
    assert data_of(text)["scenes"][0]["threads"][0]["name"] == "</script><b>"


# --- the command ---


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["fork"], "replay takes no more words, not 'fork'"),
        (["--quick"], "and --output, not --quick"),
        (["--files", "big.txt"], "and --output, not --files"),
        (["--resume"], "and --output, not --resume"),
        (["--servers", "fork,nginx"], "`nginx` writes no trace; there are: "),
        (["--servers", "mine=cmd:./mine {port}"], "`mine=cmd:./mine {port}` writes no trace"),
        (["--servers", "fork,fork"], "takes each server once"),
        (["--clients", "0"], "--clients of a replay takes a number from 1 to 64, not '0'"),
        (["--slow", "x"], "--slow of a replay takes a number from 0 to 64, not 'x'"),
        (["--requests", "1001"], "--requests of a replay takes a number from 1 to 1000"),
    ],
)
def test_what_a_replay_refuses(
    capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    assert main(["replay", *words]) == 2
    said = capsys.readouterr().err
    assert problem in said
    assert said.startswith("dcollect: ") and said.count("\n") == 1


def test_a_replay_of_two_servers(bench: Bench) -> None:
    target = bench.folder / "made" / "page.html"
    target.parent.mkdir()
    done = bench.dcollect(
        "replay", "--servers", "fork,epoll", "--requests", 6, "--clients", 3, "--output", target
    )
    assert (done.returncode, done.stdout) == (0, f"{target}\n"), done.stderr
    assert sorted(path.name for path in target.parent.iterdir()) == [
        "page-epoll.json", "page-fork.json", "page.html",
    ]  # fmt: skip
    text = target.read_text()
    fork_scene, epoll_scene = data_of(text)["scenes"]
    for one in (*fork_scene["connections"], *epoll_scene["connections"]):
        assert one["status"] == 200
        assert one["connecting"] < one["ended"]
        assert one["accepted"] < one["closed"]
    assert sum(thread["born"] is not None for thread in fork_scene["threads"]) == 7
    assert all(thread["born"] is None for thread in epoll_scene["threads"])
    assert "got the load five times" in text
    assert "--servers fork,epoll --requests 6 --clients 3</code>" in text


def test_a_replay_of_a_crash(bench: Bench) -> None:
    target = bench.folder / "crash" / "page.html"
    target.parent.mkdir()
    done = bench.dcollect("replay", "--crash", "--servers", "fork,thread", "--output", target)
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in target.parent.iterdir())
    assert names == ["page-fork.json", "page.html"]
    fork_scene, thread_scene = data_of(target.read_text())["scenes"]
    assert [one["document"] for one in fork_scene["connections"] if one["status"] != 200] == [CRASH]
    assert sum(thread["crashed"] for thread in fork_scene["threads"]) == 1
    assert sum(one["status"] != 200 for one in thread_scene["connections"]) > 1


def test_an_interrupted_replay_leaves_no_empty_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(labels: list[str], load: Play, page: Path) -> list[Scene]:
        assert page.parent.is_dir()
        raise KeyboardInterrupt

    monkeypatch.setattr("collect.replay_command.results_folder", lambda: tmp_path)
    monkeypatch.setattr("collect.replay_command._play_all", interrupt)
    assert main(["replay", "--servers", "fork"]) == 130
    assert list((tmp_path / "replay").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--servers", "fork+nosuch"], "--servers: `fork+nosuch`: "),
        (["--output", "here/page.html"], "--output: there is no folder 'here'"),
        (["--output", "here"], "--output of a replay takes a file NAME.html, not 'here'"),
    ],
)
def test_what_is_refused_before_a_server_starts(
    bench: Bench, words: list[str], problem: str
) -> None:
    done = bench.dcollect("replay", *words)
    assert done.returncode == 2
    assert problem in done.stderr
    assert not Path("here").exists()
