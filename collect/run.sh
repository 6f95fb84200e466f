#!/bin/bash
# run.sh: carries out the plan of a study, run by run; the only stage that measures anything.
#
# usage:    collect/run.sh DIR        reads DIR/study.txt and DIR/plan.tsv; appends to DIR/runs.tsv, DIR/raw.gz, DIR/machine.tsv
# example:  collect/run.sh results/fork-vs-thread/20260101-120000
#
# Runs that DIR/runs.tsv holds already are not made again: interrupted, by whatever, it goes on where it was. A row is one
# write, its raw output is stored before it, and a last line without its newline is taken away before the first row.
# Servers are started when a block first needs them and stopped at its end. One that dies is reported with its standard
# error, the run is invalid, and the next run of its gets a fresh one.
# It stops when there is a file DIR/.stop (or STUDY_STOP, if that is set), when a load is interrupted by SIGINT, or when who started
# it has gone. Signals are not its way to hear of it: a bash of version 5.2 that has to run a trap while it expands a $(...) takes
# the trap for a part of that and gives up, and one that leaves a `wait` for a trap may never learn again that a child ended.
# Exit status: 0 all runs valid, 3 some invalid, 130 interrupted, 1 anything else.
set -euo pipefail
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
project=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=collect/scratch.sh
. "$project/collect/scratch.sh"
# shellcheck source=collect/stage.sh
. "$project/collect/stage.sh"
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
# shellcheck source=collect/origin.sh
. "$project/collect/origin.sh"
# shellcheck source=collect/link.sh
. "$project/collect/link.sh"

columns='started seconds complete failed non2xx length rps mean_ms sd_ms min_ms p50_ms p90_ms p95_ms p99_ms max_ms kbytes_s load_cpu server_cpu_us voluntary involuntary peak_kib held each_kib cut lost unanswered again_ms workers busiest idle_kib valid'
# So many requests are enough to count context switches, in a run of its own where launch.c says why.
probe_requests=60
probe_works=yes

say() {
    if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
    printf '%s\n' "$*" >&2
}
fail() {
    say "run: $*"
    exit 1
}

