"""Clients that hold connections while a load is measured (hold_connections.c)."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from collect.design.factors import HOLDING
from collect.measure.control_groups import Group
from collect.measure.servers import split_address
from collect.project import CLIENTS
from collect.readable_numbers import one_line

# A server that takes no further connection for this long cannot hold more.
PATIENCE_SECONDS = 2
END_SECONDS = 5.0
# For each factor: what hold_connections.c calls these clients, and what is said of them.
KINDS = {
    "idle": ("idle", ""),
    "slow": ("slow", "slow clients"),
    "readers": ("read", "slow readers"),
}
# The document of slow readers, which is larger than all that the kernel keeps for a connection.
READ_FILE = f"{16 * 2**20}.bin"


class Held(NamedTuple):
    """Clients that hold connections: one of the factors HOLDING, and how many there are."""

    factor: str
    size: int


def asked(cell: Mapping[str, str]) -> Held | None:
    """Returns the clients that a cell holds beside its load."""
    return next((Held(name, int(cell[name])) for name in HOLDING if cell[name] != "0"), None)


@dataclass
class Crowd:
    """A crowd that holds its connections.

    problem   why the server cannot hold them; "" where it can
    each_kib  what the memory of the server's group grew by while they came, per connection
    held cut  what the crowd said at its end
    """

    process: subprocess.Popen[bytes]
    out: Path
    problem: str = ""
    each_kib: str = "-"
    held: str = "-"
    cut: str = "-"

    def end(self) -> None:
        """Ends the crowd, and reads what it says of its connections."""
        with suppress(OSError):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for line in self.out.read_text().splitlines():
            words = line.split()
            if words[:1] == ["end"] and len(words) == 5:
                self.held, self.cut = words[1], words[3]
                if not self.problem and words[2] != "0":
                    self.problem = f"cannot hold: {words[2]} were closed meanwhile"


def begin(
    held: Held, url: str, file: str, *, group: Group, work: Path, timeout: int,
    stopped: Callable[[], bool],
) -> Crowd:  # fmt: skip
    """Starts clients that ask for a file, and waits until all of them are there, or none is added
    any more: then the crowd has a problem."""
    kind, many = KINDS[held.factor]
    count = held.size
    out, errors = work / "crowd.out", work / "crowd.err"
    before = group.memory_bytes()
    command = [
        str(CLIENTS / "hold_connections"),
        kind,
        str(count),
        "--patience",
        str(PATIENCE_SECONDS),
    ]
    path = READ_FILE if kind == "read" else file
    command += ["--seconds", str(timeout + 60), str(split_address(url)[1]), f"/{path}"]
    with out.open("wb") as output, errors.open("wb") as error:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=error)
    crowd = Crowd(process, out)
    words: list[str] = []
    while not words and process.poll() is None and not stopped():
        time.sleep(0.003)
        text = out.read_text()
        words = text.split() if text.endswith("\n") else []
    words = words or out.read_text().split()
    if words[:1] != ["ready"]:
        crowd.problem = f"the crowd does not come: {one_line(errors.read_text())}"
    elif words[1] != str(count):
        could = f"{words[1]} of {count}"
        crowd.problem = (
            f"cannot hold: {could}" if kind == "idle" else f"{could} {many} could connect"
        )
    else:
        after = group.memory_bytes()
        if before is not None and after is not None:
            crowd.each_kib = f"{max(after - before, 0) / count / 1024:.3f}"
    return crowd
