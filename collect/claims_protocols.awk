# claims_protocols.awk: the claims of studies that compare ways to speak: protocols, TLS, UDP. Functions only; a part of claims.awk.

# Judges a claim of those, and returns whether it is one.
function claim_of_protocols(id) {
    if (id == "R3.1") claim_R3_1()
    else if (id == "R3.2") claim_R3_2()
    else if (id == "R3.3") claim_R3_3()
    else if (id == "R3.4") claim_R3_4()
    else if (id == "R3.5") claim_R3_5()
    else if (id == "R4.1") claim_R4_1()
    else if (id == "R4.2") claim_R4_2()
    else if (id == "TLS.1") claim_TLS_1()
    else if (id == "TLS.2") claim_TLS_2()
    else if (id == "TLS.3") claim_TLS_3()
    else if (id == "U1") claim_U1()
    else if (id == "U2") claim_U2()
    else return 0
    return 1
}

# --- pairs of cells that differ in several factors ---

# The cell like c but for these words, e.g. "scheme=http certificate=-"; 0 if there is none.
function cell_but(c, changes,    n, i, words, at, key, f, changed) {
    n = split(changes, words, " ")
    for (i = 1; i <= n; i++) {
        at = index(words[i], "=")
        changed[substr(words[i], 1, at - 1)] = substr(words[i], at + 1)
    }
    key = ""
    for (f = 1; f <= factor_count; f++)
        key = key (f > 1 ? "\t" : "") ((factor[f] in changed) ? changed[factor[f]] : cell[c, factor[f]])
    return key in cell_at ? cell_at[key] : 0
}

# Tests the cells of these conditions against those that differ by these changes, averaged, and adds the part.
function part_pairs(kind, conditions, changes, tested, measure, rule, a, b,    n, i, c, pairs, bound, first, second) {
    n = pick(conditions, picked)
    pairs = bound = 0
    for (i = 1; i <= n; i++) {
        c = cell_but(picked[i], changes)
        if (!c || !has_data(picked[i], measure) || !has_data(c, measure)) continue
        first[++pairs] = picked[i]
        second[pairs] = c
        if (client_bound(picked[i]) || client_bound(c)) bound++
    }
    contrast_begin()
    for (i = 1; i <= pairs; i++) { contrast_add(first[i], 1 / pairs); contrast_add(second[i], -1 / pairs) }
    if (!pairs || !contrast_test(measure, test)) return
    if (bound && measure == "rps") tested = tested " (" (pairs > 1 ? bound " of " pairs " cells " : "") "limited by the load generator)"
    part_add(kind, tested, "ratio", rule, a, b)
}

# --- protocols ---

# Says how this study names a model that speaks a protocol, as words of pick() and cell_but(): by an option, or by a factor; "" if it
# has none.
function speaking(model, protocol) {
    if (has_level("server", model "+protocol=" protocol)) return "server=" model "+protocol=" protocol
    if (has_level("server", model) && has_level("protocol", protocol)) return "server=" model " protocol=" protocol
    return ""
}

# Our models, without the options that name a protocol, into list; only the one that serves one connection at a time, where it is there.
function speakers(list,    i, n, model, seen) {
    n = 0
    for (i = 1; i <= level_count["server"]; i++) {
        model = level["server", i]
        sub(/\+protocol=[a-z]+$/, "", model)
        if (is_peer(model) || is_floor(model) || seen[model]++) continue
        list[++n] = model
    }
    if (seen["iterative"]) { list[1] = "iterative"; n = 1 }
    return n
}

# A part for each number of connections that the study asks for, since few and many may differ: part_pairs with its conditions, changes,
# and what is tested.
function part_each_number(kind, conditions, changes, tested, rule, a, b,    i, n) {
    n = level_count["requests"]
    for (i = 1; i <= n; i++)
        part_pairs(kind, conditions " requests=" level["requests", i], changes, tested (n > 1 ? ", " connections_text(level["requests", i]) : ""), "rps", rule, a, b)
}

function connections_text(n) { return plural(n, "connection", "connections") }

