#!/usr/bin/python3 -B
"""Fills in the lists of files in ARCHITECTURE.md from the first sentence of each file.

usage:    tools/architecture_map.py [--check]        or: make map

A block begins with `<!-- made: files FOLDER -->` and ends with `<!-- /made -->`. The script writes
one line for each source file of that folder; a .c file and its header share one. --check changes
nothing: its status is 1 when ARCHITECTURE.md is not what the script would write, when a folder has
no block, or when a file does not open with a sentence.
"""

import re
import sys
import textwrap
import tomllib
from pathlib import Path

from project_models import PROJECT, project_models

PAGE = PROJECT / "ARCHITECTURE.md"
ROOTS = ("common", "collect", "studies", "tests", "tools")
TOP_FILES = ("*.sh", "*.p", "Makefile")
BLOCK = re.compile(r"<!-- made: files (\S+) -->\n(.*?)<!-- /made -->\n", re.DOTALL)
IGNORED = {"__init__.py", "__pycache__"}
SUFFIXES = {
    ".c",
    ".h",
    ".py",
    ".pl",
    ".pm",
    ".t",
    ".sh",
    ".awk",
    ".p",
    ".toml",
    ".lua",
    ".html",
    ".css",
    ".js",
    ".j2",
    ".md",
    "",
}


class NoSentence(Exception):
    """A file does not say what it is for."""


def comment_of(path: Path) -> str:
    """Returns the text of the comment or docstring that a file opens with."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".toml":
        study = tomllib.loads(text)
        return str(study.get("question") or study.get("title") or hash_comment(text))
    if path.suffix == ".md":
        found = re.search(r"\A# (.*)", text)
    elif path.suffix in (".c", ".h", ".css", ".js"):
        found = re.match(r"/\*(.*?)\*/", text, re.DOTALL)
    elif path.suffix == ".py" or text.startswith("#!/usr/bin/python3"):
        found = re.match(r'(?:#![^\n]*\n)?r?"""(.*?)"""', text, re.DOTALL)
    elif path.suffix == ".j2":
        found = re.match(r"\{#-?(.*?)-?#\}", text, re.DOTALL)
    elif path.suffix == ".html":
        found = re.match(r"(?:<!DOCTYPE[^>]*>\s*)?<!--(.*?)-->", text, re.DOTALL)
    elif path.suffix == ".lua":
        found = re.match(r"((?:--[^\n]*\n)+)", text)
        return re.sub(r"^-- ?", "", found[1], flags=re.MULTILINE) if found else ""
    else:
        return hash_comment(text)
    return found[1] if found else ""


def hash_comment(text: str) -> str:
    """Returns the first block of # lines, without those that only tools read."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(("#!", "# shellcheck", "package ")) or not (line or lines):
            continue
        if not line.startswith("#") or line.strip() == "#":
            break
        lines.append(line.lstrip("# "))
    return "\n".join(lines)


def sentence_of(path: Path) -> str:
    """Returns the first sentence of a file, without its own name before it."""
    text = "\n".join(re.sub(r"^ *\* ?", "", line) for line in comment_of(path).splitlines())
    text = " ".join(text.strip().split("\n\n")[0].split())
    text = re.sub(rf"^{re.escape(path.name)}: |^{re.escape(path.stem)}: ", "", text)
    end = re.search(r"[.?!](?= [A-Z`(-]|$)", text)
    text = text[: end.end()] if end else text.rstrip(".:;") + "."
    if len(text) < 10:
        raise NoSentence(
            f"{path.relative_to(PROJECT)} does not open with a sentence that says what it is for"
        )
    return text


def sources_of(folder: str) -> list[Path]:
    """Returns the files of a folder that the map lists, in order; `.` is the top of the project."""
    if folder == ".":
        found = {path for pattern in TOP_FILES for path in PROJECT.glob(pattern)}
        return sorted(found | {PROJECT / f"{model}.c" for model in project_models()})
    found = []
    for path in sorted((PROJECT / folder).iterdir()):
        if (
            path.is_file()
            and path.suffix in SUFFIXES
            and path.name not in IGNORED
            and not is_built(path)
        ):
            found.append(path)
    return found


def is_built(path: Path) -> bool:
    """Returns true for a program that was built, and is no script."""
    return path.suffix == "" and not path.read_bytes().startswith(b"#!")


def folders() -> list[str]:
    """Returns the folders that must have a block."""
    found = ["."]
    for root in ROOTS:
        for path in [PROJECT / root, *sorted((PROJECT / root).rglob("*"))]:
            name = path.relative_to(PROJECT).as_posix()
            if path.is_dir() and "__pycache__" not in name and sources_of(name):
                found.append(name)
    return found


def lines_of(folder: str, problems: list[str]) -> str:
    """Returns the list of the files of a folder, in Markdown."""
    lines: list[str] = []
    sources = sources_of(folder)
    for path in sources:
        name = path.name
        if path.suffix == ".h" and path.with_suffix(".c") in sources:
            continue
        if path.suffix == ".c" and path.with_suffix(".h") in sources:
            name = f"{path.stem}.[ch]"
        try:
            sentence = sentence_of(path)
        except NoSentence as problem:
            problems.append(str(problem))
            continue
        lines += textwrap.wrap(
            f"- `{name}`: {sentence}", width=120, subsequent_indent="  ", break_long_words=False
        )
    return "\n".join(lines) + "\n"


def page_with_files(page: str, problems: list[str]) -> str:
    """Returns the page with all of its blocks filled in."""
    named = [block[1] for block in BLOCK.finditer(page)]
    wanted = folders()
    problems += [
        f"{PAGE.name} has no block for the folder {folder}"
        for folder in wanted
        if folder not in named
    ]
    problems += [
        f"{PAGE.name} has a block for {folder}, which holds no source"
        for folder in named
        if folder not in wanted
    ]

    def fill(block: re.Match[str]) -> str:
        inside = lines_of(block[1], problems) if block[1] in wanted else ""
        return f"<!-- made: files {block[1]} -->\n{inside}<!-- /made -->\n"

    return BLOCK.sub(fill, page)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: tools/architecture_map.py [--check]", file=sys.stderr)
        return 2
    problems: list[str] = []
    before = PAGE.read_text(encoding="utf-8")
    after = page_with_files(before, problems)
    if arguments and after != before:
        problems.append(f"{PAGE.name} is not what `make map` writes")
    elif after != before:
        PAGE.write_text(after, encoding="utf-8")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
