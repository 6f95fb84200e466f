# plan.awk: a study file -> plan.tsv, one row a planned run, in the order of running.
#
# usage:    awk [-v machine=PROCESSORS] [-v baseline_matters=1] -f collect/plan.awk study.txt >plan.tsv
# example:  printf 'servers: fork thread\nseed: 1\n' | awk -f collect/plan.awk
#
# The full factorial of all factors, without the cells that a `where` line rules out, shuffled anew in each block. The
# same study with the same seed gives the same plan under any awk.
#
#     where: server=floor-thread+split load=httperf => concurrency=1 calls=5
# says: cells with this server and this load generator exist with these values alone. Values may be alternatives: a|b.
#     blocks: requests=100000 load=httperf => 3
# says: such cells, which take long, are in the first 3 blocks alone; the others are in all of them. Of several such lines the
# fewest blocks count.
# What a report measured itself, `theirs:`, makes no run: theirs.awk reads it. Here it is only looked at for mistakes.

function fail(message) {
    failed = 1
    print "study: " message > "/dev/stderr"
    exit 2
}

function trim(text) {
    gsub(/^[ \t]+|[ \t\r]+$/, "", text)
    return text
}

# The minimal standard generator of Park and Miller: exact in the doubles of every awk. Its first values are alike for seeds that
# are, so some are thrown away.
function shuffle_seed(seed,    i) {
    state = seed % 2147483646 + 1
    for (i = 0; i < 20; i++) draw(1)
}
function draw(below) {
    state = (16807 * state) % 2147483647
    return int(state / 2147483647 * below)
}

# Splits a list into level[name, 1..]; ranges a-b are counted out.
function levels(name, text, numeric,    words, n, i, ends, v) {
    gsub(/,/, " ", text)
    n = split(text, words, " ")
    count[name] = 0
    for (i = 1; i <= n; i++) {
        if (numeric && words[i] ~ /^[0-9]+-[0-9]+$/) {
            split(words[i], ends, "-")
            if (ends[2] - ends[1] > 100000 || ends[1] + 0 > ends[2] + 0 || ends[1] + 0 < least(name)) fail(name ": " words[i] " is no range")
            for (v = ends[1] + 0; v <= ends[2] + 0; v++) add_level(name, v)
        } else {
            if (numeric && !(name == "processors" && words[i] == "all")) words[i] = positive(name, words[i])
            add_level(name, words[i])
        }
    }
    if (!count[name]) fail(name " names nothing")
}

# Clients that hold connections are the only thing that there may be none of.
function least(name) { return name == "idle" || name == "slow" ? 0 : 1 }

function positive(name, text) {
    if (text !~ /^[0-9]+$/ || text + 0 < least(name)) fail(name ": " text " is no number" (least(name) ? " above 0" : "") (name == "processors" ? ", nor all" : ""))
    return text + 0
}

function add_level(name, value,    n) {
    if (name == "server") {
        if ((n = ++same[value]) > 1) value = value "~" n
    } else if (seen[name, value]++) return
    level[name, ++count[name]] = value
}

function matches(value, alternatives,    n, i, a) {
    n = split(alternatives, a, "|")
    for (i = 1; i <= n; i++) if (a[i] == value) return 1
    return 0
}

function condition(text, key,    n, i, terms, at) {
    n = split(text, terms, " ")
    for (i = 1; i <= n; i++) {
        at = index(terms[i], "=")
        if (!at || !(substr(terms[i], 1, at - 1) in index_of)) fail(key ": " terms[i] " names no factor")
        if (!matches(now[substr(terms[i], 1, at - 1)], substr(terms[i], at + 1))) return 0
    }
    return 1
}

function possible(    i, at) {
    for (i = 1; i <= wheres; i++) {
        at = index(where[i], "=>")
        if (!at) fail("where: " where[i] " has no =>")
        if (condition(substr(where[i], 1, at - 1), "where") && !condition(substr(where[i], at + 2), "where")) return 0
    }
    if (now["load"] == "ab" && now["concurrency"] + 0 > now["requests"] + 0) { too_few++; return 0 }
    if ((now["load"] == "ab" || now["load"] == "witness") && now["calls"] + 0 > 1) { no_calls++; return 0 }
    if (now["load"] == "witness" && now["keepalive"] == "on") { no_keepalive++; return 0 }
    if (now["scheme"] == "udp" && now["load"] != "witness") { no_datagrams++; return 0 }
    if (now["scheme"] == "https" && now["sessions"] == "resumed" && now["load"] != "witness") { no_tickets++; return 0 }
    if (now["idle"] + 0 > 0 && now["slow"] + 0 > 0) { too_mixed++; return 0 }
    if (now["processors"] != "all" && machine && now["processors"] + 0 > machine) { too_many++; return 0 }
    if (now["service"] ~ /^proxy-/ && now["file"] !~ (now["service"] == "proxy-miss" ? "^[0-9]*[02468]$" : "^[0-9]*[13579]$")) { wrong_parity++; return 0 }
    if (now["service"] ~ /^proxy-/ && (now["load"] != "ab" || now["scheme"] != "http")) { not_proxied++; return 0 }
    return 1
}

