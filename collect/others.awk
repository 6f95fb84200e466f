# others.awk: what a report says of studies of what happens to others (study_kind). Functions only; a part of report.awk.

# Names of servers with something said of each, as a list: "**prefork** (8) and **pool** (8)".
function named(server, more) { return "**" server "**" (more == "" ? "" : " (" more ")") }

function others_cell(s, j,    c) { return at_x(part_first(), level["server", s], j) }

function x_text(j) { return x_name == "" ? "" : factor_value(x_name, level[x_name, j]) }

function others_abstract(    top) {
    top = x_name == "" ? 1 : level_count[x_name]
    if (study_kind() == "fault") abstract_of_fault(top)
    else if (x_name == "idle") abstract_of_idle(top)
    else abstract_of_slow(top)
}

function abstract_of_idle(top,    s, c, k, cannot, same, less, more, open, a, b, d, e, o, text, v, low, high) {
    a = b = d = e = o = 0
    for (s = 1; s <= level_count["server"]; s++) {
        c = others_cell(s, top)
        if (!c) continue
        if (sum[c, "n_cannot"] > 0) {
            cannot[++a] = named(level["server", s], (sum[c, "n"] > 0 ? "in " sum[c, "n_cannot"] " of " sum[c, "n"] + sum[c, "n_cannot"] " runs" : \
                sum[c, "held_of_cannot"] == "-" ? "" : "it holds " thousands(sum[c, "held_of_cannot"])))
            if (!(sum[c, "n"] > 0)) continue
        }
        if (!(k = find_comparison("cell", "rps", level["server", s], c))) continue
        v = named(level["server", s], factor_text(comparison[k, "ratio"]) " times")
        if (comparison[k, "difference"] == "higher") more[++b] = v
        else if (comparison[k, "difference"] == "lower") less[++d] = v
        else if (left_open(k)) open[++o] = v
        else same[++e] = named(level["server", s])
        v = memory_each(c)
        if (v == "-" || v <= 0) continue
        if (!low || v < memory_each(low)) low = c
        if (!high || v > memory_each(high)) high = c
    }
    text = a ? "Not all can hold " x_text(top) ": " join_text(cannot, a) " cannot. " : "All servers can hold " x_text(top) ". "
    if (d) text = text "While they are held, the others get fewer requests per second from " join_text(less, d) ". "
    if (b) text = text (d ? "More" : "While they are held, the others get more requests per second") " from " join_text(more, b) ". "
    if (e) text = text "No difference from none is shown for " join_text(same, e) ". "
    if (o) text = text "Whether they get more or fewer cannot be told for " join_text(open, o) ". "
    if (low && low != high)
        text = text "Each connection takes from " human(memory_each(low)) " KiB of memory (" cell[low, "server"] ") to " human(memory_each(high)) " KiB (" cell[high, "server"] ")."
    paragraph(text)
}

function abstract_of_slow(top,    s, c, none, starves, well, a, b, d, text) {
    a = b = d = 0
    for (s = 1; s <= level_count["server"]; s++) {
        c = others_cell(s, top)
        if (!c || sum[c, "max_ms_middle"] == "-") continue
        if (sum[c, "rps_middle"] + 0 == 0) none[++a] = named(level["server", s])
        else if (sum[c, "max_ms_middle"] > starving_ms()) starves[++b] = named(level["server", s], human(sum[c, "max_ms_middle"] / 1000) " s")
        else well[++d] = named(level["server", s], human(sum[c, "max_ms_middle"]) " ms")
    }
    text = "With " x_text(top) ", "
    if (a) text = text "nobody else is answered by " join_text(none, a) " as long as a run lasts; "
    if (b) text = text "somebody waits for over a second for " join_text(starves, b) "; "
    text = text (d ? "nobody starves with " join_text(well, d) ": in brackets the longest wait, the median of the runs." : "no server answers all others within a second.")
    paragraph(text)
}

function starving_ms() { return 1000 }

function abstract_of_fault(top,    s, c, never, some, none, a, b, d, text) {
    a = b = d = 0
    for (s = 1; s <= level_count["server"]; s++) {
        c = others_cell(s, top)
        if (!c || sum[c, "lost_middle"] == "-") continue
        if (sum[c, "n_never"] > 0) never[++a] = named(level["server", s], sum[c, "n_never"] < sum[c, "n"] ? "in " sum[c, "n_never"] " of " sum[c, "n"] " runs" : "")
        else if (sum[c, "lost_most"] > 0)
            some[++b] = named(level["server", s], counted(sum[c, "lost_middle"]) " lost, " human(sum[c, "again_ms_middle"]) " ms")
        else none[++d] = named(level["server", s], human(sum[c, "again_ms_middle"]) " ms")
    }
    text = "One request that crashes its handler, " (x_name == "" ? "" : "at " x_text(top) ": ")
    if (a) text = text "ends " join_text(never, a) " for good, until somebody starts " (a == 1 ? "it" : "them") " again; "
    if (b) text = text "takes requests of others along with " join_text(some, b) "; "
    text = text (d ? "and costs nobody else a request with " join_text(none, d) "." : "and there is no server with which it never costs anybody else a request.")
    paragraph(text (b || d ? " The times, medians, are those until every client was served again." : ""))
}

# A number that may be a count.
function counted(v) { return v == int(v) && v < 1000 ? v "" : human(v) }

