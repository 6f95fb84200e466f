#!/bin/bash
# summary.sh: condenses the runs of a study to one row a cell (a combination of all factors).
#
# usage:    collect/summary.sh DIR        reads DIR/study.txt and DIR/runs.tsv, writes DIR/summary.tsv
# example:  collect/summary.sh results/fork-vs-thread/20260101-120000
#
# Columns: the factors; n and n_invalid, the runs that count and those that do not; of requests/s (rps_) and of the server's
# CPU time per request in microseconds (server_cpu_us_): mean, sd (standard deviation of the sample), median, low and high
# (95% t-interval of the mean), min, max; the means over the runs of their times (mean, sd, min, percentiles, max; in
# milliseconds), seconds, transfer rate, context switches per request, peak memory, share of a processor that the load generator
# used; of a crew, its workers and which share of the requests the busiest had; the memory of an
# idle connection; the largest peak memory; and client_bound: that share is over 0.90 on average, so that requests/s speaks of the client.
set -euo pipefail
export LC_ALL=C
here=$(dirname -- "${BASH_SOURCE[0]}")
# shellcheck source=collect/stage.sh
. "$here/stage.sh"

stage_begin "$@"
summarise() { believed_runs "$dir" | awk_with "$dir" statistics study text summary; }
stage_write "$dir/summary.tsv" summarise
