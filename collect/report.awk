# report.awk: the tables of a study -> report.md (standard output). See report.sh.
#
# Every sentence is chosen by the data: none says what the study "should" find.

function say(text) { print text }
function paragraph(text) { print text "\n" }

# The row of a comparison for this slice: the factors of cell c, with `*` by scope as compare.awk has them; 0 if there is none.
function find_comparison(scope, measure, server, c,    f, key) {
    key = ""
    for (f = 2; f <= factor_count; f++)
        key = key "\t" (scope == "cell" || level_count[factor[f]] == 1 || (scope == "x" && factor[f] != x_name) ? cell[c, factor[f]] : "*")
    return (scope, measure, server, key) in comparison_at ? comparison_at[scope, measure, server, key] : 0
}

function ratio_cell(k) {
    if (!k) return "–"
    return estimate_text(comparison[k, "ratio"], comparison[k, "low"], comparison[k, "high"])
}

# What a server did beside the baseline, in a sentence's part: "**thread** answered 2.31 times as many requests per second as fork
# (26,483 against 11,481 on average; ratio ...)", "8.3% more ... than fork", or that no difference is shown.
function compared_text(server, k, verb, what, more, less, many, column,    r, numbers) {
    r = comparison[k, "ratio"]
    numbers = "(" average_text(server, column) " against " average_text(baseline, column) averages_named() "; ratio " \
        sprintf("%." estimate_places(r, comparison[k, "low"], comparison[k, "high"]) "f", r) ", 95% interval " \
        interval_text(comparison[k, "low"], comparison[k, "high"], r) few_text(k) ")"
    if (left_open(k)) return "it cannot be told whether there is a difference in " what " between **" server "** and " baseline " " adjusted_text(k) numbers
    if (comparison[k, "difference"] == "not shown")
        return "no difference in " what " between **" server "** and " baseline " is shown " adjusted_text(k) numbers
    if (r >= 2 || r <= 0.5)
        return "**" server "** " verb " " factor_text(r) " times as " many " " what " as " baseline " " numbers
    return "**" server "** " verb " " percent_text(r - 1) " " (r > 1 ? more : less) " " what " than " baseline " " numbers
}

# Whether a difference is not shown, but by as much as a tenth may be there: the interval of all comparisons together leaves room for it.
function left_open(k) {
    return comparison[k, "difference"] == "not shown" && (comparison[k, "all_low"] < 1 / 1.1 || comparison[k, "all_high"] > 1.1)
}

function adjusted_text(k) { return comparison[k, "low"] > 1 || comparison[k, "high"] < 1 ? "once the number of comparisons is allowed for " : "" }

# Where few blocks are all there is, that is said beside what they say.
function few_text(k) { return few_said(comparison[k, "blocks"]) }

# The geometric mean over the cells of the part, so that it goes with the ratios.
function average_text(server, column,    c, n, total) {
    n = total = 0
    for (c = 1; c <= cell_count; c++)
        if (part_of[c] == part && cell[c, "server"] == server && sum[c, column] > 0) { n++; total += log(sum[c, column]) }
    return n ? human(exp(total / n)) (column == "server_cpu_us_mean" ? " µs" : "") : "–"
}

function averages_named() { return averaged_text() == "" ? "" : ", geometric means" }

# "over 60 combinations of file and concurrency"
function averaged_text(    f, n, names, count, i) {
    n = 0
    count = 0
    for (i = 1; i <= cell_count; i++) if (part_of[i] == part && cell[i, "server"] == baseline) count++
    for (f = 2; f <= factor_count; f++) if (level_count[factor[f]] > 1) names[++n] = factor[f] == "calls" ? "calls per connection" : factor[f]
    if (!n) return ""
    if (count == 1) return ""
    if (n == 1 && count == 2) return "over both values of " names[1]
    return "over all " thousands(count) " " (n == 1 ? "values" : "combinations") " of " join_text(names, n)
}

# A cell of the part.
function part_first(    c) {
    for (c = 1; c <= cell_count; c++) if (part_of[c] == part) return c
}

# The answer: of each part, if there are more than one.
function abstract(    p, text) {
    if (study["question"] != "") paragraph("> " study["question"])
    if (part_count > 1) claims_short()
    part_enter(1)
    if (study_kind() != "") others_abstract()
    for (p = study_kind() == "" ? 1 : part_count + 1; p <= part_count; p++) {
        part_enter(p)
        groups_find()
        if (part_count > 1) paragraph("**Part " p "** (" part_text[p] "):")
        abstract_part()
        if ((text = schemes_text()) != "") paragraph(text)
    }
    if ((text = lost_text()) != "") paragraph(text)
    text = bound_text()
    if (text != "") paragraph(text)
}

# What another scheme costs each server: its CPU time per request over that by the first scheme, in the same cells; a sentence for each
# kind of it. And what was lost by UDP.
function schemes_text(    c, base, server, s, k, key, kinds, kind, n, total, first, list, text, m) {
    if (level_count["scheme"] < 2 || !has_level("scheme", "http")) return ""
    for (c = 1; c <= cell_count; c++) {
        if (part_of[c] != part || cell[c, "scheme"] == "http" || !(base = cell_by_http(c))) continue
        if (!(sum[c, "server_cpu_us_mean"] > 0) || !(sum[base, "server_cpu_us_mean"] > 0)) continue
        key = with_comma(with_comma(factor_value("scheme", cell[c, "scheme"]), factor_value("certificate", cell[c, "certificate"])), factor_value("sessions", cell[c, "sessions"]))
        if (!(key in first)) { first[key] = 1; kind[++kinds] = key }
        n[key, cell[c, "server"]]++
        total[key, cell[c, "server"]] += log(sum[c, "server_cpu_us_mean"] / sum[base, "server_cpu_us_mean"])
    }
    for (k = 1; k <= kinds; k++) {
        m = 0
        for (s = 1; s <= level_count["server"]; s++) {
            server = level["server", s]
            if (n[kind[k], server]) list[++m] = "**" server "** " factor_text(exp(total[kind[k], server] / n[kind[k], server]))
        }
        text = text (k == 1 ? "Server CPU time per request, as a multiple of that by " factor_value("scheme", "http") ", geometric mean over the same cells: " : "; ") kind[k] ": " join_text(list, m)
    }
    return text == "" ? "" : text "."
}

# The cell like this one by plain HTTP; 0 if there is none.
function cell_by_http(c,    f, key) {
    key = ""
    for (f = 1; f <= factor_count; f++)
        key = key (f > 1 ? "\t" : "") (factor[f] == "scheme" ? "http" : factor[f] ~ /^(certificate|sessions)$/ ? "-" : cell[c, factor[f]])
    return key in cell_at ? cell_at[key] : 0
}

