#!/bin/bash
# dcollect.sh: runs a study of web servers on this machine: plan -> runs -> summary -> figures -> report.
#
# usage:    ./dcollect.sh [OPTION]... [STUDY]      ./dcollect.sh report DIR      ./dcollect.sh overview
# example:  ./dcollect.sh --quick
set -euo pipefail
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
project=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=collect/scratch.sh
. "$project/collect/scratch.sh"
# shellcheck source=collect/stage.sh
. "$project/collect/stage.sh"

help() {
    cat <<'END'
Usage: ./dcollect.sh [OPTION]... [STUDY]
       ./dcollect.sh report DIR
       ./dcollect.sh overview

Measures web servers on this machine, and writes a report with figures. Without a study:
fork-vs-thread, requests/s against concurrency, one process or one thread per connection.

  --quick              about a minute: fewer levels and repetitions
  --list               the studies, with what they ask
  --resume [DIR]       finish an interrupted study (the latest, without DIR)
  --output DIR         put the results there (results/STUDY/DATE-TIME)
  --seed N             the seed of the order of the runs
  --help               print this
  --version            print the version

Factors; each takes a list or, if it is a number, ranges; they go before what the study says:
  --servers fork,thread,nginx      ours, and floor-fork floor-thread floor-one nginx lighttpd
                                   apache-prefork apache-worker apache-event; all: every one of
                                   these that is not named, ours with all their ways to accept
  --files small.txt,big.txt        the documents
  --concurrency 1-30               connections at once
  --requests 1000                  requests a run (httperf: connections a run)
  --repetitions 32                 how often everything is measured
  --keepalive off,on               many requests on a connection
  --calls 1,2,5                    requests per connection (httperf)
  --processors all,1,2             what the server is held to; the load gets the rest
  --scheme http,https,udp   --protocol simple,persistent,pipelined
  --certificate p256,rsa2048   --sessions new,resumed      of https (resumed: witness)
  --service files,sized            what is answered; proxy-hit proxy-revalidation proxy-miss: a
                                   caching proxy, by what it is to find
  --load ab,httperf,wrk,witness    the load generator
  --idle 0,100   --slow 0,10       clients that hold a connection meanwhile: silent; a byte a second
and for every run:
  --baseline SERVER    what the others are compared with (the first)
  --link RATE          a link of that rate between server and load, such as 20mbit
  --rate N             connections a second (httperf, at concurrency 1)
  --duration S         seconds a run (wrk)
  --timeout S          a run that takes longer is invalid (60)

report DIR builds figures and report of a results folder again, from its data alone.
overview makes report/index.html, which leads to the published studies, report/claims.html, which
has a verdict on each claim that they test, and what the README shows of them.

Exit status: 0 done, 3 done, but some runs are invalid (their rows say why), 130 interrupted,
2 wrong usage, 1 anything else.
END
}

complain() {
    echo "dcollect: $2" >&2
    exit "$1"
}

list() {
    local file
    for file in "$project"/studies/*; do
        if [[ -f $file ]]; then printf '%-16s %s\n' "${file##*/}" "$(study_key "$file" question)"; fi
    done
}

# ---- the stages ----

# Figures and report from data alone.
analyse() {
    local stage
    for stage in summary compare figures report; do
        "$project/collect/$stage.sh" "$1" || complain 1 "collect/$stage.sh failed on $1; its data are kept"
    done
}

conclude() {
    echo
    "$project/collect/figures.sh" "$1" terminal || :
    echo
    echo "Report:  $1/report.md"
    echo "         $1/index.html"
}

