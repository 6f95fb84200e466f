# claims.awk: runs.tsv (standard input) -> claims.tsv (standard output): what this machine says of each claim. See claims.sh.
#
# A claim is a list of parts. Each part is an estimate (a ratio, a time) with a 95% interval and a rule that the interval must
# meet; the intervals of one claim are widened so that all of them hold together (Bonferroni). Rules, with bounds a and b:
#   ahead         holds: interval above 1;   does not: below 1.01, so that not even a lead by 1% is left
#   behind        the same the other way round
#   above a       holds: interval above a;   does not: below a
#   below a       holds: interval below a;   does not: above a
#   within a b    holds: interval between a and b;   does not: outside
# Everything else is `cannot tell`. A claim holds when all of its parts do (with mode "any": one of them), and does not hold when
# one does not ("any": all). Parts that test the reading, the supposed cause, are marked so; they have a verdict of their own, and
# decide only claims that have no other parts.

# The cells that meet all conditions, e.g. "concurrency<=5 protocol=simple", into list; returns how many.
function pick(conditions, list,    words, n, i, c, k, ok, name, sign, value) {
    n = split(conditions, words, " ")
    k = 0
    split("", list)
    for (c = 1; c <= cell_count; c++) {
        ok = 1
        for (i = 1; i <= n && ok; i++) {
            match(words[i], /[<>=]+/)
            name = substr(words[i], 1, RSTART - 1)
            sign = substr(words[i], RSTART, RLENGTH)
            value = substr(words[i], RSTART + RLENGTH)
            if (sign == "=") ok = cell[c, name] "" == value ""
            else if (sign == "<=") ok = cell[c, name] + 0 <= value + 0
            else ok = cell[c, name] + 0 >= value + 0
        }
        if (ok) list[++k] = c
    }
    return k
}

# The first server of this name, as it is or with a number; "" if there is none.
function server_named(name,    i) {
    for (i = 1; i <= level_count["server"]; i++)
        if (level["server", i] == name || index(level["server", i], name "~") == 1) return level["server", i]
    return ""
}

function lowest(name) { return level[name, 1] }
function highest(name) { return level[name, level_count[name]] }

# --- parts and claims ---

# Begins a claim. Source and quote are those of claims.txt; one that is not there brings its own.
function claim_begin(id, source, quote, how) {
    claim = id
    claim_source = (id, "source") in wording ? wording[id, "source"] : source
    claim_quote = (id, "quote") in wording ? wording_quote(id) : quote
    claim_mode = how == "" ? "all" : how
    parts = 0
}

# Adds a part whose estimate stands in `test`. Scale: "ratio" (test is a logarithm) or a unit.
function part_add(kind, tested, scale, rule, a, b) {
    parts++
    part_kind[parts] = kind
    part_tested[parts] = tested
    part_scale[parts] = scale
    part_rule[parts] = rule
    part_a[parts] = a
    part_b[parts] = b
    part_estimate[parts] = test["estimate"]
    part_error[parts] = test["error"]
    part_df[parts] = test["df"]
    part_blocks[parts] = test["df"] + 1
    part_verdict[parts] = ""
}

# Adds a part that was decided otherwise.
function part_decided(kind, tested, found, verdict) {
    parts++
    part_kind[parts] = kind
    part_tested[parts] = tested
    part_found[parts] = found
    part_verdict[parts] = verdict
    part_blocks[parts] = "-"
    part_rule[parts] = ""
}

function judge(rule, low, high, a, b) {
    if (rule == "ahead") return low > 1 ? "holds" : high < 1.01 ? "does not hold" : "cannot tell"
    if (rule == "behind") return high < 1 ? "holds" : low > 1 / 1.01 ? "does not hold" : "cannot tell"
    if (rule == "above") return low > a ? "holds" : high < a ? "does not hold" : "cannot tell"
    if (rule == "below") return high < a ? "holds" : low > a ? "does not hold" : "cannot tell"
    return low >= a && high <= b ? "holds" : (high < a || low > b) ? "does not hold" : "cannot tell"
}

