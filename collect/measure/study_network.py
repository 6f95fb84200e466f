"""A network of a study's own: a slow link between server and load, or more ports for clients.

The run stage has a network namespace of its own, with the servers in it. For a link the load is in
another one, at the other end of a pair of veth devices. Neither has a name; both are held by
processes and their open files alone, and with these the kernel takes them away, devices and all,
however they end. The rate is that of tbf on the server's device, for what the load downloads; the
way back is free. Packets are as long as on an Ethernet: without that a device hands on 64 KiB at
once. The way back takes 60 ms more, or as many as a study says: by a program that carries the
packets (clients/delay_packets.c), since not every kernel has netem.

A client that opens very many connections, one after the other, runs out of ports that are not in
TIME_WAIT, and the search for one takes long. In a namespace it can have more ports than the machine
gives to everybody. This needs root: servers that root starts change their user, and a user
namespace would know one user alone.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from collect.measure.load_hosts import LoadHosts
from collect.measure.server_commands import Need, is_installed
from collect.measure.servers import ServerProblem
from collect.project import CLIENTS, fail
from collect.readable_numbers import one_line

NEAR, FAR = "192.0.2.1", "192.0.2.2"
DELAY_MS = 60
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
NEEDS = (Need("ip", "iproute2"), Need("tc", "iproute2"), Need("nsenter", "util-linux"))


@dataclass
class Link:
    """The way to the load, where it is not on the loopback of this machine: the server is at the
    address `near`. The load is at the other end of a link that `text` describes, which `far` keeps
    (`across` is put before its command); or it comes from other machines, the `hosts`."""

    near: str = ""
    across: tuple[str, ...] = ()
    text: str = ""
    far: int = -1
    way_back: WayBack | None = None
    hosts: LoadHosts | None = None

    def set_round_trip(self, milliseconds: int) -> None:
        """Has the way back take so long from now on."""
        if self.way_back:
            self.way_back.set_delay(milliseconds)
        elif milliseconds != DELAY_MS:
            raise ServerProblem(f"the link has no delay here: {self.text}")


class WayBack:
    """A way from the load to the server that takes some time: the program that carries packets."""

    def __init__(self, across: Sequence[str]) -> None:
        command = [*across, str(CLIENTS / "delay_packets"), "--into", f"/proc/{os.getpid()}/ns/net"]
        self.process = subprocess.Popen(
            [*command, str(DELAY_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.delay = DELAY_MS
        self._wait()
        _run(*across, "ip", "link", "set", "delay-in", "up")
        _run("ip", "link", "set", "delay-out", "up")
        _run(*across, "ip", "route", "add", f"{NEAR}/32", "dev", "delay-in", "src", FAR)

    def set_delay(self, milliseconds: int) -> None:
        if milliseconds != self.delay:
            assert self.process.stdin
            self.process.stdin.write(f"{milliseconds}\n")
            self.process.stdin.flush()
            self._wait()
            self.delay = milliseconds

    def _wait(self) -> None:
        """Waits until the program says that it is ready."""
        assert self.process.stdout and self.process.stderr
        if self.process.stdout.readline() != "ready\n":
            raise ServerProblem(one_line(self.process.stderr.read())[-200:])


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter_namespace() -> None:
    """Gives this process a network namespace; where it is not root, also a user namespace in
    which it is."""
    if os.geteuid() == 0:
        _unshare(CLONE_NEWNET)
        return
    user, group = os.geteuid(), os.getegid()
    _unshare(CLONE_NEWUSER | CLONE_NEWNET)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def problem() -> str:
    """Returns why no link can be made here; "" if one can. A child tries."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            enter_namespace()
        except OSError as error:
            os.write(write, str(error).encode())
            os._exit(1)
        os._exit(0)
    os.close(write)
    words = os.read(read, 1000).decode()
    os.close(read)
    if os.waitpid(child, 0)[1] == 0:
        return ""
    return f"a link needs a network namespace: root, or user namespaces for everybody ({words})"


def may_have_ports() -> bool:
    """Returns true if clients can have ports of their own here."""
    return os.geteuid() == 0 and is_installed("ip") and not problem()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"run: the link cannot be made: {command[0]}: {one_line(done.stderr)}")


def begin_ports(first: int, last: int) -> None:
    """Gives clients these ports, in a namespace that was entered."""
    _run("ip", "link", "set", "lo", "up")
    PORTS.write_text(f"{first} {last}")


def ports_text(link: Link) -> str:
    """Says which ports clients take, where the load is."""
    command = [*link.across, "cat", str(PORTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return " to ".join(done.stdout.split())


def _far_namespace() -> subprocess.Popen[bytes]:
    """Starts a process that has another network namespace, until its standard input ends."""
    own = os.readlink("/proc/self/ns/net")
    holder = subprocess.Popen(
        ["unshare", "--net", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 5
    while holder.poll() is None and time.monotonic() < deadline:
        if os.readlink(f"/proc/{holder.pid}/ns/net") != own:
            return holder
        time.sleep(0.005)
    fail("run: the link cannot be made: no second network namespace")


def begin(rate: str) -> Link:
    """Makes the link, in a namespace that was entered."""
    holder = _far_namespace()
    # When its process has ended, this open file alone holds the namespace.
    far = os.open(f"/proc/{holder.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    link = Link(NEAR, ("nsenter", f"--net=/proc/{os.getpid()}/fd/{far}", "--"), far=far)
    _run("ip", "link", "set", "lo", "up")
    peer = ["peer", "name", "far", "netns", str(holder.pid)]
    _run("ip", "link", "add", "near", "type", "veth", *peer)
    holder.communicate()
    _run("ip", "link", "set", "near", "gso_max_segs", "1")
    _run("ip", "address", "add", f"{NEAR}/30", "dev", "near")
    _run("ip", "link", "set", "near", "up")
    _run(*link.across, "ip", "address", "add", f"{FAR}/30", "dev", "far")
    _run(*link.across, "ip", "link", "set", "far", "up")
    shape = ["tbf", "rate", rate, "burst", "16kb", "latency", "100ms"]
    _run("tc", "qdisc", "add", "dev", "near", "root", *shape)
    link.text = f"{rate} from server to load by tbf, "
    try:
        link.way_back = WayBack(link.across)
        link.text += f"delay {DELAY_MS} ms for a way and back, or as each run has it"
    except ServerProblem as problem:
        link.text += f"no delay: {problem}"
    return link