# How many requests by UDP were lost at first.
function lost_text(    c, lost, all) {
    lost = all = 0
    for (c = 1; c <= cell_count; c++) {
        if (cell[c, "scheme"] != "udp" || sum[c, "lost"] == "" || sum[c, "lost"] == "-") continue
        lost += sum[c, "lost"] * sum[c, "n"]
        all += cell[c, "requests"] * sum[c, "n"]
    }
    if (!all) return ""
    return "Of " thousands(all) " requests by UDP " (lost >= 0.5 ? thousands(lost) " (" percent_text(lost / all) ") were" : "none was") " not answered in time at the first try" \
        (lost >= 0.5 ? "; they were asked again, and their times count from the first try on." : ".")
}

function abstract_part(    s, k, server, list, n, best, worst, text, others) {
    if (study["figure"] == "idle" && (text = idle_text()) != "") paragraph(text)
    others = level_count["server"] - 1
    if (others < 1) {
        text = one_server_text()
        paragraph(text)
        return
    }
    if (group_count) {
        abstract_many()
        return
    }
    if (others == 1) {
        n = 0
        for (s = 1; s <= level_count["server"]; s++) {
            server = level["server", s]
            if (server != baseline && (k = find_comparison("all", "rps", server, part_first()))) list[++n] = compared_text(server, k, "answered", "requests per second", "more", "fewer", "many", "rps_mean")
        }
        text = n ? averaged_text() : ""
        if (n) text = opened((text == "" ? "" : "averaged " text ", ") join_sentences(list, n)) "."
        n = 0
        for (s = 1; s <= level_count["server"]; s++) {
            server = level["server", s]
            if (server != baseline && (k = find_comparison("all", "server_cpu_us", server, part_first()))) list[++n] = compared_text(server, k, "took", "server CPU time per request", "more", "less", "much", "server_cpu_us_mean")
        }
        if (n) text = text " As for cost, " join_sentences(list, n) "."
    } else text = ranking("rps", "requests per second", "most", "fewest") " " ranking("server_cpu_us", "server CPU time per request", "most", "least")
    if (text ~ /^ *$/) text = "There are too few valid runs for a comparison."
    paragraph(text)
    if (others == 1 && part_count == 1) ranges()
}

# What an idle connection takes in each server, where it holds the most of them; the least first.
function idle_text(    s, c, i, j, n, most, order, v, text) {
    for (s = 1; s <= level_count["server"]; s++) {
        most[s] = 0
        for (c = 1; c <= cell_count; c++)
            if (part_of[c] == part && cell[c, "server"] == level["server", s] && sum[c, "idle_kib"] > 0 && (!most[s] || cell[c, "idle"] + 0 > cell[most[s], "idle"] + 0)) most[s] = c
        if (!most[s]) continue
        order[++n] = most[s]
        v = most[s]
        for (j = n; j > 1 && sum[order[j - 1], "idle_kib"] + 0 > sum[v, "idle_kib"] + 0; j--) order[j] = order[j - 1]
        order[j] = v
    }
    for (i = 1; i <= n; i++) text = text (i > 1 ? ", " : "") "**" cell[order[i], "server"] "** " human(sum[order[i], "idle_kib"]) " KiB (" thousands(cell[order[i], "idle"]) " held)"
    return n ? "An idle connection takes this much memory, where the most of them were held: " text "." : ""
}

# With very many servers: who is first and who last among ours, and where the best of the others is.
function abstract_many(    c, text, over, first, names) {
    averages_load(dir "/averages.tsv", part)
    over = averaged_text()
    # The averages are those of one slice, and not of all.
    if (slices_of("", first, names) > 1) over = "over " (x_name == "calls" ? "calls per connection" : x_name) " with " names[1]
    c = part_first()
    text = extremes("server_cpu_us", average_key(c), 1, "took the least server CPU time per request", "took the least of the other servers")
    if (text != "") text = opened((over == "" ? "" : "averaged " over ", ") text) "."
    c = extremes("rps", average_key(c), -1, "answered the most requests per second", "answered the most of the other servers")
    if (c != "") text = text (text == "" ? "" : " ") opened(c) "."
    paragraph(text == "" ? "There are too few valid runs for a comparison." : text)
}

# The first, by sign * mean, and the last of our servers, and the first of the peers.
function extremes(measure, key, sign, most, peers_most,    s, server, v, best, worst, peer, text) {
    best = worst = peer = ""
    for (s = 1; s <= level_count["server"]; s++) {
        server = level["server", s]
        if (is_floor(server) || !((measure, server, key, "mean") in average)) continue
        v = sign * average[measure, server, key, "mean"]
        if (is_peer(server)) {
            if (peer == "" || v < sign * average[measure, peer, key, "mean"]) peer = server
            continue
        }
        if (best == "" || v < sign * average[measure, best, key, "mean"]) best = server
        if (worst == "" || v >= sign * average[measure, worst, key, "mean"]) worst = server
    }
    if (best == "" || best == worst) return ""
    text = "**" best "** " most " of our servers (" average_of(measure, best, key) "; 95% interval " \
        human(average[measure, best, key, "low"]) " to " human(average[measure, best, key, "high"]) few_said(average[measure, best, key, "blocks"]) ") and **" worst "** the " \
        (sign > 0 ? "most" : "fewest") " (" average_of(measure, worst, key) ")"
    return text (peer == "" ? "" : "; **" peer "** " peers_most " (" average_of(measure, peer, key) ")")
}

function average_of(measure, server, key) {
    return human(average[measure, server, key, "mean"]) (measure == "server_cpu_us" ? " µs" : "")
}

# With a capital letter, unless it opens with a name.
function opened(text) { return text ~ /^\*/ ? text : toupper(substr(text, 1, 1)) substr(text, 2) }

# Which cell that is, by the factors that vary: " (concurrency 10, keep-alive off)".
function cell_where(c,    f, n, list) {
    n = 0
    for (f = 2; f <= factor_count; f++) if (level_count[factor[f]] > 1) list[++n] = factor_value(factor[f], cell[c, factor[f]], cell[c, "load"])
    return n ? " (" join_list(list, n) ")" : ""
}

function join_list(list, n,    i, text) {
    text = ""
    for (i = 1; i <= n; i++) text = text (i > 1 ? ", " : "") list[i]
    return text
}

