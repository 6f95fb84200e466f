# figures.awk: summary.tsv and comparisons.tsv -> the parameters and data of every figure, for dcollect.p. See figures.sh.
#
# Writes to the folder `out`, for each figure: NAME.gp (parameters), NAME.dat (a block for each panel and server: x y low high hollow
# "what hovering tells"), NAME.labels (a block for each panel: x y server "text", and the
# x y of the point it belongs to); NAME.range (a block for each panel: x low high); NAME.context (a block for each
# panel: lines of the servers that others are about); and list.tsv: name, kind, file, alternative text, part.

function quoted(text) { gsub(/'/, "’", text); return "'" text "'" }
function double_quoted(text) { gsub(/"/, "”", text); gsub(/'/, "’", text); return "\"" text "\"" }

# A step of 1, 2 or 5 times a power of ten so that about `parts` of them make the span.
function nice_step(span, parts,    raw, power) {
    raw = span / parts
    power = 1
    while (power > raw) power /= 10
    while (power * 10 <= raw) power *= 10
    return raw <= power * 1.0001 ? power : raw <= power * 2.0001 ? power * 2 : raw <= power * 5.0001 ? power * 5 : power * 10
}

function tic_text(v, step) {
    if (v == 0) return "0"
    if (step >= 1) return thousands(v)
    return sprintf(step >= 0.1 ? "%.1f" : step >= 0.01 ? "%.2f" : step >= 0.001 ? "%.3f" : "%.4f", v)
}

function tics(low, high, step,    v, i, text) {
    text = ""
    for (i = int(low / step) - 1; i * step <= high * 1.0000001; i++) {
        v = i * step
        if (v >= low - step * 1e-6) text = text (text == "" ? "" : ", ") sprintf("'%s' %.10g", tic_text(v, step), v)
    }
    return text
}

# The x axis of the part: x_low, x_high, x_log, and x_unit, the distance of two servers at the same value.
function x_axis(    i, n, first, last, widest, narrowest, gap) {
    n = level_count[x_name]
    first = level[x_name, 1]
    last = level[x_name, n]
    widest = 0
    narrowest = last - first
    for (i = 2; i <= n; i++) {
        gap = level[x_name, i] - level[x_name, i - 1]
        if (gap > widest) widest = gap
        if (gap < narrowest) narrowest = gap
    }
    x_log = first > 0 && widest / narrowest > 8
    if (x_log) {
        x_low = first * exp(-0.03 * log(last / first))
        x_high = last * exp(0.05 * log(last / first))
        x_unit = 0.006 * log(last / first)
    } else {
        x_low = first - 0.03 * (last - first)
        x_high = last + 0.04 * (last - first)
        x_unit = 0.0035 * (last - first)
    }
}

# Where a value lies on the x axis, from 0 to 1.
function x_share(v) { return x_log ? log(v / x_low) / log(x_high / x_low) : (v - x_low) / (x_high - x_low) }

# Which values get their number on an x axis of so many pixels: of many that follow each other every fifth or so; else first
# and last, then 1, 2 and 5 times a power of ten, then what there is room for.
function x_tics(pixels,    n, i, j, step, turn, digits, free, chosen, half, text) {
    n = level_count[x_name]
    step = n > 12 && !x_log ? nice_step(level[x_name, n] - level[x_name, 1], 6) : 0
    for (turn = 1; turn <= 3; turn++)
        for (i = n; i >= 1; i--) {
            digits = level[x_name, i] ""
            gsub(/[0.]/, "", digits)
            if (step ? (i > 1 && level[x_name, i] % step) : turn == 1 ? (i > 1 && i < n) : turn == 2 && digits !~ /^[125]$/) continue
            free = 1
            for (j = 1; j <= n; j++) {
                half = (length(thousands(level[x_name, i])) + length(thousands(level[x_name, j]))) / 2 * 8 + 6
                if (chosen[j] && (x_share(level[x_name, i]) - x_share(level[x_name, j])) ^ 2 * pixels ^ 2 < half ^ 2) free = 0
            }
            if (free) chosen[i] = 1
        }
    text = ""
    for (i = 1; i <= n; i++)
        if (chosen[i]) text = text (text == "" ? "" : ", ") sprintf("'%s' %s", thousands(level[x_name, i]), level[x_name, i])
    return text
}

# The names of the servers as numbers of a categorical axis, in lines where they are too long for their part of it; sets
# name_lines and name_width, in characters.
function name_tics(pixels, servers,    s, i, n, lines, name, text) {
    name_width = 0
    name_lines = 1
    for (s = 1; s <= servers; s++) if (length(level["server", s]) > name_width) name_width = length(level["server", s])
    if (name_width * 8 > pixels / servers) {
        name_width = 0
        for (s = 1; s <= servers; s++) {
            n = split(level["server", s], lines, "+")
            for (i = 1; i <= n; i++) if (length(lines[i]) + (i > 1) > name_width) name_width = length(lines[i]) + (i > 1)
            if (n > name_lines) name_lines = n
        }
    }
    text = ""
    for (s = 1; s <= servers; s++) {
        name = level["server", s]
        if (name_lines > 1) gsub(/\+/, "\\n+", name)
        text = text (s > 1 ? ", " : "") "\"" name "\" " s
    }
    return text
}

# Where server s of `servers` is drawn at this value: a little beside the others, so that the bars can be told apart.
function x_place(v, s, servers,    shift) {
    shift = (s - (servers + 1) / 2) * x_unit
    return x_log ? v * exp(shift) : v + shift
}

function place_of(s, x) {
    if (x_name == "") return s
    if (only) return x_place(x, s, 1)
    if (panel_group[panels]) return x_place(x, group_place[level["server", s]], group_size[panel_group[panels]])
    return x_place(x, s, level_count["server"])
}

# A figure is collected with figure_begin, panel_begin and point_add, and written by figure_end.
function figure_begin(name, kind, file, title, subtitle, y_title) {
    figure = name
    gsub(/[^A-Za-z0-9._~-]/, "_", figure)
    fig["kind"] = kind
    fig["file"] = file
    fig["title"] = title
    fig["subtitle"] = subtitle
    fig["y_title"] = y_title
    panels = 0
    split("", points)
    split("", point)
    split("", range)
    fig["theirs"] = 0
    split("", context)
    split("", panel_group)
    split("", panel_even)
    split("", panel_high)
    split("", panel_low)
    split("", panel_title)
    split("", last_point)
}

# A panel that stayed empty gives its place to the next.
function panel_begin(title) {
    panel_drop_empty()
    panel_title[++panels] = title
    panel_group[panels] = panel_even[panels] = 0
    context[panels] = ""
    panel_high[panels] = 0
    panel_low[panels] = 1e300
}

function panel_drop_empty() {
    if (panels && panel_low[panels] == 1e300) delete panel_title[panels--]
}

function point_add(s, x, place, y, low, high, hollow, text,    n) {
    n = ++points[panels, s]
    # Below zero there is nothing, and a logarithmic axis cannot show it.
    if (fig["theirs"] && low <= 0 && y > 0) low = y / 10
    point[panels, s, n] = sprintf("%.10g %.10g %.10g %.10g %d %s", place, y, low, high, hollow, double_quoted(text))
    last_point[panels, s] = y
    last_place[panels, s] = place
    if (high > panel_high[panels]) panel_high[panels] = high
    if (low < panel_low[panels]) panel_low[panels] = low
}

# The lines of a panel: the servers and, where it is known, what the report had.
function series_count() { return level_count["server"] + fig["theirs"] }
function series_name(s) { return s > level_count["server"] ? "report" : level["server", s] }

# Writes the figure. How: "zero" (y from zero, the same for all panels), "own" (from zero, each panel its own), "ratio" (around 1). What
# is far from what the report had needs a logarithmic axis ("log").
function figure_end(how, columns,    p, s, n, servers, path, rows, high, low, step, widest, categorical, y_log, pixels, tics_of_x, titled) {
    panel_drop_empty()
    if (!panels) return
    servers = series_count()
    categorical = x_name == ""
    if (columns > panels) columns = panels
    rows = int((panels + columns - 1) / columns)
    high = 0
    low = 1e300
    for (p = 1; p <= panels; p++) {
        if (panel_high[p] > high) high = panel_high[p]
        if (panel_low[p] < low) low = panel_low[p]
    }
    if (fig["theirs"] && low > 0 && high / low > 8) how = "log"
    if (how == "log") fig["subtitle"] = fig["subtitle"] " Logarithmic axis."
    if (how == "zero")
        for (p = 1; p <= panels; p++) if (panel_high[p] > 0 && panel_high[p] * 8 < high && !panel_group[p]) how = "own"
    if (how == "own" && panels > 1) fig["subtitle"] = fig["subtitle"] " Each panel has its own scale."
    path = out "/" figure ".dat"
    for (p = 1; p <= panels; p++)
        for (s = 1; s <= servers; s++) {
            if (!points[p, s]) print "NaN NaN NaN NaN 0 \"\"" > path
            for (n = 1; n <= points[p, s]; n++) print point[p, s, n] > path
            print "\n" > path
        }
    close(path)
    path = out "/" figure ".range"
    for (p = 1; p <= panels; p++) print (range[p] == "" ? "NaN NaN NaN\n" : range[p]) "\n" > path
    close(path)

    path = out "/" figure ".context"
    for (p = 1; p <= panels; p++) print (context[p] == "" ? "NaN NaN\n" : context[p]) "\n" > path
    close(path)

    path = out "/" figure ".gp"
    printf "" > path
    print "form = 'lines'\nkind = " quoted(fig["kind"]) > path
    print "title_text = " quoted(fig["title"]) > path
    print "subtitle_text = " quoted(fig["subtitle"]) > path
    print "part_text = " quoted(part_text[part]) > path
    print "x_title = " quoted(categorical ? "" : x_title(x_name)) > path
    print "y_title = " quoted(fig["y_title"]) > path
    printf "panels = %d\nrows = %d\ncolumns = %d\nservers = %d\n", panels, rows, columns, servers > path
    print "data = " quoted(figure ".dat") "\nlabels = " quoted(figure ".labels") "\nrange = " quoted(figure ".range") "\ncontext = " quoted(figure ".context") > path
    print "categorical = " categorical > path
    pixels = columns == 1 ? 660 : panel_group[1] ? 300 : columns == 2 ? 380 : 240
    name_lines = 1
    if (categorical) {
        x_low = 0.4
        x_high = servers + 0.8
        x_log = 0
        tics_of_x = name_tics(pixels, servers)
        if (pixels < servers * (name_width * 8 + 12)) pixels = servers * (name_width * 8 + 12)
    } else tics_of_x = x_tics(pixels)
    printf "x_low = %.10g\nx_high = %.10g\nx_log = %d\nset xtics (%s)\n", x_low, x_high, x_log, tics_of_x > path
    titled = 0
    for (p = 1; p <= panels; p++) if (panel_title[p] != "") titled = 1
    printf "panel_width = %d\nname_lines = %d\npanels_titled = %d\n", pixels, name_lines, titled > path
    print "names = " quoted(names_text()) > path
    printf "grouped = %d\narray tint[%d]\n", (panel_group[1] > 0), servers > path
    for (s = 1; s <= servers; s++) printf "tint[%d] = %d\n", s, (s > level_count["server"] ? 8 : panel_group[1] ? group_place[level["server", s]] : s) > path
    printf "theirs = %d\n", fig["theirs"] > path
    printf "array even[%d]\n", panels > path
    for (p = 1; p <= panels; p++) printf "even[%d] = %.10g\n", p, panel_even[p] > path
    printf "array panel_title[%d]\narray y_low[%d]\narray y_high[%d]\narray y_tics[%d]\n", panels, panels, panels, panels > path
    y_log = how == "log" || how == "ratio" && low > 0 && high / low > 4
    print "y_log = " y_log > path
    widest = 0
    for (p = 1; p <= panels; p++) {
        if (how == "ratio") ratio_range(low, high, y_log)
        else if (how == "log") log_range(low, high)
        else {
            range_high = (how == "own" ? panel_high[p] : high) * 1.06
            if (range_high <= 0) range_high = 1
            range_low = 0
            step = nice_step(range_high, 5)
            range_tics = tics(0, range_high, step)
        }
        printf "panel_title[%d] = %s\ny_low[%d] = %.10g\ny_high[%d] = %.10g\ny_tics[%d] = \"%s\"\n", p, quoted(panel_title[p]),
            p, range_low, p, range_high, p, range_tics > path
        n = labels_write(p, range_low, range_high, y_log, rows)
        if (n > widest) widest = n
    }
    print "label_width = " widest > path
    close(path)
    printf "%s\t%s\t%s\t%s\t%s\n", figure, fig["kind"], fig["file"],
        fig["title"] (part_text[part] == "" ? "" : ", " part_text[part]) ". " fig["subtitle"], part > (out "/list.tsv")
}

function names_text(    s, text) {
    text = ""
    for (s = 1; s <= series_count(); s++) text = text (s > 1 ? " " : "") series_name(s)
    return text
}

# Powers of ten, and what lies between them where they are few.
function log_range(low, high,    v, m, list, n, i, text) {
    range_low = low / 1.3
    range_high = high * 1.3
    n = split(high / low > 300 ? "1" : "1 2 5", list, " ")
    text = ""
    for (v = 0.001; v <= range_high; v *= 10)
        for (i = 1; i <= n; i++) {
            m = v * list[i]
            if (m >= range_low && m <= range_high) text = text (text == "" ? "" : ", ") sprintf("'%s' %.10g", tic_text(m, m < 1 ? m : 1), m)
        }
    range_tics = text
}

function ratio_range(low, high, y_log,    pad, step, i, v, list, n) {
    if (low > 1) low = 1
    if (high < 1) high = 1
    if (y_log) {
        pad = exp(0.06 * log(high / low))
        range_low = low / pad
        range_high = high * pad
        n = split(high / low > 1e6 ? "1e-08 1e-06 0.0001 0.01 1 100 10000 1e+06 1e+08" : high / low > 5000 ? "0.001 0.01 0.1 1 10 100 1000" : \
            "0.001 0.002 0.005 0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10 20 50 100 200 500 1000", list, " ")
        range_tics = ""
        for (i = 1; i <= n; i++)
            if (list[i] >= range_low && list[i] <= range_high)
                range_tics = range_tics (range_tics == "" ? "" : ", ") sprintf("'%s' %s", list[i], list[i])
        return
    }
    pad = (high - low) * 0.08
    if (high + pad < 1.03) high = 1.03 - pad
    if (low - pad > 0.97) low = 0.97 + pad
    range_low = low - pad
    range_high = high + pad
    if (range_low < 0) range_low = 0
    range_tics = tics(range_low, range_high, nice_step(range_high - range_low, 6))
}

# Writes the labels of a panel at the ends of its lines, pushed apart where they would collide. Returns the longest's length.
function labels_write(p, low, high, y_log, rows,    s, n, i, j, k, order, y, gap, text, path, widest, moved, top) {
    path = out "/" figure ".labels"
    widest = n = 0
    for (s = 1; s <= series_count(); s++) {
        if (!points[p, s]) continue
        order[++n] = s
        y[s] = y_log ? log(last_point[p, s] / low) / log(high / low) : (last_point[p, s] - low) / (high - low)
    }
    for (i = 2; i <= n; i++) {
        k = order[i]
        for (j = i; j > 1 && y[order[j - 1]] > y[k]; j--) order[j] = order[j - 1]
        order[j] = k
    }
    gap = (rows > 1 ? 0.085 : 0.056)
    if (!(x_name == "")) {
        # Two that are too near move apart by the same distance, again and again until none is too near.
        for (k = 1; k <= 200; k++) {
            moved = 0
            for (i = 2; i <= n; i++)
                if (y[order[i]] - y[order[i - 1]] < gap - 1e-6) {
                    j = (gap - y[order[i]] + y[order[i - 1]]) / 2
                    y[order[i]] += j
                    y[order[i - 1]] -= j
                    moved = 1
                }
            if (n && y[order[1]] < 0.02) { y[order[1]] = 0.02; moved = moved || k < 100 }
            if (!moved) break
        }
        for (i = 2; i <= n; i++) if (y[order[i]] < y[order[i - 1]] + gap) y[order[i]] = y[order[i - 1]] + gap
        top = 0.97
        for (i = n; i >= 1; i--) { if (y[order[i]] > top) y[order[i]] = top; top = y[order[i]] - gap }
    }
    if (!n) print "NaN NaN 1 \"\" NaN NaN" > path
    for (i = 1; i <= n; i++) {
        s = order[i]
        text = x_name == "" ? human(last_point[p, s]) : panel_group[p] ? group_label[level["server", s]] : series_name(s)
        printf "%.10g %.10g %d %s %.10g %.10g\n", x_name == "" ? s + 0.06 : x_high,
            y_log ? low * exp(y[s] * log(high / low)) : low + y[s] * (high - low), s, double_quoted(text),
            last_place[p, s], last_point[p, s] > path
        if (length(text) > widest) widest = length(text)
    }
    print "\n" > path
    if (p == panels) close(path)
    return widest
}

# Adds the points of one server in one slice of a summary column: mean with low and high as the columns say.
function add_series(s, first, value, low, high, spread, unit,    i, c, x, n, text, bar_low, bar_high) {
    n = x_name == "" ? 1 : level_count[x_name]
    for (i = 1; i <= n; i++) {
        c = x_name == "" ? cell_like(first, "server", level["server", s]) : at_level(first, level["server", s], i)
        if (!c || sum[c, value] == "-" || sum[c, value] == "") continue
        x = x_name == "" ? s : level[x_name, i]
        bar_low = bar_high = sum[c, value]
        if (spread != "" && sum[c, spread] != "-") { bar_low = sum[c, value] - sum[c, spread]; bar_high = sum[c, value] + sum[c, spread] }
        if (low != "" && sum[c, low] != "-") { bar_low = sum[c, low]; bar_high = sum[c, high] }
        text = level["server", s] (x_name == "" ? "" : ", " factor_value(x_name, x)) ": " human(sum[c, value]) \
            (spread != "" && sum[c, spread] != "-" ? " ± " human(sum[c, spread]) : "") " " unit " (" plural(sum[c, "n"], "run", "runs") \
            (client_bound(c) ? "; limited by the load generator" : "") ")"
        point_add(s, x, place_of(s, x), sum[c, value], bar_low, bar_high, client_bound(c), text)
    }
}

# Adds what the report had in one slice.
function add_theirs(first,    i, c, v, x) {
    for (i = 1; i <= level_count[x_name]; i++) {
        x = level[x_name, i]
        c = cell_like(first, x_name, x)
        if (!c || (v = theirs_of(c, "rps")) == "") continue
        point_add(level_count["server"] + 1, x, x, v, v, v, 0, "report, " factor_value(x_name, x) ": " human(v) " requests/s")
    }
}

# Whether the report had requests/s in a cell of the file.
function theirs_known(file,    c) {
    for (c = 1; c <= cell_count; c++) if (part_of[c] == part && cell[c, "file"] == file && theirs_of(c, "rps") != "") return 1
    return 0
}

function add_ratios(s, first,    i, c, k, x, f, key, n, base) {
    n = x_name == "" ? 1 : level_count[x_name]
    for (i = 1; i <= n; i++) {
        x = x_name == "" ? s : level[x_name, i]
        key = ""
        for (f = 2; f <= factor_count; f++) key = key "\t" (factor[f] == x_name ? x : cell[first, factor[f]])
        if (!(("cell", "rps", level["server", s], key) in comparison_at)) continue
        k = comparison_at["cell", "rps", level["server", s], key]
        point_add(s, x, place_of(s, x), comparison[k, "ratio"], comparison[k, "low"],
            comparison[k, "high"], comparison[k, "client_bound"] > 0,
            level["server", s] " / " baseline (x_name == "" ? "" : ", " factor_value(x_name, x)) ": " estimate_text(comparison[k, "ratio"], comparison[k, "low"], comparison[k, "high"]) ", 95% interval")
    }
}

function group_text(g, text) { return g ? group_title[g] (text == "" ? "" : ": " text) : text }

# A panel for a slice; of many servers, one for each group of them, with thin lines of all others behind it.
function server_panels(first, text, value, spread, unit,    g, s, i, c) {
    for (g = 0; g <= group_count; g++) {
        if (!g != !group_count) continue
        panel_begin(group_text(g, text))
        panel_group[panels] = g
        for (s = 1; s <= level_count["server"]; s++) {
            if (!g || group_of[level["server", s]] == g) { add_series(s, first, value, "", "", spread, unit); continue }
            for (i = 1; i <= level_count[x_name]; i++) {
                c = at_level(first, level["server", s], i)
                if (c && sum[c, value] != "-") context[panels] = context[panels] sprintf("%s %.10g\n", level[x_name, i], sum[c, value])
            }
            context[panels] = context[panels] "\n"
        }
    }
}

# The cell like another one, of this server, at the i-th value of the x axis; 0 if there is none.
function at_level(first, server, i) {
    return cell_of(first, server, level[x_name, i])
}

# The share of the busiest worker of each crew, in percent, and what it would be if all had the same.
function busiest_figure(file, base, of, slices, first, text, columns,    i, p, known) {
    for (i = 1; i <= cell_count; i++) {
        sum[i, "busiest_percent"] = sum[i, "busiest"] == "" || sum[i, "busiest"] == "-" ? "-" : 100 * sum[i, "busiest"]
        if (part_of[i] == part && sum[i, "busiest_percent"] != "-") known = 1
    }
    if (!known) return
    figure_begin(base "busiest", "busiest", file, "Requests that the busiest worker of a crew answered" of,
        "Share of all, mean of " runs_said() "; dashed: where all workers do the same.", "percent")
    for (i = 1; i <= slices; i++) {
        server_panels(first[i], text[i], "busiest_percent", "", "%")
        for (p = 1; p <= panels; p++) context[p] = ""
    }
    panel_drop_empty()
    for (p = 1; p <= panels; p++) panel_even[p] = even_of(p)
    figure_end("zero", columns)
}

# The memory of an idle connection, where it was measured; over a wide range, so that its axis may be logarithmic.
function idle_figure(file, base, of, slices, first, text, columns,    i, known) {
    for (i = 1; i <= cell_count; i++) {
        if (!(sum[i, "idle_kib"] > 0)) sum[i, "idle_kib"] = "-"
        else if (part_of[i] == part) known = 1
    }
    if (!known) return
    figure_begin(base "idle-memory", "idle", file, "Memory of an idle connection",
        "Proportional set size of the server, mean of " runs_said() ". Less is better.", "KiB")
    for (i = 1; i <= slices; i++) server_panels(first[i], text[i], "idle_kib", "", "KiB")
    figure_end("ratio", columns)
}

# The even share of the crews of a panel in percent; 0 where they are not of the same size.
function even_of(p,    s, c, workers) {
    workers = 0
    for (c = 1; c <= cell_count; c++) {
        if (part_of[c] != part || sum[c, "busiest_percent"] == "-") continue
        for (s = 1; s <= level_count["server"]; s++) {
            if (level["server", s] != cell[c, "server"] || !points[p, s]) continue
            if (workers && workers != sum[c, "workers"]) return 0
            workers = sum[c, "workers"]
        }
    }
    return workers ? 100 / workers : 0
}

# Adds a bar to the figure of bars: the CPU time per request of a server in the slice of cell c. Returns whether there is one.
function bar_add(server, c, name, tint,    key) {
    key = average_key(c)
    if (!(("server_cpu_us", server, key, "mean") in average)) return 0
    bar[++bars, "name"] = name
    bar[bars, "mean"] = average["server_cpu_us", server, key, "mean"] + 0
    bar[bars, "low"] = average["server_cpu_us", server, key, "low"] + 0
    bar[bars, "high"] = average["server_cpu_us", server, key, "high"] + 0
    bar[bars, "tint"] = tint
    bars_blocks = average["server_cpu_us", server, key, "blocks"]
    return 1
}

# Puts the last bar where it belongs: the cheapest first.
function bar_sort(    j, k, n, fields, keep) {
    n = split("name mean low high tint", fields, " ")
    for (j = bars; j > 1 && bar[j - 1, "mean"] > bar[j, "mean"]; j--)
        for (k = 1; k <= n; k++) { keep = bar[j, fields[k]]; bar[j, fields[k]] = bar[j - 1, fields[k]]; bar[j - 1, fields[k]] = keep }
}

# Writes that figure, with a legend of legend_name and legend_tint.
function bars_write(name, kind, file, of, part_words, legends,    i, high, most, widest, v, path, title, subtitle, step) {
    if (bars < 2) return
    figure = name
    gsub(/[^A-Za-z0-9._~-]/, "_", figure)
    high = most = widest = 0
    for (i = 1; i <= bars; i++) {
        if (bar[i, "high"] > high) high = bar[i, "high"]
        if (bar[i, "mean"] > most) most = bar[i, "mean"]
        if (length(bar[i, "name"]) > widest) widest = length(bar[i, "name"])
    }
    # One whose interval is far wider than all bars are long does not set the scale.
    if (high > 1.5 * most) high = 1.5 * most
    path = out "/" figure ".dat"
    for (i = 1; i <= bars; i++) {
        v = bar[i, "high"]
        printf "%d %.10g %.10g %.10g %d %s\n", i, bar[i, "mean"], bar[i, "low"], (v > high ? high : v), bar[i, "tint"],
            double_quoted(bar[i, "name"] ": " estimate_text(bar[i, "mean"], bar[i, "low"], v) " µs/request") > path
    }
    close(path)
    path = out "/" figure ".gp"
    title = "Server CPU per request" of
    subtitle = "Less is better. Geometric mean" (x_name == "" ? "" : " over " thousands(level_count[x_name]) " levels of " x_name) ", with its 95% interval from " plural(bars_blocks, "block", "blocks") "."
    printf "kind = 'bars'\ntitle_text = %s\nsubtitle_text = %s\npart_text = %s\n", quoted(title), quoted(subtitle), quoted(part_words) > path
    printf "x_title = 'microseconds of CPU per request'\nbars = %d\nname_width = %d\ndata = %s\n", bars, widest, quoted(figure ".dat") > path
    step = nice_step(high, 6)
    printf "x_high = %.10g\nx_tics = \"%s\"\n", high * 1.02, tics(0, high * 1.02, step) > path
    printf "array name[%d]\narray value[%d]\n", bars, bars > path
    for (i = 1; i <= bars; i++) printf "name[%d] = %s\nvalue[%d] = %s\n", i, quoted(bar[i, "name"]), i, quoted(human(bar[i, "mean"])) > path
    printf "groups = %d\narray group_name[%d]\narray group_tint[%d]\n", legends, legends, legends > path
    for (i = 1; i <= legends; i++) printf "group_name[%d] = %s\ngroup_tint[%d] = %d\n", i, quoted(legend_name[i]), i, legend_tint[i] > path
    close(path)
    printf "%s\t%s\t%s\t%s\t%s\n", figure, kind, file, title (part_text[part] == "" ? "" : ", " part_text[part]) ". " subtitle, part > (out "/list.tsv")
}

# One bar a server, the cheapest first, averaged over the x axis.
function bars_figure(file, base, of, first, text,    s, i) {
    bars = 0
    for (s = 1; s <= level_count["server"]; s++)
        if (bar_add(level["server", s], first, level["server", s], group_tint(group_of[level["server", s]]))) bar_sort()
    for (i = 1; i <= group_count; i++) {
        legend_name[i] = group_title[i]
        sub(/, by .*/, "", legend_name[i])
        legend_tint[i] = group_tint(i)
    }
    bars_write(base, "bars", file, of, part_text[part] text, group_count)
}

# A bar for each server in each slice, in their order, where nothing is left for an x axis: ways to speak beside each other.
function ways_figure(file, base, of, slices, first, text,    i, s, c) {
    bars = 0
    for (i = 1; i <= slices; i++)
        for (s = 1; s <= level_count["server"]; s++) bar_add(level["server", s], first[i], text[i] "  " level["server", s], s)
    for (s = 1; s <= level_count["server"]; s++) { legend_name[s] = level["server", s]; legend_tint[s] = s }
    bars_write(base, "ways", file, of, part_text[part], level_count["server"])
}

# The colour of a group: grey the bare models, dark the servers of others.
function group_tint(g,    i, n) {
    if (group_title[g] ~ /^bare/) return 7
    if (group_title[g] ~ /^other/) return 8
    for (i = 1; i <= g; i++) if (group_title[i] !~ /^(bare|other)/) n++
    return (n - 1) % 6 + 1
}

# How many runs a point of the part stands for: "8 runs", or "3 to 8 runs".
function runs_said(    i, few, many) {
    few = many = 0
    for (i = 1; i <= cell_count; i++) {
        if (part_of[i] != part || !(sum[i, "n"] > 0)) continue
        if (!few || sum[i, "n"] + 0 < few) few = sum[i, "n"] + 0
        if (sum[i, "n"] + 0 > many) many = sum[i, "n"] + 0
    }
    return (few < many ? few " to " : "") plural(many, "run", "runs")
}

# Of a file: all figures.
function figures_of(file, base,    slices, first, text, i, s, g, m, of, count, hollow_text, columns) {
    slices = slices_of(file, first, text)
    of = (file == "-" || file == "" ? "" : ", " file_text(file))
    count = level_count["server"]
    hollow_text = any_bound ? " Hollow: limited by the load generator." : ""
    if (group_count) {
        averages_load(dir "/averages.tsv", part)
        for (i = 1; i <= slices; i++) bars_figure(file, base "bars" (slices > 1 ? "-" i : ""), of, first[i], text[i])
    }
    else if (x_name == "" && slices > 1 && count <= 8 && study["figure"] == "ways") {
        averages_load(dir "/averages.tsv", part)
        ways_figure(file, base "ways", of, slices, first, text)
    }
    # On an axis of servers there is a place for each.
    if (x_name == "") group_count = 0
    columns = slices > 4 && !group_count ? 3 : 2

    figure_begin(base "requests", "requests", file, "Requests per second" of,
        "Mean and standard deviation of " runs_said() "." hollow_text, "requests/s")
    fig["theirs"] = x_name != "" && !group_count && theirs_known(file)
    if (fig["theirs"]) fig["subtitle"] = fig["subtitle"] " Dashed: the report."
    for (i = 1; i <= slices; i++) {
        server_panels(first[i], text[i], "rps_mean", "rps_sd", "requests/s")
        if (fig["theirs"]) add_theirs(first[i])
    }
    figure_end("zero", columns)

    # Of many servers each is seen in its panel, with all others behind it.
    for (s = 1; s <= count && x_name != "" && count > 1 && !group_count; s++) {
        only = 1
        figure_begin(base "requests-" level["server", s], "alone", file, "Requests per second" of ": " level["server", s],
            "Mean and standard deviation of " runs_said() "; shaded: fastest to slowest run." hollow_text, "requests/s")
        for (i = 1; i <= slices; i++) {
            panel_begin(text[i])
            add_series(s, first[i], "rps_mean", "", "", "rps_sd", "requests/s")
            add_range(s, first[i])
        }
        figure_end("zero", columns)
        only = 0
    }

    figure_begin(base "cpu", "cpu", file, "Server CPU per request" of,
        "Mean and standard deviation of " runs_said() ", the whole process tree. Less is better." hollow_text, "microseconds/request")
    for (i = 1; i <= slices; i++) server_panels(first[i], text[i], "server_cpu_us_mean", "server_cpu_us_sd", "µs/request")
    figure_end("zero", columns)

    if (group_count) group_times(file, base, of, hollow_text, slices, first, text, columns)
    else time_figure(file, base, "Time of a request" of, hollow_text, slices, first, text)
    busiest_figure(file, base, of, slices, first, text, columns)
    idle_figure(file, base, of, slices, first, text, columns)

    if (count > 1) {
        figure_begin(base "ratio", "ratio", file, "Requests per second relative to " baseline of,
            "Ratio within blocks with its 95% interval; the line at 1 is " baseline "." hollow_text, "ratio")
        for (i = 1; i <= slices; i++) {
            for (g = 0; g <= group_count; g++) {
                if (!g != !group_count) continue
                panel_begin(group_text(g, text[i]))
                panel_group[panels] = g
                for (s = 1; s <= count; s++)
                    if (level["server", s] != baseline && (!g || group_of[level["server", s]] == g)) add_ratios(s, first[i])
            }
        }
        figure_end("ratio", columns)
    }

    figure_begin(base "memory", "memory", file, "Peak memory of the server" of,
        "Largest of the process tree in a run, mean of " runs_said() ".", "MiB")
    for (i = 1; i <= cell_count; i++) sum[i, "peak_mib"] = sum[i, "peak_kib"] == "-" ? "-" : sum[i, "peak_kib"] / 1024
    for (i = 1; i <= slices; i++) server_panels(first[i], text[i], "peak_mib", "", "MiB")
    figure_end("zero", columns)
}

# The same for groups: a figure each for the median and for the slowest in a hundred.
function group_times(file, base, of, hollow_text, slices, first, text, columns,    i) {
    figure_begin(base "time-median", "time", file, "Time of a request, median" of, "Mean over " runs_said() "." hollow_text, "milliseconds")
    for (i = 1; i <= slices; i++) server_panels(first[i], text[i], "p50_ms", "", "ms")
    figure_end("zero", columns)
    figure_begin(base "time-p99", "time", file, "Time of a request, 99th percentile" of, "Mean over " runs_said() "." hollow_text, "milliseconds")
    for (i = 1; i <= slices; i++) server_panels(first[i], text[i], "p99_ms", "", "ms")
    figure_end("zero", columns)
}

# Percentiles of the time of a request; where the load generator knows none, its mean.
function time_figure(file, base, title, hollow_text, slices, first, text,    i, p, s, columns, column, name, known) {
    for (i = 1; i <= cell_count; i++) if (part_of[i] == part && cell[i, "file"] == file && sum[i, "p95_ms"] != "-") known = 1
    columns = split(known ? "p50_ms p95_ms p99_ms" : "mean_ms", column, " ")
    split(!known ? "" : slices == 1 ? "median|95th percentile|99th percentile" : "median|p95|p99", name, "|")
    figure_begin(base "time", "time", file, title,
        (known ? "Percentiles" : "Mean") " of each run, mean over " runs_said() "." hollow_text, "milliseconds")
    for (i = 1; i <= slices; i++)
        for (p = 1; p <= columns; p++) {
            panel_begin(name[p] (name[p] == "" || text[i] == "" ? "" : ": ") text[i])
            for (s = 1; s <= level_count["server"]; s++) add_series(s, first[i], column[p], "", "", "", "ms")
        }
    figure_end("own", 3)
}

# Adds the range from the slowest to the fastest run of a server.
function add_range(s, first,    i, c, v) {
    for (i = 1; i <= level_count[x_name]; i++) {
        v = level[x_name, i]
        c = at_level(first, level["server", s], i)
        if (!c || sum[c, "rps_min"] == "-") continue
        range[panels] = range[panels] sprintf("%s %.10g %.10g\n", v, sum[c, "rps_min"], sum[c, "rps_max"])
        if (sum[c, "rps_max"] > panel_high[panels]) panel_high[panels] = sum[c, "rps_max"]
    }
}

BEGIN {
    printf "" > (out "/list.tsv")
    study_load(dir "/study.txt")
    theirs_load()
    summary_load(dir "/summary.tsv")
    comparisons_load(dir "/comparisons.tsv")
    for (p = 1; p <= part_count; p++) {
        part_enter(p)
        any_bound = 0
        for (i = 1; i <= cell_count; i++) if (part_of[i] == p && client_bound(i)) any_bound = 1
        if (x_name != "" && study_kind() == "") x_axis()
        groups_find()
        for (i = 1; i <= level_count["file"]; i++) {
            base = level["file", i]
            sub(/\.[a-z]+$/, "", base)
            if (study_kind() != "") { dots_of(level["file", i], base == "-" ? "" : base "-"); continue }
            figures_of(level["file", i], (base == "-" ? "" : base "-") (part_count > 1 ? "part" p "-" : ""))
        }
    }
}
