# statistics.awk: the distributions and tests that the study rests on. Functions only; needs no input.
#
# usage:    awk -f collect/statistics.awk -f another.awk ...
# example:  awk -f collect/statistics.awk -e 'BEGIN { print t_quantile(0.975, 9) }'    (gawk)   2.262157
#
# Runs under mawk and gawk alike. Functions that give back more than one number fill the array that is handed to them.
# Known answers, each with its source, are in tests/statistics.t.

# ln Gamma(x), x > 0: the approximation of Lanczos (g = 7, nine terms), good to some 1e-14.
function log_gamma(x,    sum, t) {
    sum = 0.99999999999980993 \
        + 676.5203681218851 / x - 1259.1392167224028 / (x + 1) + 771.32342877765313 / (x + 2) \
        - 176.61502916214059 / (x + 3) + 12.507343278686905 / (x + 4) - 0.13857109526572012 / (x + 5) \
        + 9.9843695780195716e-6 / (x + 6) + 1.5056327351493116e-7 / (x + 7)
    t = x + 6.5
    return 0.91893853320467274178 + (x - 0.5) * log(t) - t + log(sum)
}

# The continued fraction of the incomplete beta function, evaluated by Lentz's method.
function beta_fraction(x, a, b,    tiny, c, d, h, m, step, delta) {
    tiny = 1e-300
    c = 1
    d = 1 - (a + b) * x / (a + 1)
    if (d < tiny && d > -tiny) d = tiny
    d = 1 / d
    h = d
    for (m = 1; m <= 10000; m++) {
        step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 + step * d; if (d < tiny && d > -tiny) d = tiny
        c = 1 + step / c; if (c < tiny && c > -tiny) c = tiny
        d = 1 / d
        h *= d * c
        step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 + step * d; if (d < tiny && d > -tiny) d = tiny
        c = 1 + step / c; if (c < tiny && c > -tiny) c = tiny
        d = 1 / d
        delta = d * c
        h *= delta
        if (delta - 1 < 1e-15 && delta - 1 > -1e-15) break
    }
    return h
}

# The regularised incomplete beta function I_x(a, b): the distribution function of Beta(a, b).
function beta_cdf(x, a, b,    power, front) {
    if (x <= 0) return 0
    if (x >= 1) return 1
    power = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(1 - x)
    front = power < -700 ? 0 : exp(power)
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a
    return 1 - front * beta_fraction(1 - x, b, a) / b
}

# The x at which I_x(a, b) = p, by bisection.
function beta_quantile(p, a, b,    low, high, middle, i) {
    low = 0
    high = 1
    for (i = 0; i < 200 && high - low > 1e-15; i++) {
        middle = (low + high) / 2
        if (beta_cdf(middle, a, b) < p) low = middle
        else high = middle
    }
    return (low + high) / 2
}

# P(|T| >= |t|) for Student's t with df degrees of freedom: the p-value of a two-sided t-test.
function t_two_sided(t, df) {
    return beta_cdf(df / (df + t * t), df / 2, 0.5)
}

# P(T <= t).
function t_cdf(t, df) {
    return t < 0 ? t_two_sided(t, df) / 2 : 1 - t_two_sided(t, df) / 2
}

# The t at which P(T <= t) = p, by bisection on the tail, which keeps its digits where p is close to 1.
function t_quantile(p, df,    tail, low, high, middle, i) {
    if (p == 0.5) return 0
    if (p < 0.5) return -t_quantile(1 - p, df)
    if ((p, df) in t_known) return t_known[p, df]
    tail = 2 * (1 - p)
    low = 0
    high = 1
    while (t_two_sided(high, df) > tail) { low = high; high *= 2 }
    for (i = 0; i < 200 && high - low > 1e-14 * high; i++) {
        middle = (low + high) / 2
        if (t_two_sided(middle, df) > tail) low = middle
        else high = middle
    }
    return t_known[p, df] = (low + high) / 2
}

# Sorts values[1..n] in place, numbers ascending (Shell's sort with Ciura's gaps).
function sort_numbers(values, n,    gaps, count, g, gap, i, j, v) {
    count = split("1750 701 301 132 57 23 10 4 1", gaps, " ")
    for (g = 1; g <= count; g++) {
        gap = gaps[g] + 0
        for (i = gap + 1; i <= n; i++) {
            v = values[i] + 0
            for (j = i; j > gap && values[j - gap] > v; j -= gap) values[j] = values[j - gap]
            values[j] = v
        }
    }
}

