# wording.awk: reads claims.txt, which says what is claimed and by whom. Functions only.
#
# After wording_read(path):
#   known_claim[1..known_claims], known_report[1..known_reports]    the names of the claims and of the reports, in order
#   wording[name, key]    what is said of each; key `report` of a claim: the report that it is of, or ""

function wording_read(path,    line, at, name, key, report, status) {
    name = key = report = ""
    known_claims = known_reports = 0
    while ((status = (getline line < path)) > 0) {
        if (line ~ /^#/ || line ~ /^[ \t]*$/) continue
        if (line ~ /^[ \t]/) {
            sub(/^[ \t]+/, "", line)
            wording[name, key] = wording[name, key] " " line
            continue
        }
        at = index(line, ":")
        key = substr(line, 1, at - 1)
        line = substr(line, at + 1)
        sub(/^[ \t]+/, "", line)
        if (key == "report") known_report[++known_reports] = report = name = line
        else if (key == "claim") {
            known_claim[++known_claims] = name = line
            wording[name, "report"] = index(name, report ".") == 1 ? report : ""
        } else wording[name, key] = line
    }
    close(path)
    if (status < 0) fail("cannot read " path)
}

# What was claimed, with the supposed cause behind it, as claims.tsv has it.
function wording_quote(name,    cause) {
    cause = wording[name, "reading"]
    return wording[name, "quote"] (cause == "" ? "" : " Reading: " tolower(substr(cause, 1, 1)) substr(cause, 2))
}
