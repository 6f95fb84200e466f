"""The start of each server: ours, the floors, and the peers.

Our servers are found by their name, NAME_server, in the folder of the servers. A label is
RECIPE[+OPTION[=VALUE]]...[~N]: `fork`, `fork~2`, `fork+no-sandbox`, `floor-thread+backlog5`. For
our servers an option is one of theirs without the dashes; what the floors know is in floor.c.
Peers take none.

Any other program has a label and a command of its own, NAME=cmd:COMMAND. It is started by that
command, without a shell, in the folder where the study was started; {port} and {root} are replaced.

Peers get a configuration each that is fair to them: the same documents, no access log, the same
backlog, as many workers as processors, keep-alive for 5 seconds with any number of requests, a
user without privileges when root starts them. All listen at 127.0.0.1 alone: ours, too, whose
workers then block in accept, as those of the book do. Where the load is not on this machine's
loopback they listen at one more address. Squid and Traffic Server are proxies alone: their
configurations are in caching_proxies.py. Of all peers nginx alone has the service `work`, without
its kind `sleep`.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from collect.measure import nginx_work_service
from collect.measure.caching_proxies import PROXIES, ProxySetting, squid, trafficserver
from collect.project import CLIENTS, PROJECT, fail, server_folder

# Those that serve documents; the others are proxies alone.
WEB_PEERS = ("nginx", "lighttpd", "apache-prefork", "apache-worker", "apache-event")
PEERS = (*WEB_PEERS, *PROXIES)
FLOORS = ("floor-fork", "floor-thread", "floor-one")
BACKLOG = 4096
IDLE_SECONDS = 5
# Studies with apache-prefork have 30 clients at most, but for those that hold connections.
PREFORK_PROCESSES = 32
# Room for connections beside those that clients hold, such as those of the study itself.
SPARE_CONNECTIONS = 100
# In the folder of a server that is traced.
TRACE_FILE = "trace.json"


@dataclass(frozen=True)
class Need:
    """A program (or a file) that is needed, and the package of Debian that holds it."""

    program: str
    package: str


@dataclass(frozen=True)
class Setting:
    """All that the start of a server depends on."""

    label: str
    documents: Path
    certificates: Path
    workers: int  # of peers, and of ours if they are told
    scheme: str = "http"
    certificate: str = "-"
    protocol: str = "pipelined"
    service: str = "files"
    keep_alive: bool = False
    bytes: int | None = None
    path: str = ""
    processors: str = ""
    max_age: int | None = None
    ballast: int = 0  # MiB
    is_told_workers: bool = False
    near: str = ""
    idle_timeout: int | None = None
    request_timeout: int | None = None
    folder: Path | None = None
    command: str = ""
    directory: str = ""
    traced: bool = False
    memory_limit: int | None = None  # MiB
    held: int = 0  # connections that clients keep open

    @property
    def name(self) -> str:
        return recipe_name(self.label)

    @property
    def is_given_port(self) -> bool:
        """Returns true if the server does not choose its port and print its URL."""
        return bool(self.command) or is_peer(self.label)


def recipe_name(label: str) -> str:
    """The name of a server without its options."""
    return re.split(r"[~+]", label, maxsplit=1)[0]


def is_peer(label: str) -> bool:
    return recipe_name(label) in PEERS


def is_floor(label: str) -> bool:
    return recipe_name(label) in FLOORS


def our_servers() -> list[str]:
    folder = server_folder()
    names = {path.name for path in folder.glob("*_server") if os.access(path, os.X_OK)}
    if folder == PROJECT:
        names = {path.stem for path in folder.glob("*_server.c")}
    return sorted(name.removesuffix("_server") for name in names)


def document_recipes() -> list[str]:
    """The servers that serve documents: all but those of others that are proxies alone."""
    return [*our_servers(), *FLOORS, *WEB_PEERS]


def all_recipes() -> list[str]:
    return [*document_recipes(), *PROXIES]


def is_known(label: str) -> bool:
    """Returns true if there is a server of that name, built or not."""
    name = recipe_name(label)
    if name in PEERS or name in FLOORS:
        return True
    if not name or "/" in name:
        return False
    built = server_folder() / f"{name}_server"
    return built.exists() or (PROJECT / f"{name}_server.c").exists()


def describe(name: str, folder: Path | None = None) -> dict[str, object]:
    """Returns the description of one of our servers, by --describe."""
    command = [str((folder or server_folder()) / f"{name}_server"), "--describe"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        described = json.loads(done.stdout)
    except ValueError:
        fail(f"{command[0]} --describe prints no JSON")
    return dict(described)


def lacks_of(label: str) -> str:
    """Returns what a server of ours needs of the kernel and does not get here; else nothing. Where
    the servers come from another folder, those of the project are asked: others need not answer."""
    program = PROJECT / f"{recipe_name(label)}_server"
    if is_peer(label) or is_floor(label) or not program.exists():
        return ""
    described = describe(recipe_name(label), PROJECT)
    return "" if described.get("available", True) else str(described["needs"])


def has_workers(label: str) -> bool:
    """Returns true if a server has workers, whose number can be chosen."""
    if is_floor(label):
        return False
    if recipe_name(label) == "squid":
        return False
    return is_peer(label) or describe(recipe_name(label)).get("workers_per_processor") != 0


def other_ways(name: str) -> list[str]:
    """The ways to accept connections, or to make a child, that a server of ours knows besides its
    default: accept=lock and so on."""
    described = describe(name)
    defaults = described.get("defaults")
    assert isinstance(defaults, dict)
    found = []
    for option in ("accept", "share"):
        ways = described.get(option)
        assert isinstance(ways, list)
        found += [f"{option}={way}" for way in ways if way != defaults[option]]
    return [*found, "template"] if described.get("template") else found


def expand(labels: Iterable[str]) -> list[str]:
    """Puts every server that is not named in place of the word `all`: each of ours with all its
    ways, the floors, and the peers that serve documents. Our servers must have been built."""
    labels = list(labels)
    kept: list[str] = []
    for label in labels:
        if label != "all":
            kept.append(label)
            continue
        for name in document_recipes():
            ways = other_ways(name) if name not in FLOORS + PEERS else []
            variants = [name, *(f"{name}+{way}" for way in ways)]
            kept += [variant for variant in variants if variant not in labels + kept]
    return kept


def module_of(label: str, services: Iterable[str]) -> Need | None:
    """The module that a peer needs beside its program for one of the services."""
    if recipe_name(label) == "nginx" and "work" in services:
        return Need(nginx_work_service.MODULE, nginx_work_service.PACKAGE)
    return None


def need_of(label: str) -> Need | None:
    """The program of a peer."""
    name = recipe_name(label)
    if name.startswith("apache-"):
        return Need("apache2", "apache2-bin")
    known = {
        "nginx": Need("nginx", "nginx-light"),
        "lighttpd": Need("lighttpd", "lighttpd"),
        "squid": Need("squid", "squid"),
        "trafficserver": Need("traffic_server", "trafficserver"),
    }
    return known.get(name)


def is_installed(program: str) -> bool:
    """Returns true if a program or a file is there; some programs lie in folders that only root
    searches."""
    if program.startswith("/"):
        return Path(program).exists()
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    return shutil.which(program, path=path) is not None


def options_of(label: str) -> list[str]:
    """The options of a label, as arguments."""
    options = label.split("~", 1)[0].split("+")[1:]
    short = {"split": "split-writes"}
    named = (re.sub(r"^(backlog|work)([0-9])", r"\1=\2", option) for option in options)
    return [f"--{short.get(option, option)}" for option in named]


def command_of(setting: Setting, folder: Path, port: int) -> list[str]:
    """The command that runs a server in the foreground. A peer gets its configuration in `folder`
    and listens at `port`; the others take a free port."""
    name = setting.name
    if setting.command:
        return own_command(setting.command, port, setting.documents)
    if name in PEERS:
        folder.mkdir(exist_ok=True)
        if name in PROXIES:
            return _caching_proxy(setting, folder, port)
        kind, _, model = name.partition("-")
        return {"nginx": _nginx, "lighttpd": _lighttpd, "apache": _apache}[kind](
            setting, folder, port, model
        )
    options = options_of(setting.label)
    if name in FLOORS:
        keep = ["--keep-alive"] if setting.keep_alive else []
        kind = name.removeprefix("floor-")
        return [str(CLIENTS / "floor"), *options, *keep, kind, "0", str(setting.bytes)]
    return [str(_copy(_binary(setting), folder)), *_our_options(setting, folder), *options, "0"]


def configuration_files(folder: Path) -> list[Path]:
    """The configuration files of a peer, without empty ones."""
    kinds = (".conf", ".config", ".yaml")
    found = (path for path in folder.iterdir() if path.suffix in kinds and path.is_file())
    return sorted(path for path in found if path.stat().st_size)


def check_command_of(label: str) -> list[str]:
    """A command that fails, with its reason, if a server of ours or a floor refuses the options of
    a label; else it prints something and ends."""
    if is_floor(label):
        return [str(CLIENTS / "floor"), *options_of(label), "--help"]
    name = recipe_name(label)
    return [str(server_folder() / f"{name}_server"), *options_of(label), "--describe"]


def own_command(command: str, port: int, documents: Path) -> list[str]:
    """The command of a server that is none of this project, as arguments."""
    words = shlex.split(command)
    return [word.replace("{port}", str(port)).replace("{root}", str(documents)) for word in words]


def _binary(setting: Setting) -> Path:
    return (setting.folder or server_folder()) / f"{setting.name}_server"


def _copy(program: Path, folder: Path) -> Path:
    """Copies a program into the folder of a server that starts.

    Up to a tenth of what a fork costs depends on where the kernel keeps the pages of a program. A
    file stays where it is for hours: so each start makes a copy, and intervals contain this chance.
    A script is not copied: it may need the files beside it.
    """
    with program.open("rb") as file:
        is_script = file.read(2) == b"#!"
    if is_script or not folder.is_dir() or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return program
    return Path(shutil.copy(program, folder / program.name))


def _our_options(setting: Setting, folder: Path) -> list[str]:
    options = ["--root", str(setting.documents), "--stats", str(folder / "stats")]
    if setting.protocol != "pipelined":
        options += ["--protocol", setting.protocol]
    if is_proxy(setting):
        options += ["--service", "proxy", "--cache", str(folder / "cache")]
    elif setting.service != "files":
        options += ["--service", setting.service]
    if setting.is_told_workers:
        options += ["--workers", str(setting.workers)]
    if setting.ballast:
        options += ["--ballast", f"{setting.ballast}M"]
    if setting.max_age is not None:
        options += ["--max-age", str(setting.max_age)]
    if os.geteuid() == 0 and not _has_other_users():
        options += ["--user", "root"]
    options += ["--bind", "127.0.0.1"]
    if setting.near:
        options += ["--bind", setting.near]
        if is_proxy(setting):
            options += ["--allow", "loopback"]  # the origin listens there
    if setting.scheme == "https":
        own = setting.certificates / setting.certificate
        options += ["--tls", "--cert", str(own / "cert.pem"), "--key", str(own / "key.pem")]
    if setting.scheme == "udp":
        options += ["--udp"]
    if setting.idle_timeout:
        options += ["--idle-timeout", str(setting.idle_timeout)]
    if setting.request_timeout:
        options += ["--request-timeout", str(setting.request_timeout)]
    if setting.held:
        options += ["--max-connections", str(setting.held + SPARE_CONNECTIONS)]
    if setting.traced:
        options += ["--trace", str(folder / TRACE_FILE)]
    return options


def _has_other_users() -> bool:
    """Returns false in a user namespace that holds this user alone, as that of a link does."""
    rows = Path("/proc/self/uid_map").read_text().splitlines()
    return sum(int(row.split()[2]) for row in rows) > 1


def _user() -> tuple[str, str] | None:
    """The user and group without privileges that peers run as when root starts them."""
    if os.geteuid() != 0 or not _has_other_users():
        return None
    for name in ("www-data", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return name, grp.getgrgid(user.pw_gid).gr_name
    return None


def is_proxy(setting: Setting) -> bool:
    """Returns true if the server is to fetch what it responds with."""
    return setting.service.startswith("proxy-")


def is_set_up_as_proxy(setting: Setting) -> bool:
    """Returns true if a server of others can be a proxy for this service. nginx stores nothing with
    a lifetime of 0, and so has nothing to validate each time."""
    if setting.name in PROXIES:
        return True
    return setting.name == "nginx" and setting.service != "proxy-revalidation"


def is_set_up_to_work(setting: Setting) -> bool:
    """Returns true if a server of others can do the work that a path asks for."""
    kind = setting.path.split("/", 1)[0]
    return setting.name == "nginx" and kind in nginx_work_service.KINDS


def _caching_proxy(setting: Setting, folder: Path, port: int) -> list[str]:
    user = _user()
    wanted = ProxySetting(
        folder=folder,
        port=port,
        addresses=("127.0.0.1", *filter(None, (setting.near,))),
        workers=setting.workers,
        backlog=BACKLOG,
        idle_seconds=setting.idle_timeout or IDLE_SECONDS,
        user=user[0] if user else "",
        collapses=setting.service == "proxy-revalidation",
    )
    return {"squid": squid, "trafficserver": trafficserver}[setting.name](wanted)


def _nginx_proxy(folder: Path) -> tuple[str, str]:
    """The configuration of nginx as a forward proxy with a cache, before and in its server. It says
    in Cache-Status (RFC 9211) what ours says there, and connects anew for each request to an
    origin."""
    return (
        f"""proxy_cache_path {folder}/cache keys_zone=cache:16m max_size=256m inactive=1h;
    map $upstream_cache_status $cache_status {{
        HIT "nginx; hit";
        default "nginx; fwd=uri-miss; fwd-status=$upstream_status";
    }}""",
        """location / {
            proxy_pass http://$http_host$request_uri;
            proxy_cache cache;
            proxy_cache_key $http_host$request_uri;
            add_header Cache-Status $cache_status;
        }""",
    )


def _nginx(setting: Setting, folder: Path, port: int, _model: str) -> list[str]:
    user = _user()
    if user and is_proxy(setting):
        user = ("root", "root")  # another one may not enter the folders above its cache
    own = setting.certificates / setting.certificate
    # As ours: TLS 1.2 and 1.3, tickets and no cache of sessions, P-256 and X25519 before others.
    tls = (
        f""" ssl;
        ssl_certificate {own}/cert.pem;
        ssl_certificate_key {own}/key.pem;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_tickets on"""
        if setting.scheme == "https"
        else ""
    )
    limit = setting.request_timeout
    modules = settings = location = ""
    if is_proxy(setting):
        settings, location = _nginx_proxy(folder)
    elif setting.service == "work":
        modules, settings = nginx_work_service.modules(), nginx_work_service.settings()
        location = nginx_work_service.locations()
    (folder / "nginx.conf").write_text(f"""daemon off;
{modules}
worker_processes {setting.workers};
{f"user {user[0]};" if user else ""}
pid {folder}/nginx.pid;
error_log stderr warn;
events {{
    worker_connections {max(4096, setting.held + SPARE_CONNECTIONS)};
}}
http {{
    access_log off;
    sendfile on;
    types {{ text/plain txt; text/html html; }}
    keepalive_timeout {setting.idle_timeout or IDLE_SECONDS};
    {f"client_header_timeout {limit};" if limit else ""}
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {settings}
    server {{
        listen 127.0.0.1:{port} backlog={BACKLOG}{tls};
        {f"listen {setting.near}:{port} backlog={BACKLOG}{tls};" if setting.near else ""}
        root {setting.documents};
        {location}
    }}
}}
""")
    return ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]


def _lighttpd(setting: Setting, folder: Path, port: int, _model: str) -> list[str]:
    user = _user()
    limit = setting.request_timeout
    uploads = folder / "uploads"
    uploads.mkdir(exist_ok=True)
    uploads.chmod(0o1777)  # it belongs to who starts the server, who is not the one that serves
    text = f"""server.document-root = "{setting.documents}"
