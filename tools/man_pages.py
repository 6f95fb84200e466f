#!/usr/bin/python3 -B
"""Makes the manual pages in man/ from --describe of the servers and --help of dcollect.sh.

usage:    tools/man_pages.py [--check]        or: make man

The text that does not change is in man/server.in and man/dcollect.in; @NAME@ and such are filled
in. --check changes nothing: its status is 1 when a page is not what the script would write.
"""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from project_models import PROJECT, project_models

PAGES = PROJECT / "man"
ENTRY = re.compile(r"^ {2}(\S.*?) {2,}(.*)$")


@dataclass
class Entry:
    """An entry of --help: an option or a command, and its text."""

    name: str
    text: str = ""


@dataclass
class Block:
    """A part of --help between empty lines: prose, or entries below a title."""

    prose: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def text(self) -> str:
        return " ".join(line.strip() for line in self.prose)


def output_of(program: str, option: str) -> str:
    """Returns what a program prints for an option."""
    command = [str(PROJECT / program), option]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def version() -> str:
    return (PROJECT / "VERSION").read_text(encoding="utf-8").strip()


def release_date() -> str:
    """Returns the date of the newest entry of the changelog that has one."""
    found = re.search(
        r"^## .*(\d{4}-\d\d-\d\d)$",
        (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return found[1] if found else ""


# ---- reading --help ----


def read_blocks(text: str) -> list[Block]:
    """Reads --help into its parts."""
    blocks = [Block()]
    for line in text.splitlines():
        block = blocks[-1]
        entry = ENTRY.match(line)
        if not line.strip():
            blocks.append(Block())
        elif entry is not None:
            block.entries.append(Entry(entry[1], entry[2]))
        elif block.entries:
            block.entries[-1].text += f" {line.strip()}"
        else:
            block.prose.append(line)
    return [block for block in blocks if block.prose or block.entries]


# ---- writing roff ----


def roff(text: str) -> str:
    """Escapes a text for roff."""
    return text.replace("\\", "\\e").replace("-", "\\-")


def sentences(text: str) -> str:
    """Returns a text for roff: each sentence begins a line, and no line is long."""
    lines: list[str] = []
    for sentence in re.split(r"(?<=[.?!]) (?=[A-Z])", text):
        lines += textwrap.wrap(roff(sentence), 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join(re.sub(r"^([.'])", r"\\&\1", line) for line in lines)


def bold_name(name: str) -> str:
    """Returns an option or a command for roff: its name bold, its argument in italics."""
    option, _, argument = name.partition(" ")
    return f"\\fB{roff(option)}\\fR" + (f" \\fI{roff(argument)}\\fR" if argument else "")


def entry_list(entries: list[Entry]) -> Iterator[str]:
    for entry in entries:
        yield from (".TP", bold_name(entry.name), sentences(entry.text))


def see_also(page: str, pages: list[str]) -> str:
    others = [other for other in sorted(pages) if other != page]
    return "\n".join(f".BR {other} (1){',' if other != others[-1] else ''}" for other in others)


# ---- the pages ----


def filled(template: str, values: dict[str, str]) -> str:
    """Returns a template with its names filled in."""
    text = (PAGES / template).read_text(encoding="utf-8")
    values = {**values, "VERSION": roff(version()), "DATE": release_date()}
    return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], text)


def server_options(described: list[dict[str, str | None]]) -> list[Entry]:
    """Returns the options of a server as it describes them, each with its default."""
    options = []
    for option in described:
        name = f"--{option['name']}" + (f" {option['argument']}" if option["argument"] else "")
        default = f" ({option['default']})" if option["default"] else ""
        options.append(Entry(name, f"{option['help']}{default}"))
    return options


def server_page(name: str, pages: list[str]) -> str:
    """Returns the page of a server."""
    about = json.loads(output_of(name, "--describe"))
    advice = f"Take it {about['advice']['take']}. Do not take it {about['advice']['avoid']}."
    return filled(
        "server.in",
        {
            "NAME": name,
            "TITLE": name.upper(),
            "SUMMARY": roff(about["summary"]),
            "ADVICE": sentences(advice),
            "OPTIONS": "\n".join(entry_list(server_options(about["options"]))),
            "SEE_ALSO": see_also(name, pages),
        },
    )


def usage_lines(block: Block) -> Iterator[str]:
    """Yields the synopsis of dcollect from the block that begins with Usage."""
    for number, line in enumerate(block.prose):
        words = line.removeprefix("Usage:").split()
        yield ".br" if number else ".nf"
        yield f"\\fBdcollect\\fR {roff(' '.join(words[1:]))}"
    yield ".fi"


def section(block: Block) -> Iterator[str]:
    """Yields a part of the help of dcollect as a section, or a part of the section of options."""
    title = block.text().rstrip(":")
    if title.startswith(("Options of", "Factors")):
        yield from (f".SS {roff(title.partition(':')[0])}",)
        if rest := title.partition(": ")[2]:
            yield f"{sentences(rest[0].upper() + rest[1:])}."
    else:
        yield f".SH {roff(title.upper())}"
    yield from entry_list(block.entries)


def dcollect_page(pages: list[str]) -> str:
    """Returns the page of dcollect.sh."""
    usage, about, *blocks = read_blocks(output_of("dcollect.sh", "--help"))
    return filled(
        "dcollect.in",
        {
            "SYNOPSIS": "\n".join(usage_lines(usage)),
            "DESCRIPTION": sentences(about.text()),
            "SECTIONS": "\n".join(line for block in blocks for line in section(block)),
            "SEE_ALSO": see_also("dcollect", pages),
        },
    )


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: tools/man_pages.py [--check]", file=sys.stderr)
        return 2
    servers = project_models()
    names = [*servers, "dcollect"]
    made = {f"{name}.1": server_page(name, names) for name in servers} | {
        "dcollect.1": dcollect_page(names)
    }
    status = 0
    for name, text in made.items():
        path = PAGES / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if arguments:
            print(f"man/{name} is not what `make man` writes", file=sys.stderr)
            status = 1
        else:
            path.write_text(text, encoding="utf-8")
    for path in PAGES.glob("*.1"):
        if path.name not in made and arguments:
            print(f"man/{path.name} is a page of no program", file=sys.stderr)
            status = 1
        elif path.name not in made:
            path.unlink()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
