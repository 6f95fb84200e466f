# study.awk: reads a results folder: study.txt (study_load), runs.tsv (runs_load). Functions only; needs text.awk.
#
# usage:    awk -v dir=DIR -f collect/statistics.awk -f collect/study.awk -f collect/text.awk -f another.awk
# example:  BEGIN { study_load(dir "/study.txt"); runs_load("-"); for (i = 1; i <= cell_count; i++) print cell[i, "server"] }
#
# After both:
#   study[key]                 what the study file says, the last line of a key counting, without comments
#   theirs_line[1..theirs_count]   what it says of a report's own numbers, see theirs.awk
#   limit_line[1..limit_count]     which cells are in the first blocks alone, as plan.awk has it
#   factor[1..factor_count]    the names of the factors, as columns of runs.tsv
#   run_count, run[i, column]  the runs that are believed; run_cell[i]: the cell of each
#   cell_count, cell[c, name]  the cells in the order of the study: server, file, then the other factors, numbers ascending
#   cell_at[key]               the cell of a key (the factors joined by tabs), cell_key[c] the key
#   run_at[c, block]           the run of a cell in a block
#   level_count[name], level[name, i]    the values of a factor that occur, in order
#   blocks                     the highest block
#   last_block[c]              the highest block with a run of a cell: cells that take long may be in the first blocks alone
#   x_name                     the numeric factor that varies most: the x axis of the figures; "" if none does
#   baseline                   the server that ratios are taken against
#   part_count, part_of[c]     the parts of the study (below); part_enter(p) narrows levels, x_name and baseline to one of them

function trim(text) {
    gsub(/^[ \t]+|[ \t\r]+$/, "", text)
    return text
}

