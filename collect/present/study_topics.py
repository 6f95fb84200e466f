"""The topics by which the published studies are ordered."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from collect.present.published_runs import Published

TOPICS_FILE = Path(__file__).with_name("study_topics.toml")
OTHERS = "Other questions"


@dataclass(frozen=True)
class Topic:
    """A topic, and its published runs in the order of their studies."""

    name: str
    runs: tuple[Published, ...]

    @property
    def by_study(self) -> list[list[Published]]:
        """The runs of each study, the newest first."""
        newest = sorted(self.runs, key=lambda run: run.machine["started"], reverse=True)
        studies = dict.fromkeys(run.study for run in self.runs)
        return [[run for run in newest if run.study == study] for study in studies]


def studies_by_topic() -> dict[str, list[str]]:
    data = tomllib.loads(TOPICS_FILE.read_text(encoding="utf-8"))
    return {topic["name"]: topic["studies"] for topic in data["topic"]}


def by_topic(runs: Sequence[Published]) -> list[Topic]:
    """Returns the topics that have published runs. Studies that no topic names come last."""
    topics = studies_by_topic()
    known = {study for studies in topics.values() for study in studies}
    topics[OTHERS] = list(dict.fromkeys(run.study for run in runs if run.study not in known))
    found = [
        Topic(name, tuple(run for study in studies for run in runs if run.study == study))
        for name, studies in topics.items()
    ]
    return [topic for topic in found if topic.runs]
