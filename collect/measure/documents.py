"""The folder of documents that the servers of a study serve."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from collect.design.study import Study
from collect.project import DATA

# The suffix of the folder of a set of documents, after the name of the one whose size they have.
SET = ".set"


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


def count_of_set(cell: Mapping[str, str], study: Study) -> int:
    """The number of documents in the set of a cell; 0 where it has none."""
    size = made_size(cell["file"])
    if cell["data_share"] == "0" or not size or not study.memory_limit:
        return 0
    return max(1, study.memory_limit * 2**20 * int(cell["data_share"]) // 100 // size)


def prepare_sets(documents: Path, study: Study, cells: Iterable[Mapping[str, str]]) -> None:
    """Makes the sets of documents of a study, each as large as its largest cell needs it."""
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell["file"]] = max(counts.get(cell["file"], 0), count_of_set(cell, study))
    for name, count in counts.items():
        folder = documents / f"{name}{SET}"
        if count:
            folder.mkdir()
            folder.chmod(0o755)
        for number in range(count):
            path = folder / str(number)
            path.write_bytes(os.urandom(made_size(name) or 0))
            path.chmod(0o644)


def forget(path: Path) -> None:
    """Drops a set of documents from the page cache; `path` is one of them."""
    for document in path.parent.iterdir():
        descriptor = os.open(document, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
