#!/bin/bash
# figures.sh: draws the figures of a study.
#
# usage:    collect/figures.sh DIR             reads DIR/study.txt, summary.tsv and comparisons.tsv; writes DIR/figures/
#           collect/figures.sh DIR terminal    prints the main figure as text
# example:  collect/figures.sh results/fork-vs-thread/20260101-120000
#
# For each file: requests/s of all servers (FILE-requests) and of each alone (FILE-requests-SERVER), server CPU per request
# (FILE-cpu), percentiles of the time of a request (FILE-time), ratio to the baseline (FILE-ratio), memory (FILE-memory), each
# as .svg and .png, and list.tsv, which names them: name, kind, file, description, part. A study in parts (study.awk says
# when it is) has all of them for each, as FILE-partN-... The x axis is the numeric factor that
# varies most. More than eight servers are drawn in groups, without those of each alone, and have FILE-bars: CPU per request of all. Other factors that vary make the panels of a figure. The look is in dcollect.p beside dcollect.sh.
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "${BASH_SOURCE[0]}")
# shellcheck source=collect/stage.sh
. "$here/stage.sh"
# shellcheck source=collect/scratch.sh
. "$here/scratch.sh"

terminal=
if [[ $# -eq 2 && $2 == terminal ]]; then
    terminal=yes
    set -- "$1"
fi
stage_begin "$@"
for table in summary comparisons; do
    if [[ ! -f $dir/$table.tsv ]]; then
        echo "figures.sh: $dir holds no $table.tsv: make it with collect/summary.sh and collect/compare.sh" >&2
        exit 1
    fi
done
stage_needs gnuplot gnuplot-nox

program=$(cd -- "$here/.." && pwd)/dcollect.p
here=$(cd -- "$here" && pwd)
dir=$(cd -- "$dir" && pwd)
trap scratch_end EXIT
scratch_begin
awk_with "$dir" out="$work" statistics study text tables theirs dots figures

draw() { # NAME KIND-OF-OUTPUT
    (cd -- "$work" && LC_ALL=C.UTF-8 gnuplot -e "parameters='$1.gp'; output_kind='$2'; output_file='$1.$2'; columns_of_terminal=${COLUMNS:-80}" \
        "$program")
}

# Bars as text: name, bar and value of each server.
bars_text() {
    sed -n "s/^title_text = '\(.*\)'$/\1, microseconds: less is better/p" "$1.gp"
    echo
    # shellcheck disable=SC2016 # these are awk's
    "${AWK:-awk}" -v width="${COLUMNS:-80}" '
        { value[NR] = $2; name[NR] = $6; gsub(/[":]/, "", name[NR]) }
        $2 > most { most = $2 }
        length(name[NR]) > longest { longest = length(name[NR]) }
        END {
            room = width - longest - 10
            for (i = 1; i <= NR; i++) {
                bar = sprintf("%" (int(value[i] / most * room) + 1) "s", "")
                gsub(/ /, "#", bar)
                printf "%" longest "s %s %.1f\n", name[i], bar, value[i]
            }
        }' "$1.dat"
}

if [[ $terminal ]]; then
    # The main figure: of the kind that the study says, or else the first.
    wanted=$(study_key "$dir/study.txt" figure)
    IFS=$'\t' read -r name kind _ < <(awk -F '\t' -v kind="$wanted" '$2 == kind { print; exit }' "$work/list.tsv"; cat "$work/list.tsv") || exit 0
    if [[ $kind == bars ]]; then
        bars_text "$work/$name"
        exit
    fi
    draw "$name" txt
    tr -d '\f' <"$work/$name.txt" | sed 's/ *$//' | sed '/./,$!d'
    exit
fi

mkdir -p -- "$dir/figures"
while IFS=$'\t' read -r name _; do
    draw "$name" svg
    "${AWK:-awk}" -f "$here/svg.awk" "$work/$name.svg" >"$work/$name.tidy"
    draw "$name" png
    mv -- "$work/$name.tidy" "$dir/figures/$name.svg"
    mv -- "$work/$name.png" "$dir/figures/$name.png"
done <"$work/list.tsv"
cp -- "$work/list.tsv" "$dir/figures/list.tsv"
# Figures of another time, that this one does not have.
for figure in "$dir"/figures/*.svg "$dir"/figures/*.png; do
    name=${figure##*/}
    if [[ -e $figure ]] && ! cut -f 1 "$work/list.tsv" | grep -qxF -- "${name%.*}"; then rm -- "$figure"; fi
done
