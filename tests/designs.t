#!/usr/bin/perl
# The study of all designs: the list of every server, figures of many servers, bars, averages, claims, requests per worker; and the
# overview that leads to the published studies.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $top     = "$FindBin::Bin/..";
my $scratch = scratch();

my @missing = grep { !command_exists($_) } qw(ab gnuplot datamash cmark-gfm);
if (@missing) {
    skip_case("not installed: @missing");
    done_testing;
    exit;
}

sub table ($path) {
    my ($head, @lines) = split /\n/, eval { slurp($path) } // '';
    my @names = split /\t/, $head // '';
    return map { my %row; @row{@names} = split /\t/, $_, -1; \%row } @lines;
}

sub stages ($folder, @names) {
    for my $stage (@names) {
        my $run = run_command("$top/collect/$stage.sh", $folder);
        is "$run->{status} $run->{out}$run->{err}", '0 ', "$stage.sh is content and silent";
    }
}

sub invented ($name, @options) {
    run_command("$top/tests/synthetic.pl", @options, "$scratch/$name");
    return "$scratch/$name";
}

sub verdict ($folder, $claim) {
    my ($row) = grep { $_->{claim} eq $claim && $_->{part} eq 'all' } table("$folder/claims.tsv");
    return $row ? $row->{verdict} : 'nothing';
}

# --- figures and report of many servers ------------------------------------------------------------------------------

my $folder = invented('designs', '--kind', 'designs', '--blocks', 5, '--concurrency', 6);
stages($folder, qw(summary compare figures report));
my @figures = map { [split /\t/] } split /\n/, slurp("$folder/figures/list.tsv");
is join(' ', map { $_->[0] } @figures), join(' ', map { "small-$_" } qw(bars requests cpu time-median time-p99 busiest ratio memory)),
    'bars, figures of groups, and none of each server alone';

my %panels = map { $_ => scalar(() = slurp("$folder/figures/small-$_.svg") =~ />(?:without a crew|bare models|other servers|\w+, by way to accept)</g) } qw(cpu busiest);
is_deeply \%panels, { cpu => 6, busiest => 3 }, 'a panel for each group, and none for those that have nothing to show';
my $bars = slurp("$folder/figures/small-bars.svg");
my @bars = $bars =~ /<title>(\S+): [\d.]+ \([\d.]+ to [\d.]+\) µs\/request</g;
is join(' ', sort @bars), join(' ', sort map { $_->{server} } grep { $_->{measure} eq 'rps' } table("$folder/averages.tsv")), 'a bar for each server';
is "@bars[0, -1]", 'floor-one fork', 'the cheapest first, the dearest last';

# The average of one server over its cells, from the runs.
my (%sum, %count);
for my $row (grep { $_->{server} eq 'thread' } table("$folder/runs.tsv")) {
    $sum{ $row->{block} } += log $row->{server_cpu_us};
    $count{ $row->{block} }++;
}
my @means = map { $sum{$_} / $count{$_} } sort keys %sum;
my $mean = 0;
$mean += $_ / @means for @means;
my $squares = 0;
$squares += ($_ - $mean)**2 for @means;
my $half = 2.776445105 * sqrt($squares / (@means - 1) / @means);    # qt(.975, 4)
my ($row) = grep { $_->{server} eq 'thread' && $_->{measure} eq 'server_cpu_us' } table("$folder/averages.tsv");
for my $case ([mean => $mean], [low => $mean - $half], [high => $mean + $half]) {
    cmp_ok abs($row->{ $case->[0] } / exp($case->[1]) - 1), '<', 1e-4, "averages.tsv: $case->[0], as recomputed from the runs";
}

my $report = slurp("$folder/report.md");
like $report, qr/\*\*iterative\*\* took the least server CPU time per request of our servers \(1[12]\.\d µs; 95% interval [\d.]+ to [\d.]+, from 5 blocks alone\) and \*\*fork\*\* the most \(1\d\d µs\); \*\*lighttpd\*\* took the least of the other servers/,
    'the abstract tells who is first and last';