function rule_text(rule, a, b, scale,    unit) {
    unit = scale == "ratio" || scale == "" ? "" : " " scale
    if (rule == "ahead") return "ratio above 1"
    if (rule == "behind") return "ratio below 1"
    if (rule == "above" || rule == "below") return (scale == "ratio" ? "ratio " : "") rule " " human(a) unit
    return (scale == "ratio" ? "ratio " : "") "within " human(a) " and " human(b) unit
}

function combine(kind,    i, holds, fails, n) {
    holds = fails = n = 0
    for (i = 1; i <= parts; i++) {
        if (part_kind[i] != kind) continue
        n++
        if (part_verdict[i] == "holds") holds++
        if (part_verdict[i] == "does not hold") fails++
    }
    if (!n) return ""
    if (claim_mode == "any") return holds ? "holds" : fails == n ? "does not hold" : "cannot tell"
    return fails ? "does not hold" : holds == n ? "holds" : "cannot tell"
}

function print_row(part, kind, tested, found, low, high, verdict, number) {
    printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", claim, claim_source, claim_quote, part, kind, tested, found, low, high, verdict, number
}

function claim_end(    i, measured_parts, half, low, high, middle, verdict, kind) {
    measured_parts = 0
    for (i = 1; i <= parts; i++) if (part_verdict[i] == "") measured_parts++
    for (i = 1; i <= parts; i++) {
        part_low[i] = part_high[i] = "-"
        if (part_verdict[i] != "") continue
        half = part_error[i] > 0 ? t_quantile(1 - 0.025 / measured_parts, part_df[i]) * part_error[i] : 0
        low = part_estimate[i] - half
        high = part_estimate[i] + half
        middle = part_estimate[i]
        if (part_scale[i] == "ratio") { low = exp(low); high = exp(high); middle = exp(middle) }
        part_low[i] = sprintf("%.6g", low)
        part_high[i] = sprintf("%.6g", high)
        part_verdict[i] = judge(part_rule[i], low, high, part_a[i], part_b[i])
        if (part_scale[i] == "ratio") part_found[i] = estimate_text(middle, low, high)
        else part_found[i] = human(middle) (part_scale[i] == "" ? "" : " " part_scale[i]) " (" human(low) " to " human(high) ")"
    }
    kind = "claim"
    verdict = combine(kind)
    if (verdict == "") { kind = "reading"; verdict = combine(kind) }
    if (verdict == "") {
        kind = "claim"
        verdict = "cannot tell"
        print_row("all", kind, "nothing", parts_missing == "" ? "this study has no data for it" : parts_missing, "-", "-", verdict, "-")
        parts_missing = ""
        return
    }
    print_row("all", kind, claim_mode == "any" ? "one of the parts is enough" : "all parts are needed", "", "-", "-", verdict, "-")
    if (kind == "claim" && combine("reading") != "")
        print_row("cause", "reading", "the supposed cause", "", "-", "-", combine("reading"), "-")
    for (i = 1; i <= parts; i++)
        print_row(i, part_kind[i], part_tested[i] (part_rule[i] == "" ? "" : ": " rule_text(part_rule[i], part_a[i], part_b[i], part_scale[i])),
            part_found[i], part_low[i], part_high[i], part_verdict[i], part_blocks[i])
}

# Tests server a against server b over the picked cells and adds the part.
function part_servers(kind, a, b, measure, conditions, where, rule, x, y,    n, i, bound) {
    n = pick(conditions, picked)
    if (a == "" || b == "" || !(n = contrast_servers(a, b, picked, n, measure)) || !contrast_test(measure, test)) return
    bound = 0
    for (i = 1; i <= contrast_size; i += 2) if (client_bound(contrast_cell[i]) || client_bound(contrast_cell[i + 1])) bound++
    if (bound && measure == "rps") where = where " (" (n > 1 ? bound " of " n " cells " : "") "limited by the load generator)"
    part_add(kind, a " / " b ", " measure_text(measure) where, "ratio", rule, x, y)
}