function one_server_text(    c, low, high, least, most) {
    low = high = ""
    for (c = 1; c <= cell_count; c++) {
        if (part_of[c] != part || sum[c, "rps_mean"] == "-") continue
        if (low == "" || sum[c, "rps_mean"] + 0 < low) { low = sum[c, "rps_mean"] + 0; least = c }
        if (high == "" || sum[c, "rps_mean"] + 0 > high) { high = sum[c, "rps_mean"] + 0; most = c }
    }
    if (low == "") return "No run was valid."
    return "**" level["server", 1] "** answered " human(low) (human(low) == human(high) ? "" : cell_where(least) " to " human(high) cell_where(most)) " requests per second" \
        (averaged_text() == "" ? "" : ", on average in a cell") "."
}

# With many servers: the order of all of them.
function ranking(measure, what, most, least,    s, k, server, n, order, ratio, at, i, j, text, v, few) {
    n = 1
    order[1] = baseline
    ratio[baseline] = 1
    for (s = 1; s <= level_count["server"]; s++) {
        server = level["server", s]
        if (server == baseline || !(k = find_comparison("all", measure, server, part_first()))) continue
        ratio[server] = comparison[k, "ratio"]
        at[server] = k
        order[++n] = server
    }
    if (n < 2) return ""
    for (i = 2; i <= n; i++) {
        v = order[i]
        for (j = i; j > 1 && ratio[order[j - 1]] < ratio[v]; j--) order[j] = order[j - 1]
        order[j] = v
    }
    text = toupper(substr(what, 1, 1)) substr(what, 2) ", relative to " baseline
    if (averaged_text() != "") text = text " and averaged " averaged_text()
    for (i = 1; i <= n; i++) if (order[i] != baseline && few == "") few = few_text(at[order[i]])
    text = text few ", from the " most " to the " least ": "
    for (i = 1; i <= n; i++)
        text = text (i == 1 ? "" : ", ") "**" order[i] "** " (order[i] == baseline ? "1" : ratio_cell(at[order[i]]) ranked_text(at[order[i]]))
    return text "."
}

# What is to be said of a server's place: that it was asked for less than the baseline, so that its average is of fewer cells, or that
# nothing is shown.
function ranked_text(k,    c, asked) {
    asked = 0
    for (c = 1; c <= cell_count; c++) if (part_of[c] == part && cell[c, "server"] == baseline) asked++
    return (comparison[k, "cells"] < asked ? " in " plural(comparison[k, "cells"], "cell", "cells") " alone" : "") \
        (left_open(k) ? ", cannot tell" : comparison[k, "difference"] == "not shown" ? ", no difference shown" : "")
}

# In how many cells a server differs from the baseline, and from where to where its ratio goes; "" for a single cell.
function range_text(server,    i, n, higher, lower, open, low, high, words, list, text) {
    n = higher = lower = open = low = high = 0
    for (i = 1; i <= comparison_count; i++) {
        if (comparison[i, "scope"] != "cell" || comparison[i, "measure"] != "rps" || comparison[i, "server"] != server || !in_part(i)) continue
        n++
        if (comparison[i, "difference"] == "higher") higher++
        if (comparison[i, "difference"] == "lower") lower++
        if (left_open(i)) open++
        if (!low || comparison[i, "ratio"] + 0 < comparison[low, "ratio"] + 0) low = i
        if (!high || comparison[i, "ratio"] + 0 > comparison[high, "ratio"] + 0) high = i
    }
    if (n < 2) return ""
    words = 0
    if (higher) list[++words] = "answers more requests per second than " baseline " in " share_text(higher, n)
    if (lower) list[++words] = (higher ? "fewer" : "answers fewer requests per second than " baseline) " in " share_text(lower, n)
    if (n > higher + lower + open) {
        text = (words ? "no difference is shown" : "shows no difference from " baseline " in requests per second") " in " share_text(n - higher - lower - open, n)
        list[++words] = text
    }
    if (open && words) list[++words] = "it cannot be told in " share_text(open, n)
    return (words ? "**" server "** " join_text(list, words) : "whether **" server "** answers more requests per second than " baseline " or fewer cannot be told in any of " n " cells") "; its ratio runs from " \
        factor_text(comparison[low, "ratio"]) where_text(low) " to " factor_text(comparison[high, "ratio"]) where_text(high) "."
}

# Whether a comparison belongs to the part: its cell does.
function in_part(i,    f, key) {
    key = comparison[i, "server"]
    for (f = 2; f <= factor_count; f++) key = key "\t" comparison[i, factor[f]]
    return part_of[cell_at[key]] == part
}

function share_text(k, n) { return k < n ? k " of " n " cells" : n == 2 ? "both cells" : "all " n " cells" }

function ranges(    s, text) {
    for (s = 1; s <= level_count["server"]; s++) {
        if (level["server", s] == baseline || (text = range_text(level["server", s])) == "") continue
        if (level_count["server"] == 2) paragraph("Cell by cell, after adjustment for all comparisons, " text)
        else say((ranges_said++ ? "" : "Cell by cell, after adjustment for all comparisons:\n\n") "- " text)
    }
    if (ranges_said) say("")
}

function where_text(i,    f, text) {
    text = ""
    for (f = 2; f <= factor_count; f++)
        if (level_count[factor[f]] > 1) text = with_comma(text, factor_value(factor[f], comparison[i, factor[f]], comparison[i, "load"]))
    return text == "" ? "" : " (" text ")"
}

function threat(name, column,    i) {
    for (i = 1; i <= table_rows["threats"]; i++) if (table["threats", i, "name"] == name) return table["threats", i, column]
    return ""
}

function bound_text(    bound, of) {
    bound = threat("client_bound", "value") + 0
    of = threat("client_bound", "of") + 0
    if (!bound) return ""
    return "In " bound " of " of " cells (" percent_text(bound / of) ") the load generator used over 90% of a processor: there requests per second speaks of the client, and server CPU per request is the better judge."
}

# --- sections ---

function figure_for(kind, file,    i) {
    for (i = 1; i <= table_rows["figures"]; i++)
        if (figure_kind[i] == kind && figure_file[i] == file && figure_part[i] == part && i != main_figure) figure_line(i)
}

# The first figure of a kind; 0 if there is none.
function main_figure_of(kind,    i) {
    for (i = 1; i <= table_rows["figures"]; i++) if (figure_kind[i] == kind) return i
    return 0
}

function figure_line(i) { paragraph("![" figure_alt[i] "](figures/" figure_name[i] ".svg)") }

function figures_load(path,    line, fields, n) {
    n = 0
    while ((getline line < path) > 0) {
        split(line, fields, "\t")
        n++
        figure_name[n] = fields[1]
        figure_kind[n] = fields[2]
        figure_file[n] = fields[3]
        figure_alt[n] = fields[4]
        figure_part[n] = fields[5]
    }
    close(path)
    table_rows["figures"] = n
}

