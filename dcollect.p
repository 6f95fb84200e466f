# dcollect.p: draws one figure of a study. collect/present/gnuplot.py calls it.
#
# usage:    gnuplot -e "parameters='NAME.gp'; output_kind='svg'; output_file='NAME.svg'" dcollect.p
#
# output_kind is svg (for pages), png (for the README, at twice the size) or txt (for the terminal).
# collect/present/chart.py writes parameters and data, with the place and size of everything in them:
# form 'lines' is a grid of panels over one x axis, form 'rows' is rows of dots or bars over one axis.
# A point is hollow where the load generator is the limit.

set encoding utf8
load parameters

ink = '#222222'
soft = '#555555'
grid_colour = '#dddddd'
paper = '#ffffff'
font_of(size) = output_kind eq 'svg' ? sprintf('sans-serif,%d', size) : sprintf('DejaVu Sans,%g', size * 0.75)
bold_of(size) = output_kind eq 'svg' ? sprintf('sans-serif:Bold,%d', size) : sprintf('DejaVu Sans:Bold,%g', size * 0.75)
known(value) = value == value

# The terminal has one panel, with letters for marks. Rows are printed without gnuplot.
if (output_kind eq 'txt') {
    set terminal dumb noenhanced size (columns_of_terminal < 60 ? 60 : columns_of_terminal > 110 ? 110 : columns_of_terminal), 24
    set output output_file
    set title title_text.(part_text eq '' ? '' : ', '.part_text).(panel_title[1] eq '' ? '' : ', '.panel_title[1]).(y_title eq '' ? '' : ', '.y_title)
    set xlabel x_title
    if (x_log) { set logscale x }
    if (y_log[1]) { set logscale y }
    set xrange [x_low:x_high]
    set yrange [y_low[1]:y_high[1]]
    eval 'set xtics ('.x_tics.')'
    eval 'set ytics ('.y_tics[1].')'
    set key outside below horizontal reverse Left samplen 1
    set tics nomirror
    set border 3
    letter(s) = substr('ABCDEFGHIJKLMNOPQRSTUVWXYZ', s, s)
    plot for [s = series_from[1]:series_to[1]] data index s - 1 using 1:2 with lines lt 0 notitle, \
        for [s = series_from[1]:series_to[1]] data index s - 1 using 1:2 with points pt letter(s) title series_name[s]
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
unset key
set border 1 lc rgb soft lw 1
set tics nomirror scale 0.4 textcolor rgb ink
set ytics scale 0
set style fill solid 1.0 noborder
if (x_log) { set logscale x }
set xrange [x_low:x_high]
eval 'set xtics ('.x_tics.')'
set xlabel x_title textcolor rgb ink offset 0,0.2
down(pixels) = 1 - pixels / (1.0 * height)

set label 1 title_text at screen 14.0 / width, screen down(22) left font bold_of(18) textcolor rgb ink
if (part_text ne '') { set label 2 part_text at screen 14.0 / width, screen down(part_top + 8) left font font_of(13) textcolor rgb ink }
set label 3 subtitle_text at screen 14.0 / width, screen down(subtitle_top + 8) left font font_of(13) textcolor rgb soft

# The legend: a mark with its words, on a piece of a line where it stands for one. gnuplot raises the words beside a point.
do for [i = 1:keys] {
    if (key_mark[i] > 0) {
        set label 10 + i key_text[i] at screen key_x[i] / width, screen down(key_y[i]) left offset 1 + 0.7 * key_line[i],-0.3 \
            textcolor rgb key_ink[i] point pt key_mark[i] ps 0.8 lc rgb key_colour[i]
    } else {
        set label 10 + i key_text[i] at screen key_x[i] / width, screen down(key_y[i]) left offset 1.7,0 textcolor rgb key_ink[i]
    }
}

if (form eq 'rows') {
    set lmargin at screen rows_left
    set rmargin at screen rows_right
    set tmargin at screen rows_top
    set bmargin at screen rows_bottom
    set yrange [rows_high:0]
    set grid xtics lt 1 lw 1 lc rgb grid_colour
    unset ytics
    do for [i = 1:rows] {
        if (names_above) {
            set label 100 + i row_name[i] at screen 14.0 / width, first row_at[i] left textcolor rgb ink
        } else { set label 100 + i row_name[i] at screen rows_left - 8.0 / width, first row_at[i] right textcolor rgb ink }
    }
    do for [i = 1:headings] {
        set label 1000 + i heading[i] at screen 14.0 / width, first heading_at[i] left font bold_of(14) textcolor rgb ink
    }
    if (known(line_at)) { set arrow from first line_at, graph 0 to first line_at, graph 1 nohead lw 1.5 lc rgb ink }
    # Bars first, then intervals (on bars with a rim, so that they are seen), then marks and numbers.
    # Parts of a stack reach from low to value, and have no interval.
    plot data using (bars ? $1 : NaN):2:(stacked ? $3 : 0):1:($2 - 0.34):($2 + 0.34):7 with boxxyerror lc rgb variable, \
        data using (bars && !stacked ? $3 : NaN):2:($4 - $3):(0) with vectors nohead lw 4 lc rgb paper, \
        data using (stacked ? NaN : $3):2:($4 - $3):(0):(bars ? 0x555555 : int($7)) with vectors nohead lw 2 lc rgb variable, \
        data using (!bars && $5 == 0 ? $1 : NaN):2:8:7 with points pt variable ps 0.8 lc rgb variable, \
        data using (!bars && $5 == 1 ? $1 : NaN):2:8 with points pt variable ps 0.85 lc rgb paper, \
        data using (!bars && $5 == 1 ? $1 : NaN):2:($8 - 1):7 with points pt variable ps 0.85 lc rgb variable, \
        data using 10:2:9 with labels left offset 0.8,0 font font_of(13) textcolor rgb ink, \
        labels using 1:2:3 with labels left offset 1,0 font font_of(13) textcolor rgb soft, \
        data using 1:2:6 with labels hypertext point pt 7 ps 1.6 lc rgb '#feffffff'
    unset output
    exit
}

set multiplot
set grid ytics lt 1 lw 1 lc rgb grid_colour
do for [p = 1:panels] {
    set lmargin at screen panel_left[p]
    set rmargin at screen panel_left[p] + panel_wide
    set tmargin at screen panel_top[p]
    set bmargin at screen panel_top[p] - panel_high
    if (p == 2) {
        unset label 1
        unset label 2
        unset label 3
        do for [i = 1:keys] { unset label 10 + i }
    }
    set label 4 panel_title[p] at graph 0, screen panel_top[p] + 1.0 * panel_title_up[p] / height left \
         font bold_of(14) textcolor rgb ink
    if (y_title_above) {
        set label 5 y_title at screen 14.0 / width, screen panel_top[p] + 14.0 / height left font font_of(13) textcolor rgb soft
    } else { if ((p - 1) % columns == 0) {
        set label 5 y_title at screen panel_left[p] - y_title_left / width, graph 0.5 center rotate by 90 textcolor rgb ink
    } else { unset label 5 } }
    if (y_log[p]) { set logscale y } else { unset logscale y }
    set yrange [y_low[p]:y_high[p]]
    eval 'set ytics ('.y_tics[p].')'
    unset arrow
    if (p == 1) {
        do for [i = 1:keys] {
            if (key_line[i]) {
                set arrow from screen (key_x[i] - 10) / width, screen down(key_y[i]) to screen (key_x[i] + 10) / width, \
                    screen down(key_y[i]) nohead lw 1.6 dt key_dashed[i] + 1 lc rgb key_colour[i]
            }
        }
    }
    if (known(ratio_line)) { set arrow from graph 0, first ratio_line to graph 1, first ratio_line nohead lw 1.5 lc rgb ink }
    if (known(line_at[p])) { set arrow from graph 0, first line_at[p] to graph 1, first line_at[p] nohead lw 1.5 dt 2 lc rgb soft }
    a = series_from[p]
    b = series_to[p]

    # The values under the mouse are drawn last, invisible, above everything; PNG leaves them out.
    plot bands index p - 1 using 1:2:3 with filledcurves lc rgb '#d5777777', \
        for [s = a:b] data index s - 1 using 1:(joined[s] ? $2 : NaN) with lines lw 1.6 dt dashed[s] + 1 lc rgb colour[s], \
        labels index p - 1 using 5:6:($1 - $5):($2 - $6) with vectors nohead lw 0.7 lc rgb soft, \
        for [s = a:b] data index s - 1 using 1:3:(0):($4 - $3) with vectors nohead lw 2 lc rgb colour[s] + 0x55000000, \
        for [s = a:b] data index s - 1 using 1:(marked[s] && $5 == 0 ? $2 : NaN) with points pt mark[s] ps 0.75 lc rgb colour[s], \
        for [s = a:b] data index s - 1 using 1:(marked[s] && $5 == 1 ? $2 : NaN) with points pt mark[s] ps 0.8 lc rgb paper, \
        for [s = a:b] data index s - 1 using 1:(marked[s] && $5 == 1 ? $2 : NaN) with points pt mark[s] - 1 ps 0.8 lc rgb colour[s], \
        labels index p - 1 using 1:2:4:3 with labels left offset 0.4,0 tc rgb variable, \
        for [s = a:b] data index s - 1 using 1:2:6 with labels hypertext point pt 7 ps 1.6 lc rgb '#feffffff'
}
unset multiplot
unset output
