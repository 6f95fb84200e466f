# shellcheck shell=bash
# stage.sh: what the stages of the analysis share. Read in by them, with `here` set to this folder.

# Takes the folder of the run from the command line into `dir`.
stage_begin() {
    dir=${1:-}
    if [[ $# -ne 1 || $dir == -* ]]; then
        echo "usage: ${0##*/} DIR" >&2
        exit 2
    fi
    if [[ ! -f $dir/study.txt || ! -f $dir/runs.tsv ]]; then
        echo "${0##*/}: $dir holds no study.txt and runs.tsv: not the folder of a run" >&2
        exit 1
    fi
}

# Prints runs.tsv; a last line without its newline was cut off while it was written, and is not believed.
believed_runs() {
    if [[ -n $(tail -c 1 "$1/runs.tsv") ]]; then
        sed '$d' "$1/runs.tsv"
    else
        cat "$1/runs.tsv"
    fi
}

# Runs awk scripts of this folder, given by name, on the folder of a run (their `dir`; `here` is this folder).
awk_with() {
    local folder=$1 name
    local -a files=()
    shift
    for name in "$@"; do files+=(-f "$here/$name.awk"); done
    "${AWK:-awk}" -v dir="$folder" -v here="$here" "${files[@]}"
}

# Writes the standard output of a command to a file, whole or, when the command fails, not at all.
stage_write() {
    local file=$1 temporary
    shift
    temporary=$(mktemp "$file.XXXXXX")
    if "$@" >"$temporary"; then
        chmod 644 "$temporary"
        mv -- "$temporary" "$file"
    else
        rm -f -- "$temporary"
        return 1
    fi
}