# What a reader asks first stands open; mitigations, sysctls and versions are folded away.
function machine_section(    i, aside) {
    say("## Machine\n")
    if (machine_rows < machine_first) { paragraph("No record of the machine was kept."); return }
    say("| | |\n| --- | --- |")
    for (i = machine_first; i <= machine_rows; i++) {
        if (machine_key[i] ~ /^(mitigation|sysctl|version)/) aside++
        else machine_row(i)
    }
    say("")
    if (!aside) return
    say("<details><summary>Mitigations, kernel settings and versions</summary>\n\n| | |\n| --- | --- |")
    for (i = machine_first; i <= machine_rows; i++) if (machine_key[i] ~ /^(mitigation|sysctl|version)/) machine_row(i)
    say("\n</details>\n")
}

function machine_row(i,    name) {
    name = machine_key[i]
    gsub(/_/, " ", name)
    say("| " cell_text(name) " | " cell_text(machine[machine_key[i]]) " |")
}

function levels_text(name,    i, n, text, run_from, v) {
    n = level_count[name]
    text = ""
    for (i = 1; i <= n; i++) {
        run_from = i
        if (level[name, i] ~ /^[0-9]+$/)
            while (i < n && level[name, i + 1] ~ /^[0-9]+$/ && level[name, i + 1] == level[name, i] + 1) i++
        v = i - run_from >= 2 ? level[name, run_from] " to " level[name, i] : ""
        if (v == "") { i = run_from; v = level[name, i] }
        text = text (text == "" ? "" : ", ") v
    }
    return text
}

# Whether a cell has these values: "requests=100000 server=fork|thread".
function cell_meets(c, conditions,    words, n, i, at) {
    n = split(conditions, words, " ")
    for (i = 1; i <= n; i++) {
        at = index(words[i], "=")
        if (index("|" substr(words[i], at + 1) "|", "|" cell[c, substr(words[i], 1, at - 1)] "|") == 0) return 0
    }
    return 1
}

# Which cells are in the first blocks alone: " 100,000 connections 3 times"; "" if none is.
function limits_text(most,    i, k, c, n, words, at, conditions, first, list, values, parts) {
    n = 0
    for (i = 1; i <= limit_count; i++) {
        at = index(limit_line[i], "=>")
        conditions = substr(limit_line[i], 1, at - 1)
        first = 0
        for (c = cell_count; c >= 1; c--) if (cell_meets(c, conditions)) first = c
        if (!first || substr(limit_line[i], at + 2) + 0 >= most) continue
        parts = split(conditions, words, " ")
        for (k = 1; k <= parts; k++) {
            at = index(words[k], "=")
            values[k] = words[k] ~ /\|/ ? words[k] : factor_value(substr(words[k], 1, at - 1), substr(words[k], at + 1), cell[first, "load"])
        }
        list[++n] = "those with " join_text(values, parts) " " plural(substr(limit_line[i], index(limit_line[i], "=>") + 2) + 0, "time", "times")
    }
    return join_text(list, n)
}

function method_section(    f, runs, n, i, most, tests, limits) {
    say("## Method\n")
    most = most_runs()
    runs = threat("planned", "value") + 0
    say("| factor | values |\n| --- | --- |")
    part_leave()
    for (f = 1; f <= factor_count; f++)
        if ((factor[f] !~ /^(idle|slow)$/ || level_count[factor[f]] > 1 || level[factor[f], 1] != 0) && (factor[f] !~ /^(certificate|sessions)$/ || has_level("scheme", "https"))) say("| " factor[f] " | " cell_text(levels_text(factor[f])) " |")
    say("")
    for (f = n = 1; f <= factor_count; f++) n *= level_count[factor[f]]
    limits = limits_text(most)
    paragraph((cell_count < n ? "Those combinations of these factors that the study asks for make " : "All combinations of these factors make ") plural(cell_count, "cell", "cells") "; each was run " plural(most, "time", "times") (limits == "" ? "" : ", but " limits) ", " thousands(runs) \
        " runs in all. The runs are ordered in blocks: a block holds every cell once" (limits == "" ? "" : ", those that take long in the first blocks alone") ", in an order shuffled from the recorded seed, and the servers are started anew for each block, so that " \
        plural(most, "start is", "starts are") " sampled. Client and server share this machine, over " (machine["link"] == "" ? "its loopback interface." : "a link between two network namespaces: " machine["link"] ".") ports_said())
    if (is_proxied()) paragraph("The origin behind the proxy is a server of its own on this machine, `thread_server --service sized`; what it costs is not counted. A run counts only if it was what it is called: before and after it the proxy said so itself (Cache-Status), and meanwhile the origin was asked for none of the requests of a hit, and for each of a revalidation or a miss.")
    paragraph("A run counts when its load generator succeeded, all requests completed, none failed or was answered with another status than 2xx, and the document had the right length. Runs that do not count keep their row with the reason, and are left out of every mean.")
    if (has_level("scheme", "udp"))
        paragraph("By UDP a request is a datagram, and so is its reply. One that is not answered within 200 ms is lost, and is asked again from another port; its time counts from the first try on. What is lost is a result, and no reason not to count a run; a wrong reply is one. By TCP the same client opens a connection for each request.")
    if (has_level("scheme", "https"))
        paragraph("Keys and certificates were made for this study. All clients and servers may speak TLS 1.2 and 1.3, and so speak 1.3; no client checks the certificate. New sessions are whole handshakes; of resumed ones a run counts only if all but each client's first came back with a ticket." (has_level("load", "httperf") ? " httperf makes a new session for each connection; it can resume them only between the calls of what it calls a session, before each of which it waits for its clock, so it was not asked to." : ""))
    part_enter(1)
    if (study_kind() != "") others_method()
    if (study["fresh"] != "" && study["figure"] == "idle")
        paragraph("The memory of an idle connection is what the proportional set size of the server’s processes grew by while the connections came, divided by their number; a server is started for each run. " \
            (machine["memory_method"] == "" ? "Pages of files are counted by their share, which changes when somebody else runs the same program." : "Pages of files are not counted, since the share of each process in them changes when somebody else runs the same program; nor is what the kernel keeps."))
    tests = 0
    for (i = 1; i <= comparison_count; i++) if (comparison[i, "scope"] == "cell") tests++
    if (tests)
        paragraph("Servers are compared with " (study_kind() != "" ? "themselves without such clients" : part_count > 1 ? "the baseline of their part" : baseline) " within blocks: the logarithm of the ratio is taken in every block, and the blocks are the sample of a paired t-test; averages over cells are taken in every block before testing. Ratios are geometric means with 95% t-intervals. Differences are called so when the p-value, adjusted by Holm's method for the " \
            thousands(tests) " comparisons of cells (" (study_kind() != "" ? "requests per second, server CPU time, 99th percentile and peak memory" : "requests per second and server CPU time per request") " together), is below 0.05. Where it is not, and the interval, widened so that those of all comparisons hold together, leaves room for a tenth more or less, it cannot be told whether there is one. " \
            (study_kind() != "" ? "" : "Error bars in the figures are standard deviations of the sample, those of ratios are 95% intervals."))
    paragraph("Server CPU time counts the whole process tree with reaped children, user and system time. Context switches of a server whose processes or threads come and go are counted in a run of their own of 60 requests, because counting them costs time. Peak memory is what the kernel charges to the server in a run, with page tables and kernel stacks, where control groups can be made, and else its proportional set size" (machine["cost_method"] ~ /without pages of files/ ? " without pages of files" : "") ". Times of a request are percentiles of each run, averaged over the runs. Where the load generator used more than 90% of a processor on average, the cell is marked: points are drawn hollow, numbers have an asterisk.")
}