# build STUDY-FILE PLAN [PROGRAM:PACKAGE]... : what the study and its plan need.
build() {
    local study_file=$1 plan=$2
    shift 2
    # shellcheck source=collect/install.sh
    . "$project/collect/install.sh"
    install_missing gcc:gcc make:make /usr/include/stdio.h:libc6-dev /usr/include/openssl/ssl.h:libssl-dev python3:python3 \
        datamash:datamash gnuplot:gnuplot-nox cmark-gfm:cmark-gfm "$@" ||
        exit 1
    if ! make -s -C "$project" >"$work/make" 2>&1; then
        cat "$work/make" >&2
        complain 1 'the servers do not build'
    fi
    # For the certificates, which each study makes anew.
    if cut -f10 "$plan" | grep -qx https; then install_missing openssl:openssl || exit 1; fi
    # Servers that die of one request, for a study with a fault.
    if [[ $(study_key "$study_file" fault) ]] && ! make -s -C "$project" crash >"$work/make" 2>&1; then
        cat "$work/make" >&2
        complain 1 'the servers with a fault do not build'
    fi
}

# shellcheck source=collect/recipes.sh
. "$project/collect/recipes.sh"

# Leaves servers out that this machine does not have, with the command that installs them; stops at unknown ones.
present_servers() {
    local label needs kept=()
    for label in "$@"; do
        if ! recipe_known "$label"; then
            complain 2 "there is no server '$label'; there are: $(recipe_list | tr '\n' ' ')"
        fi
        needs=$(recipe_needs "$label")
        if [[ $needs ]] && ! command -v "${needs%%:*}" >/dev/null; then
            echo "dcollect: $label is not installed, and left out: apt-get install ${needs#*:}" >&2
        else
            kept+=("$label")
        fi
    done
    if ((${#kept[@]} == 0)); then complain 1 'none of the servers is installed'; fi
    servers_present="${kept[*]}"
}

# The programs that the load generators of a study come from.
load_programs() {
    local name
    # shellcheck source=collect/load.sh
    . "$project/collect/load.sh"
    for name in $(tr ',' ' ' <<<"$1"); do load_needs "$name"; done
}

# Prints the programs that the network of a study needs; fails where there can be no link. More ports are had where they can be.
network_programs() {
    if [[ $(study_key "$1" client-ports) && $EUID -eq 0 ]]; then echo ip:iproute2; fi
    if [[ ! $(study_key "$1" link) ]]; then return 0; fi
    # shellcheck source=collect/link.sh
    . "$project/collect/link.sh"
    if ! link_enter; then complain 1 "$link_problem"; fi
    printf '%s\n' ip:iproute2 tc:iproute2 nsenter:util-linux
}

# Runs the plan. On Ctrl-C the stage is told to stop by a file: collect/run.sh says why not by a signal. Its end is the end of a
# pipe that it holds, and not a `wait`, for the same reasons.
measure() {
    local status ended
    exec {ended}< <(
        trap '' INT
        STUDY_STOP=$work/stop exec "$project/collect/run.sh" "$1" 3>&1 >&2
    )
    trap ': >"$work/stop"' INT TERM HUP
    while :; do
        status=0
        read -rt 1 -u "$ended" || status=$?
        if ((status <= 128)); then break; fi
    done
    trap '' INT TERM HUP
    status=0
    wait "$!" || status=$?
    trap - INT TERM HUP
    exec {ended}<&-
    return "$status"
}

# ---- the command line ----

quick='' resume='' output='' seed='' study='' overrides=() given=()
positional=()
while (($#)); do
    argument=$1
    shift
    case $argument in
    --help | -h)
        help
        exit
        ;;
    --version)
        echo "dcollect.sh (fork-vs-thread) $(<"$project/VERSION")"
        exit
        ;;
    --list)
        list
        exit
        ;;
    --quick) quick=yes ;;
    --resume)
        resume=latest
        if [[ ${1:-} == */* || -d ${1:-} ]]; then
            resume=$1
            shift
        fi
        ;;
    --resume=*) resume=${argument#*=} ;;
    --servers | --files | --concurrency | --requests | --repetitions | --keepalive | --calls | --processors | --scheme | --certificate | --sessions | --protocol | \
        --service | --load | --link | --idle | --slow | --baseline | --rate | --duration | --timeout | --seed | --output | \
        --servers=* | --files=* | --concurrency=* | --requests=* | --repetitions=* | --keepalive=* | --calls=* | --processors=* | \
        --scheme=* | --certificate=* | --sessions=* | --protocol=* | --service=* | --load=* | --link=* | --idle=* | --slow=* | --baseline=* | --rate=* | --duration=* | --timeout=* | --seed=* | --output=*)
        name=${argument%%=*} name=${name#--}
        if [[ $argument == *=* ]]; then
            value=${argument#*=}
        else
            if ((!$#)); then complain 2 "--$name needs a value; see --help"; fi
            value=$1
            shift
        fi
        if [[ ! $value || $value == *[$'\n\t']* ]]; then complain 2 "--$name needs a value; see --help"; fi
        case $name in
        seed | rate | duration | timeout)
            if [[ ! $value =~ ^[0-9]{1,9}$ ]]; then complain 2 "--$name takes a number, not '$value'"; fi
            ;;
        esac
        case $name in
        output) output=$value ;;
        seed) seed=$value ;;
        *)
            overrides+=("$name: $value")
            given+=("--$name $(printf %q "$value")")
            ;;
        esac
        ;;
    -*) complain 2 "there is no option '$argument'; see --help" ;;
    *) positional+=("$argument") ;;
    esac
done

if [[ ${positional[0]:-} == report ]]; then
    if ((${#positional[@]} != 2)); then complain 2 'report needs one results folder: ./dcollect.sh report DIR'; fi
    if [[ ! -f ${positional[1]}/runs.tsv ]]; then complain 2 "${positional[1]} holds no runs.tsv: not a results folder"; fi
    analyse "${positional[1]%/}"
    echo "${positional[1]%/}/report.md"
    exit
fi
if [[ ${positional[0]:-} == overview ]]; then
    if ((${#positional[@]} != 1)); then complain 2 'overview takes no more words: it looks into report/'; fi
    "$project/collect/overview.sh" || complain 1 'collect/overview.sh failed'
    echo "$project/report/index.html"
    exit
fi
if ((${#positional[@]} > 1)); then complain 2 "one study at a time, not '${positional[*]}'"; fi
study=${positional[0]:-fork-vs-thread}

work=''
trap scratch_end EXIT
scratch_begin

# ---- an interrupted study ----

if [[ $resume ]]; then
    if ((${#overrides[@]})) || [[ $quick$seed$output ]]; then complain 2 '--resume goes on with the plan as it is, and takes no other option'; fi
    if [[ $resume == latest ]]; then
        resume=''
        cd -- "$project"
        for folder in results/*/*/; do
            if [[ ${positional[0]:-} && $folder != results/${positional[0]:-}/* ]]; then continue; fi
            if [[ -s ${folder}plan.tsv && $(wc -l <"${folder}plan.tsv") -gt $(wc -l 2>/dev/null <"${folder}runs.tsv" || echo 0) &&
                (! $resume || ${folder}plan.tsv -nt ${resume}plan.tsv) ]]; then resume=$folder; fi
        done
        if [[ ! $resume ]]; then complain 2 'no study was interrupted here'; fi
    fi
    dir=${resume%/}
    if [[ ! -s $dir/plan.tsv || ! -f $dir/study.txt ]]; then complain 2 "$dir holds no plan to go on with"; fi
    mapfile -t programs < <(load_programs "$(awk -F '\t' 'NR > 1 && !seen[$14]++ { printf "%s ", $14 }' "$dir/plan.tsv")")
    network_needed=$(network_programs "$dir/study.txt")
    # shellcheck disable=SC2086 # a list
    build "$dir/study.txt" "$dir/plan.tsv" "${programs[@]}" $network_needed
    echo "Going on with $dir" >&2
else
    # ---- a new one ----
    file=$project/studies/$study
    if [[ $study == */* ]]; then file=$study; fi
    if [[ ! -f $file ]]; then complain 2 "there is no study '$study'; there are: $(cd "$project/studies" && echo *)"; fi
    study=${file##*/}
    draft=$work/study
    cat "$file" >"$draft"
    if [[ $quick ]]; then
        echo "# --quick" >>"$draft"
        study_key "$file" quick | tr ' ' '\n' | sed -n 's/=/: /p' >>"$draft"
        if [[ ! $(study_key "$file" quick) ]]; then printf 'repetitions: 4\nconcurrency: 1,2,5,10,20,30\n' >>"$draft"; fi
    fi
    if ((${#overrides[@]})); then
        echo '# from the command line' >>"$draft"
        printf '%s\n' "${overrides[@]}" >>"$draft"
    fi
    seed=${seed:-$((RANDOM * 32768 + RANDOM))}
    echo "seed: $seed" >>"$draft"

    if [[ " $(study_key "$draft" servers | tr ',' ' ') " == *' all '* ]]; then
        build "$draft" /dev/null # the servers tell how they can accept
        # shellcheck disable=SC2046 # a list
        printf '# which all is here\nservers: %s\n' "$(recipe_expand $(study_key "$draft" servers | tr ',' ' '))" >>"$draft"
    fi

    # Once without regard to what is installed, so that a wrong study is told before anything is installed or built.
    make_plan() { awk -v machine="$(nproc)" -v baseline_matters="${1:-}" -f "$project/collect/plan.awk" "$draft" >"$draft.plan" || exit 2; }
    # The baseline must be one of the servers, but for other servers than the study's the study's is not asked for; nor
    # later on, when it may be among what is left out.
    baseline_matters=yes
    if [[ " ${given[*]}" == *' --servers '* && " ${given[*]}" != *' --baseline '* ]]; then baseline_matters=''; fi
    make_plan "$baseline_matters"
    servers=$(study_key "$draft" servers)
    servers=${servers:-fork thread}
    # shellcheck disable=SC2086 # a list
    present_servers ${servers//,/ }
    read -ra wanted <<<"${servers//,/ }"
    if [[ $servers_present != "${wanted[*]}" ]]; then
        printf '# what is installed here\nservers: %s\n' "$servers_present" >>"$draft"
        make_plan
    fi
    mapfile -t programs < <(load_programs "$(awk -F '\t' 'NR > 1 && !seen[$14]++ { printf "%s ", $14 }' "$draft.plan")")
    network_needed=$(network_programs "$draft")
    # shellcheck disable=SC2086 # a list
    build "$draft" "$draft.plan" "${programs[@]}" $network_needed

    dir=${output:-results/$study/$(date +%Y%m%d-%H%M%S)}
    if [[ $dir != /* && ! $output ]]; then cd -- "$project"; fi
    if [[ -e $dir/plan.tsv ]]; then complain 2 "$dir holds a study already; go on with --resume $dir"; fi
    mkdir -p "$dir" || complain 1 "cannot make $dir"
    {
        printf 'study\t%s\n' "$study"
        printf 'command\t./dcollect.sh%s%s --seed %s %s\n' "${quick:+ --quick}" "${given[*]:+ ${given[*]}}" "$seed" "${positional[0]:-$study}"
        printf 'seed\t%s\n' "$seed"
        for server in $servers_present; do programs+=("$(recipe_needs "$server")"); done
        mapfile -t programs < <(printf '%s\n' "${programs[@]%%:*}" | sort -u | sed '/^$/d')
        "$project/collect/machine.sh" "${programs[@]}"
    } >"$dir/machine.tsv"
    # The plan comes last: where it is, there is a study to go on with.
    cp "$draft" "$dir/study.txt"
    chmod 644 "$dir/study.txt"
    cp "$draft.plan" "$dir/plan.part"
    chmod 644 "$dir/plan.part"
    mv -- "$dir/plan.part" "$dir/plan.tsv"
    echo "Study $study: $(($(wc -l <"$dir/plan.tsv") - 1)) runs, into $dir" >&2
fi

status=0
measure "$dir" || status=$?
if ((status != 0 && status != 3)); then exit "$status"; fi
analyse "$dir"
conclude "$dir"
exit "$status"
