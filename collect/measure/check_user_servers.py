"""Tries the servers that a study starts by a command of its user, before anything is measured."""

from __future__ import annotations

from pathlib import Path

from collect.design.study import Study
from collect.measure import control_groups
from collect.measure.documents import prepare_documents
from collect.measure.scratch import scratch
from collect.measure.server_commands import Setting
from collect.measure.servers import ServerProblem, Servers, ask
from collect.project import fail


def try_commands(study: Study) -> None:
    """Fails if a server does not start, or does not answer for the first document."""
    if not study.commands or "http" not in study.levels["scheme"]:
        return
    with scratch() as work:
        documents = prepare_documents(work, study.levels["file"])
        accounting = control_groups.begin()
        servers = Servers(work, accounting)
        try:
            for label, command in study.commands.items():
                if label in study.levels["server"]:
                    _try(servers, study, documents, label, command)
        finally:
            servers.stop_all()
            accounting.end()


def _try(servers: Servers, study: Study, documents: Path, label: str, command: str) -> None:
    setting = Setting(
        label=label, documents=documents, certificates=documents, workers=1,
        path=study.levels["file"][0], command=command, directory=study.directory,
    )  # fmt: skip
    try:
        server = servers.start(label, setting)
    except ServerProblem as problem:
        fail(f"{problem}; nothing was measured")
    status = (ask(server.url, setting.path) or [""])[0]
    if status.split(" ")[1:2] != ["200"]:
        fail(f"{label} answers GET /{setting.path} with `{status}`; nothing was measured")
    servers.stop(label)
