# shellcheck shell=bash disable=SC2154 # `here` comes in, where it is needed
# stage.sh: what the stages of a study share. A library: source it, with `here` set to this folder where scripts of it are run.

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

# What a study file says of a key: its last line counts, without comments, as study_load has it in study.awk.
study_key() { # FILE KEY
    # shellcheck disable=SC2016 # these are awk's
    "${AWK:-awk}" -v key="$2" '
        {
            sub(/^[ \t]*#.*/, "")
            sub(/[ \t]#.*/, "")
            at = index($0, ":")
            name = substr($0, 1, at - 1)
            gsub(/^[ \t]+|[ \t]+$/, "", name)
            if (!at || name != key) next
            value = substr($0, at + 1)
            gsub(/^[ \t]+|[ \t\r]+$/, "", value)
        }
        END { print value }' "$1"
}

# Ends this stage where a program is missing.
stage_needs() { # PROGRAM PACKAGE
    if command -v "$1" >/dev/null; then return; fi
    echo "${0##*/}: $1 is missing: apt-get install $2" >&2
    exit 1
}

# Markdown (standard input) -> a page of its own, with the figures of that folder inside.
page_from() { # TITLE FOLDER
    cmark-gfm --unsafe -e table | "${AWK:-awk}" -v dir="$2" -v template="$here/page.html" -v title="$1" -f "$here/page.awk"
}

# Runs awk scripts of this folder on the folder of a run: their `dir`; `here` is this folder. Words with a `=` set more variables, the
# others name the scripts.
awk_with() {
    local folder=$1 word
    local -a arguments=()
    shift
    for word in "$@"; do
        if [[ $word == *=* ]]; then arguments+=(-v "$word"); else arguments+=(-f "$here/$word.awk"); fi
    done
    "${AWK:-awk}" -v dir="$folder" -v here="$here" "${arguments[@]}"
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
