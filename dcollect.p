# dcollect.p: draws one figure of a study. Called by collect/figures.sh, which writes the data and the parameters.
#
# usage:    gnuplot -e "parameters='NAME.gp'; output_kind='svg'; output_file='NAME.svg'" dcollect.p
#
# output_kind is svg (for the page), png (for the README, at twice the size) or txt (for the terminal). A figure is a grid of
# panels that share their x axis; in each, every server is a line with error bars, named at its end. Colours are those of
# Okabe and Ito, which colour-blind readers can tell apart; each server also has a shape of its own. A point is drawn hollow where
# the load generator was the limit.

set encoding utf8
load parameters

ink = '#222222'
soft = '#555555'
grid_colour = '#dddddd'
paper = '#ffffff'
array colour[8] = [0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x777777, 0x222222]
array text_colour[8] = [0x0072b2, 0xd55e00, 0x00795a, 0xa3497a, 0x8a6000, 0x1c74a8, 0x555555, 0x222222]
array full[4] = [7, 5, 9, 13]
array hollow[4] = [6, 4, 8, 12]
font_of(size) = output_kind eq 'svg' ? sprintf('sans-serif,%d', size) : sprintf('DejaVu Sans,%g', size * 0.75)
bold_of(size) = output_kind eq 'svg' ? sprintf('sans-serif:Bold,%d', size) : sprintf('DejaVu Sans:Bold,%g', size * 0.75)
larger(a, b) = a > b ? a : b

# Bars: one for each server, its name before it and its value behind it.
if (kind eq 'bars') {
    scale = output_kind eq 'png' ? 2.0 : 1.0
    head_lines = 1 + (part_text ne '' ? 1 : 0)
    head = 78.0 + 20.0 * head_lines
    left = 24.0 + 8.6 * name_width
    width = larger(left + 640.0 + 70.0, 28 + 7.2 * strlen(subtitle_text))
    height = head + 22.0 * bars + 58.0
    if (output_kind eq 'svg') {
        set terminal svg size width,height noenhanced font 'sans-serif,14' background rgb paper linewidth 1
    } else {
        set terminal pngcairo size scale * width,scale * height noenhanced font 'DejaVu Sans,10.5' fontscale scale \
            background rgb paper linewidth scale pointscale scale
    }
    set output output_file
    set lmargin at screen left / width
    set rmargin at screen (width - 70.0) / width
    set tmargin at screen 1 - head / height
    set bmargin at screen 58.0 / height
    unset key
    set border 0
    set tics nomirror scale 0 textcolor rgb ink
    set grid xtics lt 1 lw 1 lc rgb grid_colour
    set xrange [0:x_high]
    set yrange [bars + 0.6:0.4]
    eval 'set xtics ('.x_tics.')'
    set ytics ()
    do for [i = 1:bars] { set ytics add (name[i] i) }
    set xlabel x_title textcolor rgb ink offset 0,0.2
    set label 1 title_text at screen 14 / width, screen 1 - 22 / height left font bold_of(18) textcolor rgb ink
    if (part_text ne '') { set label 2 part_text at screen 14 / width, screen 1 - 45 / height left font font_of(13) textcolor rgb ink }
    set label 3 subtitle_text at screen 14 / width, screen 1 - (25.0 + 20 * head_lines) / height left font font_of(13) textcolor rgb soft
    at_x = 20.0
    do for [g = 1:groups] {
        set label 10 + g group_name[g] at screen at_x / width, screen 1 - (50.0 + 20 * head_lines) / height left offset 1,0 \
            textcolor rgb text_colour[group_tint[g]] point pt 5 ps 1.2 lc rgb colour[group_tint[g]]
        at_x = at_x + 8.6 * strlen(group_name[g]) + 40
    }
    set style fill solid 1.0 noborder
    plot data using 2:1:(0):2:($1 - 0.36):($1 + 0.36):(colour[int($5)]) with boxxyerror lc rgb variable, \
        data using 3:1:($4 - $3):(0) with vectors nohead lw 4 lc rgb paper, \
        data using 3:1:($4 - $3):(0) with vectors nohead lw 1.8 lc rgb soft, \
        data using (larger($2, $4)):1:(value[int($1)]) with labels left offset 0.6,0 textcolor rgb ink, \
        data using 2:1:6 with labels hypertext point pt 7 ps 1.6 lc rgb '#feffffff'
    unset output
    exit
}

