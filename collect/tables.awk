# tables.awk: reads summary.tsv and comparisons.tsv. Functions only; needs study.awk, after study_load.

# Reads summary.tsv as the cells of the study: cell_count, cell[c, factor], levels, x_name and baseline as runs_load sets
# them, and sum[c, column]; client_bound(c) answers from it.
function summary_load(path,    line, names, fields, columns, n, i, c, f) {
    if ((getline line < path) <= 0) fail("cannot read " path)
    columns = split(line, names, "\t")
    for (i = 1; i <= columns; i++) summary_column[names[i]] = i
    factors_drop(summary_column)
    while ((getline line < path) > 0) {
        split(line, fields, "\t")
        c = ++cell_count
        for (i = 1; i <= columns; i++) sum[c, names[i]] = fields[i]
        cell_key[c] = ""
        for (f = 1; f <= factor_count; f++) {
            n = sum[c, factor[f]]
            cell[c, factor[f]] = n
            cell_key[c] = cell_key[c] (f > 1 ? "\t" : "") n
            if (!level_seen[factor[f], n]++) level[factor[f], ++level_count[factor[f]]] = n
        }
        cell_at[cell_key[c]] = c
        client_bound_known[c] = sum[c, "client_bound"] == "yes"
    }
    close(path)
    levels_sort()
    study_known()
}

# Reads comparisons.tsv: comparison[i, column], i = 1..comparison_count; comparison_at[scope, measure, server, slice] with
# the slice the factors but the server, joined by tabs.
function comparisons_load(path,    line, names, fields, columns, i, f, key) {
    if ((getline line < path) <= 0) fail("cannot read " path)
    columns = split(line, names, "\t")
    while ((getline line < path) > 0) {
        split(line, fields, "\t")
        comparison_count++
        for (i = 1; i <= columns; i++) comparison[comparison_count, names[i]] = fields[i]
        key = ""
        for (f = 2; f <= factor_count; f++) key = key "\t" comparison[comparison_count, factor[f]]
        comparison_at[fields[1], fields[2], fields[3], key] = comparison_count
    }
    close(path)
}

# Reads averages.tsv: average[measure, server, slice, column] with the slice the factors but the server, joined by tabs, of part p.
function averages_load(path, p,    line, names, fields, columns, i, f, key, at) {
    split("", average)
    if ((getline line < path) <= 0) fail("cannot read " path)
    columns = split(line, names, "\t")
    for (i = 1; i <= columns; i++) at[names[i]] = i
    while ((getline line < path) > 0) {
        split(line, fields, "\t")
        if (fields[at["part"]] != p) continue
        key = ""
        for (f = 2; f <= factor_count; f++) key = key "\t" fields[at[factor[f]]]
        for (i = 1; i <= columns; i++) average[fields[at["measure"]], fields[at["server"]], key, names[i]] = fields[i]
    }
    close(path)
}

# The slice of averages.tsv that a cell belongs to.
function average_key(c,    f, key) {
    key = ""
    for (f = 2; f <= factor_count; f++) key = key "\t" (factor[f] == x_name ? "*" : cell[c, factor[f]])
    return key
}

# The slices of the part: combinations of the factors that vary beside the server, the x axis and, if `each_file`, those of one file.
# Into slice_first[1..n] a cell of each, slice_text its name; returns n.
function slices_of(file, slice_first, slice_text,    c, f, name, key, text, seen, n) {
    n = 0
    for (c = 1; c <= cell_count; c++) {
        if (part_of[c] != part) continue
        if (file != "" && cell[c, "file"] != file) continue
        key = text = ""
        for (f = 2; f <= factor_count; f++) {
            name = factor[f]
            if (name == x_name || level_count[name] < 2 || (file != "" && name == "file")) continue
            key = key "\t" cell[c, name]
            text = with_comma(text, factor_value(name, cell[c, name], cell[c, "load"]))
        }
        if (key in seen) continue
        seen[key] = 1
        slice_first[++n] = c
        slice_text[n] = text
    }
    return n
}

# Memory for each connection that is held in cell c, in KiB; "-" if unknown: what it grew by while they came; else the
# peak beyond that of the cell without them.
function memory_each(c,    base) {
    if (sum[c, "each_kib_middle"] ~ /^[0-9.]+$/ && sum[c, "each_kib_middle"] > 0) return sum[c, "each_kib_middle"]
    base = cell_like(c, x_name, level[x_name, 1])
    if (!base || base == c || sum[c, "peak_kib"] == "-" || sum[base, "peak_kib"] == "-") return "-"
    return (sum[c, "peak_kib"] - sum[base, "peak_kib"]) / (cell[c, x_name] - cell[base, x_name])
}
