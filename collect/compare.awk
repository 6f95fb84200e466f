# compare.awk: runs.tsv (standard input) -> comparisons.tsv (standard output), one row a comparison. See compare.sh.

function number(v) { return v == "-" ? "-" : sprintf("%.6g", v) }

# The key of a slice: the factors of a cell with `*` for those that are averaged over, without the server.
function slice_key(c, scope,    f, key) {
    key = ""
    for (f = 2; f <= factor_count; f++)
        key = key "\t" (scope == "cell" || level_count[factor[f]] == 1 || (scope == "x" && factor[f] != x_name) ? cell[c, factor[f]] : "*")
    return key
}

# Adds the comparisons of one scope: one for each slice, each server but the baseline and each measure.
function compare_scope(scope,    m, s, c, i, server, key, slices, slice, members, size, used, bound) {
    for (c = 1; c <= cell_count; c++) {
        if (part_of[c] != part) continue
        key = slice_key(c, scope)
        if (!(key in size)) slice[++slices] = key
        members[key, ++size[key]] = c
    }
    for (m = 1; m <= measure_count; m++)
        for (s = 1; s <= level_count["server"]; s++) {
            server = level["server", s]
            if (server == baseline) continue
            for (i = 1; i <= slices; i++) {
                split("", cells)
                for (c = 1; c <= size[slice[i]]; c++) cells[c] = members[slice[i], c]
                used = contrast_servers(server, baseline, cells, size[slice[i]], measure[m])
                bound = 0
                for (c = 1; c < contrast_size; c += 2)
                    if (client_bound(contrast_cell[c]) || client_bound(contrast_cell[c + 1])) bound++
                if (contrast_test(measure[m], test)) add_row(scope, measure[m], server, slice[i], used, bound)
            }
        }
}

# Each server against itself without the clients that hold connections, in every slice.
function compare_held(    m, s, c, base, i) {
    for (m = 1; m <= measure_count; m++)
        for (c = 1; c <= cell_count; c++) {
            if (part_of[c] != part || cell[c, x_name] == level[x_name, 1]) continue
            base = cell_like(c, x_name, level[x_name, 1])
            if (!base || !has_data(c, measure[m]) || !has_data(base, measure[m])) continue
            contrast_begin()
            contrast_add(c, 1)
            contrast_add(base, -1)
            baseline = cell[c, "server"]
            if (contrast_test(measure[m], test))
                add_row("cell", measure[m], cell[c, "server"], slice_key(c, "cell"), 1, client_bound(c) || client_bound(base))
        }
}

function add_row(scope, measure, server, key, used, bound) {
    rows++
    row_head[rows] = scope "\t" measure "\t" server "\t" baseline key
    row_scope[rows] = scope
    row_cells[rows] = used
    row_bound[rows] = bound
    row_estimate[rows] = test["estimate"]
    row_error[rows] = test["error"]
    row_df[rows] = test["df"]
    row_p[rows] = test["p"]
    row_t[rows] = test["t"]
    row_text[rows] = test["blocks"] "\t" number(test["ratio"]) "\t" number(test["ratio_low"]) "\t" number(test["ratio_high"])
    family[scope]++
}

# Adjusts the p-values of each scope, a family of its own, and prints its rows.
function print_scope(scope,    i, n, p, of) {
    n = 0
    for (i = 1; i <= rows; i++) if (row_scope[i] == scope) { p[++n] = row_p[i]; of[n] = i }
    if (n) holm(p, n, adjusted)
    for (i = 1; i <= n; i++) {
        test["estimate"] = row_estimate[of[i]]
        test["error"] = row_error[of[i]]
        test["df"] = row_df[of[i]]
        contrast_widen(test, n)
        printf "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row_head[of[i]], row_cells[of[i]], row_bound[of[i]], row_text[of[i]],
            number(row_t[of[i]]), number(row_p[of[i]]), number(adjusted[i]),
            number(test["all_low"]), number(test["all_high"]),
            (adjusted[i] >= 0.05 ? "not shown" : row_estimate[of[i]] > 0 ? "higher" : "lower")
    }
}

BEGIN {
    study_load(dir "/study.txt")
    runs_load("-")
    measure_count = split("rps server_cpu_us", measure, " ")
    printf "scope\tmeasure\tserver\tbaseline"
    for (f = 2; f <= factor_count; f++) printf "\t%s", factor[f]
    print "\tcells\tclient_bound\tblocks\tratio\tlow\thigh\tt\tp\tp_holm\tall_low\tall_high\tdifference"
    for (p = 1; p <= part_count; p++) {
        part_enter(p)
        if (study_kind() == "held") {
            measure_count = split("rps server_cpu_us p99_ms peak_kib", measure, " ")
            compare_held()
            continue
        }
        if (study_kind() == "fault") continue
        compare_scope("cell")
        if (x_name != "") compare_scope("x")
        compare_scope("all")
    }
    print_scope("cell")
    print_scope("x")
    print_scope("all")
    exit
}