# A server's colour and shape go by its place in its panel; those of dots by their number.
if (!exists("tint")) {
    array tint[64]
    do for [i = 1:64] { tint[i] = i }
}
if (!exists("theirs")) { theirs = 0 }
c(s) = colour[(tint[int(s)] - 1) % 8 + 1]
t(s) = text_colour[(tint[int(s)] - 1) % 8 + 1]
shape(s) = (tint[int(s)] - 1) % 4 + 1

dots = form eq 'dots'
if (!dots && y_log) { set logscale y }
if (x_log) { set logscale x }
set xrange [x_low:x_high]

# Rows of dots, where every server stands for itself: a name, and a dot for each number of clients, with its range.
if (dots) {
    row_pixels = levels > 1 ? 17.0 * levels : 26.0
    text_pixels = 8.4 * label_width + 24
    head = 74.0 + (levels > 1 ? 24.0 : 0)
    foot = 58.0
    wide = 620.0
    width = text_pixels + wide + 40
    if (width < 28 + 11.2 * strlen(title_text)) { width = 28 + 11.2 * strlen(title_text) }
    if (width < 28 + 7.2 * strlen(subtitle_text)) { width = 28 + 7.2 * strlen(subtitle_text) }
    height = head + row_pixels * servers + foot
    set yrange [0.45:servers + 0.55]
    set output
    if (output_kind eq 'txt') {
        set terminal dumb noenhanced size (columns_of_terminal < 60 ? 60 : columns_of_terminal > 110 ? 110 : columns_of_terminal), 6 + 2 * servers
        set output output_file
        set title title_text
        set xlabel x_title
        set key outside below horizontal reverse Left samplen 1
        set tics nomirror
        set border 3
        letter(j) = substr('ABCDEFGHIJKLMNOPQRSTUVWXYZ', j, j)
        plot for [j=1:levels] data index j - 1 using 1:2 with points pt letter(j) title level_text[j], \
            for [j=1:levels] labels index j - 1 using 1:2:3 with labels left offset 1,0 notitle
        unset output
        exit
    }
    scale = output_kind eq 'png' ? 2.0 : 1.0
    if (output_kind eq 'svg') {
        set terminal svg size width,height noenhanced font 'sans-serif,14' background rgb paper linewidth 1
    } else {
        set terminal pngcairo size scale * width,scale * height noenhanced font 'DejaVu Sans,10.5' fontscale scale \
            background rgb paper linewidth scale pointscale scale
    }
    set output output_file
    set lmargin at screen text_pixels / width
    set rmargin at screen (text_pixels + wide) / width
    set tmargin at screen 1 - head / height
    set bmargin at screen foot / height
    set border 1 lc rgb soft lw 1
    set tics nomirror scale 0.4 textcolor rgb ink
    set ytics scale 0
    set grid xtics lt 1 lw 1 lc rgb grid_colour
    unset key
    set xlabel x_title textcolor rgb ink offset 0,0.2
    set label 1 title_text at screen 14 / width, screen 1 - 22 / height left font bold_of(18) textcolor rgb ink
    set label 2 subtitle_text at screen 14 / width, screen 1 - 45 / height left font font_of(13) textcolor rgb soft
    at_x = 20.0
    do for [j = 1:levels] {
        if (level_text[j] ne '') {
            set label 10 + j level_text[j] at screen at_x / width, screen 1 - 70 / height left offset 1,0 textcolor rgb t(j) \
                point pt full[shape(j)] ps 0.8 lc rgb c(j)
            at_x = at_x + 8.6 * strlen(level_text[j]) + 40
        }
    }
    do for [s = 1:servers - 1] {
        set arrow from graph 0, first s + 0.5 to graph 1, first s + 0.5 nohead lw 0.6 lc rgb grid_colour
    }
    plot for [j = 1:levels] data index j - 1 using 3:2:($4 - $3):(0) with vectors nohead lw 2 lc rgb c(j) + 0x55000000, \
        for [j = 1:levels] data index j - 1 using ($5 == 0 ? $1 : NaN):2 with points pt full[shape(j)] ps 0.8 lc rgb c(j), \
        for [j = 1:levels] data index j - 1 using ($5 == 1 ? $1 : NaN):2 with points pt full[shape(j)] ps 0.85 lc rgb paper, \
        for [j = 1:levels] data index j - 1 using ($5 == 1 ? $1 : NaN):2 with points pt hollow[shape(j)] ps 0.85 lc rgb c(j), \
        for [j = 1:levels] labels index j - 1 using 1:2:3 with labels left offset 1,0 font font_of(12) textcolor rgb t(j), \
        for [j = 1:levels] data index j - 1 using 1:2:6 with labels hypertext point pt 7 ps 1.6 lc rgb '#feffffff'
    unset output
    exit
}

