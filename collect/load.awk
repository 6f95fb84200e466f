# load.awk: what a load generator printed -> the measured columns of a row of runs.tsv. See load.sh.
#
# usage:  awk -v generator=ab -v want=1000 -v calls=1 -v bytes=1000 -v out=FILE -v percentiles=FILE -v result=FILE -f load.awk
# Columns: seconds complete failed non2xx length rps mean_ms sd_ms min_ms p50_ms p90_ms p95_ms p99_ms max_ms kbytes_s load_cpu
#          server_cpu_us voluntary involuntary peak_kib held each_kib cut lost unanswered again_ms valid
# crowd: what the clients said at their end that hold connections, "held lost cut refused", and KiB for each; see crowd.sh. lost, unanswered and
# again_ms are the witness's; see witness.c.

function after(text, label,    at) {
    at = index(text, label)
    return at ? substr(text, at + length(label)) + 0 : "-"
}

function show(v, digits) { return v == "-" ? "-" : sprintf("%." digits "f", v) }

# Quantiles in milliseconds from ab's -e file. For few requests ab reads the highest ones behind the end of its table, so
# those are taken from the 100% line. Mean and standard deviation are those of the quantile function, straight between its points,
# within what ab says of them: that function knows one point for the last percent and makes too much of a long tail. ab prints the
# mean in whole milliseconds, the standard deviation in tenths; and the times of all requests cannot be more than all
# connections had, which is ab's time per request.
function ab_times(    line, part, i, q, a, b, squares) {
    for (i = 0; i <= 100; i++) q[i] = "-"
    while ((getline line < percentiles) > 0)
        if (split(line, part, ",") == 2 && part[1] ~ /^[0-9]+$/) q[part[1] + 0] = part[2] + 0
    close(percentiles)
    if (q[0] == "-" || q[100] == "-") return
    for (i = 1; i < 100; i++) if (int(complete * i / 100 + 0.5) >= complete) q[i] = q[100]
    mean = squares = 0
    for (i = 0; i < 100; i++) {
        a = q[i]
        b = q[i + 1]
        mean += (a + b) / 200
        squares += (a * a + a * b + b * b) / 300
    }
    sd = squares > mean * mean ? sqrt(squares - mean * mean) : 0
    if (said_mean != "") {
        mean = within(mean, said_mean - 0.5, said_mean + 0.5)
        sd = within(sd, said_sd - 0.05, said_sd + 0.05)
    }
    if (most_mean != "" && mean > most_mean) mean = most_mean
    least = q[0]; p50 = q[50]; p90 = q[90]; p95 = q[95]; p99 = q[99]; most = q[100]
}

function within(v, low, high) { return v < low ? (low < 0 ? 0 : low) : v > high ? high : v }

function read_ab(    line, total, taken) {
    while ((getline line < out) > 0) {
        if (line ~ /^Complete requests:/) complete = after(line, ":")
        else if (line ~ /^Failed requests:/) bad = after(line, ":")
        else if (line ~ /^Non-2xx responses:/) non2xx = after(line, ":")
        else if (line ~ /^Document Length:/) size = after(line, ":")
        else if (line ~ /^Requests per second:/) rps = after(line, ":")
        else if (line ~ /^Time taken for tests:/) taken = after(line, ":")
        else if (line ~ /^Transfer rate:/) rate = after(line, ":")
        else if (line ~ /^Time per request:.*\(mean\)$/) most_mean = after(line, ":")
        else if (line ~ /^Total:/ && split(line, total, " ") == 6) { said_mean = total[3] + 0; said_sd = total[4] + 0 }
        else if (line ~ /^apr_|^ab: /) said = line
    }
    if (complete > 0 && non2xx == "-") non2xx = 0
    ab_times()
    # The time has three places, requests/s have two: that is taken which has more digits that count.
    if (complete > 0 && rps < 10 * taken) rps = complete / taken
    if (complete > 0 && rps > 0) seconds = complete / rps
}

function read_httperf(    line, asked, asked_rate) {
    while ((getline line < out) > 0) {
        if (line ~ /^Total: connections/) { complete = after(line, "replies "); asked = after(line, "requests "); seconds = after(line, "test-duration ") }
        else if (line ~ /^Request rate:/) asked_rate = after(line, ":")
        else if (line ~ /^Reply status:/) non2xx = complete - after(line, "2xx=")
        else if (line ~ /^Reply size \[B\]:/) size = after(line, "content ")
        else if (line ~ /^Net I\/O:/) rate = after(line, "Net I/O: ")
        else if (line ~ /^Errors: total/) bad = after(line, "total ")
        else if (line ~ /^Connection time \[ms\]: min/) {
            # Of connections, from connect to close: of requests only where a connection has one.
            mean = after(line, "avg ") / calls
            if (calls == 1) { least = after(line, "min "); most = after(line, "max "); p50 = after(line, "median "); sd = after(line, "stddev ") }
        }
        else if (line ~ /^httperf: /) said = line
    }
    # The duration is printed in whole milliseconds, the rate of requests to more digits: the time follows from that.
    if (complete > 0 && asked_rate > 0 && asked > 0) { rps = asked_rate * complete / asked; seconds = complete / rps }
    else if (complete > 0 && seconds > 0) rps = complete / seconds
    # One after the other they tell their mean to more than the one digit that is printed.
    if (in_turn && rps > 0) mean = 1000 / rps
    if (said ~ /warning/) said = ""
}

