"""A load from several machines: how it is shared out and added up, and three hosts in network
namespaces, each with a home and an SSH server of its own (dropbear, which runs without a service
manager)."""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from mark_long_cases import FOR_ALL, SHORT
from study_runs import TOP, Bench, runs, until

from collect.histogram import bucket_of, of_quantiles
from collect.measure.load_hosts import Clock, LoadHosts, Part, share_out, together
from collect.measure.loads import Load, Said, Watched, row_of, verdict
from collect.tables import read_pairs

LOAD = Load("ab", "http://192.0.2.1:7799/", "small.txt", concurrency=10, requests=1000)
CLOCKS = {name: Clock(0.0, 0.0001) for name in "abc"}
HOSTS = ("a", "b", "c")
HUB, ADDRESS = "192.0.2.1", "192.0.2.{}"

# --- sharing out, and adding up ---


def test_the_shares_are_the_load() -> None:
    shares = share_out(LOAD, HOSTS)
    assert [share.concurrency for share in shares.values()] == [4, 3, 3]
    assert [share.requests for share in shares.values()] == [334, 333, 333]
    assert len({share.seed for share in shares.values()}) == 3
    open_loop = Load("open", "", "x", concurrency=9, requests=None, rate=1001)
    assert [share.rate for share in share_out(open_loop, HOSTS).values()] == [334, 334, 333]


def test_a_host_without_a_connection_rests() -> None:
    two = Load("ab", "", "x", concurrency=2, requests=5)
    shares = share_out(two, HOSTS)
    assert {host: share.requests for host, share in shares.items()} == {"a": 3, "b": 2}


def part_of(host: str, times: list[float], **changes: object) -> Part:
    """Returns what a client reports whose requests took these times, in milliseconds."""
    count = len(times)
    mean = sum(times) / count
    said = Said(
        seconds=1.0, complete=count, failed=0, non2xx=0, length=100, rps=float(count),
        mean_ms=mean, sd_ms=math.sqrt(sum((t - mean) ** 2 for t in times) / count),
        min_ms=min(times), max_ms=max(times), kbytes_s=50.0,
        histogram={bucket: sum(bucket_of(t) == bucket for t in times)
                   for bucket in {bucket_of(t) for t in times}},
    )  # fmt: skip
    part = Part(host, LOAD, said, began=0.001, seconds=1.1, cpu=0.4, ending="0")
    for name, value in changes.items():
        setattr(said if hasattr(said, name) and not hasattr(part, name) else part, name, value)
    return part


def test_counts_add_and_percentiles_are_those_of_the_sum() -> None:
    fast, slow = [1.0] * 98, [100.0] * 2
    whole = together([part_of("a", fast), part_of("b", slow)], CLOCKS)
    assert (whole.complete, whole.failed, whole.length) == (100, 0, 100)
    # Of 100 requests 98 took a millisecond. The mean of the hosts' medians would be 50 ms.
    assert whole.p50_ms == pytest.approx(1.0, rel=0.03)
    assert whole.p99_ms == pytest.approx(100.0, rel=0.03)
    assert whole.mean_ms == pytest.approx((98 * 1 + 2 * 100) / 100)
    assert whole.sd_ms == pytest.approx(math.sqrt((98 + 2 * 10_000) / 100 - 2.98**2))
    assert (whole.min_ms, whole.max_ms) == (1.0, 100.0)
    assert whole.rps == pytest.approx(100.0)
    assert whole.kbytes_s == pytest.approx(100.0)
    assert whole.problem == ""


def test_without_histograms_there_are_no_percentiles() -> None:
    whole = together([part_of("a", [1.0]), part_of("b", [3.0], histogram={})], CLOCKS)
    assert whole.mean_ms == 2.0
    assert whole.p50_ms is None and whole.p99_ms is None and whole.histogram == {}


