"""A process that has imported the package and runs commands in its children.

To import pandas, scipy and the rest anew for each command would take 0.7 s of CPU time each.

The tests import PreparedPython. Started as a program with the number of a socket, it is that process.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from collect.measure.stop import end_with_parent

MODULES = ("campaign", "cli", "infer.analyse_results", "live_page", "measure.run_plan",
           "present.present_results", "replay_command")  # fmt: skip
MOST_BYTES = 1 << 20  # of an order


class PreparedPython:
    """Starts the process when the first command comes."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.channel: socket.socket | None = None

    def run(
        self, code: str, words: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Runs code as `python3 -c` does, and waits until it ends."""
        channel = self.channel or self._begin(environment)
        order = {"code": code, "words": words, "folder": os.getcwd(), "environment": environment}
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            socket.send_fds(channel, [json.dumps(order).encode()], [out.fileno(), err.fileno()])
            status = int(channel.recv(100))
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(words, status, out.read(), err.read())

    def end(self) -> None:
        if self.process and self.channel:
            self.channel.close()
            assert self.process.wait() == 0

    def _begin(self, environment: Mapping[str, str]) -> socket.socket:
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self.process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(other.fileno())], pass_fds=[other.fileno()],
                # A process with threads cannot be forked safely.
                env={**environment, "OPENBLAS_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        return self.channel


def become(order: dict[str, object], out: int, err: int) -> None:
    """Makes this child what `python3 -c` would be, and runs the code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for file, number in ((out, 1), (err, 2)):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    sys.argv = ["-c", *order["words"]]
    exec(order["code"], {"__name__": "__main__"})


def serve(channel: socket.socket) -> None:
    """Runs each command that comes in a child of its own."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for name in MODULES:
        importlib.import_module(f"collect.{name}")
    gc.freeze()
    while True:
        message, files, _, _ = socket.recv_fds(channel, MOST_BYTES, 2)
        if not message:
            return
        child = os.fork()
        if child == 0:
            channel.close()
            become(json.loads(message), *files)
            return
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