# Which ports the clients could take, of which those have to wait that were used a moment ago.
function ports_said(    ports) {
    ports = machine["client_ports"]
    if (ports == "") { ports = machine["sysctl.net.ipv4.ip_local_port_range"]; sub(/ /, " to ", ports) }
    if (ports == "") return ""
    return " Clients took the ports " ports (study["client-ports"] == "" ? "" : study["client-ports"] == (ports_range(ports)) ? ", more than this machine gives to everybody, in a network namespace of the study" : \
        ", those of the machine, though the study asks for " study["client-ports"]) "."
}

function ports_range(text) { sub(/ to /, "-", text); return text }

# Whether a proxy was asked.
function is_proxied(    i) {
    part_leave()
    for (i = 1; i <= level_count["service"]; i++) if (level["service", i] ~ /^proxy-/) return 1
    return 0
}

function overall_table(    first, text, slices, i, s, server, c, k, n, total, cpu, cpus, peak, peaks, x, scope, key, lacking, asked) {
    scope = x_name == "" ? "cell" : "x"
    if (group_count) averages_load(dir "/averages.tsv", part)
    slices = slices_of("", first, text)
    if (x_name != "") paragraph("Geometric means over " (x_name == "calls" ? "calls per connection" : x_name) ":")
    say("| " (slices > 1 ? "where | " : "") "server | requests/s | ratio to " baseline " (95% interval) | server CPU, µs/request | ratio to " baseline " (95% interval) | highest peak of memory, MiB |")
    say("| " (slices > 1 ? "--- | " : "") "--- | ---: | ---: | ---: | ---: | ---: |")
    for (i = 1; i <= slices; i++)
        for (s = 1; s <= level_count["server"]; s++) {
            server = level["server", s]
            n = total = cpu = cpus = peak = peaks = asked = 0
            for (x = 1; x <= (x_name == "" ? 1 : level_count[x_name]); x++) {
                c = at_x(first[i], server, x)
                if (!c) continue
                asked = 1
                if (sum[c, "rps_mean"] > 0) { n++; total += log(sum[c, "rps_mean"]) }
                if (sum[c, "server_cpu_us_mean"] > 0) { cpus++; cpu += log(sum[c, "server_cpu_us_mean"]) }
                if (sum[c, "peak_kib_max"] != "-" && sum[c, "peak_kib_max"] + 0 > peak) { peaks = 1; peak = sum[c, "peak_kib_max"] + 0 }
            }
            if (!asked) continue
            if (x_name != "" && n && lacks_levels(server, first[i])) { n = cpus = 0; lacking = 1 }
            # The same averages as in the bars.
            if (group_count) key = average_key(first[i])
            if (group_count && ("rps", server, key, "mean") in average) { n = 1; total = log(average["rps", server, key, "mean"]) }
            if (group_count && ("server_cpu_us", server, key, "mean") in average) { cpus = 1; cpu = log(average["server_cpu_us", server, key, "mean"]) }
            say("| " (slices > 1 ? text[i] " | " : "") server " | " (n ? human(exp(total / n)) : "–") " | " \
                (server == baseline ? "1" : ratio_cell(find_comparison(scope, "rps", server, first[i]))) " | " (cpus ? human(exp(cpu / cpus)) : "–") " | " \
                (server == baseline ? "1" : ratio_cell(find_comparison(scope, "server_cpu_us", server, first[i]))) " | " (peaks ? human(peak / 1024) : "–") " |")
        }
    say("")
    if (lacking) paragraph("A dash: not measured at all values, so that there is no average like the others'; the ratio is over those where it was.")
}

# Requests per second of a cell, with its spread; an asterisk where the load generator is the limit.
function speed_text(c) {
    if (!c || sum[c, "rps_mean"] == "-") return "–"
    return human(sum[c, "rps_mean"]) (sum[c, "rps_sd"] == "-" ? "" : " ± " human(sum[c, "rps_sd"])) (client_bound(c) ? " \\*" : "") \
        (sum[c, "n"] < most_runs() ? " (n = " sum[c, "n"] ")" : "")
}

# How often most cells were run.
function most_runs(    i) {
    if (most_runs_known) return most_runs_known
    for (i = 1; i <= cell_count; i++) if (sum[i, "n"] + sum[i, "n_invalid"] > most_runs_known) most_runs_known = sum[i, "n"] + sum[i, "n_invalid"]
    return most_runs_known
}

# Requests per second of every cell of a slice: a column for each server and comparison,
function speed_columns(first,    s, x, c, k, line, rows, columns) {
    columns = level_count["server"]
    line = "| " (x_name == "" ? "" : x_name " | ")
    for (s = 1; s <= columns; s++) line = line level["server", s] ", requests/s | "
    for (s = 1; s <= columns; s++) if (level["server", s] != baseline) line = line level["server", s] " / " baseline " (95%) | p (Holm) | "
    say(line)
    line = "| " (x_name == "" ? "" : "---: | ")
    for (s = 1; s <= columns; s++) line = line "---: | "
    for (s = 1; s < columns; s++) line = line "---: | ---: | "
    say(line)
    rows = x_name == "" ? 1 : level_count[x_name]
    for (x = 1; x <= rows; x++) {
        line = "| " (x_name == "" ? "" : thousands(level[x_name, x]) " | ")
        for (s = 1; s <= columns; s++) line = line speed_text(at_x(first, level["server", s], x)) " | "
        for (s = 1; s <= columns; s++) {
            if (level["server", s] == baseline) continue
            c = at_x(first, level["server", s], x)
            k = c ? find_comparison("cell", "rps", level["server", s], c) : 0
            line = line ratio_cell(k) " | " (k ? p_text(comparison[k, "p_holm"]) : "–") " | "
        }
        say(line)
    }
}

