#!/bin/bash
# threats.sh: computes what could be wrong with a study.
#
# usage:    collect/threats.sh DIR        reads DIR/study.txt, plan.tsv and runs.tsv, writes DIR/threats.tsv
# example:  collect/threats.sh results/fork-vs-thread/20260101-120000
#
# Rows (name, subject, value, low, high, of): planned: runs that finished, of those planned; disbelieved: rows that were cut
# off or told twice; client_bound: cells that the load generator limits, of all; invalid: runs, of all; reason: of a server's
# invalid runs; others, stolen: percent of the processors that other programs and other machines of the host had; drift: a server's requests/s in the last block / in the first, with its 95% interval; self: cells that differ
# (p < 0.05) between odd and even blocks, of all: 5% is expected.
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "${BASH_SOURCE[0]}")
# shellcheck source=collect/stage.sh
. "$here/stage.sh"

stage_begin "$@"
planned=0
if [[ -f $dir/plan.tsv ]]; then planned=$(($(wc -l <"$dir/plan.tsv") - 1)); fi
weigh() { believed_runs "$dir" | awk_with "$dir" planned="$planned" statistics study text threats; }
stage_write "$dir/threats.tsv" weigh
