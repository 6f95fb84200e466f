#!/usr/bin/perl
# report.t: figures, claims and report of a study, from invented runs whose truth is known.
#
# usage:    prove tests/report.t
use strict;
use warnings;
use Test::More;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);

my $here = dirname(__FILE__);
my $collect = "$here/../collect";
my $work = tempdir(CLEANUP => 1);

for my $program (qw(gnuplot cmark-gfm)) {
    plan skip_all => "$program is not installed" if system "command -v $program >$work/null 2>&1";
}

sub content {
    my $path = shift;
    open my $file, '<', $path or return "no $path";
    local $/;
    return scalar <$file>;
}

sub table {
    my ($head, @lines) = split /\n/, content(shift);
    my @names = split /\t/, $head;
    return map { my %row; @row{@names} = split /\t/; \%row } @lines;
}

sub stages {
    my ($folder, @names) = @_;
    for my $stage (@names) {
        my $said = qx('$collect/$stage.sh' '$folder' 2>&1);
        is("$? $said", '0 ', "$stage.sh is content and silent");
    }
}

sub invented {
    my ($name, @options) = @_;
    my $folder = "$work/$name";
    system("$here/synthetic.pl", @options, $folder) == 0 or die 'no synthetic data';
    return $folder;
}

sub verdict {
    my ($folder, $claim) = @_;
    my ($row) = grep { $_->{claim} eq $claim && $_->{part} eq 'all' } table("$folder/claims.tsv");
    return $row ? $row->{verdict} : 'nothing';
}

# --- a whole report ---

my $folder = invented('main', '--blocks', 6, '--concurrency', 6, '--invalid', 2);
stages($folder, qw(summary compare figures report));
my @figures = table_of_figures($folder);
is(join(' ', sort map { $_->[0] } @figures), join(' ', sort map { my $file = $_;
    map { "$file-$_" } qw(requests requests-fork requests-thread cpu time ratio memory) } qw(small big)), 'the figures of the contract');
for my $figure (@figures) {
    my $svg = content("$folder/figures/$figure->[0].svg");
    ok($svg =~ /<\/svg>\s*$/ && $svg =~ /class="value"><title>(fork|thread)/, "$figure->[0].svg is whole, and says its values");
    is(substr(content("$folder/figures/$figure->[0].png"), 1, 3), 'PNG', "$figure->[0].png");
}
sub table_of_figures { return map { [split /\t/] } split /\n/, content("$_[0]/figures/list.tsv") }