def test_clients_that_began_apart_made_a_longer_run() -> None:
    whole = together([part_of("a", [1.0], began=0.0), part_of("b", [1.0], began=0.03)], CLOCKS)
    assert whole.seconds == pytest.approx(1.03)
    assert whole.skew_ms == pytest.approx(30.2)
    assert whole.problem == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"began": 0.2}, "the clients may have begun 199.2 ms apart, in a run of 1.199 s"),
        ({"ending": "late", "began": 0.5}, "b heard of the run 0.50 s after it had begun"),
        ({"ending": "timeout"}, "b: not done within 60 s"),
        ({"ending": "1", "words": "refused"}, "b: ab ended with status 1: refused"),
        ({"cpu": 0.95}, "the client on b was busy for 95% of the run"),
        ({"length": 99}, "documents of different lengths"),
    ],
)
def test_what_does_not_count(changes: dict[str, object], words: str) -> None:
    whole = together([part_of("a", [1.0]), part_of("b", [1.0], **changes)], CLOCKS)
    assert words in whole.problem
    assert words in verdict(LOAD, whole, Watched(ending="0"), 100)


def test_an_unsure_clock_is_skew() -> None:
    clocks = {"a": Clock(0.0, 0.02), "b": Clock(0.0, 0.04), "c": Clock(0.0, 0.001)}
    whole = together([part_of(host, [1.0]) for host in HOSTS], clocks)
    assert whole.skew_ms == pytest.approx(60.0)
    assert "60.0 ms apart" in whole.problem


def test_the_row_has_the_busiest_client_and_the_cost_of_all() -> None:
    parts = [part_of("a", [1.0] * 50, cpu=0.2), part_of("b", [1.0] * 50, cpu=0.6)]
    row = row_of(LOAD, together(parts, CLOCKS), Watched(seconds=4.0, load_cpu=3.0, ending="0"))
    assert row["load_cpu"] == "0.600"
    assert float(row["client_cpu_us"]) == pytest.approx(0.8e6 / 100)
    assert row["first_tenth"] == "-"


def test_what_comes_back_is_read_by_host(tmp_path: Path) -> None:
    hosts = LoadHosts(("a", "b"), tmp_path)
    load = Load("witness", "", "small.txt", concurrency=2, requests=4, timeout=5)
    hosts.shares, hosts.clocks = share_out(load, ("a", "b")), CLOCKS
    times = of_quantiles([2.0] * 101, 2)
    line = "witness 0.5 2 0 0 0 0 100 - " + "2 0 2 2 2 2 2 2 400 0 0 -"
    text = "".join(
        f"{host}\t{words}\n"
        for host in ("a", "b")
        for words in ("witness", line, "histogram " + " ".join(f"{b}:{n}" for b, n in times.items()),
                      "begin_at 0.000100 0.500000 0.010000 0")
    )  # fmt: skip
    said = hosts.read("a stray line\n" + text)
    assert (said.complete, said.problem) == (4, "")
    assert hosts.read("parallel: Warning\nssh: connect: refused\n").problem == (
        "nothing came back from a, b: parallel: Warning ssh: connect: refused"
    )


# --- the moment ---