function measure_text(measure) {
    return measure == "rps" ? "requests/s" : measure == "server_cpu_us" ? "server CPU per request" : measure == "peak_kib" ? "peak memory" : measure
}

# The change of the logarithm of a measure, fitted over the cells of a server from `low` to `high` of a factor (averaged
# over what else varies), into test: a straight line through the logarithms, over the factor or its logarithm. More conditions may
# follow the server's name.
function trend(server, measure, name, low, high, logarithmic,    n, i, c, x, groups, group, key, members, mean, sxx, used) {
    n = pick("server=" server " " name ">=" low " " name "<=" high, picked)
    contrast_begin()
    groups = 0
    for (i = 1; i <= n; i++) {
        c = picked[i]
        if (!has_data(c, measure)) continue
        key = cell_key[cell_like_any(c, name)]
        if (!(key in members)) group[++groups] = key
        members[key] = members[key] " " c
    }
    for (i = 1; i <= groups; i++) {
        used = split(members[group[i]], list, " ")
        if (used < 2) continue
        mean = sxx = 0
        for (n = 1; n <= used; n++) { x = cell[list[n], name]; if (logarithmic) x = log(x); mean += x / used }
        for (n = 1; n <= used; n++) { x = cell[list[n], name]; if (logarithmic) x = log(x); sxx += (x - mean) ^ 2 }
        for (n = 1; n <= used; n++) {
            x = cell[list[n], name]
            if (logarithmic) x = log(x)
            contrast_add(list[n], (x - mean) / sxx * (logarithmic ? log(high / low) : high - low) / groups)
        }
    }
    return contrast_test(measure, test)
}

# The first cell that differs from c in nothing but this factor: it stands for all of them.
function cell_like_any(c, name,    i, k) {
    for (i = 1; i <= level_count[name]; i++) if ((k = cell_like(c, name, level[name, i]))) return k
    return c
}

# The change of a measure of a server from the first to the last run of a block, beside what the cells explain, into
# slopes[block]: in each block a line through the deviations from the cells' means (of logarithms).
function block_slopes(server, measure, slopes,    c, b, v, mean, count, points, px, py, i, runs_in, line) {
    split("", slopes)
    for (i = 1; i <= run_count; i++) if (run[i, "order"] + 0 > runs_in[run[i, "block"]]) runs_in[run[i, "block"]] = run[i, "order"] + 0
    for (c = 1; c <= cell_count; c++) {
        if (cell[c, "server"] != server) continue
        for (b = 1; b <= blocks; b++) if ((v = measured(c, b, measure)) != "") { mean[c] += log(v); count[c]++ }
    }
    for (b = 1; b <= blocks; b++) {
        points = 0
        for (c = 1; c <= cell_count; c++) {
            if (cell[c, "server"] != server || count[c] < 2 || (v = measured(c, b, measure)) == "") continue
            px[++points] = run[run_at[c, b], "order"] / runs_in[b]
            py[points] = log(v) - mean[c] / count[c]
        }
        if (points < 4) continue
        line_fit(px, py, points, line)
        slopes[b] = line["slope"]
    }
}

# That change of a server against that of another in the same block, so that what happens to the whole machine falls out,
# into test; the blocks are the sample.
function within_block_trend(server, other, measure,    b, n, slopes, of_other, differences) {
    block_slopes(server, measure, slopes)
    block_slopes(other, measure, of_other)
    n = 0
    for (b = 1; b <= blocks; b++) if ((b in slopes) && (b in of_other)) differences[++n] = slopes[b] - of_other[b]
    if (n < 2) return 0
    paired_test(differences, n, test)
    return 1
}

