"""The page of a replay: scenes, questions and numbers in one file of HTML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from collect.measure.load_for_replay import (
    BIG,
    BIG_EVERY,
    CRASH,
    SLOW_PAUSE_SECONDS,
    SLOW_PIECES,
    Play,
)
from collect.present.replay_questions import Numbers, questions_of, time_text
from collect.present.replay_scene import ACTIVITIES, Scene, Thread, most_held
from collect.present.server_looks import look_of
from collect.present.templating import TEMPLATES, render_html

# The name of each activity on the page, in the order of the legend.
NAMES = {
    "accept": "accept",
    "hand over": "hand over",
    "begin": "begin",
    "wait": "wait for the client",
    "read": "read",
    "respond": "respond",
    "write": "write",
    "close": "close",
}


@dataclass(frozen=True)
class Told:
    """The facts about how a page was made, which it states."""

    when: str
    command: str
    machine: Mapping[str, str]


def page_of_replay(scenes: Sequence[Scene], load: Play, told: Told) -> str:
    """Returns the page."""
    questions = questions_of(scenes)
    data = {
        "activities": ACTIVITIES,
        "names": NAMES,
        "end": _rounded(max(scene.end for scene in scenes)),
        "scenes": [_scene_data(scene) for scene in scenes],
        "questions": {
            question.name: {"moment": _rounded(question.moment), "scenes": question.scenes}
            for question in questions
        },
    }
    return render_html(
        "replay.html.j2",
        title="Replay: " + ", ".join(scene.label for scene in scenes),
        scenes=scenes, looks={scene.label: look_of(scene.label) for scene in scenes},
        plays=len(scenes[0].plays), numbers=[Numbers(scene) for scene in scenes],
        questions=questions, names=NAMES,
        load=load, crash=CRASH, big=BIG, big_every=BIG_EVERY, pieces=SLOW_PIECES,
        pause=round(SLOW_PAUSE_SECONDS * 1000), time=time_text, told=told,
        data=Markup(_json(data)), style=Markup(_text("replay.css")),
        script=Markup(_text("replay.js")),
    )  # fmt: skip


def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _json(data: object) -> str:
    """JSON for a script element: `<` would end it."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _rounded(moment: float | None) -> float | None:
    return None if moment is None else round(moment, 3)


def _scene_data(scene: Scene) -> dict[str, Any]:
    return {
        "label": scene.label,
        "places": scene.places,
        "processors": scene.processors,
        "end": _rounded(scene.end),
        "threads": [_thread_data(thread, scene) for thread in scene.threads],
        "connections": [
            {
                "number": one.number,
                "slow": one.slow,
                "document": one.document,
                "connecting": _rounded(one.connecting),
                "accepted": _rounded(one.accepted),
                "closed": _rounded(one.closed),
                "ended": _rounded(one.ended),
                "status": one.status,
            }
            for one in scene.connections
        ],
    }


def _thread_data(thread: Thread, scene: Scene) -> dict[str, Any]:
    """A thread; each of its spans is a list, since there are many: start, end, activity,
    connection, processor, bytes."""
    return {
        "name": thread.name,
        "id": thread.tid,
        "kind": "process" if thread.is_process else "thread",
        "place": thread.place,
        "holds": held[0] if (held := most_held(thread, scene.connections)) else 0,
        "born": _rounded(thread.born),
        "made": thread.is_made_for_load,
        "died": _rounded(thread.died),
        "crashed": thread.crashed,
        "spans": [
            [
                _rounded(span.start),
                _rounded(span.end),
                ACTIVITIES.index(span.what),
                span.connection,
                span.processor,
                span.bytes,
            ]
            for span in thread.spans
        ],
    }
