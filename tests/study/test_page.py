"""Pages in headless Chromium: they can be read at 400 and 1,280 pixels, by mouse and by keyboard."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from presenting import (
    LAYOUT,
    SCHEMES,
    WIDTHS,
    after_scripts,
    chromium,
    need_programs,
    publish,
    published,
    reported,
    told,
)
from synthetic import invent

from collect.present.present_results import present, write_page
from collect.present.published_index import overview
from collect.present.published_runs import KEPT, kept_runs
from collect.project import PROJECT, PUBLISHED
from collect.tables import write_table

need_programs()

HOVER = """
document.querySelectorAll('details').forEach(d => { d.open = true; });
const tip = document.getElementById('tip');
let shown = 0, first = '';
document.querySelectorAll('figure svg').forEach(svg => {
    if (!svg.getBoundingClientRect().width) return;
    svg.scrollIntoView({ inline: 'start' });
    const point = svg.querySelector('.value use, .value path, .value circle').getBoundingClientRect();
    svg.dispatchEvent(new PointerEvent('pointermove', { bubbles: true,
        clientX: point.left + point.width / 2, clientY: point.top + point.height / 2 }));
    if (getComputedStyle(tip).visibility === 'visible') shown++;
    if (!first) first = tip.textContent;
});
send({ shown, first });
"""

KEYS = """
const frame = document.querySelector('figure .scroll'), tip = document.getElementById('tip');
const said = [];
frame.focus();
for (const key of ['ArrowRight', 'ArrowRight', 'ArrowLeft']) {
    frame.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    said.push(getComputedStyle(tip).visibility === 'visible' ? tip.textContent : 'hidden');
}
frame.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
const scrolls = [...document.querySelectorAll('.scroll')];
send({ focused: document.activeElement === frame, first: said[0], second: said[1], third: said[2],
    after: getComputedStyle(tip).visibility,
    reachable: scrolls.every(s => s.tabIndex === 0 && s.getAttribute('aria-label')) });
"""

# The contrast of each text with its background, by WCAG 2.
CONTRAST = """
const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const rgb = text => text.match(/[\\d.]+/g).map(Number);
const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const ground = element => {
    for (let e = element; e; e = e.parentElement) {
        const c = rgb(getComputedStyle(e).backgroundColor);
        if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
};
document.querySelectorAll('details').forEach(d => { d.open = true; });
const poor = new Set();
let texts = 0;
const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || element.closest('style, script, title')) continue;
    const style = getComputedStyle(element), inside = element.closest('svg');
    const colour = rgb(inside ? style.fill : style.color);
    const both = [light(colour), light(ground(element.closest('figure, main') || element))];
    if (!inside) both[1] = light(ground(element));
    both.sort((a, b) => b - a);
    texts++;
    if ((both[0] + 0.05) / (both[1] + 0.05) < 4.5) poor.add(element.textContent.slice(0, 30));
}
send({ texts, poor: [...poor].slice(0, 5).join('; '),
    dark: light(ground(document.body)) < 0.1 });
"""


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chromium()
    folder = invent(tmp_path_factory.mktemp("page") / "run", blocks=6, concurrency=6)
    return reported(folder, narrow=True) / "index.html"


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes the page of all claims, from the published runs."""
    chromium()
    reports = tmp_path_factory.mktemp("claims")
    for run in ("fork-vs-thread", "table1", "mistakes", "sized", "idle"):
        folder = publish(run, reports / run / published(run).name)
        (folder / "report.md").write_text(f"# {run}\n\n## Abstract\n\nSo.\n")
        (folder / "figures/list.tsv").write_text("name\tkind\tfile\ttext\tpart\n")
    kept = {run: why for run, why in kept_runs(PUBLISHED).items() if (reports / run).is_dir()}
    write_table(reports / KEPT, ["run", "why"], [{"run": run, "why": kept[run]} for run in kept])
    overview(reports, None)
    return reports / "claims.html"


@pytest.fixture(scope="module")
def index(claims: Path) -> Path:
    """The page that leads to all published studies."""
    return claims.with_name("index.html")


def test_nothing_in_the_console_nothing_from_the_network(main: Path) -> None:
    page = main.read_text()
    network = r"""(?:src|srcset|href|action|data)\s*=\s*["']?\s*(?:https?:)?//|url\(\s*["']?https?:|@import"""
    assert not re.search(network, page)
    document, console = after_scripts(main)
    assert console == []
    assert document.rstrip().endswith("</html>")
    # A word in the console would have been seen.
    loud = main.with_name("loud.html")
    loud.write_text(page.replace("</body>", "<script>console.error('heard')</script></body>"))
    assert len(after_scripts(loud)[1]) == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report(main: Path, width: int) -> None:
    found = told(main, LAYOUT, width)
    assert int(found["width"]) == width
    assert int(found["wide"]) <= 0
    assert found["seen"] == found["figures"] != "0"
    assert found["flaws"] == "0: "
    assert found["fetched"] == ""
    assert found["scrolled"] == "0"
    assert float(found["least"]) >= 11


