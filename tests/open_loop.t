#!/usr/bin/perl
# open_loop, the client of the study that does not wait: what it counts, the time of a request from when it was due, and when it
# refuses to call a run valid.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use StudyClients;
use List::Util qw(sum0);

my $top     = "$FindBin::Bin/..";
my $program = "$top/collect/clients/open_loop";
my $scratch = scratch();

# A server with faults, by the path: it serves one connection at a time.
my $faulty = "$scratch/faulty_server";
spit($faulty, <<'END');
#!/usr/bin/perl
use strict;
use IO::Socket::INET;
$SIG{TERM} = sub { exit 0 };
$SIG{PIPE} = 'IGNORE';
my $listener = IO::Socket::INET->new(Listen => 1000, LocalAddr => '127.0.0.1') or die $!;
$| = 1;
print 'listening on http://127.0.0.1:', $listener->sockport, "/\n";
my $count = 0;
while (my $client = $listener->accept) {
    sysread $client, my $head, 4096 or next;
    my ($path) = $head =~ m{\AGET /(\S+)} or next;
    next if $path eq 'close';
    my $bytes = $path eq 'grow' ? ++$count : 10;
    my $length = $path eq 'until-end' ? '' : "Content-Length: $bytes\r\n";
    syswrite $client, $path eq 'noise' ? "noise\r\n\r\n" : "HTTP/1.1 200 OK\r\n$length\r\n" . 'x' x $bytes;
}
END
chmod 0755, $faulty;

# Runs the client. Returns what run_command() does, with the members of what it prints. There are some 100 requests.
sub open_loop (@arguments) {
    my $run = run_command($program, '--rate', 200, '--seconds', 0.5, '--timeout', 600_000, @arguments);
    my $told = eval { JSON::PP::decode_json($run->{out}) } // {};
    return { %$run, %$told };
}

# The causes of failures that are not 0.
sub failures ($seen) { return join ' ', grep { $seen->{$_} } qw(refused cut_off timeouts wrong non2xx) }

# The sum of the counts of the histogram.
sub noted ($seen) { return sum0 $seen->{histogram} =~ /\d+:(\d+)/g }

# --- What is counted, with every server --------------------------------------------------------------------------------

each_server(sub ($model) {
    my $server = start_server(root => "$top/data");
    my %number;
    for my $case (['each has a connection'], ['kept connections', '--keep-alive'], ['even', '--arrivals', 'even'],
        ['some do not count', '--warm-up', 0.2]) {
        my ($name, @options) = @$case;
        next if $name eq 'kept connections' && ($model->{single} || $model->{limited});
        my $seen = open_loop(@options, $server->port, '/small.txt');
        is $seen->{status}, 0, "$name: status 0" or diag($seen->{err});
        is failures($seen), '', "$name: no request fails" or diag($seen->{out});
        cmp_ok $seen->{answered}, '>', 50, "$name: many requests are answered";
        is $seen->{answered}, $seen->{due}, "$name: as many as were due";
        is noted($seen), $seen->{answered}, "$name: all are in the histogram";
        is $seen->{length}, -s "$top/data/small.txt", "$name: with the whole document";
        is !!$seen->{valid}, $seen->{why} eq '', "$name: it is valid, or says why it is not";
        $number{$name} = $seen->{due};
    }
    is $number{even}, 100, 'even: as many requests as the rate says';
    cmp_ok $number{'some do not count'}, '<', 200, 'the time before --seconds is not counted';
    is open_loop($server->port, '/small.txt')->{due}, $number{'each has a connection'}, 'the same seed has the same requests';
    ok grep({ open_loop('--seed', $_, $server->port, '/small.txt')->{due} != $number{'each has a connection'} } 2 .. 4), 'other seeds have others';
    is failures(open_loop($server->port, '/absent.txt')), 'non2xx', 'error responses are counted as such';
    $server->stop;
});

# --- The time of a request -----------------------------------------------------------------------------------------------

