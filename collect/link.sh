# shellcheck shell=bash disable=SC2034 # link_near, link_across, link_text and link_problem go out
# link.sh: a network of a study's own: a slow link between server and load, or more ports for clients. A library: source it.
#
# usage:    link_enter && exec "${link_own[@]}" COMMAND...       and in that: link_begin RATE; "${link_across[@]}" ab http://$link_near:PORT/
# example:  link_enter && "${link_own[@]}" bash -c '. collect/link.sh; link_begin 20mbit && "${link_across[@]}" ping -c 1 "$link_near"'
#
# The command has a network namespace of its own, with the servers in it; the load is in another one, at the other end of a pair of
# veth devices. Both have no name, and are held by processes and their open files alone: with these the kernel takes them away, devices and
# all, however they end. The rate is that of tbf on the server's device, for what the load downloads; the way back is free. Packets are
# as long as on an Ethernet: without that a device hands on 64 KiB at once. Where the kernel has netem the way back takes 60 ms more.
#
# usage:    ports_enter FIRST-LAST && exec "${link_own[@]}" COMMAND...       and in that: ports_begin FIRST-LAST; ports_text
# A client that opens very many connections, one after the other, runs out of ports that wait for nothing, and then looks for them. In a
# namespace of its own it can have more of them than the machine gives to everybody. This wants root, since servers that root starts
# change their user, which needs more than one to be known there.

link_near='' link_across=() link_own=() link_text='' link_problem=''
link_delay=60

# Sets link_own, what a command has to be started by; fails where no namespace can be had.
link_enter() {
    local words
    link_own=(unshare --net --)
    if ((EUID != 0)); then link_own=(unshare --map-root-user --net --); fi
    if words=$("${link_own[@]}" true 2>&1); then return 0; fi
    link_problem="a link needs a network namespace: root, or user namespaces for everybody (${words//$'\n'/ })"
    return 1
}

# Sets link_own, what a command has to be started by; fails where it cannot have these ports.
ports_enter() {
    # shellcheck disable=SC2016 # these are the other shell's
    ((EUID == 0)) && link_enter && command -v ip >/dev/null &&
        "${link_own[@]}" bash -c "$(declare -f ports_begin)"'; ports_begin "$1"' ports "$1" 2>/dev/null
}

# Gives clients these ports, in the namespace that ports_enter led to.
ports_begin() { ip link set lo up && echo "${1/-/ }" >/proc/sys/net/ipv4/ip_local_port_range; }

# Says which ports clients take, where the load is.
ports_text() {
    local first last
    read -r first last < <("${link_across[@]}" cat /proc/sys/net/ipv4/ip_local_port_range) || :
    echo "$first to $last"
}

# Makes the link, in the namespace that link_enter led to.
link_begin() {
    local rate=$1 holder pid own far words
    own=$(readlink /proc/self/ns/net)
    # The other namespace is that of a process which ends with this pipe; then an open file alone holds it.
    exec {holder}> >(exec unshare --net -- cat)
    pid=$!
    for _ in {1..500}; do
        far=$(readlink "/proc/$pid/ns/net" || :)
        if [[ $far && $far != "$own" ]]; then break; fi
        read -rt 0.01 <> <(:) || :
    done
    exec {far}<"/proc/$pid/ns/net"
    link_across=(nsenter "--net=/proc/$$/fd/$far" --)
    if ! words=$(link_make "$rate" "$pid" 2>&1); then
        link_problem="the link cannot be made: ${words//$'\n'/ }"
        exec {holder}>&-
        return 1
    fi
    exec {holder}>&-
    link_near=192.0.2.1
    link_text="$rate from server to load by tbf, ${words:-no delay: this kernel has no netem}"
}

# Makes the devices; says what delay there is.
link_make() {
    local rate=$1 pid=$2
    ip link set lo up &&
        ip link add name near type veth peer name far netns "$pid" &&
        ip link set near gso_max_segs 1 &&
        ip address add 192.0.2.1/30 dev near &&
        ip link set near up &&
        "${link_across[@]}" ip address add 192.0.2.2/30 dev far &&
        "${link_across[@]}" ip link set far up &&
        tc qdisc add dev near root tbf rate "$rate" burst 16kb latency 100ms || return 1
    if "${link_across[@]}" tc qdisc add dev far root netem delay "${link_delay}ms" limit 10000 2>/dev/null; then
        echo "$link_delay ms for a way and back by netem"
    fi
}