def test_values_under_the_mouse(main: Path) -> None:
    found = told(main, HOVER, 1280)
    assert int(found["shown"]) == main.read_text().count("<figure>")
    assert re.match(r"(fork|thread), concurrency \d+: [\d.]+ µs/request \(", found["first"])


def test_values_by_keyboard(main: Path) -> None:
    found = told(main, KEYS, 1280)
    assert found["focused"] == "true"
    assert found["first"] == found["third"] != found["second"]
    assert "hidden" not in (found["first"], found["second"])
    assert found["after"] == "hidden"
    assert found["reachable"] == "true"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_contrast_of_a_report(main: Path, scheme: str) -> None:
    found = told(main, CONTRAST, 1280, prefers_color_scheme=scheme)
    assert found["dark"] == str(scheme == "dark").lower()
    assert int(found["texts"]) > 200
    assert found["poor"] == ""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_contrast_of_the_claims(claims: Path, scheme: str) -> None:
    found = told(claims, CONTRAST, 1280, prefers_color_scheme=scheme)
    assert (found["dark"], found["poor"]) == (str(scheme == "dark").lower(), "")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_claims(claims: Path, width: int) -> None:
    found = told(claims, LAYOUT, width)
    assert int(found["wide"]) <= 0
    assert found["fetched"] == ""
    assert after_scripts(claims)[1] == []


# --- the way around a page ---

FIRST_SCREEN = """
const figure = document.querySelector('figure').getBoundingClientRect();
const links = [...document.querySelectorAll('nav.contents a')];
const to = links.map(a => document.getElementById(decodeURIComponent(a.hash.slice(1))));
send({ top: Math.round(figure.top), bottom: Math.round(figure.bottom), links: links.length,
    lost: links.filter((a, i) => !to[i] || to[i].textContent !== a.textContent).length });
"""

FORMS = """
document.querySelectorAll('details').forEach(d => { d.open = true; });
const shown = [...document.querySelectorAll('figure > div')].filter(f => f.getBoundingClientRect().height > 0);
const svg = shown[0].querySelector('svg'), text = words => [...svg.querySelectorAll('text')]
    .filter(t => t.textContent.trim() === words).map(t => t.getBoundingClientRect().top);
send({ figures: document.querySelectorAll('figure').length, forms: [...new Set(shown.map(f => f.className))].join(),
    shown: shown.length, names: text('fork').length + text('thread').length,
    below: Math.min(...text('fork'), ...text('thread')) > Math.max(...text('0'), ...text('1')) });
"""

TERMS = """
const tip = document.getElementById('tip'), terms = [...document.querySelectorAll('a.term')];
const said = link => document.querySelector(link.getAttribute('href')).nextElementSibling.textContent;
terms[0].focus();
const shown = getComputedStyle(tip).visibility, words = tip.textContent === said(terms[0]);
terms[0].dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
const after = getComputedStyle(tip).visibility;
const box = terms[1].getBoundingClientRect();
terms[1].dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: box.left, clientY: box.top }));
const meanings = new Set([...document.querySelectorAll('dt')].map(e => '#' + e.id));
send({ shown, words, after, mouse: tip.textContent === said(terms[1]),
    whole: terms.every(a => meanings.has(a.getAttribute('href'))), meanings: meanings.size,
    aside: document.querySelectorAll('h2 .term, pre .term, code .term, th .term, a a').length });
"""


def test_the_figure_is_on_the_first_screen(main: Path) -> None:
    found = told(main, FIRST_SCREEN)
    assert int(found["top"]) > 0 and int(found["bottom"]) <= 900
    assert int(found["links"]) >= 7
    assert found["lost"] == "0"


@pytest.mark.parametrize(("width", "form"), zip(WIDTHS, ("narrow", "wide"), strict=True))
def test_a_narrow_screen_has_figures_of_its_own(
    main: Path, width: int, form: str
) -> None:
    """With the names of the lines below them."""
    found = told(main, FORMS, width)
    assert found["forms"] == f"scroll {form}"
    assert found["shown"] == found["figures"] != "0"
    assert found["names"] == "2"
    assert found["below"] == str(form == "narrow").lower()


