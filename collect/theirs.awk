# theirs.awk: what a report measured itself, to be shown beside what is measured here. Functions only; needs study.awk.
#
# In the text of a study, one line for each row of a report's table:
#     theirs: MEASURE by FACTOR[, FACTOR=VALUE]... => VALUE=NUMBER...
#     theirs: rps by concurrency, service=sized => 1=124.68 5=129.68
# says that it had 124.68 requests/s at concurrency 1 of the service sized, whatever the other factors are. MEASURE is a column of
# runs.tsv.

# Reads the lines that study_load has kept: theirs_count, and of each theirs_measure, theirs_by, theirs_when and theirs_value[i, value].
function theirs_load(    i, j, at, n, words, pair) {
    for (i = 1; i <= theirs_count; i++) {
        at = index(theirs_line[i], "=>")
        n = split(substr(theirs_line[i], 1, at - 1), words, /[ ,]+/)
        theirs_measure[i] = words[1]
        theirs_by[i] = words[3]
        theirs_when[i] = ""
        for (j = 4; j <= n; j++) theirs_when[i] = theirs_when[i] " " words[j]
        n = split(substr(theirs_line[i], at + 2), words, " ")
        for (j = 1; j <= n; j++) if (split(words[j], pair, "=") == 2) theirs_value[i, pair[1]] = pair[2]
    }
}

# What a report had of this measure in cell c; "" if nothing is known. Of a server that is not named it stands beside all.
function theirs_of(c, measure,    i, j, n, words, at, ok) {
    for (i = 1; i <= theirs_count; i++) {
        if (theirs_measure[i] != measure || !((i, cell[c, theirs_by[i]]) in theirs_value)) continue
        ok = 1
        n = split(theirs_when[i], words, " ")
        for (j = 1; j <= n; j++) {
            at = index(words[j], "=")
            if (cell[c, substr(words[j], 1, at - 1)] "" != substr(words[j], at + 1) "") ok = 0
        }
        if (ok) return theirs_value[i, cell[c, theirs_by[i]]]
    }
    return ""
}