server.bind = "127.0.0.1"
server.port = {port}
server.listen-backlog = {BACKLOG}
server.pid-file = "{folder}/lighttpd.pid"
server.upload-dirs = ( "{uploads}" )
server.max-worker = {setting.workers if setting.workers > 1 else 0}
server.max-keep-alive-idle = {setting.idle_timeout or IDLE_SECONDS}
{f"server.max-read-idle = {limit}" if limit else ""}
server.max-keep-alive-requests = 65535
server.max-connections = 4096
server.max-fds = 8192
mimetype.assign = ( ".txt" => "text/plain", ".html" => "text/html" )
"""
    if setting.near:
        text += f'$SERVER["socket"] == "{setting.near}:{port}" {{ }}\n'
    if user:
        text += f'server.username = "{user[0]}"\nserver.groupname = "{user[1]}"\n'
    (folder / "lighttpd.conf").write_text(text)
    return ["lighttpd", "-D", "-f", str(folder / "lighttpd.conf")]


def _apache(setting: Setting, folder: Path, port: int, model: str) -> list[str]:
    user = _user()
    modules = os.environ.get("APACHE_MODULES") or "/usr/lib/apache2/modules"
    limit = setting.request_timeout
    text = f"""ServerRoot "{folder}"
ServerName localhost
Listen 127.0.0.1:{port}
{f"Listen {setting.near}:{port}" if setting.near else ""}
ListenBacklog {BACKLOG}
PidFile "{folder}/apache.pid"
DefaultRuntimeDir "{folder}"
ErrorLog /dev/stderr
LogLevel warn
LoadModule mpm_{model}_module {modules}/mod_mpm_{model}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule mime_module {modules}/mod_mime.so
TypesConfig /dev/null
AddType text/plain .txt
AddType text/html .html
KeepAlive On
KeepAliveTimeout {setting.idle_timeout or IDLE_SECONDS}
MaxKeepAliveRequests 0
MaxConnectionsPerChild 0
DocumentRoot "{setting.documents}"
<Directory />
    AllowOverride None
    Require all denied
</Directory>
<Directory "{setting.documents}">
    Require all granted
</Directory>
"""
    if limit:
        text += f"LoadModule reqtimeout_module {modules}/mod_reqtimeout.so\n"
        text += f"RequestReadTimeout header={limit}\n"
    if user:
        text += f"User {user[0]}\nGroup {user[1]}\n"
    # Enough processes or threads for a connection each, at every concurrency. By default prefork
    # starts 5 processes and adds one a second at first: clients that keep their connections would
    # wait for theirs as long as a short run takes. The others start a process for each worker.
    if model == "prefork":
        text += f"StartServers {PREFORK_PROCESSES}\nMaxSpareServers 512\n"
        text += "ServerLimit 512\nMaxRequestWorkers 512\n"
    else:
        text += f"StartServers {setting.workers}\nServerLimit 16\n"
        text += "ThreadsPerChild 32\nMaxRequestWorkers 512\n"
    (folder / "apache.conf").write_text(text)
    return ["apache2", "-DFOREGROUND", "-f", str(folder / "apache.conf")]
