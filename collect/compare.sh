#!/bin/bash
# compare.sh: compares every server of a study with its baseline, within blocks.
#
# usage:    collect/compare.sh DIR        reads DIR/study.txt and DIR/runs.tsv, writes DIR/comparisons.tsv and averages.tsv
# example:  collect/compare.sh results/fork-vs-thread/20260101-120000
#
# One row a comparison: scope, measure (rps: requests/s, server_cpu_us: server CPU per request), server, baseline, the other factors
# (`*`: averaged over), and
#   cells, client_bound   how many cells are averaged, and how many of them the load generator limits
#   blocks                the sample: blocks in which both servers have a valid run
#   ratio low high        server / baseline with its 95% interval: the exponential of the paired t-interval of the log-ratios
#   t p p_holm            the paired t-test of "ratio is 1", its p-value, and Holm's adjustment of it
#   all_low all_high      the interval widened so that all of its scope hold together with 95% confidence (Bonferroni)
#   difference            higher or lower where p_holm is below 0.05, else `not shown`
# Scopes: `cell`, every cell alone; `x`, averaged (geometric mean) over the factor on the x axis; `all`, averaged over
# everything. A study in parts (study.awk says when it is) has a baseline in each, and averages within them. The rows of a scope, both measures together, are one family of tests.
#
# And DIR/averages.tsv, what each server has alone: part, measure (rps, server_cpu_us; control_us: server CPU per request less that of
# the server `iterative` in the same cell and block, where the study has that), server, the other factors (`*`: the one on the x axis,
# averaged over), cells, client_bound, blocks, and mean low high: the geometric mean (control_us: arithmetic) over the cells, taken in
# each block, with its 95% t-interval over the blocks.
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "${BASH_SOURCE[0]}")
# shellcheck source=collect/stage.sh
. "$here/stage.sh"

stage_begin "$@"
compare() { believed_runs "$dir" | awk_with "$dir" statistics study text contrast compare; }
stage_write "$dir/comparisons.tsv" compare
average() { believed_runs "$dir" | awk_with "$dir" statistics study text contrast averages; }
stage_write "$dir/averages.tsv" average
