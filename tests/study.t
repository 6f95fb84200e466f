#!/usr/bin/perl
# Small studies from start to report: rows against ab's own output, interruptions, invalid runs, proxies, a slow link, a slow-down, bad
# usage.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Study;
use File::Path             qw(make_path);
use IO::Uncompress::Gunzip qw(gunzip $GunzipError);
use POSIX                  ();
use Fcntl                  qw(LOCK_EX);

my $top     = "$FindBin::Bin/..";
my $scratch = scratch();
my $mark    = "STUDY_TEST=$$-" . int now();

# What a study starts has this in its environment, and puts its temporary files here.
$ENV{STUDY_TEST} = $mark =~ s/\A[^=]*=//r;
$ENV{TMPDIR}     = "$scratch/tmp";
make_path($ENV{TMPDIR});

my @missing = grep { !command_exists($_) } qw(ab gnuplot datamash cmark-gfm make gcc);
if (@missing) {
    skip_case("not installed: @missing");
    done_testing;
    exit;
}

# --- Tools ---------------------------------------------------------------------------------------------------------

sub dcollect (@arguments) { return run_command("$top/dcollect.sh", @arguments) }

# The processes that a study of this test left behind, each with its command line.
sub left_behind () {
    my @left;
    for my $folder (glob '/proc/[0-9]*') {
        next if $folder eq "/proc/$$";
        my $environment = eval { slurp("$folder/environ") } // next;
        next if "\0$environment" !~ /\0\Q$mark\E\0/;
        push @left, $folder =~ s{/proc/}{}r . ' ' . (eval { slurp("$folder/cmdline") =~ tr/\0/ /r } // '');
    }
    return @left;
}

sub nothing_left ($name) {
    my @left;
    until_true(sub { !(@left = left_behind()) });
    is "@left", '', "$name: no process is left";
}

# How many whole rows there are.
sub rows ($folder) { return scalar(grep { /\n\z/ } lines("$folder/runs.tsv")) - 1 }

# What raw.gz holds of each run: its parts by the number of the run; the last one counts, like the row that follows it.
sub raw ($folder) {
    gunzip("$folder/raw.gz" => \my $text, MultiStream => 1) or diag("raw.gz: $GunzipError");
    my (undef, %part) = split /^# run (\d+) /m, $text // '';
    return %part;
}

# Rows and plan say the same, row for row, from the first column to the last of the plan.
sub follows_plan ($folder, $name) {
    my @plan = lines("$folder/plan.tsv");
    my @runs = lines("$folder/runs.tsv");
    chomp @plan;
    my $columns = split /\t/, $plan[0];
    my @begun = map { chomp; join "\t", (split /\t/, $_, -1)[0 .. $columns - 1] } @runs;
    is_deeply \@begun, \@plan, "$name: the rows are those of the plan, in its order, each once";
    my $width = split /\t/, $runs[0], -1;
    is scalar(grep { (() = /\t/g) != $width - 1 } @runs), 0, "$name: every row is whole";
}

sub near ($got, $expected, $within) {
    return $got =~ /\A-?[0-9.]+\z/ && abs($got - $expected) <= $within;
}

# What disagrees between a row and what ab printed for it.
sub disagreements ($row, $raw) {
    my %said = map { /^([A-Z][\w -]*): +(\S+)/ ? ($1 => $2) : () } reverse split /\n/, $raw;
    my %at   = $raw =~ /^(\d+),([\d.]+)$/mg;
    my ($total)  = $raw =~ /^Total: +(.*)$/m;
    my ($least, $mean, $sd, $median, $most) = split ' ', $total // '0 0 0 0 0';
    my %printed = $raw =~ /^ +(\d+)% +(\d+)/mg;
    my @launch  = split ' ', $raw =~ /^# launch: (.*)$/m ? $1 : '';

    my @flaws;
    my $agree = sub ($column, $expected, $within = 0) {
        push @flaws, "run $row->{run}: $column is $row->{$column}, not $expected"
            if !near($row->{$column}, $expected // 'nothing', $within);
    };
    $agree->(complete => $said{'Complete requests'});
    $agree->(complete => $row->{requests});
    $agree->(failed   => $said{'Failed requests'});
    $agree->(non2xx   => $said{'Non-2xx responses'} // 0);
    $agree->(length   => $said{'Document Length'});
    $agree->(length   => -s "$top/data/$row->{file}");
    $agree->(rps      => $said{'Requests per second'});
    $agree->(kbytes_s => $said{'Transfer rate'});
    # It follows from the requests per second, which have two places.
    $agree->(seconds  => $said{'Time taken for tests'}, 0.00051 + $said{'Time taken for tests'} ** 2 * 0.005 / 60);
    push @flaws, "run $row->{run}: ab was told otherwise"
        if $said{'Concurrency Level'} != $row->{concurrency} || $raw !~ m{^Document Path: +/\Q$row->{file}\E$}m;

    # Times are those of the -e file, and those are what ab prints rounded.
    $agree->("p${_}_ms" => $at{$_}, 0.00051) for 50, 90, 95;
    $agree->(min_ms => $at{0},   0.00051);
    $agree->(max_ms => $at{100}, 0.00051);
    $agree->("p${_}_ms" => $printed{$_}, 0.51) for 50, 90, 95, 99;
    $agree->(min_ms  => $least, 0.51);
    $agree->(max_ms  => $most,  0.51);
    $agree->(mean_ms => $mean,  0.51);
    $agree->(sd_ms   => $sd,    0.051);
    my ($share) = $raw =~ /^Time per request: +([\d.]+) \[ms\] \(mean\)$/m;
    push @flaws, "run $row->{run}: mean_ms is $row->{mean_ms}, more than all connections had, $share" if $row->{mean_ms} > $share + 0.0015;
    my ($sum, $squares) = (0, 0);
    for (0 .. 99) {
        my ($a, $b) = ($at{$_} // 0, $at{ $_ + 1 } // 0);
        $sum     += ($a + $b) / 200;
        $squares += ($a * $a + $a * $b + $b * $b) / 300;
    }
    my $spread = sqrt($squares > $sum * $sum ? $squares - $sum * $sum : 0);
    $agree->(mean_ms => $sum, 0.0015) if abs($sum - $mean) < 0.49 && $sum <= $share;
    $agree->(sd_ms => $spread, 0.0015) if abs($spread - $sd) < 0.049;

    # Server CPU, from the line that launch wrote.
    if ($row->{server_cpu_us} ne '-') {
        $agree->(server_cpu_us => $launch[3] / $row->{complete}, 0.00051);
        push @flaws, "run $row->{run}: the server cost nothing" if !($row->{server_cpu_us} > 0);
    }
    return @flaws;
}

# --- From start to report ------------------------------------------------------------------------------------------

my @small = ('--servers', 'fork,thread', '--files', 'small.txt', '--concurrency', '1,3', '--requests', 60, '--seed', 7);
my $main  = "$scratch/main";
my $run   = dcollect('--output', $main, @small, '--repetitions', 2);
is $run->{status}, 0, 'study: status' or diag($run->{err});
like $run->{out}, qr{^Report: +\Q$main\E/report\.md$}m, 'study: the report is named at the end';
like $run->{err}, qr/^Study fork-vs-thread: 8 runs/, 'study: its size is told at the beginning';

my @plan = table("$main/plan.tsv");
my %cells;
$cells{"$_->{block} $_->{server} $_->{file} $_->{concurrency} $_->{requests}"}++ for @plan;
my %expected;
for my $block (1, 2) {
    for my $server (qw(fork thread)) { $expected{"$block $server small.txt $_ 60"} = 1 for 1, 3 }
}
is_deeply \%cells, \%expected, 'study: the plan has every cell once in each block';
follows_plan($main, 'study');

my @rows = table("$main/runs.tsv");
my %raw  = raw($main);
is_deeply [sort { $a <=> $b } keys %raw], [1 .. 8], 'study: the raw output of every run is kept';
is join("\n", map { disagreements($_, $raw{ $_->{run} } // '') } @rows), '', 'study: every column is what ab said';
is join(' ', map { $_->{valid} } @rows), join(' ', ('yes') x 8), 'study: all runs are valid';
cmp_ok scalar(grep { $_->{server_cpu_us} ne '-' } @rows), '>', 0, 'study: server CPU was measured';
cmp_ok scalar(grep { $_->{peak_kib} =~ /\A\d+\z/ && $_->{peak_kib} > 0 } @rows), '>', 0, 'study: so was memory';
cmp_ok -s "$main/$_" // 0, '>', 1000, "study: $_" for 'report.md', 'index.html';
like slurp("$main/report.md"), qr/--seed 7\b/, 'study: the report says the seed';
nothing_left('study');

$run = dcollect('--output', $main, @small);
is_deeply [$run->{status}, scalar(() = $run->{err} =~ /\n/g)], [2, 1], 'study: a folder that holds one is not written over';

# --- Interrupted by Ctrl-C, then killed ----------------------------------------------------------------------------

# Starts a study as a terminal would, in a process group of its own.
sub begin (@arguments) {
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        setpgrp 0, 0;
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>',  "$scratch/begun.out";
        open STDERR, '>&', \*STDOUT;
        { no warnings 'exec'; exec "$top/dcollect.sh", @arguments }
        POSIX::_exit(127);
    }
    return $pid;
}

# Waits for a number of rows, sends a signal to the whole group, as a terminal does (SIGTERM: to the one process, as `kill` does),
# and waits for the end; the status as `wait` has it.
sub interrupt ($pid, $folder, $rows, $signal) {
    until_true(sub { rows($folder) >= $rows || waitpid($pid, POSIX::WNOHANG()) == $pid });
    kill $signal => $signal eq 'TERM' ? $pid : -$pid;
    my $ended = until_true(sub { waitpid($pid, POSIX::WNOHANG()) });
    my $status = $?;
    kill KILL => -$pid if !$ended;
    return $ended ? $status : 'it does not end';
}

my $broken = "$scratch/broken";
my $status = interrupt(begin('--output', $broken, @small, '--repetitions', 12), $broken, 3, 'INT');
is $status, 130 << 8, 'SIGINT: status 130' or diag(slurp("$scratch/begun.out"));
like slurp("$scratch/begun.out"), qr{^Interrupted: \d+ of 48 runs are kept\. Go on with: \./dcollect\.sh --resume \Q$broken\E$}m,
    'SIGINT: how to go on is told';
nothing_left('SIGINT');
my $planned = slurp("$broken/plan.tsv");
my @kept = lines("$broken/runs.tsv");
cmp_ok scalar(@kept), '>', 3, 'SIGINT: what was finished is kept';
cmp_ok scalar(@kept), '<', 49, 'SIGINT: it came before the end';
my @begins = split /^/, $planned;
is join('', @begins[0 .. 8]), slurp("$main/plan.tsv"), 'SIGINT: the same seed gives the same plan';

# Ctrl-C may come at any time, also when a load ends by itself at that moment.
my $kept = @kept;
for my $turn (1 .. 4) {
    my $signal = $turn % 2 ? 'INT' : 'TERM';
    $status = interrupt(begin('--resume', $broken), $broken, $kept, $signal);
    is $status, 130 << 8, "SIG$signal, time $turn: status 130" or diag(slurp("$scratch/begun.out"));
    like slurp("$scratch/begun.out"), qr/^Interrupted: /m, "SIG$signal, time $turn: it says so";
    nothing_left("SIG$signal, time $turn");
    $kept = rows($broken) + 1;
}

@kept = lines("$broken/runs.tsv");
$status = interrupt(begin('--resume', $broken), $broken, @kept + 3, 'KILL');
is $status, 9, 'SIGKILL: it was killed' or diag(slurp("$scratch/begun.out"));
nothing_left('SIGKILL');
my @more = lines("$broken/runs.tsv");
cmp_ok scalar(@more), '<', 49, 'SIGKILL: it came before the end';

# The row that comes next, whole but for its line end, as a full disk would leave it; and a torn end of the raw output.
my $next = grep { /\n\z/ } @more;
my $lie = $more[-1] =~ s/\A\d+/$next/r =~ s/\n\z//r =~ s/\t1000\t[\d.]+\t/\t1000\t987654.32\t/r;
open my $file, '>>', "$broken/runs.tsv" or die $!;
print {$file} $lie;
close $file;
open $file, '>>:raw', "$broken/raw.gz" or die $!;
print {$file} "\x1f\x8b\x08\x00\x00";
close $file;

# A folder of temporary files whose owner was killed, and one whose owner is at work.
my ($left, $held) = map { "$ENV{TMPDIR}/fork-vs-thread.work.$_" } qw(killed atwork);
make_path($left, $held);
open my $owner, '<', $held or die "$held: $!\n";
flock $owner, LOCK_EX or die "$held: $!\n";

$run = dcollect('--resume', $broken);
is $run->{status}, 0, 'resume: status' or diag($run->{err});
ok !-e $left, 'a folder of temporary files that a kill left is removed by the next study';
ok -e $held, 'one that is in use is not';
close $owner;
rmdir $held;
is slurp("$broken/plan.tsv"), $planned, 'resume: the plan is the same';
follows_plan($broken, 'resume');
my @all = lines("$broken/runs.tsv");
is join('', @all[0 .. $#kept]), join('', @kept), 'resume: what was finished before Ctrl-C is as it was';
is join('', @all[0 .. $next - 1]), join('', @more[0 .. $next - 1]), 'resume: what was finished before the kill, too';
unlike join('', @all), qr/987654\.32/, 'resume: a row without its line end is not believed';
%raw = raw($broken);
is_deeply [sort { $a <=> $b } keys %raw], [1 .. 48], 'resume: the raw output of every run is there';
is join("\n", map { disagreements($_, $raw{ $_->{run} } // '') } table("$broken/runs.tsv")), '', 'resume: every column is what ab said';
cmp_ok -s "$broken/index.html" // 0, '>', 1000, 'resume: it ends with the report';
nothing_left('resume');

# --- What takes long is in the first blocks alone --------------------------------------------------------------------

# The plan of these lines: of each block how many runs with how many requests, as "10 10 100", and its numbers in order.
sub plan_of (@lines) {
    spit("$scratch/blocks", join "\n", 'servers: fork thread', 'files: small.txt', 'concurrency: 1', 'repetitions: 4', 'seed: 5', @lines, '');
    my $made = run_command('awk', '-f', "$top/collect/plan.awk", "$scratch/blocks");
    return $made if $made->{status};
    my (undef, @planned) = map { [split /\t/] } split /\n/, $made->{out};
    my %block;
    push @{ $block{ $_->[1] } }, $_ for @planned;
    return join ' | ', map {
        my @runs = @{ $block{$_} };
        join(' ', sort { $a <=> $b } map { $_->[6] } @runs) . (join(' ', map { $_->[2] } @runs) eq join(' ', 1 .. @runs) ? '' : ' out of order')
    } sort keys %block;
}

is plan_of('requests: 10 100', 'blocks: requests=100 => 2'), '10 10 100 100 | 10 10 100 100 | 10 10 | 10 10', 'blocks: in the first alone';
is plan_of('requests: 10 100', 'blocks: requests=100 server=fork => 1'), '10 10 100 100 | 10 10 100 | 10 10 100 | 10 10 100', 'blocks: by two conditions';
is plan_of('requests: 10 100', 'blocks: requests=100 => 9'), join(' | ', ('10 10 100 100') x 4), 'blocks: no more than there are';
is plan_of('requests: 10 100', 'blocks: requests=100 => 3', 'blocks: requests=10|100 => 2', 'blocks: server=none => 1'), '10 10 100 100 | 10 10 100 100', 'blocks: the fewest count';
is plan_of('requests: 10', 'scheme: http https', 'certificate: p256 rsa2048', 'blocks: certificate=rsa2048 => 1'),
    '10 10 10 10 10 10 | ' . join(' | ', ('10 10 10 10') x 3), 'blocks: what has no certificate is in all';
for my $wrong ('requests=100', 'requests=100 =>', 'requests=100 => 0', 'requests=100 => two', '=> 2', 'request=100 => 2') {
    like plan_of('requests: 10 100', "blocks: $wrong")->{err}, qr/\Astudy: blocks: [^\n]+\n\z/, "blocks: `$wrong` is none";
}

# The same study interrupted, and finished: the longer runs are not in the last block, and the report says of how many each figure is.
spit("$scratch/longer", "servers: fork thread\nfiles: small.txt\nconcurrency: 1\nrequests: 20 60\nrepetitions: 5\nblocks: requests=60 => 2\n");
my $longer = "$scratch/longer.results";
$status = interrupt(begin('--output', $longer, '--seed', 3, "$scratch/longer"), $longer, 2, 'INT');
is $status, 130 << 8, 'blocks: interrupted' or diag(slurp("$scratch/begun.out"));
$run = dcollect('--resume', $longer);
is $run->{status}, 0, 'blocks: resumed' or diag($run->{err});
follows_plan($longer, 'blocks');
is join(' ', map { "$_->{server} $_->{requests} $_->{n}" } table("$longer/summary.tsv")), 'fork 20 5 fork 60 2 thread 20 5 thread 60 2', 'blocks: of so many runs is each cell';
is join(' ', map { "$_->{requests} $_->{blocks}" } grep { $_->{measure} eq 'rps' } table("$longer/comparisons.tsv")), '20 5 60 2 * 2 * 2',
    'blocks: what averages over both takes the blocks that hold both';
like slurp("$longer/report.md"), qr/makes? 4 cells; each was run 5 times, but those with 60 requests 2 times, 14 runs in all\./, 'blocks: the report says so';

# --- Runs that do not count ----------------------------------------------------------------------------------------

# A server that answers everything but absent.txt with a body of its own. With `life` its first start ends by SIGKILL after so
# many answers, in the midst of a run.
sub fake_server ($length, $life = 0) {
    return <<"END" . <<'END';
#!/usr/bin/perl
my (\$length, \$life) = ($length, $life);
END
use strict;
use IO::Socket::INET;
$SIG{TERM} = sub { exit 0 };
$SIG{PIPE} = 'IGNORE';
$life = 0 if $life && -e "$0.died";
my $listener = IO::Socket::INET->new(Listen => 100, LocalAddr => '127.0.0.1') or die $!;
$| = 1;
print 'listening on http://127.0.0.1:', $listener->sockport, "/\n";
while (1) {
    my $client = $listener->accept or next;
    my ($head, $part) = ('');
    $head .= $part while $head !~ /\r\n\r\n/ && sysread $client, $part, 4096;
    my ($status, $body) = $head =~ m{absent} ? ('404 Not Found', "none\n") : ('200 OK', 'x' x $length);
    syswrite $client, "HTTP/1.0 $status\r\nContent-Length: " . length($body) . "\r\nConnection: close\r\n\r\n$body";
    close $client;
    if ($life && !--$life) {
        open my $file, '>', "$0.died";
        print STDERR "here it ends\n";
        kill KILL => $$;
    }
}
END
}

my $fakes = "$scratch/fakes";
make_path($fakes);
for my $fake (['short', fake_server(999)], ['dying', fake_server(1000, 15)]) {
    spit("$fakes/$fake->[0]_server", $fake->[1]);
    chmod 0755, "$fakes/$fake->[0]_server";
}
symlink "$top/fork_server", "$fakes/fork_server";

my $spoiled = "$scratch/spoiled";
{
    local $ENV{SERVER_FOLDER} = $fakes;
    $run = dcollect('--output', $spoiled, '--servers', 'fork,short,dying', '--files', 'small.txt,absent.txt', '--concurrency', 1,
        qw(--requests 10 --repetitions 3 --seed 3));
}
is $run->{status}, 3, 'invalid: status 3' or diag($run->{err});
follows_plan($spoiled, 'invalid');
@rows = table("$spoiled/runs.tsv");
for my $row (@rows) {
    next if $row->{server} eq 'dying' && $row->{file} eq 'small.txt';
    my $why = $row->{file} eq 'absent.txt' ? '10 non-2xx' : $row->{server} eq 'short' ? 'length 999 instead of 1000' : 'yes';
    next if $row->{server} eq 'dying' && $row->{valid} =~ /died/;
    is $row->{valid}, $why, "invalid: run $row->{run}, $row->{server}, $row->{file}";
}
my @of_dying = grep { $_->{server} eq 'dying' } @rows;
my @died = grep { $of_dying[$_]{valid} =~ /died/ } 0 .. $#of_dying;
my $first = $of_dying[$died[0] // 0];
is scalar(@died), 1, 'a server that dies: one run is invalid for it';
like $first->{valid}, qr/\Aserver died: here it ends/, 'a server that dies: its last words are the reason';
like $run->{err}, qr/^run $first->{run}: dying: server died: here it ends$/m, 'a server that dies: it is reported';
my @later = grep { $_->{file} eq 'small.txt' } @of_dying[($died[0] // 0) + 1 .. $#of_dying];
cmp_ok scalar(@later), '>', 0, 'a server that dies: there are runs after it';
is join(' ', map { $_->{valid} } @later), join(' ', ('yes') x @later), 'a server that dies: later runs are valid again';
my $bad = grep { $_->{valid} ne 'yes' } @rows;
like slurp("$spoiled/report.md"), qr/Invalid runs\*\*: $bad of 18\b/, 'invalid: the report counts them';
my @shorts = grep { $_->{server} eq 'short' } table("$spoiled/summary.tsv");
is scalar(grep { ($_->{n} // 0) > 0 } @shorts), 0, 'invalid: no mean is made of them';
nothing_left('invalid');

# --- Proxies: what is called a hit was one -------------------------------------------------------------------------

# A proxy that asks its origin each time, and says that it did not.
my $liar = <<'END';
#!/usr/bin/perl
use strict;
use IO::Socket::INET;
$SIG{TERM} = sub { exit 0 };
$SIG{PIPE} = 'IGNORE';
my $listener = IO::Socket::INET->new(Listen => 100, LocalAddr => '127.0.0.1') or die $!;
$| = 1;
print 'listening on http://127.0.0.1:', $listener->sockport, "/\n";
while (1) {
    my $client = $listener->accept or next;
    my ($head, $reply, $part) = ('', '');
    $head .= $part while $head !~ /\r\n\r\n/ && sysread $client, $part, 4096;
    if (my ($address, $path) = $head =~ m{\AGET http://([^/]+)(/\S*)}) {
        my $origin = IO::Socket::INET->new(PeerAddr => $address) or next;
        syswrite $origin, "GET $path HTTP/1.0\r\n\r\n";
        $reply .= $part while sysread $origin, $part, 4096;
    }
    syswrite $client, $reply =~ s/\r\n/\r\nCache-Status: liar; hit; ttl=9\r\n/r || "HTTP/1.0 400 Bad Request\r\n\r\n";
    close $client;
}
END
for my $fake ([liar => $liar], [forgetful => "#!/bin/sh\nexec $top/fork_server \"\$@\" --no-cache\n"]) {
    spit("$fakes/$fake->[0]_server", $fake->[1]);
    chmod 0755, "$fakes/$fake->[0]_server";
}
symlink "$top/thread_server", "$fakes/thread_server";

my $proxied = "$scratch/proxied";
{
    local $ENV{SERVER_FOLDER} = $fakes;
    spit("$scratch/proxies", "servers: fork liar forgetful\nbaseline: fork\nfiles: 125 150\nservice: proxy-hit proxy-revalidation proxy-miss\n"
            . "where: service=proxy-miss => file=150\nwhere: service=proxy-hit|proxy-revalidation => file=125\nwhere: server=liar|forgetful => service=proxy-hit\n"
            . "concurrency: 1 4\nrequests: 20\nrepetitions: 1\nparts: one\n");
    $run = dcollect('--output', $proxied, "$scratch/proxies");
}
is $run->{status}, 3, 'proxies: status 3' or diag($run->{err});
my @of_fork = grep { $_->{server} eq 'fork' } table("$proxied/runs.tsv");
is join(' ', sort map { "$_->{service} $_->{file} $_->{concurrency} $_->{valid}" } @of_fork),
    join(' ', sort map { my $kind = $_; map { "proxy-$kind $_ yes" } $kind eq 'miss' ? ('150 1', '150 4') : ('125 1', '125 4') } qw(hit revalidation miss)),
    'proxies: a hit, a revalidation and a miss are what they are called';
is scalar(grep { $_->{server_cpu_us} ne '-' && $_->{server_cpu_us} > 0 } @of_fork), 6, 'proxies: what they cost was measured';
for my $row (grep { $_->{server} ne 'fork' } table("$proxied/runs.tsv")) {
    my $why = $row->{server} eq 'liar' ? qr/\Ano hit: of 20 requests the origin was asked for 20\z/ : qr{\Ano hit: the proxy says HTTP/1\.1 200 OK, no Cache-Status\z};
    like $row->{valid}, $why, "proxies: what is no hit is invalid, run $row->{run}, $row->{server}";
}
nothing_left('proxies');

# --- Over a slow link ----------------------------------------------------------------------------------------------

# What a namespace could leave behind: devices, and mounts that hold it.
sub network () { return join ' ', (sort map { s{.*/}{}r } glob '/sys/class/net/*'), glob('/run/netns/*'), grep { / nsfs / } lines('/proc/self/mounts') }

my @namespace = $> ? qw(unshare --map-root-user --net true) : qw(unshare --net true);
if (grep({ !command_exists($_) } qw(ip tc nsenter)) || run_command(@namespace)->{status}) {
    skip_case('no network namespace, or no iproute2');
}
else {
    my $before = network();
    my @linked = ('--servers', 'thread', '--files', '300000.bin', '--concurrency', '1,2', '--requests', 3, '--keepalive', 'off,on', '--link', '40mbit');
    my $slow = "$scratch/link";
    $run = dcollect('--output', $slow, @linked, '--repetitions', 1);
    is $run->{status}, 0, 'link: status' or diag($run->{err});
    my @over = table("$slow/runs.tsv");
    is join(' ', map { "$_->{valid} $_->{length}" } @over), join(' ', ('yes 300000') x 4), 'link: all runs are valid, of a document made for them';
    # 40 Mbit/s are 4,883 KiB/s; what is in the device's bucket and in the last packets goes faster. A busy machine is slower.
    is scalar(grep { !($_->{kbytes_s} > 0 && $_->{kbytes_s} <= 5400) } @over), 0, 'link: it is as slow as it shall be' or diag(join ' ', map { $_->{kbytes_s} } @over);
    like slurp("$slow/machine.tsv"), qr/^link\t40mbit from server to load by tbf, .*(?:netem)$/m, 'link: how it was made is kept';
    like slurp("$slow/report.md"), qr/over a link between two network namespaces: 40mbit/, 'link: the report says so';
    nothing_left('link');
    is network(), $before, 'link: nor a device or a namespace';
    for my $case (['INT', 130 << 8], ['KILL', 9]) {
        my ($signal, $expected) = @$case;
        my $folder = "$scratch/link-$signal";
        is interrupt(begin('--output', $folder, @linked, '--repetitions', 50), $folder, 2, $signal), $expected, "link, SIG$signal: status";
        nothing_left("link, SIG$signal");
        is network(), $before, "link, SIG$signal: nor a device or a namespace";
    }

    # More ports for clients: where root may make a namespace; else those of the machine, and it is said.
    my $ports = "$scratch/ports";
    spit("$scratch/wide", "servers: fork\nfiles: small.txt\nconcurrency: 1\nrequests: 30\nrepetitions: 1\nclient-ports: 20000-60000\n");
    $run = dcollect('--output', $ports, "$scratch/wide");
    is $run->{status}, 0, 'ports: status' or diag($run->{err});
    is join(' ', map { $_->{valid} } table("$ports/runs.tsv")), 'yes', 'ports: the run is valid';
    my ($told) = slurp("$ports/machine.tsv") =~ /^client_ports\t(\d+ to \d+)$/m;
    if ($run->{err} =~ /clients cannot have the ports 20000-60000 here/) {
        is $told, slurp('/proc/sys/net/ipv4/ip_local_port_range') =~ s/\s+(\d+)\s*\z/ to $1/r, 'ports: those of the machine';
        like slurp("$ports/report.md"), qr/Clients took the ports \Q$told\E, those of the machine, though the study asks for 20000-60000\./, 'ports: the report says so';
    }
    else {
        is $told, '20000 to 60000', 'ports: as the study asks';
        like slurp("$ports/report.md"), qr/Clients took the ports 20000 to 60000, more than/, 'ports: the report says so';
    }
    nothing_left('ports');
    is network(), $before, 'ports: nor a device or a namespace';
}
for my $wrong ('80-60000', '2000', '5000-4000', '1024-70000', 'all') {
    like plan_of("client-ports: $wrong")->{err}, qr/\Astudy: client-ports: `\Q$wrong\E` is no range within 1024-65535\n\z/, "client-ports: `$wrong` is none";
}

# --- What the other load generators print ----------------------------------------------------------------------------

# The measured columns that load.awk makes of an output; the server is well, and nothing was measured from outside.
sub measured ($generator, $output, %variables) {
    spit("$scratch/generator.out", $output);
    spit("$scratch/generator.percentiles", '');
    spit("$scratch/generator.result", "0.5 0.1 0 50000 - - 700 yes\n");
    my %all = (generator => $generator, want => 1, calls => 1, bytes => 1000, out => "$scratch/generator.out", limit => 60,
        percentiles => "$scratch/generator.percentiles", result => "$scratch/generator.result", %variables);
    my $got = run_command('awk', (map { ('-v', "$_=$all{$_}") } sort keys %all), '-f', "$top/collect/load.awk");
    my %row;
    @row{qw(seconds complete failed non2xx length rps mean_ms sd_ms min_ms p50_ms p90_ms p95_ms p99_ms max_ms kbytes_s load_cpu
        server_cpu_us voluntary involuntary peak_kib held each_kib cut lost unanswered again_ms valid)} = split /\t/, $got->{out} =~ s/\n\z//r;
    return \%row;
}

my $httperf = <<'END';
Total: connections 10 requests 50 replies 50 test-duration 0.009 s
Connection time [ms]: min 1.5 avg 6.1 max 8.6 median 6.5 stddev 2.0
Request rate: 5357.9 req/s (0.2 ms/req)
Reply size [B]: header 249.0 content 1000.0 footer 0.0 (total 1249.0)
Reply status: 1xx=0 2xx=50 3xx=0 4xx=0 5xx=0
Net I/O: 6906.9 KB/s (56.6*10^6 bps)
Errors: total 0 client-timo 0 socket-timo 0 connrefused 0 connreset 0
END
my $row = measured('httperf', $httperf, want => 10, calls => 5);
is_deeply [@$row{qw(complete failed non2xx length rps seconds mean_ms server_cpu_us valid)}],
    [50, 0, 0, 1000, '5357.90', '0.009332', '1.220', '1000.000', 'yes'], 'httperf: a row, its time not cut to milliseconds';
$row = measured('httperf', $httperf =~ s/replies 50/replies 48/r =~ s/total 0/total 2/r, want => 10, calls => 5);
is $row->{valid}, '48 of 50 requests completed', 'httperf: a reply that is missing';
$row = measured('httperf', $httperf =~ s/2xx=50/2xx=49/r, want => 10, calls => 5);
is $row->{valid}, '1 non-2xx', 'httperf: an error page';
my $ab = "Time taken for tests:   21.924 seconds\nComplete requests:      10\nFailed requests:        0\nDocument Length:        1000 bytes\n"
    . "Requests per second:    0.46 [#/sec] (mean)\n";
$row = measured('ab', $ab, want => 10);
is_deeply [@$row{qw(complete rps seconds valid)}], [10, '0.456121', '21.924000', 'yes'], 'ab: a slow run, its requests/s not cut to two places';
$row = measured('wrk', "dcollect 8000 1000000 1024000 0 0 0 0 0 500 50 100 400 900 950 990 2000\n");
is_deeply [@$row{qw(complete rps mean_ms p50_ms p99_ms max_ms valid)}], [8000, '8000.00', '0.500', '0.400', '0.990', '2.000', 'yes'],
    'wrk: a row';
$row = measured('wrk', "dcollect 8000 1000000 1024000 0 3 0 0 0 500 50 100 400 900 950 990 2000\n");
is $row->{valid}, '3 failed', 'wrk: requests that failed';

# --- On a terminal -------------------------------------------------------------------------------------------------

if (command_exists('script')) {
    $run = run_command('script', '-qec', "stty cols 60; '$top/dcollect.sh' --output '$scratch/terminal' @small --repetitions 2", '/dev/null');
    is $run->{status}, 0, 'terminal: status' or diag($run->{out});
    my @drawn = map { s/\A\e\[K//r } grep { /\A\e\[K +\d+%/ } split /[\r\n]+/, $run->{out};
    is scalar(@drawn), 8, 'terminal: a progress line for each run';
    is scalar(grep { length >= 60 } @drawn), 0, 'terminal: none of them wraps';
    is scalar(grep { !/\A +\d+%  \d+:\d\d gone(?:, \d+:\d\d to go)?   block [12]: (?:fork|thread), small/ } @drawn), 0,
        'terminal: it says how far it is, the time that has gone and that is left, and what runs' or diag(join "\n", @drawn);
    nothing_left('terminal');
}
else {
    skip_case('script is not installed');
}

# --- A slow-down is found ------------------------------------------------------------------------------------------

# One that no neighbour can hide; what a small one takes is calculated in statistics.t.
my $slowed = "$scratch/slowed";
$run = dcollect('--output', $slowed, '--servers', 'floor-thread,floor-thread+work50000', '--files', 'small.txt', '--concurrency', 1,
    qw(--requests 10 --repetitions 10 --seed 5));
is $run->{status}, 0, 'slow-down: status' or diag($run->{err});
my ($found) = grep {
    $_->{scope} eq 'cell' && $_->{measure} eq 'rps' && $_->{server} eq 'floor-thread+work50000' && $_->{baseline} eq 'floor-thread'
} table("$slowed/comparisons.tsv");
ok $found, 'slow-down: it is compared';
cmp_ok $found->{ratio}  // 9, '<', 0.9,  'slow-down: the ratio is below 1';
cmp_ok $found->{high}   // 9, '<', 1,    'slow-down: so is all of its interval';
cmp_ok $found->{p_holm} // 9, '<', 0.05, 'slow-down: by Holm, too, it is no chance';
is $found->{difference}, 'lower', 'slow-down: it is called so';
nothing_left('slow-down');

# --- Wrong usage ---------------------------------------------------------------------------------------------------

# One line on standard error, and nothing made.
sub refused ($what, $status, $pattern, @arguments) {
    my $folder = "$scratch/refused";
    my $got = dcollect('--output', $folder, @arguments);
    my $lines = () = $got->{err} =~ /\n/g;
    ok $got->{status} == $status && $lines == 1 && $got->{err} =~ $pattern && $got->{out} eq '' && !-e $folder, "refused: $what"
        or diag("status $got->{status}, $lines lines: $got->{err}", -e $folder ? ' and a folder was made' : '');
}
refused('an unknown option',      2, qr/--frobnicate/,    '--frobnicate');
refused('an unknown study',       2, qr/'nosuch'/,        'nosuch');
refused('an unknown server',      2, qr/'nosuch'/,        '--servers', 'fork,nosuch');
refused('an unknown load',        2, qr/siege/,           '--load', 'siege');
refused('concurrency 0',          2, qr/concurrency/,     '--concurrency', '0');
refused('a range backwards',      2, qr/concurrency/,     '--concurrency', '9-3');
refused('repetitions of words',   2, qr/repetitions/,     '--repetitions', 'many');
refused('more at once than requests', 2, qr/no cell is left/, '--concurrency', 20, '--requests', 10);
refused('processors that nobody has', 2, qr/no cell is left/, '--processors', 99_999);
refused('processors of words',    2, qr/processors/,      '--processors', '1-many');
refused('a foreign baseline',     2, qr/baseline: nosuch/, '--baseline', 'nosuch');
refused('a rate of words',        2, qr/link: `fast`/,    '--link', 'fast');
refused('a hit that cannot be one', 2, qr/even ones never.*no cell is left/, '--service', 'proxy-hit', '--files', '150');
refused('a proxy of no kind',     2, qr/service: `proxy`/, '--service', 'proxy');
refused('no time at all',         2, qr/duration/,        '--duration', '0');
spit("$scratch/misspelt", "servers: fork\nconcurency: 1\n");
refused('a study with a wrong word', 2, qr/`concurency`/, "$scratch/misspelt");
spit("$scratch/misread", "servers: fork\ntheirs: rps of concurrency => 1=2\n");
refused('numbers of a report that say nothing', 2, qr/theirs: rps of concurrency/, "$scratch/misread");
spit("$scratch/misread", "servers: fork\ntheirs: rps/max_ms by concurrency => 1=2/3 5=2\n");
refused('fewer numbers than measures', 2, qr/theirs: 5=2 is no/, "$scratch/misread");
refused('a seed of words',        2, qr/--seed/,          '--seed', 'x');
refused('an option with no value', 2, qr/--requests/,     '--requests');
refused('two studies',            2, qr/one study/,       'table1', 'requests');
for my $case ([['--resume', "$scratch/nothing"], '--resume of nothing'], [['report', "$scratch/nothing"], 'report of nothing'],
    [['--resume', $main, '--seed', '1'], '--resume with another seed']) {
    my $got = dcollect(@{ $case->[0] });
    is_deeply [$got->{status}, scalar(() = $got->{err} =~ /\n/g)], [2, 1], "refused: $case->[1]" or diag($got->{err});
}

# Without ab, and without what could install it.
my $bare = "$scratch/bare";
make_path($bare);
for my $folder (reverse grep { -d $_ } split /:/, $ENV{PATH}) {
    for my $program (glob "$folder/*") {
        my $name = $program =~ s{.*/}{}r;
        next if $name =~ /\A(?:ab|sudo|apt.*)\z/ || -l "$bare/$name";
        symlink $program, "$bare/$name";
    }
}
my @always = map { +("$_/ab", "$_/apt-get", "$_/sudo") } '/usr/sbin', '/sbin';
if (grep { -e $_ } @always) {
    skip_case('without ab: ab or apt-get lies where it is always found');
}
else {
    local $ENV{PATH} = $bare;
    refused('without ab', 1, qr/apache2-utils/);
}

# --- What another study left ---------------------------------------------------------------------------------------

my $groups = "$scratch/groups";
make_path("$groups/fork-vs-thread.$$/1", "$groups/fork-vs-thread.4194304/1");    # there is no process of so high a number
run_command('bash', '-euc', '. "$1/collect/cost.sh"; cost_sweep "$2"; cost_sweep "$2"', 'bash', $top, $groups);
is join(' ', map { s{.*/groups/}{}r } glob "$groups/* $groups/*/*"), "fork-vs-thread.$$ fork-vs-thread.$$/1",
    'groups of a study that was killed are removed, those of one that runs are not';

nothing_left('at the end');
is join(' ', glob "$ENV{TMPDIR}/*"), '', 'at the end: no temporary file is left';
done_testing;
