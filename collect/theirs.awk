# theirs.awk: what a report measured itself, to be shown beside what is measured here. Functions only; needs study.awk.
#
# In the text of a study, one line for each row of a report's table:
#     theirs: MEASURE[/MEASURE]... by FACTOR[, FACTOR=VALUE]... => VALUE=NUMBER[/NUMBER]...
#     theirs: rps by concurrency, service=sized => 1=124.68 5=129.68
#     theirs: mean_ms/max_ms by server, file=small.txt => thread=2/7 fork=2/21
# says that it had 124.68 requests/s at concurrency 1 of the service sized, whatever the other factors are. A MEASURE is a column of
# runs.tsv, or time_ms or across_ms, ab's times per request.

# Reads the lines that study_load has kept: theirs_count, and of each theirs_by, theirs_when and theirs_value[i, value, measure].
function theirs_load(    i, j, k, at, n, words, pair, measures, measure, numbers) {
    for (i = 1; i <= theirs_count; i++) {
        at = index(theirs_line[i], "=>")
        n = split(substr(theirs_line[i], 1, at - 1), words, /[ ,]+/)
        measures = split(words[1], measure, "/")
        theirs_by[i] = words[3]
        theirs_when[i] = ""
        for (j = 4; j <= n; j++) theirs_when[i] = theirs_when[i] " " words[j]
        n = split(substr(theirs_line[i], at + 2), words, " ")
        for (j = 1; j <= n; j++) {
            split(words[j], pair, "=")
            split(pair[2], numbers, "/")
            for (k = 1; k <= measures; k++) theirs_value[i, pair[1], measure[k]] = numbers[k]
        }
    }
}

# What a report had of this measure in cell c; "" if nothing is known. Of a server that is not named it stands beside all.
function theirs_of(c, measure,    i, j, n, words, at, ok) {
    for (i = 1; i <= theirs_count; i++) {
        if (!((i, cell[c, theirs_by[i]], measure) in theirs_value)) continue
        ok = 1
        n = split(theirs_when[i], words, " ")
        for (j = 1; j <= n; j++) {
            at = index(words[j], "=")
            if (cell[c, substr(words[j], 1, at - 1)] "" != substr(words[j], at + 1) "") ok = 0
        }
        if (ok) return theirs_value[i, cell[c, theirs_by[i]], measure]
    }
    return ""
}
