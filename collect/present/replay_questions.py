"""Questions to a replay that readers answer before they look, with answers from the traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from collect.measure.load_for_replay import CRASH
from collect.present.replay_scene import Connection, Scene, Span, Thread, most_held
from collect.readable_numbers import human, join_text, plural


@dataclass(frozen=True)
class Question:
    """A question. It asks for a number of `unit`, or for one of `choices`."""

    name: str
    text: str
    answer: str
    moment: float  # where the replay shows it
    scenes: tuple[str, ...]
    right: str
    unit: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Numbers:
    """The numbers of a scene, in microseconds: what the questions and the table are made of."""

    scene: Scene

    @property
    def fast(self) -> list[Connection]:
        return [one for one in self.scene.connections if not one.slow]

    @property
    def served(self) -> int:
        return len(self.scene.connections) - self.scene.failures

    @property
    def made(self) -> int:
        """Processes or threads that began during the load."""
        return sum(thread.is_made_for_load for thread in self.scene.threads)

    @property
    def there_before(self) -> int:
        return len(self.scene.threads) - self.made

    @property
    def word(self) -> str:
        return "thread" if self.scene.makes_threads else "process"

    @property
    def words(self) -> str:
        return "threads" if self.scene.makes_threads else "processes"

    def longest_wait(self) -> tuple[float, Connection] | None:
        """The longest time of a fast client in the accept queue."""
        waits = [(one.accepted - one.connecting, one) for one in self.fast if one.accepted]
        return max(waits, key=lambda pair: pair[0]) if waits else None

    def hand_overs(self) -> list[Span]:
        fast = {one.number for one in self.fast}
        return [
            span
            for _, span in self.scene.spans()
            if span.what == "hand over" and span.connection in fast
        ]

    def hand_over_time(self) -> float | None:
        """The median time in which a fast connection is handed over."""
        times = [span.end - span.start for span in self.hand_overs()]
        return median(times) if times else None

    def response_time(self) -> float | None:
        """The median time of the fast clients for a connection, the accept queue included."""
        times = [one.ended - one.connecting for one in self.fast]
        return median(times) if times else None

    def slow_time(self) -> float | None:
        times = [one.ended - one.connecting for one in self.scene.connections if one.slow]
        return max(times, default=None)

    def most_held(self) -> tuple[int, Thread, float] | None:
        """The most connections that one thread held at once, the thread, and when."""
        best: tuple[int, Thread, float] | None = None
        for thread in self.scene.threads:
            held = most_held(thread, self.scene.connections)
            if held and (best is None or held[0] > best[0]):
                best = (held[0], thread, held[1])
        return best


def time_text(microseconds: float) -> str:
    """1234.5 -> 1.23 ms, 56.7 -> 56.7 µs."""
    if microseconds >= 1000:
        return f"{human(microseconds / 1000)} ms"
    return f"{human(microseconds)} µs"


def questions_of(scenes: Sequence[Scene]) -> list[Question]:
    """The questions that these scenes can answer."""
    all_numbers = [Numbers(scene) for scene in scenes]
    if any(one.document == CRASH for scene in scenes for one in scene.connections):
        return [_lost(all_numbers)]
    makers = (_made, _waited, _handed_over, _held_at_once, _first)
    return [question for make in makers if (question := make(all_numbers))]


def _lost(all_numbers: Sequence[Numbers]) -> Question:
    """How many connections a crash took with it, besides the one that crashed."""
    most = max(all_numbers, key=lambda numbers: numbers.scene.failures)
    scene = most.scene
    (crash,) = [one for one in scene.connections if one.document == CRASH]
    count = scene.failures - 1
    others = [
        f"{numbers.scene.label} {numbers.scene.failures - 1}"
        for numbers in all_numbers
        if numbers is not most
    ]
    answer = f"{count} under {scene.label}."
    if others:
        answer += f" The others: {join_text(others)}."
    return Question(
        "lost",
        f"Connection {crash.number} crashes the process that serves it. How many of the other "
        f"{len(scene.connections) - 1} connections got no response under {scene.label}?",
        answer, crash.ended, (scene.label,), str(count), "connections",
    )  # fmt: skip


def _made(all_numbers: Sequence[Numbers]) -> Question | None:
    most = max(all_numbers, key=lambda numbers: numbers.made)
    if not most.made:
        return None
    scene = most.scene
    count = plural(len(scene.connections), "connection", "connections")
    others = [
        f"{numbers.scene.label} {plural(numbers.made, numbers.word, numbers.words)}"
        for numbers in all_numbers
        if numbers is not most and numbers.made
    ]
    none = [numbers.scene.label for numbers in all_numbers if not numbers.made]
    answer = f"{scene.label} made {plural(most.made, most.word, most.words)}."
    if others:
        answer += f" In the same time {join_text(others)}."
    if none:
        answer += (
            f" {join_text(none)} made none: what serves there was made before the first client."
        )
    return Question(
        "made",
        f"How many {most.words} did {scene.label} make for {count}?",
        answer, scene.end, (scene.label,), str(most.made), most.words,
    )  # fmt: skip


def _waited(all_numbers: Sequence[Numbers]) -> Question | None:
    waits = [(*wait, numbers) for numbers in all_numbers if (wait := numbers.longest_wait())]
    if not waits or not any(one.slow for one in waits[0][2].scene.connections):
        return None
    longest, connection, numbers = max(waits, key=lambda row: row[0])
    label, accepted = numbers.scene.label, connection.accepted or 0.0
    others = [f"{row[2].scene.label} {time_text(row[0])}" for row in waits if row[2] is not numbers]
    answer = f"{time_text(longest)}: connection {connection.number} of {label}."
    if others:
        answer += f" The longest wait elsewhere: {join_text(others)}."
    return Question(
        "waited",
        f"One client sends its request slowly. How long did a fast client wait under {label}, "
        "at most, until the server accepted its connection?",
        answer, max(accepted - longest / 20, 0.0), (label,), human(longest / 1000), "ms",
    )  # fmt: skip


def _handed_over(all_numbers: Sequence[Numbers]) -> Question | None:
    times = [(time, numbers) for numbers in all_numbers if (time := numbers.hand_over_time())]
    if len(times) < 2:
        return None
    times.sort(key=lambda row: row[0], reverse=True)
    (longest, most), (shortest, least) = times[0], times[-1]
    spans = [span for span in most.hand_overs() if span.end - span.start <= longest]
    typical = max(spans, key=lambda span: span.end - span.start)
    listed = [f"{numbers.scene.label} {time_text(time)}" for time, numbers in times]
    return Question(
        "handed",
        "The accepting process hands each connection over to another process or thread. That takes "
        f"{most.scene.label} longer than {least.scene.label}: how many times as long?",
        f"{human(longest / shortest)} times. The medians: {join_text(listed)}. In that time no "
        "other connection is accepted.",
        (typical.start + typical.end) / 2, (most.scene.label, least.scene.label),
        human(longest / shortest), "times",
    )  # fmt: skip


def _held_at_once(all_numbers: Sequence[Numbers]) -> Question | None:
    held = [(*most, numbers) for numbers in all_numbers if (most := numbers.most_held())]
    if not held:
        return None
    count, thread, when, numbers = max(held, key=lambda row: row[0])
    if count < 2:
        return None
    word = "process" if thread.is_process else "thread"
    scene = numbers.scene
    others = [f"{row[3].scene.label} {row[0]}" for row in held if row[3] is not numbers]
    answer = f"{count}: {thread.name} of {scene.label}."
    if others:
        answer += f" The most elsewhere: {join_text(others)}."
    return Question(
        "held",
        f"How many connections did one {word} of {scene.label} hold at the same time, at most?",
        answer, when, (scene.label,), str(count), "connections",
    )  # fmt: skip


def _first(all_numbers: Sequence[Numbers]) -> Question | None:
    ends = [(numbers.scene.fast_end, numbers.scene) for numbers in all_numbers]
    if len(ends) < 2:
        return None
    ends.sort(key=lambda row: row[0])
    listed = [f"{scene.label} {time_text(end)}" for end, scene in ends]
    count = len(all_numbers[0].fast)
    return Question(
        "first",
        f"Which server had served all {count} fast connections last?",
        f"{ends[-1][1].label}. The last response came, after the load began: {join_text(listed)}.",
        ends[-1][0], (ends[-1][1].label, ends[0][1].label), ends[-1][1].label,
        choices=_labels(all_numbers),
    )  # fmt: skip


def _labels(all_numbers: Sequence[Numbers]) -> tuple[str, ...]:
    return tuple(numbers.scene.label for numbers in all_numbers)
