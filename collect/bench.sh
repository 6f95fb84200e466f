#!/bin/bash
# bench.sh: what a request costs each server, against its floor (the same model with no handler) and against peers.
#
# usage:    collect/bench.sh [--rounds N] [--subjects A,B] [--requests N] [--concurrency N] [--keep-rounds N] [--growth-rounds N]
#           [--tls-rounds N] [--growth 1,10,100,1000] [--idle 100,1000]
# example:  collect/bench.sh --rounds 7 --subjects thread,floor-thread,nginx        (or: make bench)
#
# Each round starts every subject once, in shuffled order, puts `ab -n 4000 -c 10` on small.txt with one connection per
# request, and takes the CPU time of the server from outside (see launch.c). Ratios are taken within rounds, so that a machine
# that changes its speed meanwhile does not matter; their median is shown, and the smallest and the largest.
# Then, on one connection, `ab -k -c 1 -n 1000`, and httperf with 1,000 connections of 5 calls each.
# Then HTTPS, with a key of P-256 and of RSA-2048, sessions new and resumed: the witness with 1,000 connections (or --requests, if that is
# less), ten at once (--concurrency), on ours and on nginx.
# Then how cost grows: the same CPU time at concurrency 1, 10, 100 and 1,000, and the memory of an idle keep-alive connection where
# 100 and 1,000 of them are held (10,000 for event loops): the proportional set size of the server's processes, without pages of files,
# beyond that of the same server without a client, divided by the connections. A crew that serves one connection a worker gets as many workers as
# it needs, whose memory then counts as that of their connections; who cannot hold so many has a dash.
set -euo pipefail
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
project=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=collect/scratch.sh
. "$project/collect/scratch.sh"
# shellcheck source=collect/cost.sh
. "$project/collect/cost.sh"
# shellcheck source=collect/recipes.sh
. "$project/collect/recipes.sh"
# shellcheck source=collect/servers.sh
. "$project/collect/servers.sh"
# shellcheck source=collect/load.sh
. "$project/collect/load.sh"
# shellcheck source=collect/crowd.sh
. "$project/collect/crowd.sh"