def test_each_term_has_its_meaning_under_it(main: Path) -> None:
    found = told(main, TERMS)
    assert (found["shown"], found["words"], found["after"]) == ("visible", "true", "hidden")
    assert (found["mouse"], found["whole"], found["aside"]) == ("true", "true", "0")
    assert int(found["meanings"]) >= 8


def test_a_page_links_back_if_it_is_published(tmp_path: Path) -> None:
    folder = publish("udp", tmp_path / "udp" / "run")
    present(folder)
    assert '<nav class="pages"' not in (folder / "index.html").read_text()
    (tmp_path / "claims.md").write_text("")
    write_page(folder, "UDP")
    assert '<a href="../../index.html">What was measured</a>' in (folder / "index.html").read_text()


# --- names and order, by checks of our own that need no other program ---

NAMES = """
document.querySelectorAll('details').forEach(d => { d.open = true; });
const unnamed = [], say = e => e.tagName.toLowerCase() + ' ' + (e.id || e.className.baseVal || e.className || '');
const words = e => (e.getAttribute('aria-label') || e.getAttribute('alt') || e.textContent || '').trim();
const labelled = e => (e.getAttribute('aria-labelledby') || '').split(' ')
    .map(id => document.getElementById(id)).concat(...(e.labels || []))
    .some(found => found && found.textContent.trim());
let looked = 0;
for (const e of document.querySelectorAll('a[href], button, summary, img, svg[role=img], table, [tabindex="0"], input')) {
    looked++;
    if (!words(e) && !labelled(e)) unnamed.push(say(e));
}
const levels = [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(h => +h.tagName[1]);
levels.forEach((level, i) => { if (level > (levels[i - 1] || 0) + 1) unnamed.push('a heading of level ' + level + ' after ' + levels[i - 1]); });
if (levels.filter(level => level === 1).length !== 1) unnamed.push('not one h1');
const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
ids.forEach((id, i) => { if (ids.indexOf(id) !== i) unnamed.push('twice: ' + id); });
document.querySelectorAll('table').forEach(t => { if (!t.querySelector('th')) unnamed.push('a table without heads'); });
document.querySelectorAll('[tabindex]').forEach(e => { if (e.tabIndex > 0) unnamed.push('out of order: ' + say(e)); });
const root = document.documentElement;
send({ looked, unnamed: unnamed.length + ': ' + unnamed.slice(0, 6).join('; '), language: root.lang,
    title: document.title.length > 0, landmark: document.querySelectorAll('main').length,
    viewport: !!document.querySelector('meta[name=viewport]:not([content*="user-scalable=no"])') });
"""


@pytest.mark.parametrize("name", ["main", "claims", "index"])
def test_everything_has_a_name(request: pytest.FixtureRequest, name: str) -> None:
    page: Path = request.getfixturevalue(name)
    found = told(page, NAMES)
    assert int(found["looked"]) > 10
    assert found["unnamed"] == "0: "
    assert (found["language"], found["title"], found["landmark"]) == ("en", "true", "1")
    assert found["viewport"] == "true"


def test_a_page_without_names_is_found(tmp_path: Path) -> None:
    chromium()
    page = tmp_path / "bad.html"
    page.write_text(
        "<!doctype html><html><body><h1>T</h1><h3>U</h3><a href='#x'></a></body></html>"
    )
    found = told(page, NAMES)
    assert found["unnamed"] == "2: a ; a heading of level 3 after 1"


# --- axe-core, if it is installed: npm install --no-save axe-core, or AXE_CORE=FILE ---

AXE = """
axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'best-practice'] }).then(found => send({
    passes: found.passes.length,
    violations: found.violations.map(v => v.id + ': ' + v.nodes[0].target).join('; ') }));
"""


def axe_core() -> str:
    file = Path(os.environ.get("AXE_CORE") or PROJECT / "node_modules/axe-core/axe.min.js")
    if not file.is_file():
        pytest.skip("axe-core is not installed: npm install --no-save axe-core")
    return file.read_text(encoding="utf-8").replace("</script", "<\\/script")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["main", "claims", "index"])
def test_axe(
    request: pytest.FixtureRequest, name: str, scheme: str, width: int
) -> None:
    axe = axe_core()
    page: Path = request.getfixturevalue(name)
    opened_all = "document.querySelectorAll('details').forEach(d => { d.open = true; });"
    found = told(page, f"{axe};\n{opened_all}{AXE}", width, prefers_color_scheme=scheme)
    assert int(found["passes"]) > 10
    assert found["violations"] == ""