# In how many blocks, from the first on, the combination at hand is measured.
function blocks_of_cell(    i, at, n, fewest) {
    fewest = repetitions
    for (i = 1; i <= limits; i++) {
        at = index(limit[i], "=>")
        if (!at || trim(substr(limit[i], 1, at - 1)) == "") fail("blocks: `" limit[i] "` is no `FACTOR=VALUE... => NUMBER`")
        n = positive("blocks", trim(substr(limit[i], at + 2)))
        if (condition(substr(limit[i], 1, at - 1), "blocks") && n < fewest) fewest = n
    }
    return fewest
}

# A line of what a report measured: `rps by concurrency, service=sized => 1=124.68 5=129.68`.
function check_theirs(text,    at, n, i, words, pair, measures, numbers, k) {
    at = index(text, "=>")
    if (!at) fail("theirs: " text " has no =>")
    n = split(substr(text, 1, at - 1), words, /[ ,]+/)
    measures = split(words[1], pair, "/")
    if (words[2] != "by" || !(words[3] in index_of)) fail("theirs: " text " is no `MEASURE[/MEASURE]... by FACTOR[, FACTOR=VALUE]... => VALUE=NUMBER[/NUMBER]...`")
    for (i = 4; i <= n; i++) if (words[i] != "" && !(substr(words[i], 1, index(words[i], "=") - 1) in index_of)) fail("theirs: " words[i] " names no factor")
    n = split(substr(text, at + 2), words, " ")
    for (i = 1; i <= n; i++) {
        if (split(words[i], pair, "=") != 2 || split(pair[2], numbers, "/") != measures) fail("theirs: " words[i] " is no VALUE=NUMBER" (measures > 1 ? " with a number for each measure" : ""))
        for (k = 1; k <= measures; k++) if (numbers[k] !~ /^[0-9]+\.?[0-9]*$/) fail("theirs: " numbers[k] " is no number")
    }
}

# The value of a factor in this cell. A certificate and sessions are of HTTPS alone. wrk runs for a time, not for a number of requests; httperf at a concurrency above 1 opens
# so many connections at once, and no more, whatever the number of requests (see load.sh).
function applying(name) {
    if (name == "requests" && now["load"] == "wrk") return "-"
    if (name == "requests" && now["load"] == "httperf" && now["concurrency"] + 0 > 1) return "-"
    if ((name == "certificate" || name == "sessions") && now["scheme"] != "https") return "-"
    return now[name]
}

# Goes through all combinations from factor f on.
function expand(f,    i, line, k) {
    if (f > factors) {
        if (!possible()) return
        line = applying(factor[1])
        for (k = 2; k <= factors; k++) line = line "\t" applying(factor[k])
        if (!(line in in_blocks)) { in_blocks[line] = 0; cell[++cells] = line }
        if ((k = blocks_of_cell()) > in_blocks[line]) in_blocks[line] = k
        return
    }
    for (i = 1; i <= count[factor[f]]; i++) {
        now[factor[f]] = level[factor[f], i]
        expand(f + 1)
    }
}

BEGIN {
    factors = split("server file concurrency requests calls keepalive scheme protocol service processors load idle slow certificate sessions", factor, " ")
    split("fork thread|small.txt big.txt|1-30|1000|1|off|http|pipelined|files|all|ab|0|0|p256|new", usual, "|")
    for (i = 1; i <= factors; i++) index_of[factor[i]] = i
    n = split("name title question source servers files repetitions baseline claims quick rate duration timeout idle-timeout request-timeout fault seed", words, " ")
    for (i = 1; i <= n; i++) key_known[words[i]] = 1
    for (i = 3; i <= factors; i++) key_known[factor[i]] = 1
    n = split("parts fresh see figure link client-ports", words, " ")
    for (i = 1; i <= n; i++) key_known[words[i]] = 1
}