rounds=7 subjects='' requests=4000 concurrency=10 keep_rounds=5 tls_rounds=3 growth_rounds=3 growth='1 10 100 1000' idle='100 1000 10000'
usage() {
    echo 'usage: collect/bench.sh [--rounds N] [--subjects A,B] [--requests N] [--concurrency N] [--keep-rounds N] [--growth-rounds N]'
    echo '                        [--tls-rounds N] [--growth LIST] [--idle LIST]'
}
while (($#)); do
    if [[ $1 == --help ]]; then
        usage
        exit
    fi
    if [[ $1 != --subjects && ! ${2:-} =~ ^[0-9]{1,7}$ && ! ($1 =~ ^--(growth|idle)$ && ${2:-} =~ ^[1-9][0-9]{0,4}(,[1-9][0-9]{0,4})*$) ]]; then
        usage >&2
        exit 2
    fi
    case $1 in
    --rounds) rounds=$2 ;;
    --subjects) subjects=${2:-} ;;
    --requests) requests=$2 ;;
    --concurrency) concurrency=$2 ;;
    --keep-rounds) keep_rounds=$2 ;;
    --growth-rounds) growth_rounds=$2 ;;
    --tls-rounds) tls_rounds=$2 ;;
    --growth) growth=${2//,/ } ;;
    --idle) idle=${2//,/ } ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift 2
done

lacks() { [[ $1 ]] && ! command -v "${1%%:*}" >/dev/null; }
if lacks "$(load_needs ab)"; then
    echo 'bench: ab is missing: apt-get install apache2-utils' >&2
    exit 1
fi
chosen=()
for subject in $(tr ',' ' ' <<<"${subjects:-$(recipe_list)}"); do
    if ! recipe_known "$subject"; then
        echo "bench: there is no server '$subject': $(recipe_list | tr '\n' ' ')" >&2
        exit 2
    fi
    needs=$(recipe_needs "$subject")
    if lacks "$needs"; then
        echo "bench: $subject is not installed, and left out: apt-get install ${needs#*:}" >&2
    else
        chosen+=("$subject")
    fi
done

work=''
finish() {
    trap '' INT TERM
    crowd_end
    servers_stop
    cost_end
    scratch_end
}
trap finish EXIT
trap 'exit 130' INT TERM
scratch_begin
chmod 755 "$work"
mkdir "$work/data"
cp "$project"/data/*.txt "$work/data/"
documents=$work/data workers=$(nproc)
file=small.txt bytes=$(wc -c <"$documents/small.txt") scheme=http protocol=pipelined service=files
cost_begin

# Starts a subject, runs one load on it, and appends `kind round subject cpu_us rps seconds` to the results.
measure() {
    local kind=$1 round=$2 subject=$3 row
    if ! server_start it "$subject"; then
        echo "bench: $server_problem" >&2
        return 1
    fi
    load_command "${server_url[it]}" "$work/percentiles"
    # shellcheck disable=SC2086 # a list of options
    "$project/collect/launch" load --server "${server_pid[it]}" ${server_read[it]} --timeout 60 --result "$work/result" -- \
        "${load_argv[@]}" >"$work/out" 2>&1 </dev/null
    row=$(load_row "$work/out" "$work/percentiles" "$work/result" '')
    server_stop it
    awk -F '\t' -v kind="$kind" -v round="$round" -v subject="$subject" '{
        if ($NF != "yes") { print "bench: " subject ": " $NF > "/dev/stderr"; exit }
        print kind, round, subject, $17, $6, $1 }' OFS='\t' <<<"$row" >>"$work/results"
}

# KiB of the server's tree now.
memory_now() { "$project/collect/launch" memory --server "${server_pid[it]}"; }

# Holds so many idle connections to a server that has been started, and prints the memory of each, beyond `base` KiB; fails where it cannot.
hold() {
    local count=$1 base=$2 held='' status=0
    if crowd_begin "$count" 0 "${server_url[it]}" "$file"; then held=$(memory_now); else status=1; fi
    crowd_end
    if ((status == 0)) && [[ $crowd_problem ]]; then status=1; fi
    if ((status == 0)); then awk -v held="$held" -v base="$base" -v count="$count" 'BEGIN { printf "%.3f\n", (held - base) / count }'; fi
    return "$status"
}

# Appends `idleCOUNT round subject KIB` to the results.
measure_idle() {
    local kind=$1 round=$2 subject=$3 count=${1#idle} base each=''
    if ! server_start it "$subject"; then
        echo "bench: $server_problem" >&2
        return 1
    fi
    base=$(memory_now)
    if ! each=$(hold "$count" "$base") && server_workers it 0; then
        server_stop it
        if server_start it "$subject+workers=$((count + 1))"; then each=$(hold "$count" "$base") || each=''; fi
    fi
    server_stop it
    if [[ $each ]]; then printf '%s\t%s\t%s\t%s\t-\t-\n' "$kind" "$round" "$subject" "$each" >>"$work/results"; fi
}

each_round() {
    local kind=$1 count=$2 round subject
    shift 2
    for ((round = 1; round <= count; round++)); do
        for subject in $(shuf -e -- "$@"); do
            if [[ -t 2 ]]; then printf '\r\033[Kround %d of %d: %s %s' "$round" "$count" "$kind" "$subject" >&2; fi
            if [[ $kind == idle* ]]; then measure_idle "$kind" "$round" "$subject" || :; else measure "$kind" "$round" "$subject" || :; fi
        done
    done
    if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
}

# Prints the table of a kind of measurement: $2 the column of what is compared (4 CPU, 6 seconds).
table() {
    printf '%s\n' "${chosen[@]}" | awk -F '\t' -v kind="$1" -v column="$2" '
        function sort(v, n,    i, j, t) {
            for (i = 2; i <= n; i++) { t = v[i]; for (j = i; j > 1 && v[j - 1] > t; j--) v[j] = v[j - 1]; v[j] = t }
        }
        function median(v, n) { return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
        function ratios(subject, other,    r, n, v) {
            for (r = 1; r <= last; r++)
                if ((subject, r) in value && (other, r) in value) v[++n] = value[subject, r] / value[other, r]
            if (!n || subject == other) return sprintf("%24s", "")
            sort(v, n)
            return sprintf("%8.2f (%.2f to %.2f)", median(v, n), v[1], v[n])
        }
        NR == FNR { if ($1 == kind) { value[$3, $2] = $column; speed[$3, $2] = $5; if ($2 > last) last = $2 + 0 }; next }
        { name[++names] = $1 }
        END {
            floor["fork"] = "floor-fork"; floor["thread"] = "floor-thread"; floor["iterative"] = "floor-one"
            unit = column == 4 ? "CPU us/request" : "seconds"
            form = column == 4 ? "%9.1f" : "%9.4f"
            split("nginx lighttpd", peer, " ")
            printf "%-16s %9s %9s %8s %9s %9s   %-24s%-24s%-24s\n", unit, "median", "mean", "sd", "min", "req/s", column == 4 ? "  x its floor" : "", "  x nginx", "  x lighttpd"
            for (i = 1; i <= names; i++) {
                n = sum = squares = speeds = 0
                split("", v)
                for (r = 1; r <= last; r++) if ((name[i], r) in value) { v[++n] = value[name[i], r] + 0; sum += v[n]; speeds += speed[name[i], r] }
                if (!n) continue
                for (r = 1; r <= n; r++) squares += (v[r] - sum / n) ^ 2
                sort(v, n)
                base = name[i] ~ /^floor/ ? name[i] : (name[i] in floor) ? floor[name[i]] : ""
                line = sprintf("%-16s " form " " form " %8.*f " form " %9.0f   %-24s%-24s%-24s", name[i], median(v, n), sum / n, column == 4 ? 1 : 4, n > 1 ? sqrt(squares / (n - 1)) : 0, v[1], speeds / n, column == 4 ? ratios(name[i], base) : "", ratios(name[i], peer[1]), ratios(name[i], peer[2]))
                sub(/ +$/, "", line)
                print line
            }
        }' "$work/results" -
}

# Prints a table with a column for each of the kinds $1 that are numbered by the words of $2: the median, and smallest and largest.
growth_table() {
    printf '%s\n' "${chosen[@]}" | awk -F '\t' -v kind="$1" -v numbers="$2" '
        function sort(v, n,    i, j, t) {
            for (i = 2; i <= n; i++) { t = v[i]; for (j = i; j > 1 && v[j - 1] > t; j--) v[j] = v[j - 1]; v[j] = t }
        }
        function median(v, n) { return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
        NR == FNR { count[$3, $1]++; value[$3, $1, count[$3, $1]] = $4 + 0; next }
        { name[++names] = $1 }
        END {
            columns = split(numbers, number, " ")
            line = sprintf("%-16s", "")
            for (c = 1; c <= columns; c++) line = line sprintf(" %9s %-18s", number[c], "")
            sub(/ +$/, "", line)
            print line
            for (i = 1; i <= names; i++) {
                line = sprintf("%-16s", name[i])
                known = 0
                for (c = 1; c <= columns; c++) {
                    n = count[name[i], kind number[c]]
                    split("", v)
                    for (r = 1; r <= n; r++) v[r] = value[name[i], kind number[c], r]
                    sort(v, n)
                    known += n
                    line = line (n ? sprintf(" %9.2f %-18s", median(v, n), sprintf("(%.2f to %.2f)", v[1], v[n])) : sprintf(" %9s %-18s", "-", ""))
                }
                sub(/ +$/, "", line)
                if (known) print line
            }
        }' "$work/results" -
}

: >"$work/results"
load=ab calls=1 keepalive=off keep=no
each_round close "$rounds" "${chosen[@]}"
echo "One connection per request: ab -n $requests -c $concurrency, small.txt, $rounds rounds; $cost_method"
table close 4

requests_usual=$requests concurrency_usual=$concurrency
requests=1000 concurrency=1 keepalive=on keep=yes
if ((keep_rounds > 0)); then
    each_round keep "$keep_rounds" "${chosen[@]}"
    echo
    echo "Keep-alive, one connection: ab -k -n 1000 -c 1, seconds, $keep_rounds rounds"
    table keep 6
fi
if ((keep_rounds > 0)) && ! lacks "$(load_needs wrk)"; then
    load=wrk concurrency=32
    each_round wrk "$keep_rounds" "${chosen[@]}"
    echo
    echo "Keep-alive, 32 connections: wrk -t 2 -c 32 for 2 s, $keep_rounds rounds"
    table wrk 4
    concurrency=1
fi
if ((keep_rounds > 0)) && ! lacks "$(load_needs httperf)"; then
    load=httperf calls=5
    each_round calls "$keep_rounds" "${chosen[@]}"
    echo
    echo "Five calls a connection: httperf, 1000 connections, seconds, $keep_rounds rounds"
    table calls 6
fi
if ((tls_rounds > 0)) && lacks openssl; then
    echo 'bench: openssl is missing, so https is left out: apt-get install openssl' >&2
elif ((tls_rounds > 0)); then
    speakers=()
    for subject in "${chosen[@]}"; do
        if [[ $subject != floor-* && (! $(recipe_needs "$subject") || $subject == nginx*) ]]; then speakers+=("$subject"); fi
    done
    scheme=https load=witness calls=1 keepalive=off keep=no duration=60 concurrency=$concurrency_usual
    requests=$((requests_usual < 1000 ? requests_usual : 1000))
    for certificate in p256 rsa2048; do
        for sessions in new resumed; do
            if ((${#speakers[@]} == 0)); then continue; fi
            each_round "$certificate-$sessions" "$tls_rounds" "${speakers[@]}"
            echo
            echo "HTTPS, $certificate, $sessions sessions: witness, $requests connections, $concurrency at once, $tls_rounds rounds"
            table "$certificate-$sessions" 4
        done
    done
    scheme=http
fi
if ((growth_rounds > 0)); then
    load=ab calls=1 keepalive=off keep=no
    for concurrency in $growth; do
        requests=$((concurrency < 1000 ? requests_usual / 2 : requests_usual))
        if ((requests < concurrency)); then requests=$concurrency; fi
        each_round "grow$concurrency" "$growth_rounds" "${chosen[@]}"
    done
    echo
    echo "How cost grows: CPU us/request by concurrency, one connection per request, $growth_rounds rounds"
    growth_table grow "$growth"
    # Nobody is sent away while the others come; the floors keep no connection.
    idle_timeout=600 concurrency=1 requests=1 holders=() loops=()
    for subject in "${chosen[@]}"; do
        if [[ $subject != floor-* ]]; then holders+=("$subject"); fi
        if [[ $subject == epoll* ]]; then loops+=("$subject"); fi
    done
    if ((${#holders[@]})); then
        for count in $idle; do
            # More than some thousand are for event loops alone.
            if ((count < 5000)); then
                each_round "idle$count" "$growth_rounds" "${holders[@]}"
            elif ((${#loops[@]})); then
                each_round "idle$count" "$growth_rounds" "${loops[@]}"
            fi
        done
        echo
        echo "How cost grows: KiB of memory (PSS without files) an idle connection, where so many are held, $growth_rounds rounds"
        growth_table idle "$idle"
    fi
fi
