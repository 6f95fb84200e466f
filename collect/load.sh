# shellcheck shell=bash disable=SC2034,SC2154 # project, work and the factors of the cell come in, load_argv goes out
# load.sh: the load generators. A library: source it.
#
# usage:    load_needs LOAD; load_command URL PERCENTILES; ...run load_argv...; load_row OUT PERCENTILES RESULT
# example:  load=ab file=small.txt concurrency=10 requests=1000 calls=1 keepalive=off; load_command http://127.0.0.1:8000/ /tmp/p
#
# ab       requests, concurrency and keep-alive as they are named. Its own report rounds times to whole milliseconds, and so
#          does its -g file; the -e file has the quantiles from 0 to 100% in microseconds, so times come from there. A proxy is
#          asked for what its origin has, at origin_url (see origin.sh).
# httperf  `requests` connections with `calls` requests each: one after the other at concurrency 1, or `rate` of them a second
#          where the study sets one. At a higher concurrency as many connections as that come at once, and no more follow:
#          where ab opens the next one in place of the first that is answered, here everybody has to wait for his own turn.
#          Not with --hog, which binds each connection to a port before it connects, and spins for up to a minute when ports
#          wait out their time; the kernel, left alone, gives a port again for another server at once.
#          httperf never sleeps, so its own CPU time says nothing and is not recorded, and it wants a processor for itself.
# witness  our own (witness.c): as ab, but it ends after `duration` seconds, and survives refusals, resets and silence. With a
#          `fault` it asks for /crash after so many replies. What it could not get is a result, not an invalid run.
# wrk      `concurrency` connections for `duration` seconds, keep-alive or not; `requests` does not apply.

load_list='ab httperf wrk witness'

load_needs() {
    case $1 in
    ab) echo ab:apache2-utils ;;
    httperf) echo httperf:httperf ;;
    wrk) echo wrk:wrk ;;
    esac
}

load_command() {
    local url=$1 percentiles=$2 address threads
    if [[ ${link_near:-} ]]; then url=${url/127.0.0.1/$link_near}; fi
    address=${url#*://} address=${address%%/*}
    case $load in
    ab)
        load_argv=(ab -q -n "$requests" -c "$concurrency" -e "$percentiles")
        if [[ $keepalive == on ]]; then load_argv+=(-k); fi
        if [[ ${service:-} == proxy-* ]]; then
            load_argv+=(-X "$address" "$origin_url$file")
        else
            load_argv+=("$url$file")
        fi
        ;;
    httperf)
        load_argv=(httperf --server "${address%:*}" --port "${address##*:}" --uri "/$file"
            --num-conns "$requests" --num-calls "$calls" --timeout "${timeout:-60}")
        if ((concurrency > 1)); then load_argv+=(--rate 10000); elif [[ ${rate:-} ]]; then load_argv+=(--rate "$rate"); fi
        if [[ $url == https:* ]]; then load_argv+=(--ssl); fi
        ;;
    witness)
        load_argv=("$project/collect/witness" --requests "$requests" --concurrency "$concurrency" --seconds "${duration:-2}")
        if [[ ${fault:-} ]]; then load_argv+=(--fault /crash --after "$fault"); fi
        load_argv+=("${address##*:}" "/$file")
        ;;
    wrk)
        threads=$((concurrency < 2 ? concurrency : 2))
        load_argv=(wrk -t "$threads" -c "$concurrency" -d "${duration:-2}s" -s "$project/collect/wrk.lua")
        if [[ $keepalive == off ]]; then load_argv+=(-H 'Connection: close'); fi
        load_argv+=("$url$file")
        ;;
    esac
    if [[ ${link_near:-} ]]; then load_argv=("${link_across[@]}" "${load_argv[@]}"); fi
}

# Prints the measured columns of a run, from `seconds` on. `length` is what the document must have.
load_row() {
    "${AWK:-awk}" -v generator="$load" -v want="$requests" -v calls="$calls" -v bytes="$bytes" -v limit="${timeout:-60}" \
        -v in_turn="$((concurrency == 1 && ${rate:-0} == 0))" -v words="$4" -v switches="${5:-}" -v crowd="${6:-}" \
        -v out="$1" -v percentiles="$2" -v result="$3" -f "$project/collect/load.awk"
}
