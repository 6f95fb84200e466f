"""The page of a replay in headless Chromium: it plays, by mouse and by keyboard, on any screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from invented_traces import LOAD, SLOW_US, scene
from presenting import SCHEMES, after_scripts, chromium, told
from test_page import AXE, CONTRAST, NAMES, axe_core
from test_replay import TOLD, crashed, lone

from collect.measure.load_for_replay import Play
from collect.present.replay_page import page_of_replay

# Headless Chromium draws no frames by itself, so a timer makes them.
HELPERS = """
window.requestAnimationFrame = then => setTimeout(() => then(performance.now()), 16);
const find = id => document.getElementById(id), clock = () => parseFloat(find('clock').textContent);
const press = (key, node) => (node || document.body).dispatchEvent(
    new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
const until = (condition, then) => condition() ? then() : requestAnimationFrame(() => until(condition, then));
const scenes = [...document.querySelectorAll('.scene')];
const said = number => scenes[number].querySelector('.now').textContent;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chromium()
    path = tmp_path_factory.mktemp("replay") / "page.html"
    scenes = [scene(label) for label in ("iterative", "fork", "epoll")]
    path.write_text(page_of_replay(scenes, LOAD, TOLD), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def crash_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chromium()
    path = tmp_path_factory.mktemp("crash") / "page.html"
    scenes = [crashed(), lone("thread", 5)]
    path.write_text(page_of_replay(scenes, Play(4, 1, 8, crash=True), TOLD), encoding="utf-8")
    return path


def looked(page: Path, script: str, width: int = 1280, **media: str) -> dict[str, str]:
    return told(page, HELPERS + script, width, **media)


def test_nothing_in_the_console_nothing_fetched(page: Path) -> None:
    assert after_scripts(page)[1] == []
    fetched = "send({ fetched: performance.getEntriesByType('resource').map(e => e.name).join() });"
    assert looked(page, fetched)["fetched"] == ""


LAYOUT = """
const root = document.documentElement, flaws = [];
for (const share of [0, 0.01, 0.2, 1]) {
    find('time').value = share * find('time').max;
    find('time').dispatchEvent(new Event('input'));
    document.querySelectorAll('.stage').forEach(stage => {
        const edge = stage.getBoundingClientRect();
        stage.querySelectorAll('.mark:not(.away)').forEach(mark => {
            mark.style.transition = 'none';
            const r = mark.getBoundingClientRect();
            if (r.left < edge.left - 1 || r.right > edge.right + 1 || r.top < edge.top - 1 || r.bottom > edge.bottom + 1)
                flaws.push('outside: ' + mark.textContent + ' at ' + share);
        });
    });
}
document.querySelectorAll('.timeline svg text').forEach(text => {
    const r = text.getBoundingClientRect(), edge = text.closest('.timeline').getBoundingClientRect();
    if (r.left < edge.left - 1 || r.right > edge.right + 1) flaws.push('cut: ' + text.textContent);
});
send({ wide: root.scrollWidth - root.clientWidth, width: innerWidth, flaws: flaws.join('; '),
    columns: new Set(scenes.map(s => s.getBoundingClientRect().left)).size });
"""


@pytest.mark.parametrize(("width", "columns"), [(400, "1"), (1280, "3")])
def test_everything_is_on_the_screen(page: Path, width: int, columns: str) -> None:
    found = looked(page, LAYOUT, width)
    assert int(found["wide"]) <= 0
    assert (found["flaws"], found["columns"]) == ("", columns)


PLAY = """
press(' ');
const label = find('play').getAttribute('aria-label');
until(() => clock() > 0.5, () => {
    press(' ');
    const paused = clock();
    requestAnimationFrame(() => requestAnimationFrame(() => {
        const after = clock();
        find('speed').selectedIndex = find('speed').options.length - 1;
        find('play').click();
        until(() => find('play').getAttribute('aria-label') === 'Play', () => send({
            label, moved: paused > 0.5, stays: after === paused, end: clock() === Number((find('time').max / 1000).toFixed(2)),
            first: said(0), second: said(1) }));
    }));
});
"""


def test_it_plays_pauses_and_ends(page: Path) -> None:
    found = looked(page, PLAY)
    assert (found["label"], found["moved"], found["stays"]) == ("Pause", "true", "true")
    assert found["end"] == "true"
    assert found["first"] == "0 in the accept queue, 0 accepted, 9 of 9 closed"
    assert found["second"].endswith("9 of 9 closed; 9 processes made")


STILL = """
const before = clock();
setTimeout(() => send({ still: clock() === before, label: find('play').getAttribute('aria-label') }), 2000);
"""


def test_nothing_moves_before_it_is_asked_to(page: Path) -> None:
    assert looked(page, STILL) == {"still": "true", "label": "Play"}


SCRUB = f"""
const at = time => {{ find('time').step = 'any'; find('time').value = time;
    find('time').dispatchEvent(new Event('input')); }};
at({SLOW_US} / 2);
const box = number => [...scenes[number].querySelectorAll('.place')].filter(place => !place.className.includes('empty'))
    .map(place => place.querySelector('.name').textContent + ': ' + place.querySelector('.does').textContent).join('; ');
send({{ first: said(0), second: said(1), boxes: box(0) + ' | ' + box(1) + ' | ' + box(2),
    spoken: find('time').getAttribute('aria-valuetext') }});
"""


def test_the_slow_client_halfway(page: Path) -> None:
    """Under iterative all others wait; under fork and epoll they have been served."""
    found = looked(page, SCRUB)
    assert found["first"] == "8 in the accept queue, 1 accepted, 0 of 9 closed"
    assert (
        found["second"] == "0 in the accept queue, 1 accepted, 8 of 9 closed; 9 processes made"
    )
    assert found["boxes"] == (
        "iterative: wait 1 | fork: idle; child: wait 1 | worker 1: idle"
    )
    assert found["spoken"] == "20.00 ms"


STEPS = """
press('Home');
const said_at = [];
for (let count = 0; count < 4; count++) { press('ArrowRight'); said_at.push(find('event').textContent); }
const four = clock();
press('ArrowLeft');
const three = clock();
press('End');
const end = clock();
find('begin').click();
send({ words: said_at.join(' | '), back: three < four, end: end > 39, begin: clock(),
    role: find('event').getAttribute('role') });
"""


def test_steps_from_event_to_event(page: Path) -> None:
    found = looked(page, STEPS)
    assert (
        "0.030 ms: iterative: iterative_server (process 100): accept, connection 1, on processor 0"
        in found["words"]
    )
    assert found["words"].startswith("0.030 ms: ")
    assert (found["back"], found["end"], found["begin"]) == ("true", "true", "0")
    assert found["role"] == "status"


KEYS = """
press('Home');
const field = document.querySelector('input[type=number]');
press('ArrowRight', field);
const typed = clock();
press('ArrowRight', find('back'));
const at_button = clock();
press(' ', find('back'));
send({ typed, moved: at_button > 0, playing: find('play').getAttribute('aria-label') });
"""


def test_keys_do_what_they_do_elsewhere_in_fields_and_on_buttons(
    page: Path
) -> None:
    assert looked(page, KEYS) == {"typed": "0", "moved": "true", "playing": "Play"}


QUESTIONS = """
const form = name => document.querySelector('[data-question=' + name + ']');
const answer = name => { form(name).requestSubmit(); const found = form(name).querySelector('.answer');
    return (found.hidden ? 'hidden ' : '') + found.textContent.trim(); };
const hidden = [...document.querySelectorAll('.answer')].every(found => found.hidden && !found.offsetHeight);
form('made').querySelector('input').value = '9';
form('held').querySelector('input').value = '7';
form('first').querySelector('[value=epoll]').checked = true;
const answers = ['made', 'held', 'first', 'waited'].map(answer);
document.querySelector('[data-scene="0"]').click();
const gone = scenes[0].hidden;
form('waited').querySelector('.look').click();
send({ hidden, made: answers[0], held: answers[1], first: answers[2], waited: answers[3], gone,
    back: !scenes[0].hidden, shown: said(0) });
"""


def test_predict_then_reveal(page: Path) -> None:
    found = looked(page, QUESTIONS)
    assert found["hidden"] == "true"
    assert found["made"].startswith("Right. fork made 9 processes.")
    assert found["held"].startswith("You said 7. 2: worker 1 of epoll.")
    assert found["first"].startswith("Not epoll. iterative.")
    assert found["waited"][0].isdigit()
    assert (found["gone"], found["back"]) == ("true", "true")
    assert "in the accept queue, " in found["shown"] and not found["shown"].startswith("0 ")


ZOOM = """
const view = () => scenes[1].querySelector('.timeline svg svg').getAttribute('viewBox').split(' ').map(Number);
const all = view();
find('zoom').value = '2000';
find('zoom').dispatchEvent(new Event('change'));
const near = view();
const svg = scenes[1].querySelector('.timeline svg'), r = svg.getBoundingClientRect();
svg.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true, clientX: r.right - 1, clientY: r.top + 5 }));
send({ all: all[2] > 40000, near: near[2], clicked: Math.abs(clock() * 1000 - near[0] - 2000) < 30 });
"""


def test_zoom_and_clicks_into_a_chart(page: Path) -> None:
    assert looked(page, ZOOM) == {"all": "true", "near": "2000", "clicked": "true"}


CALM = """
const seconds = () => getComputedStyle(document.querySelector('.stage .mark')).transitionDuration;
const first = seconds(), moves = document.getAnimations().length;
find('time').dispatchEvent(new Event('input'));
send({ calm: matchMedia('(prefers-reduced-motion: reduce)').matches, first, moves, seconds: seconds() });
"""


def test_reduced_motion(page: Path) -> None:
    found = looked(page, CALM, prefers_reduced_motion="reduce")
    assert found == {"calm": "true", "first": "0s", "moves": "0", "seconds": "0s"}


def test_nothing_moves_before_the_first_use(page: Path) -> None:
    found = looked(page, CALM)
    assert (found["calm"], found["first"], found["moves"]) == ("false", "0s", "0")
    assert found["seconds"] != "0s"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [400, 1280])
def test_contrast(page: Path, width: int, scheme: str) -> None:
    shown = "document.querySelectorAll('[hidden]').forEach(e => { e.hidden = false; });"
    shown += "document.querySelectorAll('.mark.away').forEach(e => e.remove());"
    found = told(page, shown + CONTRAST, width, prefers_color_scheme=scheme)
    assert found["dark"] == str(scheme == "dark").lower()
    assert int(found["texts"]) > 100
    assert found["poor"] == ""


def test_everything_has_a_name(page: Path) -> None:
    found = told(page, NAMES)
    assert int(found["looked"]) > 20
    assert found["unnamed"] == "0: "
    assert (found["language"], found["title"], found["landmark"]) == ("en", "true", "1")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [400, 1280])
