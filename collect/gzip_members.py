"""Files of gzip members, one for each piece of text: a torn end takes nothing else with it."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path


def append(path: Path, text: str) -> None:
    with path.open("ab") as file:
        file.write(gzip.compress(text.encode(), 1))


def mend(path: Path) -> None:
    """Takes a torn end away; what can be read of it is kept."""
    if not path.exists():
        return
    text, torn = _readable(path.read_bytes())
    if torn:
        new = path.with_suffix(".part")
        new.write_bytes(gzip.compress(text))
        new.replace(path)


def read(path: Path) -> str:
    """Returns what can be read of a file; nothing where there is none."""
    return _readable(path.read_bytes())[0].decode() if path.exists() else ""


def _readable(data: bytes) -> tuple[bytes, bool]:
    """What can be read, and whether the end is torn."""
    text = b""
    while data:
        member = zlib.decompressobj(wbits=31)
        try:
            text += member.decompress(data)
        except zlib.error:
            break
        if not member.eof:
            break
        data = member.unused_data
    return text, bool(data)