function read_wrk(    line, f) {
    while ((getline line < out) > 0) {
        if (line !~ /^dcollect /) { if (line ~ /unable|error|invalid/) said = line; continue }
        split(line, f, " ")
        complete = f[2]; seconds = f[3] / 1e6; rate = f[4] / 1024 / seconds
        bad = f[5] + f[6] + f[7] + f[9]; non2xx = f[8]
        rps = complete / seconds
        mean = f[10] / 1000; sd = f[11] / 1000; least = f[12] / 1000
        p50 = f[13] / 1000; p90 = f[14] / 1000; p95 = f[15] / 1000; p99 = f[16] / 1000; most = f[17] / 1000
    }
}

function read_witness(    line, f) {
    while ((getline line < out) > 0) {
        if (line !~ /^witness /) { if (line ~ /^witness: /) said = line; continue }
        split(line, f, " ")
        seconds = f[2]; complete = f[3]; lost = f[4]; unanswered = f[6]; bad = lost + unanswered; non2xx = f[7]
        if (complete > 0) size = f[8]
        again = f[9]
        rps = complete / seconds
        mean = f[10]; sd = f[11]; least = f[12]; p50 = f[13]; p90 = f[14]; p95 = f[15]; p99 = f[16]; most = f[17]
        rate = f[18] / 1024 / seconds
    }
}

# The witness came back with a word: whatever it says of the server is a result.
function witnessed() { return generator == "witness" && complete != "-" && own[3] == "0" }

function verdict() {
    if (words != "") return words
    if (witnessed()) {
        if (non2xx > 0) return non2xx " non-2xx"
        return size != "-" && bytes != "-" && size != bytes ? "length " size " instead of " bytes : "yes"
    }
    if (own[8] == "no") return "server died"
    if (own[3] == "timeout") return "not done within " limit " s"
    if (own[3] != "0") return generator " ended with status " own[3] (said != "" ? ": " said : "")
    if (complete == "-" || complete + 0 == 0) return "no request completed" (said != "" ? ": " said : "")
    if (generator != "wrk" && complete != want * calls) return complete " of " want * calls " requests completed"
    if (bad != "-" && bad > 0) return bad " failed"
    if (non2xx != "-" && non2xx > 0) return non2xx " non-2xx"
    if (size != "-" && bytes != "-" && size != bytes) return "length " size " instead of " bytes
    return "yes"
}

BEGIN {
    complete = bad = non2xx = size = rps = mean = sd = least = p50 = p90 = p95 = p99 = most = rate = seconds = "-"
    lost = unanswered = again = "-"
    said = ""
    line = ""
    getline line < result
    if (split(line, own, " ") < 8) split("0 0 no-result - - - - yes", own, " ")
    if (generator == "ab") read_ab()
    else if (generator == "httperf") read_httperf()
    else if (generator == "witness") read_witness()
    else read_wrk()
    if (seconds == "-") seconds = own[1]

    # What the load generator needs to start and to report is not load: it is CPU time nearly all of it, so it goes from both.
    share = "-"
    if (generator != "httperf" && seconds >= 0.02) {
        share = (own[2] - (own[1] > seconds ? own[1] - seconds : 0)) / seconds
        if (share < 0) share = 0
    }
    cost = own[4] != "-" && complete > 0 ? own[4] / complete : "-"
    voluntary = own[5] != "-" && complete > 0 ? own[5] / complete : "-"
    involuntary = own[6] != "-" && complete > 0 ? own[6] / complete : "-"
    if (split(switches, own_switches, " ") == 3 && own_switches[1] > 0) {
        voluntary = own_switches[2] / own_switches[1]
        involuntary = own_switches[3] / own_switches[1]
    }
    valid = verdict()
    gsub(/[\t\r\n]+/, " ", valid)
    if (split(crowd, held, " ") < 5) held[1] = held[3] = held[5] = "-"
    OFS = "\t"
    print show(seconds, 6), complete, bad, non2xx, size, show(rps, rps < 10 ? 6 : 2), show(mean, 3), show(sd, 3), show(least, 3), show(p50, 3), \
        show(p90, 3), show(p95, 3), show(p99, 3), show(most, 3), show(rate, 2), show(share, 3), show(cost, 3), \
        show(voluntary, 4), show(involuntary, 4), own[7], \
        held[1], held[5], held[3], lost, unanswered, again, substr(valid, 1, 300)
}
