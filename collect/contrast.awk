# contrast.awk: comparisons within blocks. Functions only; needs statistics.awk and study.awk.
#
# Every comparison of the study is a contrast of logarithms: with weights w over cells c, the sum of w[c] * ln(value[c])
# is taken within each block, so that whatever changes from block to block (a warmer machine, a fresh server) falls out, and
# the blocks are the sample of a one-sample t-test. Server A against server B in one cell is the paired t-test on the
# log-ratio (weights 1 and -1); averaged over many cells, or the slope against the concurrency, only the weights differ.
# The exponential of the result is a ratio of geometric means.

# Empties the contrast.
function contrast_begin() {
    contrast_size = 0
    split("", contrast_cell)
    split("", contrast_weight)
}

function contrast_add(c, weight) {
    contrast_cell[++contrast_size] = c
    contrast_weight[contrast_size] = weight
}

# Tests the contrast of a measure into out: as t_test, and blocks, ratio, ratio_low, ratio_high. Returns whether it could:
# every cell needs two blocks. A pair counts the blocks that hold both; in larger contrasts a cell that has no
# valid run in a block contributes its own mean there. Where some cells are in the first blocks alone, nothing else counts: in blocks
# without them their spread would be missing, and the interval too narrow.
function contrast_test(measure, out,    i, b, v, n, have, mean, value, estimate, effect, pairs, sum, squares, last) {
    split("", out)
    out["blocks"] = 0
    if (!contrast_size) return 0
    last = blocks
    for (i = 1; i <= contrast_size; i++) if (in_first_blocks(contrast_cell[i]) && last_block[contrast_cell[i]] < last) last = last_block[contrast_cell[i]]
    for (b = 1; b <= last; b++) {
        have = 0
        for (i = 1; i <= contrast_size; i++)
            if ((v = measured(contrast_cell[i], b, measure)) != "") { value[i, b] = log(v); have++ }
        if (contrast_size == 2 && have == 1) { delete value[1, b]; delete value[2, b]; have = 0 }
        if (have) pairs[b] = 1
    }
    estimate = 0
    for (i = 1; i <= contrast_size; i++) {
        mean[i] = n = 0
        for (b = 1; b <= last; b++) if ((i, b) in value) { mean[i] += value[i, b]; n++ }
        if (n < 2) return 0
        mean[i] /= n
        estimate += contrast_weight[i] * mean[i]
    }
    n = squares = sum = 0
    for (b = 1; b <= last; b++) {
        if (!(b in pairs)) continue
        effect[++n] = 0
        for (i = 1; i <= contrast_size; i++)
            if ((i, b) in value) effect[n] += contrast_weight[i] * (value[i, b] - mean[i])
        sum += effect[n]
    }
    for (i = 1; i <= n; i++) squares += (effect[i] - sum / n) ^ 2
    t_test(estimate, sqrt(squares / (n - 1) / n), n - 1, out)
    out["blocks"] = n
    out["ratio"] = exp(out["estimate"])
    out["ratio_low"] = exp(out["low"])
    out["ratio_high"] = exp(out["high"])
    return 1
}

# The interval of a tested contrast widened so that `count` of them hold together at 95% (Bonferroni), into
# out["all_low"] and out["all_high"], as ratios.
function contrast_widen(out, count,    half) {
    half = out["error"] > 0 ? t_quantile(1 - 0.025 / count, out["df"]) * out["error"] : 0
    out["all_low"] = exp(out["estimate"] - half)
    out["all_high"] = exp(out["estimate"] + half)
}

# Whether a cell has at least two valid runs with this measure.
function has_data(c, measure,    b, n) {
    for (b = 1; b <= blocks; b++) if (measured(c, b, measure) != "" && ++n == 2) return 1
    return 0
}

# Begins the contrast of server a against server b, averaged over the cells[1..n] (of any server: their other factors
# count) where both have data. Returns the number of cells in it.
function contrast_servers(a, b, cells, n, measure,    i, ca, cb, used, first, second, seen) {
    used = 0
    for (i = 1; i <= n; i++) {
        ca = cell_like(cells[i], "server", a)
        cb = cell_like(cells[i], "server", b)
        if (!ca || !cb || ca in seen || !has_data(ca, measure) || !has_data(cb, measure)) continue
        seen[ca] = 1
        first[++used] = ca
        second[used] = cb
    }
    contrast_begin()
    for (i = 1; i <= used; i++) {
        contrast_add(first[i], 1 / used)
        contrast_add(second[i], -1 / used)
    }
    return used
}

# What a server spends on the control of processes or threads: its CPU time per request less that of the server `iterative`, which
# serves in the same way and has nothing to control; the mean over the cells[1..n] of that in a block, "" without a measurement.
function control_cost(server, cells, n, block,    i, own, reference, v, w, sum, k) {
    sum = k = 0
    for (i = 1; i <= n; i++) {
        own = cell_like(cells[i], "server", server)
        reference = cell_like(cells[i], "server", "iterative")
        if (!own || !reference) continue
        v = measured(own, block, "server_cpu_us")
        w = measured(reference, block, "server_cpu_us")
        if (v != "" && w != "") { sum += v - w; k++ }
    }
    return k ? sum / k : ""
}
