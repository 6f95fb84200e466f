"""A folder for temporary files that does not outlive its owner for long.

Its owner holds a lock on it, which the kernel takes away with the last of its processes, however
they end. The next owner finds the folder of one that was killed and could not clean up: nobody
holds it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "fork-vs-thread.work."


def _lock(folder: Path) -> int | None:
    """Opens and locks a folder; None where somebody holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def sweep(parent: Path) -> None:
    """Removes the folders of this user that nobody holds."""
    for folder in parent.glob(f"{NAME}??????*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            descriptor = _lock(folder)
        except OSError:
            continue
        if descriptor is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


@contextmanager
def scratch() -> Iterator[Path]:
    """Makes a folder, and removes it at the end."""
    parent = Path(os.environ.get("TMPDIR") or "/tmp")
    sweep(parent)
    # It has another name until it is locked, so that nobody takes it for one that was left.
    made = Path(tempfile.mkdtemp(prefix="fork-vs-thread.new.", dir=parent))
    folder = parent / (NAME + made.name.rsplit(".", 1)[1])
    descriptor = _lock(made)
    made.rename(folder)
    # Servers that give up their rights read their documents in it.
    folder.chmod(0o755)
    owner = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)
