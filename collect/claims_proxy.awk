# claims_proxy.awk: the claims about the caching proxy and about downloads. Functions only; a part of claims.awk.

# Judges a claim of those, and returns whether it is one.
function claim_of_proxy(id) {
    if (id == "R2.3") claim_R2_3()
    else if (id == "R2.4") claim_R2_4()
    else if (id == "R2.5") claim_R2_5()
    else return 0
    return 1
}

# A measure of the cells that meet some conditions against those that meet others, geometric means, into test.
function cells_against(conditions, others, measure,    n, m, i, above, below) {
    n = with_data(conditions, measure, above)
    m = with_data(others, measure, below)
    if (!n || !m) return 0
    contrast_begin()
    for (i = 1; i <= n; i++) contrast_add(above[i], 1 / n)
    for (i = 1; i <= m; i++) contrast_add(below[i], -1 / m)
    return contrast_test(measure, test)
}

# The cells that meet these conditions and have data, into list; returns how many.
function with_data(conditions, measure, list,    n, i, k) {
    n = pick(conditions, list)
    k = 0
    for (i = 1; i <= n; i++) if (has_data(list[i], measure)) list[++k] = list[i]
    return k
}

# The proxy and the server behind it, as the report asked them: at concurrency 1, with as many requests as there are.
function claim_R2_3(    i, server, at, text) {
    claim_begin("R2.3")
    at = " concurrency=1 requests=" highest("requests")
    text = " at concurrency 1, " factor_value("requests", highest("requests"))
    for (i = 1; i <= level_count["server"]; i++) {
        server = level["server", i]
        if (cells_against("server=" server " service=proxy-hit" at, "server=" server " service=sized" at, "rps"))
            part_add("claim", server ": requests/s of the proxy that has the document / of the server behind it asked directly," text, "ratio", "ahead")
    }
    for (i = 1; i <= level_count["server"]; i++) {
        server = level["server", i]
        if (cells_against("server=" server " service=proxy-hit" at, "server=" server " service=proxy-miss" at, "rps"))
            part_add("reading", server ": requests/s of the proxy that has the document / that has to ask for it," text, "ratio", "ahead")
    }
    claim_end()
}

# Of one server at one concurrency against another, without keep-alive: seconds of the whole test, or of one request.
function download_part(server, high, low, measure, rule, a, b) {
    if (cells_against("server=" server " keepalive=off concurrency=" high, "server=" server " keepalive=off concurrency=" low, measure))
        part_add("claim", server ": " (measure == "seconds" ? "time of the whole test" : "mean time of a request") ", concurrency " high " / " low, "ratio", rule, a, b)
}

# What changes little changes by less than a tenth, and so what is shortened becomes shorter by more.
function claim_R2_4(    i, server) {
    claim_begin("R2.4")
    for (i = 1; i <= level_count["server"]; i++) {
        server = level["server", i]
        download_part(server, 5, 1, "seconds", "below", 0.9)
        download_part(server, 10, 5, "seconds", "within", 0.9, 1.1)
        download_part(server, 5, 1, "mean_ms", "ahead")
        download_part(server, 10, 5, "mean_ms", "ahead")
    }
    claim_end()
}

# By more than a tenth, as before, and at concurrency 1 and 5: at 10 that report saw 1% only, and ten requests over ten connections keep none of them.
function claim_R2_5(    i, j, server, at, words, n) {
    claim_begin("R2.5")
    n = split("1 5", words, " ")
    for (i = 1; i <= level_count["server"]; i++)
        for (j = 1; j <= n; j++) {
            server = level["server", i]
            at = "server=" server " concurrency=" words[j]
            if (cells_against(at " keepalive=on", at " keepalive=off", "seconds"))
                part_add("claim", server ": time of the whole test with keep-alive / without, concurrency " words[j], "ratio", "above", 1.1)
        }
    claim_end()
}
