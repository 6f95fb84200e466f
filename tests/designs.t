#!/usr/bin/perl
# The study of all designs: the list of every server, figures of many servers, bars, averages, claims, requests per worker; and the
# overview that leads to the published studies.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Study;

my $top     = "$FindBin::Bin/..";
my $scratch = scratch();

my @missing = grep { !command_exists($_) } qw(ab gnuplot datamash cmark-gfm);
if (@missing) {
    skip_case("not installed: @missing");
    done_testing;
    exit;
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

# --- every server there is -----------------------------------------------------------------------------------------

sub expanded (@words) {
    my $run = run_command('bash', '-euc', 'project=$1; . "$1/collect/recipes.sh"; shift; recipe_expand "$@"', 'bash', $top, @words);
    return split ' ', $run->{out};
}

my @all = expanded(qw(iterative fork thread all));
is "@all[0 .. 2]", 'iterative fork thread', 'what is named before all comes first';
my %seen;
$seen{$_}++ for @all;
is join(' ', grep { $seen{$_} > 1 } sort keys %seen), '', 'nobody is named twice';
my @expected = qw(floor-fork floor-thread floor-one nginx lighttpd apache-prefork apache-worker apache-event);
for my $path (glob "$top/*_server.c") {
    my ($name) = $path =~ m{([^/]+)_server\.c\z};
    my (undef, @others) = @{ JSON::PP::decode_json(run_command("$top/${name}_server", '--describe')->{out})->{accept} };
    push @expected, $name, map { "$name+accept=$_" } @others;
}
is join(' ', sort @all), join(' ', sort @expected), 'all is every model, with each way to accept that it describes, each floor, each peer';
is join(' ', expanded(qw(fork nginx))), 'fork nginx', 'a list without it stays as it is';

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

# --- requests per worker, counted -------------------------------------------------------------------------------------

my $counted = "$scratch/counted";
my $run = run_command("$top/dcollect.sh", '--output', $counted, '--servers', 'fork,epoll+workers=3,prefork+workers=1', qw(--files small.txt --concurrency), '1,4', qw(
    --requests 60 --repetitions 2 --seed 4));
is $run->{status}, 0, 'a study with crews' or diag($run->{err});
for my $row (table("$counted/runs.tsv")) {
    my $name = "run $row->{run}, $row->{server}";
    if ($row->{server} eq 'fork') { is "$row->{workers} $row->{busiest}", '- -', "$name: it has no crew" }
    elsif ($row->{server} =~ /^prefork/) { is "$row->{workers} $row->{busiest}", '1 1.0000', "$name: one worker answers all" }
    else {
        is $row->{workers}, 3, "$name: its workers";
        ok $row->{busiest} =~ /\A\d\.\d{4}\z/ && $row->{busiest} >= 0.3333 && $row->{busiest} <= 1, "$name: the share of the busiest" or diag($row->{busiest});
    }
}

# --- how cost grows -----------------------------------------------------------------------------------------------------

my $held = "$scratch/held";
$run = run_command("$top/dcollect.sh", '--output', $held, '--servers', 'thread,epoll', '--idle', '20,60', qw(--requests 20 --repetitions 2 --seed 4 growth-memory));
is $run->{status}, 0, 'a study of idle connections' or diag($run->{err});
is scalar(grep { $_->{idle_kib} =~ /\A-?\d+\.\d{3}\z/ } table("$held/runs.tsv")), 8, 'each run tells the memory of an idle connection';
my @threads = grep { $_->{server} eq 'thread' } table("$held/summary.tsv");
is scalar(grep { $_->{idle_kib} > 4 && $_->{idle_kib} < 200 } @threads), 2, 'a thread takes some pages' or diag(map { "$_->{idle_kib} " } @threads);
like slurp("$held/report.md"), qr/^An idle connection takes this much memory, where the most of them were held: .*\*\*thread\*\* [\d.]+ KiB \(60 held\)/m, 'the abstract says so';
like slurp("$held/report.md"), qr/\A.*?^!\[Memory of an idle connection/ms, 'and shows it';
like $run->{out}, qr/^ *Memory of an idle connection$/m, 'as the terminal does';

# A server's memory is its own: that others run the same program, and share the pages of its file, does not change it.
sub started () {
    my $pid = open my $out, '-|', "$top/iterative_server", '--bind', '127.0.0.1', 0 or die "iterative_server: $!\n";
    readline $out;
    return [$pid, $out];
}
sub memory_of ($server) { return run_command("$top/collect/launch", 'memory', '--server', $server->[0])->{out} + 0 }

my @same = started();
my $alone = memory_of($same[0]);
push @same, started() for 1 .. 3;
cmp_ok $alone, '>', 0, 'memory of a server';
cmp_ok memory_of($same[0]), '>=', $alone, 'memory of a server: no less where others run the same program';
kill KILL => map { $_->[0] } @same;
close $_->[1] for @same;

$run = run_command("$top/collect/bench.sh", '--subjects', 'epoll,pool,floor-one', '--growth', '1,5', qw(--rounds 1 --requests 50 --keep-rounds 0 --tls-rounds 1 --growth-rounds 1 --idle 20));
is $run->{status}, 0, 'make bench' or diag($run->{err});
like $run->{out}, qr/How cost grows: CPU.*\n +1 +5\n(?:(?:epoll|pool|floor-one) +[\d.]+ \([\d.]+ to [\d.]+\) +[\d.]+ \([\d.]+ to [\d.]+\)\n){3}/, 'bench: CPU time at each concurrency';
my $speakers = qr/[^\n]*\n(?:epoll|pool) +[\d. ]+\n(?:epoll|pool) +[\d. ]+\n/;
like $run->{out}, qr/HTTPS, $_ sessions: witness, 50 connections[^\n]*\n$speakers/, "bench: HTTPS, $_" for 'p256, new', 'p256, resumed', 'rsa2048, new', 'rsa2048, resumed';
like $run->{out}, qr/How cost grows: KiB.*\n +20\nepoll +-?[\d.]+ \([^)]*\)\npool +[\d.]+ \([^)]*\)\n\z/, 'bench: memory of an idle connection, also of a crew made large enough';

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
