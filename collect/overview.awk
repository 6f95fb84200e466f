# overview.awk: the reports of studies -> a page in Markdown that leads to them (standard output). See overview.sh.
#
# usage:    awk -v page=index.html -f collect/text.awk -f collect/overview.awk report/NAME/report.md... studies/NAME...
#
# The studies are those without a report.

# The first two sentences of a paragraph.
function two_sentences(text,    i, from, seen) {
    from = 1
    for (seen = 1; seen <= 2; seen++) {
        if (!match(substr(text, from), /[.?!] /)) return text
        from += RSTART + 1
    }
    return substr(text, 1, from - 2)
}

# A study: what was asked, what was found, the main figure, the verdicts.
function study_end() {
    if (name == "") return
    print "## [" title "](" name "/" page ")\n"
    if (question != "") print "> " question "\n"
    if (parts) print "In " parts " parts, each with an answer of its own.\n"
    else if (answer != "") print two_sentences(answer) "\n"
    if (figure != "") {
        if (page ~ /html$/)
            print "<p><a href=\"" name "/" page "\"><img src=\"" name "/" figure "\" alt=\"" html(alt) "\" style=\"max-width:100%;height:auto\"></a></p>\n"
        else print "[![" alt "](" name "/" figure ")](" name "/" page ")\n"
    }
    if (claims != "") print claims "\n"
    print "[The whole report](" name "/" page ")" (measured == "" ? "" : ", measured " measured) ".\n"
}

FNR == 1 { study_end() }
FNR == 1 && FILENAME !~ /report\.md$/ {
    name = ""
    missing[++missing_count] = FILENAME
    sub(/.*\//, "", missing[missing_count])
}
FILENAME !~ /report\.md$/ {
    if (sub(/^question:[ \t]*/, "")) asked[missing_count] = $0
    next
}
FNR == 1 {
    name = FILENAME
    sub(/\/[^\/]*$/, "", name)
    sub(/.*\//, "", name)
    question = answer = figure = alt = claims = measured = section = title = ""
    parts = 0
}

/^# / && title == "" { title = substr($0, 3) }
/^Study `/ && match($0, /Measured [0-9-]+/) { measured = substr($0, RSTART + 9, RLENGTH - 9) }
/^## / { section = substr($0, 4) }
section != "Abstract" || /^$/ || /^#/ { next }
/^> / { if (question == "") question = substr($0, 3); next }
/^\*\*Part [0-9]+\*\*/ { parts++; next }
/^!\[/ {
    if (figure == "" && match($0, /\]\(figures\/[^)]*\)/)) {
        figure = substr($0, RSTART + 2, RLENGTH - 3)
        alt = substr($0, 3, RSTART - 3)
    }
    next
}
/^\[Claims\]/ {
    claims = $0
    sub(/\(#claims\)/, "(" name "/" page "#claims)", claims)
    next
}
answer == "" { answer = $0 }

BEGIN {
    print "# What was measured\n"
    if (verdicts != "") print "**[What four reports claimed, and what we measured](" verdicts ")**: each claim with its verdict.\n"
    print "Each study was run on one machine, which its report describes, and each report ends with the command that repeats it. This page is made from the reports: `./dcollect.sh overview`.\n"
}
END {
    study_end()
    if (!missing_count) exit
    print "## Not published yet\n"
    for (i = 1; i <= missing_count; i++) print "- `./dcollect.sh " missing[i] "`: " asked[i]
}