# The signs of a server that is overloaded in the course of a study, and another not: one is enough.
function overload_parts(kind, server, other,    thread_bad, thread_all, fork_bad, fork_all, i, of, verdict, low, high) {
    if (within_block_trend(server, other, "peak_kib"))
        part_add(kind, server ": memory, last run of a block / first, over the same of " other, "ratio", "above", 1.5)
    if (within_block_trend(server, other, "rps"))
        part_add(kind, server ": requests/s, last run of a block / first, over the same of " other, "ratio", "below", 0.95)
    thread_bad = thread_all = fork_bad = fork_all = 0
    for (i = 1; i <= run_count; i++) {
        if (run[i, "server"] == server) { thread_all++; if (run[i, "valid"] != "yes") thread_bad++ }
        if (run[i, "server"] == other) { fork_all++; if (run[i, "valid"] != "yes") fork_bad++ }
    }
    if (!thread_all) return
    share_interval(thread_bad, thread_all, of)
    low = of["low"]
    high = of["high"]
    share_interval(fork_bad, fork_all ? fork_all : 1, of)
    verdict = high < 0.01 ? "does not hold" : low > 0.01 && low > of["high"] ? "holds" : "cannot tell"
    part_decided(kind, server ": runs that failed: over 1%, and more than of " other,
        thread_bad " of " thousands(thread_all) "; " other ": " fork_bad " of " thousands(fork_all), verdict)
}

# What a server with a mistake is to be compared with: the same without its last option.
function without_mistake(label) {
    sub(/\+[^+]*$/, "", label)
    return level_seen["server", label] ? label : baseline
}

# --- the claims ---

function claim_R1_1(    thread, fork, i) {
    claim_begin("R1.1")
    thread = server_named("thread")
    fork = server_named("fork")
    for (i = 1; i <= level_count["file"]; i++)
        part_servers("claim", thread, fork, "rps", "concurrency=10 file=" level["file", i], " at concurrency 10, " level["file", i],
            "within", 1, 1.25)
    claim_end()
}

function claim_R1_2(    i, from) {
    claim_begin("R1.2")
    if (level_count["concurrency"] > 2) {
        for (i = 1; i <= level_count["server"]; i++)
            if (trend(level["server", i], "rps", "concurrency", lowest("concurrency"), 5, 0))
                part_add("claim", level["server", i] ": requests/s at concurrency 5 / " lowest("concurrency") ", fitted line", "ratio", "ahead")
        for (i = level_count["concurrency"]; i >= 1 && level["concurrency", i] >= 5; i--) from = level["concurrency", i]
        for (i = 1; i <= level_count["server"]; i++)
            if (trend(level["server", i], "rps", "concurrency", from, highest("concurrency"), 0))
                part_add("claim", level["server", i] ": requests/s at concurrency " highest("concurrency") " / " from ", fitted line", "ratio", "within", 0.95, 1.05)
    }
    for (i = 1; i <= level_count["file"]; i++)
        part_servers("claim", server_named("thread"), server_named("fork"), "rps", "file=" level["file", i],
            ", mean over concurrency, " level["file", i], "within", 0.95, 1.05)
    claim_end()
}

function claim_R1_3(    top) {
    claim_begin("R1.3")
    top = highest("concurrency") >= 20 ? 20 : highest("concurrency")
    if (level_count["concurrency"] > 2) {
        part_servers("claim", server_named("thread"), server_named("fork"), "rps", "concurrency>=" top, ", concurrency " top " and more", "behind")
        part_servers("claim", server_named("thread"), server_named("fork"), "rps", "concurrency<=5", ", concurrency up to 5", "ahead")
    }
    claim_end()
}

function claim_R1_4(    thread, fork, few, many) {
    claim_begin("R1.4")
    thread = server_named("thread")
    fork = server_named("fork")
    few = lowest("processors")
    many = highest("processors")
    if (many != few)
        part_servers("claim", thread, fork, "rps", "processors=" many " concurrency=" lowest("concurrency"),
            ", " factor_value("processors", many) ", concurrency " lowest("concurrency"), "ahead")
    if (few == 1)
        part_servers("claim", thread, fork, "rps", "processors=1", ", 1 processor", "behind")
    if (many != few && level_count["concurrency"] > 1)
        part_servers("claim", thread, fork, "rps", "processors=" many " concurrency=" highest("concurrency"),
            ", " factor_value("processors", many) ", concurrency " highest("concurrency"), "behind")
    claim_end()
}