{
    sub(/^[ \t]*#.*/, "")
    sub(/[ \t]#.*/, "")
    at = index($0, ":")
    if (!at) { if (trim($0) != "") fail("`" trim($0) "` is no `key: value`"); next }
    key = trim(substr($0, 1, at - 1))
    if (key == "where") where[++wheres] = trim(substr($0, at + 1))
    else if (key == "blocks") limit[++limits] = trim(substr($0, at + 1))
    else if (key == "theirs") check_theirs(trim(substr($0, at + 1)))
    else if (!(key in key_known)) fail("there is no `" key "` in a study")
    else study[key] = trim(substr($0, at + 1))
}

END {
    if (failed) exit 2
    for (i = 1; i <= factors; i++) {
        name = factor[i]
        key = name == "server" || name == "file" ? name "s" : name
        levels(name, key in study ? study[key] : usual[i], name ~ /^(concurrency|requests|calls|processors|idle|slow)$/)
    }
    if (baseline_matters && "baseline" in study && !known_server(study["baseline"])) fail("baseline: " study["baseline"] " is none of the servers")
    repetitions = positive("repetitions", "repetitions" in study ? study["repetitions"] : 32)
    if ("duration" in study) positive("duration", study["duration"])
    if ("rate" in study) positive("rate", study["rate"])
    if ("parts" in study && study["parts"] != "one") parts_check(study["parts"])
    if ("fresh" in study && study["fresh"] != "yes") fail("fresh: `" study["fresh"] "` is not yes")
    if ("idle-timeout" in study) positive("idle-timeout", study["idle-timeout"])
    if ("request-timeout" in study) positive("request-timeout", study["request-timeout"])
    if ("fault" in study && count["load"] == 1 && level["load", 1] != "witness") fail("fault: only the witness survives a server that dies")
    if ("fault" in study) positive("fault", study["fault"])
    check("keepalive", "off|on")
    check("scheme", "http|https|udp")
    check("certificate", "p256|rsa2048")
    check("sessions", "new|resumed")
    check("protocol", "simple|persistent|pipelined")
    check("service", "files|sized|proxy-hit|proxy-revalidation|proxy-miss")
    if ("link" in study && study["link"] !~ /^[1-9][0-9]*(kbit|mbit|gbit)$/) fail("link: `" study["link"] "` is no rate such as 20mbit")
    if ("client-ports" in study) check_ports(study["client-ports"])
    check("load", "ab|httperf|wrk|witness")
    expand(1)
    if (too_few) left_out("ab cannot have more connections at once than requests", too_few)
    if (too_many) left_out("this machine has " machine " processors", too_many)
    if (too_mixed) left_out("idle and slow clients are not held at the same time", too_mixed)
    if (no_datagrams) left_out("only the witness speaks UDP", no_datagrams)
    if (no_tickets) left_out("only the witness resumes sessions", no_tickets)
    if (wrong_parity) left_out("a proxy finds odd sizes in its cache and even ones never: proxy-hit and proxy-revalidation go with the first, proxy-miss with the others", wrong_parity)
    if (not_proxied) left_out("a proxy is asked by ab over http", not_proxied)
    if (no_keepalive && !wheres) fail("keepalive: the witness has a connection for each request")
    if (no_calls && !wheres) fail("calls: ab and the witness have no calls per connection; take httperf")
    if (!cells) fail("no cell is left")

    shuffle_seed(("seed" in study ? study["seed"] : 1) + 0)
    printf "run\tblock\torder"
    for (i = 1; i <= factors; i++) printf "\t%s", factor[i]
    print ""
    for (block = 1; block <= repetitions; block++) {
        for (i = cells; i > 1; i--) {
            j = 1 + draw(i)
            line = cell[i]
            cell[i] = cell[j]
            cell[j] = line
        }
        order = 0
        for (i = 1; i <= cells; i++) if (block <= in_blocks[cell[i]]) print ++run "\t" block "\t" ++order "\t" cell[i]
    }
}

# Ports that everybody may use.
function check_ports(text,    ends) {
    if (text !~ /^[0-9]+-[0-9]+$/ || split(text, ends, "-") != 2 || ends[1] < 1024 || ends[2] > 65535 || ends[1] + 0 >= ends[2] + 0)
        fail("client-ports: `" text "` is no range within 1024-65535")
}

function parts_check(text,    n, i, words) {
    gsub(/,/, " ", text)
    n = split(text, words, " ")
    for (i = 1; i <= n; i++) if (!(words[i] in index_of)) fail("parts: `" words[i] "` is not one, and no factor")
}

# Says which cells are left out, in one line also where no other cell is left.
function left_out(why, number) {
    if (!cells) fail(why ": no cell is left")
    print "study: " why ": " number " cells are left out" > "/dev/stderr"
}

function known_server(name,    i) {
    for (i = 1; i <= count["server"]; i++) if (level["server", i] == name) return 1
    return 0
}

function check(name, allowed,    i) {
    for (i = 1; i <= count[name]; i++)
        if (!matches(level[name, i], allowed)) { gsub(/\|/, ", ", allowed); fail(name ": `" level[name, i] "` is none of " allowed) }
}
