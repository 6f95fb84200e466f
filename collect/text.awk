# text.awk: numbers and lists as the reader sees them. Functions only.

# 12345.6 -> 12,346
function thousands(v,    text, sign, out) {
    sign = ""
    if (v < 0) { sign = "-"; v = -v }
    text = sprintf("%.0f", v)
    out = ""
    while (length(text) > 3) {
        out = "," substr(text, length(text) - 2) out
        text = substr(text, 1, length(text) - 3)
    }
    return (text == "0" && out == "" ? "" : sign) text out
}

# Three digits that count: 39,123 → 39,123; 123.4 → 123; 12.34 → 12.3; 1.234 → 1.23; 0.01234 → 0.0123
function human(v,    size) {
    if (v == "-" || v == "") return "–"
    size = v < 0 ? -v : v
    if (size >= 99.95) return thousands(v)
    if (size >= 9.995) return sprintf("%.1f", v)
    if (size >= 0.9995) return sprintf("%.2f", v)
    if (size == 0) return "0"
    return sprintf("%.3g", v)
}

# A ratio as a change: 1.083 -> "8.3% more", 0.52 -> "48% less", 2.31 -> "2.31 times as many".
function change(ratio, more, less, times) {
    if (ratio >= 2 || ratio <= 0.5) return factor_text(ratio) " times " times
    if (ratio >= 1) return percent_text(ratio - 1) " " more
    return percent_text(1 - ratio) " " less
}

function percent_text(share,    v) {
    v = share * 100
    if (v < 0) v = -v
    return (v >= 9.95 ? sprintf("%.0f", v) : v >= 0.095 ? sprintf("%.1f", v) : sprintf("%.2f", v)) "%"
}

# A ratio: 2.31, 0.52, 0.0421, 11.2, near one to three places: 1.004
function factor_text(v) {
    if (v >= 0.9 && v < 1.1) return sprintf("%.3f", v)
    return human(v)
}

# A ratio with its interval, as many places as show how wide that is: 2.307 (2.300 to 2.314)
function estimate_text(v, low, high,    places) {
    places = estimate_places(v, low, high)
    return sprintf("%." places "f", v) " (" interval_text(low, high, v) ")"
}

function interval_text(low, high, v,    places) {
    # Where it spans more than places after the point can show.
    if (high > 20 * low) return human(low) " to " human(high)
    places = estimate_places(v == "" ? (low + high) / 2 : v, low, high)
    return sprintf("%." places "f to %." places "f", low, high)
}

function estimate_places(v, low, high,    places) {
    if (high > 20 * low) return v >= 100 ? 0 : v >= 10 ? 1 : 2
    places = v >= 100 ? 0 : v >= 10 ? 1 : 2
    while (places < 6 && v > 0 && v < 10 ^ (1 - places)) places++
    while (places < 5 && high - low < 2 / 10 ^ places && high > low) places++
    return places
}

function p_text(p) {
    if (p == "-") return "–"
    return p < 0.0001 ? "< 0.0001" : sprintf("%.4f", p)
}

# Of how many blocks on an interval is what one expects of it: of fewer it is more than a quarter wider than of very many.
function few_blocks_from() { return 6 }
function few_blocks(n) { return n + 0 < few_blocks_from() }
function few_said(n) { return n ~ /^[0-9]/ && few_blocks(n) ? ", from " plural(n, "block", "blocks") " alone" : "" }

# 1 run, 2 runs
function plural(n, one, many) { return thousands(n) " " (n == 1 ? one : many) }

# The words of list[1..n] with commas and "and".
function join_text(list, n,    i, out) {
    out = ""
    for (i = 1; i <= n; i++) out = out (i == 1 ? "" : i == n ? " and " : ", ") list[i]
    return out
}

# Two texts with a comma between, where both say something.
function with_comma(text, more) { return text (text == "" || more == "" ? "" : ", ") more }

function join_sentences(list, n,    i, text) {
    text = ""
    for (i = 1; i <= n; i++) text = text (i == 1 ? "" : "; ") list[i]
    return text
}

# A factor's value in words: requests 1000 -> "1,000 requests". A number of requests that is not set: wrk runs for a time, and
# httperf opens as many connections as come at once, and no more.
function factor_value(name, v, load) {
    if (v == "-" && name == "requests") return load == "wrk" ? "for a time" : load == "httperf" ? "all at once" : "any number of requests"
    # What there is of HTTPS alone.
    if (v == "-" && (name == "certificate" || name == "sessions")) return ""
    if (v == "-") return name " not set"
    if (name == "concurrency") return "concurrency " v
    if (name == "requests") return thousands(v) (connections_counted(load) ? " connection" : " request") (v == 1 ? "" : "s")
    if (name == "calls") return v (v == 1 ? " call" : " calls") " per connection"
    if (name == "keepalive") return "keep-alive " v
    if (name == "processors") return v == "all" ? "all processors" : v == 1 ? "1 processor" : v " processors"
    if (name == "protocol") return v " protocol"
    if (name == "service") return v ~ /^proxy-/ ? "proxy " substr(v, 7) : "service " v
    if (name == "load") return "load by " v
    if (name == "idle") return v == 0 ? "no idle connections" : plural(v, "idle connection", "idle connections")
    if (name == "slow") return v == 0 ? "no slow clients" : plural(v, "slow client", "slow clients")
    if (name == "scheme") return v == "udp" ? "UDP" : v == "https" ? "HTTPS" : has_level("scheme", "udp") ? "TCP" : "HTTP"
    if (name == "certificate") return v == "p256" ? "P-256" : v == "rsa2048" ? "RSA-2048" : v
    if (name == "sessions") return v " sessions"
    if (name == "file") return file_text(v)
    return v
}

# Whether a value of a factor occurs in the study.
function has_level(name, v) { return (name, v) in level_seen }

# A document that has a number for its name is one of that size: /150.
function file_text(v) { return v ~ /^[0-9]+$/ ? "/" v : v }

# httperf counts connections where the others count requests. Without a load generator, whether all do.
function connections_counted(load) { return load != "" ? load == "httperf" : level_count["load"] == 1 && level["load", 1] == "httperf" }

# The unit of the x axis.
function x_title(name) {
    if (name == "concurrency") return has_level("scheme", "udp") ? "concurrency (clients at once)" : "concurrency (connections at once)"
    if (name == "requests") return connections_counted() ? "connections in all" : "requests in all"
    if (name == "calls") return "calls per connection"
    if (name == "processors") return "processors of the server"
    if (name == "idle") return "idle connections held"
    if (name == "slow") return "slow clients"
    return name
}

# As it stands in a page, and in a table of Markdown.
function html(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/"/, "\\&quot;", text)
    gsub(/</, "\\&lt;", text)
    return text
}

function cell_text(text) { gsub(/\|/, "\\|", text); return text }
