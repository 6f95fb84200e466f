# svg.awk: tidies a figure that gnuplot drew: readable on dark pages, hovering without a script, half the size.
#
# usage:    awk -f collect/svg.awk gnuplot.svg >figure.svg
#
# Colours stay attributes, so that every program can show the file; a style sheet inside it turns them where dark is preferred.
# What gnuplot would show with a script of its own on hovering becomes the title of its point (class "value").

/^<title>Gnuplot/ || /^<desc>/ { next }
/<filter /,/<\/filter>/ { next }

{
    gsub(/<title>gnuplot_plot_[0-9a-z]*<\/title>/, "")
    gsub(/<title>[^<]* using [^<]*<\/title>/, "")
    sub(/^\t+/, "")
    gsub(/ +'/, "'")
    while (match($0, /rgb\([0-9, ]* [0-9, ]*\)/)) {
        colour = substr($0, RSTART, RLENGTH)
        gsub(/ /, "", colour)
        $0 = substr($0, 1, RSTART - 1) colour substr($0, RSTART + RLENGTH)
    }
    gsub(/ stroke-linecap="butt" stroke-linejoin="miter"/, "")
    gsub(/font-family="sans-serif:Bold"/, "font-family=\"sans-serif\" font-weight=\"bold\"")
    gsub(/font-family="sans-serif"/, "font-family=\"'DejaVu Sans', Verdana, sans-serif\"")
    if (match($0, /showHypertext\(evt,'[^']*'\)/)) {
        hover = substr($0, RSTART + 19, RLENGTH - 21)
        $0 = "<g class=\"value\"><title>" hover "</title>"
    }
    if ($0 == "") next
    if ($0 ~ /^<rect x="0" y="0" width=/ && !styled) {
        styled = 1
        print "<style>"
        print "@media (prefers-color-scheme: dark) {"
        dark("255,255,255", "#15181c")
        dark("34,34,34", "#e8e8e8")
        dark("85,85,85", "#b5b5b5")
        dark("221,221,221", "#3a3f46")
        dark("0,114,178", "#4aa3df")
        dark("213,94,0", "#f07d32")
        dark("0,158,115", "#2fc496")
        dark("0,121,90", "#2fc496")
        dark("138,96,0", "#e69f00")
        dark("28,116,168", "#56b4e9")
        dark("163,73,122", "#dd94ba")
        dark("119,119,119", "#a0a0a0")
        print "[fill=\"#ffffff\"] { fill: #15181c }"
        print "[color=\"#FFFFFF\"] { color: #15181c }"
        print "[stroke=\"black\"] { stroke: #e8e8e8 }"
        print "[fill=\"black\"] { fill: #e8e8e8 }"
        print "[color=\"black\"] { color: #e8e8e8 }"
        print "}"
        print "</style>"
    }
    # A group that nothing was drawn in.
    if (held != "") {
        if ($0 == "</g>") { held = ""; next }
        print held
        held = ""
    }
    if ($0 ~ /^<g fill="none"[^>]*>$/) { held = $0; next }
    print
}

END { if (held != "") print held }

# gnuplot writes a colour in either kind of quotes; the selectors read the value.
function dark(rgb, to) {
    print "[stroke=\"rgb(" rgb ")\"] { stroke: " to " }"
    print "[fill=\"rgb(" rgb ")\"] { fill: " to " }"
    print "[color=\"rgb(" rgb ")\"] { color: " to " }"
}
