#!/usr/bin/python3
"""Runs a server, and writes what it has used when it has ended.

usage:    resource_usage.py FILE COMMAND...
example:  resource_usage.py /tmp/used ./fork_server 7799

FILE gets a line: the page faults, and how often it gave its processor up; both of all its threads,
and of the children that it waited for.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path


def main() -> int:
    target, *command = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    server = subprocess.Popen(command, preexec_fn=_unblock)
    signal.signal(signal.SIGTERM, lambda number, frame: server.send_signal(number))
    _unblock()
    _, status, used = os.wait4(server.pid, 0)
    Path(target).write_text(f"{used.ru_minflt + used.ru_majflt} {used.ru_nvcsw}\n")
    return os.waitstatus_to_exitcode(status)


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


if __name__ == "__main__":
    sys.exit(main())
