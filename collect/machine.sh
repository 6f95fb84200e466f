#!/bin/bash
# machine.sh: describes this machine and its programs, as far as they can matter to a measurement: key, tab, value.
#
# usage:    collect/machine.sh [PROGRAM...]       adds the versions of these programs (ab, nginx, ...)
# example:  collect/machine.sh ab nginx >machine.tsv
set -euo pipefail
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
project=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

say() {
    local value
    value=$(tr '\t\n' '  ' <<<"$2" | sed 's/  */ /g; s/^ //; s/ $//')
    if [[ $value ]]; then printf '%s\t%s\n' "$1" "$value"; fi
}
content() { if [[ -r $1 ]]; then cat -- "$1" 2>/dev/null || :; fi; }
first() { sed -n 1p; }

processors() {
    say processor_model "$(awk -F ': *' '/^model name|^Model|^cpu model/ { print $2; exit }' /proc/cpuinfo)"
    if command -v lscpu >/dev/null; then
        lscpu | awk -F ': *' '
            /^Socket\(s\)/ { key = "sockets" } /^Core\(s\) per/ { key = "cores_per_socket" } /^Thread\(s\) per/ { key = "threads_per_core" }
            /^L1d/ { key = "cache_l1d" } /^L2/ { key = "cache_l2" } /^L3/ { key = "cache_l3" }
            /^CPU max MHz/ { key = "processor_mhz_most" } /^NUMA node\(s\)/ { key = "numa_nodes" }
            /^Hypervisor vendor/ { key = "hypervisor" } /^Virtualization type/ { key = "virtualization" }
            key { print key "\t" $2; key = "" }'
    fi
    say processors "$(nproc)"
    say processors_allowed "$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)"
    say processor_mhz "$(awk -F ': *' '/^cpu MHz/ { print int($2); exit }' /proc/cpuinfo)"
    say governor "$(content /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor)"
    say frequency_driver "$(content /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver)"
    say turbo_off "$(content /sys/devices/system/cpu/intel_pstate/no_turbo)"
    say boost "$(content /sys/devices/system/cpu/cpufreq/boost)"
    say idle_driver "$(content /sys/devices/system/cpu/cpuidle/current_driver)"
    say clock_source "$(content /sys/devices/system/clocksource/clocksource0/current_clocksource)"
}

settings() {
    local name
    for name in /sys/devices/system/cpu/vulnerabilities/*; do
        if [[ -r $name ]]; then say "mitigation.${name##*/}" "$(content "$name")"; fi
    done
    for name in net.core.somaxconn net.core.netdev_max_backlog net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_syncookies \
        net.ipv4.tcp_abort_on_overflow net.ipv4.ip_local_port_range net.ipv4.tcp_tw_reuse net.ipv4.tcp_max_tw_buckets \
        net.ipv4.tcp_fin_timeout net.ipv4.tcp_congestion_control net.ipv4.tcp_rmem net.ipv4.tcp_wmem kernel.pid_max \
        kernel.threads-max kernel.sched_autogroup_enabled vm.max_map_count vm.overcommit_memory fs.file-max; do
        say "sysctl.$name" "$(content "/proc/sys/${name//./\/}")"
    done
    say transparent_hugepages "$(content /sys/kernel/mm/transparent_hugepage/enabled)"
    say limit.open_files "$(ulimit -n)"
    say limit.processes "$(ulimit -u)"
    say limit.stack_kib "$(ulimit -s)"
}

version() {
    case $1 in
    ab) ab -V | awk '/Version/ { print "ApacheBench " $5 }' ;;
    httperf) httperf --version 2>/dev/null | first ;;
    wrk) wrk -v 2>&1 | first | cut -d' ' -f1-2 ;;
    nginx) nginx -v 2>&1 | sed 's/.*: //' ;;
    apache2) apache2 -v | sed -n 's/^Server version: //p' ;;
    lighttpd) lighttpd -v | first ;;
    gnuplot) gnuplot --version ;;
    cc) cc --version | first ;;
    awk) awk --version 2>/dev/null | first || awk -W version 2>&1 | first ;;
    ldd) ldd --version | first ;;
    *) "$1" --version 2>&1 | first ;;
    esac
}

say kernel "$(uname -sr)"
say kernel_build "$(uname -v)"
say architecture "$(uname -m)"
say distribution "$(content /etc/os-release | sed -n 's/^PRETTY_NAME="*\([^"]*\)"*$/\1/p')"
say machine "$(content /sys/class/dmi/id/sys_vendor) $(content /sys/class/dmi/id/product_name)"
processors
say memory_kib "$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)"
say swap_kib "$(awk '/^SwapTotal/ { print $2 }' /proc/meminfo)"
if command -v systemd-detect-virt >/dev/null; then say container "$(systemd-detect-virt --container || :)"; fi
say load_average "$(cut -d' ' -f1-3 /proc/loadavg)"
settings
say project_commit "$(git -C "$project" rev-parse --short=12 HEAD 2>/dev/null || :)"
say project_changed "$(git -C "$project" status --porcelain --untracked-files=no 2>/dev/null | wc -l) files"
say compiler_flags "$(sed -n 's/^CFLAGS *= *//p' "$project/Makefile" | first)"
for program in bash cc ldd awk datamash gnuplot "$@"; do
    if command -v "$program" >/dev/null; then say "version.$program" "$(version "$program" || :)"; fi
done
for file in "$project"/*_server "$project/collect/floor"; do
    if [[ -x $file ]]; then say "sha256.${file##*/}" "$(sha256sum "$file" | cut -c1-16)"; fi
done
