# dots.awk: figures of studies of what happens to others (study_kind): a row a server, a dot for each number of clients. Functions
# only; a part of figures.awk.
#
# Writes NAME.gp (parameters; form = 'dots'), NAME.dat (a block a number of clients: value row low high hollow "what hovering tells") and
# NAME.labels (a block a number of clients: x row "what the server cannot do"), and a line of list.tsv.

# The cell of server s at number j of clients in the slice of cell `first`; 0 if there is none.
function dots_cell(first, s, j,    c) {
    c = cell_like(first, "server", level["server", s])
    return c && x_name != "" ? cell_like(c, x_name, level[x_name, j]) : c
}

function dots_row(s, j) { return level_count["server"] - s + 1 - (j - (dots_levels + 1) / 2) * 0.76 / dots_levels }

function dots_level_text(j) { return x_name == "" ? "" : factor_value(x_name, level[x_name, j]) }

function dots_begin(name, kind, file, title, subtitle, axis) {
    figure_begin(name, kind, file, title, subtitle, axis)
    dots_levels = x_name == "" ? 1 : level_count[x_name]
    dots_high = 0
    dots_low = 1e300
    split("", dots)
    split("", notes)
    dots_noted = 0
}

function dots_add(c, s, j, value, low, high, unit, more) {
    dots[j] = dots[j] sprintf("%.10g %.10g %.10g %.10g %d %s\n", value, dots_row(s, j), low, high, client_bound(c), double_quoted( \
        level["server", s] (x_name == "" ? "" : ", " dots_level_text(j)) ": " human(value) " " unit \
        (low < high ? ", from " human(low) " to " human(high) : "") more))
    if (high > dots_high) dots_high = high
    if (low > 0 && low < dots_low) dots_low = low
}

# Said once where it is the same for all numbers of clients.
function dots_note(s, j, x, text) {
    if (note_of[figure, s] == text && x == "-" && !(text ~ /cannot hold/)) return
    note_of[figure, s] = text
    if (x > 0) dots_noted = 1
    notes[j] = notes[j] sprintf("%s %.10g %s\n", x == "-" ? "@LOW@" : x, dots_row(s, j), double_quoted(text))
}

# Medians and ranges of a column of the summary, divided by `unit_of`.
function dots_column(first, column, unit_of, unit,    s, j, c) {
    for (s = 1; s <= level_count["server"]; s++)
        for (j = 1; j <= dots_levels; j++) {
            if (!(c = dots_cell(first, s, j))) continue
            if (sum[c, column "_middle"] != "-")
                dots_add(c, s, j, sum[c, column "_middle"] / unit_of, sum[c, column "_least"] / unit_of, sum[c, column "_most"] / unit_of, unit,
                    " (" plural(sum[c, "n"], "run", "runs") (client_bound(c) ? "; limited by the load generator" : "") ")")
            dots_say(c, s, j, column)
        }
}

# What a server could not do.
function dots_say(c, s, j, column) {
    if (sum[c, "n_cannot"] > 0)
        dots_note(s, j, "-", (sum[c, "n"] > 0 ? "in " sum[c, "n_cannot"] " of " sum[c, "n"] + sum[c, "n_cannot"] " runs " : "") \
            "cannot hold " thousands(level[x_name, j]) (sum[c, "held_of_cannot"] == "-" ? "" : ": holds " thousands(sum[c, "held_of_cannot"])))
    if (column == "again_ms" && sum[c, "n_never"] > 0)
        dots_note(s, j, "-", (sum[c, "n_never"] < sum[c, "n"] ? "in " sum[c, "n_never"] " of " sum[c, "n"] " runs " : "") "not again, until restarted by hand")
    if (column == "lost" && sum[c, "n_never"] > 0) dots_note(s, j, sum[c, "lost_most"], "and all that follow")
    if (column == "rps" && sum[c, "rps_most"] != "-" && sum[c, "rps_most"] + 0 == 0) dots_note(s, j, 0, "nobody is answered")
}