function study_load(path,    line, at, status) {
    factor_count = split("server file concurrency requests calls keepalive scheme protocol service processors load idle slow certificate sessions", factor, " ")
    while ((status = (getline line < path)) > 0) {
        sub(/^[ \t]*#.*/, "", line)
        sub(/[ \t]#.*/, "", line)
        at = index(line, ":")
        if (at) study[trim(substr(line, 1, at - 1))] = trim(substr(line, at + 1))
        if (at && trim(substr(line, 1, at - 1)) == "theirs") theirs_line[++theirs_count] = trim(substr(line, at + 1))
        if (at && trim(substr(line, 1, at - 1)) == "blocks") limit_line[++limit_count] = trim(substr(line, at + 1))
    }
    close(path)
    if (status < 0) fail("cannot read " path)
}

function fail(message) {
    failed = 1
    print "collect: " message > "/dev/stderr"
    exit 1
}

# Splits a list of the study file into words; a name that comes again gets ~2, ~3 as its label.
function study_list(key, words,    text, n, i, seen) {
    text = study[key]
    gsub(/,/, " ", text)
    n = split(text, words, " ")
    for (i = 1; i <= n; i++)
        if (seen[words[i]]++) words[i] = words[i] "~" seen[words[i]]
    return n
}

# Reads runs.tsv ("-": standard input). Lines with a wrong number of columns and runs told twice are left out.
function runs_load(path,    line, n, fields, columns, i, c, key, status) {
    if ((getline line < path) <= 0) fail("runs.tsv is empty")
    columns = split(line, column_name, "\t")
    for (i = 1; i <= columns; i++) column[column_name[i]] = i
    factors_drop(column)
    for (i = 1; i <= factor_count; i++) if (!(factor[i] in column)) fail("runs.tsv has no column " factor[i])
    if (!("rps" in column) || !("valid" in column)) fail("runs.tsv has no column rps or valid")
    run_count = cell_count = blocks = 0
    while ((status = (getline line < path)) > 0) {
        n = split(line, fields, "\t")
        if (n != columns || fields[1] in run_seen) { disbelieved++; continue }
        run_seen[fields[1]] = 1
        run_count++
        for (i = 1; i <= columns; i++) run[run_count, column_name[i]] = fields[i]
        key = ""
        for (i = 1; i <= factor_count; i++) {
            key = key (i > 1 ? "\t" : "") fields[column[factor[i]]]
            if (!level_seen[factor[i], fields[column[factor[i]]]]++)
                level[factor[i], ++level_count[factor[i]]] = fields[column[factor[i]]]
        }
        run_key[run_count] = key
        if (!(key in cell_at)) { cell_at[key] = ++cell_count; cell_key[cell_count] = key }
        if (fields[column["block"]] + 0 > blocks) blocks = fields[column["block"]] + 0
    }
    if (!run_count) fail("runs.tsv holds no run")
    levels_sort()
    cells_sort()
    for (i = 1; i <= run_count; i++) {
        run_cell[i] = cell_at[run_key[i]]
        run_at[run_cell[i], run[i, "block"]] = i
        if (run[i, "block"] + 0 > last_block[run_cell[i]]) last_block[run_cell[i]] = run[i, "block"] + 0
    }
    study_known()
}

# Results of the time before a factor came know nothing of it: the last ones are the latest.
function factors_drop(column) {
    while (factor_count && factor[factor_count] ~ /^(idle|slow|certificate|sessions)$/ && !(factor[factor_count] in column))
        delete factor[factor_count--]
}

# What follows from the cells.
function study_known() {
    x_choose()
    baseline = study["baseline"]
    if (!level_seen["server", baseline]) baseline = level["server", 1]
    parts_find()
}

# Puts the levels of each factor in order: as the study lists them, else numbers ascending, else as they came.
function levels_sort(    f, name, n, i, j, words, known, rank, v, numbers) {
    for (f = 1; f <= factor_count; f++) {
        name = factor[f]
        split("", rank)
        known = 0
        if (name == "server" || name == "file") known = study_list(name "s", words)
        for (i = 1; i <= known; i++) rank[words[i]] = i
        n = level_count[name]
        numbers = 1
        # A number that is not set comes before all others.
        for (i = 1; i <= n; i++) if (level[name, i] !~ /^([0-9.]+|-)$/) numbers = 0
        for (i = 1; i <= n; i++)
            if (!(level[name, i] in rank)) rank[level[name, i]] = numbers ? level[name, i] + 0 : 1e6 text_rank(level[name, i])
        for (i = 2; i <= n; i++) {
            v = level[name, i]
            for (j = i; j > 1 && rank_after(rank[level[name, j - 1]], rank[v]); j--) level[name, j] = level[name, j - 1]
            level[name, j] = v
        }
        for (i = 1; i <= n; i++) level_rank[name, level[name, i]] = i
    }
}

# Texts are ranked behind everything that is numbered, alphabetically.
function text_rank(text) { return "\t" text }
function rank_after(a, b,    at, bt) {
    at = index(a, "\t") > 0
    bt = index(b, "\t") > 0
    if (at != bt) return at
    return at ? (a "" > b "") : (a + 0 > b + 0)
}

function cells_sort(    i, j, gap, fields, f, order, k, keys) {
    for (i = 1; i <= cell_count; i++) {
        split(cell_key[i], fields, "\t")
        order[i] = ""
        for (f = 1; f <= factor_count; f++) order[i] = order[i] sprintf("%05d", level_rank[factor[f], fields[f]])
        keys[i] = cell_key[i]
    }
    for (gap = int(cell_count / 2); gap > 0; gap = int(gap / 2))
        for (i = gap + 1; i <= cell_count; i++) {
            k = order[i]
            f = keys[i]
            for (j = i; j > gap && order[j - gap] > k; j -= gap) { order[j] = order[j - gap]; keys[j] = keys[j - gap] }
            order[j] = k
            keys[j] = f
        }
    for (i = 1; i <= cell_count; i++) {
        cell_key[i] = keys[i]
        cell_at[keys[i]] = i
        split(keys[i], fields, "\t")
        for (f = 1; f <= factor_count; f++) cell[i, factor[f]] = fields[f]
    }
}

function x_choose(    names, n, i, j, numbers) {
    x_name = ""
    n = split("concurrency requests calls idle slow", names, " ")
    for (i = 1; i <= n; i++) {
        numbers = 1
        for (j = 1; j <= level_count[names[i]]; j++) if (level[names[i], j] !~ /^[0-9.]+$/) numbers = 0
        if (numbers && level_count[names[i]] > 1 && (x_name == "" || level_count[names[i]] > level_count[x_name]))
            x_name = names[i]
    }
    # Processors are on the x axis where no other number varies.
    if (x_name == "" && level_count["processors"] > 1) {
        x_name = "processors"
        for (j = 1; j <= level_count["processors"]; j++) if (level["processors", j] == "all") x_name = ""
    }
}

# The cell like c but with another value of one factor; 0 if there is none.
function cell_like(c, name, value,    key, f) {
    key = ""
    for (f = 1; f <= factor_count; f++)
        key = key (f > 1 ? "\t" : "") (factor[f] == name ? value : cell[c, factor[f]])
    return key in cell_at ? cell_at[key] : 0
}

# Whether a server was not asked at some value of the x axis where the baseline was, all else being as in cell c: an average over that
# axis would be one of other requests.
function lacks_levels(server, c,    i) {
    for (i = 1; i <= level_count[x_name]; i++) {
        if (!cell_of(c, baseline, level[x_name, i])) continue
        if (!cell_of(c, server, level[x_name, i])) return 1
    }
    return 0
}

# The cell like c of this server at this value of the x axis; 0 if there is none.
function cell_of(c, server, value,    f, key) {
    key = ""
    for (f = 1; f <= factor_count; f++)
        key = key (f > 1 ? "\t" : "") (factor[f] == "server" ? server : factor[f] == x_name ? value : cell[c, factor[f]])
    return key in cell_at ? cell_at[key] : 0
}

# The valid run of a cell in a block that has a number above zero in this column, as that number; else "".
function measured(c, block, name,    i) {
    if (!((c, block) in run_at)) return ""
    i = run_at[c, block]
    if (run[i, "valid"] != "yes" || run[i, name] == "-" || run[i, name] == "" || run[i, name] + 0 <= 0) return ""
    return run[i, name] + 0
}

# A cell that the study asks for in its first blocks alone. Where it was interrupted some cells lack the last one.
function in_first_blocks(c) { return last_block[c] < blocks - 1 }

# A cell where the load generator used over 90% of a processor, on average over its valid runs.
function client_bound(c,    b, v, n, sum) {
    if (c in client_bound_known) return client_bound_known[c]
    n = sum = 0
    for (b = 1; b <= blocks; b++) if ((v = measured(c, b, "load_cpu")) != "") { n++; sum += v }
    return client_bound_known[c] = (n && sum / n > 0.90)
}

# --- the parts of a study ---
#
# A study need not be a full factorial: a server with an option may belong to another than the baseline, and a factor may vary for
# some servers alone. Such a study falls into parts, each of which is a full factorial (or cannot be split any more) with a
# baseline of its own. An ordinary study has one part, and so has one that says `parts: one`; with `parts: load scheme` there is a
# part for each combination of those factors, and the study's baseline is that of all of them.

# The server that a server is compared with: `fork` for fork~2 and fork+option, where the study has that; a server that others
# are compared with in this way stands for itself; the rest are compared with the study's baseline.
function root_of(server,    parent, i, other) {
    if ((server) in root_known) return root_known[server]
    parent = server
    if ((sub(/~[0-9]+$/, "", parent) || sub(/\+[^+]*$/, "", parent)) && level_seen["server", parent]) return root_known[server] = root_of(parent)
    for (i = 1; i <= all_servers; i++) {
        other = all_server[i]
        if (other != server && (index(other, server "~") == 1 || index(other, server "+") == 1)) return root_known[server] = server
    }
    return root_known[server] = baseline
}

function parts_find(    i, c, list) {
    all_servers = level_count["server"]
    for (i = 1; i <= all_servers; i++) all_server[i] = level["server", i]
    part_count = 0
    root_known[baseline] = baseline
    for (c = 1; c <= cell_count; c++) {
        cell[c, "root"] = study_kind() == "" && study["parts"] == "" ? root_of(cell[c, "server"]) : baseline
        list[c] = c
    }
    part_words = study["parts"] == "one" ? 0 : study["parts"] != "" ? study_list("parts", part_word) : \
        split("root load protocol service scheme keepalive processors calls requests idle slow", part_word, " ")
    part_split(list, cell_count, 0)
}

# Makes parts of the cells list[1..n], which are alike in the first `at` of the factors that parts are split by.
function part_split(list, n, at,    name, i, c, value, values, seen, group, size) {
    if (at >= part_words || (at >= 1 && study["parts"] == "" && is_factorial(list, n))) {
        part_count++
        part_text[part_count] = ""
        for (i = 1; i <= n; i++) part_of[list[i]] = part_count
        for (i = 1; i <= at; i++) {
            name = part_word[i]
            if (part_varies[name]) part_text[part_count] = with_comma(part_text[part_count], factor_value(name, cell[list[1], name], cell[list[1], "load"]))
        }
        return
    }
    name = part_word[at + 1]
    values = 0
    for (i = 1; i <= n; i++) {
        c = list[i]
        if (!(cell[c, name] in seen)) { seen[cell[c, name]] = ++values; size[values] = 0 }
        group[seen[cell[c, name]], ++size[seen[cell[c, name]]]] = c
    }
    if (values > 1) part_varies[name] = 1
    for (value = 1; value <= values; value++) {
        split("", list)
        for (i = 1; i <= size[value]; i++) list[i] = group[value, i]
        part_split(list, size[value], at + 1)
    }
}

function is_factorial(list, n,    i, f, seen, product, count) {
    product = 1
    for (f = 1; f <= factor_count; f++) {
        count = 0
        for (i = 1; i <= n; i++) if (!seen[f, cell[list[i], factor[f]]]++) count++
        product *= count
    }
    return product == n
}

# A study of what happens to others: of clients that hold connections ("held"), or of a server that dies ("fault"); "" otherwise.
# There each server is compared with itself, and what fails is a result. With a fresh server for each run it is the server that is asked.
function study_kind() {
    if ("fault" in study) return "fault"
    return (x_name == "idle" || x_name == "slow") && study["fresh"] != "yes" ? "held" : ""
}

# Whether a run that does not count shows what its server cannot do.
function cannot_hold(verdict) { return verdict ~ /^cannot hold: / }

# Narrows the levels, the x axis and the baseline to those of part p, which is `part` from then on.
function part_enter(p,    f, i, c, name, n, seen) {
    part = p
    if (!all_levels_kept) {
        all_levels_kept = 1
        for (f = 1; f <= factor_count; f++) {
            all_level_count[factor[f]] = level_count[factor[f]]
            for (i = 1; i <= level_count[factor[f]]; i++) all_level[factor[f], i] = level[factor[f], i]
        }
    }
    for (c = 1; c <= cell_count; c++) {
        if (part_of[c] != p) continue
        baseline = cell[c, "root"]
        for (f = 1; f <= factor_count; f++) seen[f, cell[c, factor[f]]] = 1
    }
    for (f = 1; f <= factor_count; f++) {
        name = factor[f]
        n = 0
        for (i = 1; i <= all_level_count[name]; i++)
            if ((f, all_level[name, i]) in seen) level[name, ++n] = all_level[name, i]
        level_count[name] = n
    }
    x_choose()
}

# Back to the levels of the whole study.
function part_leave(    f, i) {
    if (!all_levels_kept) return
    for (f = 1; f <= factor_count; f++) {
        level_count[factor[f]] = all_level_count[factor[f]]
        for (i = 1; i <= all_level_count[factor[f]]; i++) level[factor[f], i] = all_level[factor[f], i]
    }
}

# --- the groups of many servers ---
#
# More than eight servers are too many for one panel: they are drawn in groups. A server with its options makes a group, and so do the
# bare models, the peers, and all others.

function is_floor(server) { return server ~ /^floor-/ }
function is_peer(server) { return server ~ /^(nginx|lighttpd|apache-(prefork|worker|event))(~[0-9]+)?$/ }

# The name of a server without its options.
function plain_name(server) {
    sub(/~[0-9]+$/, "", server)
    sub(/\+.*$/, "", server)
    return server
}

# Of the servers of the part: group_count, 0 where they are few; group_title[g], group_size[g], group_member[g, i],
# group_of[server], group_place[server], and group_label[server], its name beside the title of the group.
function groups_find(    i, n, server, name, with_options, ways, spoken, key, group) {
    group_count = 0
    n = level_count["server"]
    if (n <= 8) return
    for (i = 1; i <= n; i++) {
        server = level["server", i]
        name = plain_name(server)
        if (server != name) with_options[name]++
        if (server ~ /\+accept=/) ways[name]++
        if (server ~ /\+protocol=[a-z]+$/) spoken[name]++
    }
    for (i = 1; i <= n; i++) {
        server = level["server", i]
        name = plain_name(server)
        key = is_floor(server) ? "bare models" : is_peer(server) ? "other servers" : with_options[name] ? name : "without a crew"
        if (!(key in group)) {
            group[key] = ++group_count
            group_size[group_count] = 0
            group_title[group_count] = key (ways[key] ? ", by way to accept" : spoken[key] ? ", by protocol" : "")
        }
        group_of[server] = group[key]
        group_place[server] = ++group_size[group[key]]
        group_member[group[key], group_place[server]] = server
        group_label[server] = server
        if (key == name && spoken[name] == with_options[name]) group_label[server] = substr(server, index(server, "=") + 1)
        if (key == name && ways[name] && ways[name] == with_options[name]) {
            group_label[server] = server == name ? "as it is" : substr(server, index(server, "=") + 1)
        }
    }
}