# Our servers against Apache at so many calls per connection: a part for each, by the first of these protocols that it speaks.
function against_apache(calls, protocols, rule, a, b,    apache, i, p, words, count, models, n, spoken, protocol) {
    apache = server_named("apache-prefork")
    if (apache == "" || !has_level("calls", calls)) return
    count = split(protocols, words, " ")
    n = speakers(models)
    for (i = 1; i <= n; i++) {
        spoken = ""
        for (p = 1; p <= count && spoken == ""; p++) spoken = speaking(models[i], protocol = words[p])
        if (spoken != "")
            part_each_number("claim", spoken " calls=" calls, "server=" apache, models[i] " / " apache ", requests/s, " \
                factor_value("calls", calls) ", " factor_value("protocol", protocol), rule, a, b)
    }
}

function claim_R3_1() {
    claim_begin("R3.1")
    against_apache(1, "simple persistent pipelined", "ahead")
    claim_end()
}

function claim_R3_2(    models, n, i, simple, persistent) {
    claim_begin("R3.2")
    n = speakers(models)
    for (i = 1; i <= n; i++) {
        simple = speaking(models[i], "simple")
        persistent = speaking(models[i], "persistent")
        if (simple != "" && persistent != "")
            part_each_number("claim", persistent " calls=1", simple, models[i] ": requests/s, persistent / simple, 1 call per connection", "below", 1.02)
    }
    claim_end()
}

function claim_R3_3() {
    claim_begin("R3.3")
    against_apache(2, "persistent pipelined", "above", 1.1)
    claim_end()
}

function claim_R3_4(    i, label, other, calls) {
    claim_begin("R3.4")
    against_apache(5, "persistent pipelined", "below", 0.1)
    calls = highest("calls")
    for (i = 1; i <= level_count["server"]; i++) {
        label = level["server", i]
        if (label !~ /\+split/) continue
        other = without_mistake(label)
        part_servers("reading", label, other, "rps", "calls=" calls, (level_count["calls"] > 1 ? ", " factor_value("calls", calls) : ""), "below", 0.5)
        if (longer(label, other, "calls=" calls))
            part_add("reading", label " - " other ", mean time of a request" (level_count["calls"] > 1 ? ", " factor_value("calls", calls) : ""), "ms", "within", 20, 60)
        part_servers("reading", label, other, "server_cpu_us", "calls=" calls, ", so that it waits and does not work", "below", 10)
    }
    claim_end()
}

# How much longer a request to server a takes than one to b, in milliseconds, over the picked cells, into test.
function longer(a, b, conditions,    n, i, ca, cb, block, va, vb, k, sum, values, count) {
    n = pick(conditions " server=" a, picked)
    count = 0
    for (block = 1; block <= blocks; block++) {
        k = sum = 0
        for (i = 1; i <= n; i++) {
            ca = picked[i]
            cb = cell_like(ca, "server", b)
            if (!cb || (va = measured(ca, block, "mean_ms")) == "" || (vb = measured(cb, block, "mean_ms")) == "") continue
            sum += va - vb
            k++
        }
        if (k) values[++count] = sum / k
    }
    if (count < 2) return 0
    paired_test(values, count, test)
    return 1
}

# Their pipelined server made a thread for each connection, their persistent one had one at a time.
function claim_R3_5(    alone, thread, threaded) {
    claim_begin("R3.5")
    alone = speaking("iterative", "persistent")
    thread = speaking("thread", "pipelined")
    threaded = speaking("thread", "persistent")
    if (alone != "" && thread != "")
        part_each_number("claim", thread " calls=1", alone, "thread, pipelined / iterative, persistent, requests/s, 1 call per connection", "behind")
    if (alone != "" && threaded != "")
        part_each_number("reading", threaded " calls=1", alone, "thread / iterative, both persistent, requests/s, 1 call per connection", "behind")
    if (thread != "" && threaded != "")
        part_each_number("reading", thread " calls=1", threaded, "pipelined / persistent, a thread for each connection both, requests/s, 1 call per connection", "within", 0.9, 1.1)
    claim_end()
}

# --- TLS ---

# About 10 times: from 5 to 20. That report does not name its key; RSA-2048 was the usual one.
function claim_R4_1(    i, server) {
    claim_begin("R4.1")
    for (i = 1; i <= level_count["server"]; i++) {
        server = level["server", i]
        if (is_peer(server) || server ~ /^epoll/) continue
        part_each_number("claim", "server=" server " scheme=https certificate=rsa2048 sessions=new load=httperf", "scheme=http certificate=- sessions=-",
            server ": requests/s by HTTPS, a new session each, RSA-2048 / by HTTP", "within", 0.05, 0.2)
    }
    claim_end()
}