# 100 requests in half a second, of 20 ms each, by a server of one connection at a time: the last is done after 2 seconds.
my $slow = start_program("$top/iterative_server", '--service', 'work', 0);
my $seen = open_loop('--arrivals', 'even', $slow, '/sleep/20000');
is $seen->{answered}, 100, 'overload: all requests are answered in the end';
cmp_ok $seen->{max_ms}, '>=', 1490, 'overload: the last one has waited for all before it';
cmp_ok $seen->{mean_ms}, '>=', 740, 'overload: the mean time grows with the queue';
cmp_ok $seen->{min_ms}, '>=', 19.9, 'overload: no request takes less than its work';
cmp_ok $seen->{achieved_rate}, '<', 51, 'overload: the rate that it achieves is that of the server';
$seen = open_loop('--arrivals', 'even', '--connections', 1, $slow, '/sleep/20000');
is $seen->{connections_most}, 1, '--connections 1: one connection';
cmp_ok $seen->{queued_most}, '>=', 50, '--connections 1: requests wait for it';
cmp_ok $seen->{max_ms}, '>=', 1490, '--connections 1: and that counts';
$seen = open_loop('--arrivals', 'even', '--timeout', 300, $slow, '/sleep/20000');
is failures($seen), 'timeouts', '--timeout: requests that take longer have failed';
is $seen->{answered} + $seen->{timeouts}, 100, '--timeout: nothing is counted twice';
cmp_ok $seen->{max_ms}, '<=', 10_000, '--timeout: the times of those are not among the others';

# All are answered, but none while they are due.
my $timers = start_program("$top/epoll_server", '--service', 'work', 0);
$seen = open_loop($timers, '/sleep/700000');
is $seen->{answered}, $seen->{due}, 'all requests that wait for a timer are answered';
is $seen->{achieved_rate}, 0, 'what comes after the last one was due does not count in the rate';
$seen = open_loop('--arrivals', 'even', '--rate', 200, '--warm-up', 1, '--seconds', 2, $timers, '/sleep/900000');
is $seen->{answered}, $seen->{due}, '--warm-up: those that count are answered';
cmp_ok $seen->{achieved_rate}, '>', 150, '--warm-up: the rate has the answers to those that were due before';

# A second of twice what the server can do leaves a queue of another second, although nobody waits for it any more.
$seen = open_loop('--arrivals', 'even', '--rate', 25, '--warm-up', 1, '--surge', 400, '--seconds', 4, '--timeout', 200, $slow, '/sleep/20000');
is $seen->{due}, 100, '--surge: the requests of the surge do not count';
cmp_ok $seen->{recovered_ms}, '>=', 500, '--surge: it tells until when requests failed';
cmp_ok $seen->{recovered_ms}, '<=', 4000, '--surge: which is within the run';
is failures($seen), 'timeouts', '--surge: they came too late';
is open_loop('--arrivals', 'even', $slow, '/sleep/1000')->{recovered_ms}, 0, 'without a failure there is nothing to recover from';

# --- Two paths -------------------------------------------------------------------------------------------------------------

$seen = open_loop('--other', '/sleep/50000', '--other-share', 20, '--keep-alive', start_program("$top/thread_server", '--service', 'work', 0), '/cpu/0');
my $other = $seen->{other} // {};
cmp_ok $other->{answered}, '>=', 5, '--other: some requests are for the other path';
cmp_ok $other->{answered}, '<=', 45, '--other: and most are not';
is noted($seen) + $other->{answered}, $seen->{answered}, '--other: the histogram has the requests for the first path alone';
cmp_ok $other->{min_ms}, '>=', 49.9, '--other: the times of the other path are its own';
cmp_ok $seen->{min_ms}, '<', 49.9, '--other: and those of the first path are not among them';

# --- Workers -----------------------------------------------------------------------------------------------------------------

