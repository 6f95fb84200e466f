# shellcheck shell=bash disable=SC2034,SC2154 # project, work and the factors come in, server_read goes out
# servers.sh: starts servers, waits until they answer, stops them. A library: source it after cost.sh and recipes.sh.
#
# usage:    server_start KEY LABEL        reads the factors of the cell, see recipes.sh; sets server_url[KEY] and more
#           server_stop KEY; servers_stop
# example:  bytes=1000 keep=no workers=2; server_start x floor-fork && ab "${server_url[x]}small.txt"; server_stop x
#
# Needs `project` (the folder of the project) and `work` (a folder for the servers' files).

declare -A server_pid=() server_url=() server_read=() server_group=() server_error=() server_stats=()
server_number=0
server_problem=''
server_patience=10

# Sleeps without starting a process: nothing ever comes out of this pipe.
exec {server_pause}<> <(:)
pause() { read -rt "$1" -u "$server_pause" || :; }

# Prints the head of the answer to a request for a path or, from a proxy, for a whole URL; fails when nobody answers.
server_ask() {
    local url=$1 target=/$2 address port line
    if [[ $2 == http://* ]]; then target=$2; fi
    address=${url#*://} address=${address%%/*} port=${address##*:}
    (
        # A shell goes on after this has failed, and would then talk to whatever descriptor 3 was before.
        exec 3<>"/dev/tcp/127.0.0.1/$port" || exit
        printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$target" >&3
        while read -rt 5 line <&3; do
            line=${line%$'\r'}
            if [[ ! $line ]]; then break; fi
            echo "$line"
        done
    ) 2>/dev/null
}

# A port that nobody listens on, below those that the kernel gives to clients.
server_free_port() {
    local port
    for _ in {1..50}; do
        port=$((12000 + (RANDOM * 32768 + RANDOM) % 18000))
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return
        fi
    done
    return 1
}

# Whether a process runs. One that has ended does not, even if this shell has not been told of its end yet.
server_running() {
    local line=''
    { read -r line <"/proc/$1/stat"; } 2>/dev/null && line=${line##*) } && [[ $line && $line != [ZX]* ]]
}

# The last lines of what a server said on its standard error, in one line.
server_words() { tail -n 3 "${server_error[$1]}" | tr '\t\n' '  ' | sed 's/  *$//' | cut -c1-200; }

# Waits for the server to name its URL (ours, floors) and to answer there.
server_wait() {
    local key=$1 out=$2 path=$3 line deadline=$((SECONDS + server_patience)) pid=${server_pid[$1]}
    while ((SECONDS < deadline)); do
        if [[ ! ${server_url[$key]} ]] && read -r line <"$out" && [[ $line =~ https?://[^\ ]* ]]; then
            server_url[$key]=${BASH_REMATCH[0]}
        fi
        if [[ ${server_url[$key]} == https:* || (${server_url[$key]} && $(server_ask "${server_url[$key]}" "$path") == HTTP/*) ]]; then
            return 0
        fi
        if ! server_running "$pid"; then break; fi
        pause 0.003
    done
    return 1
}

# Starts LABEL under the name KEY; on failure says why in server_problem.
server_start() {
    local key=$1 label=$2 name folder port='' peer
    local -a hold=()
    name=$(recipe_name "$label")
    peer=$(recipe_needs "$label")
    if [[ $peer && $scheme == https ]]; then
        server_problem="$name is set up for http only"
        return 1
    fi
    if [[ ($peer || $name == floor-*) && ($service == proxy-* || ${link_near:-}) ]]; then
        server_problem="$name is set up neither as a proxy nor behind a link"
        return 1
    fi
    if [[ ${server_processors:-} ]]; then hold=(--processors "$server_processors"); fi
    for _ in 1 2 3 4 5; do
        server_number=$((server_number + 1))
        folder=$work/server.$server_number
        mkdir -p "$folder"
        : >"$folder/stdout"
        server_url[$key]=''
        if [[ $peer ]]; then
            port=$(server_free_port)
            server_url[$key]="http://127.0.0.1:$port/"
        fi
        recipe_command "$label" "$folder" "$port"
        server_group[$key]=$server_number
        cost_group "$server_number"
        server_read[$key]=${cost_read[*]}
        server_error[$key]=$folder/stderr
        server_stats[$key]=$folder/stats
        "$project/collect/launch" server "${cost_join[@]}" "${hold[@]}" -- "${recipe_argv[@]}" \
            >"$folder/stdout" 2>"$folder/stderr" </dev/null &
        server_pid[$key]=$!
        if server_wait "$key" "$folder/stdout" "${file:-}"; then return 0; fi
        server_problem="$label does not start: $(server_words "$key")"
        server_stop "$key"
        # Between the look at a port and its use somebody else may have taken it; nothing else is worth a second try.
        if [[ ! $peer || $server_problem != *'ddress already in use'* ]]; then break; fi
    done
    return 1
}

# Stops a server by SIGTERM and waits for it; what does not end in time, or was left behind, is killed.
server_stop() {
    local key=$1 pid=${server_pid[$1]:-} deadline
    if [[ ! $pid ]]; then return 0; fi
    kill -TERM "$pid" 2>/dev/null || :
    deadline=$((SECONDS + 8))
    while server_running "$pid" && ((SECONDS < deadline)); do pause 0.002; done
    kill -KILL -- "-$pid" 2>/dev/null || :
    wait "$pid" 2>/dev/null || :
    cost_group_end "${server_group[$key]}"
    unset "server_pid[$key]"
}

servers_stop() {
    local key
    for key in "${!server_pid[@]}"; do kill -TERM "${server_pid[$key]}" 2>/dev/null || :; done
    for key in "${!server_pid[@]}"; do server_stop "$key"; done
}

# Asks a server how many requests it has answered so far, into server_requests, until they are `least`: see server_workers. Fails
# when it does not tell.
server_requests() {
    local key=$1 least=$2 text='' told=''
    server_requests=0
    for _ in {1..60}; do
        # What it wrote the last time must not be read again.
        : >"${server_stats[$key]}"
        if ! kill -USR1 "${server_pid[$key]}" 2>/dev/null; then return 1; fi
        for _ in {1..50}; do
            pause 0.002
            if read -r text <"${server_stats[$key]}" && [[ $text == *'}' && $text =~ \"requests\":\ ([0-9]+) ]]; then
                told=yes server_requests=${BASH_REMATCH[1]}
                break
            fi
        done
        if [[ ! $told ]]; then return 1; fi
        if ((server_requests >= least)); then break; fi
    done
}

# Asks a server how many requests each of its workers has answered so far, into worker_requests, until they are `least` in all: a
# connection is counted when it has ended, and its client may know that sooner. Fails where a server has no workers or does not
# tell: only who understands --stats has made the file, and may be sent the signal.
server_workers() {
    local key=$1 least=$2 text='' sum
    for _ in {1..60}; do
        worker_requests=() sum=0
        if [[ ! -e ${server_stats[$key]:-} ]] || ! kill -USR1 "${server_pid[$key]}" 2>/dev/null; then return 1; fi
        pause 0.002
        if ! read -r text <"${server_stats[$key]}"; then continue; fi
        if [[ $text != *'"workers": ['* ]]; then
            server_stats[$key]=''
            return 1
        fi
        text=${text#*'"workers": ['}
        while [[ $text =~ \"requests\":\ ([0-9]+) ]]; do
            worker_requests+=("${BASH_REMATCH[1]}")
            sum=$((sum + BASH_REMATCH[1]))
            text=${text#*"${BASH_REMATCH[0]}"}
        done
        if ((sum >= least)); then return 0; fi
    done
    return 1
}
