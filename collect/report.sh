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
stage_needs cmark-gfm cmark-gfm

"$here/claims.sh" "$dir"
"$here/threats.sh" "$dir"

# The study is called what its file or the record of the machine says, else what the folder above the run is.
name=$(study_key "$dir/study.txt" name)
if [[ ! $name && -f $dir/machine.tsv ]]; then name=$(sed -n 's/^study\t//p' "$dir/machine.tsv" | tail -n 1); fi
if [[ ! $name ]]; then
    name=$(basename -- "$(dirname -- "$(cd -- "$dir" && pwd)")")
    case $name in report | results) name=$(basename -- "$(cd -- "$dir" && pwd)") ;; esac
fi
title=$(study_key "$dir/study.txt" title)

report() { awk_with "$dir" name="$name" statistics study text tsv tables theirs others report </dev/null; }
page() { page_from "${title:-$name}" "$dir" <"$dir/report.md"; }
stage_write "$dir/report.md" report
stage_write "$dir/index.html" page
