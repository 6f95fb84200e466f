"""Refuses a study that names something that does not exist, before anything runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from collect.design.factors import WORK_KINDS
from collect.design.study import Condition, Study, study_names
from collect.design.study_mistakes import Source
from collect.infer.claims_file import read_wording
from collect.install_and_build import build
from collect.measure.documents import made_size
from collect.measure.server_commands import (
    all_recipes,
    check_command_of,
    is_floor,
    is_known,
    is_peer,
    options_of,
    recipe_name,
)
from collect.project import DATA

NO_CLAIMS = ("none", "-", "A/A")


def check_names(study: Study, source: Source) -> None:
    """Fails at the first name of a server, an option, a document, a claim or a study that does not
    exist."""
    for name in study.commands:
        if name == "all" or is_known(name):
            source.fail("servers", f"`{name}` has a command, but is the name of another server")
    servers = [("servers", label) for label in study.levels["server"]]
    for key, label in (*servers, *_named(study, "server")):
        _check_server(study, source, key, label)
    files = [("files", name) for name in study.levels["file"]]
    for key, name in (*files, *_named(study, "file")):
        _check_file(study, source, key, name)
    claims = read_wording().claims
    for claim in study.claims:
        if claim not in NO_CLAIMS and claim not in claims:
            source.fail("claims", f"`{claim}` is no claim; there are: {' '.join(claims)}")
    for name in study.see:
        if name not in study_names():
            source.fail("see", f"`{name}` is no study; there are: {' '.join(study_names())}")
    if study.baseline and "all" not in study.levels["server"]:
        _check_server(study, source, "baseline", study.baseline)


def _named(study: Study, factor: str) -> Iterator[tuple[str, str]]:
    """The values of a factor that conditions name, and the key of each."""
    conditions: list[tuple[str, Condition]] = []
    for where in study.where:
        conditions += [("where.when", where.when), ("where.only", where.only)]
    conditions += [("blocks.when", limit.when) for limit in study.limits]
    conditions += [("theirs.when", theirs.when) for theirs in study.theirs]
    asked = [("contrast", study.contrast)] if study.contrast else []
    for key, one in (*asked, *(("also", further) for further in study.also)):
        conditions.append((f"{key}.when", one.when))
        for end, side in (("of", one.of), ("to", one.to)):
            conditions.append((f"{key}.{end}", Condition({name: (v,) for name, v in side.items()})))
    for key, condition in conditions:
        for value in condition.values.get(factor, ()):
            yield key, value


def _check_server(study: Study, source: Source, key: str, label: str) -> None:
    name = recipe_name(label)
    if name in study.commands or label == "all":
        return
    if not is_known(name):
        known = " ".join((*all_recipes(), *study.commands))
        source.fail(key, f"`{label}` is no server; there are: {known}")
    if not options_of(label):
        return
    if is_peer(name):
        source.fail(key, f"`{label}`: {name} takes no option here")
    build()
    done = subprocess.run(check_command_of(label), capture_output=True, text=True, check=False)
    if done.returncode:
        words = done.stderr.strip().splitlines()[:1]
        program = "floor" if is_floor(name) else f"{name}_server"
        source.fail(key, f"`{label}`: {program} refuses it: {words[0] if words else 'no reason'}")


def _check_file(study: Study, source: Source, key: str, name: str) -> None:
    """Checks the name of a document. A service other than `files` has numbers or kinds of work for
    names; a server with a command may have any."""
    alone = all(recipe_name(label) in study.commands for label in study.levels["server"])
    numbered = name.isdigit() and set(study.levels["service"]) != {"files"}
    if name in WORK_KINDS and "work" in study.levels["service"]:
        return
    if alone or numbered or made_size(name) is not None or (DATA / name).is_file():
        return
    known = " ".join(sorted(path.name for path in DATA.iterdir() if path.is_file()))
    source.fail(key, f"`{name}` is no document; data/ has: {known}; N.bin is made, of N bytes")
