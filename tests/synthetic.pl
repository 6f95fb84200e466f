#!/usr/bin/perl
# synthetic.pl: makes a results folder with invented runs, to test the analysis with data whose truth is known.
#
# usage:    tests/synthetic.pl [--kind KIND] [--seed N] [--blocks N] [--concurrency N] [--slow F] [--invalid N] [--first N] DIR
# example:  tests/synthetic.pl --kind same-server --slow 0.97 /tmp/folder
#
# Kinds: fork-vs-thread, table1, processors, same-server, requests, persistent, mistakes, designs, proxy, download, protocols, https,
# udp: the factors of the study of that name; classroom-proxy and classroom-download: what a report found in its place. --slow F multiplies the requests/s of the last server by F; --invalid N spoils N runs; --first N has what takes 100,000 requests
# in the first N blocks alone. Times, CPU and memory
# follow from simple models with log-normal noise; the same seed makes the same folder.
use strict;
use warnings;
use Getopt::Long;

my ($kind, $seed, $blocks, $top, $slow, $invalid, $first) = ('fork-vs-thread', 1, 32, 30, 1, 0, 0);
GetOptions('kind=s' => \$kind, 'seed=i' => \$seed, 'blocks=i' => \$blocks, 'concurrency=i' => \$top,
    'slow=f' => \$slow, 'invalid=i' => \$invalid, 'first=i' => \$first) and @ARGV == 1 or die "usage: see the head of $0\n";
my $folder = shift;
srand $seed;

my %studies = (
    'fork-vs-thread' => {title => 'Fork against thread', source => 'DV1619 assignment 4, 2021', claims => 'R1.2 R1.3 R1.5',
        question => 'Does a process or a thread per connection answer more requests per second?'},
    'table1' => {title => 'The table of the report', source => 'DV1619 assignment 4, 2021, table 1', claims => 'R1.1',
        concurrency => [10], requests => [10000], theirs => ['time_ms/max_ms by server, file=small.txt => thread=2.146/7 fork=2.341/21']},
    'processors' => {title => 'One processor or two', source => 'DV1619 assignment 4, 2021', claims => 'R1.4',
        concurrency => [1, 2, 5, 10, 20, 30], processors => [1, 2], file => ['small.txt']},
    'same-server' => {title => 'A server against itself', source => 'the A/A test', claims => 'A/A',
        server => ['fork', 'fork~2'], list => 'fork fork'},
    'requests' => {title => 'The number of requests', source => 'CSE 4074', claims => 'R2.2', concurrency => [1],
        requests => [1 .. 10, 50, 100, 200, 300, 400, 500], file => ['small.txt']},
    'persistent' => {title => 'Calls per connection', source => 'performance testing report', claims => 'R3.1 R3.3 R3.4',
        server => ['apache-prefork', 'fork', 'thread'], baseline => 'apache-prefork', concurrency => [1],
        requests => [1000, 10000], calls => [1, 2, 5], load => ['httperf'], file => ['small.txt'],
        protocol => ['simple', 'persistent'], where => sub { $_[0]{protocol} ne 'simple' || $_[0]{calls} == 1 }},
    'mistakes' => {title => 'The classical mistakes', source => 'four classroom reports', claims => 'R1.5 R2.1 R3.4',
        server => ['floor-thread', 'floor-thread+joinable', 'floor-thread+split-writes', 'floor-one+work8000', 'floor-one+work8000+backlog5'],
        concurrency => [1, 3, 5 .. 8, 10, 20, 30], file => ['small.txt'], calls => [1, 2, 5], load => ['ab', 'httperf'],
        where => sub {
            my $cell = shift;
            return $cell->{calls} == 1 if $cell->{server} =~ /floor-one/;
            return $cell->{load} eq 'ab' && $cell->{calls} == 1 if $cell->{server} =~ /joinable/;
            return $cell->{load} eq 'httperf' && $cell->{concurrency} == 1 if $cell->{server} =~ /split/;
            return $cell->{load} eq 'ab' ? $cell->{calls} == 1 : $cell->{concurrency} == 1;
        }},
);
$studies{protocols} = {title => 'Protocols', source => 'performance testing report', claims => 'R3.1 R3.2 R3.3 R3.4 R3.5', parts => 'requests',
    server => [(map { my $model = $_; map { "$model+protocol=$_" } qw(simple persistent pipelined) } qw(iterative thread fork)), 'apache-prefork', 'apache-event'],
    baseline => 'apache-prefork', concurrency => [1], requests => [10000, 100000], calls => [1, 2, 5], load => ['httperf'], file => ['small.txt'],
    where => sub { ($_[0]{server} !~ /simple/ || $_[0]{calls} == 1) && ($_[0]{requests} == 10000 || $_[0]{server} =~ /iterative|thread.*pipe|prefork/) }};
