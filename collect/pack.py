"""Packs a results folder or a campaign into one file for others: tables and raw output, without
what can be made of them.

Its members stand in STUDY/MACHINE-DATE/, so that it can be unpacked in report/.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from collect.campaign import is_campaign, read_campaign
from collect.design.study import load_study
from collect.project import MACHINE_FILE, RUNS_FILE, STUDY_FILE, fail
from collect.tables import read_pairs

# Made from the tables by `report DIR`, and while a study ran.
MADE = frozenset({"figures", "report.md", "index.html", "live.html", "live.js"})
WORDS_MOST = 4


def machine_name(pairs: dict[str, str]) -> str:
    """A short name of a machine and a day: amd-epyc-2-20261122."""
    model = re.sub(r"\(.*?\)", " ", pairs.get("processor_model", "machine")).lower()
    words = re.findall(r"[a-z0-9]+", model)[:WORDS_MOST]
    day = re.sub(r"[^0-9]", "", pairs.get("started", ""))[:8]
    return "-".join([*words, pairs.get("processors", "1"), day or "undated"])


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in MADE or path.name.startswith("."):
            continue
        if path.is_dir():
            yield from (file for file in sorted(path.iterdir()) if file.is_file())
        elif path.is_file():
            yield path


def pack(folder: Path) -> Path:
    """Packs a folder; returns the file, which is in the working folder."""
    folders = [folder]
    if is_campaign(folder):
        campaign = read_campaign(folder)
        folders = [campaign.results(name) for name in campaign.studies]
        folders = [path for path in folders if (path / RUNS_FILE).is_file()]
    if not folders or not all((path / RUNS_FILE).is_file() for path in folders):
        fail(f"{folder} holds no {RUNS_FILE}: nothing to pack", 2)
    names = [load_study(path / STUDY_FILE).name for path in folders]
    machine = machine_name(read_pairs(folders[0] / MACHINE_FILE))
    title = names[0] if len(names) == 1 else "campaign"
    target = Path(f"{title}-{machine}.tar.gz")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, path in zip(names, folders, strict=True):
            for file in _files(path):
                _add(archive, file, f"{name}/{machine}/{file.relative_to(path)}")
    # The same folder makes the same bytes.
    target.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return target


def _add(archive: tarfile.TarFile, file: Path, name: str) -> None:
    """Adds a file without its owner."""
    member = tarfile.TarInfo(name)
    data = file.read_bytes()
    member.size, member.mode = len(data), 0o644
    member.mtime = int(file.stat().st_mtime)
    archive.addfile(member, io.BytesIO(data))
