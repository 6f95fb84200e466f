# Completes the command lines of dcollect and of the servers in bash: . <(./dcollect.sh completion)
#
# `./dcollect.sh completion` prints it with the options of collect/options.py; `make install` installs that.

# shellcheck disable=SC2154 # The tables are filled in here.
# --- tables ---

# Prints the command of dcollect before the cursor.
_dcollect_command() {
    local word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case " $_dcollect_commands " in *" $word "*) printf '%s' "$word"; return ;; esac
    done
}

# Completes the last name of a list with commas.
_dcollect_list() {
    local before=
    [[ $cur == *,* ]] && before=${cur%,*},
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${cur##*,}")
    compopt -o nospace 2>/dev/null
}

_dcollect_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_dcollect_paths() {
    mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
    compopt -o filenames 2>/dev/null
}

# Prints our servers, which are beside the command.
_dcollect_models() {
    local path folder
    path=$(type -P "${1/#\~/$HOME}") || return
    folder=$(dirname "$(readlink -f "$path")")
    for path in "$folder"/*_server; do
        path=${path##*/}
        [[ $path == '*_server' ]] || printf '%s ' "${path%_server}"
    done
}

# Sets cur and prev, also for --option=value, which bash splits at the =.
_dcollect_cursor() {
    cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
}

_dcollect() {
    local cur prev command
    _dcollect_cursor
    if [[ $prev == --* && -n ${_dcollect_values[${prev#--}]-} ]]; then
        case ${_dcollect_values[${prev#--}]} in
            DIR) _dcollect_paths -d ;;
            FILE) _dcollect_paths -f ;;
            ANY) COMPREPLY=() ;;
            SERVERS) _dcollect_list "$(_dcollect_models "$1") $_dcollect_others all" ;;
            SERVER) _dcollect_words "$(_dcollect_models "$1") $_dcollect_others" ;;
            LIST\ *) _dcollect_list "${_dcollect_values[${prev#--}]#LIST }" ;;
            *) _dcollect_words "${_dcollect_values[${prev#--}]}" ;;
        esac
        return
    fi
    command=$(_dcollect_command)
    if [[ $cur == -* ]]; then
        _dcollect_words "${_dcollect_options[${command:-study}]-}"
        return
    fi
    case $command in
        '') _dcollect_words "$_dcollect_commands $_dcollect_studies" ;;
        campaign) _dcollect_words "$_dcollect_studies" ;;
        results)
            if [[ $prev == results ]]; then _dcollect_words 'list open clean'; else _dcollect_paths -d; fi ;;
        report | compare | export | pack) _dcollect_paths -d ;;
    esac
}

# Asks a server for its options.
_dcollect_server() {
    local cur prev told key
    _dcollect_cursor
    told=$("${1/#\~/$HOME}" --describe 2>/dev/null) || return
    case $prev in
        --accept) key=accept ;;
        --service) key=services ;;
        --share) key=share ;;
    esac
    if [[ -n ${key-} ]]; then
        _dcollect_words "$(sed -n "s/^  \"$key\": \[\(.*\)\],/\1/p" <<<"$told" | tr -d '",')"
    elif [[ $cur == -* ]]; then
        _dcollect_words "$(sed -n 's/^ *{"name": "\([a-z-]*\)", "argument".*/--\1/p' <<<"$told")"
    else
        _dcollect_paths -f
    fi
}

# bash-completion finds a server by a link of its name to this file.
_dcollect_names() {
    local path
    complete -F _dcollect dcollect dcollect.sh
    for path in "$1" "${1%/*}"/../*_server ./*_server; do
        [[ $path == *[!*]_server ]] && complete -F _dcollect_server "${path##*/}"
    done
}
_dcollect_names "${BASH_SOURCE[0]}"
