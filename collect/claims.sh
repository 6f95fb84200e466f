#!/bin/bash
# claims.sh: says of each claim that a study tests whether it holds on this machine.
#
# usage:    collect/claims.sh DIR        reads DIR/study.txt and DIR/runs.tsv, writes DIR/claims.tsv
# example:  collect/claims.sh results/fork-vs-thread/20260101-120000
#
# Columns: claim, source, quote; part (`all`: the claim as a whole; `cause`: its supposed cause, where both are tested; else a number), kind (claim, or reading: the supposed cause),
# tested, found (estimate and 95% interval in words), low and high (that interval), verdict (holds, does not hold, cannot tell),
# blocks (how many the part rests on).
# The rules and what each claim is tested by stand in claims.awk, what is claimed and by whom in claims.txt.
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "${BASH_SOURCE[0]}")
# shellcheck source=collect/stage.sh
. "$here/stage.sh"

stage_begin "$@"
judge() { believed_runs "$dir" | awk_with "$dir" statistics study text contrast wording claims_others claims_proxy claims_protocols claims; }
stage_write "$dir/claims.tsv" judge
