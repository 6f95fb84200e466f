# threats.awk: runs.tsv (standard input) -> threats.tsv (standard output): what could be wrong with the study, in numbers. See
# threats.sh.

function row(name, subject, value, low, high, of) {
    printf "%s\t%s\t%s\t%s\t%s\t%s\n", name, subject, value, low, high, of
}

function number(v) { return sprintf("%.6g", v) }

# The mean of the logarithms of a cell's requests/s over its valid runs, and their number.
function cell_means(    c, b, v) {
    for (c = 1; c <= cell_count; c++) {
        for (b = 1; b <= blocks; b++)
            if ((v = measured(c, b, "rps")) != "") { residual[c, b] = log(v); mean[c] += log(v); count[c]++ }
        for (b = 1; b <= blocks; b++)
            if ((c, b) in residual) residual[c, b] -= mean[c] / count[c]
    }
}

# The change of a server's requests/s from the first block to the last: a line through the blocks' mean residuals. Cells that are in the
# first blocks alone have another mean behind their residuals, and tell nothing of the last.
function drift(server,    b, c, n, sum, points, x, y, line, half, span) {
    points = 0
    for (b = 1; b <= blocks; b++) {
        n = sum = 0
        for (c = 1; c <= cell_count; c++)
            if (cell[c, "server"] == server && !in_first_blocks(c) && (c, b) in residual) { sum += residual[c, b]; n++ }
        if (n) { x[++points] = b; y[points] = sum / n }
    }
    if (points < 3) return
    line_fit(x, y, points, line)
    span = x[points] - x[1]
    half = t_quantile(0.975, line["df"]) * line["slope_error"] * span
    row("drift", server, number(exp(line["slope"] * span)), number(exp(line["slope"] * span - half)), number(exp(line["slope"] * span + half)), points)
}

# The study against itself: each cell in every even block against the block before, block effects taken out. As the server
# is the same, about 5% of these tests should have p < 0.05.
function self_test(    b, c, n, sum, effect, tests, found, d, of, test) {
    for (b = 1; b <= blocks; b++) {
        n = sum = 0
        for (c = 1; c <= cell_count; c++) if (!in_first_blocks(c) && (c, b) in residual) { sum += residual[c, b]; n++ }
        effect[b] = n ? sum / n : 0
    }
    tests = found = 0
    for (c = 1; c <= cell_count; c++) {
        n = 0
        for (b = 2; b <= blocks; b += 2)
            if ((c, b) in residual && (c, b - 1) in residual)
                d[++n] = residual[c, b] - effect[b] - residual[c, b - 1] + effect[b - 1]
        if (n < 3) continue
        paired_test(d, n, test)
        tests++
        if (test["p"] < 0.05) found++
    }
    if (!tests || cell_count < 4) return
    share_interval(found, tests, of)
    row("self", "-", found, number(of["low"]), number(of["high"]), tests)
}

# What others took of the processors: the most that was recorded (an interrupted study has it several times); nothing, where
# it was not.
function machine_row(name, path,    line, at, most) {
    most = "-"
    while ((getline line < path) > 0) {
        at = index(line, "\t")
        if (substr(line, 1, at - 1) == name "_percent" && (most == "-" || substr(line, at + 1) + 0 > most)) most = substr(line, at + 1) + 0
    }
    close(path)
    row(name, "-", most, "-", "-", 100)
}

BEGIN {
    study_load(dir "/study.txt")
    runs_load("-")
    print "name\tsubject\tvalue\tlow\thigh\tof"
    row("planned", "-", run_count, "-", "-", planned > 0 ? planned : run_count)
    row("disbelieved", "-", disbelieved + 0, "-", "-", run_count + disbelieved)
    bound = known = 0
    for (c = 1; c <= cell_count; c++) {
        for (b = 1; b <= blocks; b++) if (measured(c, b, "load_cpu") != "") { known++; break }
        if (client_bound(c)) bound++
    }
    row("client_bound", "-", bound, "-", "-", known)
    invalid = 0
    for (i = 1; i <= run_count; i++)
        if (run[i, "valid"] != "yes" && !cannot_hold(run[i, "valid"])) {
            invalid++
            if (!reason_count[run[i, "server"] "\t" run[i, "valid"]]++) reasons[++reason_total] = run[i, "server"] "\t" run[i, "valid"]
        }
    row("invalid", "-", invalid, "-", "-", run_count)
    for (i = 1; i <= reason_total; i++) {
        split(reasons[i], words, "\t")
        row("reason", words[1] ": " words[2], reason_count[reasons[i]], "-", "-", invalid)
    }
    machine_row("others", dir "/machine.tsv")
    machine_row("stolen", dir "/machine.tsv")
    cell_means()
    for (i = 1; i <= level_count["server"]; i++) drift(level["server", i])
    self_test()
    exit
}
