#!/usr/bin/python3 -B
"""Fills in the lists of files in docs/files.md, and that of folders in ARCHITECTURE.md.

usage:    tools/file_map.py [--check]        or: make map

A list of files stands between `<!-- made: files FOLDER -->` and `<!-- /made -->`: one line for each
source file of that folder, with its first sentence; a .c file and its header share one. The list of
folders has the headings above these lists. --check changes nothing: its status is 1 when a page is
not what the script would write, when a folder has no list, or when a file does not open with a
sentence.
"""

import re
import sys
import textwrap
import tomllib
from pathlib import Path

from project_models import PROJECT, project_models

FILES = PROJECT / "docs" / "files.md"
FOLDERS = PROJECT / "ARCHITECTURE.md"
ROOTS = ("common", "collect", "studies", "tests", "tools")
TOP_FILES = ("*.sh", "*.p", "Makefile")
LIST = re.compile(r"<!-- made: files (\S+) -->\n(.*?)<!-- /made -->\n", re.DOTALL)
LIST_OF_FOLDERS = re.compile(r"(<!-- made: folders -->\n).*?(<!-- /made -->\n)", re.DOTALL)
HEADING = re.compile(r"^## (`.*)", re.MULTILINE)
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
    """Returns the folders that must have a list."""
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


def with_files(page: str, problems: list[str]) -> str:
    """Returns docs/files.md with all of its lists filled in."""
    named = [block[1] for block in LIST.finditer(page)]
    wanted = folders()
    problems += [
        f"{FILES.name} has no list for the folder {folder}"
        for folder in wanted
        if folder not in named
    ]
    problems += [
        f"{FILES.name} has a list for {folder}, which holds no source"
        for folder in named
        if folder not in wanted
    ]

    def fill(block: re.Match[str]) -> str:
        inside = lines_of(block[1], problems) if block[1] in wanted else ""
        return f"<!-- made: files {block[1]} -->\n{inside}<!-- /made -->\n"

    return LIST.sub(fill, page)


def with_folders(page: str, files: str) -> str:
    """Returns ARCHITECTURE.md with the headings of docs/files.md as its list of folders."""
    lines = "".join(f"- {heading}.\n" for heading in HEADING.findall(files))
    return LIST_OF_FOLDERS.sub(lambda block: block[1] + lines + block[2], page)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: tools/file_map.py [--check]", file=sys.stderr)
        return 2
    problems: list[str] = []
    files = with_files(FILES.read_text(encoding="utf-8"), problems)
    made = {FILES: files, FOLDERS: with_folders(FOLDERS.read_text(encoding="utf-8"), files)}
    for page, text in made.items():
        if page.read_text(encoding="utf-8") == text:
            continue
        if arguments:
            problems.append(f"{page.name} is not what `make map` writes")
        else:
            page.write_text(text, encoding="utf-8")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