function claim_R1_5(    thread, i, label) {
    claim_begin("R1.5", "", "", "any")
    thread = server_named("thread")
    if (thread != "") overload_parts("claim", thread, server_named("fork"))
    for (i = 1; i <= level_count["server"]; i++) {
        label = level["server", i]
        if (label ~ /\+joinable/) overload_parts("reading", label, without_mistake(label))
    }
    claim_end()
}

function claim_R2_1(    i, k, label, other, by, kind, queues) {
    claim_begin("R2.1")
    for (k = 1; k <= level_count["load"]; k++)
        for (i = 1; i <= level_count["server"]; i++) {
            label = level["server", i]
            if (label !~ /\+backlog/) continue
            other = without_mistake(label)
            by = ": requests/s above concurrency 6 / up to 5, load by " level["load", k]
            # The report used ab; with another generator it is the cause that is tested.
            kind = level["load", k] == "ab" ? "claim" : "reading"
            if (collapse(label, level["load", k])) part_add(kind, label by, "ratio", "below", 0.5)
            if (collapse(other, level["load", k])) part_add(kind, other by, "ratio", "above", 0.5)
            queues++
        }
    # Without a server whose queue is short, the claim is put to those that there are, and to each of their services.
    for (k = 1; k <= level_count["service"] && !queues; k++)
        for (i = 1; i <= level_count["server"]; i++)
            if (collapse(level["server", i], "ab", " service=" level["service", k]))
                part_add("claim", level["server", i] (level_count["service"] > 1 ? ", " factor_value("service", level["service", k]) : "") \
                    ": requests/s above concurrency 6 / up to 5", "ratio", "below", 0.5)
    claim_end()
}

# Requests/s of a server above concurrency 6 against up to 5, with one load generator, under these conditions, into test.
function collapse(server, load, conditions,    low, high, few, many, i, n) {
    few = pick("server=" server " load=" load conditions " concurrency<=5", low)
    many = pick("server=" server " load=" load conditions " concurrency>=7", high)
    contrast_begin()
    n = 0
    for (i = 1; i <= many; i++) if (has_data(high[i], "rps")) n++
    for (i = 1; i <= many; i++) if (has_data(high[i], "rps")) contrast_add(high[i], 1 / n)
    if (!n) return 0
    n = 0
    for (i = 1; i <= few; i++) if (has_data(low[i], "rps")) n++
    for (i = 1; i <= few; i++) if (has_data(low[i], "rps")) contrast_add(low[i], -1 / n)
    return n && contrast_test("rps", test)
}

function claim_R2_2(    i, k, kind, server, named) {
    claim_begin("R2.2")
    for (kind = 1; kind <= 2; kind++)
        for (i = 1; i <= level_count["server"]; i++)
            for (k = 1; k <= level_count["service"]; k++) {
                server = level["server", i] " service=" level["service", k]
                named = level["server", i] (level_count["service"] > 1 ? ", " factor_value("service", level["service", k]) : "")
                if (kind == 1 && level_count["requests"] > 2 && trend(server, "rps", "requests", lowest("requests"), highest("requests"), 1))
                    part_add("claim", named ": requests/s with " thousands(highest("requests")) " / " thousands(lowest("requests")) " requests, fitted line",
                        "ratio", "ahead")
                if (kind == 2 && fixed_cost(server))
                    part_add("reading", named ": seconds that 0 requests would take, line through 1 to 10", "s", "within", 1.5, 2.6)
            }
    claim_end()
}

