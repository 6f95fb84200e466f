#!/bin/bash
# compare.sh: compares every server of a study with its baseline, within blocks.
#
# usage:    collect/compare.sh DIR        reads DIR/study.txt and DIR/runs.tsv, writes DIR/comparisons.tsv
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
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "${BASH_SOURCE[0]}")
# shellcheck source=collect/stage.sh
. "$here/stage.sh"

stage_begin "$@"
compare() { believed_runs "$dir" | awk_with "$dir" statistics study text contrast compare; }
stage_write "$dir/comparisons.tsv" compare
