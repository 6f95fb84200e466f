#!/usr/bin/perl
# report.t: figures, claims and report of a study, from invented runs whose truth is known.
#
# usage:    prove tests/report.t
use strict;
use warnings;
use Test::More;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use FindBin;
use lib "$FindBin::Bin/lib";
use Study;

my $here = dirname(__FILE__);
my $collect = "$here/../collect";
my $work = tempdir(CLEANUP => 1);
$ENV{LC_ALL} = 'C';    # as the programs of the study do: awk writes numbers as the locale does

for my $program (qw(gnuplot cmark-gfm)) {
    plan skip_all => "$program is not installed" if system "command -v $program >$work/null 2>&1";
}

sub content {
    my $path = shift;
    open my $file, '<', $path or return "no $path";
    local $/;
    return scalar <$file>;
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
    (map { [['--kind', 'protocols', '--blocks', 9], @$_] } ['R3.1', 'holds', 'simple ahead of apache'], ['R3.2', 'holds', 'nothing to gain with one call'],
        ['R3.3', 'holds', 'persistent ahead of apache'], ['R3.4', 'does not hold', 'nor slow at five calls'], ['R3.5', 'holds', 'a thread for each connection']),
    (map { [['--kind', 'protocols', '--blocks', 9, '--first', 3], @$_] } ['R3.1', 'holds', 'three blocks with many connections'],
        ['R3.2', 'cannot tell', 'three blocks with many connections decide nothing so small']),
    (map { [['--kind', 'https', '--blocks', 9], @$_] } ['R4.1', 'holds', '15 times'], ['R4.2', 'holds', 'as many requests as one likes'],
        ['TLS.1', 'holds', 'the event loop takes less than nginx'], ['TLS.2', 'holds', 'the thread little more'], ['TLS.3', 'holds', 'resumed, P-256, RSA']),
    (map { [['--kind', 'udp', '--blocks', 9], @$_] } ['U1', 'holds', 'UDP takes less'], ['U2', 'does not hold', 'some is lost']),
    [['--kind', 'udp', '--blocks', 4, '--slow', 0.1], 'U1', 'holds', 'of two slow ways, one is less so'],
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

# Each number of connections has a part of its own, and that says of how many blocks it is.
sub parts_of {
    my ($key, $claim) = @_;
    return join '; ', map { ($_->{tested} =~ /([\d,]+ connections)/ ? $1 : 'all') . " $_->{blocks}" }
        grep { $_->{claim} eq $claim && $_->{part} =~ /^\d/ } table("$made{$key}/claims.tsv");
}
is(parts_of('--kind protocols --blocks 9 --first 3', $_), '10,000 connections 9; 100,000 connections 3', "$_: 10,000 connections and 100,000") for qw(R3.1 R3.2 R3.3 R3.4);
is(parts_of('--kind https --blocks 9', 'R4.1'), '10,000 connections 9; 10,000 connections 9', 'R4.1: of those that were asked by HTTPS with that key');

sub cause {
    my ($key, $claim) = @_;
    my ($row) = grep { $_->{claim} eq $claim && $_->{part} eq 'cause' } table("$made{$key}/claims.tsv");
    return $row ? $row->{verdict} : 'nothing';
}
is(cause('--kind mistakes --blocks 8', 'R2.1'), 'holds', 'R2.1: its supposed cause has a verdict of its own');
is(cause('--kind requests', 'R2.2'), 'does not hold', 'R2.2 holds, but not for its supposed cause');
is(cause('--kind protocols --blocks 9', 'R3.5'), 'holds', 'R3.5: it is the thread, and not the protocol');
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

# --- the page of all claims, from published runs whose verdicts are known ---

my %published = (
    # others_percent (- where not recorded), load average, then of each claim: id, kind, verdict of the whole, of the cause, found
    'fork-vs-thread' => [0, 0.5, ['R1.2', 'claim', 'holds', '', '1.90 (1.76 to 2.05)'], ['R1.3', 'claim', 'cannot tell', '', '1.01 (0.9 to 1.2)'],
        ['R1.5', 'claim', 'does not hold', '', '0.50 (0.40 to 0.60)']],
    table1 => [40, 0.5, ['R1.1', 'claim', 'does not hold', '', '0.50 (0.40 to 0.60)']],
    mistakes => ['-', 5.5, ['R2.1', 'claim', 'does not hold', 'holds', '0.99 (0.98 to 1.02)'], ['R3.4', 'reading', 'does not hold', '', '1.00 (0.99 to 1.01)'],
        ['R1.5', 'reading', 'holds', '', '5.56 (3.77 to 8.21)']],
    sized => [1, 0.5, ['R2.1', 'claim', 'holds', '', '0.10 (0.09 to 0.11)']],
    'a-study' => [0, 0, ['X.1', 'claim', 'holds', '', '3 <of> 4 | "all" & more']],
);

sub row { return join("\t", @_) . "\n" }

sub publish {
    my ($folder, $name) = @_;
    my ($others, $load, @claims) = @{$published{$name}};
    mkdir "$folder/$name" or die $!;
    my $claims = row(qw(claim source quote part kind tested found low high verdict));
    for my $claim (@claims) {
        my ($id, $kind, $verdict, $cause, $found) = @$claim;
        my ($low, $high) = $found =~ /\(([\d.]+) to ([\d.]+)\)/;
        my @head = ($id, 'a source', "the words of $id");
        $claims .= row(@head, 'all', $kind, 'all parts are needed', '', '-', '-', $verdict);
        $claims .= row(@head, 'cause', 'reading', 'the supposed cause', '', '-', '-', $cause) if $cause;
        $claims .= row(@head, 1, $kind, "this / that of $name: ratio above 1", $found, $low // '-', $high // '-', $verdict);
        $claims .= row(@head, 2, 'reading', "why of $name: ratio below 0.5", '0.15 (0.12 to 0.18)', 0.12, 0.18, $cause) if $cause;
    }
    my %files = (
        'claims.tsv' => $claims,
        'study.txt' => "title: The study $name\n",
        'report.md' => "# The study $name\n\n## Claims\n",
        'index.html' => '<h2 id="claims">Claims</h2>',
        'threats.tsv' => row(qw(name subject value low high of)) . row('planned', '-', 10, '-', '-', 12) . row('invalid', '-', 0, '-', '-', 10) . row('others', '-', $others, '-', '-', 100),
        'machine.tsv' => row(command => "./dcollect.sh --seed 1 $name") . row(processors => 2) . row(processor_model => 'A & B') . row(load_average => "$load 1 1") . row(started => '2026-01-02 03:04:05 UTC'),
    );
    for my $file (keys %files) {
        open my $out, '>', "$folder/$name/$file" or die $!;
        print $out $files{$file};
        close $out;
    }
}

# What the page says of a claim.
sub section {
    my ($text, $id) = @_;
    my ($found) = $text =~ /^(### <a id="\Q$id\E"><\/a>.*?)(?=^##|\z)/ms;
    return $found // "nothing of $id";
}

my $reports = "$work/reports";
mkdir $reports;
publish($reports, $_) for sort keys %published;
my $said = qx('$collect/overview.sh' '$reports' 2>&1);
is("$? $said", '0 ', 'overview.sh is content and silent');
my %views = map { $_ => content("$reports/claims.$_") } qw(md html);

my @four = ((map { "R1.$_" } 1 .. 6), (map { "R2.$_" } 1 .. 5), (map { "R3.$_" } 1 .. 6), 'R4.1', 'R4.2');
my %studies = map { my $file = $_; ($file =~ s{.*/}{}r => [map { /^claims:\s*(.*)/ ? split /[\s,]+/, $1 : () } split /\n/, content($file)]) } glob "$here/../studies/*";
my @all = (@four, 'X.1', grep { $_ ne 'none' } map { @$_ } values %studies);
is(join(' ', grep { my $id = $_; grep { !/<a id="\Q$id\E"><\/a>/ } values %views } @all), '', 'every claim stands there, measured or not');
my @ids = $views{html} =~ /\sid="([^"]+)"/g;
my %id_count;
$id_count{$_}++ for @ids;
is(join(' ', grep { $id_count{$_} > 1 } sort keys %id_count), '', 'each once');
for my $view (sort keys %views) {
    my @links = $view eq 'md' ? $views{md} =~ /\]\(([^)]+)\)/g : $views{html} =~ /(?:href|src)="([^"]+)"/g;
    cmp_ok(scalar @links, '>', 30, "claims.$view leads somewhere");
    is(join(' ', grep { !/^data:/ && (/^#(.*)/ ? !$id_count{$1} : !-e $reports . '/' . s/#.*//r) } @links), '', 'and everything that it leads to is there');
}

for my $case (
    ['R1.1', qr/✗ does not hold.*2\.146 ms threaded against 2\.341 ms.*\[The study table1\]\(table1\/report\.md#claims\), 2026-01-02.*\| 0\.50 \(0\.40 to 0\.60\) \| ✗ does not hold \|.*\*\*Caution\*\*: unfinished, 10 of 12 planned runs; other programs had 40%/s, 'its figures, ours, the link, and that the machine was busy'],
    ['R1.2', qr/✓ holds.*1\.90 \(1\.76 to 2\.05\).*Note: unfinished/s, 'holds'],
    ['R1.3', qr/\? cannot tell/, 'cannot tell'],
    ['R1.4', qr/– not measured yet.*Not measured yet: `\.\/dcollect\.sh processors` measures it\./s, 'not measured: the command'],
    ['R1.5', qr/\A[^\n]*✗ does not hold.*Supposed cause\*\*: \*\*✓ confirmed\*\*\. Threads that.*5\.56 \(3\.77 to 8\.21\).*load average 5\.5 on 2 processors/s, 'the cause comes from another study'],
    ['R2.1', qr/\A[^\n]*≠ studies differ.*mistakes[^\n]*✗ does not hold.*sized[^\n]*✓ holds.*Supposed cause\*\*: \*\*✓ confirmed.*0\.15 \(0\.12 to 0\.18\)/s, 'two studies that differ, and the cause'],
    ['R3.4', qr/\A[^\n]*– not measured yet.*✗ refuted.*\.\/dcollect\.sh persistent/s, 'the cause alone was tested, and is refuted'],
    ['R3.6', qr/§ answered by tests.*tests\/valgrind\.t.*tests\/validators\.t/s, 'answered by tests'],
    ['X.1', qr/the words of X\.1 \(a source\).*3 <of> 4 \\\| "all" & more/s, 'a claim that only its study knows'],
) {
    my ($id, $pattern, $name) = @$case;
    like(section($views{md}, $id), $pattern, "$id: $name");
}
unlike(section($views{md}, $_), qr/Caution/, "$_: nobody used the machine") for qw(R1.2 X.1);
unlike($views{html}, qr/3 <of>/, 'what a study says is text, not HTML');

my %counted;
for my $id (@four) { $counted{$1}++ if section($views{md}, $id) =~ /^### \S+ \S+ \*\*\S+ ([^*]+)\*\*/ }
is($counted{holds} . $counted{'does not hold'} . $counted{'cannot tell'} . $counted{'studies differ'} . $counted{'answered by tests'}, '12111', 'verdicts of each kind');
like($views{md}, qr/^Of 19 claims of four classroom reports \*\*1 holds\*\*, \*\*2 do not hold\*\*, \*\*1 divides the studies\*\*, \*\*1 is left open[^*]*\*\*, \*\*1 is no matter[^*]*\*\* and \*\*$counted{'not measured yet'} are not measured yet\*\*\. Of the 5 causes [^*]* \*\*2 are confirmed\*\*, \*\*1 is refuted\*\* and \*\*2 are not tested yet\*\*\.$/m, 'the abstract counts them');
like($views{md}, qr/\*\*Caution\*\*: of the 5 runs behind this page 2 were made on a machine that others used/, 'and warns of busy machines');
my @anchors = $views{md} =~ /<a id="([^"]+)">/g;
is(() = $views{html} =~ /class="chip /g, scalar @anchors, 'at a glance: all of them');
is(() = $views{html} =~ /<svg class="strip"/g, 9, 'an interval is drawn for each part that has one');
unlike($views{html}, qr/\bnan\b|\binf\b|="-?[\d.]*e[+-]/i, 'no number of a drawing is broken');
like(content("$reports/README.md"), qr/\(claims\.md\).*^## Not published yet\n\n.*^- `\.\/dcollect\.sh processors`: Does the answer change/ms, 'the overview leads to it, and lists what is not published');
unlike(content("$reports/README.md"), qr/^- `\.\/dcollect\.sh table1`/m, 'and not what is');
system("AWK=mawk '$collect/overview.sh' '$reports'") if system('command -v mawk >/dev/null') == 0;
is(join(' ', grep { content("$reports/claims.$_") ne $views{$_} } sort keys %views), '', 'made again, also by another awk, every byte is the same');

# Many parts: the browser shows those that decide, and unfolds the others.
open my $more, '>>', "$reports/sized/claims.tsv" or die $!;
print $more map { row('R2.1', 'a source', 'the words', $_, 'claim', "part $_: ratio below 0.5", '0.1 (0.09 to 0.7)', 0.09, 0.7, 'cannot tell') } 2 .. 9;
close $more;
system("'$collect/overview.sh' '$reports'");
like(content("$reports/claims.html"), qr/<summary>8 other parts; of all 9, 1 holds and 8 cannot tell<\/summary>/, 'many parts are folded');
is(() = content("$reports/claims.html") =~ /<svg class="strip"/g, 9 + 8, 'and none is left out');

# --- studies of other shapes draw and report without a word ---

for my $kind (qw(table1 processors requests persistent mistakes download protocols https udp)) {
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