# The seconds of a run of no requests: in each block the intercept of a line through the runs of at most ten, into test. More
# conditions may follow the server's name.
function fixed_cost(server,    n, b, i, v, points, px, py, line, values, k) {
    n = pick("server=" server " requests<=10", picked)
    k = 0
    for (b = 1; b <= blocks; b++) {
        points = 0
        for (i = 1; i <= n; i++)
            if ((v = measured(picked[i], b, "seconds")) != "") { px[++points] = cell[picked[i], "requests"]; py[points] = v }
        if (points < 4) continue
        line_fit(px, py, points, line)
        values[++k] = line["intercept"]
    }
    if (k < 2) return 0
    paired_test(values, k, test)
    return 1
}

# Process control of a server over that of another, each averaged over all cells within a block, into test.
function control_share(server, other,    n, b, v, w, values, k) {
    n = pick("server=" other, picked)
    k = 0
    for (b = 1; b <= blocks; b++) {
        v = control_cost(server, picked, n, b)
        w = control_cost(other, picked, n, b)
        if (v != "" && w > 0) values[++k] = v / w
    }
    if (k < 2) return 0
    paired_test(values, k, test)
    return 1
}

function claim_UNP_1(    names, n, i) {
    claim_begin("UNP.1")
    n = split("prefork pool", names, " ")
    for (i = 1; i <= n; i++)
        if (level_seen["server", names[i]] && level_seen["server", "fork"] && control_share(names[i], "fork"))
            part_add("claim", names[i] " / fork, process control (server CPU per request less that of iterative), mean over all cells", "of fork’s", "below", 0.1)
    claim_end()
}

function claim_UNP_2() {
    claim_begin("UNP.2")
    part_servers("claim", server_named("prefork"), server_named("prefork+accept=pass"), "server_cpu_us", "", ", mean over all cells", "behind")
    part_servers("claim", server_named("pool"), server_named("pool+accept=queue"), "server_cpu_us", "", ", mean over all cells", "behind")
    claim_end()
}

# About 18%: from half as much to half as much again. Where the load generator is the limit nobody can lead by much, and what a request
# costs the server says how many more it could answer.
function claim_E07_1(    event, thread, n, i, bound) {
    claim_begin("E07.1")
    event = server_named("epoll")
    thread = server_named("thread")
    n = pick("", picked)
    contrast_begin()
    if (event != "" && thread != "") n = contrast_servers(event, thread, picked, n, "rps")
    bound = 0
    for (i = 1; i < contrast_size; i += 2) if (client_bound(contrast_cell[i]) || client_bound(contrast_cell[i + 1])) bound++
    if (bound * 2 > n)
        part_servers("claim", thread, event, "server_cpu_us", "", ", mean over all cells (in " bound " of " n " requests/s speaks of the load generator)", "within", 1.09, 1.27)
    else part_servers("claim", event, thread, "rps", "", ", mean over all cells", "within", 1.09, 1.27)
    claim_end()
}

# How far the share of a crew's busiest worker is from an even one (0) towards all requests (1), averaged over all cells
# within a block, into test.
function piling(server,    n, b, i, share, workers, sum, k, values, count) {
    n = pick("server=" server, picked)
    count = 0
    for (b = 1; b <= blocks; b++) {
        sum = k = 0
        for (i = 1; i <= n; i++) {
            share = measured(picked[i], b, "busiest")
            workers = measured(picked[i], b, "workers")
            if (share != "" && workers > 1) { sum += (share - 1 / workers) / (1 - 1 / workers); k++ }
        }
        if (k) values[++count] = sum / k
    }
    if (count < 2) return 0
    paired_test(values, count, test)
    return 1
}

function claim_CF_1(    names, n, i, what) {
    claim_begin("CF.1")
    what = ": the busiest worker’s share of the requests, between an even one (0) and all (1), mean over all cells"
    n = split("prefork pool", names, " ")
    for (i = 1; i <= n; i++)
        if (level_seen["server", names[i]] && piling(names[i])) part_add("claim", names[i] what, "", "below", 0.1)
    if (level_seen["server", "epoll+accept=shared"] && piling("epoll+accept=shared")) part_add("claim", "epoll+accept=shared" what, "", "above", 0.5)
    claim_end()
}