like $report, qr/\| a fork per client \| fork \| 20\.90 \| 1\.000 \| 9\d\.\d \(/, 'the table of UNP';
like $report, qr/\| a thread per client \| thread \| 0\.99 \| 0\.047 \| 1[23]\.\d \([^|]+ \| 0\.1\d\d \|/, 'and what a thread costs beside it';
like $report, qr/could not be checked/, 'what could not be checked is marked';
is scalar(() = $report =~ /\bnan\b|\binf\b/gi), 0, 'no number is broken';
unlike $report, qr/Part 2/, 'it is one part';

is verdict($folder, $_), 'holds', "$_ holds in invented data that are made so" for qw(UNP.1 UNP.2 E07.1 CF.1);
my $drawing = run_command('env', 'COLUMNS=70', "$top/collect/figures.sh", $folder, 'terminal')->{out};
like $drawing, qr/^ +fork #+ 1\d\d\.\d$/m, 'the bars in the terminal';
cmp_ok((sort { $b <=> $a } map { length } split /\n/, $drawing)[0], '<=', 70, 'fit into it');

# --- the same with other data ------------------------------------------------------------------------------------------

# Changes a column of the runs whose server matches; gives a folder with the claims.
sub changed ($name, $pattern, $column, $change) {
    my $copy = "$scratch/$name";
    run_command('cp', '-r', $folder, $copy);
    my ($head, @runs) = split /^/, slurp("$folder/runs.tsv");
    chomp(my @names = split /\t/, $head);
    my ($at) = grep { $names[$_] eq $column } 0 .. $#names;
    spit("$copy/runs.tsv", join '', $head, map { my @row = split /\t/, $_, -1; $row[$at] = $change->($row[$at]) if $row[3] =~ $pattern; join "\t", @row } @runs);
    run_command("$top/collect/claims.sh", $copy);
    return $copy;
}
is verdict(changed('dear', qr/^pool\z/, 'server_cpu_us', sub ($v) { $v + 20 }), 'UNP.1'), 'does not hold', 'UNP.1: a dear pool';
is verdict(changed('fast', qr/^prefork.accept=pass/, 'server_cpu_us', sub ($v) { $v / 2 }), 'UNP.2'), 'does not hold', 'UNP.2: a cheap main thread';
my $bound = changed('bound', qr/./, 'load_cpu', sub ($) { '0.990' });
is verdict($bound, 'E07.1'), 'does not hold', 'E07.1: where the load generator is the limit, CPU time decides';
like slurp("$bound/claims.tsv"), qr/thread \/ epoll, server CPU per request.*in 6 of 6 requests\/s speaks of the load generator/, 'E07.1: and it is said';
is verdict(changed('even', qr/^epoll.accept=shared/, 'busiest', sub ($) { '0.5100' }), 'CF.1'), 'does not hold', 'CF.1: an even epoll';
is verdict(changed('unknown', qr/./, 'busiest', sub ($) { '-' }), 'CF.1'), 'cannot tell', 'CF.1: nobody counted';

# --- the overview -------------------------------------------------------------------------------------------------------

my $reports = "$scratch/report";
mkdir $reports;
rename $folder, "$reports/designs";
my $other = invented('mistakes', '--kind', 'mistakes', '--blocks', 3);
stages($other, qw(summary compare figures report));
rename $other, "$reports/mistakes";
my $readme = "before\n<!-- made: figure -->\nold\n<!-- /made -->\nbetween\n<!-- made: models -->\nold\n<!-- /made -->\nafter\n";
spit("$scratch/README.md", $readme);
$run = run_command("$top/collect/overview.sh", $reports, "$scratch/README.md");
is "$run->{status} $run->{err}", '0 ', 'overview.sh is content and silent';
my $page = slurp("$reports/index.html");
like $page, qr{<a href="$_/index\.html">}, "the overview leads to $_" for qw(designs mistakes);
like $page, qr{<img src="designs/figures/small-bars\.svg" alt="Server CPU}, 'and shows its main figure';
is scalar(grep { !-e "$reports/$_" } $page =~ /(?:src|href)="(?!data:|#)([^"#]*)/g), 0, 'whatever it leads to is there';
my $made = slurp("$scratch/README.md");
like $made, qr/\Abefore\n<!-- made: figure -->\n!\[Server CPU[^\n]*\]\(report\/designs\/figures\/small-bars\.png\)\n\nAveraged over /, 'README: the main figure and the answer';
like $made, qr/\n<!-- \/made -->\nbetween\n<!-- made: models -->\n\| server \| model /, 'README: what is not made stays';
like $made, qr/\n\| `fork_server` \| one process per connection \| 1\d\d \([^|]*\) \| 1\.000 \| [\d,]+ \| where a crash [^|]+ \| for many short connections[^|]+ \|\n/, 'README: a row of the table';
is scalar(() = $made =~ /^\| `\w+_server` /mg), scalar(() = glob "$top/*_server.c"), 'README: a row for each model';
like $made, qr/\n<!-- \/made -->\nafter\n\z/, 'README: to its end';
my %before = map { $_ => slurp($_) } "$reports/index.html", "$reports/README.md", "$scratch/README.md";
run_command("$top/collect/overview.sh", $reports, "$scratch/README.md");
is join(' ', grep { slurp($_) ne $before{$_} } sort keys %before), '', 'made again, every byte is the same';

# What is published here is what would be made.
my $published = "$scratch/published";
run_command('cp', '-r', "$top/report", $published);
run_command('cp', "$top/README.md", "$scratch/README.top");
run_command("$top/collect/overview.sh", $published, "$scratch/README.top");
ok slurp("$published/$_") eq (eval { slurp("$top/report/$_") } // 'nothing'), "report/$_ is that of the published reports" for qw(README.md claims.md);
ok -s "$published/$_/index.html", "report/$_ has its page" for map { m{([^/]+)/report\.md\z} } glob "$top/report/*/report.md";
is slurp("$scratch/README.top"), slurp("$top/README.md"), 'and so is the README';

done_testing;
