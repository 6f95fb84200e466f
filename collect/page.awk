# page.awk: the HTML that cmark-gfm makes of report.md -> index.html (standard output), with the figures inside. See report.sh.
#
# usage:    cmark-gfm ... | awk -v dir=DIR -v template=collect/page.html -v title=TITLE -f collect/page.awk

# A figure as an element of the page: ids made its own, no size (the style sheet gives it), no style sheet and no ground.
function figure(path, alt,    line, started, skipping, prefix, title_text, open) {
    prefix = "f" ++figures "-"
    print "<figure><div class=\"scroll\" tabindex=\"0\">"
    started = skipping = 0
    while ((getline line < path) > 0) {
        if (line ~ /^<svg/) {
            started = 1
            print "<svg role=\"img\" aria-label=\"" alt "\""
            continue
        }
        if (!started) continue
        if (line ~ /^ width=/) {
            split(line, size, "\"")
            printf " style=\"max-width:%dpx;min-width:%dpx\"\n", size[2], size[2] * 0.72
            continue
        }
        if (line == "<style>") skipping = 1
        if (skipping) {
            if (line !~ /^<\/?style>/ && figures == 1) style = style line "\n"
            if (line == "</style>") skipping = 0
            continue
        }
        if (line ~ /^<rect x="0" y="0" width=.* fill="#ffffff"\/>/) continue
        gsub(/ id='/, "&" prefix, line)
        gsub(/ id="/, "&" prefix, line)
        gsub(/href='#/, "&" prefix, line)
        print line
    }
    close(path)
    print "</div></figure>"
}

function slug(text) {
    gsub(/<[^>]*>/, "", text)
    text = tolower(text)
    gsub(/[^a-z0-9]+/, "-", text)
    gsub(/^-|-$/, "", text)
    return text
}

function body_line(line,    src, alt, level, text) {
    if (line ~ /^<p><img src="figures\/[^"]*\.svg"/) {
        match(line, /src="[^"]*"/)
        src = substr(line, RSTART + 5, RLENGTH - 6)
        match(line, /alt="[^"]*"/)
        alt = substr(line, RSTART + 5, RLENGTH - 6)
        gsub(/%7E/, "~", src)
        figure(dir "/" src, alt)
        return
    }
    if (line ~ /^<h2>/) line = "<h2 id=\"" slug(line) "\">" substr(line, 5)
    if (line == "<table>") line = "<div class=\"scroll\" tabindex=\"0\"><table>"
    if (line == "</table>") line = "</table></div>"
    line = verdict(line, "does not hold", "fails")
    line = verdict(line, "cannot tell", "open")
    line = verdict(line, "holds", "holds")
    print line
}

# A cell of a table that begins with a verdict is coloured; the words stay.
function verdict(line, words, class) {
    sub("^<td>" words "</td>", "<td class=\"" class "\">" words "</td>", line)
    sub("^<td><strong>" words "</strong>", "<td class=\"" class "\"><strong>" words "</strong>", line)
    return line
}

{ body[++lines] = $0 }

END {
    while ((getline line < template) > 0) {
        if (line == "@BODY@") for (i = 1; i <= lines; i++) body_line(body[i])
        else if (line == "@FIGURES@") printf "%s", "<style>\n" style "</style>\n"
        else {
            if ((at = index(line, "@TITLE@"))) line = substr(line, 1, at - 1) title substr(line, at + 7)
            print line
        }
    }
}