# A server against itself: how many of the plain tests call it different.
function claim_same(    i, c, b, m, a, words, measures, tests, found, of, label, original, n, verdict, p, adjusted, strict) {
    claim_begin("A/A")
    tests = found = strict = 0
    measures = split("rps server_cpu_us", words, " ")
    for (i = 1; i <= level_count["server"]; i++) {
        label = level["server", i]
        original = label
        if (!sub(/~[0-9]+$/, "", original) || !level_seen["server", original]) continue
        for (m = 1; m <= measures; m++)
            for (c = 1; c <= cell_count; c++) {
                if (cell[c, "server"] != label) continue
                picked[1] = c
                if (!contrast_servers(label, original, picked, 1, words[m]) || !contrast_test(words[m], test)) continue
                p[++tests] = test["p"]
                if (test["p"] < 0.05) found++
            }
    }
    if (tests) {
        holm(p, tests, adjusted)
        for (i = 1; i <= tests; i++) if (adjusted[i] < 0.05) strict++
        share_interval(found, tests, of)
        part_decided("claim", "share of " tests " paired tests with p below 0.05: 5% is expected",
            found " of " tests ", " percent_text(found / tests) " (" percent_text(of["low"]) " to " percent_text(of["high"]) ")",
            of["low"] > 0.05 ? "does not hold" : found / tests <= 0.10 ? "holds" : "cannot tell")
        part_decided("claim", "tests that are below 0.05 after Holm’s adjustment", strict " of " tests, strict ? "does not hold" : "holds")
        for (m = 1; m <= measures; m++)
            for (i = 1; i <= level_count["server"]; i++) {
                label = level["server", i]
                original = label
                if (sub(/~[0-9]+$/, "", original) && level_seen["server", original])
                    part_servers("claim", label, original, words[m], "server=" label, ", mean over all cells", "within", 0.99, 1.01)
            }
    }
    claim_end()
}

BEGIN {
    study_load(dir "/study.txt")
    wording_read(here "/claims.txt")
    runs_load("-")
    print "claim\tsource\tquote\tpart\tkind\ttested\tfound\tlow\thigh\tverdict\tblocks"
    wanted_count = split_claims(wanted)
    for (w = 1; w <= wanted_count; w++) {
        id = wanted[w]
        if (id == "R1.1") claim_R1_1()
        else if (id == "R1.2") claim_R1_2()
        else if (id == "R1.3") claim_R1_3()
        else if (id == "R1.4") claim_R1_4()
        else if (id == "R1.5") claim_R1_5()
        else if (id == "R2.1") claim_R2_1()
        else if (id == "R2.2") claim_R2_2()
        else if (id == "UNP.1") claim_UNP_1()
        else if (id == "UNP.2") claim_UNP_2()
        else if (id == "E07.1") claim_E07_1()
        else if (id == "CF.1") claim_CF_1()
        else if (id == "A/A") claim_same()
        else if (!claim_of_others(id) && !claim_of_proxy(id) && !claim_of_protocols(id)) {
            claim_begin(id, "-", "-")
            parts_missing = "no test of this claim is written"
            claim_end()
        }
    }
    exit
}

# The claims of the study file; a study that names a server twice also answers for the A/A test.
function split_claims(list,    text, n, i, twice) {
    text = study["claims"]
    gsub(/,/, " ", text)
    n = split(text, list, " ")
    for (i = 1; i <= n; i++) if (list[i] == "-" || list[i] == "none") { n = 0 }
    twice = 0
    for (i = 1; i <= level_count["server"]; i++) if (level["server", i] ~ /~[0-9]+$/) twice = 1
    for (i = 1; i <= n; i++) if (list[i] == "A/A") twice = 0
    if (twice) list[++n] = "A/A"
    return n
}