if [[ $# -ne 1 || $1 == -* ]]; then
    echo 'usage: collect/run.sh DIR' >&2
    exit 2
fi
dir=$1
if [[ ! -s $dir/plan.tsv || ! -f $dir/study.txt ]]; then fail "$dir holds no study.txt and plan.tsv"; fi

setting() { study_key "$dir/study.txt" "$1"; }
machine() { awk -F '\t' -v key="$1" '$1 == key { value = $2 } END { print value }' "$dir/machine.tsv" 2>/dev/null || :; }

# A study over a link, or with ports of its own, has a network of its own: this starts again in it.
link=$(setting link) client_ports=$(setting client-ports)
if [[ ! ${STUDY_NETWORK:-} ]]; then
    link_own=()
    if [[ $link ]]; then
        if ! link_enter; then fail "$link_problem"; fi
    elif [[ $client_ports ]] && ! ports_enter "$client_ports"; then
        say "run: clients cannot have the ports $client_ports here, and take those of the machine"
    fi
    if ((${#link_own[@]})); then STUDY_NETWORK=own exec "${link_own[@]}" "$project/collect/run.sh" "$dir"; fi
fi

# ---- begin and end ----

stopping='' work='' stop_file=${STUDY_STOP:-$dir/.stop}
finish() {
    crowd_end
    servers_stop
    cost_end
    scratch_end
    rm -f -- "$dir/.lock" "$dir/.stop"
}
stop_asked() {
    if [[ -e $stop_file ]] || ! kill -0 "$PPID" 2>/dev/null; then stopping=yes; fi
    [[ $stopping ]]
}
trap finish EXIT
trap '' INT TERM HUP

# One at a time; what was killed a moment ago may need another to end.
exec {lock}>"$dir/.lock"
if ! flock -w 5 "$lock"; then
    trap - EXIT
    fail "$dir is being worked on already"
fi
rm -f -- "$dir/.stop"

scratch_begin
chmod 755 "$work"
documents=$work/data
mkdir "$documents"
cp "$project"/data/* "$documents/"
# A document N.bin that data/ does not hold is made, of N bytes.
while read -r large; do
    if [[ ! -e $documents/$large ]]; then head -c "${large%.bin}" /dev/urandom >"$documents/$large"; fi
done < <(cut -f5 "$dir/plan.tsv" | sort -u | grep -xE '[1-9][0-9]{0,8}[.]bin' || :)
chmod -R a+rX "$documents"
cost_begin

# ---- what is done already ----

mapfile -t plan <"$dir/plan.tsv"
head_line=${plan[0]}$'\t'${columns// /$'\t'}
declare -A finished=()
invalid=0
if [[ -s $dir/runs.tsv ]]; then
    believed=$(mktemp "$dir/runs.XXXXXX")
    awk -F '\t' -v n="$(awk -F '\t' '{ print NF }' <<<"$head_line")" 'NF == n && !($1 in seen) { seen[$1] = 1; print }' \
        <(if [[ -n $(tail -c 1 "$dir/runs.tsv") ]]; then sed '$d' "$dir/runs.tsv"; else cat "$dir/runs.tsv"; fi) >"$believed"
    chmod 644 "$believed"
    mv -- "$believed" "$dir/runs.tsv"
    while IFS=$'\t' read -r number _; do finished[$number]=1; done < <(sed 1d "$dir/runs.tsv")
    invalid=$(awk -F '\t' 'NR > 1 && $NF != "yes" && $NF !~ /^cannot hold: / { n++ } END { print n + 0 }' "$dir/runs.tsv")
    if [[ -f $dir/raw.gz ]] && ! gzip -t "$dir/raw.gz" 2>/dev/null; then
        { gzip -dc "$dir/raw.gz" 2>/dev/null || :; } | gzip >"$dir/raw.part"
        mv -- "$dir/raw.part" "$dir/raw.gz"
    fi
fi
if [[ ! -s $dir/runs.tsv ]]; then printf '%s\n' "$head_line" >"$dir/runs.tsv" || fail "cannot write to $dir"; fi

epoch=$(machine started_epoch)
if [[ ! $epoch ]]; then
    epoch=$EPOCHREALTIME
    printf 'started\t%s\nstarted_epoch\t%s\n' "$(date -u '+%Y-%m-%d %H:%M:%S UTC')" "$epoch" >>"$dir/machine.tsv"
else
    printf 'resumed\t%s\n' "$(date -u '+%Y-%m-%d %H:%M:%S UTC')" >>"$dir/machine.tsv"
fi
printf 'cost_method\t%s\n' "$cost_method" >>"$dir/machine.tsv"
if [[ $(setting fresh) ]]; then printf 'memory_method\tPSS without pages of files\n' >>"$dir/machine.tsv"; fi
if [[ $link ]]; then
    if ! link_begin "$link"; then fail "$link_problem"; fi
    printf 'link\t%s\n' "$link_text" >>"$dir/machine.tsv"
elif [[ $client_ports && ${STUDY_NETWORK:-} ]]; then
    ports_begin "$client_ports" || fail "clients cannot have the ports $client_ports"
fi
printf 'client_ports\t%s\n' "$(ports_text)" >>"$dir/machine.tsv"

timeout=$(setting timeout) timeout=${timeout:-60}
fresh=$(setting fresh)
idle_timeout=$(setting idle-timeout) request_timeout=$(setting request-timeout) fault=$(setting fault)
# Servers that die of one request are built for this study alone.
if [[ $fault ]]; then SERVER_FOLDER=${SERVER_FOLDER:-$project/build/crash}; fi
rate=$(setting rate) duration=$(setting duration) duration=${duration:-2}
processors_here=$(nproc)
mapfile -t processor_list < <(awk '/^Cpus_allowed_list/ {
    n = split($2, part, ",")
    for (i = 1; i <= n; i++) { split(part[i] "-" part[i], ends, "-"); for (p = ends[1]; p <= ends[2]; p++) print p } }' /proc/self/status)

# ---- what else ran ----

# All processors' time, in ticks: what programs used, and what the host of a virtual machine gave to others.
machine_ticks() {
    local name user nice system steal
    read -r name user nice system _ _ _ _ steal _ </proc/stat
    ticks_used=$((user + nice + system)) ticks_stolen=${steal:-0}
}

# Ticks of this program and of all of its children that have ended, with theirs.
own_ticks() {
    local line fields
    read -r line <"/proc/$$/stat"
    read -ra fields <<<"${line##*) }"
    ticks_own=$((fields[11] + fields[12] + fields[13] + fields[14]))
}

# Says how much of the processors others had since the beginning; the servers have ended, so that they count as ours.
others_record() {
    local hz used=$ticks_used stolen=$ticks_stolen own=$ticks_own all
    hz=$(getconf CLK_TCK)
    all=$(((${EPOCHREALTIME/./} - begun_us) * hz * $(getconf _NPROCESSORS_ONLN) / 1000000))
    machine_ticks
    own_ticks
    if ((all < hz)); then return; fi
    used=$((ticks_used - used - ticks_own + own)) stolen=$((ticks_stolen - stolen))
    printf 'others_percent\t%d\nstolen_percent\t%d\n' $((used > 0 ? 100 * used / all : 0)) $((100 * stolen / all)) >>"$dir/machine.tsv"
}

# ---- progress ----

total=$((${#plan[@]} - 1)) done_before=${#finished[@]} done_now=0
begun=$EPOCHREALTIME
micro() { local t=$1; echo "${t%.*}${t#*.}"; }
machine_ticks
own_ticks
begun_us=$(micro "$begun") epoch_us=$(micro "$epoch")
clock_text() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# As wide as the terminal is, so that a line does not wrap: it would scroll, and not be written over.
terminal_width() {
    width=$(stty size <&2 2>/dev/null) || :
    width=${width##* }
    if [[ ! $width || $width == 0 ]]; then width=80; fi
}
width=80

progress() {
    local now_us=${EPOCHREALTIME/./} passed left='' line count=$((done_before + done_now))
    passed=$(((now_us - begun_us) / 1000000))
    if ((done_now > 0)); then left=", $(clock_text $(((now_us - begun_us) * (total - count) / done_now / 1000000))) to go"; fi
    if [[ -t 2 && $1 == run ]]; then
        printf -v line '%3d%%  %d:%02d gone%s   block %d: %s, %s, %s at once, %s requests' $((100 * count / total)) \
            $((passed / 60)) $((passed % 60)) "$left" "$block" "$server" "$file" "$concurrency" "$requests"
        printf '\r\033[K%s' "${line:0:width-1}" >&2
    elif [[ ! -t 2 && $1 == block ]]; then
        printf '%3d%%  block %d done, %d of %d runs, %s gone%s\n' $((100 * count / total)) "$2" "$count" "$total" \
            "$(clock_text "$passed")" "$left" >&2
    fi
}

# ---- one run ----

# Puts a load on the server and measures it, into NAME.out and NAME.result; load_command has been called. Further arguments
# go to `launch load`.
apply_load() {
    local name=$work/$1
    local -a read=() told=()
    shift
    read -ra read <<<"${server_read[$key]}"
    "$project/collect/launch" load --server "${server_pid[$key]}" "${read[@]}" "${load_hold[@]}" --timeout "$timeout" \
        --result "$name.result" --stop "$stop_file" "$@" -- "${load_argv[@]}" >"$name.out" 2>&1 </dev/null || :
    { read -ra told <"$name.result"; } 2>/dev/null || :
    if [[ ${told[2]:-} == stopped ]]; then stopping=yes; fi
    ! stop_asked
}

# Counts context switches in a short run of its own, for servers whose processes or threads come and go, and says
# `requests voluntary involuntary`. Without the right to ask the kernel for them nothing is said.
probe() {
    local own=$requests whole=$timeout told=() ok
    if [[ $EUID -ne 0 || ! $probe_works ]]; then return 0; fi
    if ((requests > probe_requests)); then requests=$probe_requests; fi
    if ((concurrency > requests)); then requests=$concurrency; fi
    # Where requests wait for something a probe would only tell that they do.
    if ((us * requests / own > 1000000)); then
        requests=$own
        return 0
    fi
    load_command "${server_url[$key]}" "$work/probe.percentiles"
    timeout=2 ok=yes
    apply_load probe --switches || ok=''
    timeout=$whole
    if [[ $ok ]] && read -ra told <"$work/probe.result" && [[ ${told[2]} == 0 ]]; then
        if [[ ${told[4]} == - ]]; then probe_works=''; else switches="$((requests * calls)) ${told[4]} ${told[5]}"; fi
    fi
    requests=$own
}

# Where the servers and the load generator may run, from the factor `processors`.
place() {
    local IFS=,
    server_processors='' load_hold=() workers=$processors_here
    if [[ $processors == all ]]; then return; fi
    workers=$processors
    server_processors="${processor_list[*]:0:processors}"
    # The load generator gets the rest, where there is one.
    if ((processors < processors_here)); then load_hold=(--processors "${processor_list[*]:processors}"); fi
}

# Of a crew: what each worker had answered before the run, and in crew how many they are and which share of it the busiest had.
declare -A counted=()

crew_counts() {
    local text=''
    if server_workers "$key" 0; then text=${worker_requests[*]}; fi
    counted[$key]=$text
}

crew_share() {
    local before i sum=0 most=0 own answered=1
    read -ra before <<<"${counted[$key]:-}"
    if ((${#before[@]} == 0)); then return 0; fi
    if [[ $load != wrk ]]; then answered=$((requests * calls)); fi
    for own in "${before[@]}"; do sum=$((sum + own)); done
    if ! server_workers "$key" $((sum + answered)); then
        crew_counts
        return 0
    fi
    sum=0
    for i in "${!worker_requests[@]}"; do
        own=$((worker_requests[i] - before[i]))
        sum=$((sum + own))
        if ((own > most)); then most=$own; fi
    done
    printf -v crew '%d\t%d.%04d' ${#before[@]} $((most / sum)) $((most * 10000 / sum % 10000))
    counted[$key]=${worker_requests[*]}
}

# The memory of an idle connection, idle_kib: what the server's tree has with them beyond what it had before. Known only of a server
# that nobody else had before, since freed memory is used again.
memory_before() {
    idle_kib=- memory_then=''
    if [[ $fresh && $idle -gt 0 ]]; then memory_then=$("$project/collect/launch" memory --server "${server_pid[$key]}"); fi
}

memory_of_idle() {
    local gained sign=''
    if [[ ! $memory_then ]]; then return 0; fi
    gained=$(($("$project/collect/launch" memory --server "${server_pid[$key]}") - memory_then))
    # Few connections may weigh less than what a server gives back meanwhile. That counts, too, or else the mean would be too high.
    if ((gained < 0)); then sign=- gained=$((-gained)); fi
    printf -v idle_kib '%s%d.%03d' "$sign" $((gained / idle)) $((gained * 1000 / idle % 1000))
}

declare -A failures=() document_bytes=()
own_us=0

# Sets us.
seconds_to_us() { if [[ $1 == *.* ]]; then us=$((10#${1/./})); else us=$(($1 * 1000000)); fi; }

run_one() {
    local words='' row switches='' crew=$'-\t-' idle_kib=- memory_then='' started_us told=() line before_us command_line=''
    local head=$work/run.head out=$work/run.out percentiles=$work/run.percentiles result=$work/run.result
    before_us=${EPOCHREALTIME/./}
    # As many connections as come at once are all there are.
    if [[ $load == httperf && $requests == - ]]; then requests=$concurrency; fi
    if [[ $service == files ]]; then
        if [[ ! -f $documents/$file ]]; then bytes=-; else bytes=${document_bytes[$file]:=$(stat -c %s "$documents/$file")}; fi
    else
        bytes=${file##*/}
        if [[ ! $bytes =~ ^[0-9]+$ ]]; then bytes=-; fi
    fi
    keep=no
    if [[ $keepalive == on || $calls -gt 1 ]]; then keep=yes; fi
    place
    # A server that held many connections keeps some of the memory.
    key="$server $scheme $certificate $protocol $service $processors $idle $slow"
    if [[ $server == floor-* ]]; then
        key+=" $bytes $keep"
        if [[ $bytes == - ]]; then words="there is no document $file"; fi
    fi

    : >"$percentiles"
    : >"$out"
    echo '0 0 none - - - - yes' >"$result"
    started_us=${EPOCHREALTIME/./}
    if [[ ! $words && ! ${server_pid[$key]:-} ]]; then
        if ((${failures[$key]:-0} >= 3)); then
            words='server does not start'
        elif ! server_start "$key" "$server"; then
            words=$server_problem
            failures[$key]=$((${failures[$key]:-0} + 1))
            say "run $run: $words"
        else
            if [[ -d $dir/configurations && $(recipe_needs "$server") ]]; then publish; fi
            crew_counts
        fi
    fi
    if stop_asked; then return 1; fi
    if [[ ! $words ]]; then
        if [[ $service == proxy-* ]] && ! origin_begin; then
            words=$origin_problem
            say "run $run: $server: $words"
        fi
    fi
    if stop_asked; then return 1; fi
    if [[ ! $words ]]; then
        load_command "${server_url[$key]}" "$work/run.percentiles"
        command_line="${load_argv[*]}"
        started_us=${EPOCHREALTIME/./}
        memory_before
        if crowd_begin "$idle" "$slow" "${server_url[$key]}" "$file" "${server_read[$key]}"; then
            memory_of_idle
            if stop_asked || ! apply_load run; then return 1; fi
        fi
        crowd_end
        words=$crowd_problem
        if stop_asked; then return 1; fi
        { read -ra told <"$work/run.result"; } 2>/dev/null || :
        if [[ $service == proxy-* && ${told[2]:-} == 0 ]] && ! origin_check; then
            words=$origin_problem
            say "run $run: $server: $words"
        fi
        seconds_to_us "${told[0]:-0}"
        if [[ ${told[2]:-} == 0 && ! $fault && $idle == 0 && $slow == 0 ]]; then crew_share; fi
        if [[ $fault ]]; then
            # A crew whose worker has died once would take the next death for a habit.
            server_stop "$key"
        elif [[ ${told[7]:-} == no ]]; then
            words=$(server_words "$key")
            words="server died${words:+: $words}"
            say "run $run: $server: $words"
            server_stop "$key"
        elif [[ ${told[2]:-} == 0 && ${told[4]:-} == - && $load != wrk && $load != witness && $idle == 0 && $slow == 0 ]]; then
            probe || :
            if stop_asked; then return 1; fi
            crew_counts
        fi
    fi
    if [[ $fresh ]]; then server_stop "$key"; fi
    started_us=$((started_us - epoch_us))
    row=$(load_row "$out" "$percentiles" "$result" "$words" "$switches" "${crowd_told:-}") || return 1
    row=${row%$'\t'*}$'\t'$crew$'\t'$idle_kib$'\t'${row##*$'\t'}
    read -ra told <"$result"
    printf '# run %s %s %s %s %s: %s\n# launch: %s\n' "$run" "$server" "$file" "$concurrency" "$requests" "$command_line" "${told[*]}" >"$head"
    cat "$head" "$out" "$percentiles" | gzip >>"$dir/raw.gz" ||
        fail "cannot write $dir/raw.gz; every run before is kept; go on with ./dcollect.sh --resume $dir"
    printf -v line '%s\t%d.%03d\t%s\n' "$planned" $((started_us / 1000000)) $((started_us / 1000 % 1000)) "$row"
    printf '%s' "$line" >>"$dir/runs.tsv" ||
        fail "cannot write $dir/runs.tsv: every run before is kept; go on with ./dcollect.sh --resume $dir"
    if [[ $row != *$'\tyes' && $row != *$'\tcannot hold: '* ]]; then
        invalid=$((invalid + 1))
        if [[ ! $words ]]; then say "run $run: $server, $file, $concurrency at once: invalid: ${row##*$'\t'}"; fi
    fi
    done_now=$((done_now + 1))
    seconds_to_us "${told[0]:-0}"
    own_us=$((own_us + ${EPOCHREALTIME/./} - before_us - us))
}

# Keeps the configuration that a peer was started with, once.
publish() {
    local name from=$work/server.$server_number file_from
    name=$(recipe_name "$server")
    for file_from in "$from"/*.conf; do
        if [[ -e $file_from && ! -e $dir/configurations/$name.conf ]]; then
            sed "s|$work|WORK|g" "$file_from" >"$dir/configurations/$name.conf"
        fi
    done
}

mkdir -p "$dir/configurations"
last_block=''
for planned in "${plan[@]:1}"; do
    IFS=$'\t' read -r run block _ server file concurrency requests calls keepalive scheme protocol service processors load idle slow certificate sessions <<<"$planned"
    idle=${idle:-0} slow=${slow:-0} certificate=${certificate:--} sessions=${sessions:--}
    if [[ ${finished[$run]:-} ]]; then continue; fi
    if [[ $block != "$last_block" ]]; then
        if [[ $last_block ]]; then progress block "$last_block"; fi
        servers_stop
        failures=()
        last_block=$block
        if [[ -t 2 ]]; then terminal_width; fi
    fi
    progress run
    if stop_asked; then break; fi
    if ! run_one; then
        if [[ ! $stopping ]]; then fail "run $run could not be recorded; every run before is kept"; fi
        break
    fi
done
servers_stop
if ((done_now > 0)); then others_record; fi
if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi

if [[ $stopping ]]; then
    say "Interrupted: $((done_before + done_now)) of $total runs are kept. Go on with: ./dcollect.sh --resume $dir"
    exit 130
fi
if [[ $last_block ]]; then progress block "$last_block"; fi
if ((done_now > 0)); then
    printf 'own_ms_per_run\t%d\n' $((own_us / done_now / 1000)) >>"$dir/machine.tsv"
    printf 'ended\t%s\n' "$(date -u '+%Y-%m-%d %H:%M:%S UTC')" >>"$dir/machine.tsv"
fi
if ((invalid > 0)); then
    say "$invalid of $total runs are invalid; $dir/runs.tsv tells why in its last column"
    exit 3
fi
