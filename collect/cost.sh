# shellcheck shell=bash disable=SC2034 # cost_method is for those who source this
# cost.sh: control groups that count what a server costs. A library: source it.
#
# usage:    cost_begin; cost_group NAME; launch server "${cost_join[@]}" ...; launch load "${cost_read[@]}" ...; cost_end
# example:  cost_begin && cost_group fork && echo "$cost_method: ${cost_read[*]}"
#
# A group counts everything that ever ran in it, reaped children included, exactly and without touching the server. It must
# not change how the machine is shared between server and load generator, so no group gets the `cpu` controller of its own:
# with it, a fork server with 30 processes would weigh as much as the one process of ab, instead of 30 times as much.

cost_method='process clocks'
cost_base_cpu='' cost_base_memory='' cost_load_join=()
cost_join=() cost_read=()
declare -a cost_made=()

# Makes a folder for groups under the group that this shell is in, or else at the top; prints its name.
cost_make() {
    local mount=$1 own=$2 folder
    for folder in "$mount${own%/}" "$mount"; do
        if mkdir "$folder/fork-vs-thread.$$" 2>/dev/null; then
            echo "$folder/fork-vs-thread.$$"
            return
        fi
    done
    return 1
}

# Removes the empty groups that an interrupted study left behind; not those of one that runs, where a server may just have died.
cost_sweep() {
    local folder process
    for folder in "$1"/fork-vs-thread.*/* "$1"/fork-vs-thread.*; do
        process=${folder##*fork-vs-thread.} process=${process%%/*}
        if [[ -d $folder && ! -d /proc/$process ]]; then rmdir "$folder" 2>/dev/null || :; fi
    done
}

cost_begin() {
    local type mount options own cpu_mount='' memory_mount='' two_mount=''
    while read -r _ mount type options _; do
        case $type in
        cgroup)
            if [[ ,$options, == *,cpuacct,* ]]; then cpu_mount=$mount; fi
            if [[ ,$options, == *,memory,* ]]; then memory_mount=$mount; fi
            ;;
        cgroup2) two_mount=$mount ;;
        esac
    done </proc/self/mounts
    if [[ $cpu_mount ]]; then
        cost_sweep "$cpu_mount"
        own=$(awk -F: '$2 ~ /(^|,)cpuacct(,|$)/ { print $3 }' /proc/self/cgroup)
        cost_base_cpu=$(cost_make "$cpu_mount" "$own") || cost_base_cpu=''
    fi
    if [[ $memory_mount ]]; then
        own=$(awk -F: '$2 ~ /(^|,)memory(,|$)/ { print $3 }' /proc/self/cgroup)
        cost_sweep "$memory_mount${own%/}"
        cost_base_memory=$(cost_make "$memory_mount" "$own") || cost_base_memory=''
    fi
    if [[ $cost_base_cpu ]]; then
        cost_method="cgroup v1 cpuacct${cost_base_memory:+ and memory}"
    elif [[ $two_mount ]]; then
        cost_begin_two "$two_mount"
    fi
    cost_made=()
    if [[ $cost_base_cpu ]]; then cost_made+=("$cost_base_cpu"); fi
    if [[ $cost_base_memory && $cost_base_memory != "$cost_base_cpu" ]]; then cost_made+=("$cost_base_memory"); fi
}

# cgroup v2: at the top, with the memory controller alone, server and load generator side by side in one group; where
# that is not allowed, a group without any controller, which counts CPU time all the same.
cost_begin_two() {
    local mount=$1 folder own
    cost_sweep "$mount"
    folder=$mount/fork-vs-thread.$$
    if [[ " $(<"$mount/cgroup.controllers") " == *' memory '* ]] && mkdir "$folder" 2>/dev/null; then
        if echo +memory 2>/dev/null >"$mount/cgroup.subtree_control" &&
            echo +memory 2>/dev/null >"$folder/cgroup.subtree_control" && mkdir "$folder/load"; then
            cost_base_cpu=$folder
            cost_base_memory=$folder
            cost_load_join=(--join "$folder/load/cgroup.procs")
            cost_method='cgroup v2 cpu.stat and memory'
            return
        fi
        rmdir "$folder"
    fi
    own=$(awk -F: '$1 == 0 { print $3 }' /proc/self/cgroup)
    if cost_base_cpu=$(cost_make "$mount" "$own") && [[ -r $cost_base_cpu/cpu.stat ]] &&
        grep -q usage_usec "$cost_base_cpu/cpu.stat" &&
        (echo "$BASHPID" >"$cost_base_cpu/cgroup.procs") 2>/dev/null; then
        cost_method='cgroup v2 cpu.stat, sampled PSS without pages of files'
    else
        if [[ $cost_base_cpu ]]; then rmdir "$cost_base_cpu" 2>/dev/null || :; fi
        cost_base_cpu=''
    fi
}

# Sets cost_join and cost_read, the options of `launch server` and `launch load`, for a group of that name.
cost_group() {
    local name=$1 cpu memory
    cost_join=()
    cost_read=("${cost_load_join[@]}")
    if [[ $cost_base_cpu ]]; then
        cpu=$cost_base_cpu/$name
        mkdir -p "$cpu"
        cost_join+=(--join "$cpu/cgroup.procs")
        if [[ -e $cpu/cpuacct.usage ]]; then cost_read+=(--cpu "$cpu/cpuacct.usage"); else cost_read+=(--cpu "$cpu/cpu.stat"); fi
    fi
    if [[ $cost_base_memory ]]; then
        memory=$cost_base_memory/$name
        mkdir -p "$memory"
        if [[ $cost_base_memory != "$cost_base_cpu" ]]; then cost_join+=(--join "$memory/cgroup.procs"); fi
        if [[ -e $memory/memory.max_usage_in_bytes ]]; then
            cost_read+=(--peak "$memory/memory.max_usage_in_bytes")
        else
            cost_read+=(--current "$memory/memory.current")
            if [[ -e $memory/memory.peak ]]; then cost_read+=(--peak "$memory/memory.peak"); fi
        fi
    fi
}

# Removes the groups of that name, once nothing runs in them.
cost_group_end() {
    local folder
    for folder in "${cost_made[@]}"; do
        if [[ -d $folder/$1 ]]; then rmdir "$folder/$1" 2>/dev/null || :; fi
    done
}

cost_end() {
    local folder
    for folder in "${cost_made[@]}"; do
        rmdir "$folder"/*/ 2>/dev/null || :
        rmdir "$folder" 2>/dev/null || :
    done
    cost_made=()
}
