# verdicts.awk: what is claimed, and what the published studies say of it -> a page in Markdown (standard output). See overview.sh.
#
# usage:    awk -v page=claims.html -v claims=collect/claims.txt -f collect/study.awk -f collect/text.awk -f collect/wording.awk \
#               -f collect/tsv.awk -f collect/verdicts.awk studies/NAME... -- report/NAME...
#
# Every claim of claims.txt is there, measured or not, and whatever else a study tests. `page` says for whom: in claims.html the
# parts of a claim are drawn, claims.md has tables. No sentence says what a study should find.

function paragraph(line) { print line "\n" }
function for_browser() { return page ~ /html$/ }
function base(path) { sub(/\/+$/, "", path); sub(/.*\//, "", path); return path }
function report_of(name) { return name "/" (for_browser() ? "index.html" : "report.md") "#claims" }

# --- what there is ---

function study_read(path,    name, words, n, i) {
    name = base(path)
    split("", study)
    study_load(path)
    known_study[++known_studies] = name
    title[name] = study["title"]
    gsub(/,/, " ", study["claims"])
    n = split(study["claims"], words, " ")
    for (i = 1; i <= n; i++) if (words[i] != "none" && words[i] != "-") tested_by(words[i], name)
}

# A claim, known or not, has one more study.
function tested_by(id, name) {
    if (!((id, "quote") in wording)) wording[id, "quote"] = ""
    if (!(id in listed)) { listed[id] = 1; known_claim[++known_claims] = id }
    if ((id, name) in tests) return
    tests[id, name] = 1
    test_of[id, ++test_count[id]] = name
}

function folder_read(path,    name, i, id) {
    name = base(path)
    published[name] = 1
    split("", machine)
    split("", study)
    study_load(path "/study.txt")
    if (study["title"] != "") title[name] = study["title"]
    table_load(name, path "/claims.tsv")
    table_load("threats", path "/threats.tsv")
    machine_load(path "/machine.tsv")
    measured_on[name] = substr(machine["started"], 1, 10)
    machine_of[name] = machine["processor_model"] == "" ? "" : machine["processor_model"] ", " plural(machine["processors"], "processor", "processors")
    doubts_find(name)
    for (i = 1; i <= table_rows[name]; i++) {
        id = table[name, i, "claim"]
        tested_by(id, name)
        if (table[name, i, "part"] == "all") row_of[id, name] = i
        if (wording[id, "quote"] == "") {
            wording[id, "quote"] = table[name, i, "quote"]
            wording[id, "source"] = table[name, i, "source"]
        }
    }
}

# What makes a run less than it should be: doubts[name], and whether others had the machine meanwhile: busy[name].
function doubts_find(name,    i, v, of, what, text) {
    text = ""
    busy[name] = 0
    for (i = 1; i <= table_rows["threats"]; i++) {
        what = table["threats", i, "name"]
        v = table["threats", i, "value"]
        of = table["threats", i, "of"]
        if (what == "planned" && v + 0 < of + 0) text = text "; unfinished, " thousands(v) " of " thousands(of) " planned runs"
        if (what == "invalid" && v > 0) text = text "; " thousands(v) " of " thousands(of) " runs were invalid, and are left out"
        if (what == "others" && v != "-" && v >= 5) {
            busy[name] = 1
            text = text "; other programs had " v "% of the processors meanwhile"
        }
        if (what == "others" && v == "-") {
            busy[name] = machine["load_average"] + 0 > machine["processors"] + 0
            text = text "; what else ran was not recorded" (busy[name] ? ", and the machine was busy before (load average " \
                machine["load_average"] + 0 " on " plural(machine["processors"], "processor", "processors") ")" : "")
        }
        if (what == "stolen" && v != "-" && v >= 2) text = text "; other machines of the host had " v "% of the processors"
    }
    if (machine["command"] ~ / --quick/) text = text "; a quick run"
    if (machine["link"] != "") text = text "; over a link, " machine["link"]
    doubts[name] = substr(text, 3)
}

# --- verdicts ---

# What a study says of a claim (kind claim) or of its supposed cause (kind reading); "" if nothing.
function verdict_by(id, name, kind,    i) {
    if (!((id, name) in row_of)) return ""
    i = row_of[id, name]
    if (table[name, i, "kind"] == kind) return table[name, i, "verdict"]
    i++
    return table[name, i, "claim"] == id && table[name, i, "part"] == "cause" && kind == "reading" ? table[name, i, "verdict"] : ""
}

# What all studies together say: those that can tell count; where they contradict one another, that is said.
function verdict_of(id, kind,    i, v, holds, fails, open) {
    holds = fails = open = 0
    for (i = 1; i <= test_count[id]; i++) {
        v = verdict_by(id, test_of[id, i], kind)
        if (v == "holds") holds++
        else if (v == "does not hold") fails++
        else if (v != "") open++
    }
    if (holds && fails) return "studies differ"
    if (holds) return "holds"
    if (fails) return "does not hold"
    if (open) return "cannot tell"
    return wording[id, "answer"] != "" && kind == "claim" ? "answered by tests" : "not measured yet"
}

function has_cause(id) { return wording[id, "reading"] != "" || verdict_of(id, "reading") != "not measured yet" }

function class_of(verdict) {
    return verdict == "holds" ? "holds" : verdict == "does not hold" ? "fails" : "open"
}

function sign_of(verdict) {
    if (verdict == "holds") return "✓"
    if (verdict == "does not hold") return "✗"
    if (verdict == "cannot tell") return "?"
    if (verdict == "studies differ") return "≠"
    if (verdict == "answered by tests") return "§"
    return "–"
}

# Of a cause: confirmed, refuted.
function cause_word(verdict) {
    return verdict == "holds" ? "confirmed" : verdict == "does not hold" ? "refuted" : verdict == "not measured yet" ? "not tested yet" : verdict
}

function badge(verdict, words) {
    if (words == "") words = verdict
    if (!for_browser()) return "**" sign_of(verdict) " " words "**"
    return "<span class=\"verdict " class_of(verdict) "\"><span aria-hidden=\"true\">" sign_of(verdict) "</span> " words "</span>"
}

# --- the page ---

function number_word(n,    words) {
    split("one two three four five six seven eight nine ten eleven twelve", words, " ")
    return n in words ? words[n] : n
}

# "3 hold, 1 does not, ...": counts by verdict, those of none left out.
function counts_text(of, words, orders,    n, i, order, list, k, parts) {
    n = split(orders, order, "|")
    k = 0
    for (i = 1; i <= n; i++) {
        split(words[order[i]], parts, "|")
        if (of[order[i]]) list[++k] = "**" thousands(of[order[i]]) " " (of[order[i]] == 1 ? parts[1] : parts[2]) "**"
    }
    return join_text(list, k)
}

function abstract(    i, id, v, all, causes, count, of_causes, words, text) {
    for (i = 1; i <= known_claims; i++) {
        id = known_claim[i]
        if (wording[id, "report"] == "") continue
        all++
        count[verdict_of(id, "claim")]++
        if (!has_cause(id)) continue
        causes++
        of_causes[verdict_of(id, "reading")]++
    }
    words["holds"] = "holds|hold"
    words["does not hold"] = "does not hold|do not hold"
    words["cannot tell"] = "is left open by the measurements|are left open by the measurements"
    words["studies differ"] = "divides the studies|divide the studies"
    words["answered by tests"] = "is no matter of speed and answered by tests|are no matter of speed and answered by tests"
    words["not measured yet"] = "is not measured yet|are not measured yet"
    text = "Of " all " claims of " number_word(known_reports) " classroom reports " \
        counts_text(count, words, "holds|does not hold|studies differ|cannot tell|answered by tests|not measured yet") "."
    words["holds"] = "is confirmed|are confirmed"
    words["does not hold"] = "is refuted|are refuted"
    words["not measured yet"] = "is not tested yet|are not tested yet"
    if (causes) text = text " Of the " causes " causes that their own figures suggest " \
        counts_text(of_causes, words, "holds|does not hold|studies differ|cannot tell|not measured yet") "."
    paragraph(text)
}

# Finds the studies that something here rests on: behind[1..runs].
function behind_find(    i, k, id, name, seen) {
    runs = 0
    for (i = 1; i <= known_claims; i++) {
        id = known_claim[i]
        for (k = 1; k <= test_count[id]; k++) {
            name = test_of[id, k]
            if (((id, name) in row_of) && !seen[name]++) behind[++runs] = name
        }
    }
}

# Where and how the runs were made.
function origin(    i, n, seen, where) {
    n = 0
    for (i = 1; i <= runs; i++) if (machine_of[behind[i]] != "" && !seen[machine_of[behind[i]]]++) where[++n] = machine_of[behind[i]]
    paragraph("Made from " plural(runs, "published run", "published runs") " by `./dcollect.sh overview`" (n ? "; " (n > 1 ? "their machines: " : "their machine: ") join_sentences(where, n) : "") \
        ". A verdict is about the machine of its run. See also [all that was measured](" (for_browser() ? "index.html" : "README.md") ").")
}

# Which runs should be made again before anybody relies on them.
function caution(    i, n, list) {
    n = 0
    for (i = 1; i <= runs; i++) if (busy[behind[i]]) list[++n] = "[" title[behind[i]] "](" report_of(behind[i]) ")"
    if (n) paragraph("> **Caution**: of the " plural(runs, "run", "runs") " behind this page " (n == 1 ? "one was" : n " were") \
        " made on a machine that others used meanwhile or, where that was not recorded, just before: " join_text(list, n) \
        ". How much stands beside each verdict; before anybody relies on those, they should be run again on a machine left alone.")
}

function anchor(id) { return "<a id=\"" id "\"></a>" }

# All verdicts at a glance: a row of links for each report in the browser, else a table.
function glance(    r, i, id, v, text) {
    if (!for_browser()) print "| claim | what was claimed | here | supposed cause |\n| --- | --- | --- | --- |"
    else print "<div class=\"glance\">"
    for (r = 1; r <= known_reports + 1; r++) {
        text = ""
        for (i = 1; i <= known_claims; i++) {
            id = known_claim[i]
            if (wording[id, "report"] != known_report[r]) continue
            v = verdict_of(id, "claim")
            if (!for_browser())
                print "| [" id "](#" id ") | " cell_text(wording[id, "quote"]) " | " badge(v) " | " (has_cause(id) ? badge(verdict_of(id, "reading"), cause_word(verdict_of(id, "reading"))) : "") " |"
            text = text " <a class=\"chip " class_of(v) "\" href=\"#" id "\" title=\"" html(wording[id, "quote"]) "\">" id \
                " <span aria-hidden=\"true\">" sign_of(v) "</span><span class=\"said\"> " v "</span></a>"
        }
        if (for_browser() && text != "") print "<p><span class=\"of\">" (r > known_reports ? "Others" : html(known_report[r] ". " wording[known_report[r], "title"])) "</span>" text "</p>"
    }
    if (for_browser()) print "</div>"
    print ""
}

function legend() {
    if (for_browser()) {
        paragraph("In the drawings the band is where the claim would hold, the bar our interval, and the dot our estimate; each has a scale of its own.")
        print "<details><summary>How a verdict is reached</summary>\n"
    }
    else print "How a verdict is reached:\n"
    print "- ✓ **holds**: the whole 95% interval is where the claim says; ✗ **does not hold**: all of it is elsewhere; ? **cannot tell**: it reaches into both."
    print "- A claim of several parts holds when all of them do, and does not when one does not, unless it says otherwise. Its intervals are widened so that all of them hold together."
    print "- Where several studies test a claim, those that can tell count; ≠ **studies differ** where they contradict one another."
    print "- A supposed cause is what a report’s own figures suggest. It is tested apart from the claim, by making the mistake on purpose: where it is **confirmed**, the mistake has that effect here; what happened there nobody can measure any more.\n"
    if (for_browser()) print "</details>\n"
}

# A part of a claim: what was tested, the rule, what was found.
function rule_split(tested,    at) {
    part_rule = ""
    part_tested = tested
    if (match(tested, /: (ratio )?(above|below|within) [^:]*$/)) {
        part_rule = substr(tested, RSTART + 2)
        part_tested = substr(tested, 1, RSTART - 1)
    }
}

function plain_number(word) { gsub(/,/, "", word); return word + 0 }

# What was found, and of how many blocks it is where they are few.
function found_text(name, i) { return table[name, i, "found"] few_said(table[name, i, "blocks"]) }

# The interval of a part beside the range where the claim would hold, as a drawing: by logarithm where all is positive.
function drawing(low, high, found,    words, n, k, a, b, middle, from, to, logarithm, class) {
    if (low == "-" || part_rule == "") return ""
    k = split(part_rule, words, " ")
    n = words[1] == "ratio" ? 2 : 1
    a = plain_number(words[n + 1])
    b = words[n] == "within" ? plain_number(words[n + 3]) : a
    split(found, words, " ")
    middle = plain_number(words[1])
    logarithm = low > 0 && a > 0
    from = low < a ? low : a
    to = high > b ? high : b
    from = scaled(from, logarithm)
    to = scaled(to, logarithm)
    k = (to - from) / 6
    if (k <= 0) k = 1
    draw_from = from - k
    draw_per = 148 / (to - from + 2 * k)
    n = part_rule ~ /above/ ? 1 : part_rule ~ /below/ ? -1 : 0
    a = n < 0 ? 1 : place(a, logarithm)
    b = n > 0 ? 149 : place(b, logarithm)
    low = place(low, logarithm)
    high = place(high, logarithm)
    return "<svg class=\"strip\" viewBox=\"0 0 150 18\" width=\"150\" height=\"18\" aria-hidden=\"true\">" \
        sprintf("<path class=\"axis\" d=\"M1 9h148\"/><rect class=\"band\" x=\"%.1f\" y=\"1\" width=\"%.1f\" height=\"16\"/>", a, b - a) \
        sprintf("<path class=\"bar\" d=\"M%.1f 9H%.1f\"/><circle cx=\"%.1f\" cy=\"9\" r=\"4\"/></svg>", low - 0.5, high + 0.5, place(middle, logarithm))
}

function scaled(v, logarithm) { return logarithm ? log(v) : v + 0 }
function place(v, logarithm) { return 1 + (scaled(v, logarithm) - draw_from) * draw_per }

# A part as an item of a list, drawn.
function part_item(name, i,    verdict) {
    verdict = table[name, i, "verdict"]
    rule_split(table[name, i, "tested"])
    return "<li><span class=\"tested\">" html(part_tested) (part_rule == "" ? "" : " <span class=\"rule\">holds if " html(part_rule) "</span>") "</span>" \
        "<span class=\"drawn\">" drawing(table[name, i, "low"], table[name, i, "high"], table[name, i, "found"]) "</span>" \
        "<span class=\"found\">" html(found_text(name, i)) "</span>" badge(verdict) "</li>"
}

function part_row(name, i) {
    return "| " cell_text(table[name, i, "tested"]) " | " cell_text(found_text(name, i)) " | " sign_of(table[name, i, "verdict"]) " " table[name, i, "verdict"] " |"
}

# "2 hold, 1 does not hold and 3 cannot tell"
function tally(of,    n, list) {
    n = 0
    if (of["holds"]) list[++n] = plural(of["holds"], "holds", "hold")
    if (of["does not hold"]) list[++n] = plural(of["does not hold"], "does not hold", "do not hold")
    if (of["cannot tell"]) list[++n] = plural(of["cannot tell"], "cannot tell", "cannot tell")
    return join_text(list, n)
}

# The parts of a claim (kind claim) or of its supposed cause (kind reading) in a study. Of many the browser shows some that decide,
# and unfolds the others.
function parts_list(id, name, kind,    i, k, n, of, at, decides, shown, folded) {
    n = shown = 0
    for (i = row_of[id, name]; i <= table_rows[name] && table[name, i, "claim"] == id; i++)
        if (table[name, i, "part"] ~ /^[0-9]+$/ && table[name, i, "kind"] == kind) {
            at[++n] = i
            of[table[name, i, "verdict"]]++
        }
    if (!n) { paragraph("This run has no data for it."); return }
    if (!for_browser()) {
        print "| tested | found (95% interval) | verdict |\n| --- | --- | --- |"
        for (k = 1; k <= n; k++) print part_row(name, at[k])
        print ""
        return
    }
    decides = verdict_by(id, name, kind)
    print "<ul class=\"parts\">"
    for (k = 1; k <= n; k++) {
        if (n <= 6 || (table[name, at[k], "verdict"] == decides && shown < 3)) { print part_item(name, at[k]); shown++ }
        else folded = folded part_item(name, at[k]) "\n"
    }
    print "</ul>"
    if (folded != "") print "<details><summary>" n - shown " other parts; of all " n ", " tally(of) "</summary>\n<ul class=\"parts\">\n" folded "</ul>\n</details>"
    print ""
}

function study_line(name, verdict) {
    return "by [" title[name] "](" report_of(name) ")" (measured_on[name] == "" ? "" : ", " measured_on[name]) (verdict == "" ? "" : ": " verdict)
}

function doubt_line(name) { return doubts[name] == "" ? "" : (busy[name] ? "**Caution**: " : "Note: ") doubts[name] "." }

function claim_heading(id,    v) {
    v = verdict_of(id, "claim")
    if (for_browser()) print "<article class=\"claim " class_of(v) "\">\n"
    paragraph("### " anchor(id) id " " badge(v))
    paragraph("> " wording[id, "quote"] (wording[id, "report"] == "" || wording[id, "source"] ~ /,/ ? " (" wording[id, "source"] ")" : ""))
    if (wording[id, "figures"] != "") paragraph("**They**: " wording[id, "figures"])
}

function claim_section(id,    i, name, by, told, missing, k) {
    if (wording[id, "quote"] == "") wording[id, "quote"] = "Its words stand in the study that tests it."
    if (wording[id, "source"] == "") wording[id, "source"] = "the design of a study"
    claim_heading(id)
    told = k = 0
    for (i = 1; i <= test_count[id]; i++) if (verdict_by(id, test_of[id, i], "claim") != "") told++
    for (i = 1; i <= test_count[id]; i++) {
        name = test_of[id, i]
        by = verdict_by(id, name, "claim")
        if (by != "") {
            paragraph("**We**, " study_line(name, told > 1 ? badge(by) : "") \
                (table[name, row_of[id, name], "tested"] ~ /^one of/ ? " (one of the parts is enough)" : ""))
            parts_list(id, name, "claim")
            if (doubts[name] != "") paragraph(doubt_line(name))
        } else if (!((id, name) in row_of)) missing[++k] = "`./dcollect.sh " name "`"
    }
    if (wording[id, "answer"] != "") paragraph("**We**: " wording[id, "answer"])
    cause_section(id)
    if (k) paragraph((told ? "Not published yet, and testing it as well: " join_text(missing, k) "." : "Not measured yet: " join_text(missing, k) (k > 1 ? " measure it." : " measures it.")))
    else if (!told && wording[id, "answer"] == "") paragraph(test_count[id] ? "Not measured yet: the studies that there are test its supposed cause alone." : "Not measured yet: no study here tests it.")
    if (for_browser()) print "</article>\n"
}

function cause_section(id,    i, name, v, told) {
    if (!has_cause(id)) return
    v = verdict_of(id, "reading")
    paragraph("**Supposed cause**: " badge(v, cause_word(v)) (wording[id, "reading"] == "" ? "" : ". " wording[id, "reading"]))
    told = 0
    for (i = 1; i <= test_count[id]; i++) if (verdict_by(id, test_of[id, i], "reading") != "") told++
    for (i = 1; i <= test_count[id]; i++) {
        name = test_of[id, i]
        v = verdict_by(id, name, "reading")
        if (v == "") continue
        paragraph("**We**, " study_line(name, told > 1 ? badge(v, cause_word(v)) : ""))
        parts_list(id, name, "reading")
        if (doubts[name] != "") paragraph(doubt_line(name))
    }
}

BEGIN {
    known_studies = 0
    wording_read(claims)
    for (i = 1; i <= known_claims; i++) listed[known_claim[i]] = 1
    folders = 0
    for (i = 1; i < ARGC; i++) {
        if (ARGV[i] == "--") folders = 1
        else if (folders) folder_read(ARGV[i])
        else study_read(ARGV[i])
    }
    print "# What " number_word(known_reports) " reports claimed, and what we measured\n"
    behind_find()
    origin()
    abstract()
    caution()
    glance()
    legend()
    for (r = 1; r <= known_reports; r++) {
        print "## " known_report[r] ". " wording[known_report[r], "title"] "\n"
        if (wording[known_report[r], "setup"] != "") paragraph(wording[known_report[r], "setup"])
        for (i = 1; i <= known_claims; i++) if (wording[known_claim[i], "report"] == known_report[r]) claim_section(known_claim[i])
    }
    print "## What others claim\n"
    paragraph("Claims of books and papers, and those that the studies put to the test on their own account.")
    for (i = 1; i <= known_claims; i++) if (wording[known_claim[i], "report"] == "") claim_section(known_claim[i])
}
