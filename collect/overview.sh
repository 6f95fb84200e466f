#!/bin/bash
# overview.sh: makes the pages that lead to the published studies, and what the README shows of the study designs.
#
# usage:    collect/overview.sh [REPORTS [README]]        or: ./dcollect.sh overview
# example:  collect/overview.sh report README.md
#
# Reads REPORTS/*/ and studies/; writes REPORTS/README.md and REPORTS/index.html, what was measured, and REPORTS/claims.md and
# REPORTS/claims.html, what was claimed and which verdict it has: each the same for two kinds of readers. The page of each study,
# REPORTS/*/index.html, is made from its report.md. In the README what
# stands between `<!-- made: NAME -->` and `<!-- /made -->` is made anew, once there is a REPORTS/designs: `figure`, the main figure
# with the answer beside it, and `models`, the table of the models with what they cost. Without changes in the reports all of it
# comes out as it was, byte for byte.
set -euo pipefail
export LC_ALL=C
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
project=$(dirname -- "$here")
# shellcheck source=collect/stage.sh
. "$here/stage.sh"

if (($# > 2)) || [[ ${1:-} == -* ]]; then
    echo 'usage: overview.sh [REPORTS [README]]' >&2
    exit 2
fi
reports=${1:-$project/report} readme=${2:-}
if (($# == 0)); then readme=$project/README.md; fi
shopt -s nullglob
pages=("$reports"/*/report.md)
if ((${#pages[@]} == 0)); then
    echo "overview.sh: $reports holds no report" >&2
    exit 1
fi
stage_needs cmark-gfm cmark-gfm

# Studies that nobody has published yet.
unpublished=()
for study in "$project"/studies/*; do
    if [[ ! -f $reports/${study##*/}/report.md ]]; then unpublished+=("$study"); fi
done

overview() { # PAGE-OF-A-STUDY PAGE-OF-THE-CLAIMS REPORT...
    local page=$1 verdicts=$2
    shift 2
    "${AWK:-awk}" -v page="$page" -v verdicts="$verdicts" -f "$here/text.awk" -f "$here/overview.awk" "$@"
}
verdicts() { # claims.md or claims.html
    "${AWK:-awk}" -v page="$1" -v claims="$here/claims.txt" -f "$here/study.awk" -f "$here/text.awk" -f "$here/wording.awk" \
        -f "$here/tsv.awk" -f "$here/verdicts.awk" "$project"/studies/* -- "${pages[@]%/report.md}"
}
page() { # TITLE COMMAND...: what a command prints in Markdown as a page
    local title=$1
    shift
    "$@" | page_from "$title" "$reports"
}
# The page of each study, from its report: pages are not kept in git.
for report in "${pages[@]}"; do
    dir=${report%/report.md}
    title=$(study_key "$dir/study.txt" title)
    page_of_study() { page_from "${title:-${dir##*/}}" "$dir" <"$report"; }
    stage_write "$dir/index.html" page_of_study
done
stage_write "$reports/README.md" overview report.md claims.md "${pages[@]}" "${unpublished[@]}"
stage_write "$reports/index.html" page 'What was measured' overview index.html claims.html "${pages[@]}" "${unpublished[@]}"
stage_write "$reports/claims.md" verdicts claims.md
stage_write "$reports/claims.html" page 'What four reports claimed, and what we measured' verdicts claims.html

# ---- the README ----

# What each model says about itself: name, summary, when to take it, when not.
models() {
    local server
    make -s -C "$project" >/dev/null
    for server in "$project"/*_server; do
        "$server" --describe | python3 -c '
import json, sys
model = json.load(sys.stdin)
print(model["name"].removesuffix("_server"), model["summary"], model["advice"]["take"], model["advice"]["avoid"], sep="\t")'
    done
}

# The table of the models: a row each, the cheapest first.
models_table() {
    models | "${AWK:-awk}" -F '\t' -v averages="$reports/designs/averages.tsv" -f "$here/text.awk" -f "$here/models.awk"
}

# The main figure and the answer of designs, as the overview has them, with paths from where the README is.
main_figure() {
    # shellcheck disable=SC2016 # these are awk's
    overview report.md '' "$reports/designs/report.md" | "${AWK:-awk}" '
        /^> / { asked = 1; next }
        asked && !answer && NF && !/^\[/ { answer = $0 }
        /^\[!\[/ && match($0, /\]\(designs\/[^)]*\.svg\)/) {
            figure = substr($0, 2, RSTART - 2) "](report/" substr($0, RSTART + 2, RLENGTH - 7) ".png)"
        }
        END { print figure "\n\n" answer " [The whole report](report/designs/report.md), and [all that was measured](report/README.md)." }'
}

# Puts what a command prints in place of the block of that name.
block_write() {
    local name=$1
    shift
    "$@" >"$readme.part"
    # shellcheck disable=SC2016 # these are awk's
    "${AWK:-awk}" -v name="$name" -v part="$readme.part" '
        $0 == "<!-- made: " name " -->" {
            print
            while ((getline line < part) > 0) print line
            inside = 1
        }
        inside && $0 == "<!-- /made -->" { inside = 0 }
        !inside && $0 != "<!-- made: " name " -->" { print }' "$readme" >"$readme.new"
    rm -f -- "$readme.part"
    if cmp -s "$readme.new" "$readme"; then rm -f -- "$readme.new"; else mv -- "$readme.new" "$readme"; fi
}

if [[ $readme && -f $reports/designs/averages.tsv ]]; then
    block_write figure main_figure
    block_write models models_table
fi