def begin_at(moment: float, timeout: float, *command: str) -> list[str]:
    done = subprocess.run(
        [str(TOP / "collect/clients/begin_at"), f"{moment:.6f}", str(timeout), *command],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def begin_soon(timeout: float, *command: str) -> tuple[float, list[str]]:
    """Begins a command as soon as this machine, which may be busy, can start begin_at."""
    for ahead in (0.2, 2, 20, 200):
        moment = time.time() + ahead
        lines = begin_at(moment, timeout, *command)
        if lines[-1].split()[-1] != "late":
            break
    return moment, lines


def test_a_command_begins_at_the_moment_and_not_before() -> None:
    moment, lines = begin_soon(60, "date", "+%s.%N")
    name, began, seconds, cpu, ending = lines[-1].split()
    assert (name, ending) == ("begin_at", "0")
    assert float(lines[0]) >= moment
    assert float(began) >= 0 and float(seconds) > 0 and float(cpu) >= 0


@pytest.mark.parametrize(
    ("timeout", "command", "ending"),
    [
        (0.1, ("sleep", "600"), "timeout"),
        (60, ("sh", "-c", "exit 7"), "7"),
        (60, ("sh", "-c", "kill -9 $$"), "137"),
        (60, ("no-such-program",), "127"),
    ],
)
def test_how_a_command_ended(timeout: float, command: tuple[str, ...], ending: str) -> None:
    _, lines = begin_soon(timeout, *command)
    assert lines[-1].split()[-1] == ending


def test_a_command_is_not_begun_when_its_moment_has_passed() -> None:
    lines = begin_at(time.time() - 1, 60, "echo", "begun")
    assert "begun" not in lines and lines[-1].split()[-1] == "late"


# --- the options ---


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--load-hosts", "a"], "they need `server-host`"),
        (["--server-host", "x"], "of which there are none"),
        (["--load-hosts", "a,-oProxyCommand=x", "--server-host", "x"], "is no [USER@]HOST"),
        (["--load-hosts", "a,a", "--server-host", "x"], "stands there twice"),
        (["--load-hosts", "a", "--server-host", "x", "--link", "1mbit"], "on this machine"),
        (["--load-hosts", "a", "--server-host", "x", "--load", "httperf"], "how busy it was"),
    ],
)
def test_wrong_hosts_are_refused(bench: Bench, words: list[str], says: str) -> None:
    done = bench.dcollect("--servers", "fork", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_an_address_of_another_machine_is_refused_before_there_is_a_folder(bench: Bench) -> None:
    folder = bench.folder / "elsewhere"
    words = ("--servers", "fork", "--load", "wrk", "--load-hosts", "a", "--server-host", "192.0.2.1")
    done = bench.dcollect("--output", folder, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("server host 192.0.2.1: 192.0.2.1 is no address of this machine\n")
    assert not folder.exists()


# --- three hosts ---


@dataclass
class Machines:
    """The namespaces: that of the server, and three hosts with an SSH server each."""

    hub: str
    folder: Path

    def home(self, host: str) -> Path:
        return self.folder / host

    def inside(self, command: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self.hub, *command]

    def at_work(self, host: str) -> list[str]:
        """The names of what runs on a host, without its SSH server."""
        done = subprocess.run(
            ["ip", "netns", "pids", f"{self.hub}-{host}"], capture_output=True, text=True, check=True
        )  # fmt: skip
        names = []
        for process in done.stdout.split():
            with suppress(OSError):
                names.append(Path(f"/proc/{process}/comm").read_text().strip())
        return [name for name in names if name != "dropbear"]

    def is_clean(self) -> bool:
        """Returns true if nothing of ours is on any host."""
        return not any(
            self.at_work(host) or list(self.home(host).glob(".fork-vs-thread*")) for host in HOSTS
        )


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def missing() -> str:
    """Returns why there can be no three hosts here; "" if there can."""
    if SHORT:
        return FOR_ALL
    programs = ("ip", "parallel", "rsync", "ssh", "ssh-keygen", "dropbear", "dropbearkey", "unshare")
    path = os.environ["PATH"] + ":/usr/sbin"
    lacking = [name for name in programs if not shutil.which(name, path=path)]
    if lacking:
        return f"no {lacking[0]}"
    if os.geteuid() != 0:
        return "an SSH server in a network namespace needs root"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "mount", "--bind", "/tmp", "/mnt"],
        capture_output=True, check=False,
    )  # fmt: skip
    return "" if tried.returncode == 0 else "no network namespace, or no mount"