$studies{https} = {title => 'TLS', source => 'IERG 4180', claims => 'R4.1 R4.2 TLS.1 TLS.2 TLS.3', parts => 'load requests', figure => 'ways',
    server => [qw(fork thread epoll nginx)], concurrency => [1, 10], requests => [2000, 10000, 100000], file => ['small.txt'], load => ['httperf', 'witness'],
    scheme => ['http', 'https'], certificate => ['-', 'p256', 'rsa2048'], sessions => ['-', 'new', 'resumed'],
    where => sub {
        my $cell = shift;
        return 0 if grep { ($_ eq '-') != ($cell->{scheme} eq 'http') } @$cell{qw(certificate sessions)};
        return $cell->{concurrency} == 10 && $cell->{requests} == 2000 if $cell->{load} eq 'witness';
        return $cell->{server} =~ /fork|thread/ && $cell->{concurrency} == 1 && $cell->{requests} > 2000 && $cell->{sessions} ne 'resumed'
            && ($cell->{requests} == 10000 || $cell->{scheme} eq 'http' || "$cell->{server} $cell->{certificate}" eq 'thread p256');
    }};
$studies{udp} = {title => 'UDP', source => 'IERG 4180', claims => 'U1 U2', parts => 'one', figure => 'cpu', concurrency => [1, 10, 30], load => ['witness'],
    scheme => ['http', 'udp'], file => ['small.txt']};
$studies{designs} = {title => 'Every design', source => 'UNP', claims => 'UNP.1 UNP.2 E07.1 CF.1', file => ['small.txt'], parts => 'one',
    server => [qw(iterative fork thread), (map { ("epoll$_") } '', map { "+accept=$_" } qw(shared reuseport)),
        (map { ("pool$_") } '', map { "+accept=$_" } qw(mutex queue reuseport)), (map { ("prefork$_") } '', map { "+accept=$_" } qw(lock mutex pass reuseport)),
        qw(floor-fork floor-thread floor-one nginx lighttpd apache-prefork apache-worker apache-event)], baseline => 'fork'};
$studies{proxy} = {title => 'The caching proxy', source => 'CSE 4074', claims => 'R2.1 R2.3', parts => 'one', concurrency => [1, 5, 6, 7, 10, 100, 500],
    requests => [500], file => [125, 150], service => [qw(sized proxy-hit proxy-revalidation proxy-miss)],
    where => sub { ($_[0]{file} == 150) == ($_[0]{service} eq 'proxy-miss') },
    theirs => ['rps by concurrency, service=proxy-hit => 1=264.03 5=159.97 7=11.66', 'rps by concurrency, service=sized file=150 => 1=124.68']};
$studies{download} = {title => 'Downloads', source => 'CSE 4074', claims => 'R2.4 R2.5', server => ['thread'], file => ['5242880.bin'], concurrency => [1, 5, 10],
    requests => [10], keepalive => ['off', 'on']};
$studies{"classroom-$_"} = $studies{$_} for qw(proxy download);
# Requests/s by service and by download, here and in the classroom.
my %share = (sized => 1, 'proxy-hit' => 0.8, 'proxy-revalidation' => 0.1, 'proxy-miss' => 0.15);
my %downloads = ('off 1' => 0.273, 'off 5' => 0.509, 'off 10' => 0.510, 'on 1' => 0.219, 'on 5' => 0.400, 'on 10' => 0.502);
# Server CPU per request, requests/s at most, and of a crew its workers and the share of the busiest.
my @designs = ([qr/^iterative/ => 12, 30000], [qr/^fork/ => 110, 13000], [qr/^floor-fork/ => 100, 14000], [qr/^thread/ => 25, 25000], [qr/^floor-thread/ => 22, 26000],
    [qr/^floor-one/ => 9, 31000], [qr/pass|queue/ => 20, 24000, 8, 0.3], [qr/^epoll.+reuse/ => 13, 29000, 2, 0.51], [qr/^epoll/ => 12.5, 29500, 2, 0.9],
    [qr/^(pool|prefork)/ => 14, 28000, 8, 0.14], [qr/^nginx/ => 20, 27000], [qr/^lighttpd/ => 17, 28000], [qr/^apache/ => 50, 20000]);