# Median with the range where there is one.
function range_cell(c, column, unit_of,    v) {
    if (!c || sum[c, column "_middle"] == "-") return "–"
    v = counted(sum[c, column "_middle"] / unit_of)
    if (human(sum[c, column "_least"] / unit_of) == human(sum[c, column "_most"] / unit_of)) return v
    return v " (" counted(sum[c, column "_least"] / unit_of) " to " counted(sum[c, column "_most"] / unit_of) ")"
}

function others_results(    i, slices, first, text) {
    slices = slices_of("", first, text)
    for (i = 1; i <= slices; i++) {
        if (text[i] != "") say("### " text[i] "\n")
        if (study_kind() == "fault") table_of_fault(first[i])
        else table_of_held(first[i])
    }
    # The first of the figures stands in the abstract.
    for (i = 2; i <= table_rows["figures"]; i++) figure_line(i)
}

function table_of_held(first,    s, j, c, k) {
    paragraph("Medians of the runs, with their ranges; ratios are taken within blocks, against the same server without such clients.")
    say("| server | " x_title(x_name) " | requests/s | ratio (95% interval) | p99, ms | longest wait, ms | server CPU, µs/request | peak memory, MiB |" \
        (x_name == "idle" ? " KiB each |" : " not answered | cut off |") " runs |")
    say("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |" (x_name == "idle" ? " ---: |" : " ---: | ---: |") " --- |")
    for (s = 1; s <= level_count["server"]; s++)
        for (j = 1; j <= level_count[x_name]; j++) {
            c = at_x(first, level["server", s], j)
            if (!c) continue
            k = find_comparison("cell", "rps", level["server", s], c)
            say("| " level["server", s] " | " thousands(level[x_name, j]) " | " range_cell(c, "rps", 1) (client_bound(c) ? " \\*" : "") " | " \
                (j == 1 ? "1" : ratio_cell(k)) " | " range_cell(c, "p99_ms", 1) " | " range_cell(c, "max_ms", 1) " | " human(sum[c, "server_cpu_us_mean"]) " | " \
                range_cell(c, "peak_kib", 1024) " | " (x_name == "idle" ? (j == 1 || memory_each(c) == "-" ? "–" : human(memory_each(c))) : \
                range_cell(c, "unanswered", 1) " | " range_cell(c, "cut", 1)) " | " runs_text(c) " |")
        }
    say("")
}

function runs_text(c,    text) {
    text = sum[c, "n"] > 0 ? sum[c, "n"] "" : ""
    if (sum[c, "n_cannot"] > 0)
        text = text (text == "" ? "" : ", ") sum[c, "n_cannot"] "\302\240×\302\240cannot\302\240hold" (sum[c, "held_of_cannot"] == "-" ? "" : ":\302\240holds\302\240" thousands(sum[c, "held_of_cannot"]))
    if (sum[c, "n_invalid"] > 0) text = text (text == "" ? "" : ", ") sum[c, "n_invalid"] " invalid"
    return text
}

function table_of_fault(first,    s, j, c, levels) {
    levels = x_name == "" ? 1 : level_count[x_name]
    paragraph("Medians of the runs, with their ranges. Lost are requests of others that had to be made again; the fatal one is not counted.")
    say("| server | " (x_name == "" ? "" : x_name " | ") "requests lost | until all were served again, ms | not served again |")
    say("| --- | " (x_name == "" ? "" : "---: | ") "---: | ---: | ---: |")
    for (s = 1; s <= level_count["server"]; s++)
        for (j = 1; j <= levels; j++) {
            c = at_x(first, level["server", s], j)
            if (!c) continue
            say("| " level["server", s] " | " (x_name == "" ? "" : level[x_name, j] " | ") range_cell(c, "lost", 1) \
                (sum[c, "n_never"] > 0 ? ", and all that follow" : "") " | " range_cell(c, "again_ms", 1) " | " \
                (sum[c, "n_never"] > 0 ? sum[c, "n_never"] " of " sum[c, "n"] " runs" : "–") " |")
        }
    say("")
}

# What is measured otherwise than in the other studies.
function others_method() {
    if (study_kind() == "fault")
        paragraph("The servers are built with a fault that no other build has: their handler aborts when it is asked for `/crash`. After " study["fault"] \
            " replies one client asks for it. All clients ask again a millisecond after they were refused or cut off. The time runs from the fatal request until every client had a reply to a request that it made after that connection was broken; where nobody has one for a second, it is never. Lost requests are results here, and make no run invalid. Each run has a fresh server.")
    else if (x_name == "idle")
        paragraph("The connections are opened, with one request each, before the load begins, and stay open until it has ended. A server that takes no further one for two seconds, or closes some of them meanwhile, cannot hold them: that is a result and no invalid run, and the load is not put on it." \
            (study["idle-timeout"] == "" ? "" : " All servers were told to wait " study["idle-timeout"] " s for the next request.") \
            " Memory for a connection is what the server’s control group grew by while they came, before the load, divided by their number: with page tables and kernel stacks, and with what the kernel keeps of sockets as far as it charges that to the server. Where no control group can be made, it is the difference of peaks.")
    else
        paragraph("The slow clients are there before the load begins, each sends a byte a second, and comes back at once when it is cut off." \
            (study["request-timeout"] == "" ? "" : " All servers were told to give a request " study["request-timeout"] " s, as far as they know such a limit.") \
            " A run ends after its requests or after " (study["duration"] == "" ? 2 : study["duration"]) " s; a request that waits at its end counts with its wait so far. A client starves when it waits for over a second. Requests that are lost or not answered are results here, and make no run invalid.")
}