my @by_thread = ('--by-thread', '--arrivals', 'even');
my $crew = start_program("$top/prefork_server", '--service', 'work', '--workers', 3, 0);
$seen = open_loop(@by_thread, $crew, '/sleep/20000');
my @threads = @{ $seen->{threads} // [] };
cmp_ok scalar(@threads), '>', 1, '--by-thread: several workers answer' or diag($seen->{out}, $seen->{err});
cmp_ok scalar(@threads), '<=', 3, '--by-thread: no others';
is sum0(map { $_->{answered} } @threads), $seen->{answered}, '--by-thread: each answer is that of a worker';
is_deeply [map { noted($_) } @threads], [map { $_->{answered} } @threads], '--by-thread: all are in the histogram of their worker';
my $each = start_program("$top/fork_server", '--service', 'work', 0);
like open_loop(@by_thread, $each, '/cpu/0')->{why}, qr/\Aover 64 threads/, '--by-thread: a process for each connection is no worker';
my $files = start_program("$top/epoll_server", '--root', "$top/data", 0);
like open_loop(@by_thread, $files, '/small.txt')->{why}, qr/ named no thread/, '--by-thread: nor are those that responses do not name';
ok !exists open_loop($crew, '/cpu/0')->{threads}, 'without it, nothing is told of them';

# --- Connections that are all open ---------------------------------------------------------------------------------------

my $holder = start_program("$top/epoll_server", '--root', "$top/data", '--stats', "$scratch/stats.json", 0);
my $told = 0;
local $SIG{USR1} = sub { $told++ };
$seen = open_loop('--keep-alive', '--hold', '--tell-parent', '--connections', 300, $holder, '/small.txt');
is failures($seen), '', '--hold: no request fails' or diag($seen->{out}, $seen->{err});
is $seen->{connections_most}, 300, '--hold: all connections are opened, although one would be enough';
is $seen->{answered}, $seen->{due}, '--hold: the requests that opened them do not count';
is $told, 1, '--tell-parent: the parent is told once';

$seen = open_loop('--keep-alive', '--hold', '--connections', 40, '--rate', 400, start_program("$top/thread_server", '--root', "$top/data", 0), '/small.txt');
is failures($seen), '', '--hold: connections take turns, and none is lost' or diag($seen->{out}, $seen->{err});
my $few = start_program("$top/pool_server", '--root', "$top/data", '--workers', 4, 0);
$seen = open_loop('--keep-alive', '--hold', '--connections', 10, $few, '/small.txt');
is $seen->{why}, 'cannot hold: 4 of 10', '--hold: a server that does not take them all gets no load' or diag($seen->{out}, $seen->{err});
is $seen->{due}, 0, '--hold: and no request is due';

# --- Each cause of a failure ----------------------------------------------------------------------------------------------

my $port = start_program($faulty);
for my $case (['close', 'cut_off'], ['noise', 'wrong'], ['grow', 'wrong'], ['until-end', '']) {
    my ($path, $cause) = @$case;
    $seen = open_loop($port, "/$path");
    is failures($seen), $cause, "/$path: " . ($cause ? "counted as $cause" : 'a response without a length ends with its connection') or diag($seen->{out});
    is $seen->{answered} + sum0(@$seen{qw(refused cut_off timeouts wrong non2xx)}), $seen->{due}, "/$path: each request is counted once";
}
is failures(open_loop(1, '/')), 'refused', 'a port where nothing listens: counted as refused';

# The server closes each connection without a word: a request on a kept one that has ended goes on a new one.
is failures(open_loop('--keep-alive', $port, '/small')), '', 'a kept connection that the server has closed costs no request';

# --- TLS and UDP -----------------------------------------------------------------------------------------------------------

my $made = run_command("$top/collect/certificate.sh", "$scratch/tls");
is $made->{status}, 0, 'there is a certificate';
my $encrypted = start_program("$top/epoll_server", '--root', "$top/data", '--tls', '--cert', "$scratch/tls/cert.pem", '--key', "$scratch/tls/key.pem", 0);
$seen = open_loop('--tls', 'new', $encrypted, '/small.txt');
ok $seen->{answered} == $seen->{due} && !$seen->{resumed} && $seen->{protocol} eq 'TLSv1.3', 'tls: new sessions' or diag($seen->{out}, $seen->{err});
$seen = open_loop('--tls', 'resumed', '--connections', 1, $encrypted, '/small.txt');
is $seen->{resumed}, $seen->{due} - 1, 'tls: all sessions but the first are resumed' or diag($seen->{out}, $seen->{err});
my $datagrams = start_program("$top/epoll_server", '--root', "$top/data", '--udp', '--log', "$scratch/datagrams.log", 0);
$seen = open_loop('--udp', '--timeout', 60_000, $datagrams, '/small.txt');
is failures($seen), '', 'udp: no request fails' or diag($seen->{out}, $seen->{err});
is $seen->{answered}, $seen->{due}, 'udp: all are answered';

# Many connections come from several addresses of this machine, a few from one.
my $seen_by = start_program("$top/epoll_server", '--root', "$top/data", '--max-connections', 4000, '--log', "$scratch/sources.log", 0);
my %sources;
for my $connections (1000, 3000) {
    open_loop('--connections', $connections, '--keep-alive', '--hold', $seen_by, '/small.txt');
    $sources{$connections} = { map { (split)[0] => 1 } split /\n/, slurp("$scratch/sources.log") };
    truncate "$scratch/sources.log", 0 or die $!;
}
is_deeply [sort keys %{ $sources{1000} }], ['127.0.0.1'], '1,000 connections come from one address';
is_deeply [sort keys %{ $sources{3000} }], [map { "127.0.0.$_" } 1 .. 3], '3,000 come from three';

# --- Runs that are not valid ---------------------------------------------------------------------------------------------

# The client is stopped for a moment after its first request: others become due, and it does not get to them.
sub stopped ($seconds, @options) {
    my $log = "$scratch/datagrams.log";
    truncate $log, 0 or die $!;
    my $run = run_command('bash', '-c', <<~END);
        $program --rate 1000 --seconds 1 --timeout 600000 @options $datagrams /small.txt &
        until [ -s $log ] || ! kill -0 \$!; do sleep 0.01; done
        kill -STOP \$!; sleep $seconds; kill -CONT \$!; wait
        END
    return JSON::PP::decode_json($run->{out});
}
my $late = stopped(0.3);
ok !$late->{valid}, 'a client that could not start its requests in time says that the run is not valid';
like $late->{why}, qr/started over 100 us late|Little/, 'and why';
cmp_ok $late->{latest_ms}, '>=', 100, 'it tells how late it was';
cmp_ok $late->{late_share}, '>', 0.01, 'and how many started late';
my $allowed = stopped(0.3, '--late', 10_000_000);
is $allowed->{late_share}, 0, '--late: later than that, none has started';
# A stop of 0.6 s makes a request 0.18 s late on average, and a fifth of 0.75 s is 0.15 s.
my $unlike = stopped(0.6, '--late', 750_000);
ok !$unlike->{valid}, 'a client that is late for most requests says so, even where each may be';
like $unlike->{why}, qr/Little's law does not hold|over 750000 us late/, "by Little's law, if it was stopped no longer than it was to be";
cmp_ok $unlike->{in_progress}, '<', 0.95 * $unlike->{little}, 'fewer were in progress than it asks for' if $unlike->{why} =~ /Little/;
cmp_ok $late->{max_ms}, '>=', 100, 'and the times of those requests count from when they were due';

for my $case ([['--rate', 0], qr/--rate is a number from/], [['--rate', 'nan'], qr/--rate is a number/], [['--arrivals', 'odd'], qr/--arrivals is even or poisson, not 'odd'/],
    [['--udp', '--tls', 'new'], qr/--udp and --tls/], [['--seconds', 86_400, '--rate', 1_000_000], qr/over 100000000 requests/],
    [['--connections', 0], qr/--connections is a number from 1/], [['--hold'], qr/--hold .*needs --keep-alive/],
    [['--keep-alive', '--tell-parent'], qr/--tell-parent .*needs --hold/]) {
    my $run = run_command($program, '--rate', 100, @{ $case->[0] }, 1, '/');
    ok $run->{status} == 2 && $run->{err} =~ $case->[1] && $run->{out} eq '', "open_loop @{ $case->[0] } is refused with status 2 and a line that says why" or diag($run->{err});
}
is run_command($program, 1, '/')->{status}, 2, 'without --rate it is refused';
like run_command($program, '--help')->{out}, qr/--rate R.*--arrivals HOW.*--timeout MS/s, '--help explains the options';

done_testing;
