# shellcheck shell=bash
# install_missing: one function that installs what a script lacks. It is sourced.
#
# usage:    . collect/install_missing.sh
#           install_missing WANTED:PACKAGE...
# example:  install_missing ab:apache2-utils /usr/include/cmocka.h:libcmocka-dev
#
# WANTED is a command, or a file by its absolute path (which may hold shell patterns). If nothing is missing, nothing
# happens and nobody needs to be root. Else the packages are installed by apt-get, as root or through sudo. A system that
# is not of Debian's kind gets the names of the packages, and status 1. Servers that come with a package are not started.

# Returns 0 if the wanted thing is there. Some commands lie in folders that only root searches.
is_there() {
    case $1 in
    /*) compgen -G "$1" >/dev/null ;;
    *) PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;;
    esac
}

# Runs a command as root.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

install_packages() {
    local policy=/usr/sbin/policy-rc.d made_policy=no status=0
    if [ ! -e "$policy" ]; then
        made_policy=yes
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod 755 "$policy"
    fi
    {
        as_root apt-get -qq update &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install --yes --no-install-recommends "$@"
    } >&2 || status=1
    [ "$made_policy" = no ] || as_root rm -f "$policy"
    return "$status"
}

install_missing() {
    local pair packages=()
    for pair in "$@"; do
        is_there "${pair%:*}" || packages+=("${pair##*:}")
    done
    [ ${#packages[@]} -gt 0 ] || return 0
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    if ! command -v apt-get >/dev/null; then
        printf '%s: please install what these packages of Debian hold: %s\n' "${0##*/}" "${packages[*]}" >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        printf '%s: please install as root: apt-get install %s\n' "${0##*/}" "${packages[*]}" >&2
        return 1
    fi
    printf '%s: installing %s\n' "${0##*/}" "${packages[*]}" >&2
    install_packages "${packages[@]}" || {
        printf '%s: cannot install %s\n' "${0##*/}" "${packages[*]}" >&2
        return 1
    }
    for pair in "$@"; do
        if ! is_there "${pair%:*}"; then
            printf '%s: %s is not there, although %s was installed\n' "${0##*/}" "${pair%:*}" "${pair##*:}" >&2
            return 1
        fi
    done
}
