"""The configurations of Squid and Traffic Server as forward proxies with a cache.

They are proxies alone: they serve no documents. Each is a process of the study with a configuration
of its own, in the folder of its server. It writes there alone, listens where the study says and
nowhere else, and leaves the service of the system as it is.

Both say in Cache-Status (RFC 9211) what ours say there. Neither version knows that field, so each
gets rules that write it from what it knows of a response.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROXIES = ("squid", "trafficserver")
CACHE_MIB = 256


@dataclass(frozen=True)
class ProxySetting:
    """What the study sets for both."""

    folder: Path
    port: int
    addresses: Sequence[str]
    workers: int
    backlog: int
    idle_seconds: int
    user: str = ""  # that Squid becomes where root starts it: it refuses to stay root
    collapses: bool = False


def squid(setting: ProxySetting) -> list[str]:
    """One process, as Squid is by default, with its cache in memory. It collapses where one answer
    may serve all who wait, and only there: else it would collapse misses, too. Its backlog is a
    quarter of the descriptors that it may open."""
    ports = "\n".join(f"http_port {address}:{setting.port}" for address in setting.addresses)
    configuration = setting.folder / "squid.conf"
    configuration.write_text(f"""{ports}
http_access allow all
visible_hostname localhost
{f"cache_effective_user {setting.user}" if setting.user else ""}
hosts_file none
udp_outgoing_address 127.0.0.1
access_log none
cache_log /dev/null
cache_store_log none
netdb_filename none
pid_filename none
coredump_dir none
pinger_enable off
max_filedescriptors {4 * setting.backlog}
cache_mem {CACHE_MIB} MB
maximum_object_size_in_memory 16 MB
client_idle_pconn_timeout {setting.idle_seconds} seconds
shutdown_lifetime 0 seconds
collapsed_forwarding {"on" if setting.collapses else "off"}
acl asked hier_code HIER_DIRECT
acl stored rep_header X-Cache ^HIT
reply_header_add Cache-Status "squid; hit" !asked
reply_header_add Cache-Status "squid; fwd=stale; fwd-status=304" asked stored
reply_header_add Cache-Status "squid; fwd=uri-miss; fwd-status=200" asked !stored
""")
    # Its shared memory has that name, too: the service of the system and others have their own.
    return ["squid", "-n", f"study{setting.port}", "-N", "-d", "1", "-f", str(configuration)]


def trafficserver(setting: ProxySetting) -> list[str]:
    """As many threads as workers, with its cache in a file and in memory. It stays the user who
    starts it: another one may not enter the folders above its cache."""
    folder = setting.folder
    for name, text in _traffic_files(setting).items():
        (folder / name).write_text(text)
    # It looks for these, too, and warns where they are not there.
    for name in ("cache", "hosting", "parent", "remap", "ssl_multicert", "volume"):
        (folder / f"{name}.config").touch()
    return ["traffic_server", f"--run-root={folder / 'runroot.yaml'}"]


def _traffic_files(setting: ProxySetting) -> dict[str, str]:
    folder = setting.folder
    ports = " ".join(f"{setting.port}:ip-in={address}" for address in setting.addresses)
    levels = "".join(
        f"CONFIG proxy.config.diags.output.{level} STRING {'E' if tells else 'L'}\n"
        for level, tells in (
            ("emergency", True), ("alert", True), ("fatal", True), ("error", True),
            ("warning", True), ("note", False), ("status", False),
        )
    )  # fmt: skip
    folders = "".join(
        f"{name}dir: {folder}\n"
        for name in ("sysconf", "data", "localstate", "runtime", "log", "cache")
    )
    return {
        "runroot.yaml": f"prefix: {folder}\nexec_prefix: {folder}\n{folders}"
        "bindir: /usr/bin\nlibdir: /usr/lib/trafficserver\n"
        "libexecdir: /usr/lib/trafficserver/modules\n",
        "records.config": f"""CONFIG proxy.config.http.server_ports STRING {ports}
CONFIG proxy.config.net.listen_backlog INT {setting.backlog}
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.crash_log_helper STRING NULL
CONFIG proxy.config.reverse_proxy.enabled INT 0
CONFIG proxy.config.url_remap.remap_required INT 0
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT {setting.workers}
CONFIG proxy.config.http.wait_for_cache INT 1
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT {setting.idle_seconds}
CONFIG proxy.config.log.logging_enabled INT 0
{levels}""",
        "storage.config": f"{folder} {CACHE_MIB}M\n",
        "ip_allow.yaml": "ip_allow:\n  - apply: in\n    ip_addrs: 0/0\n    action: allow\n"
        "    methods: [GET, HEAD]\n",
        "plugin.config": "header_rewrite.so cache_status.config\n",
        "cache_status.config": "".join(
            f"cond %{{SEND_RESPONSE_HDR_HOOK}}{condition}\n"
            f'set-header Cache-Status "trafficserver; {told}" [L]\n'
            for condition, told in (
                (' [AND]\ncond %{CACHE} ="hit-fresh"', "hit"),
                (' [AND]\ncond %{CACHE} ="hit-stale"', "fwd=stale; fwd-status=304"),
                ("", "fwd=uri-miss; fwd-status=200"),
            )
        ),
    }
