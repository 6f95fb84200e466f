# shellcheck shell=bash disable=SC2034,SC2154 # the factors of the cell come in, origin_url and origin_problem go out
# origin.sh: the origin behind a proxy, and the proof that a hit was a hit. A library: source it after servers.sh.
#
# usage:    origin_begin; ...load... ; origin_check
# example:  service=proxy-hit file=125 requests=500 key=...; origin_begin && ab -X ... "${origin_url}125" && origin_check
#
# The origin is `thread_server --service sized`, in a control group of its own, so that what it costs is not put to the proxy. It runs
# where the load does. The proxy is the server of `key`; its service says what it is to find:
#   proxy-hit            an odd size, which the origin lets it keep for an hour: the origin is not asked at all
#   proxy-revalidation   the same, but to be kept for no time: the origin is asked each time, and answers 304
#   proxy-miss           an even size, a new document each time: the origin is asked each time, and answers 200
# Before the load the proxy must say so itself, by Cache-Status, and after it; and the origin must have been asked as many times as
# that means. Otherwise it fails, with the reason in origin_problem.

origin_url='' origin_key='' origin_problem='' origin_asked=0
origin_model=thread

# What Cache-Status (RFC 9211) says of a reply of this service.
origin_expected() {
    case $service in
    proxy-hit) echo '*; hit*' ;;
    proxy-revalidation) echo '*; fwd=stale; fwd-status=304*' ;;
    proxy-miss) echo '*; fwd=*; fwd-status=200*' ;;
    esac
}

# Asks the proxy once, and fails when the answer is not what the service says.
origin_seen() {
    local head line status='no Cache-Status' expected
    expected=$(origin_expected)
    head=$(server_ask "${server_url[$key]}" "$origin_url$file" || :)
    while read -r line; do
        if [[ ${line,,} == cache-status:* ]]; then status=${line#*: }; fi
    done <<<"$head"
    # shellcheck disable=SC2053 # a pattern
    if [[ $head != HTTP/1.?' 200 '* || $status != $expected ]]; then
        origin_problem="no ${service#proxy-}: the proxy says ${head%%$'\n'*}, $status"
        return 1
    fi
}

# Starts the origin unless it runs, and has the proxy store the document.
origin_begin() {
    local max_age=3600
    if [[ $service == proxy-revalidation ]]; then max_age=0; fi
    origin_problem='' origin_key="origin $max_age"
    if [[ ${server_pid[$origin_key]:-} ]] && ! server_running "${server_pid[$origin_key]}"; then server_stop "$origin_key"; fi
    if [[ ! ${server_pid[$origin_key]:-} ]] && ! origin_start "$max_age"; then return 1; fi
    origin_url=${server_url[$origin_key]}
    # The first answer to a new proxy comes from the origin.
    if ! origin_seen && ! origin_seen; then return 1; fi
    origin_problem=''
    if ! server_requests "$origin_key" 0; then
        origin_problem='the origin does not say how often it was asked'
        return 1
    fi
    origin_asked=$server_requests
}

origin_start() {
    local max_age=$1 service=sized server_processors=${load_hold[1]:-}
    if server_start "$origin_key" "$origin_model"; then return 0; fi
    origin_problem="the origin: $server_problem"
    return 1
}

# Whether the origin was asked as often as that many requests mean.
origin_check() {
    local expected=$requests
    if [[ $service == proxy-hit ]]; then expected=0; fi
    origin_problem=''
    if ! server_requests "$origin_key" $((origin_asked + expected)); then
        origin_problem='the origin does not say how often it was asked'
    elif ((server_requests != origin_asked + expected)); then
        origin_problem="no ${service#proxy-}: of $requests requests the origin was asked for $((server_requests - origin_asked))"
    else
        origin_seen || :
    fi
    [[ ! $origin_problem ]]
}
