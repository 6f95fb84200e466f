# averages.awk: runs.tsv (standard input) -> averages.tsv (standard output), one row a server and slice. See compare.sh.

function number(v) { return sprintf("%.6g", v) }

# The factors of a slice: those of a cell, with `*` for what is averaged over.
function slice_key(c,    f, key) {
    key = ""
    for (f = 2; f <= factor_count; f++) key = key "\t" (factor[f] == x_name ? "*" : cell[c, factor[f]])
    return key
}

function add_row(measure, server, key, used, bound, middle, low, high) {
    printf "%d\t%s\t%s%s\t%d\t%d\t%d\t%s\t%s\t%s\n", part, measure, server, key, used, bound, test["blocks"], number(middle), number(low), number(high)
}

# The geometric mean of a measure over the cells[1..n] of one server, each block by itself first.
function add_mean(measure, server, key, cells, n,    i, used, bound) {
    used = bound = 0
    for (i = 1; i <= n; i++) if (has_data(cells[i], measure)) used++
    contrast_begin()
    for (i = 1; i <= n; i++) {
        if (!has_data(cells[i], measure)) continue
        contrast_add(cells[i], 1 / used)
        if (client_bound(cells[i])) bound++
    }
    if (contrast_test(measure, test)) add_row(measure, server, key, used, bound, test["ratio"], test["ratio_low"], test["ratio_high"])
}

# The process control of a server, as contrast.awk has it, in microseconds.
function add_control(server, key, cells, n,    b, v, values, used) {
    used = 0
    for (b = 1; b <= blocks; b++) if ((v = control_cost(server, cells, n, b)) != "") values[++used] = v
    if (used < 2) return
    paired_test(values, used, test)
    test["blocks"] = used
    add_row("control_us", server, key, n, 0, test["estimate"], test["low"], test["high"])
}

BEGIN {
    study_load(dir "/study.txt")
    runs_load("-")
    measure_count = split("rps server_cpu_us", measure, " ")
    printf "part\tmeasure\tserver"
    for (f = 2; f <= factor_count; f++) printf "\t%s", factor[f]
    print "\tcells\tclient_bound\tblocks\tmean\tlow\thigh"
    for (p = 1; p <= part_count; p++) {
        part_enter(p)
        for (s = 1; s <= level_count["server"]; s++) {
            slices = 0
            split("", size)
            for (c = 1; c <= cell_count; c++) {
                if (part_of[c] != part || cell[c, "server"] != level["server", s]) continue
                key = slice_key(c)
                if (!(key in size)) slice[++slices] = key
                members[key, ++size[key]] = c
            }
            for (i = 1; i <= slices; i++) {
                split("", cells)
                if (lacks_levels(level["server", s], members[slice[i], 1])) continue
                for (c = 1; c <= size[slice[i]]; c++) cells[c] = members[slice[i], c]
                for (m = 1; m <= measure_count; m++) add_mean(measure[m], level["server", s], slice[i], cells, size[slice[i]])
                add_control(level["server", s], slice[i], cells, size[slice[i]])
            }
        }
    }
    exit
}