def test_axe(page: Path, width: int, scheme: str) -> None:
    shown = "document.querySelectorAll('details').forEach(d => { d.open = true; });"
    shown += "document.querySelectorAll('.question').forEach(form => form.requestSubmit());"
    found = told(page, f"{axe_core()};\n{shown}{AXE}", width, prefers_color_scheme=scheme)
    assert int(found["passes"]) > 10
    assert found["violations"] == ""


CRASHED = """
find('time').value = find('time').max;
find('time').dispatchEvent(new Event('input'));
const lost = number => [...scenes[number].querySelectorAll('.mark.failed')].map(mark => mark.textContent).join(' ');
send({ first: said(0), second: said(1), one: lost(0), many: lost(1) });
"""


def test_a_crash(crash_page: Path) -> None:
    found = looked(crash_page, CRASHED)
    lost = "9 of 9 closed, {} of them without a response"
    assert found["first"].endswith(f"{lost.format(1)}; 9 processes made")
    assert found["second"] == f"0 at the server, {lost.format(5)}"
    assert (found["one"], found["many"]) == ("6", "1 2 3 4 5")
    assert after_scripts(crash_page)[1] == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_after_a_crash(crash_page: Path, scheme: str) -> None:
    end = "find('time').value = find('time').max; find('time').dispatchEvent(new Event('input'));"
    found = told(crash_page, f"{axe_core()};\n{HELPERS}{end}{AXE}", 400, prefers_color_scheme=scheme)
    assert found["violations"] == ""