# or, of many servers, a row.
function speed_rows(first,    s, x, c, k) {
    say("| " (x_name == "" ? "" : x_name " | ") "server | requests/s | / " baseline " (95%) | p (Holm) |")
    say("| " (x_name == "" ? "" : "---: | ") "--- | ---: | ---: | ---: |")
    for (x = 1; x <= (x_name == "" ? 1 : level_count[x_name]); x++)
        for (s = 1; s <= level_count["server"]; s++) {
            c = at_x(first, level["server", s], x)
            if (!c) continue
            k = find_comparison("cell", "rps", level["server", s], c)
            say("| " (x_name == "" ? "" : thousands(level[x_name, x]) " | ") level["server", s] " | " speed_text(c) " | " \
                (level["server", s] == baseline ? "1" : ratio_cell(k)) " | " (k ? p_text(comparison[k, "p_holm"]) : "–") " |")
        }
}

# The table of every cell of a slice, folded away.
function slice_table(first, text,    s, x, c, line, rows, columns, lost) {
    columns = level_count["server"]
    say("<details><summary>All cells" (text == "" ? "" : ": " text) "</summary>\n")
    if (group_count) speed_rows(first)
    else speed_columns(first)
    rows = x_name == "" ? 1 : level_count[x_name]
    say("")
    lost = cell[first, "scheme"] == "udp"
    line = "| " (x_name == "" ? "" : x_name " | ") "server | CPU, µs/request | p50, ms | p95, ms | p99, ms | " (lost ? "lost, of a run | " : "") "switches/request, voluntary | involuntary | peak memory, MiB | load generator's CPU |"
    say(line)
    say("| " (x_name == "" ? "" : "---: | ") "--- | ---: | ---: | ---: | ---: | " (lost ? "---: | " : "") "---: | ---: | ---: | ---: |")
    for (x = 1; x <= rows; x++)
        for (s = 1; s <= columns; s++) {
            c = at_x(first, level["server", s], x)
            if (!c) continue
            say("| " (x_name == "" ? "" : thousands(level[x_name, x]) " | ") level["server", s] " | " human(sum[c, "server_cpu_us_mean"]) \
                (sum[c, "server_cpu_us_sd"] == "-" ? "" : " ± " human(sum[c, "server_cpu_us_sd"])) " | " human(sum[c, "p50_ms"]) " | " human(sum[c, "p95_ms"]) " | " human(sum[c, "p99_ms"]) \
                (lost ? " | " human(sum[c, "lost"]) : "") " | " human(sum[c, "voluntary"]) " | " human(sum[c, "involuntary"]) " | " (sum[c, "peak_kib"] == "-" ? "–" : human(sum[c, "peak_kib"] / 1024)) \
                " | " (sum[c, "load_cpu"] == "-" ? "–" : sprintf("%.0f%%", sum[c, "load_cpu"] * 100)) (client_bound(c) ? " \\*" : "") " |")
        }
    say("\n</details>\n")
}

function at_x(first, server, x) { return x_name == "" ? cell_like(first, "server", server) : cell_of(first, server, level[x_name, x]) }

function results_section(    i, j, file, first, text, slices, alone) {
    if (study_kind() != "") { others_results(); return }
    if (part_count > 1) say("### Part " part ": " part_text[part] "\n")
    overall_table()
    if (group_count) say("<details><summary>Cell by cell</summary>\n")
    if (level_count["server"] > 2 || part_count > 1) ranges()
    if (group_count) say("</details>\n")
    if (" " study["claims"] " " ~ /[ ,]R1\.1[ ,]/) table_of_R1()
    table_of_theirs()
    if (" " study["claims"] " " ~ /[ ,]UNP\.1[ ,]/) table_of_UNP()
    for (i = 1; i <= level_count["file"]; i++) {
        file = level["file", i]
        if (level_count["file"] > 1 || (file != "-" && part_count == 1)) say((part_count > 1 ? "#" : "") "### " file_text(file) "\n")
        figure_for("bars", file)
        figure_for("ways", file)
        figure_for("requests", file)
        figure_for("ratio", file)
        figure_for("cpu", file)
        figure_for("time", file)
        figure_for("memory", file)
        figure_for("busiest", file)
        figure_for("idle", file)
        alone = 0
        for (j = 1; j <= table_rows["figures"]; j++)
            if (figure_kind[j] == "alone" && figure_file[j] == file && figure_part[j] == part) {
                if (!alone++) say("<details><summary>Each server alone</summary>\n")
                figure_line(j)
            }
        if (alone) say("</details>\n")
        slices = slices_of(file, first, text)
        for (j = 1; j <= slices; j++) slice_table(first[j], text[j])
    }
}

# What the report had, beside this machine: each row where it has requests/s, and what that is of the first row of its slice, since
# only the shapes of two machines can be compared.
function table_of_theirs(    first, text, slices, i, x, s, c, v, line, base, begun) {
    if (!theirs_count || x_name == "") return
    slices = slices_of("", first, text)
    for (i = 1; i <= slices; i++) {
        split("", base)
        for (x = 1; x <= level_count[x_name]; x++) {
            c = cell_like(first[i], x_name, level[x_name, x])
            if (!c || (v = theirs_of(c, "rps")) == "") continue
            if (!begun++) theirs_head(slices)
            if (!(0 in base)) base[0] = v
            line = "| " (slices > 1 ? text[i] " | " : "") thousands(level[x_name, x]) " | " human(v) " (" factor_text(v / base[0]) ")"
            for (s = 1; s <= level_count["server"]; s++) {
                c = at_x(first[i], level["server", s], x)
                v = c ? sum[c, "rps_mean"] : "-"
                if (v > 0 && !(s in base)) base[s] = v
                line = line " | " (v > 0 ? human(v) " (" factor_text(v / base[s]) ")" : "–")
            }
            say(line " |")
        }
    }
    if (begun) say("")
}

function theirs_head(slices,    s, line, rule) {
    paragraph("The report's requests per second beside this machine's. They come from another machine and another program, so that only their course can be compared: in brackets, what each is of the first one in its column" (slices > 1 ? ", anew for each kind" : "") ".")
    line = "| " (slices > 1 ? "where | " : "") x_name " | report"
    rule = "| " (slices > 1 ? "--- | " : "") "---: | ---:"
    for (s = 1; s <= level_count["server"]; s++) { line = line " | " level["server", s]; rule = rule " | ---:" }
    say(line " |\n" rule " |")
}

