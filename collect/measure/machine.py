"""Describes this machine and its programs, as far as they may affect a measurement."""

from __future__ import annotations

import hashlib
import math
import os
import re
import resource
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from collect.design.plan import Cells, cells_of
from collect.design.study import Study
from collect.measure.server_commands import is_installed
from collect.project import CLIENTS, PROJECT, server_folder
from collect.readable_numbers import one_line

LSCPU = {
    "Socket(s)": "sockets",
    "Core(s) per socket": "cores_per_socket",
    "Thread(s) per core": "threads_per_core",
    "L1d cache": "cache_l1d",
    "L1d": "cache_l1d",
    "L2 cache": "cache_l2",
    "L2": "cache_l2",
    "L3 cache": "cache_l3",
    "L3": "cache_l3",
    "CPU max MHz": "processor_mhz_most",
    "NUMA node(s)": "numa_nodes",
    "Hypervisor vendor": "hypervisor",
    "Virtualization type": "virtualization",
}
SYSCTLS = (
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "kernel.pid_max",
    "kernel.threads-max",
    "kernel.sched_autogroup_enabled",
    "vm.max_map_count",
    "vm.overcommit_memory",
    "fs.file-max",
)
FILES = {
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "frequency_driver": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
    "turbo_off": "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "boost": "/sys/devices/system/cpu/cpufreq/boost",
    "idle_driver": "/sys/devices/system/cpu/cpuidle/current_driver",
    "clock_source": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
}
# The command that prints a program's version, and the pattern of the version in its output.
VERSIONS: dict[str, tuple[list[str], str]] = {
    "ab": (["-V"], r"Version (\S+)"),
    "httperf": (["--version"], r"(.*)"),
    "wrk": (["-v"], r"(wrk \S+)"),
    "nginx": (["-v"], r"nginx version: (.*)"),
    "apache2": (["-v"], r"Server version: (.*)"),
    "lighttpd": (["-v"], r"(.*)"),
    "squid": (["-v"], r"Version (\S+)"),
    "traffic_server": (["--version"], r"Traffic Server (\S+)"),
}
USUAL_PROGRAMS = ("cc", "ldd", "gnuplot", "python3")


def _content(path: str | Path) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""


def processors_allowed() -> list[int]:
    """The processors that this process may run on."""
    return sorted(os.sched_getaffinity(0))


def cells_here(study: Study) -> Cells:
    """The cells of a study that this machine can measure."""
    kibibytes = _first(r"^MemTotal:\s*([0-9]+)", _content("/proc/meminfo"))
    memory = int(kibibytes) / 1024 if kibibytes.isdigit() else math.inf
    return cells_of(study, len(processors_allowed()), memory)


def _processors() -> Iterator[tuple[str, str]]:
    information = _content("/proc/cpuinfo")
    model = _first(r"^(?:model name|Model|cpu model)\s*: *(.*)", information)
    family = [_first(rf"^{name}\s*: *([0-9]+)$", information) for name in ("cpu family", "model")]
    # A cloud gives processors of several generations one name.
    yield "processor_model", f"{model} (family {', model '.join(family)})" if all(family) else model
    for line in _output("lscpu").splitlines():
        name, _, value = line.strip().partition(":")
        if name in LSCPU:
            yield LSCPU[name], value
    yield "processors", str(len(processors_allowed()))
    status = _content("/proc/self/status")
    yield "processors_allowed", _first(r"^Cpus_allowed_list:\s*(.*)", status)
    yield "processor_mhz", _first(r"^cpu MHz\s*: *([0-9]+)", information)
    for key, path in FILES.items():
        yield key, _content(path)


def _limit(kind: int, unit: int = 1) -> str:
    soft = resource.getrlimit(kind)[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft // unit)


def _settings() -> Iterator[tuple[str, str]]:
    for path in sorted(Path("/sys/devices/system/cpu/vulnerabilities").glob("*")):
        yield f"mitigation.{path.name}", _content(path)
    for name in SYSCTLS:
        yield f"sysctl.{name}", _content("/proc/sys/" + name.replace(".", "/"))
    yield "transparent_hugepages", _content("/sys/kernel/mm/transparent_hugepage/enabled")
    yield "limit.open_files", _limit(resource.RLIMIT_NOFILE)
    yield "limit.processes", _limit(resource.RLIMIT_NPROC)
    yield "limit.stack_kib", _limit(resource.RLIMIT_STACK, 1024)


def _version(program: str) -> str:
    arguments, pattern = VERSIONS.get(program, (["--version"], r"(.*)"))
    version = _first(pattern, _output(program, *arguments))
    return f"ApacheBench {version}" if program == "ab" and version else version


def _build(programs: Iterable[str]) -> Iterator[tuple[str, str]]:
    git = ("git", "-C", str(PROJECT))
    yield "project_commit", _output(*git, "rev-parse", "--short=12", "HEAD")
    changed = _output(*git, "status", "--porcelain", "--untracked-files=no").splitlines()
    yield "project_changed", f"{len(changed)} files"
    yield "project_version", _content(PROJECT / "VERSION")
    yield "compiler_flags", _first(r"^CFLAGS *= *(.*)", _content(PROJECT / "Makefile"))
    for program in dict.fromkeys((*USUAL_PROGRAMS, *programs)):
        if is_installed(program):
            yield f"version.{program}", _version(program)
    for path in [*sorted(server_folder().glob("*_server")), CLIENTS / "floor"]:
        if path.is_file():
            yield f"sha256.{path.name}", hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _system() -> Iterator[tuple[str, str]]:
    name = os.uname()
    yield "kernel", f"{name.sysname} {name.release}"
    yield "kernel_build", name.version
    yield "architecture", name.machine
    yield "distribution", _first(r'^PRETTY_NAME="?([^"\n]*)', _content("/etc/os-release"))
    identity = "/sys/class/dmi/id/"
    yield "machine", f"{_content(identity + 'sys_vendor')} {_content(identity + 'product_name')}"


@cache
def identity() -> dict[str, str]:
    """Returns what identifies this machine and this edition of the project."""
    pairs = dict([*_system(), *_processors()])
    commit = _output("git", "-C", str(PROJECT), "rev-parse", "--short=12", "HEAD").strip()
    names = ("processor_model", "processors", "kernel")
    return {"commit": commit, **{name: one_line(pairs[name]) for name in names}}


def describe(programs: Iterable[str]) -> dict[str, str]:
    """Returns the facts about this machine, with the versions of these programs."""
    pairs = list(_system())
    pairs += _processors()
    memory = _content("/proc/meminfo")
    pairs.append(("memory_kib", _first(r"^MemTotal:\s*([0-9]+)", memory)))
    pairs.append(("swap_kib", _first(r"^SwapTotal:\s*([0-9]+)", memory)))
    if is_installed("systemd-detect-virt"):
        pairs.append(("container", _output("systemd-detect-virt", "--container")))
    pairs.append(("load_average", " ".join(_content("/proc/loadavg").split()[:3])))
    pairs += _settings()
    pairs += _build(programs)
    return {key: text for key, value in pairs if (text := one_line(value))}