# The terminal: letters instead of shapes, one panel.
if (output_kind eq 'txt') {
    set terminal dumb noenhanced size (columns_of_terminal < 60 ? 60 : columns_of_terminal > 110 ? 110 : columns_of_terminal), 24
    set output output_file
    set title title_text.(part_text eq '' ? '' : ', '.part_text).(panel_title[1] eq '' ? '' : ', '.panel_title[1])
    set xlabel x_title
    set ylabel ''
    set yrange [y_low[1]:y_high[1]]
    eval 'set ytics ('.y_tics[1].')'
    set key outside below horizontal reverse Left samplen 1
    set tics nomirror
    set border 3
    letter(s) = substr('ABCDEFGHIJKLMNOPQRSTUVWXYZ', s, s)
    plot for [s=1:servers] data index s - 1 using 1:2 with lines lt 0 notitle, \
        for [s=1:servers] data index s - 1 using 1:2 with points pt letter(s) title word(names, s)
    unset output
    exit
}

# The size in pixels of the page: a head with title, part of the study and subtitle, then the grid. Names that are too long to
# stand at the lines of narrow panels stand in the head instead, in rows.
scale = output_kind eq 'png' ? 2.0 : 1.0
name_pixels(s) = 8.6 * strlen(word(names, s)) + 34
names_in_head = columns > 1 && !categorical && label_width > 12 && !grouped
margin_first = 92.0
margin_left = 62.0
margin_right = names_in_head ? 26.0 : 22.0 + (categorical ? 8 : 8.6 * label_width)
panel_height = categorical ? 220.0 : rows == 1 ? 330.0 : 250.0
cell_width = margin_left + panel_width + margin_right
shift = margin_first - margin_left
width = larger(columns * cell_width + shift, larger(28 + 11.2 * strlen(title_text), 28 + 7.2 * larger(strlen(subtitle_text), strlen(part_text))))
array name_x[servers]
array name_row[servers]
name_rows = 0
if (names_in_head) {
    name_rows = 1
    at_x = 20.0
    do for [s = 1:servers] {
        if (s > 1 && at_x + name_pixels(s) > width) { at_x = 20.0; name_rows = name_rows + 1 }
        name_x[s] = at_x
        name_row[s] = name_rows
        at_x = at_x + name_pixels(s)
    }
}
head_lines = 1 + (part_text ne '' ? 1 : 0)
head = 46.0 + 20.0 * head_lines + 22.0 * name_rows
panel_head = panels_titled ? 34.0 : 0.0
foot = categorical ? 18.0 + 16.0 * name_lines : 56.0
cell_height = panel_head + panel_height + foot
height = head + rows * cell_height

if (output_kind eq 'svg') {
    set terminal svg size width,height noenhanced font 'sans-serif,14' background rgb paper linewidth 1
} else {
    set terminal pngcairo size scale * width,scale * height noenhanced font 'DejaVu Sans,10.5' fontscale scale \
        background rgb paper linewidth scale pointscale scale
}
set output output_file