# The table of the report R1, `ab -n 10000 -c 10`, milliseconds, beside the same rows of this machine.
function table_of_R1(    f, c, i, n, columns, row, begun) {
    n = split("time_ms across_ms min_ms mean_ms sd_ms p50_ms max_ms", columns, " ")
    for (f = 1; f <= level_count["file"]; f++)
        for (c = 1; c <= cell_count; c++) {
            if (cell[c, "file"] != level["file", f] || cell[c, "concurrency"] != 10 || theirs_of(c, "time_ms") == "") continue
            if (!begun++) table_of_R1_head()
            row = "| " cell[c, "file"] " | " cell[c, "server"] " | "
            say(row "report | " theirs_row(c, columns, n))
            if (sum[c, "rps_mean"] == "-") continue
            row = row "here | " sprintf("%.3f | %.3f", 10 * 1000 / sum[c, "rps_mean"], 1000 / sum[c, "rps_mean"])
            for (i = 3; i <= n; i++) row = row " | " ms(sum[c, columns[i]])
            say(row " |")
        }
    if (begun) say("")
}

function table_of_R1_head() {
    paragraph("The table of the report beside this machine's, in milliseconds, at concurrency 10. The report's is one run of 10,000 requests on a dual-core i3-6006U; ours are means over the runs, and ab's own whole milliseconds are replaced by its microseconds.")
    say("| file | server | | time per request | across all | min | mean | sd | median | max |")
    say("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
}

function theirs_row(c, columns, n,    i, row) {
    for (i = 1; i <= n; i++) row = row (i > 1 ? " | " : "") theirs_of(c, columns[i])
    return row " |"
}

# Process control of figure 30.1 of UNP, seconds of CPU for its client, beside this machine's.
function table_of_UNP(    n, rows, i, f, key, server, fork, row_text) {
    averages_load(dir "/averages.tsv", part)
    key = average_key(part_first())
    if (!(("control_us", "fork", key, "mean") in average)) return
    fork = average["control_us", "fork", key, "mean"]
    n = split("fork|a fork per client|20.90;prefork|children made in advance, each calls accept|1.80;thread|a thread per client|0.99;" \
        "pool+accept=mutex|threads made in advance, a mutex around accept|1.93;prefork+accept=lock|children made in advance, a file lock around accept|–;" \
        "prefork+accept=mutex|children made in advance, a mutex around accept|–;prefork+accept=pass|children made in advance, the parent passes connections|–;" \
        "pool+accept=queue|threads made in advance, the main thread accepts|–;prefork+accept=reuseport|(not in the book) a listener for each child|–;" \
        "pool|(not in the book) all threads block in accept|–;pool+accept=reuseport|(not in the book) a listener for each thread|–;" \
        "epoll|(not in the book) an event loop for each processor, of which as few listen as the load needs|–;" \
        "epoll+accept=shared|(not in the book) the same, all listen|–;epoll+accept=reuseport|(not in the book) the same, a listener for each|–", rows, ";")
    paragraph("The table of *UNIX Network Programming* (figure 30.1: seconds of CPU for process control, that is, less what the iterative server takes) beside this machine's. **The book's numbers are quoted at second hand and could not be checked against it**; a dash stands where none was at hand, and which of its rows the 1.93 s of \"prethreaded\" belong to is assumed. Here process control is a server's CPU time per request less that of `iterative`, in the same block at the same concurrency, averaged over " \
        (x_name == "" ? "the blocks" : x_name) "; it can be below zero for a server that does more at a time. The machines are decades apart, so that only the ratios can be compared.")
    say("| design | server | book, s | book, to a fork per client | here, µs/request (95% interval) | here, to a fork per client |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for (i = 1; i <= n; i++) {
        split(rows[i], f, "|")
        server = f[1]
        if (!(("control_us", server, key, "mean") in average)) continue
        row_text = "| " f[2] " | " server " | " f[3] " | " (f[3] == "–" ? "–" : sprintf("%.3f", f[3] / 20.90)) " | "
        say(row_text human(average["control_us", server, key, "mean"]) " (" human(average["control_us", server, key, "low"]) " to " \
            human(average["control_us", server, key, "high"]) ") | " (fork > 0 ? sprintf("%.3f", average["control_us", server, key, "mean"] / fork) : "–") " |")
    }
    say("")
}

function ms(v) { return v == "-" ? "–" : sprintf("%.3f", v) }

function claims_section(    i, n, id) {
    n = table_rows["claims"]
    if (!n) return
    say("## Claims\n")
    say("| claim | what was claimed | on this machine |\n| --- | --- | --- |")
    for (i = 1; i <= n; i++)
        if (table["claims", i, "part"] == "all")
            say("| " table["claims", i, "claim"] " | " cell_text(table["claims", i, "quote"]) " | **" table["claims", i, "verdict"] "**" (table["claims", i, "kind"] == "reading" ? " (the supposed cause)" : cause_text(i)) " |")
    say("")
    for (i = 1; i <= n; i++) {
        if (table["claims", i, "part"] == "all") {
            if (i > 1) say("")
            say("### " table["claims", i, "claim"] ": " table["claims", i, "verdict"] cause_text(i) "\n")
            paragraph("> " table["claims", i, "quote"] " (" table["claims", i, "source"] ")")
            if (table["claims", i, "tested"] == "nothing") { say("Not tested: " table["claims", i, "found"] ".") ; continue }
            paragraph("Tested, " table["claims", i, "tested"] "; intervals hold together with 95% confidence:")
            say("| tested | found (95% interval) | blocks | verdict |\n| --- | --- | ---: | --- |")
            continue
        }
        if (table["claims", i, "part"] == "cause") continue
        say("| " (table["claims", i, "kind"] == "reading" ? "*cause:* " : "") cell_text(table["claims", i, "tested"]) " | " cell_text(table["claims", i, "found"]) " | " (table["claims", i, "blocks"] ~ /^[0-9]/ ? table["claims", i, "blocks"] : "–") " | " table["claims", i, "verdict"] " |")
    }
    say("")
}

# The same within a sentence: "but" where the verdicts differ.
function cause_joined(i) {
    return (table["claims", i, "verdict"] == table["claims", i + 1, "verdict"] ? ", and" : ", but") " its supposed cause " \
        (table["claims", i, "verdict"] == table["claims", i + 1, "verdict"] ? "also " : "") table["claims", i + 1, "verdict"]
}

# Of the supposed cause of the claim in this row, where it has a verdict of its own.
function cause_text(i) {
    return table["claims", i + 1, "part"] == "cause" ? "; the supposed cause " table["claims", i + 1, "verdict"] : ""
}

function threats_section(    i, name, v, of, low, high, subject, note) {
    say("## Threats to validity\n")
    for (i = 1; i <= table_rows["threats"]; i++) {
        name = table["threats", i, "name"]
        subject = table["threats", i, "subject"]
        v = table["threats", i, "value"]
        of = table["threats", i, "of"]
        low = table["threats", i, "low"]
        high = table["threats", i, "high"]
        if (name == "planned" && v + 0 < of + 0) say("- **Unfinished**: " thousands(v) " of " thousands(of) " planned runs were made.")
        else if (name == "planned") say("- **Complete**: all " thousands(of) " planned runs were made.")
        else if (name == "disbelieved" && v > 0) say("- **Damaged rows**: " plural(v, "row", "rows") " cut off or told twice, left out.")
        else if (name == "client_bound" && of + 0 == 0)
            say("- **The client as bottleneck**: not recorded: httperf never sleeps, so that its own CPU time says nothing.")
        else if (name == "client_bound")
            say("- **The client as bottleneck**: " (v > 0 ? "the load generator used over 90% of a processor in " v " of " of " cells (" percent_text(v / of) "); their requests per second are a lower bound for the server." \
                : "in none of the " of " cells did the load generator use over 90% of a processor."))
        else if (name == "invalid") say("- **Invalid runs**: " (v > 0 ? thousands(v) " of " thousands(of) " (" percent_text(v / of) "), left out:" : "none of " thousands(of) "."))
        else if (name == "reason") say("  - " subject ", " plural(v, "run", "runs"))
        else if (name == "others" && v == "-")
            say("- **What else ran** on this machine meanwhile was not recorded" (machine["load_average"] == "" ? "." : "; its load average over 1, 5 and 15 minutes was " machine["load_average"] " before the first run."))
        else if (name == "others")
            say("- **What else ran**: other programs had " v "% of the processors meanwhile" (v >= 5 ? ": **the machine was not left to the study; it should be run again.**" : "."))
        else if (name == "stolen" && v >= 2)
            say("- **A shared host**: " v "% of the processors' time went to other machines of the same host.")
        else if (name == "drift") {
            note = low > 1 ? "it became faster in the course of the study" : high < 1 ? "it became slower in the course of the study" : "no drift is shown"
            say("- **Drift of " subject "**: requests per second in the last block against the first, fitted line: " estimate_text(v, low, high) ": " note (low > 1 || high < 1 ? "; comparisons within blocks are not touched by what happens to both servers." : "."))
        } else if (name == "self")
            say("- **The study against itself**: odd against even blocks, the same server in the same cell, differ (p < 0.05) in " v " of " of " cells, " percent_text(v / of) \
                " (" percent_text(low) " to " percent_text(high) "); 5% is expected by chance. " (low > 0.05 ? "**That is more than chance: the single runs are less independent than the intervals assume.**" : "That is not more than chance."))
    }
    for (i = 1; i <= table_rows["claims"]; i++)
        if (table["claims", i, "claim"] == "A/A" && table["claims", i, "part"] == 1)
            say("- **A/A**: " table["claims", i, "tested"] "; found " table["claims", i, "found"] ".")
    if ((v = few_cells()) > 0)
        say("- **Few blocks**: " (v == cell_count ? "all cells were" : v " of " cell_count " cells were") " run fewer than " few_blocks_from() " times. Intervals of so few are wide, and what they leave open cannot be told.")
    say("- **One machine**: client and server share its processors and its caches; nothing here crosses a network" (is_proxied() ? ", and a proxy's origin has its share of them, too" : "") ".\n")
}

# How many cells few blocks hold.
function few_cells(    i, n) {
    n = 0
    for (i = 1; i <= cell_count; i++) if (few_blocks(sum[i, "n"] + sum[i, "n_invalid"])) n++
    return n
}

function reproduce_section(    i, n, command, seed) {
    say("## How to reproduce\n")
    command = ""
    seed = machine["seed"]
    for (i = machine_first; i <= machine_rows; i++) if (machine_key[i] ~ /^commands?$/) command = machine[machine_key[i]]
    if (command == "") command = "./dcollect.sh " name
    if (seed != "" && command !~ /--seed/) sub(/dcollect\.sh/, "dcollect.sh --seed " seed, command)
    say("```\n" command "\n```\n")
    paragraph((seed == "" ? "" : "The seed " seed " makes the same plan: the same runs in the same order. ") \
        (machine["project_commit"] == "" ? "" : "The project was at commit " machine["project_commit"] \
        (machine["project_changed"] ~ /^[1-9]/ ? ", with changes in " machine["project_changed"] : "") ". ") \
        "`./dcollect.sh report DIR` rebuilds this report and its figures from the data in its folder.")
    paragraph("In the folder of this report: `study.txt` (the factors), `plan.tsv`, `runs.tsv` (every run), `raw.gz` (the load generator's own output; not kept with published runs), `configurations/` (of the peers), `summary.tsv` (a row a cell), `comparisons.tsv`, `claims.tsv`, `threats.tsv`, `machine.tsv`, `figures/`.")
}

BEGIN {
    study_load(dir "/study.txt")
    theirs_load()
    summary_load(dir "/summary.tsv")
    comparisons_load(dir "/comparisons.tsv")
    table_load("claims", dir "/claims.tsv")
    table_load("threats", dir "/threats.tsv")
    machine_load(dir "/machine.tsv")
    figures_load(dir "/figures/list.tsv")
    say("# " (study["title"] == "" ? name : study["title"]) "\n")
    line = (study["source"] == "" ? "" : "After: " study["source"] ". ")
    if (machine["started"] != "") line = line "Measured " machine["started"] ". "
    paragraph("Study `" name "`. " line)
    say("## Abstract\n")
    abstract()
    if ((main_figure = main_figure_of(study["figure"])) || (main_figure = main_figure_of("bars")) || (main_figure = main_figure_of("requests"))) figure_line(main_figure)
    if (part_count == 1) claims_short()
    say("## Results\n")
    for (p = 1; p <= part_count; p++) {
        part_enter(p)
        groups_find()
        ranges_said = 0
        results_section()
    }
    if (study["see"] != "") see_also()
    claims_section()
    threats_section()
    method_section()
    machine_section()
    reproduce_section()
}

function see_also(    list, n, i) {
    n = study_list("see", list)
    for (i = 1; i <= n; i++) list[i] = "`" list[i] "`"
    paragraph((n > 1 ? "Studies that go" : "A study that goes") " on from here: " join_text(list, n) ".")
}

# One line of verdicts.
function claims_short(    i, n, list) {
    n = 0
    for (i = 1; i <= table_rows["claims"]; i++)
        if (table["claims", i, "part"] == "all") list[++n] = (table["claims", i, "kind"] == "reading" ? "the supposed cause of " : "") "**" table["claims", i, "claim"] "** " table["claims", i, "verdict"] (cause_text(i) == "" ? "" : cause_joined(i))
    if (n) paragraph("[Claims](#claims) on this machine: " join_sentences(list, n) ".")
}