# How: "zero" (from zero) or "log".
function dots_end(how,    j, path, s, text, step, n, list, i, tics_text) {
    if (!dots_high && how == "log") return
    path = out "/" figure ".dat"
    for (j = 1; j <= dots_levels; j++) print (dots[j] == "" ? "NaN NaN NaN NaN 0 \"\"\n" : dots[j]) "\n" > path
    close(path)
    if (how == "log") {
        x_low = dots_low / 1.5
        x_high = dots_high * 1.5
        tics_text = log_tics(x_low, x_high)
    } else {
        x_low = 0
        # With room for a note at the last dot.
        x_high = dots_high > 0 ? dots_high * (dots_noted ? 1.32 : 1.06) : 1
        tics_text = tics(0, x_high, nice_step(x_high, 5))
    }
    path = out "/" figure ".labels"
    for (j = 1; j <= dots_levels; j++) {
        gsub(/@LOW@/, sprintf("%.10g", x_low), notes[j])
        print (notes[j] == "" ? "NaN NaN \"\"\n" : notes[j]) "\n" > path
    }
    close(path)
    path = out "/" figure ".gp"
    print "form = 'dots'\nkind = " quoted(fig["kind"]) "\ntitle_text = " quoted(fig["title"]) "\nsubtitle_text = " quoted(fig["subtitle"]) > path
    print "part_text = " quoted(part_text[part]) "\nx_title = " quoted(fig["y_title"]) > path
    print "data = " quoted(figure ".dat") "\nlabels = " quoted(figure ".labels") > path
    printf "servers = %d\nlevels = %d\nx_low = %.10g\nx_high = %.10g\nx_log = %d\nset xtics (%s)\n", level_count["server"], dots_levels,
        x_low, x_high, how == "log", tics_text > path
    text = ""
    n = 0
    for (s = 1; s <= level_count["server"]; s++) {
        text = text (s > 1 ? ", " : "") sprintf("\"%s\" %d", level["server", s], level_count["server"] - s + 1)
        if (length(level["server", s]) > n) n = length(level["server", s])
    }
    print "set ytics (" text ")\nlabel_width = " n "\narray level_text[" dots_levels "]\narray tint[" dots_levels "]" > path
    for (j = 1; j <= dots_levels; j++) print "level_text[" j "] = " quoted(dots[j] == "" && notes[j] == "" ? "" : dots_level_text(j)) "\ntint[" j "] = " j > path
    close(path)
    printf "%s\t%s\t%s\t%s\t%s\n", figure, fig["kind"], fig["file"], fig["title"] ". " fig["subtitle"], part > (out "/list.tsv")
}

# 1, 10, 100, ..., with 2 and 5 where there is room.
function log_tics(low, high,    power, text, i, wide) {
    wide = log(high / low) / log(10)
    text = ""
    for (power = 1e-6; power < high; power *= 10)
        for (i = 1; i <= 5; i += i == 1 ? 1 : 3)
            if (power * i >= low && power * i <= high && (i == 1 || wide < 3))
                text = text (text == "" ? "" : ", ") sprintf("'%s' %.10g", human_tic(power * i), power * i)
    return text
}

function human_tic(v) { return v >= 1 ? thousands(v) : sprintf("%.6g", v) + 0 "" }

# Of a file: all figures. `first` is a cell of each slice.
function dots_of(file, base,    slices, first, text, i, name, of, runs, spread) {
    slices = slices_of(file, first, text)
    runs = 0
    for (i = 1; i <= cell_count; i++) if (sum[i, "n"] + 0 > runs) runs = sum[i, "n"] + 0
    spread = "Median and range of " plural(runs, "run", "runs") "."
    for (i = 1; i <= slices; i++) {
        name = base (slices > 1 ? "slice" i "-" : "")
        of = (text[i] == "" ? "" : ", " text[i])
        if (study_kind() == "fault") {
            dots_begin(name "lost", "requests", file, "Requests of others lost with one crash" of, spread, "requests lost, the fatal one not counted")
            dots_column(first[i], "lost", 1, "requests lost")
            dots_end("zero")
            dots_begin(name "again", "time", file, "Until all clients were served again" of, spread, "milliseconds from the fatal request on")
            dots_column(first[i], "again_ms", 1, "ms")
            dots_end("log")
        } else dots_of_held(first[i], name, file, of, spread any_bound_text())
    }
}

function each_bound(c, which, v) { return sum[c, "each_kib_" which] > 0 ? sum[c, "each_kib_" which] : v }

function any_bound_text() { return any_bound ? " Hollow: limited by the load generator." : "" }

function dots_of_held(first, name, file, of, spread,    s, j, c, base_cell, v) {
    dots_begin(name "requests", "requests", file, "Requests per second of the others" of, spread, "requests/s")
    dots_column(first, "rps", 1, "requests/s")
    dots_end("zero")
    dots_begin(name "time", "time", file, "99th percentile of the time of a request" of, spread, "milliseconds")
    dots_column(first, "p99_ms", 1, "ms")
    dots_end("log")
    if (x_name == "slow") {
        dots_begin(name "wait", "time", file, "The longest wait for a reply" of, spread " Who was not answered has waited so long.", "milliseconds")
        dots_column(first, "max_ms", 1, "ms")
        dots_end("log")
        return
    }
    dots_begin(name "memory", "memory", file, "Peak memory of the server" of, spread, "MiB")
    dots_column(first, "peak_kib", 1024, "MiB")
    dots_end("log")
    dots_begin(name "memory-each", "memory", file, "Memory for each idle connection" of,
        "What the server grew by while they came, for each. Median and range.", "KiB")
    for (s = 1; s <= level_count["server"]; s++)
        for (j = 2; j <= dots_levels; j++) {
            c = dots_cell(first, s, j)
            if (!c) continue
            v = memory_each(c)
            if (v != "-" && v > 0) dots_add(c, s, j, v, each_bound(c, "least", v), each_bound(c, "most", v), "KiB", "")
            dots_say(c, s, j, "memory")
        }
    dots_end("log")
}
