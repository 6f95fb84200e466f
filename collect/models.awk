# models.awk: name, summary, when to take it, when not (standard input, tabs) -> the table of the models, with what they cost by
# averages.tsv of the study designs. See overview.sh. Needs text.awk.

BEGIN {
    if ((getline line < averages) <= 0) exit 1
    columns = split(line, names, "\t")
    for (i = 1; i <= columns; i++) at[names[i]] = i
    while ((getline line < averages) > 0) {
        split(line, fields, "\t")
        key = fields[at["measure"]] SUBSEP fields[at["server"]]
        mean[key] = fields[at["mean"]]
        low[key] = fields[at["low"]]
        high[key] = fields[at["high"]]
    }
    close(averages)
}

{
    model[++models] = $1
    summary[$1] = $2
    take[$1] = $3
    leave[$1] = $4
}

function cost(name) { return ("server_cpu_us", name) in mean ? mean["server_cpu_us", name] + 0 : 1e9 }

# What a crew's ways to accept make of its cost: the cheapest and the dearest.
function ways(name,    key, part, best, worst, way) {
    best = worst = name
    for (key in mean) {
        split(key, part, SUBSEP)
        if (part[1] != "server_cpu_us" || index(part[2], name "+accept=") != 1) continue
        if (cost(part[2]) < cost(best)) best = part[2]
        if (cost(part[2]) > cost(worst)) worst = part[2]
    }
    if (best == worst) return ""
    return "; " human(cost(best)) way_text(best) " to " human(cost(worst)) way_text(worst)
}

function way_text(server) { return server ~ /=/ ? " with `--accept " substr(server, index(server, "=") + 1) "`" : " as it is" }

END {
    for (i = 2; i <= models; i++) {
        name = model[i]
        for (j = i; j > 1 && cost(model[j - 1]) > cost(name); j--) model[j] = model[j - 1]
        model[j] = name
    }
    print "| server | model | CPU per request, µs | to `fork_server` | requests/s | take it | do not take it |"
    print "| --- | --- | --- | ---: | ---: | --- | --- |"
    for (i = 1; i <= models; i++) {
        name = model[i]
        known = ("server_cpu_us", name) in mean
        printf "| `%s_server` | %s | %s | %s | %s | %s | %s |\n", name, summary[name], \
            known ? human(mean["server_cpu_us", name]) " (" human(low["server_cpu_us", name]) " to " human(high["server_cpu_us", name]) ways(name) ")" : "–", \
            known && ("server_cpu_us", "fork") in mean ? factor_text(cost(name) / cost("fork")) : "–", \
            ("rps", name) in mean ? human(mean["rps", name]) : "–", take[name], leave[name]
    }
    others = ""
    count = split("lighttpd nginx apache-prefork apache-worker apache-event", peer, " ")
    for (i = 1; i <= count; i++)
        if (("server_cpu_us", peer[i]) in mean) others = others (others == "" ? "" : ", ") peer[i] " " human(cost(peer[i]))
    print ""
    print "Averages over all levels of concurrency of [the study `designs`](report/designs/report.md), with 95% intervals" \
        (others == "" ? "." : "; in the same study, in µs: " others ".")
}
