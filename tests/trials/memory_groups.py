"""Control groups that limit the memory of a server."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def _place() -> tuple[Path, str]:
    """The folder of this process's group that limits memory, and the file of the limit."""
    groups = Path("/proc/self/cgroup").read_text()
    if one := re.search(r"^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$", groups, re.M):
        return Path("/sys/fs/cgroup/memory" + one[1]), "memory.limit_in_bytes"
    two = re.search(r"^0::(.*)$", groups, re.M)
    return Path("/sys/fs/cgroup" + (two[1] if two else "")), "memory.max"


def memory_in_use(group: Path) -> int:
    """The bytes that the processes of a group use."""
    for file in ("memory.usage_in_bytes", "memory.current"):
        with suppress(OSError):
            return int((group / file).read_text())
    return 0


@contextmanager
def memory_group(limit: int) -> Iterator[Path | None]:
    """Makes a group with this limit in bytes, and removes it at the end; None where it cannot."""
    parent, file = _place()
    group = parent / f"trust-{os.getpid()}"
    made = False
    with suppress(OSError):
        group.mkdir()
        made = True
        (group / file).write_text(str(limit))
    try:
        usable = made and (group / file).exists()
        yield group if usable else None
    finally:
        for _ in range(100 if made else 0):
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.02)