my $study = $studies{$kind} or die "$0: unknown kind $kind\n";
my %factor = (server => ['fork', 'thread'], file => ['small.txt', 'big.txt'], concurrency => [1 .. $top], requests => [1000],
    calls => [1], keepalive => ['off'], scheme => ['http'], protocol => ['pipelined'], service => ['files'],
    processors => ['all'], load => ['ab'], map { ref $study->{$_} eq 'ARRAY' ? ($_ => $study->{$_}) : () } keys %$study);
my @factors = qw(server file concurrency requests calls keepalive scheme protocol service processors load);
push @factors, qw(idle slow certificate sessions) if $kind =~ /^(https|udp)$/;
$factor{$_} //= [/idle|slow/ ? 0 : '-'] for @factors;

my @cells = ({});
for my $name (@factors) {
    @cells = map { my $cell = $_; map { {%$cell, $name => $_} } @{$factor{$name}} } @cells;
}
@cells = grep { $study->{where}->($_) } @cells if $study->{where};

sub noise { my $spread = shift; exp($spread * sqrt(-2 * log(1 - rand)) * cos(6.283185307179586 * rand)) }

mkdir $folder;
my $servers = $study->{list} // join ' ', @{$factor{server}};
open my $out, '>', "$folder/study.txt" or die "$folder/study.txt: $!\n";
print $out "# invented data\nname: $kind\ntitle: $study->{title}\nquestion: ", $study->{question} // 'What is faster?', "\nsource: $study->{source}\nservers: $servers\n",
    "files: @{$factor{file}}\nconcurrency: @{$factor{concurrency}}\nrequests: @{$factor{requests}}\nrepetitions: $blocks\n",
    'baseline: ', $study->{baseline} // $factor{server}[0], "\nclaims: $study->{claims}\n", (map { $study->{$_} ? "$_: $study->{$_}\n" : () } qw(parts figure)),
    ($first ? "blocks: requests=100000 => $first\n" : ()),
    map { "theirs: $_\n" } @{ $study->{theirs} // [] };
close $out;
open $out, '>', "$folder/machine.tsv" or die "$folder/machine.tsv: $!\n";
print $out "kernel\tLinux invented\nprocessors\t2\nmodel\tinvented | processor\nseed\t$seed\ncommand\t./dcollect.sh $kind\nstarted\t2026-01-01 12:00:00\n";
close $out;

open my $plan, '>', "$folder/plan.tsv" or die "$folder/plan.tsv: $!\n";
open my $runs, '>', "$folder/runs.tsv" or die "$folder/runs.tsv: $!\n";
my @planned = (qw(run block order), @factors);
my @measured = (qw(started seconds complete failed non2xx length rps mean_ms sd_ms min_ms p50_ms p90_ms p95_ms p99_ms max_ms
    kbytes_s load_cpu server_cpu_us voluntary involuntary peak_kib), $kind eq 'designs' ? qw(workers busiest) : $kind eq 'udp' ? 'lost' : (), 'valid');
print $plan join("\t", @planned), "\n";
print $runs join("\t", @planned, @measured), "\n";
my ($run, $clock) = (0, 0);
for my $block (1 .. $blocks) {
    my $weather = noise(0.02);
    my @order = grep { !$first || $block <= $first || $_->{requests} < 100000 } @cells;
    for my $i (reverse 1 .. $#order) { my $j = int rand($i + 1); @order[$i, $j] = @order[$j, $i] }
    my $order = 0;
    for my $cell (@order) {
        $run++;
        $order++;
        my ($server, $x) = @$cell{qw(server concurrency)};
        my $limit = $server =~ /fork|prefork/ ? 13000 : $server =~ /work8000/ ? 120 : 30000;
        $limit *= 0.5 if $cell->{processors} eq '1';
        $limit *= 0.93 if $cell->{file} eq 'big.txt';
        my $rps = $limit * $x / ($x + 0.8);
        $rps /= 11 if $server =~ /backlog5/ && $x > 6;
        $rps = $x * $cell->{calls} / (0.0001 + 0.041 * ($cell->{calls} - 1)) if $server =~ /split-writes/;
        $rps *= 1 - 0.2 * $order / @order if $server =~ /joinable/;
        $rps *= $cell->{requests} / ($cell->{requests} + 5) * noise(0.05) if $kind eq 'requests';
        $rps *= 0.02 if $kind eq 'persistent' && $cell->{protocol} eq 'persistent' && $cell->{calls} == 5 && $server !~ /apache/;
        $rps *= $share{ $cell->{service} } // 1;
        $rps *= ($cell->{service} eq 'proxy-hit' ? 3 : 1) / ($x > 6 ? 11 : 1) if $kind eq 'classroom-proxy';
        $rps = 0.46 * ($x > 1 ? 0.95 : 1) * ($cell->{keepalive} eq 'on' ? 1.05 : 1) if $kind eq 'download';
        $rps = $downloads{"$cell->{keepalive} $x"} if $kind eq 'classroom-download';
        my ($design) = $kind eq 'designs' ? grep { $server =~ $_->[0] } @designs : ();
        $rps = $design->[2] * $x / ($x + 0.8) if $design;
        $rps = {iterative => 9000, thread => 8000, fork => 3000, apache => 6000}->{$server =~ s/\W.*//r} * (0.5 + 0.5 * $cell->{calls})
            if $kind eq 'protocols';
        $rps *= 0.95 if $kind eq 'protocols' && $server =~ /=p/;
        my $tls = $cell->{scheme} ne 'https' ? 1 : ($cell->{certificate} eq 'p256' ? 12 : 15) * ($cell->{sessions} eq 'new' ? 1 : 0.7) * ($server eq 'nginx' ? 1.1 : 1);
        $rps /= $tls;
        $rps *= 1.2 if $cell->{scheme} eq 'udp';
        $rps *= $slow if $server eq $factor{server}[-1];
        $rps *= $weather * noise(0.03);
        my $length = $cell->{file} eq 'big.txt' ? 10000 : 1000;
        my $cpu = ($server =~ /fork/ ? 100 : 24) * ($length > 1000 ? 1.06 : 1) * noise(0.02);
        $cpu = $design->[1] * noise(0.02) if $design;
        $cpu *= $tls * ($cell->{scheme} eq 'udp' ? 0.8 : 1) * ($kind eq 'https' && $server =~ /epoll|nginx/ ? 0.85 : 1);
        my $mean = 1000 * $x / $rps;
        my $peak = ($server =~ /joinable/ ? 2000 + 90 * $order : $server =~ /fork/ ? 3000 + 150 * $x : 2200 + 20 * $x) * noise(0.01);
        my $load = $rps / ($design ? 40000 : 31000) * noise(0.01);
        my $seconds = $cell->{requests} / $rps;
        $clock += $seconds + 0.04;
        my $spoil = $invalid > 0 && $run % int(@cells * $blocks / $invalid) == 0;
        print $plan join("\t", $run, $block, $order, @$cell{@factors}), "\n";
        print $runs join("\t", $run, $block, $order, @$cell{@factors}, sprintf('%.3f', $clock), sprintf('%.6f', $seconds),
            $spoil ? $cell->{requests} - 3 : $cell->{requests}, $spoil ? 3 : 0, 0, $length, sprintf('%.2f', $rps),
            (map { sprintf '%.3f', $mean * $_ } 1, 0.2, 0.3, 0.97, 1.2, 1.4, 1.9, 3.1), sprintf('%.2f', $rps * $length / 1000),
            sprintf('%.3f', $load > 1 ? 1 : $load), sprintf('%.2f', $cpu), sprintf('%.3f', 1.5 * noise(0.05)), sprintf('%.3f', 0.2 * noise(0.2)),
            int $peak, ($design ? $design->[3] ? ($design->[3], sprintf '%.4f', $design->[4] * noise(0.01)) : ('-', '-') : ()), ($kind eq 'udp' ? int($x / 30) : ()), $spoil ? '3 failed requests' : 'yes'), "\n";
    }
}
