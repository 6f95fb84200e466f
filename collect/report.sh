#!/bin/bash
# report.sh: writes the report of a study.
#
# usage:    collect/report.sh DIR        reads the tables and figures in DIR, writes DIR/report.md and DIR/index.html
# example:  collect/report.sh results/fork-vs-thread/20260101-120000
#
# Both say the same; index.html holds its figures and needs nothing else. Needs what summary.sh, compare.sh and figures.sh write;
# claims.tsv and threats.tsv are made on the way, by claims.sh and threats.sh.
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "${BASH_SOURCE[0]}")
# shellcheck source=collect/stage.sh
. "$here/stage.sh"

stage_begin "$@"
for table in summary.tsv comparisons.tsv figures/list.tsv; do
    if [[ ! -f $dir/$table ]]; then
        echo "report.sh: $dir holds no $table: run the stages before this one" >&2
        exit 1
    fi
done
if ! command -v cmark-gfm >/dev/null; then
    echo "report.sh: cmark-gfm is missing: apt-get install cmark-gfm" >&2
    exit 1
fi

"$here/claims.sh" "$dir"
"$here/threats.sh" "$dir"

study_value() { # KEY: the last line of study.txt that has it
    sed -n "s/^[ \t]*$1:[ \t]*//p" "$dir/study.txt" | sed 's/[ \t]#.*//; s/[ \t]*$//' | tail -n 1
}

# The study is called what its file or the record of the machine says, else what the folder above the run is.
name=$(study_value name)
if [[ ! $name && -f $dir/machine.tsv ]]; then name=$(sed -n 's/^study\t//p' "$dir/machine.tsv" | tail -n 1); fi
if [[ ! $name ]]; then
    name=$(basename -- "$(dirname -- "$(cd -- "$dir" && pwd)")")
    case $name in report | results) name=$(basename -- "$(cd -- "$dir" && pwd)") ;; esac
fi
title=$(study_value title)

report() {
    "${AWK:-awk}" -v dir="$dir" -v name="$name" -f "$here/statistics.awk" -f "$here/study.awk" -f "$here/text.awk" \
        -f "$here/tables.awk" -f "$here/theirs.awk" -f "$here/others.awk" -f "$here/report.awk" </dev/null
}
page() {
    cmark-gfm --unsafe -e table "$dir/report.md" |
        "${AWK:-awk}" -v dir="$dir" -v template="$here/page.html" -v title="${title:-$name}" -f "$here/page.awk"
}
stage_write "$dir/report.md" report
stage_write "$dir/index.html" page
