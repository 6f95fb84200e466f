"""The glossary: the terms of pages, and those of docs/reading-a-report.md."""

from __future__ import annotations

import re

from study_runs import TOP

from collect.present.glossary import Marker, read_terms


def marked(*lines: str) -> list[str]:
    marker = Marker()
    return [marker.line(line) for line in lines]


def test_the_documents_have_the_same_glossary() -> None:
    text = (TOP / "docs" / "reading-a-report.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text.partition("## Glossary")[2], re.M)
    assert rows[2:] == [(term.name, term.meaning) for term in read_terms()]


def test_a_form_is_that_of_one_term() -> None:
    forms = [form for term in read_terms() for form in term.forms]
    assert len(set(forms)) == len(forms)


def test_a_term_is_marked_once_in_a_section() -> None:
    block = '<a class="term" href="#term-block">'
    assert marked("<h2>Block</h2>", "<p>a block, two blocks</p>", "<h2>B</h2>", "<p>blocks</p>") == [
        "<h2>Block</h2>", f"<p>a {block}block</a>, two blocks</p>", "<h2>B</h2>",
        f"<p>{block}blocks</a></p>",
    ]  # fmt: skip


def test_what_is_no_text_is_not_marked() -> None:
    lines = [
        "<p><code>block</code> <a href='#'>a block</a></p>", "<pre><code>a block", "a cell</code></pre>",
        "<th>blocks</th>", '<img alt="blocks">', "<p>floor-one, sub-block, block+1</p>",
    ]  # fmt: skip
    assert marked(*lines) == lines


def test_a_glossary_has_the_terms_that_were_used() -> None:
    marker = Marker()
    marker.line("<p>each percentile of a round</p>")
    assert [term.name for term in marker.glossary()] == ["percentile", "round"]
