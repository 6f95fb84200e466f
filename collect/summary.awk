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

BEGIN {
    study_load(dir "/study.txt")
    runs_load("-")
    full_count = split("rps server_cpu_us", full, " ")
    means_count = split("mean_ms sd_ms min_ms p50_ms p90_ms p95_ms p99_ms max_ms seconds kbytes_s voluntary involuntary peak_kib load_cpu" \
        ("busiest" in column ? " workers busiest" : ""), means, " ")
    split("n mean sd median low high min max", parts, " ")

    for (f = 1; f <= factor_count; f++) printf "%s\t", factor[f]
    printf "n\tn_invalid"
    for (i = 1; i <= full_count; i++) for (j = 2; j <= 8; j++) printf "\t%s_%s", full[i], parts[j]
    for (i = 1; i <= means_count; i++) printf "\t%s", means[i]
    print "\tpeak_kib_max\tclient_bound"

    for (c = 1; c <= cell_count; c++) {
        n = invalid = 0
        for (b = 1; b <= blocks; b++)
            if ((c, b) in run_at) {
                if (run[run_at[c, b], "valid"] == "yes") n++
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
        printf "\t%s\t%s\n", number(peak), client_bound(c) ? "yes" : "no"
    }
    exit
}
