/* Plays the scenes of a replay: what is shown at a time follows from the recorded events alone. */
(function () {
    'use strict';
    const data = JSON.parse(document.getElementById('data').textContent);
    const calm = matchMedia('(prefers-reduced-motion: reduce)');
    const MARK = 21, SIZE = 20, ROW = 14, QUEUE = 26, LABELS = 78, AXIS = 18;
    const CALM_STEP_SECONDS = 0.4;
    const SVG = 'http://www.w3.org/2000/svg';
    const find = id => document.getElementById(id);
    const idle = data.activities.indexOf('idle');

    function element(parent, tag, className, text) {
        const made = document.createElement(tag);
        made.className = className;
        if (text !== undefined) { made.textContent = text; }
        parent.append(made);
        return made;
    }

    function drawn(parent, tag, attributes, text) {
        const made = document.createElementNS(SVG, tag);
        for (const name in attributes) { made.setAttribute(name, attributes[name]); }
        if (text !== undefined) { made.textContent = text; }
        parent.append(made);
        return made;
    }

    const look = code => 'a-' + data.activities[code].replace(' ', '-');
    const plural = (count, one, many) => count + ' ' + (count === 1 ? one : many);

    function clock(time) {
        return (time / 1000).toFixed(time < 10000 ? 3 : 2) + ' ms';
    }

    /* The last of the items, sorted by start, that has begun at a time. */
    function latest(items, time, start) {
        let low = 0, high = items.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (start(items[middle]) <= time) { low = middle + 1; } else { high = middle; }
        }
        return low ? items[low - 1] : null;
    }

    /* ---- a scene: what is where at a time ---- */

    function prepare(scene) {
        const histories = {};
        scene.threads.forEach(thread => thread.spans.forEach(span => {
            if (span[3]) { (histories[span[3]] = histories[span[3]] || []).push({ start: span[0], end: span[1], code: span[2], thread }); }
        }));
        scene.connections.forEach(one => {
            one.history = (histories[one.number] || []).sort((a, b) => a.start - b.start);
            one.big = scene.connections.some(other => other.document !== one.document) && one.document.endsWith('.bin');
            one.over = one.closed === null ? one.ended : one.closed;
        });
        scene.lengths = queue_lengths(scene);
        scene.longest = Math.max(0, ...scene.lengths.map(change => change[1]));
        scene.made = scene.threads.filter(thread => thread.made);
        scene.word = scene.made.length && scene.made[0].kind === 'thread' ? ['thread', 'threads'] : ['process', 'processes'];
        scene.places_of = Array.from({ length: scene.places }, (_, place) => scene.threads.filter(thread => thread.place === place));
    }

    /* The length of the accept queue from each time on when it changes. */
    function queue_lengths(scene) {
        const changes = [];
        scene.connections.forEach(one => {
            changes.push([one.connecting, 1], [one.accepted === null ? one.ended : one.accepted, -1]);
        });
        let length = 0;
        return changes.sort((a, b) => a[0] - b[0]).map(([time, by]) => [time, length += by]);
    }

    function alive(thread, time) {
        return (thread.born === null || thread.born <= time) && (thread.died === null || time < thread.died);
    }

    /* Where a connection is: away, queue, closed, or at a thread. */
    function where(one, time) {
        if (time < one.connecting) { return { at: 'away' }; }
        if (time >= one.over) { return { at: 'closed' }; }
        if (one.accepted === null || time < one.accepted) { return { at: 'queue' }; }
        const now = latest(one.history, time, item => item.start);
        return now ? { at: 'thread', thread: now.thread } : { at: 'queue' };
    }

    function state_of(thread, time) {
        const span = latest(thread.spans, time, item => item[0]);
        return span && time < span[1] ? span : null;
    }

    /* ---- the stage: stations, places of threads, and marks that travel between them ---- */

    function station(stage, title) {
        const made = element(stage, 'div', 'station');
        element(made, 'span', 'title', title);
        return element(made, 'span', 'room');
    }

    function build_stage(scene, stage) {
        scene.queue = station(stage, scene.places ? 'accept queue' : 'at the server');
        const places = element(stage, 'div', 'places');
        scene.boxes = scene.places_of.map(threads => {
            const box = element(places, 'div', 'place');
            box.classList.toggle('wide', threads.some(thread => thread.holds > 4));
            return { box, name: element(box, 'div', 'name'), does: element(box, 'div', 'does'), room: element(box, 'div', 'room') };
        });
        scene.done = station(stage, 'closed');
        scene.marks = scene.connections.map(one => {
            const mark = element(stage, 'span', 'mark away', String(one.number));
            mark.classList.toggle('slow', one.slow);
            mark.classList.toggle('big', one.big);
            mark.classList.toggle('crash', one.document === 'crash');
            return mark;
        });
        scene.stage = stage;
    }

    /* Makes stations as high as the marks need that they hold at most, in up to three rows. */
    function rooms(scene) {
        const rows = (node, most) => {
            const count = Math.min(3, Math.max(1, Math.ceil(most * MARK / Math.max(MARK, node.clientWidth))));
            node.style.height = count * MARK + 'px';
            return count;
        };
        const counts = { queue: rows(scene.queue, scene.longest), closed: rows(scene.done, scene.connections.length) };
        const origin = scene.stage.getBoundingClientRect();
        const room = (node, rows) => {
            const box = node.getBoundingClientRect();
            return { x: box.left - origin.left, y: box.top - origin.top, width: box.width, rows };
        };
        scene.rooms = { queue: room(scene.queue, counts.queue), closed: room(scene.done, counts.closed),
            places: scene.boxes.map(item => room(item.room, 1)) };
    }

    /* Puts marks side by side; what does not fit side by side overlaps. */
    function put(scene, room, indices) {
        const fits = Math.max(1, Math.floor((room.width - SIZE) / MARK) + 1);
        const a_row = Math.max(fits, Math.ceil(indices.length / room.rows));
        const step = a_row > fits ? (room.width - SIZE) / Math.max(1, a_row - 1) : MARK;
        indices.forEach((index, order) => {
            const x = room.x + order % a_row * step, y = room.y + Math.floor(order / a_row) * MARK;
            const place = 'translate(' + x.toFixed(1) + 'px,' + y.toFixed(1) + 'px)';
            const mark = scene.marks[index];
            if (mark.style.transform !== place) { mark.style.transform = place; }
        });
    }

    function show_stage(scene, time) {
        const queue = [], closed = [], held = scene.boxes.map(() => []);
        scene.connections.forEach((one, index) => {
            const now = where(one, time);
            scene.marks[index].classList.toggle('away', now.at === 'away');
            scene.marks[index].classList.toggle('failed', now.at === 'closed' && one.status !== 200);
            if (now.at === 'thread') { held[now.thread.place].push(index); }
            if (now.at === 'queue' || now.at === 'away') { queue.push(index); }
            if (now.at === 'closed') { closed.push(index); }
        });
        const waiting = queue.filter(index => where(scene.connections[index], time).at === 'queue');
        closed.sort((a, b) => scene.connections[a].over - scene.connections[b].over);
        put(scene, scene.rooms.queue, waiting);
        queue.filter(index => !waiting.includes(index)).forEach(index => put(scene, scene.rooms.queue, [index]));
        put(scene, scene.rooms.closed, closed);
        held.forEach((indices, place) => put(scene, scene.rooms.places[place], indices));
        scene.boxes.forEach((box, place) => show_place(box, scene.places_of[place].find(thread => alive(thread, time)), time));
        const made = scene.made.filter(thread => thread.born <= time).length;
        const lost = closed.filter(index => scene.connections[index].status !== 200).length;
        const all = scene.connections.length, at_work = all - queue.length - closed.length;
        say(scene.now, (scene.places ? waiting.length + ' in the accept queue, ' + at_work + ' accepted, '
            : waiting.length + ' at the server, ') + closed.length + ' of ' + all + ' closed'
            + (lost ? ', ' + lost + ' of them without a response' : '')
            + (scene.made.length ? '; ' + plural(made, scene.word[0], scene.word[1]) + ' made' : ''));
    }

    function say(node, text) {
        if (node.textContent !== text) { node.textContent = text; }
    }

    function doing(thread, span, time) {
        if (!span && thread.born !== null && time < thread.spans[0][0]) { return 'starts'; }
        if (!span) { return thread.died === null ? 'idle' : 'ends'; }
        return data.activities[span[2]] + (span[3] ? ' ' + span[3] : '');
    }

    function show_place(item, thread, time) {
        const span = thread ? state_of(thread, time) : null;
        const code = span ? span[2] : idle;
        const name = 'place ' + (item.box.classList.contains('wide') ? 'wide ' : '') + (thread ? look(code) : 'empty');
        if (item.box.className !== name) { item.box.className = name; }
        say(item.name, thread ? thread.name.replace('_server', '') : '');
        say(item.does, thread ? doing(thread, span, time) : '');
    }

    /* ---- the timeline: a bar for each activity ---- */

    function build_timeline(scene, holder) {
        const rows = scene.places + scene.processors.length;
        scene.height = QUEUE + 4 + rows * ROW;
        const words = 'What ' + scene.label + ' did over time: the length of the accept queue, a row for each process or thread, and a row for each processor.';
        const svg = drawn(holder, 'svg', { role: 'img', 'aria-label': words, height: scene.height + AXIS });
        const labels = drawn(svg, 'g', {});
        const label = (text, y) => drawn(labels, 'text', { x: 0, y }, text);
        label(scene.places ? 'queue' : 'at server', QUEUE - 4);
        const chart = drawn(svg, 'svg', { x: LABELS, y: 0, height: scene.height, preserveAspectRatio: 'none' });
        draw_queue(scene, chart);
        scene.places_of.forEach((threads, place) => {
            const y = QUEUE + 4 + place * ROW;
            const name = threads[0].name.replace('_server', '');
            label(threads.length > 1 ? name + ' ×' + threads.length : name, y + ROW - 4);
            threads.forEach(thread => draw_thread(scene, chart, thread, y));
        });
        scene.processors.forEach((processor, order) => {
            const y = QUEUE + 4 + (scene.places + order) * ROW;
            label('processor ' + processor, y + ROW - 4);
            scene.threads.forEach(thread => thread.spans.forEach(span => {
                const works = span[2] !== idle && data.activities[span[2]] !== 'wait';
                if (works && span[4] === processor) { bar(chart, span, y + 3, ROW - 5); }
            }));
        });
        scene.chart = { svg, chart, axis: drawn(svg, 'g', {}), future: drawn(svg, 'rect', { class: 'future', y: 0, height: scene.height }),
            head: drawn(svg, 'line', { class: 'head', y1: 0, y2: scene.height }), view: '' };
        svg.addEventListener('pointerdown', event => seek_at(scene, event));
    }

    function bar(chart, span, y, height) {
        return drawn(chart, 'rect', { class: 'bar ' + look(span[2]), x: span[0], y, width: Math.max(0, span[1] - span[0]), height });
    }

    function draw_thread(scene, chart, thread, y) {
        const first = thread.born === null ? 0 : thread.born, last = thread.died === null ? scene.end : thread.died;
        drawn(chart, 'rect', { class: 'life', x: first, y: y + 1, width: Math.max(0, last - first), height: ROW - 2 });
        thread.spans.forEach(span => {
            if (span[2] === idle) { return; }
            bar(chart, span, y + 2, ROW - 4);
            const one = span[3] && scene.connections.find(other => other.number === span[3]);
            if (one && one.slow) { drawn(chart, 'rect', { class: 'of-slow', x: span[0], y: y + ROW - 4, width: span[1] - span[0], height: 3 }); }
        });
    }

    function draw_queue(scene, chart) {
        const y = length => QUEUE - length / Math.max(1, scene.longest) * (QUEUE - 4);
        let path = 'M0 ' + QUEUE;
        scene.lengths.forEach(([time, length]) => { path += 'H' + time + 'V' + y(length).toFixed(2); });
        drawn(chart, 'path', { class: 'waiting', d: path + 'H' + scene.end + 'V' + QUEUE + 'Z' });
    }

    /* The part of the time that the charts show: all, or a window around the time. */
    function view_of(time) {
        const width = Math.min(+zoom.value || data.end, data.end);
        return { from: Math.max(0, Math.min(time - width / 2, data.end - width)), width };
    }

    function show_timeline(scene, time, view) {
        const chart = scene.chart, wide = Math.max(1, scene.wide - LABELS);
        const key = view.from + ' ' + view.width + ' ' + wide;
        if (chart.view !== key) {
            chart.view = key;
            chart.chart.setAttribute('width', wide);
            chart.chart.setAttribute('viewBox', view.from + ' 0 ' + view.width + ' ' + scene.height);
            show_axis(scene, view, wide);
        }
        const x = LABELS + (time - view.from) / view.width * wide;
        chart.head.setAttribute('x1', x);
        chart.head.setAttribute('x2', x);
        chart.future.setAttribute('x', x);
        chart.future.setAttribute('width', Math.max(0, LABELS + wide - x));
    }

    function show_axis(scene, view, wide) {
        const axis = scene.chart.axis, least = view.width / Math.max(1, wide / 60);
        const power = Math.pow(10, Math.floor(Math.log10(least)));
        const step = [1, 2, 5, 10].map(by => by * power).find(by => by >= least);
        axis.textContent = '';
        for (let tick = Math.ceil(view.from / step) * step; tick <= view.from + view.width; tick += step) {
            const x = LABELS + (tick - view.from) / view.width * wide;
            drawn(axis, 'line', { class: 'tick', x1: x, x2: x, y1: 0, y2: scene.height });
            if (x < LABELS + wide - 26) {
                drawn(axis, 'text', { x, y: scene.height + 13, 'text-anchor': 'middle' }, +(tick / 1000).toFixed(3) + ' ms');
            }
        }
    }

    function seek_at(scene, event) {
        const box = scene.chart.svg.getBoundingClientRect(), view = view_of(now);
        const share = (event.clientX - box.left - LABELS) / Math.max(1, box.width - LABELS);
        pause();
        go(view.from + Math.max(0, Math.min(1, share)) * view.width);
    }

    /* ---- the events, for steps ---- */

    function events_of(scene, number) {
        const events = [];
        const add = (time, text) => events.push({ time, scene: number, text });
        scene.threads.forEach(thread => {
            const who = thread.name + ' (' + thread.kind + ' ' + thread.id + ')';
            if (thread.born !== null) { add(thread.born, who + ' starts'); }
            if (thread.died !== null) { add(thread.died, who + (thread.crashed ? ' crashes' : ' ends')); }
            thread.spans.forEach(span => {
                const of = span[3] ? ', connection ' + span[3] : '';
                const bytes = span[5] ? ', ' + plural(span[5], 'byte', 'bytes') : '';
                add(span[0], who + ': ' + (data.names[data.activities[span[2]]] || 'idle') + of + bytes + ', on processor ' + span[4]);
            });
        });
        scene.connections.forEach(one => {
            add(one.connecting, 'client connects, connection ' + one.number + (one.slow ? ', a slow one' : ''));
            add(one.ended, one.status === 200 ? 'client has the whole response of connection ' + one.number
                : 'client of connection ' + one.number + ' gives up');
        });
        return events;
    }

    function step(by) {
        pause();
        const shown = events.filter(event => !scenes[event.scene].article.hidden);
        const next = by > 0 ? shown.find(event => event.time > now + 1e-6)
            : shown[shown.findIndex(event => event.time >= now - 1e-6) - 1] || (now > data.end - 1e-6 && shown[shown.length - 1]);
        go(next ? next.time : by > 0 ? data.end : 0);
        tell();
    }

    /* Says in words what happens at this time. */
    function tell() {
        const here = events.filter(event => Math.abs(event.time - now) < 1e-6 && !scenes[event.scene].article.hidden);
        say(find('event'), clock(now) + (here.length ? ': ' + here.map(event => scenes[event.scene].label + ': ' + event.text).join('; ') : ''));
    }

    /* ---- time, and the controls ---- */

    const scenes = data.scenes, time_input = find('time'), speed = find('speed'), zoom = find('zoom');
    let now = 0, playing = false, fresh = true, last = 0, events = [];

    function go(time) {
        now = Math.max(0, Math.min(time, data.end));
        const view = view_of(now);
        scenes.forEach(scene => {
            if (!scene.article.hidden) {
                show_stage(scene, now);
                show_timeline(scene, now, view);
            }
        });
        time_input.value = now;
        time_input.setAttribute('aria-valuetext', clock(now));
        say(find('clock'), clock(now));
    }

    function frame(moment) {
        if (!playing) { return; }
        const seconds = (moment - last) / 1000;
        if (!calm.matches || seconds >= CALM_STEP_SECONDS) {
            last = moment;
            go(now + Math.min(seconds, 1) * +speed.value);
        }
        if (now >= data.end) { pause(); tell(); } else { requestAnimationFrame(frame); }
    }

    function show_button() {
        find('play').querySelector('path').setAttribute('d', playing ? 'M3 2h4v12H3zM9 2h4v12H9z' : 'M4 2l10 6-10 6z');
        find('play').setAttribute('aria-label', playing ? 'Pause' : 'Play');
    }

    /* From the first use on, marks travel to their places: they do not when the page is laid out. */
    function begin_to_move() {
        find('scenes').classList.add('moving');
    }

    function play() {
        begin_to_move();
        if (fresh || now >= data.end) { go(0); }
        fresh = false;
        playing = true;
        last = performance.now();
        say(find('event'), '');
        show_button();
        requestAnimationFrame(frame);
    }

    function pause() {
        begin_to_move();
        playing = fresh = false;
        show_button();
    }

    function toggle() {
        if (playing) { pause(); tell(); } else { play(); }
    }

    function jump(time) {
        pause();
        go(time);
        tell();
    }

    const KEYS = { ' ': toggle, ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => jump(0), End: () => jump(data.end) };

    function key(event) {
        const node = event.target, action = KEYS[event.key];
        const inside = node === document.body || node.closest('section') === find('scenes').closest('section');
        if (!action || !inside || event.ctrlKey || event.altKey || event.metaKey || node.closest('input, select')) { return; }
        if (event.key === ' ' && node.closest('button')) { return; }
        event.preventDefault();
        action();
    }

    function option(list, value, text, chosen) {
        const made = element(list, 'option', '', text);
        made.value = value;
        made.selected = chosen;
    }

    function build_controls() {
        const speeds = [250, 500, 1000, 2000, 4000, 10000, 40000, 1000000];
        const usual = speeds.find(value => data.end / value <= 15) || 1000000;
        speeds.forEach(value => option(speed, value, value === 1000000 ? 'as it was' : 1000000 / value + '× slower', value === usual));
        option(zoom, 0, 'all', true);
        [20000, 10000, 5000, 2000, 1000, 500].filter(width => width < data.end).forEach(width => option(zoom, width, width / 1000 + ' ms', false));
        time_input.max = data.end;
        time_input.step = data.end / 1000;
        time_input.addEventListener('input', () => { pause(); go(+time_input.value); });
        time_input.addEventListener('change', tell);
        zoom.addEventListener('change', () => go(now));
        find('begin').addEventListener('click', () => jump(0));
        find('back').addEventListener('click', () => step(-1));
        find('forth').addEventListener('click', () => step(1));
        find('play').addEventListener('click', toggle);
        document.addEventListener('keydown', key);
    }

    function measure() {
        scenes.forEach(scene => {
            if (scene.article.hidden) { return; }
            scene.wide = scene.chart.svg.parentNode.getBoundingClientRect().width;
            rooms(scene);
        });
        go(now);
    }

    /* ---- questions ---- */

    function reveal(event) {
        event.preventDefault();
        const form = event.target, given = new FormData(form).get(form.dataset.question), right = form.dataset.right;
        let words = '';
        if (given) {
            words = form.querySelector('fieldset') ? (given === right ? 'Right.' : 'Not ' + given + '.')
                : +given === +right.replace(/,/g, '') ? 'Right.' : 'You said ' + given + '.';
        }
        form.querySelector('.guess').textContent = words;
        form.querySelector('.answer').hidden = false;
        form.querySelector('.look').hidden = false;
    }

    function look_at(form) {
        const question = data.questions[form.dataset.question];
        const found = scenes.filter(scene => question.scenes.includes(scene.label));
        found.forEach(scene => { show_scene(scene, true); });
        measure();
        jump(question.moment);
        found[0].article.scrollIntoView({ block: 'nearest' });
        find('play').focus({ preventScroll: true });
    }

    function show_scene(scene, shown) {
        scene.article.hidden = !shown;
        scene.box.checked = shown;
    }

    /* ---- */

    scenes.forEach((scene, number) => {
        prepare(scene);
        scene.article = find('scene-' + number);
        scene.now = scene.article.querySelector('.now');
        scene.box = document.querySelector('[data-scene="' + number + '"]');
        scene.box.addEventListener('change', () => { show_scene(scene, scene.box.checked); measure(); });
        build_stage(scene, scene.article.querySelector('.stage'));
        build_timeline(scene, scene.article.querySelector('.timeline'));
        events = events.concat(events_of(scene, number));
    });
    events.sort((a, b) => a.time - b.time);
    document.querySelectorAll('.question').forEach(form => {
        form.addEventListener('submit', reveal);
        form.querySelector('.look').addEventListener('click', () => look_at(form));
    });
    build_controls();
    now = data.end / 10;
    measure();
    new ResizeObserver(measure).observe(find('scenes'));
}());
