"""Files of gzip members, one for each piece of text: a torn end takes nothing else with it."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

# zlib copies the input that follows the end of a member: given a whole file, it would copy the rest
# of the file once a member.
PIECE = 4096


def append(path: Path, text: str) -> None:
    with path.open("ab") as file:
        file.write(gzip.compress(text.encode(), 1))


def mend(path: Path) -> None:
    """Takes a torn end away, but for the part of it that can be read."""
    if not path.exists():
        return
    text, torn = _readable(path.read_bytes())
    if torn:
        _write_as_one(path, text)


def pack(path: Path) -> None:
    """Makes one member of all, which takes less room."""
    if path.exists():
        _write_as_one(path, _readable(path.read_bytes())[0])


def read(path: Path) -> str:
    """Returns the text up to a torn end; no text where there is no file."""
    return _readable(path.read_bytes())[0].decode() if path.exists() else ""


def _write_as_one(path: Path, text: bytes) -> None:
    new = path.with_suffix(".part")
    new.write_bytes(gzip.compress(text, mtime=0))
    new.replace(path)


def _readable(data: bytes) -> tuple[bytes, bool]:
    """The text up to a torn end, and true if the end is torn."""
    text, at = bytearray(), 0
    while at < len(data):
        member = zlib.decompressobj(wbits=31)
        while not member.eof and at < len(data):
            piece = data[at : at + PIECE]
            try:
                text += member.decompress(piece)
            except zlib.error:
                return bytes(text), True
            at += len(piece) - len(member.unused_data)
        if not member.eof:
            return bytes(text), True
    return bytes(text), False
