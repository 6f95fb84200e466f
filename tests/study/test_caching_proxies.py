"""Squid and Traffic Server as proxies of a study: their names, what is left out, their configuration."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from study_runs import TOP

from collect import new_results_folder
from collect.design.study import load_study
from collect.infer.cells import is_peer as is_peer_in_tables
from collect.measure import server_commands, servers
from collect.measure.caching_proxies import PROXIES
from collect.measure.proxy_origin import EXPECTED
from collect.measure.server_commands import (
    Setting,
    command_of,
    configuration_files,
    document_recipes,
    expand,
    has_workers,
    is_known,
    is_peer,
    is_set_up_as_proxy,
    need_of,
)
from collect.options import SERVERS_HELP

PORT = 23456


def setting(label: str, service: str = "proxy-hit", near: str = "") -> Setting:
    nowhere = Path("/nonexistent")
    return Setting(label, nowhere, nowhere, workers=3, service=service, near=near, idle_timeout=7)


def configured(folder: Path, wanted: Setting) -> str:
    """Returns the one text of the configuration that sets most, and checks that nothing is
    configured elsewhere."""
    command = command_of(wanted, folder, PORT)
    assert str(folder) in command[-1]
    name = "squid.conf" if wanted.name == "squid" else "records.config"
    return (folder / name).read_text()


@pytest.mark.parametrize("name", PROXIES)
def test_its_name_is_that_of_a_peer_everywhere(name: str) -> None:
    for label in (name, f"{name}~2"):
        assert is_known(label)
        assert is_peer(label)
        assert is_peer_in_tables(label)
    assert name in SERVERS_HELP.replace(";", "").split()
    assert not set(PROXIES) & {*expand(["all"]), *document_recipes()}
    assert expand([name]) == [name]


def test_traffic_server_has_workers_and_squid_is_one_process() -> None:
    assert has_workers("trafficserver")
    assert not has_workers("squid")


@pytest.mark.parametrize("study", ["proxy", "proxy-always"])
def test_what_is_not_installed_is_left_out_by_name_in_one_line(
    study: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named = load_study(TOP / "studies" / f"{study}.toml").levels["server"]
    assert set(PROXIES) < set(named)
    packages = {"squid": "squid", "trafficserver": "trafficserver"}
    missing = {need.program for name in PROXIES if (need := need_of(name))}
    monkeypatch.setattr(new_results_folder, "is_installed", lambda program: program not in missing)
    asked = SimpleNamespace(levels={"server": named, "service": ("files",)})
    kept = new_results_folder.present_servers(asked)  # type: ignore[arg-type]
    assert kept == [name for name in named if name not in PROXIES]
    assert capsys.readouterr().err.splitlines() == [
        f"dcollect: {name} is not installed, and left out: apt-get install {packages[name]}"
        for name in PROXIES
    ]


def test_no_study_installs_them() -> None:
    for name in ("proxy", "proxy-always"):
        study = load_study(TOP / "studies" / f"{name}.toml")
        assert not {need.package for need in new_results_folder.needs_of(study)} & set(PROXIES)


@pytest.mark.parametrize("name", PROXIES)
def test_it_serves_no_documents(name: str) -> None:
    for service in ("proxy-hit", "proxy-miss", "proxy-revalidation"):
        assert is_set_up_as_proxy(setting(name, service))
        servers._check(setting(name, service))
    with pytest.raises(servers.ServerProblem, match=f"{name} is a proxy, and serves no documents"):
        servers._check(setting(name, "files"))


def test_each_listens_at_the_addresses_of_the_study_alone(tmp_path: Path) -> None:
    def ports(name: str, near: str) -> list[str]:
        folder = tmp_path / f"{name}{near}"
        text = configured(folder, setting(name, near=near))
        return re.findall(r"^(?:http_port|CONFIG \S+server_ports STRING) (.*)", text, re.MULTILINE)

    assert ports("squid", "") == [f"127.0.0.1:{PORT}"]
    assert ports("squid", "10.9.8.7") == [f"127.0.0.1:{PORT}", f"10.9.8.7:{PORT}"]
    assert ports("trafficserver", "") == [f"{PORT}:ip-in=127.0.0.1"]
    both = f"{PORT}:ip-in=127.0.0.1 {PORT}:ip-in=10.9.8.7"
    assert ports("trafficserver", "10.9.8.7") == [both]


@pytest.mark.parametrize("name", PROXIES)
def test_it_writes_in_its_folder_alone(tmp_path: Path, name: str) -> None:
    configured(tmp_path, setting(name))
    text = "".join(path.read_text() for path in configuration_files(tmp_path))
    paths = {word for word in re.findall(r"(?<=\s)/\S+", text) if not word.startswith(str(tmp_path))}
    read_only = {"/usr/bin", "/usr/lib/trafficserver", "/usr/lib/trafficserver/modules"}
    assert paths <= {"/dev/null", *read_only}
    if name == "squid":
        for kind in ("access_log", "cache_store_log", "pid_filename", "coredump_dir"):
            assert f"\n{kind} none\n" in text
        assert "cache_dir" not in text


@pytest.mark.parametrize("name", PROXIES)
def test_it_tells_what_the_study_expects_of_each_service(tmp_path: Path, name: str) -> None:
    configured(tmp_path, setting(name))
    text = "".join(path.read_text() for path in configuration_files(tmp_path))
    told = re.findall(r'Cache-Status "(.*?)"', text)
    assert len(told) == 3
    for service, pattern in EXPECTED.items():
        assert len([one for one in told if re.match(pattern, one)]) == 1, service


def test_squid_collapses_revalidations_alone(tmp_path: Path) -> None:
    def collapses(service: str) -> bool:
        text = configured(tmp_path, setting("squid", service))
        return "\ncollapsed_forwarding on\n" in text

    assert [collapses(f"proxy-{kind}") for kind in ("hit", "miss", "revalidation")] == [
        False, False, True,
    ]  # fmt: skip


def test_squid_shares_no_memory_with_the_service_of_the_system(tmp_path: Path) -> None:
    command = command_of(setting("squid"), tmp_path, PORT)
    assert command[:3] == ["squid", "-n", f"study{PORT}"]


def test_workers_and_the_idle_time_are_those_of_the_study(tmp_path: Path) -> None:
    text = configured(tmp_path, setting("trafficserver"))
    assert "exec_thread.limit INT 3\n" in text
    assert "keep_alive_no_activity_timeout_in INT 7\n" in text
    text = configured(tmp_path / "other", setting("squid"))
    assert "\nclient_idle_pconn_timeout 7 seconds\n" in text


def test_both_have_the_backlog_of_the_other_peers(tmp_path: Path) -> None:
    text = configured(tmp_path, setting("trafficserver"))
    assert f"net.listen_backlog INT {server_commands.BACKLOG}\n" in text
    # Squid takes a quarter of the descriptors that it may open.
    text = configured(tmp_path / "other", setting("squid"))
    assert f"\nmax_filedescriptors {4 * server_commands.BACKLOG}\n" in text


def test_squid_gives_up_the_rights_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_commands, "_user", lambda: ("nobody", "nogroup"))
    assert "\ncache_effective_user nobody\n" in configured(tmp_path, setting("squid"))
    monkeypatch.setattr(server_commands, "_user", lambda: None)
    assert "cache_effective_user" not in configured(tmp_path, setting("squid"))
