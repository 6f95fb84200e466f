"""The folder of documents that the servers of a study serve."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from collect.project import DATA


def made_size(name: str) -> int | None:
    """The size of a document that is made for a study, such as 500.bin; None for all others."""
    number = name.removesuffix(".bin")
    return int(number) if number != name and number.isdigit() and len(number) < 10 else None


def prepare_documents(work: Path, names: Iterable[str]) -> Path:
    """Copies the documents of data/. One called N.bin that it does not hold is made, of N bytes."""
    documents = work / "data"
    documents.mkdir()
    for path in DATA.iterdir():
        if path.is_file():
            shutil.copy(path, documents)
    for name in set(names):
        size, path = made_size(name), documents / name
        if size is not None and not path.exists():
            path.write_bytes(os.urandom(size))
    for path in documents.iterdir():
        path.chmod(0o644)
    documents.chmod(0o755)
    return documents