def make_keys(folder: Path) -> None:
    run("dropbearkey", "-t", "ed25519", "-f", str(folder / "host_key"))
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "user_key"))
    lines = [
        f"UserKnownHostsFile {folder}/known_hosts",
        "StrictHostKeyChecking accept-new",
        f"IdentityFile {folder}/user_key",
        "IdentitiesOnly yes",
        "User root",
        *(f"Host {name}\n    HostName {ADDRESS.format(11 + i)}" for i, name in enumerate(HOSTS)),
        # Nobody is there.
        f"Host nobody\n    HostName {ADDRESS.format(99)}",
    ]
    (folder / "ssh_config").write_text("\n".join(lines) + "\n")


def start_host(machines: Machines, index: int, name: str) -> subprocess.Popen[bytes]:
    """Makes a namespace that is joined to the server's, and starts an SSH server in it."""
    space, address = f"{machines.hub}-{name}", ADDRESS.format(11 + index)
    run("ip", "netns", "add", space)
    run("ip", "-n", machines.hub, "link", "add", f"to-{name}", "type", "veth", "peer", "name", "uplink",
        "netns", space)  # fmt: skip
    run("ip", "-n", machines.hub, "link", "set", f"to-{name}", "master", "bridge", "up")
    run("ip", "-n", space, "address", "add", f"{address}/24", "dev", "uplink")
    for device in ("lo", "uplink"):
        run("ip", "-n", space, "link", "set", device, "up")
    home = machines.home(name)
    (home / ".ssh").mkdir(mode=0o700, parents=True)
    shutil.copy(machines.folder / "user_key.pub", home / ".ssh" / "authorized_keys")
    for path in (home, home / ".ssh" / "authorized_keys"):
        path.chmod(0o700)
    script = (
        f"mount --bind {home} ~root && exec dropbear -F -E -s -P {machines.folder}/{name}.pid "
        f"-r {machines.folder}/host_key -p {address}:22"
    )
    with (machines.folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            ["ip", "netns", "exec", space, "sh", "-c", script], stdin=subprocess.DEVNULL,
            stdout=log, stderr=log,
        )  # fmt: skip


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("hosts")
    made = Machines(f"hub-{os.getpid()}", folder)
    make_keys(folder)
    daemons = []
    try:
        run("ip", "netns", "add", made.hub)
        run("ip", "-n", made.hub, "link", "set", "lo", "up")
        run("ip", "-n", made.hub, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", made.hub, "address", "add", f"{HUB}/24", "dev", "bridge")
        run("ip", "-n", made.hub, "link", "set", "bridge", "up")
        daemons = [start_host(made, index, name) for index, name in enumerate(HOSTS)]
        for name in HOSTS:
            ask = made.inside(["ssh", "-F", f"{folder}/ssh_config", name, "true"])
            assert until(
                lambda ask=ask: subprocess.run(ask, check=False, capture_output=True).returncode == 0
            ), (folder / f"{name}.log").read_text()
        yield made
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait()
        for name in (*(f"{made.hub}-{host}" for host in HOSTS), made.hub):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def measuring(bench: Bench, machines: Machines, *words: object) -> list[str]:
    """The command that measures in the namespace of the server."""
    ssh = f"PARALLEL_SSH=ssh -F {machines.folder}/ssh_config"
    return machines.inside(["env", ssh, *bench.measuring(*words)])


def measure(bench: Bench, machines: Machines, *words: object) -> subprocess.CompletedProcess[str]:
    return bench.run_in(None, measuring(bench, machines, *words))


# A client that waits is not busy, whatever else the machine does.
WAITING = ("--service", "work", "--files", "sleep", "--amount", 50_000, "--load", "witness",
           "--concurrency", 6, "--requests", 180, "--duration", 600, "--repetitions", 1)  # fmt: skip


def test_a_load_from_three_hosts(bench: Bench, machines: Machines) -> None:
    row: dict[str, str] = {}
    # Beside other work clients may begin too far apart, which a run then says.
    for attempt in range(8):
        folder = bench.folder / f"hosts-{attempt}"
        done = measure(bench, machines, "--output", folder, "--servers", "thread", *WAITING,
                       "--load-hosts", ",".join(HOSTS), "--server-host", HUB)  # fmt: skip
        assert done.returncode in (0, 3), done.stderr
        (row,) = runs(folder)
        if row["valid"] == "yes":
            break
        assert re.search(r"ms apart|after it had begun", row["valid"]), row["valid"]
    assert row["valid"] == "yes"
    assert (row["complete"], row["lost"]) == ("180", "0")
    # 6 connections, each with 30 requests of 50 ms.
    assert float(row["seconds"]) >= 1.5 and float(row["min_ms"]) >= 50
    assert float(row["p50_ms"]) >= 50
    assert 0 < float(row["skew_ms"]) < 50 * float(row["seconds"])
    assert float(row["server_cpu_us"]) > 0 and float(row["load_cpu"]) < 0.9
    told = read_pairs(folder / "machine.tsv")
    for host in HOSTS:
        assert re.fullmatch(r".* processors, Linux .*; its clock is [-+].* ms from ours, known to "
                            r".* ms", told[f"load_host.{host}"])  # fmt: skip
    assert until(machines.is_clean)
    bench.assert_nothing_left()


@pytest.mark.parametrize(
    "load",
    [
        ("ab", "--requests", 60),
        ("wrk", "--duration", 1, "--keepalive", "on"),
        ("open", "--duration", 1, "--offered", 30),
    ],
    ids=("ab", "wrk", "offered"),
)
def test_the_other_generators(
    bench: Bench, machines: Machines, load: tuple[object, ...], request: pytest.FixtureRequest
) -> None:
    folder = bench.folder / request.node.callspec.id
    done = measure(bench, machines, "--output", folder, "--servers", "thread", "--load", *load,
                   "--service", "work", "--files", "sleep", "--amount", 20_000,
                   "--concurrency", 6, "--repetitions", 1,
                   "--load-hosts", ",".join(HOSTS), "--server-host", HUB)  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    (row,) = runs(folder)
    # The open loop may be late beside other work, and clients may begin apart.
    assert re.search(r"^yes$|ms apart|after it had begun|late", row["valid"]), row["valid"]
    assert int(row["complete"]) >= 40 and float(row["min_ms"]) >= 20
    assert (row["p50_ms"] == "-") == (load[0] == "wrk")
    assert until(machines.is_clean)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_clients(
    bench: Bench, machines: Machines, number: signal.Signals
) -> None:
    folder = bench.folder / f"interrupted-{number.name}"
    words = ("--output", folder, "--servers", "thread", *WAITING, "--requests", 60_000,
             "--load-hosts", ",".join(HOSTS), "--server-host", HUB)  # fmt: skip
    process = bench.spawn(measuring(bench, machines, *words))
    assert until(
        lambda: all("witness" in machines.at_work(host) for host in HOSTS)
        or process.poll() is not None
    )
    status, output = bench.interrupt(process, folder, 0, number)
    assert status == 130, output
    assert "0 of 1 run are kept" in output or "0 of 1 run is kept" in output, output
    assert until(machines.is_clean)
    bench.assert_nothing_left()


def test_a_host_that_is_not_there(bench: Bench, machines: Machines) -> None:
    folder = bench.folder / "nobody"
    done = measure(bench, machines, "--output", folder, "--servers", "thread", *WAITING,
                   "--load-hosts", "a,nobody", "--server-host", HUB)  # fmt: skip
    assert done.returncode == 1
    assert re.search(r"load hosts: .*(No route to host|timed out)", done.stdout + done.stderr)
    assert until(machines.is_clean)


def test_this_machine_must_have_the_address(bench: Bench, machines: Machines) -> None:
    folder = bench.folder / "elsewhere"
    done = measure(bench, machines, "--output", folder, "--servers", "thread", *WAITING,
                   "--load-hosts", "a", "--server-host", ADDRESS.format(98))  # fmt: skip
    assert done.returncode == 1
    assert "192.0.2.98 is no address of this machine" in done.stdout + done.stderr
    assert until(machines.is_clean)
