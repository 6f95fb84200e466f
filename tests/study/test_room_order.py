"""The rooms of the package: each imports from those before it alone, so that data flows one way."""

from __future__ import annotations

import re
from pathlib import Path

from collect.project import COLLECT

ROOMS = ("design", "measure", "infer", "present")
IMPORT = re.compile(r"^\s*(?:from|import) collect\.(\w+)\b", re.MULTILINE)


def arrows_back(package: Path) -> list[str]:
    """The imports from a room that comes later."""
    found = []
    for place, room in enumerate(ROOMS):
        for path in sorted((package / room).glob("**/*.py")):
            rooms = [name for name in IMPORT.findall(path.read_text()) if name in ROOMS[place + 1 :]]
            found += [f"{room}/{path.name} imports from {name}" for name in rooms]
    return found


def test_no_room_imports_from_a_later_one() -> None:
    assert all((COLLECT / room).is_dir() for room in ROOMS)
    assert arrows_back(COLLECT) == []


def test_an_import_from_a_later_room_is_found(tmp_path: Path) -> None:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    (tmp_path / "infer" / "wrong.py").write_text(
        "from collect.design.study import Study\n"
        "def later():\n    from collect.present import facts\n    return facts\n"
    )
    (tmp_path / "design" / "wrong.py").write_text("import collect.infer.cells\n")
    assert arrows_back(tmp_path) == [
        "design/wrong.py imports from infer", "infer/wrong.py imports from present",
    ]  # fmt: skip