my $markdown = content("$folder/report.md");
like($markdown, qr/^## $_$/m, "a section $_") for 'Abstract', 'Results', 'Claims', 'Threats to validity', 'Method', 'Machine', 'How to reproduce';
like($markdown, qr/\*\*thread\*\* answered 2\.\d+ times as many requests per second as fork/, 'the abstract has the answer');
like($markdown, qr/Invalid runs\*\*: 2 of 144/, 'invalid runs are counted');
like($markdown, qr/^\.\/dcollect\.sh --seed 1 fork-vs-thread$/m, 'the command that repeats it, with the seed');
is(() = $markdown =~ /\bnan\b|\binf\b/gi, 0, 'no number is broken');

my $page = content("$folder/index.html");
is(() = $page =~ /<svg/g, scalar @figures, 'every figure stands in the page');
is(() = $page =~ /(?:src|href)\s*=\s*["'](?!data:|#)/g, 0, 'the page loads nothing');
my %ids;
$ids{$_}++ for $page =~ /\sid=["']([^"']+)["']/g;
is(join(' ', grep { $ids{$_} > 1 } sort keys %ids), '', 'no id is used twice');

# Averages and ratio go together.
my @averages = $markdown =~ /as fork \(([\d,]+) against ([\d,]+), geometric means; ratio ([\d.]+),/;
s/,//g for @averages;
cmp_ok(abs($averages[0] / $averages[1] / $averages[2] - 1), '<', 0.01, 'the averages of the abstract have its ratio');
like($markdown, qr/\*\*What else ran\*\* on this machine meanwhile was not recorded\./, 'what else ran was not recorded');

# --- again: the same bytes ---

# A figure of another time does not stay.
system("cp '$folder/figures/small-cpu.svg' '$folder/figures/small-part9-cpu.svg'");

my %before = map { $_ => content("$folder/$_") } 'report.md', 'index.html', map { ("figures/$_->[0].svg", "figures/$_->[0].png") } @figures;
stages($folder, qw(summary compare figures report));
is(join(' ', grep { content("$folder/$_") ne $before{$_} } sort keys %before), '', 'built again, every file is the same');

ok(!-e "$folder/figures/small-part9-cpu.svg", 'figures that the study has no more are removed');

# --- what else ran ---

open my $machine, '>>', "$folder/machine.tsv" or die $!;
print $machine "others_percent\t1\nstolen_percent\t3\n";
close $machine;
stages($folder, 'report');
like(content("$folder/report.md"), qr/\*\*What else ran\*\*: other programs had 1% of the processors meanwhile\.\n/, 'little else ran');
like(content("$folder/report.md"), qr/\*\*A shared host\*\*: 3%/, 'the host is shared');
open $machine, '>>', "$folder/machine.tsv" or die $!;
print $machine "others_percent\t40\n";
close $machine;
stages($folder, 'report');
like(content("$folder/report.md"), qr/other programs had 40% of the processors meanwhile: \*\*the machine was not left to the study/, 'much else ran');

# --- the terminal ---

my $drawing = qx(COLUMNS=80 '$collect/figures.sh' '$folder' terminal);
like($drawing, qr/Requests per second, small\.txt/, 'the main figure in the terminal');
cmp_ok((sort { $b <=> $a } map { length } split /\n/, $drawing)[0], '<=', 80, 'fits into it');

# --- sentences and verdicts follow the data ---

# In the invented data a thread answers 2.3 times as many requests as a process; divided by 2.3 there is no difference.
my $even = invented('even', '--blocks', 12, '--concurrency', 8, '--slow', 1 / (30000 / 13000));
stages($even, qw(summary compare figures report));
like(content("$even/report.md"), qr/no difference in requests per second between \*\*thread\*\* and fork is shown/, 'the abstract sees no difference where there is none');

my @expected = (
    [['--kind', 'table1'], 'R1.1', 'does not hold', 'far ahead is not slightly ahead'],
    [['--kind', 'table1', '--slow', 13 / 30 * 1.08], 'R1.1', 'holds', 'ahead by 8%'],
    [['--kind', 'table1', '--blocks', 3, '--slow', 13 / 30 * 1.01], 'R1.1', 'cannot tell', 'ahead by 1%, three blocks'],
    [['--kind', 'processors'], 'R1.4', 'does not hold', 'threads ahead on one processor, too'],
    [['--kind', 'requests'], 'R2.2', 'holds', 'start-up cost'],
    [['--kind', 'mistakes', '--blocks', 8], 'R2.1', 'holds', 'a backlog of 5'],
    [['--kind', 'mistakes', '--blocks', 8], 'R1.5', 'holds', 'threads that nobody joins'],
    [['--kind', 'mistakes', '--blocks', 8], 'R3.4', 'holds', 'two writes'],
    [['--kind', 'persistent', '--blocks', 8], 'R3.4', 'holds', 'slow at five calls'],
    [['--kind', 'persistent', '--blocks', 8], 'R3.3', 'does not hold', 'fork is not ahead of apache at two calls'],
    [['--kind', 'proxy', '--blocks', 8], 'R2.1', 'does not hold', 'no service collapses'],
    [['--kind', 'classroom-proxy', '--blocks', 8], 'R2.1', 'holds', 'all services collapse'],
    [['--kind', 'proxy', '--blocks', 8], 'R2.3', 'does not hold', 'the proxy is slower than the server behind it'],
    [['--kind', 'classroom-proxy', '--blocks', 8], 'R2.3', 'holds', 'the proxy is faster than the server behind it'],
    [['--kind', 'download', '--blocks', 8], 'R2.4', 'does not hold', 'five at once are no faster'],
    [['--kind', 'classroom-download', '--blocks', 8], 'R2.4', 'holds', 'five at once are faster'],
    [['--kind', 'download', '--blocks', 8], 'R2.5', 'does not hold', 'keep-alive is faster'],
    [['--kind', 'classroom-download', '--blocks', 8], 'R2.5', 'holds', 'keep-alive is slower'],
    [['--blocks', 12], 'R1.3', 'does not hold', 'thread is ahead everywhere'],
    [['--blocks', 12], 'R1.5', 'does not hold', 'nothing grows, slows down or fails'],
    [['--kind', 'same-server', '--concurrency', 10], 'A/A', 'holds', 'a server against itself'],
    [['--kind', 'same-server', '--concurrency', 10, '--slow', 0.96], 'A/A', 'does not hold', 'a server against itself, slowed down'],
);
my %made;
for my $case (@expected) {
    my ($options, $claim, $verdict, $name) = @$case;
    my $key = join ' ', @$options;
    if (!$made{$key}) {
        $made{$key} = invented('case' . keys %made, @$options);
        system("'$collect/claims.sh' '$made{$key}'");
    }
    is(verdict($made{$key}, $claim), $verdict, "$claim: $name: $verdict");
}

sub cause {
    my ($key, $claim) = @_;
    my ($row) = grep { $_->{claim} eq $claim && $_->{part} eq 'cause' } table("$made{$key}/claims.tsv");
    return $row ? $row->{verdict} : 'nothing';
}
is(cause('--kind mistakes --blocks 8', 'R2.1'), 'holds', 'R2.1: its supposed cause has a verdict of its own');
is(cause('--kind requests', 'R2.2'), 'does not hold', 'R2.2 holds, but not for its supposed cause');
is(cause('--kind proxy --blocks 8', 'R2.3'), 'holds', 'R2.3: not faster than the server, but faster for its cache');
is(cause('--kind mistakes --blocks 8', 'R3.4'), 'nothing', 'R3.4: there only the cause was tested');

# The whole machine slows down within each block: that is not held against the threads.
my $tired = invented('tired', '--blocks', 12);
my ($head, @runs) = split /^/, content("$tired/runs.tsv");
my ($order, $rps) = grep { (split /\t/, $head)[$_] =~ /^(order|rps)$/ } 0 .. 35;
open my $slower, '>', "$tired/runs.tsv" or die $!;
print $slower $head, map { my @row = split /\t/; $row[$rps] = sprintf '%.2f', $row[$rps] * (1 - 0.3 * $row[$order] / 120); join "\t", @row } @runs;
close $slower;
system("'$collect/claims.sh' '$tired'");
is(verdict($tired, 'R1.5'), 'does not hold', 'R1.5: what happens to both is not held against one');

my $unknown = invented('unknown', '--blocks', 2, '--concurrency', 2);
open my $study, '>>', "$unknown/study.txt" or die $!;
print $study "claims: R9.9\n";
close $study;
system("'$collect/claims.sh' '$unknown'");
is(verdict($unknown, 'R9.9'), 'cannot tell', 'a claim without a test: cannot tell');

# --- studies of other shapes draw and report without a word ---

for my $kind (qw(table1 processors requests persistent mistakes download)) {
    my $other = invented("shape-$kind", '--kind', $kind, '--blocks', 3);
    stages($other, qw(summary compare figures report));
}

# --- what a report had stands beside what is measured here ---

my $proxy = invented('proxy', '--kind', 'proxy', '--blocks', 3);
open $machine, '>>', "$proxy/machine.tsv" or die $!;
print $machine "link\t20mbit by tbf\n";
close $machine;
stages($proxy, qw(summary compare figures report));
$markdown = content("$proxy/report.md");
like($markdown, qr/^\| where \| concurrency \| report \| fork \| thread \|$/m, 'theirs: a table');
like($markdown, qr/^\| \/125, proxy hit \| 7 \| 11\.7 \(0\.0442\) \| [\d,]+ \([\d.]+\) \| [\d,]+ \([\d.]+\) \|$/m, 'theirs: a row, with what it is of the first one');
unlike($markdown, qr/^\| \/125, (?:service sized|proxy revalidation) \| \d+ \| [\d.]+ \(/m, 'theirs: not where their conditions are not met');
my $drawn = content("$proxy/figures/125-requests.svg");
is(() = $drawn =~ /<title>report, concurrency \d+: [\d.]+ requests\/s/g, 3, 'theirs: a point for each, in one panel');
like($drawn, qr/stroke-dasharray/, 'theirs: dashed');
unlike(content("$proxy/figures/150-requests.svg"), qr/report/, 'theirs: not in the figure of another file');
like($markdown, qr/Dashed: the report\. Logarithmic axis\./, 'theirs: the figure says so');
like($markdown, qr/the origin was asked for none of the requests of a hit/, 'the method says what a hit is');
like($markdown, qr/over a link between two network namespaces: 20mbit by tbf\./, 'the method says which link it was');
unlike(content("$folder/report.md"), qr/origin|network namespace|Dashed/, 'other studies say none of that');

$markdown = content("$work/shape-table1/report.md");
like($markdown, qr/^\| small\.txt \| thread \| report \| 2\.146 \|(?:  \|){5} 7 \|$/m, 'theirs: a table of times');
like($markdown, qr/^\| small\.txt \| thread \| here \|(?: \d+\.\d{3} \|){7}$/m, 'theirs: beside the times of this machine');
unlike($markdown, qr/^\| big\.txt \| \w+ \| (?:report|here)/m, 'theirs: not where nothing is known');

# A load generator that knows no percentiles: the mean stands for them, and no panel is empty.
my $bare = invented('bare', '--kind', 'mistakes', '--blocks', 3);
($head, @runs) = split /^/, content("$bare/runs.tsv");
my @unknown = grep { (split /\t/, $head)[$_] =~ /^p(50|90|95|99)_ms$/ } 0 .. 35;
open my $rows, '>', "$bare/runs.tsv" or die $!;
print $rows $head, map { my @row = split /\t/; $row[$_] = '-' for @unknown; join "\t", @row } @runs;
close $rows;
stages($bare, qw(summary compare figures report));
for my $figure (grep { $_->[1] eq 'time' } table_of_figures($bare)) {
    like($figure->[3], qr/Mean of each run/, "$figure->[0]: says that it shows the mean");
    unlike(content("$bare/figures/$figure->[0].svg"), qr/percentile|median/, "$figure->[0]: has no empty panels");
}

# An interval that is wider than places after the point can show.
open my $program, '>', "$work/wide.awk" or die $!;
print $program 'BEGIN { print estimate_text(0.51, 2.2e-8, 11761500); print estimate_text(1.63, 1.61, 1.65) }';
close $program;
is(qx(awk -f '$collect/text.awk' -f '$work/wide.awk'), "0.51 (2.2e-08 to 11,761,500)\n1.63 (1.61 to 1.65)\n", 'intervals, wide and narrow');

# A single run: nothing can be compared, and the report says so.
my $single = invented('single', '--blocks', 1, '--concurrency', 1);
stages($single, qw(summary compare figures report));
like(content("$single/report.md"), qr/too few valid runs/, 'one block: no comparison, and the abstract says so');

# --- the page in a browser ---

SKIP: {
    my ($browser) = grep { !system "command -v $_ >$work/null 2>&1" } qw(chromium chromium-browser google-chrome);
    skip 'chromium is not installed', 4 unless $browser;
    # A copy that moves a pointer over a point of each figure and writes down what it sees.
    my $probe = <<'END';
<script>
addEventListener('load', function () {
    var shown = 0, sized = 0, told = [];
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
    document.querySelectorAll('figure svg').forEach(function (svg) {
        var box = svg.getBoundingClientRect();
        if (box.width > 200 && box.height > 100) sized++;
        svg.scrollIntoView();
        var point = svg.querySelector('.value use').getBoundingClientRect();
        svg.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: point.left + point.width / 2, clientY: point.top + point.height / 2 }));
        var tip = document.getElementById('tip');
        if (getComputedStyle(tip).visibility === 'visible') shown++;
        told.push(tip.textContent);
    });
    document.title = 'sized ' + sized + ' shown ' + shown + ' overflow ' + (document.documentElement.scrollWidth > innerWidth) + ' told ' + told[0];
});
</script>
END
    open my $copy, '>', "$work/probe.html" or die $!;
    (my $probed = $page) =~ s/<\/body>/$probe<\/body>/;
    print $copy $probed;
    close $copy;
    my $seen = qx($browser --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --user-data-dir='$work/profile' --window-size=500,900 --enable-logging=stderr --v=0 --dump-dom 'file://$work/probe.html' 2>'$work/console');
    my ($title) = $seen =~ /<title>(sized [^<]*)<\/title>/;
    $title //= 'nothing';
    is(join('', grep { /CONSOLE/ } split /^/, content("$work/console")), '', 'no word on the console');
    like($title, qr/sized @{[scalar @figures]} /, 'every figure is visible');
    like($title, qr/shown @{[scalar @figures]} .*told (fork|thread), concurrency \d+: [\d,]+ ± [\d.,]+ requests\/s/, 'hovering shows values in every figure');
    like($title, qr/overflow false/, 'the page is not wider than a narrow window');
}

done_testing;
