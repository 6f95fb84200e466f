"""Servers in groups: a panel shows at most five lines, and no two with the same look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collect.infer.cells import is_floor
from collect.present.server_looks import look_of, options_of, plain_name

LINES = 5

BARE, OTHERS = "bare models", "other servers"
PER_CONNECTION, WORKERS = "per connection", "workers"
PER_CONNECTION_MODELS = ("iterative", "fork", "thread", "clone")
WORKER_MODELS = ("prefork", "pool", "epoll", "uring")


@dataclass(frozen=True)
class Group:
    """Servers that share a panel; `labels` are their names beside the title of the group."""

    title: str
    servers: tuple[str, ...]
    labels: tuple[str, ...]


def fits(servers: Sequence[str]) -> bool:
    """Returns true if one panel can show these servers."""
    return len(servers) <= LINES and len({look_of(server) for server in servers}) == len(servers)


def group_servers(servers: Sequence[str]) -> list[Group]:
    """Groups servers: a server with its options, bare models, peers, and the others by kind."""
    if fits(servers):
        return [Group("", tuple(servers), tuple(servers))]
    with_options = {plain_name(server) for server in servers if plain_name(server) != server}
    keys: dict[str, list[str]] = {}
    for server in servers:
        keys.setdefault(_key(server, with_options), []).append(server)
    groups: list[Group] = []
    for key, members in keys.items():
        groups += [_group(key, chunk, key in with_options) for chunk in _chunks(members)]
    return groups


def _chunks(servers: Sequence[str]) -> list[list[str]]:
    """Splits servers so that one panel can show each part."""
    chunks: list[list[str]] = [[]]
    for server in servers:
        if not fits([*chunks[-1], server]):
            chunks.append([])
        chunks[-1].append(server)
    return chunks


def _key(server: str, with_options: set[str]) -> str:
    name = plain_name(server)
    if name in with_options:
        return name
    if is_floor(server):
        return BARE
    if name in PER_CONNECTION_MODELS:
        return PER_CONNECTION
    return WORKERS if name in WORKER_MODELS else OTHERS


def _group(key: str, servers: list[str], by_options: bool) -> Group:
    titles = {
        PER_CONNECTION: "without workers"
        if "iterative" in servers
        else "one process or thread per connection",
        WORKERS: "worker processes, threads, event loops",
    }
    if not by_options or not any(options_of(server) for server in servers):
        return Group(titles.get(key, key), tuple(servers), tuple(servers))
    names = {options_of(server).partition("=")[0] for server in servers if options_of(server)}
    if len(names) == 1 and all("=" in options_of(s) for s in servers if options_of(s)):
        (name,) = names
        word = {"accept": "way to accept"}.get(name, name)
        labels = tuple(options_of(s).partition("=")[2] or "default" for s in servers)
        return Group(f"{key}, by {word}", tuple(servers), labels)
    return Group(key, tuple(servers), tuple(options_of(s) or "default" for s in servers))
