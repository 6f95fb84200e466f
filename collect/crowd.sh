# shellcheck shell=bash disable=SC2034,SC2154 # project, work and timeout come in, crowd_told goes out
# crowd.sh: clients that hold connections while a load is measured. A library: source it after servers.sh.
#
# usage:    crowd_begin IDLE SLOW URL FILE READ; ...measure...; crowd_end
# example:  crowd_begin 1000 0 http://127.0.0.1:8000/ small.txt "${server_read[x]}" && ab ...; crowd_end; echo "$crowd_told $crowd_problem"
#
# crowd_begin waits until they are all there; it fails when the server does not take them, and says so in crowd_problem, as crowd_end
# does when some were lost meanwhile. A server that cannot hold so many connections is a result, and begins with `cannot hold`.
# READ are the options of `launch load` that name the server's control group (cost.sh); what its memory grew by while they came, for each
# of them in KiB, is told where there is such a group: before the load, so that nothing else grew.
# crowd_told: what the crowd said at its end, held lost cut refused (see crowd.c), and that memory; nothing without a crowd.

crowd_pid='' crowd_told='' crowd_problem=''
crowd_patience=2
crowd_bytes='' crowd_each='-'

# Sets crowd_bytes: the memory of the group that these options name.
crowd_memory() {
    local folder=$1
    crowd_bytes=''
    if [[ $folder != *--peak* && $folder != *--current* ]]; then return 0; fi
    folder=${folder##* } folder=${folder%/*}
    { read -r crowd_bytes <"$folder/memory.usage_in_bytes" || read -r crowd_bytes <"$folder/memory.current"; } 2>/dev/null || :
}

crowd_begin() {
    local kind=idle count=$1 word='' held='' address before
    crowd_told='' crowd_problem='' crowd_each='-'
    if ((count == 0)); then kind=slow count=$2; fi
    if ((count == 0)); then return 0; fi
    address=${3#*://} address=${address%%/*}
    # What the last crowd said must not be heard again.
    : >"$work/crowd.out"
    crowd_memory "${5:-}"
    before=$crowd_bytes
    "$project/collect/crowd" "$kind" "$count" --patience "$crowd_patience" --seconds $((${timeout:-60} + 60)) \
        "${address##*:}" "/$4" >"$work/crowd.out" 2>"$work/crowd.err" </dev/null &
    crowd_pid=$!
    while ! { read -r word held _ <"$work/crowd.out"; } 2>/dev/null; do
        if ! server_running "$crowd_pid"; then break; fi
        pause 0.003
    done
    if [[ $word == ready && $held == "$count" ]]; then
        crowd_memory "${5:-}"
        if [[ $before && $crowd_bytes ]]; then
            printf -v crowd_each '%d.%03d' $(((crowd_bytes - before) / count / 1024)) $(((crowd_bytes - before) / count % 1024 * 1000 / 1024))
            if ((crowd_bytes < before)); then crowd_each=0; fi
        fi
        return 0
    fi
    if [[ $word != ready ]]; then
        crowd_problem="the crowd does not come: $(tr '\t\n' '  ' <"$work/crowd.err")"
    elif [[ $kind == idle ]]; then
        crowd_problem="cannot hold: $held of $count"
    else
        crowd_problem="$held of $count slow clients could connect"
    fi
    return 1
}

crowd_end() {
    local deadline word held lost cut refused
    if [[ ! $crowd_pid ]]; then return 0; fi
    kill -TERM "$crowd_pid" 2>/dev/null || :
    deadline=$((SECONDS + 5))
    while server_running "$crowd_pid" && ((SECONDS < deadline)); do pause 0.002; done
    kill -KILL "$crowd_pid" 2>/dev/null || :
    wait "$crowd_pid" 2>/dev/null || :
    crowd_pid=''
    while read -r word held lost cut refused; do
        if [[ $word != end ]]; then continue; fi
        crowd_told="$held $lost $cut $refused $crowd_each"
        if [[ ! $crowd_problem && $lost != 0 ]]; then crowd_problem="cannot hold: $lost were closed meanwhile"; fi
    done <"$work/crowd.out"
}