function claim_R4_2(    i, k, server, first, last, words, n) {
    claim_begin("R4.2")
    first = smallest_of_httperf()
    last = highest("requests")
    n = split("scheme=http scheme=https,certificate=p256 scheme=https,certificate=rsa2048", words, " ")
    for (i = 1; i <= level_count["server"] && first != last; i++)
        for (k = 1; k <= n; k++) {
            server = level["server", i]
            gsub(/,/, " ", words[k])
            part_pairs("claim", "server=" server " load=httperf requests=" last " " words[k], "requests=" first,
                server ": requests/s by " (k == 1 ? "HTTP" : k == 2 ? "HTTPS, P-256" : "HTTPS, RSA-2048") ", " thousands(last) " / " thousands(first) " connections", "rps", "within", 0.9, 1.1)
        }
    claim_end()
}

# The least number of requests that httperf was asked for.
function smallest_of_httperf(    i) {
    for (i = 1; i <= level_count["requests"]; i++) if (pick("load=httperf requests=" level["requests", i], picked)) return level["requests", i]
    return highest("requests")
}

# Server CPU per connection of a server against nginx, for each kind of key and of session.
function against_nginx(server, rule, a,    i, k, kind, of) {
    for (i = 1; i <= level_count["certificate"]; i++)
        for (k = 1; k <= level_count["sessions"]; k++) {
            kind = level["certificate", i]
            of = level["sessions", k]
            if (kind == "-" || of == "-" || !has_level("server", "nginx")) continue
            part_pairs("claim", "server=" server " load=witness certificate=" kind " sessions=" of, "server=nginx",
                server " / nginx, server CPU per connection, " factor_value("certificate", kind) ", " factor_value("sessions", of), "server_cpu_us", rule, a)
        }
}

function claim_TLS_1() {
    claim_begin("TLS.1")
    against_nginx("epoll", "behind")
    claim_end()
}

function claim_TLS_2() {
    claim_begin("TLS.2")
    against_nginx("thread", "below", 1.25)
    claim_end()
}

function claim_TLS_3(    i, k, server, kind, what) {
    claim_begin("TLS.3")
    for (i = 1; i <= level_count["server"]; i++) {
        server = level["server", i]
        what = server ": server CPU per connection, "
        for (k = 1; k <= level_count["certificate"]; k++) {
            kind = level["certificate", k]
            if (kind != "-")
                part_pairs("claim", "server=" server " load=witness certificate=" kind " sessions=resumed", "sessions=new", what "resumed / new, " factor_value("certificate", kind), "server_cpu_us", "behind")
        }
        part_pairs("claim", "server=" server " load=witness certificate=p256 sessions=new", "certificate=rsa2048", what "P-256 / RSA-2048, new sessions", "server_cpu_us", "behind")
    }
    claim_end()
}

# --- UDP ---

function claim_U1(    i, server) {
    claim_begin("U1")
    for (i = 1; i <= level_count["server"]; i++) {
        server = level["server", i]
        part_pairs("claim", "server=" server " scheme=udp", "scheme=http", server ": server CPU per request, UDP / TCP, mean over all cells", "server_cpu_us", "behind")
        part_pairs("claim", "server=" server " scheme=udp", "scheme=http", server ": requests/s, UDP / TCP, mean over all cells", "rps", "ahead")
    }
    claim_end()
}

# A request is lost that was not answered in time at its first try.
function claim_U2(    i, k, n, lost, server, of) {
    claim_begin("U2")
    for (k = 1; k <= level_count["server"]; k++) {
        server = level["server", k]
        n = lost = 0
        for (i = 1; i <= run_count; i++) {
            if (run[i, "server"] != server || run[i, "scheme"] != "udp" || run[i, "valid"] != "yes") continue
            n++
            if (run[i, "lost"] + 0 > 0) lost++
        }
        if (!n) continue
        share_interval(lost, n, of)
        part_decided("claim", server ": runs by UDP in which a request was lost: none", lost " of " n " (" percent_text(of["low"]) " to " percent_text(of["high"]) ")",
            lost ? "does not hold" : of["high"] < 0.25 ? "holds" : "cannot tell")
    }
    claim_end()
}
