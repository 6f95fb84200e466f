# claims_others.awk: the claims of studies of what happens to others (study_kind). Functions only; a part of claims.awk.

# Judges a claim of those, and returns whether it is one.
function claim_of_others(id) {
    if (id == "R1.6") claim_R1_6()
    else if (id == "I1") claim_I1()
    else if (id == "I2") claim_I2()
    else if (id == "C1") claim_C1()
    else if (id == "C2") claim_C2()
    else if (id == "C3") claim_C3()
    else return 0
    return 1
}

# The longest wait for a server in a block, over all runs with slow clients, in milliseconds, into test.
function longest_wait(server,    b, i, n, v, most, values, count) {
    n = pick("server=" server " slow>=1", picked)
    count = 0
    for (b = 1; b <= blocks; b++) {
        most = 0
        for (i = 1; i <= n; i++) if ((v = measured(picked[i], b, "max_ms")) != "" && v > most) most = v
        if (most) values[++count] = most
    }
    if (count < 2) return 0
    paired_test(values, count, test)
    return 1
}

# Of the servers of that report; who starves with the others is told by the study itself.
function claim_R1_6(    names, i, n) {
    claim_begin("R1.6")
    n = split("fork thread", names, " ")
    for (i = 1; i <= n && level_count["slow"] > 1; i++)
        if (longest_wait(names[i])) part_add("claim", names[i] ": longest wait of another client", "ms", "below", 1000)
    claim_end()
}

# Requests/s (or another measure) of a server at the highest level against the lowest, into test.
function held_against_none(server, measure,    n, top, base) {
    n = pick("server=" server " idle=" highest("idle"), picked)
    if (!n || !has_data(picked[1], measure)) return 0
    top = picked[1]
    base = cell_like(top, "idle", lowest("idle"))
    if (!base || !has_data(base, measure)) return 0
    contrast_begin()
    contrast_add(top, 1)
    contrast_add(base, -1)
    return contrast_test(measure, test)
}

function claim_I1(    i, server) {
    claim_begin("I1")
    for (i = 1; i <= level_count["server"] && level_count["idle"] > 1; i++) {
        server = level["server", i]
        if (held_against_none(server, "rps"))
            part_add("claim", server ": requests/s with " factor_value("idle", highest("idle")) " / with none", "ratio", "above", 0.95)
    }
    claim_end()
}

# The memory of each connection that a server holds, in KiB, in block b; "" if unknown.
function block_memory_each(server, b) {
    return pick("server=" server " idle=" highest("idle"), picked) ? measured(picked[1], b, "each_kib") : ""
}

# Adds whether a connection of server a takes more memory than one of b.
function part_memory(a, b,    block, v, w, values, count) {
    count = 0
    for (block = 1; block <= blocks; block++) {
        v = block_memory_each(a, block)
        w = block_memory_each(b, block)
        if (v != "" && w != "") values[++count] = v - w
    }
    if (count < 2) return
    paired_test(values, count, test)
    part_add("claim", a " - " b ", memory for each connection", "KiB", "above", 0)
}

function claim_I2() {
    claim_begin("I2")
    if (level_count["idle"] > 1) {
        part_memory("thread", "epoll")
        part_memory("fork", "thread")
    }
    claim_end()
}

# The share of a server's runs in which something happened. What: "lost" (others lost a request) or "never" (not served again).
function part_share(server, what, tested, wanted,    i, n, k, of) {
    n = k = 0
    for (i = 1; i <= run_count; i++) {
        if (run[i, "server"] != server || run[i, "valid"] != "yes" || run[i, "concurrency"] + 0 < (what == "lost" ? 2 : 1)) continue
        n++
        if (what == "lost" ? run[i, "lost"] + 0 > 0 : run[i, "again_ms"] == "never") k++
    }
    if (!n) return
    share_interval(k, n, of)
    part_decided("claim", server ": " tested, k " of " n " (" percent_text(of["low"]) " to " percent_text(of["high"]) ")",
        wanted == "none" ? (k ? "does not hold" : of["high"] < 0.25 ? "holds" : "cannot tell") \
        : (k == n && of["low"] > 0.25 ? "holds" : k < n ? "does not hold" : "cannot tell"))
}

function claim_C1(    i, server) {
    claim_begin("C1")
    for (i = 1; i <= level_count["server"]; i++) {
        server = level["server", i]
        if (server ~ /^(fork|prefork)/) part_share(server, "lost", "runs in which another client lost a request, concurrency above 1: none", "none")
    }
    claim_end()
}

function claim_C2(    i, server) {
    claim_begin("C2")
    for (i = 1; i <= level_count["server"]; i++) {
        server = level["server", i]
        if (server ~ /^(thread|pool|iterative)/) part_share(server, "never", "runs in which nobody was served again: all", "all")
    }
    claim_end()
}

# Most of what is under way in an event loop that dies is lost: the requests lost with one loop, over those of the others that were
# under way.
function claim_C3(    i, server, n, c, b, v, values, count, at) {
    claim_begin("C3")
    for (i = 1; i <= level_count["server"]; i++) {
        server = level["server", i]
        if (server !~ /^epoll/) continue
        at = highest("concurrency")
        n = pick("server=" server " concurrency=" at, picked)
        count = 0
        for (c = 1; c <= n; c++)
            for (b = 1; b <= blocks; b++)
                if ((picked[c], b) in run_at && (v = run[run_at[picked[c], b], "lost"]) ~ /^[0-9]+$/) values[++count] = v
        if (count < 2) continue
        paired_test(values, count, test)
        part_add("claim", server ": requests lost with one crash, concurrency " at, "requests", "above", 1)
    }
    claim_end()
}