set multiplot
set border 1 lc rgb soft lw 1
set tics nomirror scale 0.4 textcolor rgb ink
set grid ytics lt 1 lw 1 lc rgb grid_colour
set ytics scale 0
unset key
unset ylabel
set style fill solid 1.0 noborder

# Of many servers the others are thin lines behind those of a panel.
behind = grouped ? "context index p - 1 using 1:2 with lines lw 0.8 lc rgb grid_colour notitle," : ''
# What a report had is the last line of a panel.
beside = theirs ? "data index b + servers - 1 using 1:2 with lines lw 1.6 dt 2 lc rgb c(servers) notitle," : ''

do for [p = 1:panels] {
    column = (p - 1) % columns
    row = (p - 1) / columns
    set lmargin at screen (shift + column * cell_width + margin_left) / width
    set rmargin at screen (shift + column * cell_width + margin_left + panel_width) / width
    set tmargin at screen 1 - (head + row * cell_height + panel_head) / height
    set bmargin at screen 1 - (head + row * cell_height + panel_head + panel_height) / height
    unset label
    if (p == 1) {
        set label 1 title_text at screen 14 / width, screen 1 - 22 / height left font bold_of(18) textcolor rgb ink
        if (part_text ne '') { set label 5 part_text at screen 14 / width, screen 1 - 45 / height left font font_of(13) textcolor rgb ink }
        set label 2 subtitle_text at screen 14 / width, screen 1 - (25.0 + 20 * head_lines) / height left font font_of(13) textcolor rgb soft
        if (names_in_head) {
            do for [s = 1:servers] {
                set label 10 + s word(names, s) at screen name_x[s] / width, screen 1 - (27.0 + 20 * head_lines + 22 * name_row[s]) / height \
                    left offset 1,0 textcolor rgb t(s) point pt full[shape(s)] ps 0.8 lc rgb c(s)
            }
        }
    }
    if (panel_title[p] ne '') { set label 3 panel_title[p] at graph 0, graph 1 offset 0,0.9 left font bold_of(14) textcolor rgb ink }
    set yrange [y_low[p]:y_high[p]]
    eval 'set ytics ('.y_tics[p].')'
    set xlabel x_title textcolor rgb ink offset 0,0.2
    if (column == 0) {
        set label 4 y_title at screen (column * cell_width + 20) / width, graph 0.5 center rotate by 90 textcolor rgb ink
    }
    unset arrow
    if (kind eq 'ratio') { set arrow from graph 0, first 1 to graph 1, first 1 nohead lw 1.5 lc rgb ink }
    if (even[p] > 0) { set arrow from graph 0, first even[p] to graph 1, first even[p] nohead lw 1.5 dt 2 lc rgb soft }
    b = (p - 1) * servers

    # What hovering shows is drawn last, invisible, above everything; PNG knows no such thing and leaves it out.
    plot @behind range index p - 1 using 1:2:3 with filledcurves lc rgb '#d5777777' notitle, \
        for [s = 1:servers - theirs] data index b + s - 1 using 1:2 with lines lw 1.6 lc rgb c(s), \
        @beside \
        for [s = 1:servers] data index b + s - 1 using 1:3:(0):($4 - $3) with vectors nohead lw 2 lc rgb c(s) + 0x55000000, \
        for [s = 1:servers] data index b + s - 1 using 1:($5 == 0 ? $2 : NaN) with points pt full[shape(s)] ps 0.8 lc rgb c(s), \
        for [s = 1:servers] data index b + s - 1 using 1:($5 == 1 ? $2 : NaN) with points pt full[shape(s)] ps 0.85 lc rgb paper, \
        for [s = 1:servers] data index b + s - 1 using 1:($5 == 1 ? $2 : NaN) with points pt hollow[shape(s)] ps 0.85 lc rgb c(s), \
        labels index p - 1 using 1:(names_in_head ? NaN : $2):4:(t($3)) with labels left offset 0.4,0 tc rgb variable, \
        for [s = 1:servers] data index b + s - 1 using 1:2:6 with labels hypertext point pt 7 ps 1.6 lc rgb '#feffffff'
}
unset multiplot
unset output
