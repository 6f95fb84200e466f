# summary.awk: runs.tsv (standard input) -> summary.tsv (standard output), one row a cell. See summary.sh.

function number(v) { return v == "-" ? "-" : sprintf("%.6g", v) }

# Collects a column of the valid runs of cell c into values; returns how many have it.
function collect_values(c, name, values,    b, i, n) {
    n = 0
    split("", values)
    for (b = 1; b <= blocks; b++) {
        if (!((c, b) in run_at)) continue
        i = run_at[c, b]
        if (run[i, "valid"] == "yes" && run[i, name] != "-" && run[i, name] != "") values[++n] = run[i, name] + 0
    }
    return n
}

# In studies of what happens to others also what it was: smallest, middle and largest value of each, and how often a server
# could not hold the connections, or was never served again. At most so many are held (the median) where not all can be.
function outcome_head(    i) {
    outcomes = study_kind() == "" ? 0 : split("rps p99_ms max_ms peak_kib held each_kib cut lost unanswered again_ms", outcome, " ")
    for (i = 1; i <= outcomes; i++) printf "\t%s_least\t%s_middle\t%s_most", outcome[i], outcome[i], outcome[i]
    if (outcomes) printf "\tn_cannot\theld_of_cannot\tn_never"
}

function outcome_row(c,    i, b, n, never, words, counts) {
    for (i = 1; i <= outcomes; i++) {
        describe(values, collect_outcome(c, outcome[i], values), out)
        printf "\t%s\t%s\t%s", number(out["min"]), number(out["median"]), number(out["max"])
    }
    if (!outcomes) return
    n = never = 0
    split("", counts)
    for (b = 1; b <= blocks; b++) {
        if (!((c, b) in run_at)) continue
        if (run[run_at[c, b], "again_ms"] == "never") never++
        # "cannot hold: 8 of 100"
        if (split(run[run_at[c, b], "valid"], words, " ") == 5 && words[1] == "cannot") counts[++n] = words[3]
    }
    describe(counts, n, out)
    printf "\t%d\t%s\t%d", cannot[c], number(out["median"]), never
}

# A column of numbers; what is no number, as `never`, is left out.
function collect_outcome(c, name, values,    b, i, n) {
    n = 0
    split("", values)
    for (b = 1; b <= blocks; b++) {
        if (!((c, b) in run_at)) continue
        i = run_at[c, b]
        if (run[i, "valid"] == "yes" && run[i, name] ~ /^[0-9.]+$/) values[++n] = run[i, name] + 0
    }
    return n
}

BEGIN {
    study_load(dir "/study.txt")
    runs_load("-")
    full_count = split("rps server_cpu_us", full, " ")
    means_count = split("mean_ms sd_ms min_ms p50_ms p90_ms p95_ms p99_ms max_ms seconds kbytes_s voluntary involuntary peak_kib load_cpu" \
        (has_level("scheme", "udp") ? " lost" : "") ("busiest" in column ? " workers busiest" : "") ("idle_kib" in column ? " idle_kib" : ""), means, " ")
    split("n mean sd median low high min max", parts, " ")

    for (f = 1; f <= factor_count; f++) printf "%s\t", factor[f]
    printf "n\tn_invalid"
    for (i = 1; i <= full_count; i++) for (j = 2; j <= 8; j++) printf "\t%s_%s", full[i], parts[j]
    for (i = 1; i <= means_count; i++) printf "\t%s", means[i]
    printf "\tpeak_kib_max\tclient_bound"
    outcome_head()
    print ""

    for (c = 1; c <= cell_count; c++) {
        n = invalid = 0
        for (b = 1; b <= blocks; b++)
            if ((c, b) in run_at) {
                if (run[run_at[c, b], "valid"] == "yes") n++
                else if (cannot_hold(run[run_at[c, b], "valid"])) cannot[c]++
                else invalid++
            }
        printf "%s\t%d\t%d", cell_key[c], n, invalid
        for (i = 1; i <= full_count; i++) {
            describe(values, collect_values(c, full[i], values), out)
            for (j = 2; j <= 8; j++) printf "\t%s", number(out[parts[j]])
        }
        peak = "-"
        for (i = 1; i <= means_count; i++) {
            describe(values, collect_values(c, means[i], values), out)
            printf "\t%s", number(out["mean"])
            if (means[i] == "peak_kib") peak = out["max"]
        }
        printf "\t%s\t%s", number(peak), client_bound(c) ? "yes" : "no"
        outcome_row(c)
        print ""
    }
    exit
}