# Describes values[1..n] into out: n mean sd median min max, and low and high, the 95% t-interval of the mean.
# What cannot be had (sd and interval of one value, anything of none) is "-". Sorts values.
function describe(values, n, out,    i, mean, squares, half) {
    split("", out)
    out["n"] = n
    out["mean"] = out["sd"] = out["median"] = out["min"] = out["max"] = out["low"] = out["high"] = "-"
    if (n == 0) return
    sort_numbers(values, n)
    mean = squares = 0
    for (i = 1; i <= n; i++) mean += values[i] / n
    for (i = 1; i <= n; i++) squares += (values[i] - mean) ^ 2
    out["mean"] = mean
    out["min"] = values[1]
    out["max"] = values[n]
    out["median"] = n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
    if (n < 2) return
    out["sd"] = sqrt(squares / (n - 1))
    half = t_quantile(0.975, n - 1) * out["sd"] / sqrt(n)
    out["low"] = mean - half
    out["high"] = mean + half
}

# The t-test of an estimate with its standard error and degrees of freedom against 0, two-sided, into out: estimate error
# df t p low high (95% interval). A standard error of nothing but rounding means that every difference was the same:
# p is then 1 for a difference of zero, else 0.
function t_test(estimate, error, df, out,    half, negligible) {
    split("", out)
    out["estimate"] = estimate
    out["error"] = error
    out["df"] = df
    negligible = 1e-13 * (1 + (estimate < 0 ? -estimate : estimate))
    if (error <= negligible) {
        out["t"] = "-"
        out["p"] = (estimate <= negligible && estimate >= -negligible) ? 1 : 0
        out["low"] = out["high"] = estimate
        return
    }
    out["t"] = estimate / error
    out["p"] = t_two_sided(out["t"], df)
    half = t_quantile(0.975, df) * error
    out["low"] = estimate - half
    out["high"] = estimate + half
}

# The paired t-test of differences[1..n], n > 1, into out, as above.
function paired_test(differences, n, out,    d) {
    describe(differences, n, d)
    t_test(d["mean"], d["sd"] / sqrt(n), n - 1, out)
}

# Holm's step-down adjustment of p[1..n] for n tests, into adjusted[1..n].
function holm(p, n, adjusted,    order, i, j, k, gap, value, largest) {
    for (i = 1; i <= n; i++) order[i] = i
    for (gap = int(n / 2); gap > 0; gap = int(gap / 2))
        for (i = gap + 1; i <= n; i++) {
            k = order[i]
            for (j = i; j > gap && p[order[j - gap]] > p[k]; j -= gap) order[j] = order[j - gap]
            order[j] = k
        }
    largest = 0
    for (i = 1; i <= n; i++) {
        value = (n - i + 1) * p[order[i]]
        if (value > 1) value = 1
        if (value > largest) largest = value
        adjusted[order[i]] = largest
    }
}

# Least squares line through (x[i], y[i]), i = 1..n, n > 2, into out: slope and intercept, their standard errors, df.
function line_fit(x, y, n, out,    i, mx, my, sxx, sxy, rss, variance) {
    split("", out)
    mx = my = sxx = sxy = rss = 0
    for (i = 1; i <= n; i++) { mx += x[i] / n; my += y[i] / n }
    for (i = 1; i <= n; i++) { sxx += (x[i] - mx) ^ 2; sxy += (x[i] - mx) * (y[i] - my) }
    out["df"] = n - 2
    out["slope"] = sxy / sxx
    out["intercept"] = my - out["slope"] * mx
    for (i = 1; i <= n; i++) rss += (y[i] - out["intercept"] - out["slope"] * x[i]) ^ 2
    variance = rss / (n - 2)
    out["slope_error"] = sqrt(variance / sxx)
    out["intercept_error"] = sqrt(variance * (1 / n + mx * mx / sxx))
}

# The exact (Clopper and Pearson) 95% interval of a share of k in n, into out: low high.
function share_interval(k, n, out) {
    out["low"] = k == 0 ? 0 : beta_quantile(0.025, k, n - k + 1)
    out["high"] = k == n ? 1 : beta_quantile(0.975, k + 1, n - k)
}
